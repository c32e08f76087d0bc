// Windows over grids: which row stands where, who sees whom, neighbours that are merged.
#include "heddle/ops/images/windows.h"

#include <gtest/gtest.h>

#include "heddle/ops/attention.h"
#include "tests/base/temporary.h"

namespace heddle {
namespace {

using Ints = std::vector<int32_t>;

TEST(Windows, whole_windows_without_shift_see_all) {
  const GridWindows w = windows_of(std::vector<ImageSize>{{2, 4}}, {.side = 2});
  EXPECT_EQ(w.order->from, (Ints{0, 1, 4, 5, 2, 3, 6, 7}));
  EXPECT_EQ(w.order->to, (Ints{0, 1, 4, 5, 2, 3, 6, 7}));
  EXPECT_EQ(w.segments, Segments::uniform(2, 4));
  EXPECT_EQ(w.visibility, nullptr);
}

// Liu et al. 2021, figure 4: what came round is seen by nobody but what came round with it.
TEST(Windows, shifted_ones_are_cut_into_regions) {
  const GridWindows w = windows_of(std::vector<ImageSize>{{4, 4}}, {.side = 2, .shift = 1});
  EXPECT_EQ(w.order->from, (Ints{5, 6, 9, 10, 7, 4, 11, 8, 13, 14, 1, 2, 15, 12, 3, 0}));
  EXPECT_EQ(w.regions, (Ints{0, 0, 0, 0, 1, 2, 1, 2, 3, 3, 6, 6, 4, 5, 7, 8}));
  ASSERT_NE(w.visibility, nullptr);
  const auto sees = [&](int64_t query, int64_t key) {
    return w.visibility->sees(query, key, key % 4);
  };
  EXPECT_TRUE(sees(0, 3) && sees(4, 6) && sees(8, 9) && sees(15, 15));
  EXPECT_FALSE(sees(4, 5) || sees(8, 10) || sees(12, 13) || sees(15, 12));
}

TEST(Windows, padding_of_a_grid_that_windows_do_not_fill_is_seen) {
  const GridWindows w = windows_of(std::vector<ImageSize>{{2, 3}}, {.side = 2});
  EXPECT_EQ(w.order->from, (Ints{0, 1, 3, 4, 2, -1, 5, -1}));
  EXPECT_EQ(w.visibility, nullptr);
}

TEST(Windows, window_longer_than_a_side_is_clamped_and_not_shifted) {
  const std::vector<ImageSize> grids{{2, 7}};
  const GridWindows w = windows_of(grids, {.side = 3, .shift = 1});
  EXPECT_EQ(w.counts, (Ints{3}));
  EXPECT_EQ((Ints{w.order->from.begin() + 18, w.order->from.end()}),
            (Ints{6, -1, -1, 13, -1, -1, -1, -1, -1}));
  constexpr int32_t kUnseen = Visibility::kUnseen;  // below; what is on the right is padding
  EXPECT_EQ((Ints{w.regions.begin() + 18, w.regions.end()}),
            (Ints{0, 0, 0, 0, 0, 0, kUnseen, kUnseen, kUnseen}));
  const GridWindows whole = windows_of(grids, {.side = 3, .shift = 1, .clamps = false});
  EXPECT_EQ(whole.regions[0], 3) << "shifted, and its padding is seen";
  EXPECT_FALSE(std::ranges::count(whole.regions, kUnseen));
}

TEST(Windows, grids_of_a_batch_are_windowed_one_by_one) {
  const std::vector<ImageSize> grids{{4, 4}, {2, 3}, {4, 4}};
  const GridWindows w = windows_of(grids, {.side = 2, .shift = 1});
  EXPECT_EQ(w.counts, (Ints{4, 2, 4}));
  const GridWindows alone = windows_of(std::span(grids).first(1), {.side = 2, .shift = 1});
  for (size_t i = 0; i < 16; ++i) {
    EXPECT_EQ(w.order->from[24 + i], alone.order->from[i] + 22);
    EXPECT_EQ(w.regions[24 + i], alone.regions[i]);
  }
}

TEST(Windows, neighbours_go_down_before_they_go_right) {
  EXPECT_EQ(neighbours_of(std::vector<ImageSize>{{4, 2}, {3, 1}})->from,
            (Ints{0, 2, 1, 3, 4, 6, 5, 7, 8, 9, -1, -1, 10, -1, -1, -1}));
  EXPECT_EQ(merged_sizes(std::vector<ImageSize>{{4, 2}, {3, 1}}),
            (std::vector<ImageSize>{{2, 1}, {2, 1}}));
}

TEST(Windows, images_are_padded_below_and_on_the_right) {
  EXPECT_EQ(padded_to(std::vector<ImageSize>{{4, 2}}, 2).order, nullptr);
  const PaddedGrids p = padded_to(std::vector<ImageSize>{{1, 3}, {2, 2}}, 2);
  EXPECT_EQ(p.sizes, (std::vector<ImageSize>{{2, 4}, {2, 2}}));
  EXPECT_EQ(p.order->from, (Ints{0, 1, 2, -1, -1, -1, -1, -1, 3, 4, 5, 6}));
}

TEST(Windows, rows_of_another_number_are_refused) {
  const auto order = windows_of(std::vector<ImageSize>{{2, 3}}, {.side = 2}).order;
  expect_error(ErrorKind::shape, {"[7, 3]", "6 rows"}, [&] {
    reorder(Tensor::zeros({7, 3}, DType::f32), order);
  });
  expect_error(ErrorKind::shape, {"[6, 3]", "8 rows"}, [&] {
    restore(Tensor::zeros({6, 3}, DType::f32), order);
  });
}

TEST(Windows, orders_and_windows_that_there_are_not_are_refused) {
  const std::vector<ImageSize> grids{{2, 2}};
  expect_error(ErrorKind::shape, {"row 7", "2 rows"}, [] { RowOrder::of({0, 7}, 2); });
  expect_error(ErrorKind::shape, {"-1 rows"}, [] { RowOrder::of({}, -1); });
  expect_error(ErrorKind::shape, {"0 x 0"}, [&] { windows_of(grids, {.side = 0}); });
  expect_error(ErrorKind::shape, {"by -1"}, [&] { windows_of(grids, {.side = 2, .shift = -1}); });
  expect_error(ErrorKind::shape, {"multiples of 0"}, [&] { padded_to(grids, 0); });
}

}  // namespace
}  // namespace heddle
