// A list beside that of the reader, which holds the rows.
#include "heddle/infer/engine/kept_beginnings.h"

#include <algorithm>

namespace heddle {
namespace {

int64_t same_tokens(std::span<const int32_t> a, std::span<const int32_t> b) {
  return std::ranges::mismatch(a, b).in1 - a.begin();
}

}  // namespace

KeptBeginnings::Match KeptBeginnings::find(std::span<const int32_t> prompt) const {
  Match best;
  const std::span<const int32_t> all_but_last = prompt.first(prompt.size() - 1);
  for (size_t i = 0; i < kept_.size(); ++i) {
    const int64_t same = same_tokens(all_but_last, kept_[i].tokens);
    if (same >= kLeast && same > best.tokens) best = {i, same};
  }
  return best;
}

void KeptBeginnings::begin(const Match& match) {
  kept_[match.number].used = ++time_;
  reader_.add_from_kept(static_cast<int64_t>(match.number), match.tokens);
}

void KeptBeginnings::keep(int64_t sequence, std::vector<int32_t> tokens) {
  const int64_t size = std::ssize(tokens);
  if (size < kLeast || size > most_) return;
  for (size_t i = kept_.size(); i-- > 0;) {
    const int64_t same = same_tokens(tokens, kept_[i].tokens);
    if (same == size) {  // it is kept already, with more behind it
      kept_[i].used = ++time_;
      return;
    }
    if (same == std::ssize(kept_[i].tokens)) forget(i);
  }
  shrink_to(most_ - size);
  while (kept_.size() >= kMostKept) forget_oldest();
  reader_.keep(sequence, size);
  rows_ += size;
  kept_.push_back({std::move(tokens), ++time_});
}

void KeptBeginnings::shrink_to(int64_t rows) {
  while (rows_ > rows && !kept_.empty()) forget_oldest();
}

void KeptBeginnings::forget_oldest() {
  forget(static_cast<size_t>(std::ranges::min_element(kept_, {}, &Kept::used) - kept_.begin()));
}

void KeptBeginnings::forget(size_t i) {
  rows_ -= std::ssize(kept_[i].tokens);
  reader_.forget_kept(static_cast<int64_t>(i));
  kept_.erase(kept_.begin() + static_cast<std::ptrdiff_t>(i));
}

}  // namespace heddle
