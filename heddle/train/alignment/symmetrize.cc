// Alignments of both directions made one.
#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "heddle/base/error.h"
#include "heddle/base/parallel.h"
#include "heddle/train/alignment/statistical_aligner.h"

namespace heddle::train {
namespace {

// Links found so far, and the words that have one.
struct Links {
  std::set<AlignmentLink> all = {};
  std::set<int32_t> sources = {}, targets = {};

  void add(const AlignmentLink& link) {
    all.insert(link);
    sources.insert(link.source);
    targets.insert(link.target);
  }
  bool has_source(const AlignmentLink& link) const { return sources.contains(link.source); }
  bool has_target(const AlignmentLink& link) const { return targets.contains(link.target); }
};

// Neighbours of links that are in the union, where one of both words lacks a link, until there is
// none: those beside a link before those across its corners, and of what was added too what stands
// behind it, as in Moses (symal).
void grow(Links& links, const Alignment& both) {
  constexpr std::pair<int32_t, int32_t> kNeighbours[] = {{-1, 0},  {0, -1}, {1, 0},  {0, 1},
                                                         {-1, -1}, {-1, 1}, {1, -1}, {1, 1}};
  for (bool has_grown = true; has_grown;) {
    has_grown = false;
    for (const AlignmentLink& link : links.all) {
      for (const auto& [down, right] : kNeighbours) {
        const AlignmentLink next{link.source + down, link.target + right};
        if (!std::ranges::binary_search(both, next) || links.all.contains(next)) continue;
        if (links.has_source(next) && links.has_target(next)) continue;
        links.add(next);
        has_grown = true;
      }
    }
  }
}

}  // namespace

Alignment symmetrize(const Alignment& forward, const Alignment& backward, const std::string& how) {
  Alignment shared, both;
  std::ranges::set_intersection(forward, backward, std::back_inserter(shared));
  std::ranges::set_union(forward, backward, std::back_inserter(both));
  if (how == "intersection") return shared;
  if (how == "union") return both;
  check(how == "grow-diag-final-and", ErrorKind::usage,
        "alignments of both directions: unknown way '{}'; there are intersection, union and "
        "grow-diag-final-and",
        how);
  Links links;
  for (const AlignmentLink& link : shared) links.add(link);
  grow(links, both);
  for (const Alignment* direction : {&forward, &backward}) {
    for (const AlignmentLink& link : *direction) {
      if (!links.has_source(link) && !links.has_target(link)) links.add(link);
    }
  }
  return {links.all.begin(), links.all.end()};
}

std::vector<Alignment> align_lines(const WordLines& sources, const WordLines& targets,
                                   int64_t count, const std::string& how, AlignerOptions options) {
  const auto one_way = [&](const WordLines& from, const WordLines& to) {
    const StatisticalAligner aligner(from, to, options);
    std::vector<Alignment> links(static_cast<size_t>(count));
    parallel_for(count, [&](int64_t i) {
      links[static_cast<size_t>(i)] = aligner.align(from.line(i), to.line(i));
    });
    return links;
  };
  if (how == "none") return one_way(sources, targets);
  const std::string label = options.label;
  options.label = label + " forwards";
  std::vector<Alignment> links = one_way(sources, targets);
  options.label = label + " backwards";
  std::vector<Alignment> back = one_way(targets, sources);
  for (size_t i = 0; i < links.size(); ++i) {
    for (AlignmentLink& link : back[i]) std::swap(link.source, link.target);
    std::ranges::sort(back[i]);
    links[i] = symmetrize(links[i], back[i], how);
  }
  return links;
}

}  // namespace heddle::train
