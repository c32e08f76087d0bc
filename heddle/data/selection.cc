// Choosing out of what was chosen.
#include "heddle/data/selection.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <utility>

#include "heddle/base/error.h"
#include "heddle/base/files/files.h"
#include "heddle/base/progress.h"

namespace heddle {

Selection::Selection(int64_t count) {
  std::vector<int64_t> all(static_cast<size_t>(count));
  std::iota(all.begin(), all.end(), 0);
  chosen_ = std::make_shared<const std::vector<int64_t>>(std::move(all));
}

Selection Selection::select(const std::vector<int64_t>& places) const {
  std::vector<int64_t> chosen;
  for (const int64_t i : places) {
    check(i >= 0 && i < size(), ErrorKind::internal, "image {} of a set of {}", i, size());
    chosen.push_back((*this)[i]);
  }
  Selection part = *this;
  part.chosen_ = std::make_shared<const std::vector<int64_t>>(std::move(chosen));
  return part;
}

std::string Selection::key() const { return checksum(std::as_bytes(std::span(*chosen_))); }

HeldOutImages hold_out_share(int64_t images, double share, RngKey key, const std::string& path) {
  std::vector<int64_t> order(static_cast<size_t>(images));
  std::iota(order.begin(), order.end(), 0);
  RngStream random(key);
  shuffle_values(order, random);
  const auto held = static_cast<int64_t>(std::ceil(share * static_cast<double>(images)));
  check(held > 0 && held < images, ErrorKind::data,
        "{}: of {} none can be held out, or none is left; give `val_data`, or another `val_share`",
        path, counted(images, "image"));
  HeldOutImages parts{{order.begin(), order.begin() + held}, {order.begin() + held, order.end()}};
  std::ranges::sort(parts.held_out);
  std::ranges::sort(parts.others);
  return parts;
}

}  // namespace heddle
