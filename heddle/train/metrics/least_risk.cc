// The candidate of the highest expected chrF.
#include "heddle/train/metrics/least_risk.h"

#include <map>

#include "heddle/base/error.h"

namespace heddle::train {

size_t least_risk(Sentences candidates) {
  check(!candidates.empty(), ErrorKind::data, "minimum Bayes risk: there is no candidate");
  struct Text {
    size_t first = 0;
    double times = 0;
  };
  std::map<std::string_view, Text> texts;
  for (size_t i = 0; i < candidates.size(); ++i) {
    texts.try_emplace(candidates[i], Text{.first = i}).first->second.times += 1;
  }
  size_t best = 0;
  double most = -1;
  for (const auto& [text, own] : texts) {
    double utility = 100 * (own.times - 1);  // against its own copies
    for (const auto& [reference, other] : texts) {
      if (reference == text) continue;
      utility +=
          other.times *
          corpus_chrf({&candidates[own.first], 1}, Sentences(&candidates[other.first], 1)).score;
    }
    if (utility < most || (utility == most && own.first > best)) continue;
    most = utility;
    best = own.first;
  }
  return best;
}

}  // namespace heddle::train
