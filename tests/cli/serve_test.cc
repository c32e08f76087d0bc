// The server as a program: it listens, answers, and ends by a signal with nothing lost.
#include <sys/un.h>

#include <atomic>
#include <csignal>
#include <cstring>
#include <thread>

#include "tests/cli/model_fixture.h"
#include "tests/serve/client.h"
#include "tests/support/wait.h"

namespace heddle::testing {
namespace {

using Serve = ModelFixture;

// A port that was free a moment ago.
int free_port() {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in at = {};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(at);
  EXPECT_EQ(::bind(socket, reinterpret_cast<const sockaddr*>(&at), size), 0);
  EXPECT_EQ(::getsockname(socket, reinterpret_cast<sockaddr*>(&at), &size), 0);
  ::close(socket);
  return ntohs(at.sin_port);
}

TEST_F(Serve, answers_as_translate_does_and_ends_by_a_signal) {
  const CliResult translated = run_heddle({"translate", model()}, with_input("a dog runs\n"));
  ASSERT_EQ(translated.exit_code, 0) << translated.err;
  const int port = free_port();
  CliOptions options;
  std::atomic<bool> is_over = false;
  options.signal = SIGTERM, options.signal_when = [&](const CliResult&) { return is_over.load(); };
  CliResult served;
  std::thread server([&] {
    served = run_heddle({"serve",
                         "en-de=" + model(),
                         "--port",
                         std::to_string(port),
                         "--max-header",
                         "2000",
                         "--max-header-fields",
                         "50",
                         "--max-depth",
                         "9",
                         "--max-unread",
                         "70000",
                         "--header-seconds",
                         "6",
                         "--body-seconds",
                         "7",
                         "--idle-seconds",
                         "8",
                         "--write-seconds",
                         "11"},
                        options);
  });
  serve::Answer answer;
  EXPECT_TRUE(comes_true([&] {
    if (!serve::can_connect(port)) return false;
    answer =
        serve::post(port, "/translate", R"({"q": "a dog runs", "source": "en", "target": "de"})");
    return answer.status == 200;
  }));
  EXPECT_EQ(answer.json().get_string("translatedText") + "\n", translated.out);
  EXPECT_NE(serve::get(port, "/").body.find("/v1/completions"), std::string::npos);
  is_over = true;
  server.join();
  EXPECT_EQ(served.exit_code, 128 + SIGTERM) << served.err;
  EXPECT_TRUE(contains(served.err, "nothing was lost")) << served.err;
  for (const char* limit :
       {"limits: ", "header 2000 bytes, 50 fields", "9 levels", "unread output 70000 bytes",
        "header 6 s, body 7 s, idle 8 s, write 11 s"}) {
    EXPECT_TRUE(contains(served.err, limit)) << limit << " is not in " << served.err;
  }
}

// As systemd starts it: a socket that hears when the server listens, and when it ends.
TEST_F(Serve, the_supervisor_is_told) {
  const TempDir folder;
  const std::string path = (folder / "notify").string();
  const int socket = ::socket(AF_UNIX, SOCK_DGRAM, 0);
  sockaddr_un at = {};
  at.sun_family = AF_UNIX;
  std::strncpy(at.sun_path, path.c_str(), sizeof(at.sun_path) - 1);
  ASSERT_EQ(::bind(socket, reinterpret_cast<const sockaddr*>(&at), sizeof(at)), 0);
  CliOptions options;
  options.environment["NOTIFY_SOCKET"] = path;
  std::string heard;
  const auto listen = [&] {
    char bytes[64] = {};
    const auto n = ::recv(socket, bytes, sizeof(bytes), MSG_DONTWAIT);
    if (n > 0) heard += std::string(bytes, static_cast<size_t>(n)) + " ";
    return n > 0;
  };
  options.signal = SIGTERM, options.signal_when = [&](const CliResult&) { return listen(); };
  EXPECT_EQ(run_heddle({"serve", model(), "--port", "0"}, options).exit_code, 128 + SIGTERM);
  listen();
  ::close(socket);
  EXPECT_EQ(heard, "READY=1 STOPPING=1 ");
}

TEST_F(Serve, what_cannot_be_served_is_said) {
  const std::vector<std::tuple<std::vector<std::string>, int, std::string>> cases = {
      {{model(), model()}, 2, "NAME=FOLDER"},
      {{"=" + model()}, 2, "name"},
      {{"/nowhere"}, 3, "/nowhere"},
      {{model(), "--port", "70000"}, 2, "--port"},
      {{model(), "--host", "nowhere"}, 2, "--host"},
      {{model(), "--cache-rows", "0"}, 2, "--cache-rows"},
      {{model(), "--max-beam", "0"}, 2, "--max-beam"},
      {{model(), "--max-header", "100"}, 2, "--max-header"},
      {{model(), "--max-header-fields", "0"}, 2, "--max-header-fields"},
      {{model(), "--max-depth", "201"}, 2, "--max-depth"},
      {{model(), "--max-unread", "0"}, 2, "--max-unread"},
      {{model(), "--header-seconds", "0"}, 2, "--header-seconds"},
      {{model(), "--body-seconds", "0"}, 2, "--body-seconds"},
      {{model(), "--idle-seconds", "0"}, 2, "--idle-seconds"},
      {{model(), "--write-seconds", "1000000001"}, 2, "--write-seconds"},
      {{model(), "--keys", "/nowhere"}, 3, "/nowhere"},
      {{}, 2, "model"}};
  for (const auto& [arguments, code, word] : cases) {
    std::vector<std::string> words = {"serve"};
    if (word != "--port") words.insert(words.end(), {"--port", "0"});  // models come behind it
    words.insert(words.end(), arguments.begin(), arguments.end());
    const CliResult result = run_heddle(words);
    EXPECT_EQ(result.exit_code, code) << word << ": " << result.err;
    EXPECT_TRUE(contains(result.err, word)) << word << ": " << result.err;
  }
}

}  // namespace
}  // namespace heddle::testing
