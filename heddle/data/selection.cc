// Choosing out of what was chosen.
#include "heddle/data/selection.h"

#include <numeric>
#include <span>
#include <utility>

#include "heddle/base/error.h"
#include "heddle/base/files/files.h"

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

}  // namespace heddle
