// translate and generate as clients of a server: the same bytes as with the model here, and what is
// said where a server is not there, wants a key, has no room, ends, or cuts its answer.
#include <csignal>
#include <thread>

#include "heddle/serve/http/server.h"
#include "heddle/serve/service.h"
#include "tests/cli/language_model.h"
#include "tests/serve/client.h"
#include "tests/serve/running.h"

namespace heddle::testing {
namespace {

CliOptions with_input(const std::string& text) {
  CliOptions options;
  options.input = text;
  return options;
}

std::string url_of(int port) { return fmt::format("http://127.0.0.1:{}", port); }

// What both print, given these flags and this input.
void expect_same(const serve::Running& running, const std::string& command, const std::string& name,
                 std::vector<std::string> flags, const std::string& input) {
  std::vector<std::string> here = {command, serve::model_folder() + "/" + name, "--precision",
                                   "f32"};  // as the server of the tests has it
  std::vector<std::string> there = {command, "--server", url_of(running.port())};
  here.insert(here.end(), flags.begin(), flags.end());
  there.insert(there.end(), flags.begin(), flags.end());
  const CliResult wanted = run_heddle(here, with_input(input));
  const CliResult found = run_heddle(there, with_input(input));
  ASSERT_EQ(wanted.exit_code, 0) << wanted.err;
  EXPECT_EQ(found.exit_code, 0) << found.err;
  EXPECT_EQ(found.out, wanted.out) << fmt::format("{}", fmt::join(flags, " "));
}

TEST(Remote, translations_are_the_bytes_that_the_model_here_gives) {
  const serve::Running running;
  std::string lines = "a dog runs\n\ntwo men and a cat\n";
  for (int i = 0; i < 300; ++i) lines += fmt::format("the bird sings {} times\n", i % 7);
  expect_same(running, "translate", "en-de", {}, lines);
  expect_same(running, "translate", "en-de", {"--beam", "3", "--json"}, lines);
  const std::string few = "a dog runs\ntwo men and a cat\n";
  expect_same(running, "translate", "en-de", {"--n-best", "3"}, few);
  expect_same(running, "translate", "en-de", {"--n-best", "2", "--json"}, few);
  expect_same(running, "translate", "en-de", {"--alignment"}, few);
  expect_same(running, "translate", "en-de",
              {"--alignment", "--align-layers", "0", "--align-heads", "1,2"}, few);
  expect_same(running, "translate", "en-de", {"--max-length", "5", "--prefix", "a"}, few);
  const TempDir folder;
  const std::string prefixes = (folder / "prefixes").string();
  write_file(prefixes, "a\nthe\n");
  expect_same(running, "translate", "en-de", {"--prefix-file", prefixes}, few);
}

TEST(Remote, continuations_are_the_bytes_that_the_model_here_gives) {
  const serve::Running running;
  const std::string one = "the dog\n", several = "the dog\na cat\ntwo men\n";
  expect_same(running, "generate", "gpt", {"-n", "12"}, one);
  expect_same(running, "generate", "gpt", {"-n", "12", "--echo"}, several);
  expect_same(running, "generate", "gpt", {"-n", "12", "-p", "a", "-p", "the bird"}, "");
  expect_same(running, "generate", "gpt", {"-n", "9", "--stop", "e"}, several);
  expect_same(running, "generate", "gpt",
              {"-n", "12", "--samples", "3", "--temperature", "0.8", "--seed", "5"}, several);
}

TEST(Remote, conversations_and_json_are_the_bytes_that_the_model_here_gives) {
  const serve::Running running;
  const TempDir folder;
  const std::string schema = (folder / "schema.json").string();
  write_file(schema, R"({"type": "array", "items": {"type": "boolean"}, "maxItems": 2})");
  const std::string said = R"({"messages": [{"role": "user", "content": "a"},
      {"role": "assistant", "content": "the"}, {"role": "user", "content": "cat"}]})";
  expect_same(running, "generate", "gpt", {"-n", "12", "--chat", "-p", "the dog"}, "");
  expect_same(running, "generate", "gpt",
              {"-n", "6", "--chat", "--system", "the", "-p", "the dog", "-p", said}, "");
  expect_same(running, "generate", "gpt", {"-n", "12", "--chat"}, "the dog\na cat\n");
  expect_same(running, "generate", "gpt",
              {"-n", "12", "--chat", "--samples", "3", "--seed", "5", "-p", "the dog"}, "");
  expect_same(running, "generate", "gpt", {"-n", "12", "--json-schema", schema},
              "the dog\na cat\n");
  expect_same(running, "generate", "gpt",
              {"-n", "12", "--chat", "--json-schema", schema, "-p", "the dog"}, "");
}

TEST(Remote, prompts_that_come_slowly_are_drawn_for_as_those_that_come_at_once) {
  const serve::Running running;
  const std::vector<std::string> command = {"generate", "--server", url_of(running.port()),
                                            "-n",       "12",       "--temperature",
                                            "0.8",      "--seed",   "5"};
  const CliResult at_once = run_heddle(command, with_input("the dog\na cat\n"));
  ASSERT_EQ(at_once.exit_code, 0) << at_once.err;
  const CliResult slowly = run_command({"sh", "-c",
                                        fmt::format("(echo the dog; sleep 0.2; echo a cat) | {} {}",
                                                    kProgram, fmt::join(command, " "))});
  EXPECT_EQ(slowly.exit_code, 0) << slowly.err;
  EXPECT_EQ(slowly.out, at_once.out);
  const CliResult many = run_heddle(command, with_input([] {
                                      std::string lines;
                                      for (int i = 0; i < 257; ++i) lines += "a cat\n";
                                      return lines;
                                    }()));
  EXPECT_EQ(many.exit_code, 2) << many.err;
  EXPECT_EQ(many.out, "");
}

TEST(Remote, lines_that_the_model_cannot_take_are_named_or_skipped) {
  const serve::Running running;
  std::string lines = "a dog runs\n";
  for (int i = 0; i < 100; ++i) lines += "dog ";
  lines += "\ntwo men\n";
  const std::vector<std::string> command = {"translate", "--server", url_of(running.port())};
  const CliResult refused = run_heddle(command, with_input(lines));
  EXPECT_EQ(refused.exit_code, 3) << refused.err;
  EXPECT_TRUE(contains(refused.err, "line 2")) << refused.err;
  EXPECT_EQ(std::ranges::count(refused.out, '\n'), 1);
  std::vector<std::string> skipping = command;
  skipping.emplace_back("--skip-bad");
  const CliResult skipped = run_heddle(skipping, with_input(lines));
  EXPECT_EQ(skipped.exit_code, 0) << skipped.err;
  EXPECT_EQ(std::ranges::count(skipped.out, '\n'), 3);
  expect_same(running, "translate", "en-de", {"--truncate"}, lines);
  std::vector<std::string> cutting = command;
  cutting.emplace_back("--truncate");
  const CliResult cut = run_heddle(cutting, with_input(lines));
  EXPECT_TRUE(contains(cut.err, "1 of 3 texts were longer")) << cut.err;
}

TEST(Remote, keys_are_shown_from_a_file_or_the_environment) {
  const TempDir folder;
  const std::string keys = (folder / "keys").string(), key = (folder / "key").string();
  write_file(keys, "secret-key\n");
  write_file(key, "secret-key\n");
  ASSERT_EQ(::chmod(keys.c_str(), 0600), 0);
  serve::ServiceOptions options = serve::default_service();
  options.keys_path = keys;
  const serve::Running running(options);
  const std::vector<std::string> command = {"translate", "--server", url_of(running.port())};
  CliOptions input = with_input("a dog runs\n");
  const CliResult without = run_heddle(command, input);
  EXPECT_EQ(without.exit_code, 2) << without.err;
  EXPECT_TRUE(contains(without.err, "key is missing")) << without.err;
  std::vector<std::string> with_file = command;
  with_file.insert(with_file.end(), {"--key-file", key});
  EXPECT_EQ(run_heddle(with_file, input).exit_code, 0);
  input.environment["HEDDLE_KEY"] = "secret-key";
  EXPECT_EQ(run_heddle(command, input).exit_code, 0);
}

TEST(Remote, what_cannot_be_asked_is_said) {
  const serve::Running running;
  const std::string url = url_of(running.port());
  const std::vector<std::tuple<std::vector<std::string>, int, std::string>> cases = {
      {{"translate"}, 2, "model is required"},
      {{"translate", "--server", "https://x"}, 2, "http://HOST:PORT"},
      {{"translate", "--server", "http://x:99999"}, 2, "http://HOST:PORT"},
      {{"translate", "--server", url, "none"}, 2, "none"},
      {{"translate", "--server", url, "small"}, 2, "generation"},
      {{"translate", "--server", url, "--sample"}, 2, "--sample"},
      {{"translate", "--server", url, "--threads", "2"}, 2, "--threads"},
      {{"translate", "--server", url, "--n-best", "2", "--alignment"}, 2, "--alignment"},
      {{"translate", "--server", url, "--target-language", "fr"}, 3, "fr"},
      {{"translate", serve::model_folder() + "/en-de", "--key-file", "x"}, 2, "--server"},
      {{"translate", "--server", url, "--key-file", "/nowhere"}, 3, "/nowhere"},
      {{"generate", "--server", url, "--json"}, 2, "--json"},
      {{"generate", "--server", url, "--system", "be good"}, 2, "--system goes with --chat"},
      {{"generate", "--server", url, "--chat", "--echo"}, 2, "--echo"},
      {{"generate", "--server", url, "--chat", "--sample", "-p", "a", "-p", "b"}, 2, "one conv"},
      {{"generate", "--server", url, "--json-schema", "/nowhere"}, 3, "/nowhere"},
      {{"generate", "--server", url, "--json-schema", "x", "--stop", "e"}, 2, "--stop"},
      {{"generate", "--server", url, "-n", "-1"}, 2, "--max-new-tokens is -1"},
      {{"generate", "--server", url, "-n", "2000000000"}, 3, "max_tokens"}};
  for (const auto& [arguments, code, word] : cases) {
    const CliResult result = run_heddle(arguments, with_input("a dog runs\n"));
    EXPECT_EQ(result.exit_code, code) << word << ": " << result.err;
    EXPECT_TRUE(contains(result.err, word)) << word << ": " << result.err;
  }
}

// A server that answers as the test says.
class FakeServer {
 public:
  explicit FakeServer(serve::HttpHandler handler)
      : server_("127.0.0.1", 0, {}, std::move(handler)), thread_([this] { server_.run(); }) {}
  ~FakeServer() {
    server_.stop();
    thread_.join();
  }
  CliResult translate(std::vector<std::string> flags = {}) const {
    std::vector<std::string> words = {"translate", "--server", url_of(server_.port())};
    words.insert(words.end(), flags.begin(), flags.end());
    return run_heddle(words, with_input("a dog runs\na cat\n"));
  }

 private:
  serve::HttpServer server_;
  std::thread thread_;
};

TEST(Remote, a_server_that_has_no_room_is_asked_again_when_it_says) {
  std::atomic<int> asked = 0;
  const FakeServer server(
      [&](const serve::HttpRequest&, const std::shared_ptr<serve::Reply>& reply) {
        if (++asked < 3) {
          return reply->send({.status = 429,
                              .body = R"({"error": {"message": "the queue is full"}})",
                              .headers = {{"retry-after", "1"}, {"retry-after-ms", "200"}}});
        }
        reply->begin({.content_type = "text/event-stream"});
        for (const int i : {1, 0}) {
          reply->write(
              fmt::format("data: {{\"text\": \"{}\", \"index\": {}, \"final\": true}}\n\n", i, i));
        }
        reply->write("data: [DONE]\n\n");
        reply->end();
      });
  const auto begin = std::chrono::steady_clock::now();
  const CliResult result = server.translate();
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, "0\n1\n");
  EXPECT_TRUE(contains(result.err, "the queue is full")) << result.err;
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(400));
  asked = -1000;
  const CliResult impatient = server.translate({"--wait", "0.5"});
  EXPECT_EQ(impatient.exit_code, 6) << impatient.err;
  EXPECT_TRUE(contains(impatient.err, "the queue is full")) << impatient.err;
}

TEST(Remote, load_of_which_nothing_was_answered_is_a_failure) {
  serve::HttpServer server("127.0.0.1", 0, {}, [](const serve::HttpRequest&, const auto& reply) {
    reply->send({.status = 429, .body = "{}"});
  });
  std::thread thread([&] { server.run(); });
  const CliResult result = run_heddle(
      {"load", url_of(server.port()), "--clients", "1", "--seconds", "0.2"}, with_input("a dog\n"));
  server.stop();
  thread.join();
  EXPECT_EQ(result.exit_code, 6) << result.err;
  EXPECT_NE(result.out.find("p50 –"), std::string::npos) << result.out;
  EXPECT_NE(result.err.find("was answered: all were refused"), std::string::npos) << result.err;
}

TEST(Remote, servers_that_are_not_there_end_or_cut_their_answers_are_said) {
  const CliResult none =
      run_heddle({"translate", "--server", "http://127.0.0.1:1"}, with_input("a dog runs\n"));
  EXPECT_EQ(none.exit_code, 6) << none.err;
  EXPECT_TRUE(contains(none.err, "heddle serve")) << none.err;
  const FakeServer ending(
      [](const serve::HttpRequest&, const std::shared_ptr<serve::Reply>& reply) {
        reply->send({.status = 503, .body = R"({"error": {"message": "the server is ending"}})"});
      });
  const CliResult ended = ending.translate();
  EXPECT_EQ(ended.exit_code, 6) << ended.err;
  EXPECT_TRUE(contains(ended.err, "the server is ending")) << ended.err;
  // One event came, then an error in the stream's place; and one whose connection ends.
  const FakeServer failing(
      [](const serve::HttpRequest&, const std::shared_ptr<serve::Reply>& reply) {
        reply->begin({.content_type = "text/event-stream"});
        reply->write("data: {\"text\": \"eins\", \"index\": 0, \"final\": true}\n\n");
        reply->write("data: {\"error\": {\"message\": \"waited 30 s for its turn\"}}\n\n");
        reply->end();
      });
  const CliResult failed = failing.translate();
  EXPECT_EQ(failed.exit_code, 6) << failed.err;
  EXPECT_EQ(failed.out, "eins\n");
  EXPECT_TRUE(contains(failed.err, "waited 30 s")) << failed.err;
  // A reply that is let go before its end: the connection is cut.
  const FakeServer cutting(
      [](const serve::HttpRequest&, const std::shared_ptr<serve::Reply>& reply) {
        reply->begin({.content_type = "text/event-stream"});
        reply->write("data: {\"text\": \"eins\", \"index\": 0, \"final\": true}\n\n");
      });
  const CliResult cut = cutting.translate();
  EXPECT_EQ(cut.exit_code, 6) << cut.err;
  EXPECT_EQ(cut.out, "eins\n");
  EXPECT_TRUE(contains(cut.err, "cut")) << cut.err;
}

}  // namespace
}  // namespace heddle::testing
