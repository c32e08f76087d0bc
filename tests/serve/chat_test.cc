// Conversations, log probabilities and JSON over real sockets: what comes is what the library says.
#include "heddle/base/utf8.h"
#include "heddle/infer/decoding/generate.h"
#include "heddle/infer/decoding/text_stream.h"
#include "tests/serve/client.h"
#include "tests/serve/running.h"

namespace heddle::serve {
namespace {

// What the events of a stream say, one behind another.
std::vector<Json> events_of(int port, const std::string& path, const Json& body) {
  Client client(port);
  client.send(request_text("POST", path, body.dump()));
  const std::string bytes = client.receive_until("[DONE]");
  EXPECT_NE(bytes.find("data: [DONE]\n\n"), std::string::npos) << bytes;
  std::vector<Json> events;
  for (size_t at = 0; (at = bytes.find("data: {", at)) != std::string::npos; ++at) {
    events.push_back(Json::parse(bytes.substr(at + 6, bytes.find("\n\n", at) - at - 6)));
  }
  return events;
}

TEST(Chat, a_chat_goes_on_from_what_its_template_makes) {
  Running running;
  const ServedModel& served = running.model(1);
  const LoadedModel& model = served.loaded();
  const Json messages = Json::parse(
      R"([{"role": "system", "content": "be </s> good"}, {"role": "user", "content": "the dog"}])");
  // The template's names are tokens, that in the message is none.
  const Tokenizer& t = *model.tokenizer;
  std::vector<int32_t> wanted;
  const auto add = [&](const std::string& text) {
    for (const int32_t id : t.encode(text)) wanted.push_back(id);
  };
  wanted.push_back(t.bos_id()), add("s:be </s> good"), wanted.push_back(t.eos_id());
  wanted.push_back(t.bos_id()), add("u:the dog"), wanted.push_back(t.eos_id());
  wanted.push_back(t.bos_id()), add("a:");
  EXPECT_EQ(served.chat->encode(t, {.messages = messages}), wanted);

  GenerateOptions options{.search = *model.generation, .slides = false};
  options.search.max_new_tokens = 6;
  options.search.samples = true, options.search.temperature = 2, options.search.top_p = 1;
  const std::vector<std::vector<int32_t>> prompts = {wanted};
  std::vector<int32_t> ids;
  for (int64_t seed = 1; ids.size() < 3; ++seed) {  // one that does not end at once
    options.search.seed = seed;
    ids = generate_ids(model.tokens(), prompts, options)[0][0].ids;
  }
  TextStream text(t, wanted);
  text.read(ids);
  Json body = Json::object({{"messages", messages}, {"max_tokens", 6}, {"temperature", 2}});
  body["seed"] = *options.search.seed;
  const Answer answer = post(running.port(), "/v1/chat/completions", body.dump());
  ASSERT_EQ(answer.status, 200) << answer.body;
  const Json choice = answer.json().at("choices").as_array().at(0);
  EXPECT_EQ(choice.at("message").get_string("role"), "assistant");
  EXPECT_EQ(choice.at("message").get_string("content"), text.text());
  EXPECT_EQ(answer.json().at("usage").get_int("prompt_tokens"), std::ssize(wanted));

  body["stream"] = true;
  const std::vector<Json> events = events_of(running.port(), "/v1/chat/completions", body);
  ASSERT_GE(events.size(), 3u);
  std::string streamed;
  for (size_t i = 0; i < events.size(); ++i) {
    const Json& part = events[i].at("choices").as_array().at(0);
    EXPECT_EQ(part.at("delta").contains("role"), i == 0);
    EXPECT_EQ(part.at("finish_reason").is_null(), i + 1 < events.size());
    if (const Json* more = part.at("delta").find("content")) streamed += more->as_string();
  }
  EXPECT_EQ(streamed, text.text());
  EXPECT_EQ(events.back().at("choices").as_array()[0].at("delta"), Json::object());
}

TEST(Chat, log_probabilities_are_those_of_the_search_and_come_with_their_text) {
  Running running;
  const LoadedModel& model = running.model(1).loaded();
  int64_t cut = 0;
  const std::vector<std::vector<int32_t>> prompts = {
      prompt_ids(model, "the dog", "prompt", {}, cut)};
  GenerateOptions options{.search = *model.generation, .slides = false, .scores = true};
  options.search.max_new_tokens = 6;
  const Continuation wanted = generate_ids(model.tokens(), prompts, options)[0][0];
  const auto likely = likely_next_tokens(model.tokens(), prompts, 3, options)[0];
  Json body =
      Json::parse(R"({"prompt": "the dog", "max_tokens": 6, "temperature": 0, "logprobs": 3})");
  const Json whole = post(running.port(), "/v1/completions", body.dump()).json();
  const Json found = whole.at("choices").as_array().at(0).at("logprobs");
  ASSERT_EQ(found.at("tokens").size(), wanted.ids.size());
  std::string joined;
  for (size_t i = 0; i < wanted.ids.size(); ++i) {
    EXPECT_EQ(static_cast<float>(found.at("token_logprobs").as_array()[i].as_double()),
              wanted.log_ps[i]);
    // Parts of characters look alike, and are one entry.
    EXPECT_GE(found.at("top_logprobs").as_array()[i].size(), 1u);
    EXPECT_LE(found.at("top_logprobs").as_array()[i].size(), 3u);
    EXPECT_EQ(found.at("text_offset").as_array()[i].as_int(), count_characters(joined));
    joined += found.at("tokens").as_array()[i].as_string();
  }
  const auto& first = found.at("top_logprobs").as_array()[0].as_object()[0];
  EXPECT_EQ(static_cast<float>(first.second.as_double()), likely[0].log_p);
  body["stream"] = true;
  std::vector<Json> tokens, offsets;
  for (const Json& event : events_of(running.port(), "/v1/completions", body)) {
    const Json& part = event.at("choices").as_array().at(0).at("logprobs");
    if (part.is_null()) continue;
    for (const Json& token : part.at("tokens").as_array()) tokens.push_back(token);
    for (const Json& offset : part.at("text_offset").as_array()) offsets.push_back(offset);
  }
  EXPECT_EQ(Json(tokens), found.at("tokens"));
  EXPECT_EQ(Json(offsets), found.at("text_offset"));
  body = Json::parse(R"({"messages": [{"role": "user", "content": "the dog"}], "max_tokens": 4,
                         "seed": 3, "n": 2, "logprobs": true, "top_logprobs": 2})");
  const Json chat = post(running.port(), "/v1/chat/completions", body.dump()).json();
  for (const Json& choice : chat.at("choices").as_array()) {
    for (const Json& token : choice.at("logprobs").at("content").as_array()) {
      EXPECT_EQ(token.at("top_logprobs").size(), 2u);
      EXPECT_LE(token.get_double("logprob"),
                token.at("top_logprobs").as_array()[0].get_double("logprob"));
      EXPECT_GE(token.at("bytes").size(), 1u);
    }
  }
}

// Bytes of a character are tokens of their own, and special tokens are no text.
TEST(Chat, offsets_of_tokens_are_their_places_in_the_text) {
  const Running running;
  size_t special = 0;
  for (int seed = 1; seed <= 20; ++seed) {
    const Json body = Json::object({{"prompt", "the dog"},
                                    {"max_tokens", 16},
                                    {"logprobs", 0},
                                    {"temperature", 5},
                                    {"seed", seed}});
    const Json choice =
        post(running.port(), "/v1/completions", body.dump()).json().at("choices").as_array().at(0);
    const std::string text = choice.get_string("text");
    const Json& tokens = choice.at("logprobs").at("tokens");
    for (size_t i = 0; i < tokens.size(); ++i) {
      const std::string token = tokens.as_array()[i].as_string();
      const int64_t offset = choice.at("logprobs").at("text_offset").as_array()[i].as_int();
      ASSERT_LE(offset, count_characters(text));
      if (token.find(kUnknownCharacter) != token.npos || token.starts_with("<")) {
        ++special;
        continue;
      }
      size_t at = 0;
      for (int64_t n = 0; n < offset; ++n) static_cast<void>(next_code_point(text, at));
      EXPECT_TRUE(text.substr(at).starts_with(token)) << seed << " " << i << " " << choice.dump();
    }
  }
  EXPECT_GT(special, 0u);
}

TEST(Chat, json_comes_where_it_is_asked_for) {
  Running running;
  Json body = Json::parse(
      R"({"messages": [{"role": "user", "content": "the dog"}], "max_tokens": 24, "n": 4, "seed": 2,
          "response_format": {"type": "json_schema", "json_schema": {"name": "x", "strict": true,
          "schema": {"type": "object", "properties": {"a": {"enum": ["x", "y"]}, "b": {"type":
          "integer"}}, "required": ["a"], "additionalProperties": false}}}})");
  const Answer answer = post(running.port(), "/v1/chat/completions", body.dump());
  ASSERT_EQ(answer.status, 200) << answer.body;
  const Json whole = answer.json();
  for (const Json& choice : whole.at("choices").as_array()) {
    const Json found = Json::parse(choice.at("message").get_string("content"));
    EXPECT_TRUE(found.get_string("a") == "x" || found.get_string("a") == "y");
    if (found.contains("b")) found.get_int("b");
  }
  body["response_format"] = Json::parse(R"({"type": "json_object"})");
  body["stream"] = true;
  std::vector<std::string> texts(4);
  for (const Json& event : events_of(running.port(), "/v1/chat/completions", body)) {
    const Json& part = event.at("choices").as_array().at(0);
    if (const Json* more = part.at("delta").find("content")) {
      texts[static_cast<size_t>(part.get_int("index"))] += more->as_string();
    }
  }
  for (const std::string& text : texts) EXPECT_TRUE(Json::parse(text).is_object()) << text;
  const auto refused = [&](const char* format, const char* word) {
    body["response_format"] = Json::parse(format);
    const Answer wrong = post(running.port(), "/v1/chat/completions", body.dump());
    EXPECT_EQ(wrong.status, 400);
    EXPECT_NE(wrong.body.find(word), std::string::npos) << wrong.body;
  };
  refused(R"({"type": "grammar"})", "grammar");
  refused(R"({"type": "json_schema"})", "schema");
  refused(
      R"({"type": "json_schema", "json_schema": {"schema": {"type": "string", "format": "x"}}})",
      "format");
  refused(
      R"({"type": "json_schema", "json_schema": {"schema": {"const": "0123456789012345678901234"}}})",
      "max_tokens");
}

}  // namespace
}  // namespace heddle::serve
