// Sockets of TCP that never block longer than they are told.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace heddle::dist {

/// Seconds on a clock that never goes back.
double now_seconds();

/// A socket or a listener that closes itself; non-blocking, not inherited by programs.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int fd) : fd_(fd) {}
  ~Socket() { close(); }
  Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  int fd() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }
  void close();

 private:
  int fd_ = -1;
};

/// Where a program listens.
struct Endpoint {
  std::string host;  ///< a name or an address
  int port = 0;
  std::string text() const;  ///< "host:29500", "[::1]:29500"
  bool is_loopback() const;  ///< localhost, 127.0.0.1, ::1
};

/// Reads "host:port" or "[address]:port". Errors: usage, `what` opens the message.
Endpoint parse_endpoint(std::string_view text, std::string_view what);

/// Listens at a port (0: any that is free), for all where no host is named; else at that address of
/// the loopback. Errors: system where the port is taken or there is no such address.
Socket listen_at(const Endpoint& own);
int port_of(const Socket& listener);
/// Takes over a listener that another program opened. Errors: usage if the number is none.
Socket inherited_listener(int fd);

/// Connects within `seconds`, of which each address of the host has its share; nothing where that
/// fails, with the reason in `why`.
std::optional<Socket> connect_to(const Endpoint& endpoint, double seconds, std::string& why);
/// The next connection that waits; nothing if there is none.
std::optional<Socket> accept_one(const Socket& listener);
/// The address at the other end, "10.0.0.2"; "" if it is gone.
std::string peer_address(const Socket& socket);
/// The name of this machine.
std::string host_name();
/// The addresses of this machine's interfaces but the loopback.
std::vector<std::string> own_addresses();

/// Sets what connections between ranks need: no delay, and an error once the other end's machine
/// has not answered for so long while nothing was under way. What was sent waits for as long as it
/// takes until the other rank receives it.
void watch_connection(const Socket& socket, double lost_seconds);

/// Bytes sent or received by one call: > 0; 0 where it would block; -1 where the connection has
/// ended or failed (errno 0: ended).
int64_t send_some(const Socket& socket, std::span<const std::byte> bytes);
int64_t receive_some(const Socket& socket, std::span<std::byte> room);

/// Waits until the socket can be read (or written) or the time is there.
bool wait_for(const Socket& socket, bool to_write, double until);
/// False where the connection ends or the time is over before all is sent or received.
bool send_all(const Socket& socket, std::string_view bytes, double until);
bool receive_all(const Socket& socket, std::string& bytes, size_t count, double until);

/// A text with its length before it, as ranks send texts to each other.
std::string framed(std::string_view text);
constexpr size_t kMostFrame = 1 << 20;  ///< bytes; longer ones are refused unread
/// False as receive_all(), and for a frame that is too long.
bool receive_frame(const Socket& socket, std::string& text, double until);

}  // namespace heddle::dist
