// The chat template of a model's folder: messages in, the text that the model goes on from out.
#pragma once

#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "heddle/base/json/json.h"
#include "heddle/text/chat/tool_calls.h"
#include "heddle/text/tokenizer.h"

namespace heddle {

struct JinjaNode;

struct ChatInput {
  Json messages = Json::array();      ///< [{"role", "content", ..}], as OpenAI's clients send them
  Json tools = Json::array();         ///< functions that may be called; see tool_names()
  bool add_generation_prompt = true;  ///< the template may write how an answer begins
  Json variables = Json::object();    ///< further ones, by name: transformers' chat_template_kwargs
  std::time_t now = 0;                ///< for strftime_now(); 0: the clock's
};

/// A template in Jinja, as Hugging Face's models have it. A bounded interpreter of the part of the
/// language that chat templates use renders it, to the text that transformers renders
/// (trim_blocks, lstrip_blocks, tojson without escapes, break and continue, generation blocks,
/// raise_exception, strftime_now); nothing but messages and variables is within its reach, and
/// steps, levels and text have bounds. Not there: include, import, extends, block, call, recursive
/// loops, filters of HTML and of random choice.
class ChatTemplate {
 public:
  /// Of the source; special_tokens: its variables bos_token, eos_token, ..; `where` (a path) opens
  /// messages. Errors: data, with the line.
  ChatTemplate(std::string_view source,
               std::vector<std::pair<std::string, std::string>> special_tokens, std::string where);

  /// That of a folder: chat_template.jinja, else chat_template of tokenizer_config.json, of several
  /// (a list with names) the one called "default".
  /// Nothing where there is none. tokenizer: whose bos_token, eos_token and unk_token it has where
  /// the files name none. Errors: those of the constructor; data for files that are broken.
  static std::optional<ChatTemplate> find(const std::string& folder,
                                          const Tokenizer* tokenizer = nullptr);

  /// The text. A message whose content is a list of parts has it as it is; parts of type text
  /// become one text, lines of it, where the template does not look at the parts. Arguments of
  /// `tool_calls`, texts of JSON as clients send them, are objects for the template.
  /// Errors: data for messages that are none (a role and a text each), for what the template
  /// refuses, and where it takes too many steps.
  std::string render(const ChatInput& input) const;

  /// render() for Tokenizer::encode_rendered(): names of special tokens that the template writes
  /// are these tokens, those in the messages are text, and so cannot pass for the template's.
  /// (transformers takes them for tokens there too.)
  std::string render_hidden(const Tokenizer& tokenizer, const ChatInput& input) const;
  /// The ids of that. Nothing is put around them: templates write the beginning themselves.
  std::vector<int32_t> encode(const Tokenizer& tokenizer, const ChatInput& input) const;

  /// Whether the template looks at tools, and how its model writes calls.
  bool takes_tools() const { return takes_tools_; }
  ToolCallForm tool_call_form() const { return form_; }

 private:
  std::shared_ptr<const JinjaNode> tree_;
  std::vector<std::pair<std::string, std::string>> special_tokens_;
  std::string where_;
  bool reads_parts_ = false;  // whether the source looks at parts of contents
  bool takes_tools_ = false;
  ToolCallForm form_ = ToolCallForm::bare;
};

/// Errors: data for what is no list of messages: objects with a text `role`, and a `content` that
/// is a text, null, or a list of parts. Parts of another type than text are refused; so are
/// `tool_calls` that are no list of functions with names and arguments.
void check_messages(const Json& messages);

}  // namespace heddle
