// Choosing and changing tokens; spans of them, and a shuffle of their tokens.
#include "heddle/data/masking.h"

#include <algorithm>

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

Permutation draw_permutation(std::span<const int32_t> ids, const PermutationOptions& options,
                             RngKey key) {
  RngStream random(key);
  const auto tokens = static_cast<int64_t>(ids.size());
  const auto is_open = [&](int64_t i) {
    return !options.is_special || !options.is_special(ids[static_cast<size_t>(i)]);
  };
  Permutation p{.targets = {}, .steps = std::vector<int32_t>(ids.size(), 0)};
  for (int64_t at = 0; at < tokens;) {
    const auto span =
        1 + static_cast<int64_t>(random.below(static_cast<uint64_t>(options.max_span)));
    // At most 2^53 tokens, which a tiny share would leave far behind.
    const auto room =
        static_cast<int64_t>(std::min(static_cast<double>(span) / options.share, 0x1p53));
    const int64_t begin =
        at + static_cast<int64_t>(random.below(static_cast<uint64_t>(room - span + 1)));
    for (int64_t i = begin; i < std::min(begin + span, tokens); ++i) {
      if (is_open(i)) p.targets.push_back(static_cast<int32_t>(i));
    }
    at += room;
  }
  if (p.targets.empty()) {
    std::vector<int32_t> open;
    for (int64_t i = 0; i < tokens; ++i) {
      if (is_open(i)) open.push_back(static_cast<int32_t>(i));
    }
    if (!open.empty()) p.targets = {open[random.below(open.size())]};
  }
  std::vector<int32_t> order = p.targets;
  shuffle_values(order, random);
  for (size_t i = 0; i < order.size(); ++i) {
    p.steps[static_cast<size_t>(order[i])] = static_cast<int32_t>(i) + 1;
  }
  return p;
}

}  // namespace heddle
