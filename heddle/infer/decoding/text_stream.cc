// The text of the last tokens, behind that of those before, which more tokens do not change.
#include "heddle/infer/decoding/text_stream.h"

#include <algorithm>

#include "heddle/base/utf8.h"
#include "heddle/text/strings/strings.h"

namespace heddle {

namespace {

// Tokens before that are decoded with the new ones: enough for any character and any word.
constexpr size_t kContext = 16;
// Tokens that are decoded again with each new one, at most.
constexpr size_t kMostAgain = 64;

}  // namespace

TextStream::TextStream(const Tokenizer& tokenizer, std::span<const int32_t> prompt,
                       std::vector<std::string> stops, bool shows_special)
    : tokenizer_(tokenizer), decoding_{.skip_special = !shows_special}, stops_(std::move(stops)) {
  const std::span<const int32_t> last = prompt.last(std::min(prompt.size(), kContext));
  before_.assign(last.begin(), last.end());
  before_text_ = tokenizer.decode(before_, decoding_);
  std::erase(stops_, "");
}

// What tokens say behind those before.
std::string TextStream::text_of(std::span<const int32_t> tokens) const {
  std::vector<int32_t> all = before_;
  all.insert(all.end(), tokens.begin(), tokens.end());
  const std::string whole = tokenizer_.decode(all, decoding_);
  // A character that was left unfinished is the continuation's.
  auto [end, ignored] =
      std::mismatch(before_text_.begin(), before_text_.end(), whole.begin(), whole.end());
  auto from = static_cast<size_t>(end - before_text_.begin());
  while (from > 0 && from < whole.size() && is_continuation(whole[from])) --from;
  return whole.substr(from);
}

// All but the last tokens are decoded no more, if what they say is where it was.
void TextStream::settle(std::span<const int32_t> fresh) {
  const std::span<const int32_t> first = fresh.first(fresh.size() - kContext);
  const std::string said = text_of(first);
  const std::string_view now = std::string_view(text_).substr(settled_text_);
  if (!now.starts_with(said) || said.ends_with(kUnknownCharacter)) return;
  settled_text_ += said.size();
  settled_ += first.size();
  before_.insert(before_.end(), first.begin(), first.end());
  if (before_.size() > kContext) before_.erase(before_.begin(), before_.end() - kContext);
  before_text_ = tokenizer_.decode(before_, decoding_);
}

bool TextStream::read(std::span<const int32_t> tokens) {
  const std::span<const int32_t> fresh = tokens.subspan(settled_);
  text_.resize(settled_text_);
  text_ += text_of(fresh);
  size_t stop = std::string::npos;
  for (const std::string& s : stops_) {
    stop = std::min(stop, text_.find(s, settled_text_ - std::min(settled_text_, s.size())));
  }
  is_stopped_ = stop != std::string::npos;
  if (is_stopped_) {
    text_.resize(stop);
  } else if (fresh.size() >= kMostAgain) {
    settle(fresh);
  }
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
