// A client of servers such as this one: one connection, one request at a time.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "heddle/base/json/json.h"

namespace heddle::serve {

/// "http://HOST:PORT/PATH".
struct ServerUrl {
  std::string host, path;  ///< an address or a name; "" where the URL has none
  int port = 80;
};
/// Errors: usage for anything else; TLS is a proxy's.
ServerUrl server_url(const std::string& url);
/// What the Host field of a request says: "localhost:8080", "[::1]:8080".
std::string host_field(const std::string& host, int port);

class ApiClient {
 public:
  struct Options {
    ServerUrl server;
    std::string key = {};       ///< shown as Bearer; "": none
    double longest_wait = 120;  ///< seconds in all, where the server says when (429, 503)
    /// Hears before each wait how long it is, and why.
    std::function<void(double seconds, const std::string& message)> on_wait = {};
  };

  explicit ApiClient(Options options);
  ~ApiClient();

  /// Posts a body; on_event gets each event of a stream as it comes, but its [DONE]. returns: the
  /// response, null of a stream
  /// Errors: data for what the server says is wrong with the request (400, 413); usage where it
  /// wants another key, or has not what is asked for (401, 403, 404); system if it cannot be
  /// reached, has no room for too long, fails, ends, or cuts the answer.
  Json post(const std::string& path, const Json& body,
            const std::function<void(const Json&)>& on_event);

 private:
  struct Connection;
  const Options options_;
  std::unique_ptr<Connection> connection_;
};

}  // namespace heddle::serve
