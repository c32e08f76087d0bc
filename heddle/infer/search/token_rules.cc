// Bans and penalties, by looking through the tokens so far.
#include "heddle/infer/search/token_rules.h"

#include <algorithm>

namespace heddle {

void ban_repeats(std::span<const int32_t> ids, int64_t n, std::vector<int32_t>& banned) {
  const auto before = static_cast<size_t>(n - 1);  // tokens that the next one follows
  if (ids.size() < before) return;
  const std::span<const int32_t> last = ids.last(before);
  for (size_t i = before; i < ids.size(); ++i) {
    if (std::equal(last.begin(), last.end(), ids.begin() + static_cast<int64_t>(i - before))) {
      banned.push_back(ids[i]);
    }
  }
}

void ban_last_of(std::span<const int32_t> row, std::span<const int32_t> ids,
                 std::vector<int32_t>& banned) {
  const size_t before = row.size() - 1;
  if (ids.size() < before) return;
  if (std::equal(row.begin(), row.end() - 1, ids.end() - static_cast<int64_t>(before))) {
    banned.push_back(row.back());
  }
}

void penalise_repeats(std::span<float> logits, std::span<const int32_t> ids, double penalty) {
  const auto factor = static_cast<float>(penalty);
  std::vector<int32_t> once(ids.begin(), ids.end());
  std::sort(once.begin(), once.end());
  once.erase(std::unique(once.begin(), once.end()), once.end());
  for (const int32_t id : once) {
    float& x = logits[static_cast<size_t>(id)];
    x = x > 0 ? x / factor : x * factor;
  }
}

}  // namespace heddle
