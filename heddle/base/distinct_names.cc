// Numbers behind names that stand there already.
#include "heddle/base/distinct_names.h"

#include <unordered_set>

#include "heddle/base/error.h"

namespace heddle {

std::vector<std::string> distinct_names(std::vector<std::string> names) {
  std::unordered_set<std::string> seen, taken(names.begin(), names.end());
  for (size_t i = 0; i < names.size(); ++i) {
    if (seen.insert(names[i]).second) continue;
    do {
      names[i] += fmt::format(" (class {})", i);
    } while (!taken.insert(names[i]).second);
  }
  return names;
}

}  // namespace heddle
