// What generate goes on from: prompts of the command line, lines, ids, conversations.
#pragma once

#include <exception>
#include <optional>
#include <string>
#include <vector>

#include "heddle/cli/command_line.h"
#include "heddle/cli/lines.h"
#include "heddle/infer/loading/text_model.h"
#include "heddle/text/chat/chat_template.h"

namespace heddle::cli {

/// What stands between the texts of several prompts.
inline constexpr const char* kBetweenTexts = "----------\n";

struct PromptFlags {
  std::vector<std::string> prompts;
  std::vector<int64_t> ids;
  LineFlags lines{.path = ""};  ///< where neither prompts nor ids are given
  std::string system;
  bool truncate = false, is_chat = false;
};
void add_prompt_flags(Subcommand& c, PromptFlags& f);

/// The messages of a conversation whose prompt is what a user says, or, of the form
/// {"messages": [..]}, those. Errors: data, naming `where`, if what has that form is no JSON.
Json conversation_messages(const std::string& system, const std::string& prompt,
                           const std::string& where);

struct Prompt {
  std::string text;
  std::vector<int32_t> ids;
  std::string error = {};  ///< why there are none
};

/// Some prompts at a time.
class Prompts {
 public:
  /// Errors: usage for flags that exclude each other; data if a chat is asked of a model without a
  /// template; those of LineReader.
  Prompts(const PromptFlags& flags, const LoadedModel& model, const PromptOptions& options);

  /// The next ones, none at the end. Errors: those of prompt_ids(), and of a prompt whose
  /// characters are all unknown, once the prompts before were given; of a line only if bad ones are
  /// not skipped.
  std::vector<Prompt> next();

  /// Says at the end how many were cut or left out, and how many of their characters. Errors: see
  /// Skipped::report().
  void report() const;

 private:
  std::vector<Prompt> next_lines();
  Prompt prompt_or_reason(const std::string& line);
  Prompt prompt(const std::string& text, const char* what);
  Prompt conversation(const std::string& text, const std::string& where);
  Prompt prompt_of_ids();

  const PromptFlags& flags_;
  const LoadedModel& model_;
  PromptOptions options_;
  LineFlags from_ = flags_.lines;
  Skipped skipped_{"generate", {}};
  std::optional<DroppedWarning> dropped_;  // absent without a tokenizer
  std::optional<ChatTemplate> chat_;
  std::optional<LineBlocks> lines_;
  std::exception_ptr failure_;
  int64_t count_ = 0, cut_ = 0;
};

}  // namespace heddle::cli
