// Whether an order fits its tokens.
#include "heddle/nn/relative/token_order.h"

#include "heddle/base/error.h"

namespace heddle::nn {

void TokenOrder::check(const Segments& tokens) const {
  const auto rows = static_cast<size_t>(tokens.rows());
  int64_t pairs = 0;
  for (int64_t s = 0; s < tokens.count(); ++s) {
    pairs += tokens.length(s) * tokens.length(s);
  }
  heddle::check(steps.empty() || steps.size() == rows, ErrorKind::shape,
                "there are {} steps for {} tokens", steps.size(), rows);
  heddle::check(hidden.empty() || (steps.empty() && hidden.size() == static_cast<size_t>(pairs)),
                ErrorKind::shape,
                "the mask has {} values and {} steps beside it; it needs {} and none",
                hidden.size(), steps.size(), pairs);
  heddle::check(
      targets.count() == 0 || (targets.count() == tokens.count() &&
                               targets.rows() == static_cast<int64_t>(target_tokens.size())),
      ErrorKind::shape, "there are {} predictions for {} sequences and {} for {}", targets.rows(),
      targets.count(), target_tokens.size(), tokens.count());
  for (int64_t s = 0; s < targets.count(); ++s) {
    for (int64_t t = targets.begin(s); t < targets.end(s); ++t) {
      const int32_t token = target_tokens[t];
      heddle::check(token == -1 || (token >= tokens.begin(s) && token < tokens.end(s)),
                    ErrorKind::shape, "prediction {} is of token {}, which is not in sequence {}",
                    t, token, s);
    }
  }
}

}  // namespace heddle::nn
