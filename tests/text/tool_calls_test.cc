// Calls of tools in texts, whatever parts these come in.
#include "heddle/text/chat/tool_calls.h"

#include <gtest/gtest.h>

#include "heddle/base/error.h"
#include "tests/base/temporary.h"

namespace heddle {
namespace {

constexpr ToolCallForm kForms[] = {ToolCallForm::tagged, ToolCallForm::listed, ToolCallForm::bare};

// "text|name(arguments)|text": what is read of a text that comes in parts of so many bytes.
std::string read(ToolCallForm form, const std::string& text, size_t part, bool is_open = false,
                 size_t most = 100) {
  ToolCallReader reader(form, {"add", "now"}, is_open, most);
  std::string all;
  const auto take = [&] {
    all += reader.take_text();
    for (const ToolCall& call : reader.take_calls()) {
      all += "|" + call.name + "(" + call.arguments + ")|";
    }
  };
  for (size_t at = 0; at < text.size(); at += part) reader.read(text.substr(at, part)), take();
  reader.end(), take();
  return all;
}

void expect_read(ToolCallForm form, const std::string& text, const std::string& wanted,
                 bool is_open = false, size_t most = 100) {
  for (const size_t part : {size_t{1}, size_t{3}, size_t{7}, text.size() + 1}) {
    EXPECT_EQ(read(form, text, part, is_open, most), wanted) << text << " by " << part;
  }
}

TEST(ToolCalls, are_read_in_the_form_of_each_family) {
  const std::string add = R"(|add({"a": 1, "b": "} \" ]"})|)", now = "|now({})|";
  expect_read(ToolCallForm::tagged,
              "Well.\n<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": 1, \"b\": \"} \\\" "
              "]\"}}\n</tool_call>\n<tool_call>\n{\"name\": \"now\", \"arguments\": "
              "{}}\n</tool_call>",
              "Well." + add + now);
  expect_read(ToolCallForm::listed,
              R"([TOOL_CALLS] [{"name": "add", "arguments": {"a": 1, "b": "} \" ]"}}, )"
              R"({"name": "now", "arguments": {}, "id": "abcdefghi"}])",
              add + now);
  for (const std::string mark : {"", "<|python_tag|>", "\n "}) {
    expect_read(ToolCallForm::bare,
                mark + R"({"name": "add", "parameters": {"a": 1, "b": "} \" ]"}}; )"
                       R"({"type": "function", "name": "now", "parameters": {}})",
                add + now);
  }
}

TEST(ToolCalls, what_is_none_stays_text_to_the_byte) {
  for (const ToolCallForm form : kForms) {
    for (const std::string text :
         {"", "a", "a {\"name\": \"add\", \"arguments\": {}} b", "{\"a\": 1} b",
          "{\"name\": \"other\", \"arguments\": {}}", "{\"name\": \"add\", \"arguments\": [1]}",
          "<tool_call>{\"name\": 1}</tool_call>", "<tool_call>\n{]", "<tool_", "[TOOL_CALLS] x",
          "[TOOL_CALLS] {\"name\": \"none\"}]", "<|python_tag|>print(1)", "{\"name\": \"add\"", "]",
          "<tool_call> {\"name\": \"add\", \"arguments\": {\"a\": 1}", "\xC3\xA9 <", " a \n b"}) {
      expect_read(form, text, text);
    }
  }
}

TEST(ToolCalls, an_answer_keeps_an_end_that_might_have_begun_or_ended_a_call) {
  for (const ToolCallForm form : kForms) {
    for (const std::string text : {"<", "std::vector<", "<tool_call>", "a <tool_call>",
                                   "<tool_call>\n", "<tool_call></tool", "</tool_call"}) {
      expect_read(form, text, text);
    }
  }
}

TEST(ToolCalls, what_ends_a_call_is_dropped_behind_one_alone) {
  const std::string call = "<tool_call>\n{\"name\": \"now\", \"arguments\": {}}";
  const auto reads = [](const std::string& text, const std::string& wanted) {
    EXPECT_EQ(read(ToolCallForm::tagged, text, 1), wanted) << text;
  };
  reads(call + "\n</tool_c", "|now({})|");
  reads(call + "</tool_call> std::vector<", "|now({})| std::vector<");
  reads(call + "</tool_call>\n<tool_call>", "|now({})|\n<tool_call>");
  expect_read(ToolCallForm::tagged, "</tool_call", "</tool_call", true);
}

TEST(ToolCalls, behind_an_opening_and_up_to_a_number_of_them) {
  const std::string call = R"({"name": "now", "arguments": {}})";
  expect_read(ToolCallForm::tagged, call, "|now({})|", true);
  expect_read(ToolCallForm::listed, "[" + call + "]", "|now({})|", true);
  expect_read(ToolCallForm::tagged,
              "<tool_call>" + call + "</tool_call><tool_call>" + call + "</tool_call>", "|now({})|",
              false, 1);
}

TEST(ToolCalls, tools_must_be_functions_with_names) {
  for (const auto& [tools, part] : std::vector<std::pair<const char*, const char*>>{
           {"{}", "tools"},
           {"[1]", "[0]"},
           {R"([{"type": "web_search"}])", "web_search"},
           {R"([{"type": "function", "function": {"name": "a b"}}])", "a b"},
           {R"([{"type": "function", "function": {"name": "a"}},
                {"type": "function", "function": {"name": "a"}}])",
            "two"}}) {
    expect_error(ErrorKind::data, {part}, [&] { tool_names(Json::parse(tools)); });
  }
}

TEST(ToolCalls, schemas_keep_the_definitions_of_each_tool_apart) {
  const Json tools = Json::parse(R"([
      {"type": "function", "function": {"name": "a", "parameters": {"type": "object",
        "properties": {"x": {"$ref": "#/$defs/T"}}, "$defs": {"T": {"type": "integer"}}}}},
      {"type": "function", "function": {"name": "b", "parameters": {"type": "object",
        "properties": {"x": {"$ref": "#/$defs/T"}}, "$defs": {"T": {"type": "string"}}}}}])");
  const Json schema = tool_call_schema(tools, "", ToolCallForm::bare);
  EXPECT_EQ(schema.at("$defs").dump(),
            R"({"tool0.T": {"type": "integer"}, "tool1.T": {"type": "string"}})");
  EXPECT_EQ(schema.at("anyOf").size(), 2u);
  EXPECT_EQ(schema.at("anyOf").as_array()[1].at("properties").at("parameters").dump(),
            R"({"type": "object", "properties": {"x": {"$ref": "#/$defs/tool1.T"}}})");
  EXPECT_EQ(tool_call_schema(tools, "b", ToolCallForm::tagged).at("anyOf").size(), 1u);
}

}  // namespace
}  // namespace heddle
