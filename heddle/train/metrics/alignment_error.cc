// Reading hand-made alignments, and counting what was found of them.
#include "heddle/train/metrics/alignment_error.h"

#include <algorithm>
#include <charconv>
#include <sstream>

#include "heddle/base/error.h"

namespace heddle::train {
namespace {

void sort_unique(Alignment& links) {
  std::sort(links.begin(), links.end());
  links.erase(std::unique(links.begin(), links.end()), links.end());
}

double share(int64_t part, int64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

int64_t common(const Alignment& a, const Alignment& b) {
  return std::count_if(a.begin(), a.end(), [&](const AlignmentLink& link) {
    return std::binary_search(b.begin(), b.end(), link);
  });
}

}  // namespace

GoldAlignment parse_gold(std::string_view line, int base, bool reversed, const std::string& where) {
  GoldAlignment gold;
  std::istringstream words{std::string(line)};
  for (std::string word; words >> word;) {
    int32_t first = 0, second = 0;
    const char* end = word.data() + word.size();
    const auto a = std::from_chars(word.data(), end, first);
    const bool has_sign = a.ec == std::errc() && a.ptr != end && (*a.ptr == '-' || *a.ptr == 'p');
    const auto b = has_sign ? std::from_chars(a.ptr + 1, end, second) : a;
    check(has_sign && b.ec == std::errc() && b.ptr == end, ErrorKind::data,
          "{}: '{}' is no link; 3-4 is a sure one, 3p4 a possible one", where, word);
    check(first >= base && second >= base, ErrorKind::data,
          "{}: the link '{}' is below the first word's number, {}; see `gold_base`", where, word,
          base);
    AlignmentLink link{first - base, second - base};
    if (reversed) std::swap(link.source, link.target);
    if (*a.ptr == '-') gold.sure.push_back(link);
    gold.possible.push_back(link);
  }
  sort_unique(gold.sure);
  sort_unique(gold.possible);
  return gold;
}

double AlignmentScore::precision() const { return share(found_possible, found); }
double AlignmentScore::recall() const { return share(found_sure, sure); }
double AlignmentScore::error_rate() const {
  return 1 - share(found_sure + found_possible, found + sure);
}

void add_pair(AlignmentScore& score, const Alignment& found, const GoldAlignment& gold,
              size_t source_words, size_t target_words) {
  const auto is_outside = [&](const AlignmentLink& link) {
    return link.source >= static_cast<int32_t>(source_words) ||
           link.target >= static_cast<int32_t>(target_words);
  };
  GoldAlignment inside = gold;
  score.out_of_range += static_cast<int64_t>(std::erase_if(inside.possible, is_outside));
  std::erase_if(inside.sure, is_outside);
  score.found += static_cast<int64_t>(found.size());
  score.sure += static_cast<int64_t>(inside.sure.size());
  score.found_sure += common(found, inside.sure);
  score.found_possible += common(found, inside.possible);
}

}  // namespace heddle::train
