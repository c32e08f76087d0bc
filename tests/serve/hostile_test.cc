// Clients that mean harm, on real sockets: each is refused or bounded, and a request beside it is
// answered as ever.
#include <thread>

#include "heddle/infer/decoding/translate.h"
#include "tests/serve/client.h"
#include "tests/serve/running.h"

namespace heddle::serve {
namespace {

ServiceOptions quick_service() {
  ServiceOptions options = default_service();
  options.http.header_seconds = options.http.body_seconds = 1;
  options.http.idle_seconds = 2;
  return options;
}

class Hostile : public ::testing::Test {
 protected:
  Hostile() : running_(quick_service()) {
    const LoadedModel& model = running_.model(0).loaded();
    const std::vector<std::string> text = {"a dog runs"};
    wanted_ = translate_lines(model, text, running_.model(0).translating)[0].text;
  }
  int port() const { return running_.port(); }

  // A request beside the others: it gets what it gets alone, while the client waits.
  void expect_unharmed() const {
    const Answer answer = post(port(), "/v1/translations", R"({"text": "a dog runs"})");
    ASSERT_EQ(answer.status, 200) << answer.body;
    EXPECT_EQ(answer.json().at("translations").as_array()[0].get_string("text"), wanted_);
  }
  void expect_refused(const std::string& bytes, int status) const {
    const Answer answer = ask(port(), bytes);
    EXPECT_EQ(answer.status, status) << bytes.substr(0, 200);
    if (answer.status != 0) {
      EXPECT_TRUE(answer.json().at("error").contains("message"));
    }
    expect_unharmed();
  }
  static std::string with_fields(const std::string& fields, const std::string& body = "") {
    return "POST /v1/translations HTTP/1.1\r\nHost: localhost\r\n" + fields + "\r\n" + body;
  }
  bool comes_to(int64_t connections) {
    return testing::comes_true([&] { return running_.server().connections() <= connections; });
  }

  Running running_;
  std::string wanted_;
};

// A byte each tenth of a second, which never comes to a request.
TEST_F(Hostile, slow_headers_and_slow_bodies_end_at_their_limit) {
  std::vector<std::unique_ptr<Client>> slow;
  for (int i = 0; i < 50; ++i) {
    slow.push_back(std::make_unique<Client>(port()));
    slow.back()->send(i % 2 == 0 ? "GET / HTTP/1.1\r\nA: "
                                 : with_fields("Content-Length: 100\r\n"));
  }
  for (int i = 0; i < 15; ++i) {
    for (const auto& client : slow) client->send("x");
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    if (i == 5) expect_unharmed();
  }
  for (const auto& client : slow) {
    // What it still sends when the connection ends may cost it the answer.
    const int status = answer_of(client->receive_all()).status;
    EXPECT_TRUE(status == 408 || status == 0) << status;
  }
  EXPECT_TRUE(comes_to(0));
  EXPECT_NE(
      get(port(), "/metrics").body.find(R"(heddle_requests_total{route="none",status="408"})"),
      std::string::npos);
  expect_unharmed();
}

// Streams of some megabytes that nobody reads: more than a connection's buffers and what the server
// keeps hold together.
TEST(SlowReaders, are_cut_off_by_the_server_and_their_work_ends) {
  const testing::TempDir folder;
  testing::write_language_model(folder.path().string() + "/chat", "{}", true, 256);
  testing::write_file(folder.path().string() + "/chat/chat_template.jinja",
                      "{{ messages[0].content }}");
  ServiceOptions options = default_service();
  options.models.push_back(folder.path().string() + "/chat");
  options.http.output_bytes = 1024;  // 64 KiB in a burst
  Running running(options);
  const std::string body =
      R"({"messages": [{"role": "user", "content": "the dog"}], "max_tokens": 240, "n": 16,
          "temperature": 2, "logprobs": true, "top_logprobs": 20, "model": "chat", "stream": true})";
  std::vector<std::unique_ptr<Client>> slow;
  for (int i = 0; i < 3; ++i) {
    slow.push_back(std::make_unique<Client>(running.port(), 4096));
    slow.back()->send(request_text("POST", "/v1/chat/completions", body));
  }
  EXPECT_EQ(post(running.port(), "/v1/translations", R"({"text": "a dog runs"})").status, 200);
  EXPECT_EQ(running.taken_at_rest(), 0);
  // Though none of them has left.
  EXPECT_TRUE(testing::comes_true([&] { return running.server().connections() == 0; }));
  for (const auto& client : slow) {
    const std::string read = client->receive_all();
    EXPECT_NE(read.find("200 OK"), std::string::npos);
    EXPECT_EQ(read.find("[DONE]"), std::string::npos) << read.size();
  }
}

// Each body would be answered were its length believed, or one of the two: the framing alone is
// wrong.
TEST_F(Hostile, lengths_that_contradict_each_other_are_refused) {
  const std::string body = R"({"text": "a dog runs"})", next = "GET /smuggled HTTP/1.1\r\n\r\n";
  const std::string chunks = fmt::format("{:x}\r\n{}\r\n0\r\n\r\n", body.size(), body);
  const std::string length = fmt::format("Content-Length: {}", body.size());
  const std::string chunked = "Transfer-Encoding: chunked";
  const auto answered = [&](const std::string& fields, const std::string& framed) {
    EXPECT_EQ(ask(port(), with_fields(fields + "\r\n", framed)).status, 200) << fields;
  };
  answered(length, body);
  answered(length, body + next);
  answered(chunked, chunks);
  const auto refused = [&](const std::string& fields, const std::string& framed) {
    expect_refused(with_fields(fields + "\r\n", framed), 400);
  };
  for (const std::string& framed : {body, chunks, body + next, chunks + next}) {
    refused(length + "\r\n" + chunked, framed);
    refused(chunked + "\r\n" + length, framed);
  }
  const std::string longer = fmt::format("{}", body.size() + 1);
  refused(length + "\r\nContent-Length: " + longer, body + " ");
  refused("Content-Length: " + longer + "\r\n" + length, body + " ");
  refused(length + ", " + longer, body + " ");
  refused(fmt::format("Content-Length: +{}", body.size()), body);
  refused(fmt::format("Content-Length: 0x{:x}", body.size()), body);
  refused("Transfer-Encoding: chunked, gzip", chunks);
  // 2^64 and the length, which is what is left of it in 64 bits.
  ASSERT_EQ(body.size(), 22U);
  refused("Content-Length: 18446744073709551638", body);
}

TEST_F(Hostile, chunks_near_the_end_of_64_bits_are_refused) {
  for (const char* size :
       {"ffffffffffffffff", "fffffffffffffffe", "8000000000000000", "7fffffffffffffff", "100001"}) {
    expect_refused(with_fields("Transfer-Encoding: chunked\r\n", std::string(size) + "\r\nab"),
                   413);
  }
  expect_refused(with_fields("Transfer-Encoding: chunked\r\n", "10000000000000000\r\nab"), 400);
  // Two that together wrap around.
  expect_refused(with_fields("Transfer-Encoding: chunked\r\n", "2\r\nab\r\nffffffffffffffff\r\n"),
                 413);
}

TEST_F(Hostile, a_hundred_thousand_fields_are_refused_before_they_are_kept) {
  std::string fields;
  for (int i = 0; i < 100'000; ++i) fields += fmt::format("A{}: b\r\n", i);
  expect_refused(with_fields(fields), 431);
  fields.clear();
  for (int i = 0; i < 65; ++i) fields += fmt::format("A{}: b\r\n", i);
  expect_refused(with_fields(fields), 431);
  expect_refused(with_fields("A: " + std::string(1 << 20, 'a') + "\r\n"), 431);
}

TEST_F(Hostile, deep_huge_and_doubled_json_is_refused) {
  const auto refused = [&](const std::string& body, int status) {
    expect_refused(request_text("POST", "/v1/translations", body), status);
  };
  refused(std::string(100'000, '['), 400);
  refused(R"({"text": )" + std::string(33, '[') + std::string(33, ']') + "}", 400);
  std::string deep = "1";
  for (int i = 0; i < 5000; ++i) deep = R"({"a":)" + deep + "}";
  refused(deep, 400);
  std::string many = R"({"text": ["a")";
  for (int i = 0; i < 100'000; ++i) many += R"(,"a")";
  refused(many + "]}", 400);
  refused(R"({"text": "a", "text": "b"})", 400);
  refused(R"({"text": "a", "beam": 1, "beam": 16})", 400);
  std::string doubled = R"({"text": "a")";
  for (int i = 0; i < 20'000; ++i) doubled += R"(, "x": 1)";
  refused(doubled + "}", 400);
  refused(std::string((1 << 20) + 1, ' '), 413);
  refused(std::string(1 << 19, '7'), 400);  // a number of so many digits
}

TEST_F(Hostile, numbers_out_of_their_range_are_refused_by_name) {
  const std::vector<std::pair<const char*, std::vector<const char*>>> fields = {
      {"/v1/translations", {"beam", "n_best", "max_tokens"}},
      {"/v1/completions", {"n", "max_tokens"}}};
  for (const auto& [path, names] : fields) {
    const bool is_text = std::string_view(path) == "/v1/translations";
    for (const char* name : names) {
      for (const char* value :
           {"-1", "0", "9223372036854775808", "9223372036854775807", "-9223372036854775808",
            "1e300", "NaN", "Infinity", "\"4\"", "1.5", "[]", "true"}) {
        const std::string body =
            fmt::format(R"({{"{}": "a", "{}": {}}})", is_text ? "text" : "prompt", name, value);
        const Answer answer = post(port(), path, body);
        EXPECT_EQ(answer.status, 400) << body << answer.body;
      }
    }
  }
  for (const char* value : {"-1", "11", "1e300", "NaN", "\"1\""}) {
    const std::string body = fmt::format(R"({{"prompt": "a", "temperature": {}}})", value);
    EXPECT_EQ(post(port(), "/v1/completions", body).status, 400) << body;
  }
  EXPECT_EQ(running_.taken_at_rest(), 0);
  expect_unharmed();
}

TEST_F(Hostile, what_is_no_utf8_is_refused) {
  expect_refused(request_text("POST", "/v1/translations", "{\"text\": \"\xff\xfe\"}"), 400);
  expect_refused(request_text("POST", "/v1/translations", "{\"text\": \"\xed\xa0\x80\"}"), 400);
  expect_refused(request_text("POST", "/v1/translations", R"({"text": "\ud800"})"), 400);
  expect_refused(request_text("POST", "/v1/translations", "{\"text\": \"a\", \"\xc0\x80\": 1}"),
                 400);
  // A form is decoded byte by byte.
  const Answer form = post(port(), "/translate", "q=%ff%fe&source=en&target=de",
                           "Content-Type: application/x-www-form-urlencoded\r\n");
  EXPECT_EQ(form.status, 400) << form.body;
  expect_unharmed();
}

TEST_F(Hostile, ten_megabytes_of_text_are_refused_before_they_are_read) {
  const std::string text = R"({"text": ")" + std::string(10 << 20, 'a') + R"("})";
  expect_refused(request_text("POST", "/v1/translations", text), 413);
  // In a crowd, and as chunks that say no length.
  std::vector<std::thread> clients;
  for (int c = 0; c < 8; ++c) {
    clients.emplace_back([&, c] {
      Client client(port());
      if (c % 2 == 0) {
        client.send(request_text("POST", "/v1/translations", text));
      } else {
        client.send(with_fields("Transfer-Encoding: chunked\r\n"));
        for (int i = 0; i < 160; ++i) client.send("10000\r\n" + std::string(65536, 'a') + "\r\n");
      }
      const Answer answer = answer_of(client.receive_all());
      EXPECT_TRUE(answer.status == 413 || answer.status == 0) << answer.status;
    });
  }
  expect_unharmed();
  for (std::thread& client : clients) client.join();
  // As much as a body may have, of one word: too long for the model, and said while it waits.
  expect_refused(request_text("POST", "/v1/translations",
                              R"({"text": ")" + std::string((1 << 20) - 100, 'a') + R"("})"),
                 400);
}

// Clients that vanish without a word: nothing comes, nothing ends, until the limit.
TEST_F(Hostile, half_open_connections_are_closed_when_they_have_been_idle_for_long) {
  std::vector<std::unique_ptr<Client>> silent;
  for (int i = 0; i < 300; ++i) silent.push_back(std::make_unique<Client>(port()));
  expect_unharmed();
  EXPECT_TRUE(comes_to(0));
  for (const auto& client : silent) EXPECT_EQ(client->receive(), "");
  expect_unharmed();
}

TEST_F(Hostile, requests_sent_all_at_once_are_answered_in_their_order) {
  Client client(port());
  std::string all;
  for (int i = 0; i < 200; ++i) {
    all += fmt::format("GET /nothing HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: r{}\r\n\r\n", i);
  }
  client.send(all);
  const std::string bytes = client.receive_until("x-request-id: r199");
  size_t at = 0;
  for (int i = 0; i < 200; ++i) {
    const size_t found = bytes.find(fmt::format("x-request-id: r{}\r\n", i), at);
    ASSERT_NE(found, std::string::npos) << i;
    at = found;
  }
  expect_unharmed();
}

TEST_F(Hostile, head_is_answered_as_get_without_a_body) {
  const Answer whole = get(port(), "/v1/models");
  const Answer head =
      ask(port(), "HEAD /v1/models HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(head.status, 200);
  EXPECT_EQ(head.body, "");
  EXPECT_NE(head.head.find(fmt::format("Content-Length: {}\r\n", whole.body.size())),
            std::string::npos)
      << head.head;
  EXPECT_EQ(
      ask(port(), "HEAD /nothing HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").body,
      "");
  // The connection goes on behind it.
  Client client(port());
  client.send(
      "HEAD /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n"
      "GET /health/live HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  const std::string bytes = client.receive_all();
  ASSERT_NE(bytes.find("live"), std::string::npos) << bytes;
  EXPECT_EQ(bytes.find("live"), bytes.rfind("live")) << bytes;
}

}  // namespace
}  // namespace heddle::serve
