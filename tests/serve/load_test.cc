// Load on servers of known speed: what is counted, and from when.
#include "heddle/serve/load.h"

#include <atomic>
#include <thread>

#include "heddle/serve/http/server.h"
#include "tests/base/temporary.h"
#include "tests/serve/client.h"

namespace heddle::serve {
namespace {

class Served {
 public:
  explicit Served(HttpHandler handler)
      : server_("127.0.0.1", 0, {}, std::move(handler)), thread_([this] { server_.run(); }) {}
  ~Served() {
    server_.stop();
    thread_.join();
  }
  TrafficOptions options(double rate, double seconds) const {
    return {.host = "127.0.0.1",
            .port = server_.port(),
            .bodies = {R"({"text": "a"})", R"({"text": "b"})"},
            .rate = rate,
            .seconds = seconds};
  }

 private:
  HttpServer server_;
  std::thread thread_;
};

TEST(Load, requests_come_at_the_rate_and_are_counted_by_what_became_of_them) {
  std::atomic<int> asked = 0, firsts = 0;
  const Served served([&](const HttpRequest& request, const std::shared_ptr<Reply>& reply) {
    ++asked;
    firsts += request.body == R"({"text": "a"})" ? 1 : 0;
    const int status = asked % 10 == 0 ? 429 : asked % 10 == 5 ? 500 : 200;
    reply->send({.status = status, .body = R"({"usage": {"target_tokens": 7}})"});
  });
  const TrafficReport report = run_load(served.options(500, 1));
  EXPECT_NEAR(static_cast<double>(report.sent), 500, 110);  // five standard deviations
  EXPECT_EQ(report.sent, asked);
  EXPECT_EQ(firsts, (report.sent + 1) / 2);
  EXPECT_EQ(report.answered + report.refused + report.failed, report.sent);
  EXPECT_EQ(report.refused, report.sent / 10);
  EXPECT_EQ(report.failed, (report.sent + 5) / 10);
  EXPECT_EQ(report.tokens, 7 * report.answered);
  EXPECT_NE(report.first_failure.find("500"), std::string::npos);
  EXPECT_EQ(std::ssize(report.latencies), report.answered);
}

// A server that stands still for half a second: whoever waits for its answer before asking again
// sees one slow request; counted from the times meant, half of all are slow.
TEST(Load, a_stall_is_seen_by_all_that_should_have_been_sent_meanwhile) {
  std::atomic<int> asked = 0;
  const Served served([&](const HttpRequest&, const std::shared_ptr<Reply>& reply) {
    if (++asked == 20) std::this_thread::sleep_for(std::chrono::milliseconds(500));
    reply->send({.body = "{}"});
  });
  TrafficOptions options = served.options(200, 1);
  options.most_connections = 1;
  options.deadline = 0.1;
  const TrafficReport report = run_load(options);
  EXPECT_EQ(report.answered, report.sent);
  EXPECT_GT(report.sent, 120);
  EXPECT_GT(TrafficReport::quantile(report.latencies, 0.8), 0.1);
  EXPECT_LT(report.in_time, report.sent * 8 / 10);
  options.rate = 0;
  asked = 0;
  const TrafficReport closed = run_load(options);
  EXPECT_LT(TrafficReport::quantile(closed.latencies, 0.8), 0.1);
}

TEST(Load, quantiles_are_those_that_a_share_does_not_exceed) {
  const std::vector<double> rising = {1, 2, 3, 4};
  EXPECT_EQ(TrafficReport::quantile(rising, 0.5), 2);
  EXPECT_EQ(TrafficReport::quantile(rising, 0.51), 3);
  EXPECT_EQ(TrafficReport::quantile(rising, 1), 4);
  EXPECT_EQ(TrafficReport::quantile(rising, 0), 1);
  EXPECT_EQ(TrafficReport::quantile({}, 0.5), 0);
}

TEST(Load, a_server_that_is_not_there_is_said) {
  int port = 0;
  {
    const HttpServer gone("127.0.0.1", 0, {},
                          [](const HttpRequest&, const std::shared_ptr<Reply>&) {});
    port = gone.port();
  }
  TrafficOptions options{
      .host = "127.0.0.1", .port = port, .bodies = {"{}"}, .clients = 1, .seconds = 5};
  expect_error(ErrorKind::system, {std::to_string(port), "start the server"},
               [&] { run_load(options); });
}

}  // namespace
}  // namespace heddle::serve
