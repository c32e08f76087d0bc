// Asking a tokenizer about each different character of a text.
#include "heddle/text/dropped_characters.h"

#include <fmt/format.h>

#include <algorithm>

#include "heddle/base/error.h"
#include "heddle/base/progress.h"
#include "heddle/base/utf8.h"
#include "heddle/text/strings/strings.h"

namespace heddle {
namespace {

// A sign of Linear A: no tokenizer drops anything unless it drops that.
constexpr const char* kUnheardOf = "\xF0\x90\x98\x80";

constexpr size_t kExamples = 8;

// In quotes, or by its number where it cannot be seen.
std::string spelled(const std::string& character) {
  size_t at = 0;
  const char32_t c = next_code_point(character, at);
  const bool is_seen = !is_white_space(c) && !is_control(c) && !is_combining_mark(c);
  return is_seen ? "'" + character + "'" : fmt::format("U+{:04X}", static_cast<uint32_t>(c));
}

}  // namespace

DroppedCharacters::DroppedCharacters(const Tokenizer& tokenizer)
    : tokenizer_(tokenizer), may_drop_(drops(kUnheardOf)) {}

// Some tokenizers put a space before a text, which is then all that there is, and there once.
bool DroppedCharacters::drops(std::string_view character) const try {
  const std::vector<int32_t> ids = tokenizer_.encode(character);
  if (ids.empty()) return true;
  const bool is_space = trimmed(tokenizer_.decode(ids, {.skip_special = false})).empty();
  return is_space && std::ranges::count(ids, tokenizer_.unk_id()) == 0 &&
         ids == tokenizer_.encode(std::string(character) + std::string(character));
} catch (const Error&) {
  return false;  // some refuse texts with what is unknown
}

void DroppedCharacters::add(int64_t count, std::span<const std::string> different) {
  count_ += count;
  for (const std::string& character : different) {
    if (std::ranges::count(different_, character) == 0) different_.push_back(character);
  }
}

// Bytes of UTF-8 have the order of code points.
void DroppedCharacters::sort() { std::ranges::sort(different_); }

std::string DroppedCharacters::without(std::string_view text) {
  if (!may_drop_) return std::string(text);
  std::string rest;
  rest.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    const auto [known, is_new] = is_dropped_.try_emplace(next_code_point(text, at));
    const std::string_view character = text.substr(begin, at - begin);
    if (is_new && (known->second = drops(character))) different_.emplace_back(character);
    if (known->second) {
      ++count_;
    } else {
      rest += character;
    }
  }
  return rest;
}

std::string DroppedCharacters::counted_characters() const { return counted(count_, "character"); }

std::string DroppedCharacters::examples() const {
  std::vector<std::string> some;
  for (size_t i = 0; i < std::min(different_.size(), kExamples); ++i) {
    some.push_back(spelled(different_[i]));
  }
  if (different_.size() > kExamples) {
    some.push_back(fmt::format(".. ({} different ones)", different_.size()));
  }
  return fmt::format("{}", fmt::join(some, ", "));
}

bool DroppedCharacters::is_rest_whole(std::string_view text, std::string_view rest) const {
  return tokenizer_.decode(tokenizer_.encode(text), {.skip_special = false, .clean_up = false}) ==
         rest;
}

}  // namespace heddle
