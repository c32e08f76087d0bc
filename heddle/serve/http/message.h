// Requests and responses of HTTP, as handlers see them: whichever library reads and writes them.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace heddle::serve {

struct HttpRequest {
  std::string method;      ///< "POST"
  std::string path;        ///< "/v1/models", without the query
  std::string query = {};  ///< behind the "?", as it came
  std::vector<std::pair<std::string, std::string>> headers = {};  ///< names in small letters
  std::string body = {};

  /// The value of a header, nullptr where there is none. name: in small letters
  const std::string* header(std::string_view name) const;
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "application/json";
  std::string body = {};
  std::vector<std::pair<std::string, std::string>> headers = {};  ///< beside those of the server
};

/// The way back to a client. From any thread; what is sent after the client left, or after the end,
/// is dropped; one that is let go before its end cuts the connection.
class Reply {
 public:
  virtual ~Reply() = default;
  /// The whole response.
  virtual void send(HttpResponse response) = 0;
  /// A response whose body comes in parts: begin(), any number of write(), end().
  virtual void begin(HttpResponse head) = 0;
  virtual void write(std::string part) = 0;
  virtual void end() = 0;
  /// Called once, on the server's thread, if the client leaves, or reads too slowly, before the
  /// response is whole. Several are called in their order. Set before the handler returns.
  virtual void on_gone(std::function<void()> f) = 0;
  /// Calls f on the server's thread, unless the response has begun or the client has left by then.
  virtual void call(std::function<void()> f) = 0;
};

/// Answers a request, now or later; must not block, nor throw.
using HttpHandler = std::function<void(HttpRequest, std::shared_ptr<Reply>)>;

/// Told of each refusal that no handler hears of, by its status: 400, 413, 431, 408 (a request that
/// did not come whole in time), 503 (a connection beyond the limit, which is closed without an
/// answer). On the server's thread; must not throw. returns: the answer's x-request-id
using RefusalHandler = std::function<std::string(int status)>;

}  // namespace heddle::serve
