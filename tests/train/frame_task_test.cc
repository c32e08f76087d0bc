// The loop trains a model that reads no tokens, by a task that is made here alone.
#include <gtest/gtest.h>

#include "heddle/base/files/files.h"
#include "heddle/ops/loss.h"
#include "heddle/train/tasks/losses.h"
#include "heddle/train/tasks/task.h"
#include "heddle/train/trainer.h"
#include "tests/base/temporary.h"
#include "tests/models/frame_model.h"

namespace heddle::testing {
namespace {

using train::LossSums;

constexpr int64_t kBatch = 16;

class FrameTask final : public train::Task {
 public:
  struct Fields : train::TaskFields {
    template <class V>
    void fields(V&) {}
    void check_data(const train::TrainConfig&, const train::RunPaths&) const override {}
  };
  static constexpr train::TaskFacts kFacts = {Head::sequence_classes, "loss,accuracy", 100};

  FrameTask(const train::TrainConfig& config, const train::RunPaths&, const std::string&)
      : parameters_(static_cast<uint64_t>(config.seed)) {}

  nn::Parameters& parameters() override { return parameters_; }
  std::string training_key() const override { return "frames"; }
  std::string validation_key() const override { return "frames"; }
  int64_t batches(int64_t) override { return 4; }
  std::vector<std::vector<int64_t>> parts(int64_t, int64_t batch, int64_t count) override {
    std::vector<std::vector<int64_t>> parts(static_cast<size_t>(count));
    for (int64_t i = 0; i < kBatch; ++i) {
      parts[static_cast<size_t>(i * count / kBatch)].push_back(batch * kBatch + i);
    }
    return parts;
  }
  LossSums accumulate(int64_t, std::span<const int64_t> samples, const nn::Run& run) override {
    const Frames frames(std::vector<int64_t>(samples.size(), 3), samples[0]);
    return train::accumulate_classes(*model_, frames.rows(), frames.classes, run);
  }
  train::ValidationScore validate(const nn::Run& run, dist::Group&) override {
    const NoGrad off;
    const Frames frames(std::vector<int64_t>(64, 3), 1000);
    const Tensor logits = model_->forward(frames.rows(), run)[0].x;
    const std::vector<float> values = logits.to_floats();
    double right = 0;
    for (size_t i = 0; i < 64; ++i)
      right += frames.classes[i] == (values[2 * i + 1] > values[2 * i]);
    return {.loss = cross_entropy(logits, frames.classes, {}).nll / 64,
            .metrics = {{"accuracy", right / 64}}};
  }
  std::vector<Json> samples() override { return {}; }
  void save_model(const std::string& folder) const override {
    std::filesystem::create_directories(folder);
    parameters_.save(folder + "/model.safetensors", DType::f32);
  }

 private:
  nn::Parameters parameters_;
  std::unique_ptr<Model> model_ = make_frames(parameters_);
};

TEST(FrameTask, is_trained_by_the_loop_whole_or_in_parts) {
  const TemporaryFolder folder;
  train::TrainConfig config = train::default_config("sequence_classification");
  config.task_config = train::TaskConfig(train::new_fields<FrameTask>());
  config.max_updates = 120, config.validate_every = 60, config.warmup_updates = 1;
  config.learning_rate = 0.01, config.schedule = "constant", config.precision = "f32";
  const auto trained = [&](const std::string& name) {
    const train::RunResult result = train::train_model(config, {.out = folder / name});
    EXPECT_EQ(result.updates, 120) << name;
    EXPECT_LT(result.best.loss, 0.2) << name;  // log 2 at first
    EXPECT_GT(result.best.metric("accuracy"), 0.95) << name;
    return read_file(folder / name + "/last/model.safetensors");
  };
  const std::string whole = trained("whole");
  EXPECT_EQ(trained("again"), whole);
  config.accumulate = 2;
  trained("in_parts");
}

}  // namespace
}  // namespace heddle::testing
