// Random numbers and HMAC of OpenSSL's libcrypto.
#include "heddle/dist/secret.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include "heddle/base/error.h"

namespace heddle::dist {

namespace {

const unsigned char* bytes_of(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

}  // namespace

std::string random_bytes(size_t count) {
  std::string bytes(count, '\0');
  check(RAND_bytes(reinterpret_cast<unsigned char*>(bytes.data()), static_cast<int>(count)) == 1,
        ErrorKind::system, "this machine gives no random numbers for a secret");
  return bytes;
}

std::string hex_of(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return text;
}

std::string proof_of(std::string_view secret, std::string_view text) {
  std::string proof(kProofSize, '\0');
  unsigned size = kProofSize;
  check(HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()), bytes_of(text),
             text.size(), reinterpret_cast<unsigned char*>(proof.data()), &size) != nullptr,
        ErrorKind::system, "libcrypto computes no HMAC-SHA256");
  return proof;
}

bool is_same_proof(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace heddle::dist
