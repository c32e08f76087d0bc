// Training attention to look where statistics of the pairs link words.
#include <gtest/gtest.h>

#include "heddle/infer/loading/loaded_model.h"
#include "heddle/infer/words.h"
#include "tests/train/pair_run.h"

namespace heddle::train {
namespace {

class GuidedAlignment : public PairRun {
 protected:
  TrainConfig config_of(const std::string& weight) {
    TrainConfig config = testing::small_config();
    set_from_string(config, "guided_alignment", weight);
    config.max_updates = config.validate_every = 200;
    config.checkpoint_every = 50;
    return config;
  }
  TrainConfig recurrent() {
    TrainConfig config = config_of("1");
    config.model_type = "rnn_seq2seq";
    config.stack = StackConfig(config.model_type);
    config.stack.set("vocab_size", 340);
    config.stack.set("embedding_size", 32);
    config.stack.set("hidden_size", 32);
    config.learning_rate = 0.01;
    return config;
  }
  // The share of held-out target words that are linked with the word they are a translation of:
  // that at the same place, in all of these pairs.
  double aligned_share(const std::string& run) {
    const LoadedModel model = load_translation_model(folder_ / run);
    std::vector<std::vector<int32_t>> sources, targets;
    for (const std::string& line : lines("data/val.en")) {
      sources.push_back(model.tokenizer->encode(line));
    }
    for (const std::string& line : lines("data/val.de")) {
      targets.push_back(model.tokenizer->encode(line));
    }
    double right = 0, all = 0;
    for (const Alignment& links : align_pairs(model, sources, targets)) {
      for (const AlignmentLink& link : links) right += link.source == link.target, ++all;
    }
    EXPECT_GT(all, 200);
    return right / all;
  }
};

TEST_F(GuidedAlignment, attention_learns_which_word_comes_from_which) {
  train(config_of("0"), "plain");
  train(config_of("1"), "guided");
  const double plain = aligned_share("plain"), guided = aligned_share("guided");
  EXPECT_GT(guided, 0.95);
  EXPECT_LT(plain, guided - 0.1);
}

TEST_F(GuidedAlignment, of_a_recurrence_too) {
  train(recurrent(), "guided");
  EXPECT_GT(aligned_share("guided"), 0.95);
}

TEST_F(GuidedAlignment, threads_stops_and_recomputation_change_no_bit) {
  TrainConfig config = config_of("0.5");
  set_from_string(config, "r_drop", "1");
  set_from_string(config, "source_sampling", "0.2");
  set_from_string(config, "target_sampling", "0.1");
  config.max_updates = config.validate_every = 20;
  config.checkpoint_every = 6;
  set_num_threads(1);
  train(config, "whole");
  config.recompute = true;
  train(config, "recomputed");
  EXPECT_TRUE(weights("whole") == weights("recomputed"));
  config.recompute = false;
  set_num_threads(3);
  for (const int64_t updates : {7, 13, 20}) {
    config.max_updates = updates;
    train(config, "cut");
  }
  EXPECT_TRUE(weights("whole") == weights("cut"));
}

// The tokens of drawn subwords are linked as those of the text are.
TEST_F(GuidedAlignment, goes_with_drawn_subwords) {
  TrainConfig config = config_of("1");
  set_from_string(config, "source_sampling", "0.3");
  set_from_string(config, "target_sampling", "0.3");
  train(config, "guided");
  EXPECT_GT(aligned_share("guided"), 0.9);
}

TEST_F(GuidedAlignment, goes_with_the_probabilities_of_a_teacher) {
  train(config_of("0"), "teacher");
  TrainConfig config = config_of("1");
  set_from_string(config, "teaching", "word");
  train(config, "guided", "data", folder_ / "teacher");
  EXPECT_GT(aligned_share("guided"), 0.95);
}

TEST_F(GuidedAlignment, a_model_without_such_attention_is_refused) {
  TrainConfig additive = config_of("1"), fixed = recurrent();
  set_from_string(additive.stack.fields(), "attention_scoring", "additive");
  set_from_string(fixed.stack.fields(), "attention_scoring", "none");
  for (const TrainConfig& config : {additive, fixed}) {
    expect_error(ErrorKind::usage, {"guided_alignment"}, [&] { train(config, "run"); });
  }
}

}  // namespace
}  // namespace heddle::train
