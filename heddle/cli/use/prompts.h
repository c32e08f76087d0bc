// The prompts of heddle generate: of the command line, or of lines.
#pragma once

#include <exception>
#include <optional>
#include <string>
#include <vector>

#include "heddle/cli/lines.h"
#include "heddle/cli/warnings.h"
#include "heddle/infer/loading/text_model.h"

namespace heddle::cli {

struct PromptFlags {
  std::vector<std::string> prompts;
  std::vector<int64_t> ids;
  LineFlags lines{.path = ""};  ///< where neither prompts nor ids are given
};

struct Prompt {
  std::string text;
  std::vector<int32_t> ids;
  std::string error = {};  ///< why there are none
};

/// Some prompts at a time.
class Prompts {
 public:
  /// Errors: those of LineReader.
  Prompts(const PromptFlags& flags, const LoadedModel& model, const PromptOptions& options);

  /// The next ones, none at the end. Errors: those of prompt_ids(), and of a prompt whose
  /// characters are all unknown, once the prompts before were given; of a line only if bad ones are
  /// not skipped.
  std::vector<Prompt> next();

  /// Says at the end how many were cut or left out, and how many of their characters. Errors: see
  /// BadLines::report().
  void report() const;

 private:
  std::vector<Prompt> next_lines();
  Prompt prompt_or_reason(const std::string& line);
  Prompt prompt(const std::string& text, const char* what);
  Prompt prompt_of_ids();

  PromptFlags flags_;
  const LoadedModel& model_;
  PromptOptions options_;
  BadLines bad_;
  std::optional<DroppedWarning> dropped_;  // absent without a tokenizer
  std::optional<LineBlocks> lines_;
  std::exception_ptr failure_;
  int64_t count_ = 0, cut_ = 0;
};

}  // namespace heddle::cli
