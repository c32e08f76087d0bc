// Whether an order fits its words.
#include "heddle/nn/word_order.h"

#include "heddle/base/error.h"

namespace heddle::nn {

void WordOrder::check(const Segments& words) const {
  const auto rows = static_cast<size_t>(words.rows());
  int64_t pairs = 0;
  for (int64_t s = 0; s < words.count(); ++s) {
    pairs += words.length(s) * words.length(s);
  }
  heddle::check(steps.empty() || steps.size() == rows, ErrorKind::shape,
                "there are {} steps for {} words", steps.size(), rows);
  heddle::check(hidden.empty() || (steps.empty() && hidden.size() == static_cast<size_t>(pairs)),
                ErrorKind::shape,
                "the mask has {} values and {} steps beside it; it needs {} and none",
                hidden.size(), steps.size(), pairs);
  heddle::check(
      targets.count() == 0 || (targets.count() == words.count() &&
                               targets.rows() == static_cast<int64_t>(target_words.size())),
      ErrorKind::shape, "there are {} predictions for {} sequences and {} for {}", targets.rows(),
      targets.count(), target_words.size(), words.count());
  for (int64_t s = 0; s < targets.count(); ++s) {
    for (int64_t t = targets.begin(s); t < targets.end(s); ++t) {
      const int32_t word = target_words[t];
      heddle::check(word == -1 || (word >= words.begin(s) && word < words.end(s)), ErrorKind::shape,
                    "prediction {} is of word {}, which is not in sequence {}", t, word, s);
    }
  }
}

}  // namespace heddle::nn
