// HTTP/1.1 over TCP: many connections on one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "heddle/serve/http/message.h"

namespace heddle::serve {

/// What clients may take. Whoever takes more is refused or disconnected, and nobody else waits.
struct HttpLimits {
  int64_t connections = 12'000;  ///< beyond: closed at once
  int64_t header_bytes = 16384;  ///< beyond: 431
  int64_t header_fields = 64;    ///< beyond: 431
  int64_t body_bytes = 1 << 20;  ///< beyond: 413
  /// Of a response that the client has not read for a second (64 times that in a burst): it is cut
  /// off.
  int64_t output_bytes = 1 << 18;
  int64_t header_seconds = 5;  ///< from a request's first byte to the end of its header
  int64_t body_seconds = 30;   ///< from there to the end of its body
  int64_t idle_seconds = 60;   ///< between requests
  int64_t write_seconds = 30;  ///< in which a client takes something of its response
};

class HttpServer {
 public:
  /// Listens at once. host: an address ("127.0.0.1", "::"), port: 0 takes a free one.
  /// Errors: usage for what is no address; system if the port is taken or not allowed.
  HttpServer(const std::string& host, int port, const HttpLimits& limits, HttpHandler handler,
             RefusalHandler on_refusal = {});
  ~HttpServer();

  /// The port that it listens on.
  int port() const;
  /// Serves until drain() and then until every response under way is sent. on_tick: called on this
  /// thread some twenty times a second
  void run(const std::function<void()>& on_tick = {});
  /// From any thread: takes no new connections and ends the others with their response, those that
  /// the system has made and nobody has accepted yet among them. A connection without a request is
  /// closed once it has been so for two seconds. Calling it again changes nothing.
  void drain();
  /// From any thread: ends run() at once; what was not sent is lost.
  void stop();
  /// Connections that are open.
  int64_t connections() const;

 private:
  class Implementation;
  class Session;
  class SessionReply;
  std::shared_ptr<Implementation> implementation_;
};

}  // namespace heddle::serve
