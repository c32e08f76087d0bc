// The secret that the ranks of a job share: never sent, only proved.
#pragma once

#include <string>
#include <string_view>

namespace heddle::dist {

/// Bytes that nobody can guess. Errors: system where the machine gives none.
std::string random_bytes(size_t count);
/// Two digits for each byte.
std::string hex_of(std::string_view bytes);

constexpr size_t kProofSize = 32;  ///< bytes
/// HMAC-SHA256 of a text under the secret. Source: RFC 2104, FIPS 180-4.
std::string proof_of(std::string_view secret, std::string_view text);
/// Whether two proofs are equal, in a time that does not tell where they differ.
bool is_same_proof(std::string_view a, std::string_view b);

}  // namespace heddle::dist
