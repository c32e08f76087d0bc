// Runs killed twenty times at random moments, while starting and saving too, lose nothing.
#include "tests/cli/train_runs.h"

namespace heddle::testing {
namespace {

TEST(TrainKilled, twenty_times_with_the_average_of_the_last_ends_in_the_same_bits) {
  train::TrainConfig config = often_saving("last", "bf16");
  config.max_updates = 400;
  expect_killed_run_equals_whole(config, 25, 1);
}

TEST(TrainKilled, twenty_times_with_the_average_of_the_best_ends_in_the_same_bits) {
  train::TrainConfig config = often_saving("best", "f32");
  config.max_updates = 400;
  expect_killed_run_equals_whole(config, 25, 2);
}

TEST(TrainKilled, twenty_times_before_the_first_state_ends_in_the_same_bits) {
  train::TrainConfig config = small_config();
  config.max_updates = 300;
  config.checkpoint_every = config.validate_every = 200;
  expect_killed_run_equals_whole(config, 20, 3);
}

TEST(TrainKilled, twenty_times_saving_at_every_update_ends_in_the_same_bits) {
  train::TrainConfig config = often_saving("last", "f32");
  config.max_updates = 200;
  config.checkpoint_every = 1;
  config.validate_every = 3;
  expect_killed_run_equals_whole(config, 25, 4);
}

}  // namespace
}  // namespace heddle::testing
