// Training along streams of a text with the memory of the segments before: what it sees, that it
// goes on in the same bits, and that it learns what lies beyond a segment.
#include <gtest/gtest.h>

#include "heddle/base/log.h"
#include "heddle/infer/loading/loaded_model.h"
#include "heddle/infer/perplexity.h"
#include "heddle/train/trainer.h"
#include "tests/base/temporary.h"
#include "tests/train/small_run.h"

namespace heddle::train {
namespace {

// Letters by those 5 before, beyond a segment of 4.
const std::string kText = testing::echoing_text(5);

TrainConfig tiny_config() {
  TrainConfig c = default_config("causal_lm", "transfo-xl");
  for (const char* key : {"n_layer", "n_head", "div_val"}) c.stack.set(key, 1);
  for (const char* key : {"d_model", "d_embed", "d_head"}) c.stack.set(key, 16);
  c.stack.set("d_inner", 32);
  c.stack.set("mem_len", 8);
  set_from_string(c, "dropout", "0");
  testing::make_short(c);
  set_from_string(c, "block_size", "4");
  return c;
}

class MemoryRun : public ::testing::Test {
 protected:
  MemoryRun() {
    set_log_level(LogLevel::error);
    folder_.write("text.txt", kText);
  }
  ~MemoryRun() override { set_log_level(LogLevel::info); }
  RunResult train(const TrainConfig& config, const std::string& name) {
    return train_model(config, {.paths = {.data = folder_ / "text.txt"}, .out = folder_ / name});
  }
  std::string weights(const std::string& name) {
    return testing::read_file(folder_ / (name + "/last/model.safetensors"));
  }
  TemporaryFolder folder_;
};

// The held-out tenth as the run validates on it: 100 blocks in 6 streams of 17.
double plain_validation_loss(const LanguageModel& model, const std::vector<int32_t>& ids) {
  const NoGrad off;
  double nll = 0;
  const int64_t last = static_cast<int64_t>(ids.size()) - 1, each = 17 * 4;
  for (int64_t begin = 0; begin < last; begin += each) {
    const int64_t end = std::min(begin + each, last) + 1;
    nll +=
        likelihood_of_text(model, std::span(ids).subspan(begin, end - begin), {.context = 4}).nll;
  }
  return nll / static_cast<double>(last);
}

TEST_F(MemoryRun, what_lies_beyond_a_segment_is_learnt_by_memory_alone) {
  TrainConfig config = tiny_config();
  config.max_updates = config.validate_every = 400;
  const RunResult with = train(config, "with");
  config.stack.set("mem_len", 0);
  set_from_string(config, "same_length", "false");
  const RunResult without = train(config, "without");
  // With what lies 5 before: 0.85 nats at best; without, log 6 = 1.79.
  EXPECT_LT(with.best.loss, 1.1);
  EXPECT_GT(without.best.loss, 1.7);
}

TEST_F(MemoryRun, validation_is_the_text_read_segment_by_segment) {
  TrainConfig config = tiny_config();
  const RunResult result = train(config, "run");
  const LoadedModel m = load_model(folder_ / "run/best");
  std::vector<int32_t> ids;
  for (const char c : kText.substr(kText.size() * 9 / 10)) ids.push_back(c - 'a');
  const double plain = plain_validation_loss(*m.model->as<LanguageModel>(), ids);
  EXPECT_NEAR(result.best.loss, plain, 1e-5 * plain);
}

TEST_F(MemoryRun, run_in_two_ends_in_the_bits_of_a_whole_one) {
  for (const int64_t accumulate : {1, 3}) {
    TrainConfig config = tiny_config();
    config.accumulate = accumulate;
    config.max_updates = 130;  // an epoch has 112 batches
    const std::string whole = fmt::format("whole-{}", accumulate),
                      two = fmt::format("two-{}", accumulate);
    train(config, whole);
    for (const int64_t updates : {26, 112, 130}) {
      config.max_updates = updates;
      train(config, two);
    }
    EXPECT_TRUE(weights(whole) == weights(two)) << accumulate;
  }
}

TEST_F(MemoryRun, what_makes_no_sense_is_refused) {
  TrainConfig config = tiny_config();
  config.stack.set("mem_len", 0);
  expect_error(ErrorKind::usage, {"same_length", "same_length false"}, [&] { train(config, "a"); });
  config = tiny_config();
  set_from_string(config, "block_size", "0");
  expect_error(ErrorKind::usage, {"block_size"}, [&] { train(config, "a"); });
  set_from_string(config, "block_size", "1000");
  expect_error(ErrorKind::data, {"8 streams", "batch_size"}, [&] { train(config, "a"); });
}

}  // namespace
}  // namespace heddle::train
