// Choosing and changing tokens.
#include "heddle/data/masking.h"

namespace heddle {

std::vector<int32_t> mask_tokens(std::vector<int32_t>& ids, const MaskingOptions& options,
                                 RngKey key) {
  RngStream random(key);
  std::vector<size_t> open, chosen;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (options.is_special && options.is_special(ids[i])) continue;
    open.push_back(i);
    if (random.uniform() < options.share) chosen.push_back(i);
  }
  if (chosen.empty() && !open.empty()) chosen.push_back(open[random.below(open.size())]);
  std::vector<int32_t> targets(ids.size(), -1);
  for (const size_t i : chosen) {
    targets[i] = ids[i];
    const float u = random.uniform();
    if (u < 0.8F) {
      ids[i] = options.mask_id;
    } else if (u < 0.9F) {
      ids[i] = static_cast<int32_t>(random.below(static_cast<uint64_t>(options.vocab_size)));
    }
  }
  return targets;
}

}  // namespace heddle
