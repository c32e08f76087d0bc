// A client of plain sockets: what it sends is what the test says, byte for byte.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <string>
#include <string_view>

#include "heddle/base/json/json.h"

namespace heddle::serve {

class Client {
 public:
  /// buffer: bytes that the system keeps of what was not read yet; 0: as many as it likes
  explicit Client(int port, int buffer = 0, bool may_be_refused = false)
      : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    if (buffer > 0) ::setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof(buffer));
    const timeval limit{.tv_sec = 20, .tv_usec = 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    sockaddr_in to = {};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<uint16_t>(port));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    is_connected_ = ::connect(socket_, reinterpret_cast<const sockaddr*>(&to), sizeof(to)) == 0;
    EXPECT_TRUE(is_connected_ || may_be_refused);
  }
  ~Client() { close(); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  void close() {
    if (socket_ >= 0) ::close(socket_);
    socket_ = -1;
  }
  bool is_connected() const { return is_connected_; }
  /// What could be sent: a server that refuses may close before the end.
  void send(std::string_view bytes) {
    while (!bytes.empty()) {
      const auto n = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) return;
      bytes.remove_prefix(static_cast<size_t>(n));
    }
  }
  /// Some of what came; "" at the end of the connection.
  std::string receive() {
    std::string bytes(65536, 0);
    const auto n = ::recv(socket_, bytes.data(), bytes.size(), 0);
    bytes.resize(n > 0 ? static_cast<size_t>(n) : 0);
    return bytes;
  }
  std::string receive_all() {
    std::string all;
    for (std::string part; !(part = receive()).empty();) all += part;
    return all;
  }
  /// Reads on until `text` has come.
  std::string receive_until(std::string_view text) {
    while (read_.find(text) == std::string::npos) {
      const std::string part = receive();
      if (part.empty()) break;
      read_ += part;
    }
    return read_;
  }

 private:
  int socket_;
  bool is_connected_ = false;
  std::string read_;
};

/// Whether somebody listens there.
inline bool can_connect(int port) {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in to = {};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<uint16_t>(port));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const bool is_there = ::connect(socket, reinterpret_cast<const sockaddr*>(&to), sizeof(to)) == 0;
  ::close(socket);
  return is_there;
}

struct Answer {
  int status = 0;
  std::string head, body;
  Json json() const { return Json::parse(body); }
};

inline Answer answer_of(const std::string& bytes) {
  Answer answer;
  const size_t end = bytes.find("\r\n\r\n");
  if (end == std::string::npos || bytes.size() < 12) return answer;
  answer.status = std::stoi(bytes.substr(9, 3));
  answer.head = bytes.substr(0, end + 2);
  answer.body = bytes.substr(end + 4);
  return answer;
}

inline std::string request_text(const std::string& method, const std::string& path,
                                const std::string& body = "", const std::string& fields = "") {
  return method + " " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" + fields +
         (body.empty() && method == "GET"
              ? "\r\n"
              : "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
}

/// One request on a connection of its own.
inline Answer ask(int port, const std::string& request) {
  Client client(port);
  client.send(request);
  return answer_of(client.receive_all());
}
inline Answer post(int port, const std::string& path, const std::string& body,
                   const std::string& fields = "") {
  return ask(port, request_text("POST", path, body, fields));
}
inline Answer get(int port, const std::string& path, const std::string& fields = "") {
  return ask(port, request_text("GET", path, "", fields));
}

}  // namespace heddle::serve
