// The text of all tokens so far, compared with what was taken already.
#include "heddle/infer/decoding/text_stream.h"

#include <algorithm>

#include "heddle/base/utf8.h"
#include "heddle/text/strings/strings.h"

namespace heddle {

namespace {

// Tokens of the prompt that are decoded with the new ones: enough for any character and any word.
constexpr size_t kContext = 16;

}  // namespace

TextStream::TextStream(const Tokenizer& tokenizer, std::span<const int32_t> prompt,
                       std::vector<std::string> stops, bool shows_special)
    : tokenizer_(tokenizer), decoding_{.skip_special = !shows_special}, stops_(std::move(stops)) {
  const std::span<const int32_t> last = prompt.last(std::min(prompt.size(), kContext));
  before_.assign(last.begin(), last.end());
  before_text_ = tokenizer.decode(before_, decoding_);
  std::erase(stops_, "");
}

bool TextStream::read(std::span<const int32_t> tokens) {
  std::vector<int32_t> all = before_;
  all.insert(all.end(), tokens.begin(), tokens.end());
  const std::string whole = tokenizer_.decode(all, decoding_);
  // A character that the prompt had left unfinished is the continuation's.
  auto [end, ignored] =
      std::mismatch(before_text_.begin(), before_text_.end(), whole.begin(), whole.end());
  auto from = static_cast<size_t>(end - before_text_.begin());
  while (from > 0 && from < whole.size() && is_continuation(whole[from])) --from;
  text_ = whole.substr(from);
  size_t stop = std::string::npos;
  for (const std::string& s : stops_) stop = std::min(stop, text_.find(s));
  is_stopped_ = stop != std::string::npos;
  if (is_stopped_) text_.resize(stop);
  return !is_stopped_;
}

size_t TextStream::certain() const {
  if (is_stopped_) return text_.size();
  std::string_view text = text_;
  while (text.ends_with(kUnknownCharacter)) text.remove_suffix(kUnknownCharacter.size());
  size_t held = 0;  // of the end of the text, which may begin a stop string
  for (const std::string& stop : stops_) held = std::max(held, begun_at_end(text, stop));
  return text.size() - held;
}

std::string TextStream::take() {
  const size_t end = std::max(certain(), taken_);
  const std::string text = taken_ < text_.size() ? text_.substr(taken_, end - taken_) : "";
  taken_ = end;
  return text;
}

std::string TextStream::take_rest() {
  const std::string text = taken_ < text_.size() ? text_.substr(taken_) : "";
  taken_ = text_.size();
  return text;
}

}  // namespace heddle
