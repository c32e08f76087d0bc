// Sockets of TCP: poll before each call, a time by which all must be done.
#include "heddle/dist/socket.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstring>
#include <memory>

#include "heddle/base/error.h"

namespace heddle::dist {

double now_seconds() {
  using namespace std::chrono;
  return duration<double>(steady_clock::now().time_since_epoch()).count();
}

void Socket::close() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

// --- addresses -----------------------------------------------------------------------------------

std::string Endpoint::text() const {
  return host.find(':') == host.npos ? fmt::format("{}:{}", host, port)
                                     : fmt::format("[{}]:{}", host, port);
}

bool Endpoint::is_loopback() const {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

Endpoint parse_endpoint(std::string_view text, std::string_view what) {
  const size_t colon = text.rfind(':');
  Endpoint endpoint;
  if (colon != text.npos) {
    std::string_view host = text.substr(0, colon);
    const bool is_bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
    if (is_bracketed) host = host.substr(1, host.size() - 2);
    const char* const end = text.data() + text.size();
    const auto [at, error] = std::from_chars(text.data() + colon + 1, end, endpoint.port);
    const bool is_port =
        error == std::errc() && at == end && endpoint.port >= 1 && endpoint.port <= 65535;
    if (is_port && !host.empty() && (is_bracketed || host.find(':') == host.npos)) {
      endpoint.host = host;
      return endpoint;
    }
  }
  fail(ErrorKind::usage, "{} is '{}'; HOST:PORT is needed, as in node1:29500", what, text);
}

namespace {

using AddressList = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

// Null where the name is not known (yet: a cluster's DNS learns it as the machine begins).
AddressList addresses_of(const Endpoint& endpoint, std::string& why) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error =
      getaddrinfo(endpoint.host.c_str(), std::to_string(endpoint.port).c_str(), &hints, &found);
  if (error != 0) {
    found = nullptr;
    why = fmt::format("the host '{}' is not known here: {}", endpoint.host, gai_strerror(error));
  }
  return {found, &freeaddrinfo};
}

std::string address_text(const sockaddr* address, socklen_t size) {
  std::array<char, NI_MAXHOST> text{};
  if (getnameinfo(address, size, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) != 0) {
    return "";
  }
  const std::string_view mapped = "::ffff:";  // IPv4 that came to a socket of IPv6
  const std::string found(text.data());
  return found.starts_with(mapped) ? found.substr(mapped.size()) : found;
}

int milliseconds_until(double until) {
  return static_cast<int>(std::clamp(std::ceil((until - now_seconds()) * 1000), 0.0, 60'000.0));
}

}  // namespace

std::string host_name() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

std::vector<std::string> own_addresses() {
  std::vector<std::string> addresses;
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return addresses;
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr) continue;
    const int family = one->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    const socklen_t size = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    const std::string text = address_text(one->ifa_addr, size);
    const bool is_of_link = text.starts_with("fe80:");  // means nothing to others
    if (text.empty() || is_of_link || Endpoint{text, 0}.is_loopback()) continue;
    addresses.push_back(text);
  }
  freeifaddrs(all);
  return addresses;
}

// --- listening and connecting --------------------------------------------------------------------

namespace {

// A listener of one family; errno says why it is none.
bool open_listener(Socket& listener, const sockaddr* address, socklen_t size) {
  listener = Socket(::socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int yes = 1, no = 0;
  if (!listener.is_open()) return false;
  setsockopt(listener.fd(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (address->sa_family == AF_INET6) {
    setsockopt(listener.fd(), IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
  }
  return ::bind(listener.fd(), address, size) == 0 && ::listen(listener.fd(), 128) == 0;
}

}  // namespace

Socket listen_at(const Endpoint& own) {
  Socket listener;
  std::vector<std::string> hosts = {own.host == "localhost" ? "127.0.0.1" : own.host};
  if (own.host.empty()) hosts = {"::", "0.0.0.0"};  // both families; no IPv6 on this machine
  int error = EADDRNOTAVAIL;
  for (const std::string& host : hosts) {
    std::string why;
    const AddressList address = addresses_of({host, own.port}, why);
    check(address != nullptr, ErrorKind::usage, "{}", why);
    error = open_listener(listener, address->ai_addr, address->ai_addrlen) ? 0 : errno;
    if (error == 0 || error == EADDRINUSE) break;
  }
  check(error != EADDRINUSE, ErrorKind::system,
        "port {} is taken on {}: another program listens there; choose another port for the "
        "rendezvous",
        own.port, host_name());
  check(error == 0, ErrorKind::system, "cannot listen at port {}{}: {}", own.port,
        own.host.empty() ? "" : " of " + own.host, std::strerror(error));
  return listener;
}

int port_of(const Socket& listener) {
  sockaddr_in6 address = {};  // the port lies where that of IPv4 does
  socklen_t size = sizeof address;
  getsockname(listener.fd(), reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.sin6_port);
}

Socket inherited_listener(int fd) {
  int is_listening = 0;
  socklen_t size = sizeof is_listening;
  check(getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &is_listening, &size) == 0 && is_listening,
        ErrorKind::usage, "HEDDLE_LISTENER is {}, which is no socket that listens", fd);
  fcntl(fd, F_SETFD, FD_CLOEXEC);
  fcntl(fd, F_SETFL, O_NONBLOCK);
  return Socket(fd);
}

namespace {

// Where nobody listens yet at one of the ports that the system gives to connections, it may give
// the same one to this end, and TCP connects it to itself.
bool is_its_own_peer(const Socket& socket) {
  sockaddr_storage own = {}, peer = {};
  socklen_t own_size = sizeof own, peer_size = sizeof peer;
  return getsockname(socket.fd(), reinterpret_cast<sockaddr*>(&own), &own_size) == 0 &&
         getpeername(socket.fd(), reinterpret_cast<sockaddr*>(&peer), &peer_size) == 0 &&
         own_size == peer_size && std::memcmp(&own, &peer, own_size) == 0;
}

}  // namespace

std::optional<Socket> connect_to(const Endpoint& endpoint, double seconds, std::string& why) {
  const AddressList addresses = addresses_of(endpoint, why);
  const double until = now_seconds() + seconds;
  int64_t left = 0;  // addresses
  for (const addrinfo* one = addresses.get(); one != nullptr; one = one->ai_next) ++left;
  for (const addrinfo* one = addresses.get(); one != nullptr; one = one->ai_next, --left) {
    // One that a firewall swallows takes no more than its share of the time.
    const double own = now_seconds() + (until - now_seconds()) / static_cast<double>(left);
    Socket socket(::socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket.is_open()) continue;
    int error = 0;
    const int yes = 1;  // its port stays free for a listener, whatever it was connected to
    setsockopt(socket.fd(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (::connect(socket.fd(), one->ai_addr, one->ai_addrlen) != 0) error = errno;
    if (error == EINPROGRESS) {
      error = ETIMEDOUT;
      socklen_t size = sizeof error;
      if (wait_for(socket, true, own)) {
        getsockopt(socket.fd(), SOL_SOCKET, SO_ERROR, &error, &size);
      }
    }
    if (error == 0 && is_its_own_peer(socket)) error = ECONNREFUSED;
    if (error == 0) return socket;
    why = std::strerror(error);
  }
  return std::nullopt;
}

std::optional<Socket> accept_one(const Socket& listener) {
  Socket socket(accept4(listener.fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!socket.is_open()) return std::nullopt;
  return socket;
}

std::string peer_address(const Socket& socket) {
  sockaddr_storage address = {};
  socklen_t size = sizeof address;
  if (getpeername(socket.fd(), reinterpret_cast<sockaddr*>(&address), &size) != 0) return "";
  return address_text(reinterpret_cast<const sockaddr*>(&address), size);
}

void watch_connection(const Socket& socket, double lost_seconds) {
  const auto set = [&](int level, int option, int value) {
    setsockopt(socket.fd(), level, option, &value, sizeof value);
  };
  // No TCP_USER_TIMEOUT: it counts too while the other end lives and does not receive yet.
  const int probe = static_cast<int>(std::clamp(lost_seconds / 4, 1.0, 32767.0));
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, probe);
  set(IPPROTO_TCP, TCP_KEEPINTVL, probe);
  set(IPPROTO_TCP, TCP_KEEPCNT, 3);
}

// --- bytes ---------------------------------------------------------------------------------------

namespace {

constexpr size_t kMostAtOnce = size_t{1} << 30;  // bytes; a call takes at most 2^31

int64_t outcome(ssize_t count) {
  if (count > 0) return count;
  if (count == 0) errno = 0;
  const bool would_block = errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
  return count < 0 && would_block ? 0 : -1;
}

}  // namespace

int64_t send_some(const Socket& socket, std::span<const std::byte> bytes) {
  return outcome(
      ::send(socket.fd(), bytes.data(), std::min(bytes.size(), kMostAtOnce), MSG_NOSIGNAL));
}

int64_t receive_some(const Socket& socket, std::span<std::byte> room) {
  return outcome(::recv(socket.fd(), room.data(), std::min(room.size(), kMostAtOnce), 0));
}

bool wait_for(const Socket& socket, bool to_write, double until) {
  pollfd one = {socket.fd(), static_cast<short>(to_write ? POLLOUT : POLLIN), 0};
  while (true) {
    const int count = ::poll(&one, 1, milliseconds_until(until));
    if (count > 0) return true;
    if (count < 0 && errno != EINTR) return false;
    if (now_seconds() >= until) return false;
  }
}

bool send_all(const Socket& socket, std::string_view bytes, double until) {
  while (!bytes.empty()) {
    const int64_t count = send_some(socket, std::as_bytes(std::span(bytes)));
    if (count < 0 || (count == 0 && !wait_for(socket, true, until))) return false;
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  return true;
}

bool receive_all(const Socket& socket, std::string& bytes, size_t count, double until) {
  bytes.resize(count);
  for (size_t have = 0; have < count;) {
    const auto room = std::as_writable_bytes(std::span(bytes)).subspan(have);
    const int64_t got = receive_some(socket, room);
    if (got < 0 || (got == 0 && !wait_for(socket, false, until))) return false;
    have += static_cast<size_t>(got);
  }
  return true;
}

std::string framed(std::string_view text) {
  const auto size = static_cast<uint32_t>(text.size());
  std::string frame(sizeof size, '\0');
  std::memcpy(frame.data(), &size, sizeof size);
  return frame += text;
}

bool receive_frame(const Socket& socket, std::string& text, double until) {
  std::string head;
  uint32_t size = 0;
  if (!receive_all(socket, head, sizeof size, until)) return false;
  std::memcpy(&size, head.data(), sizeof size);
  return size <= kMostFrame && receive_all(socket, text, size, until);
}

}  // namespace heddle::dist
