// Work that ranks share: each computes some of the items, all know the results of all.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "heddle/base/work_notes.h"
#include "heddle/dist/group.h"
#include "heddle/dist/packed.h"

namespace heddle::dist {

/// What all ranks give, by rank: compute() of each. Its errors are those of all ranks, by kind and
/// message, of several ranks the lowest one's; but for those of other ranks that were lost, which
/// end the call at once.
std::vector<std::string> gather_or_fail(Group& group, const std::function<std::string()>& compute);

/// What all ranks do alike, as reading what it takes; all call it. Errors: see gather_or_fail().
void do_alike(Group& group, const std::function<void()>& work);

/// The results of items 0 .. count - 1, in that order, on all ranks, which all call it. Each rank
/// computes every ranks()-th item: compute(items) gives a result for each of those, which must not
/// depend on what else is computed with it, so that all is as of one rank. T: see Packer.
/// A rank has a deadline meanwhile: compute() notes its work, see Group::expect_work().
/// Errors: see gather_or_fail().
template <class T, class Compute>
std::vector<T> share_out(Group& group, int64_t count, const Compute& compute) {
  const int64_t ranks = group.ranks();
  const auto items_of = [&](int64_t rank) {
    std::vector<int64_t> items;
    for (int64_t i = rank; i < count; i += ranks) items.push_back(i);
    return items;
  };
  const std::vector<int64_t> mine = items_of(group.rank());
  if (group.is_alone()) return compute(std::span<const int64_t>(mine));
  group.expect_work();
  const std::vector<std::string> told = gather_or_fail(group, [&] {
    const std::vector<T> results = compute(std::span<const int64_t>(mine));
    check(results.size() == mine.size(), ErrorKind::internal, "{} results of {} items",
          results.size(), mine.size());
    Packer pack;
    for (const T& result : results) pack(result);
    return pack.take();
  });
  std::vector<T> all(static_cast<size_t>(count));
  for (int64_t rank = 0; rank < ranks; ++rank) {
    Unpacker unpack(told[static_cast<size_t>(rank)]);
    for (const int64_t item : items_of(rank)) unpack(all[static_cast<size_t>(item)]);
    check(unpack.is_at_end(), ErrorKind::internal, "rank {} told more than its results", rank);
  }
  return all;
}

/// The same item by item: compute(item) gives its result, each of which is noted.
template <class T, class Compute>
std::vector<T> share_out_each(Group& group, int64_t count, const Compute& compute) {
  return share_out<T>(group, count, [&](std::span<const int64_t> items) {
    std::vector<T> results;
    for (const int64_t item : items) {
      results.push_back(compute(item));
      note_work();
      group.check_alive();
    }
    return results;
  });
}

}  // namespace heddle::dist
