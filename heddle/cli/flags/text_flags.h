// What the commands that take texts into a model share: flags, and lines in batches.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "heddle/cli/command_line.h"
#include "heddle/cli/flags/shared_flags.h"
#include "heddle/cli/lines.h"

namespace heddle::cli {

struct TextFlags {
  std::string model;
  std::vector<std::string> texts;  ///< of the command line; none: lines of the standard input
  ComputeFlags compute{.precision = "f32"};
  bool json = false;
  std::string page;  ///< the page to write, "" for none
  LineFlags lines;
};

/// Adds model, --text, --precision, --threads, --json, --page and --skip-bad.
void add_text_flags(Subcommand& command, TextFlags& flags);

/// Calls f with the texts, some at a time, which adds to `cut` how many it cut to `limit` tokens:
/// one warning counts them. Of lines see answer_lines(): f throws before it writes. Errors: data,
/// with the line, if one is not UTF-8 or f refuses it; usage if there is none.
void for_texts(const char* command, const TextFlags& flags, int64_t limit,
               const std::function<void(std::span<const std::string>, int64_t& cut)>& f);

/// One warning if texts were cut.
void warn_of_cut(const char* command, int64_t cut, int64_t texts, int64_t limit);

}  // namespace heddle::cli
