// Positions, given or counted.
#include "heddle/nn/token_rows.h"

namespace heddle::nn {

std::vector<int32_t> TokenRows::positions() const {
  if (position_ids.empty()) return segments->positions();
  return {position_ids.begin(), position_ids.end()};
}

void check_ids(std::span<const int32_t> ids, int64_t vocab, const std::string& what,
               ErrorKind kind) {
  for (const int32_t id : ids) {
    check(id >= 0 && id < vocab, kind, "{}: the id {} is not in the vocabulary of {}", what, id,
          vocab);
  }
}

}  // namespace heddle::nn
