// Positions, given or counted.
#include "heddle/nn/token_rows.h"

namespace heddle::nn {

std::vector<int32_t> TokenRows::positions() const {
  if (position_ids.empty()) return segments->positions();
  return {position_ids.begin(), position_ids.end()};
}

}  // namespace heddle::nn
