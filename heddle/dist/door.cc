// The proofs of both ends, and the patience with strangers.
#include "heddle/dist/door.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "heddle/base/error.h"
#include "heddle/dist/secret.h"

namespace heddle::dist {

namespace {

constexpr std::string_view kMagic = "heddle-ranks 1\r\n";
constexpr size_t kNonce = 32;               // bytes
constexpr size_t kOpening = 16 + kNonce;    // magic, nonce
constexpr size_t kMostHello = 4096;         // bytes
constexpr size_t kMostCallers = 64;         // who have not proved themselves, at a time
constexpr double kPatience = 5;             // seconds, for all that one of these has to say
constexpr std::string_view kWelcome = "+";  // an answer; any other is the reason of a refusal
static_assert(kMagic.size() + kNonce == kOpening);

std::string proof(std::string_view secret, std::string_view who, std::string_view nonces,
                  std::string_view text) {
  std::string all(who);
  all += nonces;
  all += text;
  return proof_of(secret, all);
}

bool answer(const Guest& guest, std::string_view secret, std::string_view text) {
  const std::string frame = framed(proof(secret, "server", guest.nonces, text) + std::string(text));
  return send_all(guest.socket, frame, now_seconds() + 1);
}

}  // namespace

bool Guest::welcome(std::string_view secret) { return answer(*this, secret, kWelcome); }
void Guest::refuse(std::string_view secret, const std::string& reason) {
  answer(*this, secret, reason);
}

void Door::accept_callers() {
  while (std::optional<Socket> socket = accept_one(listener_)) {
    // The oldest gives way: who holds connections open keeps no rank out.
    if (callers_.size() >= kMostCallers) callers_.pop_front();
    std::string address = peer_address(*socket);
    callers_.push_back({std::move(*socket), std::move(address), "", "", now_seconds() + kPatience});
  }
}

// Takes what has come, never more than the longest that a rank would say. False: it is gone.
bool Door::read_from(Caller& caller) {
  constexpr size_t kMost = kOpening + sizeof(uint32_t) + kProofSize + kMostHello;
  std::array<std::byte, 1024> room;
  while (true) {
    const int64_t count = receive_some(caller.socket, room);
    if (count <= 0) return count == 0;
    caller.received.append(reinterpret_cast<const char*>(room.data()), static_cast<size_t>(count));
    if (caller.received.size() > kMost) return false;
  }
}

// The guest, once all has come and is right; `is_over` where this is no rank of the job.
std::optional<Guest> Door::guest_of(Caller& caller, bool& is_over) {
  std::string& in = caller.received;
  const size_t seen = std::min(in.size(), kMagic.size());
  is_over = in.substr(0, seen) != kMagic.substr(0, seen);
  if (is_over || in.size() < kOpening) return std::nullopt;
  if (caller.nonces.empty()) {
    const std::string nonce = random_bytes(kNonce);
    caller.nonces = in.substr(kMagic.size(), kNonce) + nonce;
    is_over = !send_all(caller.socket, std::string(kMagic) + nonce, now_seconds());
  }
  uint32_t size = 0;
  if (is_over || in.size() < kOpening + sizeof size) return std::nullopt;
  std::memcpy(&size, in.data() + kOpening, sizeof size);
  is_over = size < kProofSize || size > kProofSize + kMostHello;
  if (is_over || in.size() < kOpening + sizeof size + size) return std::nullopt;

  is_over = true;
  const std::string frame = in.substr(kOpening + sizeof size, size);
  Guest guest{std::move(caller.socket), frame.substr(kProofSize), caller.address, caller.nonces};
  const std::string needed = proof(secret_, "client", guest.nonces, guest.hello);
  if (is_same_proof(frame.substr(0, kProofSize), needed)) return guest;
  turned_away_ = "a wrong secret came from " + guest.address;
  // Said without a proof that it could learn from; to be sent away is all it learns.
  send_all(guest.socket, framed(std::string(kProofSize, '\0')), now_seconds());
  return std::nullopt;
}

std::optional<Guest> Door::next(double seconds) {
  const double until = now_seconds() + seconds;
  do {
    std::vector<pollfd> all = {{listener_.fd(), POLLIN, 0}};
    for (const Caller& caller : callers_) all.push_back({caller.socket.fd(), POLLIN, 0});
    const double left = std::clamp(until - now_seconds(), 0.0, 1.0);
    ::poll(all.data(), all.size(), static_cast<int>(left * 1000) + 1);
    accept_callers();
    for (auto caller = callers_.begin(); caller != callers_.end();) {
      const bool is_there = read_from(*caller) && now_seconds() < caller->until;
      bool is_over = false;
      // What came before the end of the connection may be whole: a rank that sends and dies.
      std::optional<Guest> guest = guest_of(*caller, is_over);
      if (is_over || !is_there) {
        caller = callers_.erase(caller);
      } else {
        ++caller;
      }
      if (guest) return guest;
    }
  } while (now_seconds() < until);
  return std::nullopt;
}

Reception knock(const Socket& socket, std::string_view secret, std::string_view hello,
                const Endpoint& endpoint, double until, std::string& why) {
  const std::string nonce = random_bytes(kNonce);
  std::string opening, reply;
  why = "it does not answer";
  if (!send_all(socket, std::string(kMagic) + nonce, until)) return Reception::gone;
  if (!receive_all(socket, opening, kMagic.size(), until)) return Reception::gone;
  if (opening != kMagic) {
    why = fmt::format(
        "what answers at {} is no rank of this version of heddle; choose another port for the "
        "rendezvous",
        endpoint.text());
    return Reception::stranger;
  }
  if (!receive_all(socket, opening, kNonce, until)) return Reception::gone;
  const std::string nonces = nonce + opening;
  const std::string said = proof(secret, "client", nonces, hello) + std::string(hello);
  if (!send_all(socket, framed(said), until)) return Reception::gone;
  if (!receive_frame(socket, reply, until)) return Reception::gone;
  const bool is_whole = reply.size() >= kProofSize;
  const std::string text = is_whole ? reply.substr(kProofSize) : "";
  if (!is_whole ||
      !is_same_proof(reply.substr(0, kProofSize), proof(secret, "server", nonces, text))) {
    why = fmt::format(
        "the rank at {} has another secret; give all ranks of a job the same in HEDDLE_SECRET or "
        "HEDDLE_SECRET_FILE",
        endpoint.text());
    return Reception::stranger;
  }
  check(text == kWelcome, ErrorKind::usage, "{}", text);
  return Reception::in;
}

}  // namespace heddle::dist
