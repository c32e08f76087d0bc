// A search backwards for the end of a text.
#include "heddle/infer/search/prompt_lookup.h"

#include <algorithm>

namespace heddle {

std::vector<int32_t> look_up(std::span<const int32_t> text, int64_t count) {
  const int64_t n = std::ssize(text);
  int64_t longest = kShortestMatch - 1, found = 0;
  for (int64_t end = n - 1; end > longest && longest < kLongestMatch; --end) {
    const int64_t most = std::min(end, kLongestMatch);
    int64_t length = 0;
    while (length < most && text[end - 1 - length] == text[n - 1 - length]) ++length;
    if (length > longest) longest = length, found = end;
  }
  std::vector<int32_t> draft;
  if (found == 0) return draft;
  for (int64_t i = 0; i < count; ++i) {
    draft.push_back(found + i < n ? text[found + i] : draft[static_cast<size_t>(found + i - n)]);
  }
  return draft;
}

}  // namespace heddle
