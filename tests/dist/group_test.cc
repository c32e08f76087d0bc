// Slices of ranks, and the group of one.
#include "heddle/dist/group.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "heddle/base/error.h"
#include "heddle/dist/packed.h"

namespace heddle::dist {
namespace {

TEST(Slices, cover_all_values_once_for_any_count_of_ranks) {
  for (const int64_t ranks : {1, 2, 4, 8, 64}) {
    for (const int64_t n : {0, 1, 15, 16, 17, 1000, 1000003}) {
      std::vector<Slice> slices;
      for (int64_t rank = 0; rank < ranks; ++rank) slices.push_back(slice_of(n, rank, ranks));
      std::ranges::sort(slices, {}, [](const Slice& s) { return std::pair(s.begin, s.end); });
      int64_t at = 0;
      for (const Slice& s : slices) {
        EXPECT_EQ(s.begin, at) << n << " values, " << ranks << " ranks";
        EXPECT_GE(s.end, s.begin);
        at = s.end;
      }
      EXPECT_EQ(at, n);
    }
  }
}

TEST(Slices, begin_at_multiples_of_16_values) {
  for (int64_t rank = 0; rank < 8; ++rank) {
    const Slice slice = slice_of(1000003, rank, 8);
    EXPECT_TRUE(slice.size() == 0 || slice.begin % 16 == 0) << rank;
  }
}

// Halved for the lowest bit first: 64 values, rank 1 of 4 has the upper half's lower half.
TEST(Slices, follow_the_bits_of_the_rank) {
  EXPECT_EQ(slice_of(64, 0, 4), (Slice{0, 16}));
  EXPECT_EQ(slice_of(64, 1, 4), (Slice{32, 48}));
  EXPECT_EQ(slice_of(64, 2, 4), (Slice{16, 32}));
  EXPECT_EQ(slice_of(64, 3, 4), (Slice{48, 64}));
}

TEST(Slices, differ_in_size_by_few_values) {
  for (int64_t rank = 0; rank < 8; ++rank) {
    EXPECT_NEAR(static_cast<double>(slice_of(1000003, rank, 8).size()), 125000.375, 64);
  }
}

TEST(LocalGroup, gives_back_what_it_was_given) {
  LocalGroup group;
  std::vector<float> values = {1, 2, 3};
  group.reduce_scatter(values);
  group.all_gather(values);
  group.barrier();
  EXPECT_EQ(values, (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(group.slice(3), (Slice{0, 3}));
  EXPECT_EQ(group.gather("a"), std::vector<std::string>{"a"});
  EXPECT_EQ(group.broadcast("b"), "b");
}

// Ranks that would say other facts than this one.
class TwoFacts final : public Group {
 public:
  explicit TwoFacts(const Facts& other) {
    Packer pack;
    for (const auto& [name, value] : other) pack(name, value);
    other_ = pack.take();
  }
  int64_t rank() const override { return 0; }
  int64_t ranks() const override { return 2; }
  int64_t start_reduce_scatter(StartedValues) override { return 0; }
  int64_t start_all_gather(StartedValues) override { return 0; }
  void finish(int64_t) override {}
  std::vector<std::string> gather(std::string_view mine) override {
    return {std::string(mine), other_};
  }
  std::string broadcast(std::string_view of_rank_0) override { return std::string(of_rank_0); }
  void note_update(int64_t) override {}
  void expect_work() override {}
  void note_input_wait(bool) override {}
  void leave_with(std::string_view) noexcept override {}
  void check_alive() override {}

 private:
  std::string other_;
};

TEST(CheckEqual, names_each_fact_that_differs_and_no_other) {
  TwoFacts group({{"data", "abc"}, {"seed", "2"}});
  try {
    check_equal(group, {{"data", "abc"}, {"seed", "1"}, {"rate", "0:1"}});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    EXPECT_STREQ(
        error.what(),
        "the ranks differ: rate is 0:1 on rank 0 and absent on rank 1; seed is 1 on rank 0 "
        "and 2 on rank 1; they must be started with the same program, flags and data");
  }
  EXPECT_NO_THROW(check_equal(group, {{"data", "abc"}, {"seed", "2"}}));
}

}  // namespace
}  // namespace heddle::dist
