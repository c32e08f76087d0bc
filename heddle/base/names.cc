// Names in messages; of the nearest one: Damerau 1964, optimal string alignment.
#include "heddle/base/names.h"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace heddle {
namespace {

size_t edits(std::string_view a, std::string_view b) {
  // Three rows of the table: cost[i][j] turns a[0, i) into b[0, j).
  std::vector<size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    std::swap(before, last);
    std::swap(last, row);
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substitution = last[j - 1] + (a[i - 1] != b[j - 1]);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, substitution});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row[b.size()];
}

int64_t common_beginning(std::string_view a, std::string_view b) {
  return std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin();
}

std::string (*g_name)(std::string_view) = nullptr;
thread_local bool t_by_key = false;

}  // namespace

std::string nearest_name(std::string_view name, const std::vector<std::string>& known) {
  std::string best;
  size_t fewest = 0;
  for (const std::string& candidate : known) {
    const size_t limit = std::max<size_t>(2, std::max(name.size(), candidate.size()) / 3);
    const auto [shorter, longer] = std::minmax({name.size(), candidate.size()});
    if (longer - shorter > limit) continue;  // so many edits it takes at least
    const size_t count = edits(name, candidate);
    if (count > limit || count >= candidate.size()) continue;
    const bool begins_better =
        count == fewest && common_beginning(name, candidate) > common_beginning(name, best);
    if (best.empty() || count < fewest || begins_better) {
      best = candidate;
      fewest = count;
    }
  }
  return best;
}

const char* version() { return HEDDLE_VERSION; }

std::string field_name(std::string_view key) {
  if (t_by_key) return std::string("`").append(key).append("`");
  return g_name == nullptr ? std::string(key) : g_name(key);
}

FieldsByKey::FieldsByKey() : before_(std::exchange(t_by_key, true)) {}
FieldsByKey::~FieldsByKey() { t_by_key = before_; }

void name_fields_by(std::string (*name)(std::string_view)) { g_name = name; }

std::string name_fields(std::string_view text) {
  std::string named;
  for (;;) {
    const size_t begin = text.find('`'), end = text.find('`', begin + 1);
    if (begin == text.npos || end == text.npos) return named.append(text);
    const std::string_view key = text.substr(begin + 1, end - begin - 1);
    const bool is_key = key.find_first_not_of("abcdefghijklmnopqrstuvwxyz_") == key.npos;
    named.append(text.substr(0, begin));
    named.append(is_key ? field_name(key) : text.substr(begin, end + 1 - begin));
    text.remove_prefix(end + 1);
  }
}

}  // namespace heddle
