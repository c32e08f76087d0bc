// Learning rates at points that can be worked out by hand.
#include "heddle/train/optimizer.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/base/temporary.h"

namespace heddle::train {
namespace {

TEST(Schedule, noam_of_the_base_model_gives_the_papers_rates) {
  const ScheduleOptions o{.kind = "noam", .learning_rate = 1, .warmup = 4000, .d_model = 512};
  EXPECT_NEAR(learning_rate(o, 1), 1.7469e-7, 1e-11);
  EXPECT_NEAR(learning_rate(o, 4000), 6.9877e-4, 1e-8);
  EXPECT_NEAR(learning_rate(o, 16000), 6.9877e-4 / 2, 1e-8);  // falls as the root of the update
  EXPECT_GT(learning_rate(o, 4000), learning_rate(o, 3999));
  EXPECT_GT(learning_rate(o, 4000), learning_rate(o, 4001));
}

TEST(Schedule, inverse_sqrt_peaks_at_the_end_of_warm_up) {
  const ScheduleOptions o{.kind = "inverse_sqrt", .learning_rate = 5e-4, .warmup = 100};
  EXPECT_DOUBLE_EQ(learning_rate(o, 1), 5e-6);
  EXPECT_DOUBLE_EQ(learning_rate(o, 50), 2.5e-4);
  EXPECT_DOUBLE_EQ(learning_rate(o, 100), 5e-4);
  EXPECT_DOUBLE_EQ(learning_rate(o, 400), 2.5e-4);
}

TEST(Schedule, linear_falls_evenly_to_the_minimum_at_the_last_update) {
  const ScheduleOptions o{.kind = "linear",
                          .learning_rate = 1,
                          .min_learning_rate = 0.2,
                          .warmup = 10,
                          .max_updates = 110};
  EXPECT_DOUBLE_EQ(learning_rate(o, 5), 0.5);
  EXPECT_DOUBLE_EQ(learning_rate(o, 10), 1);
  EXPECT_DOUBLE_EQ(learning_rate(o, 60), 0.6);
  EXPECT_DOUBLE_EQ(learning_rate(o, 110), 0.2);
  EXPECT_DOUBLE_EQ(learning_rate(o, 500), 0.2);
}

TEST(Schedule, cosine_is_halfway_in_the_middle) {
  const ScheduleOptions o{.kind = "cosine", .learning_rate = 1, .warmup = 0, .max_updates = 100};
  EXPECT_NEAR(learning_rate(o, 25), 0.5 * (1 + std::sqrt(0.5)), 1e-12);
  EXPECT_NEAR(learning_rate(o, 50), 0.5, 1e-12);
  EXPECT_NEAR(learning_rate(o, 100), 0, 1e-12);
}

TEST(Schedule, constant_warms_up_and_stays) {
  const ScheduleOptions o{.kind = "constant", .learning_rate = 0.1, .warmup = 4};
  EXPECT_DOUBLE_EQ(learning_rate(o, 1), 0.025);
  EXPECT_DOUBLE_EQ(learning_rate(o, 4), 0.1);
  EXPECT_DOUBLE_EQ(learning_rate(o, 1000000), 0.1);
}

TEST(Schedule, warm_up_of_zero_begins_at_the_peak) {
  for (const char* kind : {"noam", "inverse_sqrt", "constant"}) {
    const ScheduleOptions o{.kind = kind, .learning_rate = 1, .warmup = 0, .d_model = 1};
    EXPECT_DOUBLE_EQ(learning_rate(o, 1), 1) << kind;
  }
}

TEST(Schedule, unknown_name_is_a_usage_error) {
  for (const int64_t update : {1, 99, 100}) {  // during the warm-up too
    expect_error(ErrorKind::usage, {"'cosin'", "noam", "cosine"}, [&] {
      learning_rate({.kind = "cosin", .warmup = 100, .max_updates = 1000}, update);
    });
  }
}

TEST(Schedule, that_falls_until_an_update_that_is_not_said_is_a_usage_error) {
  for (const char* kind : {"cosine", "linear"}) {
    expect_error(ErrorKind::usage, {kind, "max_updates"},
                 [&] { learning_rate({.kind = kind, .warmup = 10}, 1); });
  }
}

}  // namespace
}  // namespace heddle::train
