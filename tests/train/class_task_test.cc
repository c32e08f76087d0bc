// Masked tokens, classification, tagging: losses against plain definitions, runs that learn and go
// on in the same bits.
#include <gtest/gtest.h>

#include <cmath>

#include "heddle/infer/loading/loaded_model.h"
#include "heddle/train/tasks/losses.h"
#include "tests/train/stack_run.h"

namespace heddle::train {
namespace {

// -log softmax(x)[t], f64.
double plain_loss(const std::vector<float>& x, size_t begin, size_t width, int32_t t) {
  double sum = 0;
  for (size_t i = 0; i < width; ++i) sum += std::exp(double{x[begin + i]});
  return std::log(sum) - x[begin + static_cast<size_t>(t)];
}

TEST(ClassLoss, sums_equal_the_plain_definitions_over_the_heads_logits) {
  for (const Head head : {Head::sequence_classes, Head::token_classes, Head::pretraining}) {
    StackConfig config = tiny_bert("masked_lm").stack;
    config.hub().head = head;
    config.hub().labels = {"a", "b", "c"};
    nn::Parameters parameters(3);
    const auto model = config.make(nn::Scope(parameters));
    SequenceBatch batch;
    batch.add(std::vector<int32_t>{2, 7, 9, 3}, 0);
    batch.add(std::vector<int32_t>{2, 8, 3}, 1);
    std::vector<int32_t> next;
    batch.targets = {-1, 2, 0, -1, -1, 1, -1};
    if (head == Head::sequence_classes) batch.targets = {2, 0};
    if (head == Head::pretraining) next = {1, 0};
    const auto outputs = model->forward(batch.tokens(), {});
    const auto sum_of = [](const Tensor& x, std::span<const int32_t> targets) {
      const std::vector<float> values = x.to_floats();
      const auto width = static_cast<size_t>(x.size(1));
      double sum = 0;
      for (size_t r = 0; r < targets.size(); ++r) {
        if (targets[r] >= 0) sum += plain_loss(values, r * width, width, targets[r]);
      }
      return sum;
    };
    const double plain = sum_of(outputs[0].x, batch.targets);
    const LossSums sums = head == Head::pretraining
                              ? accumulate_masked(*model, batch, next, {})
                              : accumulate_classes(*model, batch.tokens(), batch.targets, {});
    EXPECT_NEAR(sums.nll, plain, 1e-5 * plain);
    EXPECT_EQ(sums.predicted, head == Head::sequence_classes ? 2 : 3);
    EXPECT_EQ(sums.tokens, 7);
    if (head != Head::pretraining) continue;
    const double both = plain + 3.0 / 2 * sum_of(outputs[1].x, next);  // tokens / sequences
    EXPECT_NEAR(sums.loss, both, 1e-5 * both);
  }
}

TEST(ClassLoss, of_a_model_without_the_head_is_a_data_error) {
  for (const Head head : {Head::masked_token, Head::sequence_classes}) {
    StackConfig config = tiny_bert("masked_lm").stack;
    config.hub().head = head;
    config.hub().labels = {"a", "b"};
    nn::Parameters parameters(3);
    const auto model = config.make(nn::Scope(parameters));
    SequenceBatch batch;
    batch.add(std::vector<int32_t>{2, 7, 9, 3}, 0);
    batch.targets = {-1, 2, 0, -1};
    if (head == Head::masked_token) {
      expect_error(ErrorKind::data, {"gives classes", "bert"},
                   [&] { accumulate_classes(*model, batch.tokens(), batch.targets, {}); });
    } else {
      expect_error(ErrorKind::data, {"predicts tokens"},
                   [&] { accumulate_masked(*model, batch, {}, {}); });
      expect_error(ErrorKind::data, {"predicts tokens"},
                   [&] { accumulate_permuted(*model, batch, {}); });
    }
    clear_tape();
  }
}

TEST(Confusion, accuracy_and_macro_f1_by_hand) {
  Confusion c(4);  // class 3 never occurs
  for (const auto& [truth, answer] :
       std::vector<std::pair<int32_t, int32_t>>{{0, 0}, {0, 0}, {0, 1}, {1, 1}, {2, 0}}) {
    c.add(truth, answer);
  }
  EXPECT_DOUBLE_EQ(c.accuracy(), 0.6);
  EXPECT_DOUBLE_EQ(c.macro_f1(), (4.0 / 6 + 2.0 / 3 + 0) / 3);
}

TEST_F(StackRun, classification_learns_and_saves_its_labels) {
  TrainConfig config = tiny_bert("sequence_classification");
  config.max_updates = 120;
  config.validate_every = 30;  // the best of four: at this rate a later loss may jump once more
  const RunResult result = train(config, "run");
  EXPECT_EQ(result.best.metric("accuracy"), 1);
  EXPECT_EQ(result.best.metric("macro_f1"), 1);
  const LoadedModel m = load_model(folder_ / "run");
  EXPECT_EQ(m.model->labels(), (std::vector<std::string>{"false", "true"}));
  EXPECT_EQ(m.model->head(), Head::sequence_classes);
}

TEST_F(StackRun, recurrent_classifier_trains_in_bf16) {
  TrainConfig config = default_config("sequence_classification", "rnn_lm");
  config.stack.set("hidden_size", 16);
  config.stack.set("embedding_size", 12);  // states are projected before a row of each is taken
  config.stack.set("vocab_size", 60);
  testing::make_short(config);
  config.precision = "bf16";
  EXPECT_LT(train(config, "run").best.loss, 0.7);  // log 2 is that of a guess
}

TEST_F(StackRun, tagging_learns) {
  TrainConfig config = tiny_bert("token_classification");
  config.max_updates = config.validate_every = 120;
  EXPECT_EQ(train(config, "run", "words.conll").best.metric("accuracy"), 1);
}

TEST_F(StackRun, masked_tokens_are_learnt_and_fine_tuned_with_a_new_head) {
  TrainConfig config = tiny_bert("masked_lm");
  config.max_updates = config.validate_every = 300;
  const RunResult result = train(config, "mlm");
  EXPECT_LT(result.best.loss, 1.5);  // from log 60 = 4.1; most tokens are free
  const TrainConfig tuning = fine_tuning("sequence_classification", "mlm");
  train(tuning, "tuned", "texts.tsv", "mlm");
  EXPECT_EQ(load_model(folder_ / "tuned").model->labels().size(), 2u);
}

TEST_F(StackRun, each_task_goes_on_in_the_bits_of_a_whole_run) {
  expect_same_bits_in_two(tiny_bert("sequence_classification"), "model.safetensors");
}
TEST_F(StackRun, tagging_goes_on_in_the_bits_of_a_whole_run) {
  expect_same_bits_in_two(tiny_bert("token_classification"), "model.safetensors", "words.conll");
}
TEST_F(StackRun, masked_tokens_go_on_in_the_bits_of_a_whole_run) {
  TrainConfig config = tiny_bert("masked_lm");
  set_from_string(config, "next_sentence", "true");
  config.accumulate = 2;
  config.ema_decay = 0.9;
  expect_same_bits_in_two(config, "model.safetensors");
}

}  // namespace
}  // namespace heddle::train
