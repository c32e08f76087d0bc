// Sums that leave during the backward pass: which ones do, and the same weights for any number of
// ranks.
#include <gtest/gtest.h>

#include "heddle/autograd/final_gradients.h"
#include "heddle/base/rng.h"
#include "heddle/nn/parameters.h"
#include "heddle/ops/elementwise.h"
#include "heddle/ops/matmul.h"
#include "heddle/ops/reduce.h"
#include "heddle/train/ranks/batch_gradient.h"
#include "tests/support/rank_processes.h"

namespace heddle::testing {
namespace {

using dist::GroupOptions;

constexpr int64_t kLayers = 4, kWidth = 16, kSamples = 32;

// A stack of tanh(W h), the first matrix used again at the end; one parameter has no use, another
// for even samples only. A buffer counts samples.
class StackTask final : public train::Task {
 public:
  explicit StackTask(bool is_recomputed) : is_recomputed_(is_recomputed) {
    const nn::Scope s(all_);
    const auto matrix = [&](const std::string& name) {
      return &(s / name).parameter({kWidth, kWidth}, nn::Init::normal(0.3));
    };
    shared_ = matrix("shared");
    for (int64_t i = 0; i < kLayers; ++i) layers_.push_back(matrix(fmt::format("layer{}", i)));
    sometimes_ = matrix("sometimes");
    matrix("never");
    seen_ = &(s / "seen").buffer(1, nn::Init::zeros());
  }

  /// Whether the backward pass has not come to the lowest layer.
  bool is_above_first_layer() const {
    return FinalGradients::current() != nullptr && !is_at_first_layer_;
  }

  nn::Parameters& parameters() override { return all_; }
  std::string training_key() const override { return ""; }
  std::string validation_key() const override { return ""; }
  int64_t batches(int64_t) override { return 1; }
  train::Parts parts(int64_t, int64_t, int64_t parts) override {
    train::Parts out(static_cast<size_t>(parts));
    for (int64_t i = 0; i < kSamples; ++i) {
      out[static_cast<size_t>(i * parts / kSamples)].push_back(i);
    }
    return out;
  }
  train::LossSums accumulate(int64_t, std::span<const int64_t> samples, const nn::Run&) override {
    Tensor x = Tensor::empty({std::ssize(samples), kWidth}, DType::f32);
    for (size_t r = 0; r < samples.size(); ++r) {
      RngStream random(make_key(5, static_cast<uint64_t>(samples[r]), 0));
      for (int64_t i = 0; i < kWidth; ++i) {
        x.data<float>()[static_cast<int64_t>(r) * kWidth + i] = random.uniform() - 0.5F;
      }
    }
    seen_->value().data<float>()[0] += static_cast<float>(samples.size());
    Tensor h = layer(*shared_, x);
    is_at_first_layer_ = false;
    for (nn::Parameter* one : layers_) {
      const auto f = [one](std::span<const Tensor> in) {
        return std::vector<Tensor>{layer(*one, in[0])};
      };
      h = is_recomputed_ ? recompute(std::array{h}, f)[0] : f(std::array{h})[0];
      if (one != layers_[0]) continue;
      h = record("mark", {h}, h.detached(), [this](const Tensor& dy) {
        is_at_first_layer_ = true;
        return Grads{dy};
      });
    }
    if (samples[0] % 8 == 0) h = layer(*sometimes_, h);  // not of the last part
    backward(sum(linear(h, shared_->in(DType::f32), {})));
    return {.predicted = std::ssize(samples)};
  }
  train::ValidationScore validate(const nn::Run&, dist::Group&) override { return {}; }
  std::vector<Json> samples() override { return {}; }
  void save_model(const std::string&) const override {}

 private:
  static Tensor layer(nn::Parameter& w, const Tensor& h) {
    return activation(Activation::tanh, linear(h, w.in(DType::f32), {}));
  }
  nn::Parameters all_{3};
  std::vector<nn::Parameter*> layers_;
  nn::Parameter *shared_ = nullptr, *sometimes_ = nullptr, *seen_ = nullptr;
  bool is_recomputed_, is_at_first_layer_ = false;
};

// A group that tells which of the sums were started before the lowest layer's backward pass (<),
// and within the pass (w).
class ToldGroup final : public dist::Group {
 public:
  ToldGroup(dist::Group& group, const StackTask& task) : group_(&group), task_(&task) {}
  std::string told;

  int64_t rank() const override { return group_->rank(); }
  int64_t ranks() const override { return group_->ranks(); }
  int64_t start_reduce_scatter(dist::StartedValues of) override {
    const bool is_within = FinalGradients::current() != nullptr;
    told += is_within && std::ssize(told) <= kLayers && task_->is_above_first_layer() ? "<"
            : is_within                                                               ? "w"
                                                                                      : "b";
    return group_->start_reduce_scatter(std::move(of));
  }
  int64_t start_all_gather(dist::StartedValues of) override {
    return group_->start_all_gather(std::move(of));
  }
  void finish(int64_t call) override { group_->finish(call); }
  std::vector<std::string> gather(std::string_view mine) override { return group_->gather(mine); }
  std::string broadcast(std::string_view text) override { return group_->broadcast(text); }
  double seconds_waited() const override { return group_->seconds_waited(); }
  void note_update(int64_t update) override { group_->note_update(update); }
  void expect_work() override { group_->expect_work(); }
  void note_input_wait(bool waits) override { group_->note_input_wait(waits); }
  void leave_with(std::string_view message) noexcept override { group_->leave_with(message); }
  void check_alive() override { group_->check_alive(); }

 private:
  dist::Group* group_;
  const StackTask* task_;
};

struct Weights {
  std::string told;
  std::vector<float> values;
};

// Three updates of 8 shards of two parts, with a bucket for each matrix.
Weights weights_after(dist::Group& real, bool is_recomputed) {
  StackTask task(is_recomputed);
  ToldGroup group(real, task);
  train::BatchGradient gradient(task, 8, 2, group, kWidth * kWidth);
  train::Optimizer optimizer(task.parameters(), {}, gradient.ranges());
  for (int64_t update = 1; update <= 3; ++update) {
    group.told.clear();
    const train::Parts parts = task.parts(0, 0, gradient.parts());
    const train::LossSums own = gradient.compute(0, parts, {});
    EXPECT_EQ(gradient.agree({own}).sums.predicted, kSamples);
    const double norm = gradient.norm(optimizer);
    gradient.step(optimizer, 0.01, 1 / norm);
  }
  Weights found{group.told, {}};
  for (const auto& p : task.parameters().all()) {
    const float* const values = p->value().data<float>();
    found.values.insert(found.values.end(), values, values + p->elements());
  }
  return found;
}

class Overlap : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Recomputed, Overlap, ::testing::Bool());

// Buckets in order: two matrices that the last part has no use for, layers 3 to 0, the shared
// matrix, which is final at the end of the pass, buffers.
TEST_P(Overlap, buckets_leave_within_the_backward_pass_and_the_bits_are_those_of_one) {
  dist::LocalGroup alone;
  const Weights one = weights_after(alone, GetParam());
  EXPECT_EQ(one.told, "");
  EXPECT_EQ(one.values.back(), 3 * kSamples / 8);  // the mean of what 8 shards count
  for (const int64_t ranks : {2, 4, 8}) {
    RankProcesses processes(ranks, [](const GroupOptions& options) {
      const auto group = dist::make_group(options);
      const Weights found = weights_after(*group, GetParam());
      const auto* bytes = reinterpret_cast<const char*>(found.values.data());
      return found.told + std::string(bytes, found.values.size() * sizeof(float));
    });
    const std::string bytes(reinterpret_cast<const char*>(one.values.data()),
                            one.values.size() * sizeof(float));
    for (const RankOutcome& outcome : processes.wait()) {
      EXPECT_EQ(outcome.exit_code, 0) << outcome.text;
      EXPECT_EQ(outcome.text.substr(0, 8), "<<<<<wwb");
      EXPECT_TRUE(outcome.text.substr(8) == bytes) << ranks;
    }
  }
}

TEST(OverlapError, of_one_rank_ends_all_with_its_message) {
  RankProcesses processes(2, [](const GroupOptions& options) {
    const auto group = dist::make_group(options);
    try {
      StackTask task(false);
      train::BatchGradient gradient(task, 8, 2, *group, kWidth * kWidth);
      for (int64_t update = 1;; ++update) {
        group->note_update(update);
        const train::LossSums own = gradient.compute(0, task.parts(0, 0, gradient.parts()), {});
        check(update < 3 || group->rank() == 0, ErrorKind::system, "out: the disk is full");
        gradient.agree({own});
      }
    } catch (const Error& error) {
      group->leave_with(error.what());
      throw;
    }
    return std::string();
  });
  const auto outcomes = processes.wait(20);
  EXPECT_EQ(outcomes[1].text, "out: the disk is full");
  EXPECT_NE(outcomes[0].text.find("out: the disk is full"), std::string::npos) << outcomes[0].text;
  EXPECT_EQ(outcomes[0].exit_code, static_cast<int>(ErrorKind::ranks));
}

}  // namespace
}  // namespace heddle::testing
