// An RNN whose gradients explode: clipping them keeps it alive (Pascanu et al. 2013).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "heddle/nn/recurrent/recurrent_layers.h"
#include "heddle/ops/elementwise.h"
#include "heddle/ops/reduce.h"
#include "heddle/train/optimizer.h"
#include "tests/nn/slopes.h"

namespace heddle::train {
namespace {

struct Trained {
  double largest_norm = 0, loss = 0;
};

// A ReLU RNN over 40 steps whose states grow by a tenth at each; its last state is to be 1.
Trained train(double clip) {
  nn::Parameters all(7);
  const nn::RecurrentLayers layers(nn::Scope(all),
                                   {.cell = RecurrentCell::relu, .in = 4, .width = 16});
  for (const auto& p : all.all()) {
    if (p->name() != "weight_hh_l0") continue;
    for (int64_t i = 0; i < 16; ++i) p->value().data<float>()[i * 17] += 1.1f;
    p->changed(true);
  }
  Optimizer optimizer(all, {.is_sgd = true});
  const Segments sequences = Segments::uniform(4, 40);
  const Tensor x = nn::random_rows(160, 4, 3);
  Trained result;
  for (int64_t update = 0; update < 150; ++update) {
    const Tensor last = layers(x, {.segments = &sequences}, {}, {}).last[0].h;
    const Tensor error = add(last, Tensor::full(last.shape(), -1));
    const Tensor loss = scale(sum(mul(error, error)), 1.0f / 64);
    result.loss = loss.item();
    backward(loss);
    const double norm = optimizer.gradient_norm();
    result.largest_norm = std::max(result.largest_norm, norm);
    optimizer.step(0.01, clip > 0 ? std::min(1.0, clip / norm) : 1);
  }
  return result;
}

TEST(ExplodingRnn, learns_by_clipped_gradients_and_dies_by_whole_ones) {
  const Trained clipped = train(1), whole = train(0);
  EXPECT_GT(clipped.largest_norm, 1e4);
  EXPECT_LT(clipped.loss, 0.5);
  // Dead units give 0, a loss of 1, for ever; or nothing is finite any more.
  EXPECT_FALSE(whole.loss < 0.99) << whole.loss;
}

}  // namespace
}  // namespace heddle::train
