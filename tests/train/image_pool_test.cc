// Images with and without labels: how they lie together, and what batches hold of them.
#include "heddle/train/tasks/images/image_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "tests/data/image_files.h"
#include "tests/data/image_sets.h"

namespace heddle::train {
namespace {

using testing::counting;
using testing::idx_file;

// 30 images of 2 x 2 pixels: of class 0 two thirds.
struct Drawn {
  TemporaryFolder folder;
  Drawn() {
    std::string labels(30, '\0');
    for (size_t i = 0; i < 30; i += 3) labels[i] = 1;
    folder.write("train-images-idx3-ubyte", idx_file({30, 2, 2}, counting(120)));
    folder.write("train-labels-idx1-ubyte", idx_file({30}, labels));
  }
  ImageSet set() const {
    return open_image_set({.path = folder.path(), .cache_dir = folder / "cache"});
  }
};

TEST(ImagePool, share_of_labels_is_that_of_each_class_and_the_seeds) {
  const Drawn drawn;
  const ImageSet all = drawn.set();
  std::set<std::string> choices;
  for (uint64_t seed = 1; seed < 6; ++seed) {
    const auto [chosen, others] = choose_share(all, 0.25, seed);
    const auto classes = chosen.by_label();
    EXPECT_EQ(classes[0].size(), 5U);  // of 20
    EXPECT_EQ(classes[1].size(), 3U);  // of 10, rounded up
    EXPECT_EQ(others.size(), 22);
    EXPECT_EQ(chosen.key(), choose_share(all, 0.25, seed).chosen.key());
    choices.insert(chosen.key());
  }
  EXPECT_GT(choices.size(), 2U);
  EXPECT_EQ(choose_share(all, 1, 1).others.size(), 0);
}

TEST(ImagePool, numbers_run_through_all_sets) {
  const Drawn drawn;
  const ImageSet all = drawn.set();
  const auto [chosen, others] = choose_share(all, 0.5, 1);
  const ImageSet more =
      open_unlabelled_set({.path = drawn.folder.path(), .cache_dir = drawn.folder / "cache"});
  ASSERT_EQ(more.size(), 30);
  const ImagePool pool(chosen, {others, more});
  ASSERT_EQ(pool.size(), 60);
  EXPECT_EQ(pool.labelled(), 15);
  for (int64_t i = 0; i < 60; ++i) {
    const ImageView expected = i < 15   ? chosen.image(i)
                               : i < 30 ? others.image(i - 15)
                                        : more.image(i - 30);
    EXPECT_TRUE(std::equal(expected.pixels, expected.pixels + 4, pool.image(i).pixels)) << i;
    EXPECT_EQ(pool.has_label(i), i < 15);
  }
  EXPECT_NE(pool.key(), ImagePool(chosen, {others}).key());
}

TEST(ImagePool, batches_of_both_kinds_have_as_many_of_each_and_leave_none_out) {
  const Drawn drawn;
  const auto [chosen, others] = choose_share(drawn.set(), 0.25, 1);
  const ImagePool pool(chosen, {others});  // 8 with labels, 22 without
  TwoKindsPlan plan(pool, 5, 3, 1), again(pool, 5, 3, 1);
  ASSERT_EQ(plan.batches(), 11);
  std::map<int64_t, int> seen;
  for (int64_t epoch = 0; epoch < 3; ++epoch) {
    std::set<int64_t> without;
    for (int64_t b = 0; b < 11; ++b) {
      const std::vector<int64_t> batch = plan.batch(epoch, b);
      for (const int64_t i : batch) {
        EXPECT_TRUE(pool.has_label(i) || without.insert(i).second);
        ++seen[i];
      }
      EXPECT_EQ(std::ranges::count_if(batch, [&](int64_t i) { return !pool.has_label(i); }), 2);
    }
    EXPECT_EQ(without.size(), 22U);
  }
  // 33 batches: 11 rounds of 3, 3 and 2 images with labels.
  for (int64_t i = 0; i < 8; ++i) EXPECT_EQ(seen[i], 11) << i;
  // A pure function of the place.
  EXPECT_EQ(again.batch(2, 7), plan.batch(2, 7));
  EXPECT_EQ(again.batch(0, 3), plan.batch(0, 3));
  EXPECT_NE(plan.batch(0, 3), plan.batch(1, 3));
}

}  // namespace
}  // namespace heddle::train
