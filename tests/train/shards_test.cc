// Shards of a batch: how gradients lie end to end, the tree along which they are summed, and runs
// whose bits depend on shards alone.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <numeric>

#include "heddle/base/json/json.h"
#include "heddle/base/rng.h"
#include "heddle/kernels/kernels.h"
#include "heddle/train/ranks/batch_gradient.h"
#include "heddle/train/ranks/gradient_tree.h"
#include "tests/base/temporary.h"
#include "tests/train/pair_run.h"

namespace heddle::train {
namespace {

// Sizes that are no multiples of anything, and a buffer and a counter.
struct SomeParameters {
  nn::Parameters all{1};
  SomeParameters() {
    const nn::Scope s(all);
    (s / "a").parameter({7, 5}, nn::Init::ones());
    (s / "b").parameter({3}, nn::Init::ones());
    (s / "mean").buffer(4, nn::Init::zeros());
    (s / "count").counter();
    (s / "c").parameter({200, 3}, nn::Init::ones());
    (s / "d").parameter({33}, nn::Init::ones());
  }
};

// A translator of 4 layers of 256, of which each layer has six matrices between hidden states.
struct TranslatorParameters {
  nn::Parameters all{1};
  TranslatorParameters() {
    const nn::Scope s(all);
    (s / "tokens").parameter({8000, 256}, nn::Init::ones());
    for (int64_t i = 0; i < 4; ++i) {
      const nn::Scope layer = s / "layers" / i;
      for (const char* name : {"q", "k", "v", "o"}) hidden(layer / name, {256, 256});
      hidden(layer / "up", {1024, 256});
      hidden(layer / "down", {256, 1024});
      (layer / "norm").parameter({256}, nn::Init::ones());
    }
  }
  static void hidden(const nn::Scope& s, const Shape& shape) {
    s.parameter(shape, nn::Init::ones()).between_hidden_states();
  }
};

// Elements that a rank's optimizer keeps, of all moments.
int64_t kept(nn::Parameters& parameters, const OptimizerOptions& options,
             std::vector<ElementRange> ranges) {
  int64_t elements = 0;
  const Optimizer optimizer(parameters, options, std::move(ranges));
  for (const Moments& m : optimizer.moments()) {
    for (const Tensor& of : {m.m, m.v, m.ema}) elements += of.defined() ? of.elements() : 0;
  }
  return elements;
}

TEST(GradientLayout, each_rank_keeps_its_share_of_the_moments_within_5_percent) {
  TranslatorParameters p;
  const OptimizerOptions adam{.ema_decay = 0.9}, muon{.is_muon = true};
  std::vector<ElementRange> whole;
  for (const auto& one : p.all.all()) whole.push_back({0, one->elements()});
  const GradientLayout layout(p.all, 8);
  for (const int64_t ranks : {2, 4, 8}) {
    const auto of_muon = layout.ranges_of_muon(p.all, ranks);
    for (int64_t rank = 0; rank < ranks; ++rank) {
      const auto share = [&](const OptimizerOptions& options, std::vector<ElementRange> ranges) {
        return static_cast<double>(ranks * kept(p.all, options, std::move(ranges))) /
               static_cast<double>(kept(p.all, options, whole));
      };
      EXPECT_NEAR(share(adam, layout.ranges(rank, ranks)), 1, 0.05) << rank << " of " << ranks;
      EXPECT_NEAR(share(muon, of_muon[static_cast<size_t>(rank)]), 1, 0.05)
          << rank << " of " << ranks;
    }
  }
}

TEST(GradientLayout, a_matrix_of_muon_is_whole_on_one_rank_and_all_else_is_shared) {
  const TranslatorParameters p;
  const GradientLayout layout(p.all, 8, 600);
  for (const int64_t ranks : {2, 4, 8}) {
    const auto all = layout.ranges_of_muon(p.all, ranks);
    for (size_t i = 0; i < p.all.all().size(); ++i) {
      const nn::Parameter& one = *p.all.all()[i];
      int64_t held = 0;
      for (const auto& of_rank : all) {
        held += of_rank[i].size;
        if (!one.is_hidden_matrix()) continue;
        EXPECT_TRUE(of_rank[i].size == 0 || of_rank[i].size == one.elements()) << one.name();
      }
      EXPECT_EQ(held, one.elements()) << one.name();
    }
  }
}

TEST(GradientLayout, ranks_share_all_elements_whatever_their_number) {
  const SomeParameters p;
  for (const int64_t least : {1, 600, 1 << 20}) {
    const GradientLayout layout(p.all, 8, least);
    for (const GradientLayout::Bucket& b : layout.buckets()) EXPECT_EQ(b.size % (8 * 16), 0);
    for (const int64_t ranks : {1, 2, 4, 8}) {
      std::vector<int64_t> held(p.all.all().size());
      for (int64_t rank = 0; rank < ranks; ++rank) {
        const auto ranges = layout.ranges(rank, ranks);
        for (size_t i = 0; i < held.size(); ++i) held[i] += ranges[i].size;
      }
      for (size_t i = 0; i < held.size(); ++i) EXPECT_EQ(held[i], p.all.all()[i]->elements());
    }
  }
}

TEST(GradientLayout, buffers_lie_apart_and_the_last_parameter_comes_first) {
  const SomeParameters p;
  const GradientLayout layout(p.all, 2);
  ASSERT_EQ(layout.buckets().size(), 2u);
  EXPECT_FALSE(layout.buckets()[0].is_of_buffers);
  EXPECT_TRUE(layout.buckets()[1].is_of_buffers);
  EXPECT_EQ(layout.order(), (std::vector<size_t>{5, 4, 1, 0, 3, 2}));
}

float gradient_value(int64_t shard, int64_t parameter, int64_t element) {
  RngStream random(make_key(3, static_cast<uint64_t>(shard), static_cast<uint64_t>(parameter),
                            static_cast<uint64_t>(element)));
  return random.uniform() - 0.5F;
}

// Of shards 3 and 6 nothing comes for parameter 1.
bool has_gradient(int64_t shard, int64_t parameter) {
  return parameter != 1 || (shard != 3 && shard != 6);
}

TEST(GradientTree, sum_is_that_of_the_tree_by_hand) {
  for (const int64_t shards : {1, 2, 4, 8}) {
    SomeParameters p;
    const GradientLayout layout(p.all, shards, 600);
    GradientTree tree(p.all, layout);
    tree.begin();
    for (int64_t s = 0; s < shards; ++s) {
      for (size_t i = 0; i < p.all.all().size(); ++i) {
        nn::Parameter& one = *p.all.all()[i];
        if (one.is_buffer() || !has_gradient(s, static_cast<int64_t>(i))) continue;
        one.grad() = Tensor::empty(one.shape(), DType::f32);
        for (int64_t e = 0; e < one.elements(); ++e) {
          one.grad().data<float>()[e] = gradient_value(s, static_cast<int64_t>(i), e);
        }
      }
      tree.take();
    }
    const float* const sum = tree.sum().data<float>();
    for (size_t i = 0; i < p.all.all().size(); ++i) {
      const nn::Parameter& one = *p.all.all()[i];
      if (one.is_buffer()) continue;
      for (int64_t e = 0; e < one.elements(); ++e) {
        std::vector<float> level;
        for (int64_t s = 0; s < shards; ++s) {
          const bool came = has_gradient(s, static_cast<int64_t>(i));
          level.push_back(came ? gradient_value(s, static_cast<int64_t>(i), e) : 0);
        }
        for (; level.size() > 1; level.resize(level.size() / 2)) {
          for (size_t k = 0; k < level.size() / 2; ++k) {
            level[k] = level[2 * k] + level[2 * k + 1];
          }
        }
        ASSERT_EQ(sum[layout.begin(i) + e], level[0]) << shards << " " << e;
      }
    }
  }
}

// As in a backward pass: buckets of the last shard in any order, each with its sum at once.
TEST(GradientTree, buckets_of_the_last_shard_have_their_sums_as_they_are_taken) {
  for (const int64_t shards : {1, 2, 8}) {
    SomeParameters whole, by_bucket;
    const GradientLayout layout(whole.all, shards, 600);
    ASSERT_GT(layout.buckets().size(), 2u);
    const auto fill = [](nn::Parameters& all, int64_t s) {
      for (size_t i = 0; i < all.all().size(); ++i) {
        nn::Parameter& one = *all.all()[i];
        if (one.is_buffer() || !has_gradient(s, static_cast<int64_t>(i))) continue;
        one.grad() = Tensor::full(one.shape(), gradient_value(s, static_cast<int64_t>(i), 0));
      }
    };
    GradientTree tree(whole.all, layout), cut(by_bucket.all, layout);
    tree.begin();
    cut.begin();
    for (int64_t s = 0; s < shards; ++s) {
      fill(whole.all, s);
      fill(by_bucket.all, s);
      tree.take();
      if (s + 1 < shards) cut.take();
    }
    const Tensor expected = tree.sum();
    for (size_t b = layout.buckets().size(); b-- > 0;) {
      const GradientLayout::Bucket& bucket = layout.buckets()[b];
      cut.take(bucket);
      const float* const found = cut.sum().data<float>();
      for (int64_t i = bucket.begin; i < bucket.begin + bucket.size; ++i) {
        ASSERT_EQ(found[i], expected.data<float>()[i]) << shards << " " << i;
      }
    }
    EXPECT_EQ(cut.came(), tree.came());
    EXPECT_EQ(cut.bytes(), layout.size() * 4);
  }
}

TEST(GradientTree, each_shard_begins_with_the_buffers_from_before_the_batch) {
  SomeParameters p;
  const GradientLayout layout(p.all, 4);
  GradientTree tree(p.all, layout);
  nn::Parameter& mean = *p.all.all()[2];
  ASSERT_TRUE(mean.is_buffer());
  mean.value().data<float>()[0] = 8;
  tree.begin();
  for (const float change : {1.0F, 2.0F, 4.0F, 0.0F}) {
    EXPECT_EQ(mean.value().data<float>()[0], 8);
    mean.value().data<float>()[0] += change;
    tree.take();
  }
  EXPECT_EQ(mean.value().data<float>()[0], 8);
  EXPECT_EQ(tree.sum().data<float>()[layout.begin(2)], 7);
}

// Each part moves the mean by 1, and is counted.
class MeanTask final : public Task {
 public:
  nn::Parameters& parameters() override { return all_.all; }
  std::string training_key() const override { return ""; }
  std::string validation_key() const override { return ""; }
  int64_t batches(int64_t) override { return 1; }
  Parts parts(int64_t, int64_t, int64_t) override { return {}; }
  LossSums accumulate(int64_t, std::span<const int64_t>, const nn::Run&) override {
    for (const auto& p : all_.all.all()) {
      if (p->is_buffer()) p->value().data<float>()[0] += 1;
    }
    return {};
  }
  ValidationScore validate(const nn::Run&, dist::Group&) override { return {}; }
  std::vector<Json> samples() override { return {}; }
  void save_model(const std::string&) const override {}

 private:
  SomeParameters all_;
};

TEST(BatchGradient, buffers_move_by_the_mean_of_the_shards_that_have_samples) {
  for (const int64_t accumulate : {1, 2}) {
    for (int64_t parts = 1; parts <= 4 * accumulate; ++parts) {
      MeanTask task;
      dist::LocalGroup alone;
      BatchGradient gradient(task, 4, accumulate, alone);
      Optimizer optimizer(task.parameters(), {});
      gradient.agree({.sums = gradient.compute(0, Parts(static_cast<size_t>(parts), {0}), {})});
      gradient.step(optimizer, 0, 1);
      const int64_t shards = (parts + accumulate - 1) / accumulate;
      const auto mean = static_cast<float>(parts) / static_cast<float>(shards);
      const auto value = [&](size_t i) {
        return task.parameters().all()[i]->value().to_floats()[0];
      };
      EXPECT_EQ(value(2), mean) << parts << " parts";
      EXPECT_EQ(value(3), std::round(mean)) << parts << " parts";
    }
  }
}

using ShardedRun = PairRun;

std::vector<double> logged_losses(const std::vector<std::string>& lines) {
  std::vector<double> losses;
  for (const std::string& line : lines) losses.push_back(Json::parse(line).get_double("loss", ""));
  return losses;
}

// Were shards not told to the log and the state, sums of 4 shards would be those of 4 parts.
TEST_F(ShardedRun, shards_give_bits_of_their_own_near_those_of_one) {
  TrainConfig config = testing::small_config();
  train(config, "one");
  config.shards = 4;
  train(config, "four");
  const auto one = logged_losses(lines("one/log.jsonl")),
             four = logged_losses(lines("four/log.jsonl"));
  ASSERT_EQ(one.size(), four.size());
  for (size_t i = 0; i < one.size(); ++i) EXPECT_NEAR(one[i], four[i], 0.02 * one[i]);
  EXPECT_NE(weights("one"), weights("four"));
  expect_error(ErrorKind::usage, {"shards 4, not 2"}, [&] {
    config.shards = 2;
    train(config, "four");
  });
}

TEST_F(ShardedRun, goes_on_in_the_same_bits) {
  TrainConfig config = testing::small_config();
  config.shards = 8;
  config.accumulate = 2;
  config.ema_decay = 0.9;
  config.clip_norm = 0.1;
  config.max_updates = 20;
  train(config, "whole");
  config.max_updates = 13;
  train(config, "two");
  config.max_updates = 20;
  train(config, "two");
  EXPECT_EQ(weights("whole"), weights("two"));
}

TEST_F(ShardedRun, a_number_of_shards_is_a_power_of_two) {
  TrainConfig config = testing::small_config();
  config.shards = 3;
  expect_error(ErrorKind::usage, {"shards 3 is no power of two"}, [&] { train(config, "run"); });
}

}  // namespace
}  // namespace heddle::train
