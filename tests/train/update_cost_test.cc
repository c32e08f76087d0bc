// Bytes and operations of an update of one matrix, and what a run says of its own.
#include "heddle/train/update_cost.h"

#include <gtest/gtest.h>

#include "heddle/autograd/tape.h"
#include "heddle/ops/matmul.h"
#include "heddle/ops/reduce.h"
#include "heddle/train/trainer.h"
#include "tests/train/small_run.h"

namespace heddle::train {
namespace {

using testing::read_file;
using testing::TempDir;

// y = x w^T of 1,000 rows, and its gradient.
struct OneProduct {
  nn::Parameters parameters{1};
  nn::Parameter& w = nn::Scope(parameters, "w").parameter(Shape({64, 32}), nn::Init::ones());
  Optimizer optimizer{parameters, {.ema_decay = 0.9}};
  UpdateCost cost;

  void update() {
    cost.begin();
    const Tensor x = Tensor::full({1000, 32}, 0.5f, DType::f32);
    backward(sum(linear(x, w.in(DType::f32), {})));
    cost.end(parameters, optimizer, 1000);
  }
};

TEST(UpdateCost, memory_is_that_of_the_parts) {
  OneProduct p;
  p.update();
  const UpdateMemory& m = p.cost.memory();
  constexpr int64_t kMatrix = 4 * 64 * 32, kOutput = 4 * 1000 * 64;
  EXPECT_EQ(m.weights, kMatrix);
  EXPECT_EQ(m.gradients, kMatrix);
  EXPECT_EQ(m.optimizer, 2 * kMatrix);
  EXPECT_EQ(m.average, kMatrix);
  EXPECT_GE(m.activations, kOutput);
  EXPECT_LT(m.activations, 4 * kOutput);
  EXPECT_EQ(m.total(), 5 * kMatrix + m.activations);
  EXPECT_EQ(m.table().size(), 7u);  // a head, five parts, the sum
  EXPECT_EQ(UpdateMemory{.weights = 1'000'000}.table()[1],
            "  weights                              1.0  100 %");
}

TEST(UpdateCost, only_the_first_update_counts) {
  OneProduct p;
  p.update();
  const int64_t first = p.cost.memory().total();
  p.optimizer.step(0.1, 1);
  const Tensor more = Tensor::zeros({1 << 20}, DType::f32);
  p.cost.begin();
  p.cost.end(p.parameters, p.optimizer, 7);
  EXPECT_EQ(p.cost.memory().total(), first);
}

TEST(UpdateCost, share_of_the_peak_grows_with_the_speed) {
  OneProduct p;
  EXPECT_FALSE(p.cost.share_of_peak(1e6, DType::f32));  // no update yet
  p.update();
  const auto one = p.cost.share_of_peak(1e7, DType::f32),
             two = p.cost.share_of_peak(2e7, DType::f32);
  ASSERT_TRUE(one) << "the peak of this CPU is not known";
  EXPECT_GT(*one, 0);
  EXPECT_NEAR(*two / *one, 2, 0.01);
  // Forward and for the weights: 2 * 2 * 64 * 32 operations a row, and a CPU does 1e9 to 1e14.
  EXPECT_LT(*one, 1e7 * 4 * 64 * 32 / 1e9);
  EXPECT_GT(*one, 1e7 * 4 * 64 * 32 / 1e14);
}

TEST(UpdateCost, log_of_a_run_has_the_share_and_its_error_stream_the_table) {
  const TempDir folder;
  testing::write_pairs(folder / "data");
  TrainConfig config = testing::small_config();
  config.max_updates = 20;
  ::testing::internal::CaptureStderr();
  train_model(config,
              {.paths = {.data = (folder / "data").string()}, .out = (folder / "run").string()});
  const std::string said = ::testing::internal::GetCapturedStderr();
  for (const char* part : {"memory of an update", "weights", "gradients", "optimizer state",
                           "activations of a batch", "together"}) {
    EXPECT_NE(said.find(part), std::string::npos) << said;
  }
  const std::string log = read_file(folder / "run" / "log.jsonl");
  EXPECT_NE(log.find("\"share_of_peak\":"), std::string::npos) << log;
}

}  // namespace
}  // namespace heddle::train
