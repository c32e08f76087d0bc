// Warnings about words that were not in training.
#include "heddle/cli/use/unknown_words.h"

#include <algorithm>
#include <vector>

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
