// Training on subwords that are drawn anew each epoch.
#include <gtest/gtest.h>

#include "tests/train/pair_run.h"

namespace heddle::train {
namespace {

using SubwordRun = PairRun;

TrainConfig config_of(const std::string& tokenizer, const std::string& source,
                      const std::string& target) {
  TrainConfig config = testing::small_config();
  set_from_string(config, "tokenizer_type", tokenizer);
  set_from_string(config, "source_sampling", source);
  set_from_string(config, "target_sampling", target);
  config.max_updates = 30;
  config.validate_every = 30;
  config.checkpoint_every = 6;
  return config;
}

TEST_F(SubwordRun, threads_and_stops_change_no_bit) {
  for (const char* type : {"bpe", "unigram"}) {
    SCOPED_TRACE(type);
    const std::string name = type;
    TrainConfig config = config_of(type, "0.2", "0.1");
    set_from_string(config, "r_drop", "1");
    set_num_threads(1);
    train(config, name + "-whole");
    set_num_threads(3);
    for (const int64_t updates : {7, 13, 30}) {
      config.max_updates = updates;
      train(config, name + "-cut");
    }
    EXPECT_TRUE(weights(name + "-whole") == weights(name + "-cut"));
  }
}

TEST_F(SubwordRun, each_side_has_its_rate) {
  train(config_of("bpe", "0", "0"), "none");
  train(config_of("bpe", "0.1", "0"), "source");
  train(config_of("bpe", "0", "0.1"), "target");
  EXPECT_FALSE(weights("none") == weights("source"));
  EXPECT_FALSE(weights("none") == weights("target"));
  EXPECT_FALSE(weights("source") == weights("target"));
}

TEST_F(SubwordRun, still_learns_the_text_as_it_is) {
  TrainConfig config = config_of("bpe", "0.1", "0.1");
  config.max_updates = config.validate_every = 300;
  EXPECT_LT(train(config, "run").best.loss, 2);  // of the plain segmentation
}

}  // namespace
}  // namespace heddle::train
