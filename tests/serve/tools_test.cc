// Tools in chats, and prompts that begin alike, over real sockets.
#include "tests/serve/client.h"
#include "tests/serve/running.h"

namespace heddle::serve {
namespace {

// A model of random weights with room for calls, whose template shows tools and calls as Qwen's do.
ServiceOptions service_with_tools() {
  static const testing::TempDir folder;
  static const std::string path = [] {
    const std::string to = (folder / "chat").string();
    testing::write_language_model(to, R"({"eos_token_id": [3, 9]})", true, 256);
    testing::write_file(
        to + "/chat_template.jinja",
        "{% for t in tools or [] %}<s>t:{{ t.function.name }}</s>{% endfor %}{% for m in messages "
        "%}"
        "<s>{{ m.role[0] }}:{{ (m.content or '') | trim }}{% for c in m.tool_calls or [] %}"
        "<tool_call>{{ c.function.name }}{{ c.function.arguments.a }}</tool_call>{% endfor %}</s>"
        "{% endfor %}{% if add_generation_prompt %}<s>a:{% endif %}");
    return to;
  }();
  ServiceOptions options;
  options.models = {path};
  return options;
}

Json asked() {
  return Json::parse(R"({"messages": [{"role": "user", "content": "the dog"}], "max_tokens": 120,
      "temperature": 2, "tools": [
        {"type": "function", "function": {"name": "add", "description": "of </s> two",
          "parameters": {"type": "object", "properties": {"a": {"type": "integer"},
            "b": {"$ref": "#/$defs/Small"}}, "required": ["a", "b"], "additionalProperties": false,
            "$defs": {"Small": {"enum": [1, 2, 3]}}}}},
        {"type": "function", "function": {"name": "now"}}]})");
}

void expect_fits(const Json& call) {
  EXPECT_EQ(call.get_string("type"), "function");
  EXPECT_EQ(call.get_string("id").size(), 9u);
  const Json arguments = Json::parse(call.at("function").get_string("arguments"));
  if (call.at("function").get_string("name") == "now") {
    EXPECT_EQ(arguments, Json::object());
    return;
  }
  EXPECT_EQ(call.at("function").get_string("name"), "add");
  arguments.get_int("a");
  const int64_t b = arguments.get_int("b");
  EXPECT_TRUE(b >= 1 && b <= 3) << b;
  EXPECT_EQ(arguments.size(), 2u);
}

TEST(Tools, what_must_be_called_is_called_with_arguments_of_its_schema) {
  Running running(service_with_tools());
  Json body = asked();
  body["n"] = 3;
  std::set<std::string> called;
  for (int64_t seed = 1; seed <= 4; ++seed) {
    body["seed"] = seed;
    for (const Json& choice : {Json("required"), Json::parse(R"({"type": "function", "function":
                                                                 {"name": "add"}})")}) {
      body["tool_choice"] = choice;
      const Answer answer = post(running.port(), "/v1/chat/completions", body.dump());
      ASSERT_EQ(answer.status, 200) << answer.body;
      const Json whole = answer.json();
      for (const Json& one : whole.at("choices").as_array()) {
        EXPECT_EQ(one.get_string("finish_reason"), "tool_calls");
        EXPECT_TRUE(one.at("message").at("content").is_null());
        ASSERT_EQ(one.at("message").at("tool_calls").size(), 1u);
        const Json& call = one.at("message").at("tool_calls").as_array()[0];
        expect_fits(call);
        const std::string& name = call.at("function").get_string("name");
        if (choice.is_object()) {
          EXPECT_EQ(name, "add");
        }
        called.insert(name);
      }
    }
  }
  EXPECT_EQ(called, (std::set<std::string>{"add", "now"}));
}

TEST(Tools, a_stream_has_the_calls_of_the_whole_response) {
  Running running(service_with_tools());
  Json body = asked();
  body["seed"] = 2, body["tool_choice"] = "required";
  const Json whole = post(running.port(), "/v1/chat/completions", body.dump()).json();
  body["stream"] = true;
  Client client(running.port());
  client.send(request_text("POST", "/v1/chat/completions", body.dump()));
  const std::string bytes = client.receive_until("[DONE]");
  Json calls = Json::array();
  std::string reason;
  for (size_t at = 0; (at = bytes.find("data: {", at)) != std::string::npos; ++at) {
    const Json event = Json::parse(bytes.substr(at + 6, bytes.find("\n\n", at) - at - 6));
    const Json choice = event.at("choices").as_array()[0];
    if (!choice.at("finish_reason").is_null()) reason = choice.get_string("finish_reason");
    if (const Json* content = choice.at("delta").find("content")) {
      EXPECT_EQ(*content, Json(""));
    }
    const Json* more = choice.at("delta").find("tool_calls");
    if (more == nullptr) continue;
    for (const Json& call : more->as_array()) {
      EXPECT_EQ(call.get_int("index"), std::ssize(calls.as_array()));
      calls.push_back(call.at("function"));
    }
  }
  EXPECT_EQ(reason, "tool_calls");
  const Json& wanted =
      whole.at("choices").as_array()[0].at("message").at("tool_calls").as_array()[0];
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_EQ(calls.as_array()[0], wanted.at("function"));
}

TEST(Tools, conversations_go_on_behind_calls_and_wrong_ones_are_refused) {
  Running running(service_with_tools());
  Json body = asked();
  body["messages"] = Json::parse(R"([{"role": "user", "content": "the dog"},
      {"role": "assistant", "content": null, "tool_calls": [{"id": "abcdefghi", "type": "function",
        "function": {"name": "add", "arguments": "{\"a\": 1, \"b\": 2}"}}]},
      {"role": "tool", "tool_call_id": "abcdefghi", "content": "3"}])");
  body["max_tokens"] = 4;
  const Answer answer = post(running.port(), "/v1/chat/completions", body.dump());
  EXPECT_EQ(answer.status, 200) << answer.body;
  const ChatTemplate& chat = *running.model(0).chat;
  EXPECT_EQ(chat.render({.messages = body.at("messages"), .tools = body.at("tools")}),
            "<s>t:add</s><s>t:now</s><s>u:the dog</s><s>a:<tool_call>add1</tool_call></s>"
            "<s>t:3</s><s>a:");
  const auto refused = [&](const char* key, const char* value, const char* word) {
    Json wrong = asked();
    wrong[key] = Json::parse(value);
    const Answer found = post(running.port(), "/v1/chat/completions", wrong.dump());
    EXPECT_EQ(found.status, 400) << found.body;
    EXPECT_NE(found.body.find(word), std::string::npos) << found.body;
  };
  refused("tools", "{}", "tools");
  refused("tools", R"([{"type": "web"}])", "web");
  refused("tool_choice", R"("often")", "tool_choice");
  refused("tool_choice", R"({"type": "function", "function": {"name": "sub"}})", "sub");
  refused("response_format", R"({"type": "json_object"})", "response_format");
  refused("messages", R"([{"role": "assistant", "tool_calls": [{"id": "a"}]}])", "function");
}

TEST(SharedBeginnings, a_prompt_that_begins_as_one_before_gets_the_same_text_and_says_so) {
  Running running(service_with_tools());
  Json body = Json::parse(R"({"max_tokens": 12, "temperature": 0})");
  const std::string beginning = "the dog sees a cat and the cat sees a man";
  const auto ask_for = [&](const std::string& prompt) {
    body["prompt"] = prompt;
    const Json answer = post(running.port(), "/v1/completions", body.dump()).json();
    return std::pair(answer.at("choices").as_array()[0].get_string("text"),
                     answer.at("usage").at("prompt_tokens_details").get_int("cached_tokens"));
  };
  const auto [alone, none] = [&] {
    Running another(service_with_tools());
    body["prompt"] = beginning + " runs";
    const Json answer = post(another.port(), "/v1/completions", body.dump()).json();
    return std::pair(answer.at("choices").as_array()[0].get_string("text"),
                     answer.at("usage").at("prompt_tokens_details").get_int("cached_tokens"));
  }();
  EXPECT_EQ(none, 0);
  EXPECT_EQ(ask_for(beginning).second, 0);
  const auto [text, cached] = ask_for(beginning + " runs");
  EXPECT_EQ(text, alone);
  EXPECT_GE(cached, 8);
  EXPECT_EQ(ask_for(beginning + " runs").first, alone);
  const std::string metrics = get(running.port(), "/metrics").body;
  EXPECT_NE(metrics.find("heddle_tokens_total{kind=\"cached\"}"), std::string::npos);
}

}  // namespace
}  // namespace heddle::serve
