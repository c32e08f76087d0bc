// Permutation language modelling: what a prediction sees, its loss, runs that learn and go on in
// the same bits.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "heddle/base/log.h"
#include "heddle/infer/loading/loaded_model.h"
#include "heddle/train/tasks/losses.h"
#include "heddle/train/trainer.h"
#include "tests/base/temporary.h"
#include "tests/train/small_run.h"

namespace heddle::train {
namespace {

TrainConfig tiny_config(int64_t layers) {
  TrainConfig c = default_config("permutation_lm");
  c.stack.set("n_layer", layers);
  c.stack.set("n_head", 2);
  c.stack.set("d_model", 16);
  c.stack.set("d_inner", 32);
  c.stack.set("vocab_size", 30);
  set_from_string(c, "dropout", "0");
  testing::make_short(c);
  set_from_string(c, "tokenizer_type", "char");
  set_from_string(c, "block_size", "8");
  return c;
}

struct TinyXlnet {
  nn::Parameters parameters{3};
  std::unique_ptr<Model> model;
  explicit TinyXlnet(int64_t layers) {
    TrainConfig config = tiny_config(layers);
    set_from_string(config, "initializer_range", "0.3");
    model = config.stack.make(nn::Scope(parameters));
  }
};

// Two sequences with orders of their own.
struct Sequence {
  std::vector<int32_t> ids;
  Permutation permutation;
};
const std::vector<Sequence> kSequences = {
    {{5, 9, 2, 7, 7, 1}, {.targets = {1, 2, 5}, .steps = {0, 3, 1, 0, 0, 2}}},
    {{8, 3, 4, 6}, {.targets = {0, 3}, .steps = {1, 0, 0, 2}}}};

SequenceBatch batch_of(const std::vector<Sequence>& sequences) {
  SequenceBatch batch;
  for (size_t i = 0; i < sequences.size(); ++i) {
    batch.add(sequences[i].ids, {}, static_cast<int64_t>(i), sequences[i].permutation);
  }
  return batch;
}

std::vector<std::vector<float>> states_of(const Model& model, const std::vector<Sequence>& s) {
  const NoGrad off;
  SequenceBatch batch = batch_of(s);
  const Tensor h = model.hidden(batch.tokens(), {});
  std::vector<std::vector<float>> rows;
  for (int64_t r = 0; r < h.size(0); ++r) rows.push_back(h.slice(0, r, 1).to_floats());
  return rows;
}

// By brute force: another token at a position changes the predictions that may see it, and no
// others.
TEST(SequenceBatch, a_prediction_sees_the_tokens_of_earlier_steps_and_none_else) {
  for (const int64_t layers : {1, 2}) {
    const TinyXlnet tiny(layers);
    const auto before = states_of(*tiny.model, kSequences);
    ASSERT_EQ(before.size(), 5u);
    for (size_t changed = 0; changed < kSequences.size(); ++changed) {
      for (size_t position = 0; position < kSequences[changed].ids.size(); ++position) {
        std::vector<Sequence> other = kSequences;
        other[changed].ids[position] = 20;
        const auto after = states_of(*tiny.model, other);
        for (size_t s = 0, row = 0; s < other.size(); ++s) {
          const Permutation& p = other[s].permutation;
          for (const int32_t target : p.targets) {
            const bool is_seen = s == changed && p.steps[position] < p.steps[target];
            EXPECT_EQ(after[row] != before[row], is_seen)
                << layers << " layers, sequence " << s << ": target " << target << ", token "
                << position;
            ++row;
          }
        }
      }
    }
  }
}

// The mask of transformers' collator, where tokens later in the order are hidden from all, gives
// the same: perm_mask[i, j] is 1 where j is predicted and not before i.
TEST(SequenceBatch, steps_are_the_mask_of_transformers) {
  const TinyXlnet tiny(2);
  SequenceBatch steps = batch_of(kSequences), mask = batch_of(kSequences);
  (void)steps.tokens();
  mask.order.steps.clear();
  for (const Sequence& s : kSequences) {
    for (const int32_t i : s.permutation.steps) {
      for (const int32_t j : s.permutation.steps) mask.order.hidden.push_back(j > 0 && i <= j);
    }
  }
  const NoGrad off;
  const std::vector<float> a = tiny.model->hidden(steps.tokens(), {}).to_floats();
  const std::vector<float> b = tiny.model->hidden(mask.tokens(), {}).to_floats();
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-5) << i;
}

TEST(SequenceBatch, loss_is_that_of_the_logits_of_the_predictions) {
  const TinyXlnet tiny(2);
  SequenceBatch batch = batch_of(kSequences);
  EXPECT_EQ(batch.targets, (std::vector<int32_t>{9, 2, 1, 8, 6}));
  const Answers answers = answer_permuted(*tiny.model, batch, {});
  const std::vector<float> logits = tiny.model->forward(batch.tokens(), {})[0].x.to_floats();
  double sum = 0;
  for (size_t r = 0; r < 5; ++r) {
    const auto row = logits.begin() + static_cast<int64_t>(r) * 30;
    double all = 0;
    for (int i = 0; i < 30; ++i) all += std::exp(double{row[i]});
    sum += std::log(all) - row[batch.targets[r]];
    EXPECT_EQ(answers.answers[r], std::max_element(row, row + 30) - row);
  }
  EXPECT_NEAR(answers.sums.nll, sum, 1e-5 * sum);
  EXPECT_EQ(answers.sums.predicted, 5);
  EXPECT_EQ(answers.sums.tokens, 10);
}

class PermutationRun : public ::testing::Test {
 protected:
  PermutationRun() {
    set_log_level(LogLevel::error);
    std::string text;
    for (int i = 0; i < 300; ++i) text += i * i % 7 < 3 ? "abcdefg\n" : "gfedcba\n";
    folder_.write("text.txt", text);
  }
  ~PermutationRun() override { set_log_level(LogLevel::info); }
  RunResult train(const TrainConfig& config, const std::string& name) {
    return train_model(config, {.paths = {.data = folder_ / "text.txt"}, .out = folder_ / name});
  }
  TemporaryFolder folder_;
};

// What is between two letters follows from them: from log 8 = 2.1 to little.
TEST_F(PermutationRun, model_learns_and_loads) {
  TrainConfig config = tiny_config(1);
  config.max_updates = config.validate_every = 250;
  const RunResult result = train(config, "run");
  EXPECT_LT(result.best.loss, 0.7);
  EXPECT_GT(result.best.metrics.at(0).value, 0.7);
  EXPECT_EQ(load_model(folder_ / "run").model->head(), Head::ordered_token);
}

TEST_F(PermutationRun, run_in_two_ends_in_the_bits_of_a_whole_one) {
  TrainConfig config = tiny_config(2);
  config.accumulate = 3;
  config.max_updates = 40;
  train(config, "whole");
  config.max_updates = 26;
  train(config, "two");
  config.max_updates = 40;
  train(config, "two");
  EXPECT_TRUE(testing::read_file(folder_ / "whole/last/model.safetensors") ==
              testing::read_file(folder_ / "two/last/model.safetensors"));
}

TEST_F(PermutationRun, what_makes_no_sense_is_refused) {
  TrainConfig config = tiny_config(1);
  set_from_string(config, "block_size", "0");
  expect_error(ErrorKind::usage, {"block_size"}, [&] { train(config, "a"); });
  config = tiny_config(1);
  expect_error(ErrorKind::usage, {"plm_probability"},
               [&] { set_from_string(config, "plm_probability", "0"); });
  expect_error(ErrorKind::usage, {"permutation_lm", "xlnet"},
               [] { default_config("permutation_lm", "gpt2"); });
  TrainConfig one_way = tiny_config(1);
  set_from_string(one_way, "attn_type", "uni");
  expect_error(ErrorKind::data, {"attn_type is uni", "bi"}, [&] { train(one_way, "a"); });
  TrainConfig backwards = tiny_config(1);
  set_from_string(backwards, "bi_data", "true");
  expect_error(ErrorKind::usage, {"bi_data"}, [&] { train(backwards, "b"); });
}

// A batch of these alone would have nothing to predict.
TEST_F(PermutationRun, documents_of_unknown_characters_are_left_out) {
  std::string rows;
  for (int i = 0; i < 60; ++i) {
    rows += i % 3 == 0 ? "{\"text\": \"\u4e00\u4e01\u4e02\"}\n" : "{\"text\": \"abcabc\"}\n";
  }
  folder_.write("rows.jsonl", rows);
  const std::string vocabulary =
      folder_.write("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n##a\n##b\n##c\n");
  TrainConfig config = tiny_config(1);
  set_from_string(config, "tokenizer", vocabulary);
  set_from_string(config, "batch_size", "1");
  config.max_updates = config.validate_every = 80;
  const RunResult result =
      train_model(config, {.paths = {.data = folder_ / "rows.jsonl"}, .out = folder_ / "unknown"});
  EXPECT_TRUE(std::isfinite(result.best.loss));
}

}  // namespace
}  // namespace heddle::train
