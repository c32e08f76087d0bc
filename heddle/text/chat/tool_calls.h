// Calls of tools in what a model writes, in the form that its chat template shows it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "heddle/base/json/json.h"

namespace heddle {

/// How models write a call.
enum class ToolCallForm : uint8_t {
  tagged,  ///< <tool_call>{"name": .., "arguments": {..}}</tool_call>, any number: Hermes, Qwen
  listed,  ///< [TOOL_CALLS] [{"name": .., "arguments": {..}}, ..]: Mistral
  bare     ///< {"name": .., "parameters": {..}}, behind <|python_tag|> or alone: Llama 3.1
};
/// By the marks in a template; bare where it has none of them.
ToolCallForm tool_call_form(std::string_view source);

struct ToolCall {
  std::string name;
  std::string arguments;  ///< a JSON object, as text
};

/// Names of the functions in `tools` as OpenAI's clients send them: [{"type": "function",
/// "function": {"name", "description", "parameters"}}]. Errors: data for what is no such list.
std::vector<std::string> tool_names(const Json& tools);

/// The schema of a text that is one call, of `name` or, where that is "", of any of the tools.
Json tool_call_schema(const Json& tools, const std::string& name, ToolCallForm form);
/// What the template's model writes before such a text: "<tool_call>\n".
std::string tool_call_opening(ToolCallForm form);

/// Tells calls from other text while it comes. What looks like a call but is none, or is one of a
/// tool that there is not, stays text.
class ToolCallReader {
 public:
  /// is_open: tool_call_opening() was written before; most: calls behind which all else is dropped
  ToolCallReader(ToolCallForm form, std::vector<std::string> names, bool is_open, size_t most);

  /// Takes what has come since.
  void read(std::string_view text);
  /// No more comes: what might have become a call is text.
  void end();
  /// Text that is certainly no call, since the last time.
  std::string take_text() { return std::exchange(text_, {}); }
  /// Calls that are whole, since the last time.
  std::vector<ToolCall> take_calls() { return std::exchange(calls_, {}); }
  size_t calls() const { return count_; }

 private:
  bool step();
  bool take_object();
  void pass_text(size_t bytes);

  const ToolCallForm form_;
  const std::vector<std::string> names_;
  const size_t most_;
  bool is_within_;          // a call is expected, or what ends or parts them
  bool has_begun_ = false;  // text that is no white space came
  std::string waiting_;     // came, and is neither text nor call yet
  std::string opened_;      // marks before waiting_, which are text if no call comes
  std::string text_;
  std::vector<ToolCall> calls_;
  size_t count_ = 0;
};

}  // namespace heddle
