// Tables of positions.
#include "heddle/nn/position.h"

#include <gtest/gtest.h>

namespace heddle::nn {
namespace {

// A config can promise more positions than memory holds.
TEST(Positions, millions_that_a_config_promises_are_made_when_they_are_needed) {
  constexpr int64_t kWidth = 512, kMade = (int64_t{1} << 24) / kWidth;
  const Positions positions = Positions::sinusoidal(int64_t{1} << 24, kWidth, {});
  const nn::Run run;
  const Tensor made = positions.table(10, run);
  EXPECT_EQ(made.size(0), kMade);
  EXPECT_EQ(positions.table(kMade, run).data<float>(), made.data<float>());  // the same
  const Tensor longer = positions.table(kMade + 3, run);
  ASSERT_GE(longer.size(0), kMade + 3);
  EXPECT_EQ(longer.slice(0, kMade + 2, 1).to_floats(),
            sinusoids(kMade + 2, 1, 1, kWidth).to_floats());
  EXPECT_EQ(longer.slice(0, 9, 1).to_floats(), made.slice(0, 9, 1).to_floats());
}

}  // namespace
}  // namespace heddle::nn
