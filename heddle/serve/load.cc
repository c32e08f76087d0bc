// Clients over Boost.Beast on one thread: those that are free wait in a list, requests that found
// none in another.
#include "heddle/serve/load.h"

#include <utility>  // Boost 1.74 needs it and does not say so

#include <algorithm>
#include <boost/asio.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <cmath>
#include <deque>
#include <memory>
#include <optional>

#include "heddle/base/error.h"
#include "heddle/base/json/json.h"
#include "heddle/serve/http/api_client.h"
#include "heddle/serve/http/event_loop.h"

namespace heddle::serve {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using tcp = asio::ip::tcp;
using ErrorCode = boost::system::error_code;
using Clock = std::chrono::steady_clock;
using Moment = Clock::time_point;

class Load;

// A connection that asks, again and again.
class LoadClient : public std::enable_shared_from_this<LoadClient> {
 public:
  LoadClient(Load& load, asio::io_context& context) : load_(load), stream_(context) {}
  /// request: outlives its answer
  void ask(const std::string& request, Moment meant);

 private:
  void connect();
  void send();
  void receive();
  void ended(ErrorCode error);

  Load& load_;
  beast::tcp_stream stream_;
  beast::flat_buffer buffer_;
  bool is_connected_ = false, is_reused_ = false;
  Moment meant_;
  const std::string* request_ = nullptr;
  std::optional<http::response_parser<http::string_body>> parser_;
};

class Load {
 public:
  explicit Load(const TrafficOptions& options) : options_(options) {
    tcp::resolver resolver(context_);
    ErrorCode error;
    const auto found = resolver.resolve(options.host, std::to_string(options.port), error);
    check(!error && !found.empty(), ErrorKind::usage, "{}: {}; give the address of a server",
          options.host, error.message());
    endpoint_ = found.begin()->endpoint();
    for (const std::string& body : options.bodies) requests_.push_back(request_text(body));
  }

  TrafficReport run(const std::function<void(const TrafficReport&)>& on_tick) {
    began_ = Clock::now();
    ends_ = began_ + duration(options_.seconds);
    if (options_.rate > 0) {
      wait_for(began_);
    } else {
      for (int64_t i = 0; i < options_.clients; ++i) dispatch(began_);
    }
    while (Clock::now() < ends_ || under_way_ > 0 || !waiting_.empty()) {
      context_.restart();
      // It may share its cores with the server; what it waits counts as the server's time.
      run_together(context_, Clock::now() + std::chrono::milliseconds(100),
                   [&] { return under_way_ >= kCrowd; });
      report_.seconds = seconds_since(began_);
      if (on_tick) on_tick(report_);
      // What has not answered by then is lost.
      if (Clock::now() > ends_ + std::chrono::seconds(60)) break;
    }
    report_.failed += under_way_ + std::ssize(waiting_);
    std::ranges::sort(report_.latencies);
    std::ranges::sort(report_.refusal_latencies);
    return std::move(report_);
  }

  const tcp::endpoint& endpoint() const { return endpoint_; }

  // A client has its answer, and may ask again.
  void answered(const std::shared_ptr<LoadClient>& client, Moment meant, unsigned status,
                const std::string& body) {
    const double latency = seconds_since(meant);
    if (status == 200) {
      ++report_.answered;
      report_.in_time += latency <= options_.deadline ? 1 : 0;
      report_.latencies.push_back(latency);
      report_.tokens += tokens_of(body);
    } else if (status == 429 || status == 503) {
      ++report_.refused;
      report_.refusal_latencies.push_back(latency);
    } else {
      fail(fmt::format("status {}: {}", status, body.substr(0, 200)));
    }
    done(client);
  }
  void lost(const std::string& why) {
    fail(why);
    check(report_.answered + report_.refused > 0 || report_.failed < 100, ErrorKind::system,
          "{} port {}: {}; start the server first", options_.host, options_.port, why);
    --clients_;
    done(nullptr);
  }

 private:
  static Clock::duration duration(double seconds) {
    return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  }
  static double seconds_since(Moment moment) {
    return std::chrono::duration<double>(Clock::now() - moment).count();
  }
  // What /v1/translations and /v1/completions call it.
  static int64_t tokens_of(const std::string& body) {
    try {
      const Json json = Json::parse(body);
      const Json* usage = json.find("usage");
      if (usage == nullptr) return 0;
      for (const char* key : {"target_tokens", "completion_tokens"}) {
        if (usage->contains(key)) return usage->get_int(key);
      }
    } catch (const Error&) {  // an answer without tokens
    }
    return 0;
  }

  std::string request_text(const std::string& body) const {
    std::string text = fmt::format("POST {} HTTP/1.1\r\nHost: {}\r\n", options_.path,
                                   host_field(options_.host, options_.port));
    text += "Content-Type: application/json\r\n";
    if (!options_.key.empty()) text += "Authorization: Bearer " + options_.key + "\r\n";
    return text + fmt::format("Content-Length: {}\r\n\r\n", body.size()) + body;
  }

  void fail(const std::string& why) {
    if (report_.failed++ == 0) report_.first_failure = why;
  }

  // Sends at random times, each by an exponential gap behind the one before.
  void wait_for(Moment next) {
    if (next >= ends_) return;
    timer_.expires_at(next);
    timer_.async_wait([this, next](ErrorCode error) {
      if (error) return;
      dispatch(next);
      const double u = uniform(times_.next());
      wait_for(next + duration(-std::log1p(-u) / options_.rate));
    });
  }
  static double uniform(uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1p-53; }

  void dispatch(Moment meant) {
    waiting_.push_back(meant);
    give_out();
  }
  void give_out() {
    while (!waiting_.empty()) {
      std::shared_ptr<LoadClient> client;
      if (!free_.empty()) {
        client = std::move(free_.back());
        free_.pop_back();
      } else if (clients_ < options_.most_connections) {
        client = std::make_shared<LoadClient>(*this, context_);
        ++clients_;
      } else {
        return;
      }
      const Moment meant = waiting_.front();
      waiting_.pop_front();
      ++under_way_;
      client->ask(requests_[static_cast<size_t>(report_.sent++) % requests_.size()], meant);
    }
  }
  void done(const std::shared_ptr<LoadClient>& client) {
    --under_way_;
    if (client) free_.push_back(client);
    const Moment now = Clock::now();
    if (options_.rate <= 0 && now < ends_) waiting_.push_back(now);
    give_out();
  }

  // Numbers that a seed gives, one after the other (splitmix64, Steele et al. 2014).
  struct Times {
    uint64_t state;
    uint64_t next() {
      uint64_t z = state += 0x9e3779b97f4a7c15;
      z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
      z = (z ^ z >> 27) * 0x94d049bb133111eb;
      return z ^ z >> 31;
    }
  };

  const TrafficOptions& options_;
  std::vector<std::string> requests_;
  asio::io_context context_{1};
  asio::steady_timer timer_{context_};
  tcp::endpoint endpoint_;
  Times times_{options_.seed};
  Moment began_, ends_;
  std::deque<Moment> waiting_;  // requests that found no connection free
  std::vector<std::shared_ptr<LoadClient>> free_;
  int64_t clients_ = 0, under_way_ = 0;
  TrafficReport report_;
};

void LoadClient::ask(const std::string& request, Moment meant) {
  meant_ = meant, request_ = &request;
  is_reused_ = is_connected_;
  if (is_connected_) return send();
  connect();
}

void LoadClient::connect() {
  stream_.async_connect(load_.endpoint(), [self = shared_from_this()](ErrorCode error) {
    if (error) return self->ended(error);
    ErrorCode ignored;
    self->stream_.socket().set_option(tcp::no_delay(true), ignored);
    self->is_connected_ = true;
    self->send();
  });
}

void LoadClient::send() {
  asio::async_write(stream_, asio::buffer(*request_),
                    [self = shared_from_this()](ErrorCode error, size_t) {
                      if (error) return self->ended(error);
                      self->receive();
                    });
}

void LoadClient::receive() {
  parser_.emplace();
  parser_->body_limit(uint64_t{1} << 26);
  http::async_read(
      stream_, buffer_, *parser_, [self = shared_from_this()](ErrorCode error, size_t) {
        if (error) return self->ended(error);
        self->is_reused_ = false;
        const auto response = self->parser_->release();
        if (!response.keep_alive()) {
          self->stream_.close();
          self->is_connected_ = false;
        }
        self->load_.answered(self, self->meant_, response.result_int(), response.body());
      });
}

// A connection that stood idle may have been closed meanwhile: that is no failure of the request.
void LoadClient::ended(ErrorCode error) {
  stream_.close();
  if (std::exchange(is_reused_, false)) {
    is_connected_ = false;
    buffer_.clear();
    return connect();
  }
  load_.lost(error.message());
}

}  // namespace

double TrafficReport::quantile(const std::vector<double>& rising, double share) {
  if (rising.empty()) return 0;
  const auto at = static_cast<size_t>(std::ceil(share * static_cast<double>(rising.size())));
  return rising[std::min(rising.size(), std::max<size_t>(at, 1)) - 1];
}

TrafficReport run_load(const TrafficOptions& options,
                       const std::function<void(const TrafficReport&)>& on_tick) {
  check(!options.bodies.empty(), ErrorKind::usage, "load: there is nothing to send");
  return Load(options).run(on_tick);
}

}  // namespace heddle::serve
