// One warning at the first text that gives cause, one at the end.
#include "heddle/cli/warnings.h"

#include <algorithm>
#include <vector>

#include "heddle/base/error.h"
#include "heddle/base/log.h"
#include "heddle/base/progress.h"

namespace heddle::cli {
namespace {

constexpr size_t kExamples = 5;

std::string shown(const std::vector<std::string>& words) {
  std::vector<std::string> quoted;
  for (size_t i = 0; i < std::min(words.size(), kExamples); ++i) {
    quoted.push_back("'" + words[i] + "'");
  }
  if (words.size() > kExamples) quoted.push_back("..");
  return fmt::format("{}", fmt::join(quoted, ", "));
}

}  // namespace

void warn_of_dropped(const DroppedCharacters& dropped, const std::string& path,
                     const char* result) {
  if (dropped.count() == 0) return;
  log_warning("{}: the vocabulary lacks {}, which the model does not see; {}: {}", path,
              dropped.counted_characters(), result, dropped.examples());
}

void warn_of_dropped_input(const char* command, const DroppedCharacters& dropped) {
  if (dropped.count() == 0) return;
  log_warning("{}: left out: {} of the input that the vocabulary lacks: {}", command,
              dropped.counted_characters(), dropped.examples());
}

void DroppedWarning::look_at(const std::string& text, const std::string& where) {
  const int64_t before = dropped_.count();
  const std::string rest = dropped_.without(text);
  if (dropped_.count() == before) return;
  if (before == 0 && !rest.empty()) {
    said_ = dropped_.count();
    log_warning("{}: {}: the vocabulary lacks {}, which the model does not see: {}", command_,
                where, dropped_.counted_characters(), dropped_.examples());
  }
  check(!rest.empty(), ErrorKind::data,
        "{}: the vocabulary has none of its characters, so nothing is left of it: {}", where,
        dropped_.examples());
}

void DroppedWarning::report() const {
  if (dropped_.count() == said_) return;
  log_warning("{}: in all, the vocabulary lacks {} of the input: {}", command_,
              dropped_.counted_characters(), dropped_.examples());
}

void UnknownWords::look_at(std::span<const std::string> lines) {
  if (!known_) return;
  std::vector<std::string> new_ones;  // in the order of the text
  for (const std::string& line : lines) {
    for (const std::string& word : known_->unknown_words(line)) {
      if (words_.insert(word).second) new_ones.push_back(word);
    }
  }
  if (new_ones.empty() || said_ > 0) return;
  said_ = new_ones.size();
  log_warning(
      "{}: {} not seen in training, which had {} different words, so the translation of {} is a "
      "guess",
      command_, said_ == 1 ? shown(new_ones) + " was" : shown(new_ones) + " were",
      format_count(static_cast<int64_t>(known_->size())), said_ == 1 ? "its line" : "their lines");
}

void UnknownWords::report() const {
  if (words_.size() == said_) return;
  log_warning("{}: {} different words of the input were not seen in training", command_,
              format_count(static_cast<int64_t>(words_.size())));
}

}  // namespace heddle::cli
