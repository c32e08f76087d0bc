// The server against clients of every kind, over the loopback interface.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <mutex>
#include <thread>

#include "heddle/serve/http/server.h"
#include "tests/base/temporary.h"
#include "tests/serve/client.h"
#include "tests/support/wait.h"

namespace heddle::serve {
namespace {

HttpLimits quick_limits() {
  HttpLimits limits;
  limits.header_bytes = 2048, limits.header_fields = 20, limits.body_bytes = 4096;
  limits.output_bytes = 65536, limits.header_seconds = 1, limits.body_seconds = 1;
  limits.idle_seconds = 2;
  return limits;
}

std::string large_body() {
  std::string body;
  for (int i = 0; body.size() < 6'000'000; ++i) body += fmt::format("line {}\n", i);
  return body;
}

// Echoes what it is asked; on /parts in three parts, on /never not at all (that it was asked is
// kept, with the query), on /flood without end, on /large and /large_parts with large_body().
class HttpServerTest : public ::testing::Test {
 protected:
  explicit HttpServerTest(const HttpLimits& limits = quick_limits())
      : server_(
            "127.0.0.1", 0, limits,
            [this](HttpRequest request, std::shared_ptr<Reply> reply) {
              handle(request, std::move(reply));
            },
            [this](int status) {
              const std::lock_guard lock(mutex_);
              refusals_.push_back(status);
              return fmt::format("refusal-{}", refusals_.size());
            }),
        thread_([this] { server_.run(); }) {}
  ~HttpServerTest() override {
    server_.stop();
    thread_.join();
  }

  void handle(const HttpRequest& request, std::shared_ptr<Reply> reply) {
    reply->on_gone([this] { ++gone_; });
    if (request.query == "twice") reply->on_gone([this] { gone_ += 10; });
    if (request.path == "/never") {
      const std::lock_guard lock(mutex_);
      kept_.push_back(std::move(reply));
      queries_.push_back(request.query);
    } else if (request.path == "/large") {
      reply->send({.content_type = "text/plain", .body = large_body()});
    } else if (request.path == "/large_parts") {
      reply->begin({.content_type = "text/plain"});
      const std::string body = large_body().substr(0, 3'000'000);
      for (size_t at = 0; at < body.size(); at += 40'001) reply->write(body.substr(at, 40'001));
      reply->end();
    } else if (request.path == "/called") {
      std::thread([reply, here = std::this_thread::get_id()] {
        reply->call([reply, here] {
          reply->send({.body = std::this_thread::get_id() == here ? "here" : "elsewhere"});
        });
      }).join();
    } else if (request.path == "/parts") {
      reply->begin({.content_type = "text/plain"});
      for (const char* part : {"one ", "two ", "three"}) reply->write(part);
      reply->end();
    } else if (request.path == "/flood") {
      reply->begin({});
      for (int i = 0; i < 120; ++i) reply->write(std::string(100'000, 'x'));
      reply->end();
    } else {
      std::string body =
          request.method + " " + request.path + "|" + request.query + "|" + request.body;
      reply->send({.content_type = "text/plain", .body = std::move(body)});
    }
  }
  int port() const { return server_.port(); }

  std::atomic<int> gone_ = 0;
  std::mutex mutex_;
  std::vector<std::shared_ptr<Reply>> kept_;
  std::vector<std::string> queries_;  // of those
  std::vector<int> refusals_;
  HttpServer server_;
  std::thread thread_;
};

TEST_F(HttpServerTest, requests_are_answered_one_after_the_other_on_one_connection) {
  Client client(port());
  for (int i = 0; i < 3; ++i) {
    client.send(fmt::format("POST /a?b={} HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi", i));
    const std::string wanted = fmt::format("POST /a|b={}|hi", i);
    EXPECT_NE(client.receive_until(wanted).find(wanted), std::string::npos) << i;
  }
  // Two at once, and a chunked one.
  client.send("GET /x HTTP/1.1\r\nHost: x\r\n\r\nGET /y HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_NE(client.receive_until("GET /y||").find("GET /x||"), std::string::npos);
  client.send(
      "POST /c HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: "
      "chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n");
  EXPECT_NE(client.receive_until("POST /c||abc").find("POST /c||abc"), std::string::npos);
}

TEST_F(HttpServerTest, what_a_reply_calls_runs_on_the_thread_of_the_server) {
  EXPECT_EQ(get(port(), "/called").body, "here");
}

TEST_F(HttpServerTest, parts_are_chunks_and_old_clients_get_them_plain) {
  const Answer answer = get(port(), "/parts");
  EXPECT_EQ(answer.status, 200);
  EXPECT_NE(answer.head.find("chunked"), std::string::npos);
  EXPECT_NE(answer.body.find("0\r\n\r\n"), std::string::npos);
  const Answer old = ask(port(), "GET /parts HTTP/1.0\r\n\r\n");
  EXPECT_EQ(old.body, "one two three");
}

// Reads a little at a time until that has come.
std::string read_slowly(Client& client, size_t bytes) {
  std::string all;
  while (all.size() < bytes) {
    const std::string part = client.receive();
    if (part.empty()) break;
    if (all.size() < 1'000'000) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    all += part;
  }
  return all;
}

TEST_F(HttpServerTest, a_large_body_that_is_read_slowly_comes_whole_and_then_the_next) {
  const std::string body = large_body();  // first: a connection that says nothing is closed
  Client client(port(), 16384);
  client.send("GET /large HTTP/1.1\r\nHost: x\r\n\r\n");
  const std::string head = fmt::format(
      "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\r\n", body.size());
  EXPECT_TRUE(read_slowly(client, head.size() + body.size()) == head + body);
  client.send("GET /large_parts HTTP/1.1\r\nHost: x\r\n\r\n");
  std::string bytes, text;
  while (!bytes.ends_with("\r\n0\r\n\r\n")) {
    const std::string part = read_slowly(client, 1);
    if (part.empty()) break;
    bytes += part;
  }
  for (size_t at = bytes.find("\r\n\r\n") + 4; at < bytes.size();) {
    size_t digits = 0;
    const size_t size = std::stoul(bytes.substr(at, 8), &digits, 16);
    text += bytes.substr(at + digits + 2, size);
    at += digits + size + 4;
  }
  EXPECT_TRUE(text == body.substr(0, 3'000'000));
  client.send("GET /next HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_NE(client.receive_until("GET /next||").find("GET /next||"), std::string::npos);
  EXPECT_EQ(gone_, 0);
}

TEST_F(HttpServerTest, parts_that_are_written_together_come_in_one_piece) {
  Client client(port());
  client.send("GET /parts HTTP/1.1\r\nHost: x\r\n\r\n");
  const std::string bytes = client.receive_until("0\r\n\r\n");
  EXPECT_TRUE(bytes.ends_with("\r\n\r\nd\r\none two three\r\n0\r\n\r\n")) << bytes;
}

TEST_F(HttpServerTest, a_hundred_clients_that_ask_at_once_get_their_own_answers) {
  constexpr size_t kClients = 100;
  std::deque<Client> clients;
  for (size_t i = 0; i < kClients; ++i) clients.emplace_back(port());
  for (int round = 0; round < 3; ++round) {
    for (size_t i = 0; i < kClients; ++i) {
      clients[i].send(fmt::format("GET /never?{}.{}. HTTP/1.1\r\nHost: x\r\n\r\n", round, i));
    }
    ASSERT_TRUE(testing::comes_true([&] {
      const std::lock_guard lock(mutex_);
      return kept_.size() == kClients;
    }));
    for (size_t i = 0; i < kClients; ++i) {
      if (i % 2 == 0) {
        kept_[i]->send({.body = "whole " + queries_[i]});
        continue;
      }
      kept_[i]->begin({});
      for (const std::string& part : {std::string("parts "), queries_[i]}) kept_[i]->write(part);
      kept_[i]->end();
    }
    kept_.clear(), queries_.clear();
    for (size_t i = 0; i < kClients; ++i) {
      const std::string own = fmt::format("{}.{}.", round, i);
      const std::string found = clients[i].receive_until(own);
      const std::string behind = found.substr(std::min(found.size(), found.find(own)));
      EXPECT_TRUE(!behind.empty() && (own + "\r\n0\r\n\r\n").starts_with(behind)) << found;
    }
  }
  EXPECT_EQ(server_.connections(), int64_t{kClients});
  EXPECT_EQ(gone_, 0);
}

TEST_F(HttpServerTest, what_is_too_large_or_no_request_is_refused) {
  EXPECT_EQ(
      ask(port(), "GET / HTTP/1.1\r\nHost: x\r\nA: " + std::string(5000, 'a') + "\r\n\r\n").status,
      431);
  std::string fields;
  for (int i = 0; i < 30; ++i) fields += fmt::format("A{}: b\r\n", i);
  EXPECT_EQ(get(port(), "/", fields).status, 431);
  EXPECT_EQ(post(port(), "/", std::string(5000, 'a')).status, 413);
  EXPECT_EQ(ask(port(), "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2000\r\n" +
                            std::string(8192, 'a') + "\r\n0\r\n\r\n")
                .status,
            413);
  for (const char* bad :
       {"what is this\r\n\r\n", "GET / HTTP/1.1\r\nNo colon\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999999\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        "POST / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\nGET /y HTTP/1.1\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nTransfer-Encoding: "
        "chunked\r\n\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n"}) {
    const Answer answer = ask(port(), bad);
    EXPECT_EQ(answer.status, 400) << bad;
    EXPECT_TRUE(answer.json().at("error").contains("message")) << bad;
  }
  EXPECT_EQ(get(port(), "/still").body, "GET /still||");
}

TEST_F(HttpServerTest, slow_clients_are_disconnected_and_nobody_waits_for_them) {
  Client header(port()), body(port()), idle(port());
  header.send("GET / HT");
  body.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc");
  EXPECT_EQ(get(port(), "/now").body, "GET /now||");
  EXPECT_EQ(answer_of(header.receive_all()).status, 408);
  EXPECT_EQ(answer_of(body.receive_all()).status, 408);
  EXPECT_EQ(idle.receive(), "");
  EXPECT_TRUE(testing::comes_true([&] { return server_.connections() == 0; }));
  EXPECT_EQ(refusals_, (std::vector<int>{408, 408}));
}

TEST_F(HttpServerTest, refusals_have_an_id_and_are_told) {
  const Answer header = get(port(), "/", "A: " + std::string(5000, 'a') + "\r\n");
  EXPECT_EQ(header.status, 431);
  EXPECT_NE(header.head.find("x-request-id: refusal-1\r\n"), std::string::npos) << header.head;
  const Answer body = post(port(), "/", std::string(5000, 'a'));
  EXPECT_NE(body.head.find("x-request-id: refusal-2\r\n"), std::string::npos) << body.head;
  EXPECT_EQ(ask(port(), "what is this\r\n\r\n").status, 400);
  EXPECT_EQ(get(port(), "/fine").status, 200);
  EXPECT_EQ(refusals_, (std::vector<int>{431, 413, 400}));
}

TEST_F(HttpServerTest, handlers_hear_of_clients_that_leave) {
  Client client(port());
  client.send("GET /never HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_TRUE(testing::comes_true([&] {
    const std::lock_guard lock(mutex_);
    return kept_.size() == 1;
  }));
  EXPECT_EQ(gone_, 0);
  client.close();
  EXPECT_TRUE(testing::comes_true([&] { return gone_ == 1; }));
  kept_[0]->send({.body = "too late"});  // dropped
  EXPECT_EQ(get(port(), "/still").body, "GET /still||");
  Client other(port());
  other.send("GET /never?twice HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_TRUE(testing::comes_true([&] {
    const std::lock_guard lock(mutex_);
    return kept_.size() == 2;
  }));
  other.close();
  EXPECT_TRUE(testing::comes_true([&] { return gone_ == 12; }));
}

TEST_F(HttpServerTest, handlers_hear_of_clients_that_leave_after_they_sent_more) {
  const std::string request = "GET /never HTTP/1.1\r\nHost: x\r\n\r\n";
  for (const std::string& more : {std::string("\r\n"), request}) {
    Client client(port());
    const auto asked = [&, before = kept_.size()] {
      const std::lock_guard lock(mutex_);
      return kept_.size() == before + 1;
    };
    client.send(request);
    EXPECT_TRUE(testing::comes_true(asked));
    client.send(more);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // it is seen
    EXPECT_EQ(server_.connections(), 1);
    client.close();
    EXPECT_TRUE(testing::comes_true([&] { return server_.connections() == 0; }));
  }
  EXPECT_EQ(gone_, 2);
}

TEST_F(HttpServerTest, a_client_that_sent_more_and_stays_gets_both_answers) {
  Client client(port());
  client.send("GET /never HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_TRUE(testing::comes_true([&] {
    const std::lock_guard lock(mutex_);
    return kept_.size() == 1;
  }));
  client.send("GET /more HTTP/1.1\r\nHost: x\r\n\r\n");
  std::this_thread::sleep_for(std::chrono::milliseconds(600));  // it is looked at twice
  EXPECT_EQ(gone_, 0);
  kept_[0]->send({.body = "first"});
  const std::string bytes = client.receive_until("GET /more||");
  EXPECT_LT(bytes.find("first"), bytes.find("GET /more||")) << bytes;
  EXPECT_NE(bytes.find("GET /more||"), std::string::npos) << bytes;
}

TEST_F(HttpServerTest, a_client_that_does_not_read_is_cut_off) {
  Client client(port());
  client.send("GET /flood HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_TRUE(testing::comes_true([&] { return gone_ == 1; }));
  EXPECT_EQ(get(port(), "/still").body, "GET /still||");
}

HttpLimits patient_limits() {
  HttpLimits limits = quick_limits();
  limits.idle_seconds = 600;
  return limits;
}
class PatientHttpServer : public HttpServerTest {
 protected:
  PatientHttpServer() : HttpServerTest(patient_limits()) {}
};

TEST_F(PatientHttpServer, draining_ends_idle_connections_and_lets_responses_out) {
  Client idle(port()), waiting(port());
  waiting.send("GET /never HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_TRUE(testing::comes_true([&] {
    const std::lock_guard lock(mutex_);
    return kept_.size() == 1;
  }));
  EXPECT_TRUE(testing::comes_true([&] { return server_.connections() == 2; }));
  server_.drain();
  EXPECT_EQ(idle.receive(), "");
  EXPECT_TRUE(testing::comes_true([&] { return server_.connections() == 1; }));
  kept_[0]->send({.body = "at last"});
  const std::string bytes = waiting.receive_all();
  EXPECT_NE(bytes.find("at last"), std::string::npos);
  EXPECT_NE(bytes.find("Connection: close"), std::string::npos);
  EXPECT_TRUE(testing::comes_true([&] { return server_.connections() == 0; }));
}

HttpLimits two_connections() {
  HttpLimits limits = quick_limits();
  limits.connections = 2;
  return limits;
}
class HttpServerOfTwo : public HttpServerTest {
 protected:
  HttpServerOfTwo() : HttpServerTest(two_connections()) {}
};

TEST_F(HttpServerOfTwo, connections_beyond_the_limit_are_closed_and_those_that_end_make_room) {
  Client first(port()), second(port());
  EXPECT_TRUE(testing::comes_true([&] { return server_.connections() == 2; }));
  Client third(port());
  EXPECT_EQ(third.receive(), "");
  EXPECT_TRUE(testing::comes_true([&] {
    const std::lock_guard lock(mutex_);
    return refusals_ == std::vector<int>{503};
  }));
  first.close();
  EXPECT_TRUE(testing::comes_true([&] { return server_.connections() == 1; }));
  EXPECT_EQ(get(port(), "/room").body, "GET /room||");
}

HttpLimits short_writes() {
  HttpLimits limits = quick_limits();
  limits.output_bytes = 1 << 20, limits.write_seconds = 2;
  return limits;
}
class HttpServerOfShortWrites : public HttpServerTest {
 protected:
  HttpServerOfShortWrites() : HttpServerTest(short_writes()) {}
};

TEST_F(HttpServerOfShortWrites, a_stream_whose_client_stops_reading_ends_in_time) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  Client client(port(), 16384);
  client.send("GET /flood HTTP/1.1\r\nHost: x\r\n\r\n");  // 12 MB, which a burst may be
  EXPECT_NE(client.receive_until("200 OK").find("200 OK"), std::string::npos);
  EXPECT_TRUE(testing::comes_true([&] { return server_.connections() == 0; }));
  EXPECT_GE(Clock::now() - start, std::chrono::seconds(2));
  EXPECT_EQ(get(port(), "/still").body, "GET /still||");
}

// Some 16 KB at a time, for longer than the limit: the system, which holds megabytes, takes nothing
// meanwhile.
TEST_F(HttpServerOfShortWrites, a_body_that_is_read_steadily_for_longer_comes_whole) {
  const std::string body = large_body();
  Client client(port(), 16384);
  client.send("GET /large HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  std::string all;
  for (int i = 0; i < 60; ++i) {  // 6 s
    all += client.receive();
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  EXPECT_LT(all.size(), body.size());
  all += client.receive_all();
  EXPECT_TRUE(all.ends_with(body)) << all.size();
}

TEST(HttpServer, addresses_that_cannot_be_listened_on_are_said) {
  const HttpHandler none = [](const HttpRequest&, const std::shared_ptr<Reply>&) {};
  expect_error(ErrorKind::usage, {"nowhere", "127.0.0.1"},
               [&] { HttpServer("nowhere", 0, {}, none); });
  expect_error(ErrorKind::usage, {"70000"}, [&] { HttpServer("127.0.0.1", 70000, {}, none); });
  const HttpServer first("127.0.0.1", 0, {}, none);
  expect_error(ErrorKind::system, {std::to_string(first.port()), "another"},
               [&] { HttpServer("127.0.0.1", first.port(), {}, none); });
}

}  // namespace
}  // namespace heddle::serve
