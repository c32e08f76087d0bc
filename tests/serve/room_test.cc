// Room: what is too long, waits too long, or would hold more than its share.
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <thread>

#include "heddle/base/json/json.h"
#include "tests/serve/client.h"
#include "tests/serve/running.h"

namespace heddle::serve {
namespace {

// OpenAI's clients know it by its code.
TEST(Room, a_prompt_that_is_too_long_has_a_code_and_no_advice_about_members_there_are_not) {
  const Running running;
  std::string words, bytes(1 << 19, 'x');
  for (int i = 0; i < 100; ++i) words += "dog ";
  const auto chat = [](const std::string& text) {
    Json messages = Json::array();
    messages.push_back(Json::object({{"role", "user"}, {"content", text}}));
    return Json::object({{"messages", std::move(messages)}, {"max_tokens", 2}}).dump();
  };
  for (const std::string& text : {words, bytes}) {
    for (const auto& [path, body] :
         {std::pair{"/v1/completions", Json::object({{"prompt", text}}).dump()},
          std::pair{"/v1/chat/completions", chat(text)}}) {
      const Answer answer = post(running.port(), path, body);
      EXPECT_EQ(answer.status, 400) << path;
      const Json error = answer.json().at("error");
      EXPECT_EQ(error.get_string("code"), "context_length_exceeded") << answer.body;
      EXPECT_EQ(error.get_string("message").find("truncate"), std::string::npos) << answer.body;
    }
  }
}

// Else a few chats of a model with a long context would hold all that the server has room for.
TEST(Room, a_chat_that_names_no_length_holds_room_for_a_share) {
  ServiceOptions options = default_service();
  options.cache_rows = 16 * 5;
  const Running running(options);
  const auto tokens_of = [&](const std::string& more) {
    const Answer answer = post(running.port(), "/v1/chat/completions",
                               R"({"messages": [{"role": "user", "content": "a"}],
                                   "temperature": 0)" +
                                   more + "}");
    EXPECT_EQ(answer.status, 200) << answer.body;
    return answer.json().at("usage").get_int("completion_tokens");
  };
  EXPECT_LE(tokens_of(""), 5);
  const int64_t asked = tokens_of(R"(, "max_tokens": 9)");
  EXPECT_GT(asked, 5);
  EXPECT_LE(asked, 9);
}

// Vectors, classes, images and maps, which are no jobs of a scheduler.
TEST(Room, a_pass_between_steps_waits_no_longer_than_others) {
  ServiceOptions options = default_service();
  options.queue_seconds = 0;
  options.models.push_back(testing::text_model("classify"));
  Running running(options);
  for (const auto& [path, body] :
       {std::pair{"/v1/attention", R"({"text": "the dog runs", "model": "small"})"},
        std::pair{"/v1/classify", R"({"text": "the fox"})"},
        std::pair{"/v1/embeddings", R"({"input": "the fox"})"}}) {
    const Answer answer = post(running.port(), path, body);
    EXPECT_EQ(answer.status, 503) << path;
    EXPECT_EQ(answer.json().at("error").get_string("code"), "timeout") << answer.body;
    EXPECT_NE(answer.head.find("retry-after"), std::string::npos) << answer.head;
  }
  EXPECT_EQ(running.taken_at_rest(), 0);
}

TEST(Room, a_stream_that_waits_too_long_is_refused_as_others_are) {
  ServiceOptions options = default_service();
  options.queue_seconds = 0;
  const Running running(options);
  for (const auto& [path, body] :
       {std::pair{"/v1/completions", R"({"prompt": "the dog", "stream": true})"},
        std::pair{"/v1/translations", R"({"text": "a dog", "stream": true})"}}) {
    const Answer answer = post(running.port(), path, body);
    EXPECT_EQ(answer.status, 503) << path << answer.body;
    EXPECT_NE(answer.head.find("retry-after: "), std::string::npos) << answer.head;
    EXPECT_EQ(answer.json().at("error").get_string("code"), "timeout") << answer.body;
  }
}

// Else clients of a slow server would come back long before there is room.
TEST(Room, the_time_until_there_is_room_counts_all_in_which_there_was_work) {
  Service service(default_service());
  ASSERT_TRUE(service.budget().take(1200));
  std::this_thread::sleep_for(std::chrono::milliseconds(1200));
  service.worked_off(1200);
  const double first = service.seconds_for(1000);
  EXPECT_GT(first, 0.9);
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));  // idle
  ASSERT_TRUE(service.budget().take(1200));
  service.worked_off(1200);
  EXPECT_LT(service.seconds_for(1000), first);
}

TEST(Room, models_that_are_served_no_longer_are_not_among_the_metrics) {
  ServerMetrics metrics;
  const std::pair<std::string, std::string> before[] = {{"m", "gpt2"}, {"n", "bert"}};
  metrics.models(before);
  metrics.models(std::array{std::pair<std::string, std::string>("m", "qwen3")});
  const std::string text = metrics.text({});
  EXPECT_NE(text.find(R"(heddle_model_info{name="m",type="qwen3"} 1)"), std::string::npos) << text;
  EXPECT_EQ(text.find("gpt2"), std::string::npos) << text;
  EXPECT_EQ(text.find("bert"), std::string::npos) << text;
}

}  // namespace
}  // namespace heddle::serve
