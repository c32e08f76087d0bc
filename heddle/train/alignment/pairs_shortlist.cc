// Links of an aligner are counted by tokens.
#include "heddle/train/alignment/pairs_shortlist.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "heddle/base/error.h"
#include "heddle/base/parallel.h"

namespace heddle::train {
namespace {

using Counts = std::unordered_map<int32_t, int64_t>;  // of target tokens, by id

// How often each target token comes from each source token.
std::vector<Counts> count_links(const WordLines& sources, const WordLines& targets,
                                int64_t source_tokens, const StatisticalAligner& aligner) {
  constexpr int64_t kBlock = 1 << 14;
  std::vector<Counts> counts(static_cast<size_t>(source_tokens));
  std::vector<Alignment> links(static_cast<size_t>(std::min(kBlock, sources.lines())));
  for (int64_t first = 0; first < sources.lines(); first += kBlock) {
    const int64_t n = std::min(kBlock, sources.lines() - first);
    parallel_for(n, [&](int64_t i) {
      links[static_cast<size_t>(i)] =
          aligner.align(sources.line(first + i), targets.line(first + i), true);
    });
    for (int64_t i = 0; i < n; ++i) {
      const auto source = sources.line(first + i), target = targets.line(first + i);
      for (const AlignmentLink& link : links[static_cast<size_t>(i)]) {
        ++counts[static_cast<size_t>(source[static_cast<size_t>(link.source)] - 1)]
                [target[static_cast<size_t>(link.target)] - 1];
      }
    }
  }
  return counts;
}

// The ids that came most often, the lower one first among equals.
std::vector<int32_t> most_frequent(const Counts& counts, int64_t most) {
  std::vector<std::pair<int64_t, int32_t>> by_count;
  for (const auto& [id, count] : counts) by_count.emplace_back(-count, id);
  std::ranges::sort(by_count);
  std::vector<int32_t> ids;
  for (const auto& [count, id] : by_count) {
    if (std::ssize(ids) == most) break;
    ids.push_back(id);
  }
  return ids;
}

}  // namespace

ShortlistTokens pairs_shortlist(const WordLines& sources, const WordLines& targets,
                                int64_t source_tokens, int64_t target_tokens,
                                const PairsShortlistOptions& options) {
  check(options.each >= 1, ErrorKind::usage, "`candidates` is {}; it must be at least 1",
        options.each);
  check(options.frequent >= 1, ErrorKind::usage, "`frequent` is {}; it must be at least 1",
        options.frequent);
  const StatisticalAligner aligner(sources, targets, options.aligner);
  ShortlistTokens tokens;
  Counts all;
  for (int64_t line = 0; line < targets.lines(); ++line) {
    for (const int32_t number : targets.line(line)) ++all[number - 1];
  }
  tokens.always = most_frequent(all, options.frequent);
  for (const Counts& counts : count_links(sources, targets, source_tokens, aligner)) {
    const auto s = static_cast<int32_t>(tokens.of_source.size());
    tokens.of_source.push_back(most_frequent(counts, options.each));
    if (options.shares_tokens && s < target_tokens) tokens.of_source.back().push_back(s);
  }
  return tokens;
}

void ShortlistCounts::add(const Shortlist& shortlist, std::span<const int32_t> source,
                          std::span<const int32_t> target) {
  const std::vector<int32_t> ids = shortlist.candidates(source);
  ++pairs;
  candidates += std::ssize(ids);
  target_tokens += std::ssize(target);
  found += std::ranges::count_if(target,
                                 [&](int32_t id) { return std::ranges::binary_search(ids, id); });
}

}  // namespace heddle::train
