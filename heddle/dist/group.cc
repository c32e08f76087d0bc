// Slices, the group of one, and what groups do by their own calls.
#include "heddle/dist/group.h"

#include <algorithm>
#include <bit>

#include "heddle/base/error.h"
#include "heddle/base/names.h"
#include "heddle/dist/packed.h"

namespace heddle::dist {

Slice slice_of(int64_t n, int64_t rank, int64_t ranks) {
  constexpr int64_t kUnit = 16;  // values: a cache line, a vector
  check(n >= 0 && rank >= 0 && rank < ranks && std::has_single_bit(static_cast<uint64_t>(ranks)),
        ErrorKind::internal, "slice of {} values of rank {} among {}", n, rank, ranks);
  Slice slice{0, n};
  for (int64_t distance = 1; distance < ranks; distance *= 2) {
    const int64_t half = (slice.size() / 2 + kUnit - 1) / kUnit * kUnit;
    const int64_t middle = std::min(slice.end, slice.begin + half);
    (rank & distance ? slice.begin : slice.end) = middle;
  }
  return slice;
}

void Group::barrier() { gather(""); }

void Group::reduce_scatter(std::span<float> values) {
  finish(start_reduce_scatter({.values = values, .owner = {}, .sent_as = wire()}));
}

void Group::all_gather(std::span<float> values) {
  finish(start_all_gather({.values = values, .owner = {}}));
}

int64_t LocalGroup::start_reduce_scatter(StartedValues) { return 0; }
int64_t LocalGroup::start_all_gather(StartedValues) { return 0; }
void LocalGroup::finish(int64_t) {}
std::vector<std::string> LocalGroup::gather(std::string_view mine) { return {std::string(mine)}; }
std::string LocalGroup::broadcast(std::string_view of_rank_0) { return std::string(of_rank_0); }
void LocalGroup::note_update(int64_t) {}
void LocalGroup::expect_work() {}
void LocalGroup::note_input_wait(bool) {}
void LocalGroup::leave_with(std::string_view) noexcept {}
void LocalGroup::check_alive() {}

namespace {

// "0 and 2", "1, 2 and 3"
std::string listed(const std::vector<int64_t>& ranks) {
  if (ranks.size() == 1) return fmt::format("rank {}", ranks[0]);
  const std::vector<int64_t> first(ranks.begin(), ranks.end() - 1);
  return fmt::format("ranks {} and {}", fmt::join(first, ", "), ranks.back());
}

// What ranks say of one fact where they differ: "seed is 1 on rank 0 and 2 on ranks 1 and 3"; else
// "".
std::string difference(const std::string& name, const std::vector<Facts>& all) {
  constexpr size_t kLongest = 200;
  std::vector<std::pair<std::string, std::vector<int64_t>>> values;
  for (size_t rank = 0; rank < all.size(); ++rank) {
    const auto at = all[rank].find(name);
    const std::string value = at == all[rank].end() ? "absent" : at->second;
    auto found = std::ranges::find(values, value, [](const auto& v) { return v.first; });
    if (found == values.end()) found = values.insert(found, {value, {}});
    found->second.push_back(static_cast<int64_t>(rank));
  }
  if (values.size() == 1) return "";
  std::string text = name_fields(name) + " is";
  for (size_t i = 0; i < values.size(); ++i) {
    std::string value = values[i].first;
    if (value.size() > kLongest) value = value.substr(0, kLongest) + " ..";
    text += fmt::format("{} {} on {}", i == 0 ? "" : " and", value, listed(values[i].second));
  }
  return text;
}

}  // namespace

// Who is through the barrier knows that all have come to it.
void fail_together(Group& group, ErrorKind kind, const std::string& message) {
  try {
    group.barrier();
  } catch (const Error&) {  // another one has left in between
  }
  throw Error(kind, message);
}

void check_equal(Group& group, const Facts& facts) {
  if (group.is_alone()) return;
  Packer mine;
  for (const auto& [name, value] : facts) mine(name, value);
  std::vector<Facts> all;
  Facts names;
  for (const std::string& told : group.gather(mine.take())) {
    Facts& theirs = all.emplace_back();
    for (Unpacker unpack(told); !unpack.is_at_end();) {
      std::string name;
      unpack(name);
      unpack(theirs[name]);
    }
    names.insert(all.back().begin(), all.back().end());
  }
  std::vector<std::string> differences;
  for (const auto& [name, value] : names) {
    const std::string text = difference(name, all);
    if (!text.empty()) differences.push_back(text);
  }
  if (differences.empty()) return;
  fail_together(
      group, ErrorKind::usage,
      fmt::format(
          "the ranks differ: {}; they must be started with the same program, flags and data",
          fmt::join(differences, "; ")));
}

}  // namespace heddle::dist
