// Boost.Beast, blocking: what calls has nothing else to do meanwhile.
#include "heddle/serve/http/api_client.h"

#include <netinet/tcp.h>
#include <sys/socket.h>

#include <utility>  // Boost 1.74 needs it and does not say so

#include <boost/asio.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <charconv>
#include <limits>
#include <thread>

#include "heddle/base/error.h"

namespace heddle::serve {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using ErrorCode = boost::system::error_code;

ServerUrl server_url(const std::string& url) {
  static constexpr std::string_view kScheme = "http://";
  const auto must_be = [&](bool is_so) {
    heddle::check(is_so, ErrorKind::usage, "the URL is '{}'; it must be http://HOST:PORT/PATH",
                  url);
  };
  must_be(url.starts_with(kScheme));
  const std::string rest = url.substr(kScheme.size());
  const size_t slash = std::min(rest.find('/'), rest.size());
  ServerUrl found;
  if (slash + 1 < rest.size()) found.path = rest.substr(slash);
  std::string host = rest.substr(0, slash), port;
  const size_t bracket = host.starts_with('[') ? host.find(']') : std::string::npos;
  const size_t colon = host.find(':', bracket == std::string::npos ? 0 : bracket);
  if (colon != std::string::npos) {
    port = host.substr(colon + 1);
    host.resize(colon);
    const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), found.port);
    must_be(error == std::errc() && end == port.data() + port.size() && found.port > 0 &&
            found.port < 65536);
  }
  if (bracket != std::string::npos) host = host.substr(1, bracket - 1);
  must_be(!host.empty());
  found.host = host;
  return found;
}

std::string host_field(const std::string& host, int port) {
  const bool is_v6 = host.find(':') != std::string::npos;
  return fmt::format("{}{}{}:{}", is_v6 ? "[" : "", host, is_v6 ? "]" : "", port);
}

struct ApiClient::Connection {
  asio::io_context context{1};
  beast::tcp_stream stream{context};
  beast::flat_buffer buffer;
  bool is_open = false;

  std::string name;  // of the server, for messages

  void open(const ServerUrl& server) {
    name = fmt::format("{} port {}", server.host, server.port);
    ErrorCode error;
    asio::ip::tcp::resolver resolver(context);
    const auto found = resolver.resolve(server.host, std::to_string(server.port), error);
    if (!error) stream.connect(found, error);
    check(!error, ErrorKind::system, "{}: {}; is `heddle serve` running there?", name,
          error.message());
    stream.socket().set_option(asio::ip::tcp::no_delay(true), error);
    // Ends within two minutes if the server's machine is gone.
    stream.socket().set_option(asio::socket_base::keep_alive(true), error);
    for (const auto& [option, value] :
         {std::pair(TCP_KEEPIDLE, 60), std::pair(TCP_KEEPINTVL, 10), std::pair(TCP_KEEPCNT, 6)}) {
      ::setsockopt(stream.socket().native_handle(), IPPROTO_TCP, option, &value, sizeof value);
    }
    buffer.clear();
    is_open = true;
  }
  void close() {
    stream.close();
    is_open = false;
  }
  [[noreturn]] void fail_cut(const ErrorCode& error) {
    close();
    fail(ErrorKind::system, "{}: the answer was cut ({}); what came before it is written", name,
         error.message());
  }
};

namespace {

using ResponseParser = http::response_parser<http::string_body>;

// Takes whole lines out of `text` and gives on what stands behind "data:".
void take_events(std::string& text, const std::function<void(const Json&)>& on_event) {
  size_t at = 0;
  for (size_t end; (end = text.find('\n', at)) != std::string::npos; at = end + 1) {
    std::string_view line(text.data() + at, end - at);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!line.starts_with("data:")) continue;
    line.remove_prefix(5);
    if (line.starts_with(' ')) line.remove_prefix(1);
    if (line.starts_with("[DONE]")) continue;
    const Json event = Json::parse(line, "the server's answer");
    if (const Json* error = event.find("error")) {
      fail(ErrorKind::system, "the server: {}", error->get_string("message"));
    }
    on_event(event);
  }
  text.erase(0, at);
}

// What an answer that is an error says of itself.
std::string message_of(const std::string& body, unsigned status) {
  try {
    const Json json = Json::parse(body);
    const Json* error = json.find("error");
    const Json* message = error == nullptr ? nullptr : error->find("message");
    if (message != nullptr && message->is_string()) return message->as_string();
  } catch (const Error&) {  // of a proxy, say
  }
  return fmt::format("status {}", status);
}

double seconds_to_wait(const http::response<http::string_body>& response) {
  const auto value = [&](const char* name) {
    const auto text = response[name];
    double number = -1;
    std::from_chars(text.data(), text.data() + text.size(), number);
    return number;
  };
  const double ms = value("retry-after-ms"), seconds = value("retry-after");
  return ms >= 0 ? ms / 1000 : seconds >= 0 ? seconds : 1;
}

}  // namespace

ApiClient::ApiClient(Options options)
    : options_(std::move(options)), connection_(std::make_unique<Connection>()) {}
ApiClient::~ApiClient() = default;

Json ApiClient::post(const std::string& path, const Json& body,
                     const std::function<void(const Json&)>& on_event) {
  http::request<http::string_body> request(http::verb::post, path, 11);
  request.set(http::field::host, host_field(options_.server.host, options_.server.port));
  request.set(http::field::content_type, "application/json");
  if (!options_.key.empty()) request.set(http::field::authorization, "Bearer " + options_.key);
  request.body() = body.dump();
  request.prepare_payload();
  Connection& c = *connection_;
  double waited = 0;
  for (;;) {
    const bool is_reused = c.is_open;
    if (!c.is_open) c.open(options_.server);
    ResponseParser parser;
    parser.body_limit(std::numeric_limits<uint64_t>::max());
    ErrorCode error;
    http::write(c.stream, request, error);
    // A server that refuses may close before it has read all: its answer is there.
    if (!error || !is_reused) http::read_header(c.stream, c.buffer, parser, error);
    if (error && is_reused) {  // it stood idle for too long: nothing was done of this
      c.close();
      continue;
    }
    if (error) c.fail_cut(error);
    const bool is_stream = parser.get()[http::field::content_type].starts_with("text/event-stream");
    while (!parser.is_done()) {
      http::read_some(c.stream, c.buffer, parser, error);
      if (error) c.fail_cut(error);
      if (is_stream) take_events(parser.get().body(), on_event);
    }
    const http::response<http::string_body> response = parser.release();
    if (!response.keep_alive()) c.close();
    const unsigned status = response.result_int();
    if (status == 200) {
      return is_stream ? Json() : Json::parse(response.body(), "the server's answer");
    }
    const std::string message = message_of(response.body(), status);
    const double wait = seconds_to_wait(response);
    const bool is_busy = status == 429 || (status == 503 && response.count("retry-after") > 0);
    if (is_busy && waited + wait <= options_.longest_wait) {
      if (options_.on_wait) options_.on_wait(wait, message);
      std::this_thread::sleep_for(std::chrono::duration<double>(wait));
      waited += wait;
      continue;
    }
    check(status != 401 && status != 403, ErrorKind::usage, "the server at {}: {}", c.name,
          message);
    check(status != 404, ErrorKind::usage, "the server at {}: {}", c.name, message);
    check(status != 400 && status != 413, ErrorKind::data, "{}", message);
    fail(ErrorKind::system, "the server at {}: {}", c.name, message);
  }
}

}  // namespace heddle::serve
