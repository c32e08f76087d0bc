// Servers that begin and end: no request that reached one is lost.
#include <atomic>
#include <chrono>
#include <deque>
#include <future>
#include <thread>

#include "heddle/serve/http/server.h"
#include "tests/base/temporary.h"
#include "tests/serve/client.h"
#include "tests/serve/running.h"
#include "tests/support/wait.h"

namespace heddle::serve {
namespace {

// --- the end -------------------------------------------------------------------------------------

// Answers all; on /block once it is let go, and nobody else meanwhile, on /slow after 1 ms.
class Ending : public ::testing::Test {
 protected:
  Ending()
      : server_("127.0.0.1", 0, {},
                [this](const HttpRequest& request, const std::shared_ptr<Reply>& reply) {
                  if (request.path == "/block") is_blocked_ = true, let_go_.get_future().wait();
                  if (request.path == "/slow")
                    std::this_thread::sleep_for(std::chrono::milliseconds(1));
                  reply->send({.body = "here"});
                }),
        port_(server_.port()),
        thread_([this] { server_.run(), is_over_ = true; }) {}
  ~Ending() override {
    server_.stop();
    thread_.join();
  }

  std::promise<void> let_go_;
  std::atomic<bool> is_blocked_ = false, is_over_ = false;
  HttpServer server_;
  const int port_;
  std::thread thread_;
};

// Connections of which the server knows nothing yet, each with its request: the system has made
// them.
TEST_F(Ending, connections_that_nobody_has_accepted_are_answered) {
  Client first(port_);
  first.send(request_text("GET", "/block"));
  ASSERT_TRUE(testing::comes_true([&] { return is_blocked_.load(); }));
  server_.drain();
  std::deque<Client> clients;
  for (int i = 0; i < 100; ++i) {
    clients.emplace_back(port_);
    clients.back().send(request_text("GET", "/"));
  }
  let_go_.set_value();
  for (Client& client : clients) {
    const Answer answer = answer_of(client.receive_all());
    EXPECT_EQ(answer.status, 200);
    EXPECT_NE(answer.head.find("Connection: close"), std::string::npos) << answer.head;
  }
  EXPECT_EQ(answer_of(first.receive_all()).status, 200);
  EXPECT_TRUE(testing::comes_true([&] { return is_over_.load(); }));
}

TEST_F(Ending, a_connection_that_was_just_made_may_still_ask) {
  Client quick(port_), silent(port_), slow(port_);
  slow.send("GET / HTTP/1.1\r\n");
  ASSERT_TRUE(testing::comes_true([&] { return server_.connections() == 3; }));
  server_.drain();
  quick.send(request_text("GET", "/"));
  slow.send("Host: x\r\n\r\n");
  EXPECT_EQ(answer_of(quick.receive_all()).status, 200);
  EXPECT_EQ(answer_of(slow.receive_all()).status, 200);
  EXPECT_EQ(silent.receive(), "");  // after two seconds
  EXPECT_TRUE(testing::comes_true([&] { return is_over_.load(); }));
}

// Each makes eight connections at a time, asks on each, on some a moment later, until there are
// none to be had. The server takes longer than they do, so that the system always has some for it.
TEST_F(Ending, under_load_every_connection_that_was_made_is_answered) {
  std::atomic<int> answered = 0, lost = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t) {
    threads.emplace_back([&, t] {
      for (bool is_over = false; !is_over;) {
        std::deque<Client> clients;
        for (int i = 0; i < 8 && !is_over; ++i) {
          is_over = !clients.emplace_back(port_, 0, true).is_connected();
          if (is_over) clients.pop_back();
        }
        if (t % 2 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(3));
        for (Client& client : clients) client.send(request_text("GET", "/slow"));
        for (Client& client : clients) {
          ++(answer_of(client.receive_all()).status == 200 ? answered : lost);
        }
      }
    });
  }
  EXPECT_TRUE(testing::comes_true([&] { return answered >= 200; }));
  server_.drain();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(lost, 0);
  EXPECT_TRUE(testing::comes_true([&] { return is_over_.load(); }));
  EXPECT_FALSE(can_connect(port_));
}

TEST(ServiceThatEnds, says_so) {
  Running running;
  running.service().drain();
  EXPECT_EQ(get(running.port(), "/health/ready").status, 503);
  EXPECT_EQ(get(running.port(), "/health/live").status, 200);
  EXPECT_EQ(post(running.port(), "/v1/translations", R"({"text": "a dog"})").status, 503);
}

TEST(ServiceThatEnds, says_so_on_connections_that_are_still_open) {
  Running running;
  Client client(running.port());
  client.send("GET /health/ready HTTP/1.1\r\n");
  ASSERT_TRUE(testing::comes_true([&] { return running.server().connections() == 1; }));
  running.service().drain();
  running.server().drain();
  client.send("Host: localhost\r\n\r\n");
  const Answer answer = answer_of(client.receive_all());
  EXPECT_EQ(answer.status, 503);
  EXPECT_EQ(answer.json().get_string("status"), "draining");
  EXPECT_NE(answer.head.find("Connection: close"), std::string::npos) << answer.head;
}

// --- the beginning -------------------------------------------------------------------------------

TEST(ServiceThatLoads, is_live_and_refuses_until_it_has_its_models) {
  Running running(default_service(), false);
  const int port = running.port();
  EXPECT_EQ(get(port, "/health/live").status, 200);
  const Answer ready = get(port, "/health/ready");
  EXPECT_EQ(ready.status, 503);
  EXPECT_EQ(ready.json().get_string("status"), "loading");
  for (const char* path : {"/", "/v1/models", "/languages"}) {
    const Answer answer = get(port, path);
    EXPECT_EQ(answer.status, 503) << path;
    EXPECT_NE(answer.head.find("retry-after: 5\r\n"), std::string::npos) << answer.head;
  }
  const char* body = R"({"text": "a dog"})";
  const Answer refused = post(port, "/v1/translations", body);
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(refused.json().at("error").get_string("code"), "loading");
  std::map<std::string, int> phases = phases_of(get(port, "/metrics").body);
  EXPECT_EQ(phases["refused"], 5);  // with that to /health/ready
  EXPECT_EQ(phases["failed"], 0);
  running.reload();
  EXPECT_TRUE(testing::comes_true([&] { return running.swaps() == 1; }));
  EXPECT_EQ(get(port, "/health/ready").status, 200);
  EXPECT_EQ(post(port, "/v1/translations", body).status, 200);
}

TEST(ServiceThatLoads, says_what_it_cannot_load) {
  ServiceOptions options;
  options.models = {"/nowhere"};
  Service service(options);
  expect_error(ErrorKind::data, {"/nowhere"}, [&] { service.load(); });
  service.reload();
  expect_error(ErrorKind::data, {"/nowhere"},
               [&] { testing::comes_true([&] { return service.take_reloaded(); }); });
  EXPECT_TRUE(service.is_loading());
}

TEST(ServiceLimits, levels_of_json_are_as_many_as_the_service_takes) {
  ServiceOptions options = default_service();
  options.most_levels = 3;
  Running running(options);
  const auto status = [&](const char* more) {
    return post(running.port(), "/v1/completions",
                fmt::format(R"({{"prompt": ["a dog"], "max_tokens": 1, "x": {}}})", more))
        .status;
  };
  EXPECT_EQ(status("[[1]]"), 200);
  EXPECT_EQ(status("[[[1]]]"), 400);
}

}  // namespace
}  // namespace heddle::serve
