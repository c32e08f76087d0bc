// Roll-out against products of the maps of all heads, formed in another way.
#include "heddle/inspect/attention_rollout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "heddle/inspect/attention_maps.h"
#include "tests/base/temporary.h"
#include "tests/infer/small_models.h"
#include "tests/support/places.h"

namespace heddle::inspect {
namespace {

// A square matrix over all nodes of a model: rows of the target, then those of the source.
struct Square {
  int64_t n;
  std::vector<double> values;
  explicit Square(int64_t size) : n(size), values(static_cast<size_t>(size * size)) {}
  double& at(int64_t i, int64_t j) { return values[static_cast<size_t>(i * n + j)]; }
  double at(int64_t i, int64_t j) const { return values[static_cast<size_t>(i * n + j)]; }
  Square operator*(const Square& other) const {
    Square product(n);
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        for (int64_t k = 0; k < n; ++k) product.at(i, j) += at(i, k) * other.at(k, j);
      }
    }
    return product;
  }
};

// The mean over the heads of a layer at (i, j).
double mean_weight(const Subject& subject, const std::vector<HeadMap>& maps, const char* kind,
                   int64_t layer, int64_t i, int64_t j) {
  double sum = 0;
  int64_t heads = 0;
  for (const HeadMap& map : maps) {
    if (subject.kinds()[map.kind].name != kind || map.layer != layer) continue;
    sum += static_cast<double>(map.weights[static_cast<size_t>(i * map.cols + j)]);
    ++heads;
  }
  return sum / static_cast<double>(heads);
}

const RolledMap& of_kind(const Subject& subject, const std::vector<RolledMap>& maps,
                         const std::string& kind) {
  for (const RolledMap& map : maps) {
    if (subject.kinds()[map.kind].name == kind) return map;
  }
  throw Error(ErrorKind::data, kind + " is not rolled out");
}

TEST(Rollout, of_a_translator_is_the_product_of_its_steps_over_all_nodes) {
  TemporaryFolder folder;
  testing::write_small_model(folder / "model");
  const Subject subject = Subject::open(
      folder / "model", {.source = "the old man reads", .target = "der alte Mann liest!"});
  const std::vector<HeadMap> maps = attention_maps(subject, {.importance = false});
  const int64_t t = subject.sides()[1].size(), s = subject.sides()[0].size();
  // What comes in is read from right to left: the encoder's layers, then each step of the decoder.
  Square all(t + s);
  for (int64_t i = 0; i < t + s; ++i) all.at(i, i) = 1;
  for (int64_t layer = 0; layer < 2; ++layer) {
    Square step(t + s);
    for (int64_t i = 0; i < t; ++i) step.at(i, i) = 1;
    for (int64_t i = 0; i < s; ++i) {
      step.at(t + i, t + i) = 0.5;
      for (int64_t j = 0; j < s; ++j) {
        step.at(t + i, t + j) += mean_weight(subject, maps, "encoder", layer, i, j) / 2;
      }
    }
    all = step * all;
  }
  for (int64_t layer = 0; layer < 2; ++layer) {
    Square own(t + s), cross(t + s);
    for (int64_t i = t; i < t + s; ++i) own.at(i, i) = cross.at(i, i) = 1;
    for (int64_t i = 0; i < t; ++i) {
      own.at(i, i) = cross.at(i, i) = 0.5;
      for (int64_t j = 0; j < t; ++j) {
        own.at(i, j) += mean_weight(subject, maps, "decoder", layer, i, j) / 2;
      }
      for (int64_t j = 0; j < s; ++j) {
        cross.at(i, t + j) = mean_weight(subject, maps, "cross", layer, i, j) / 2;
      }
    }
    all = cross * (own * all);
  }
  const std::vector<RolledMap> rolled = attention_rollout(subject);
  ASSERT_EQ(rolled.size(), 3u);
  const RolledMap &encoder = of_kind(subject, rolled, "encoder"),
                  &decoder = of_kind(subject, rolled, "decoder"),
                  &cross = of_kind(subject, rolled, "cross");
  // f32 weights, whose products are of doubles.
  constexpr double kTolerance = 1e-6;
  for (int64_t i = 0; i < s; ++i) {
    for (int64_t j = 0; j < s; ++j) {
      EXPECT_NEAR(encoder.weights[i * s + j], all.at(t + i, t + j), kTolerance);
    }
  }
  for (int64_t i = 0; i < t; ++i) {
    double sum = 0;
    for (int64_t j = 0; j < t; ++j) {
      EXPECT_NEAR(decoder.weights[i * t + j], all.at(i, j), kTolerance);
      sum += static_cast<double>(decoder.weights[i * t + j]);
    }
    for (int64_t j = 0; j < s; ++j) {
      EXPECT_NEAR(cross.weights[i * s + j], all.at(i, t + j), kTolerance);
      sum += static_cast<double>(cross.weights[i * s + j]);
    }
    EXPECT_NEAR(sum, 1, kTolerance);
  }
}

TEST(Rollout, of_one_text_keeps_to_what_each_token_may_see) {
  const Subject subject = Subject::open(std::string(testing::kFixtures) + "/texts/classify",
                                        {.source = "the quick fox"});
  const std::vector<RolledMap> rolled = attention_rollout(subject);
  ASSERT_EQ(rolled.size(), 1u);
  const int64_t n = rolled[0].rows;
  ASSERT_EQ(n, subject.sides()[0].size());
  const auto layers = subject.kinds()[0].layers;
  for (int64_t i = 0; i < n; ++i) {
    double sum = 0;
    for (int64_t j = 0; j < n; ++j) sum += static_cast<double>(rolled[0].weights[i * n + j]);
    EXPECT_NEAR(sum, 1, 1e-6);
    // At least what the residual connections alone carry.
    EXPECT_GE(rolled[0].weights[i * n + i], std::pow(0.5, layers) - 1e-6);
  }
}

// One map, by whole matrices: the rows of A + I, without the least of the weights that a token may
// give, over their sums.
TEST(Rollout, without_the_least_weights_is_the_product_of_the_others) {
  const Subject subject = Subject::open(std::string(testing::kFixtures) + "/texts/classify",
                                        {.source = "the quick fox"});
  const std::vector<HeadMap> maps = attention_maps(subject, {.importance = false});
  const int64_t n = subject.sides()[0].size();
  Square all(n);
  for (int64_t i = 0; i < n; ++i) all.at(i, i) = 1;
  for (int64_t layer = 0; layer < subject.kinds()[0].layers; ++layer) {
    Square step(n);
    std::vector<double> seen;
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        step.at(i, j) = mean_weight(subject, maps, subject.kinds()[0].name.c_str(), layer, i, j);
        if (step.at(i, j) > 0) seen.push_back(step.at(i, j));
      }
    }
    std::ranges::sort(seen);
    const double least = seen[seen.size() / 2];
    for (int64_t i = 0; i < n; ++i) {
      double sum = 1;
      for (int64_t j = 0; j < n; ++j) sum += step.at(i, j) < least ? 0 : step.at(i, j);
      for (int64_t j = 0; j < n; ++j) {
        const double kept = step.at(i, j) < least ? 0 : step.at(i, j);
        step.at(i, j) = (kept + (i == j ? 1 : 0)) / sum;
      }
    }
    all = step * all;
  }
  const std::vector<RolledMap> rolled = attention_rollout(subject, 0.5);
  ASSERT_EQ(rolled.size(), 1u);
  for (int64_t i = 0; i < n * n; ++i) EXPECT_NEAR(rolled[0].weights[i], all.values[i], 1e-6);
  expect_error(ErrorKind::usage, {"discard"}, [&] { attention_rollout(subject, 1.5); });
}

TEST(Rollout, weights_that_are_not_finite_are_a_data_error) {
  const auto model =
      std::make_shared<LoadedModel>(load_model(std::string(testing::kFixtures) + "/texts/classify",
                                               {.tokenizers = LoadOptions::Tokenizers::if_there}));
  for (auto& p : model->parameters.all()) {
    p->value().data<float>()[0] = std::numeric_limits<float>::quiet_NaN();
    p->changed(true);
  }
  const Subject subject =
      Subject::of(model, subject_text(*model, "m", {.source = "the quick fox"}), {});
  expect_error(ErrorKind::data, {"not finite"}, [&] { attention_rollout(subject); });
}

}  // namespace
}  // namespace heddle::inspect
