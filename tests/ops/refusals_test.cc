// What ops refuse at their boundary, and that the kind is `shape` for tensors that do not fit.
#include <gtest/gtest.h>

#include <limits>

#include "heddle/ops/attention.h"
#include "heddle/ops/images/patches.h"
#include "heddle/ops/loss.h"
#include "heddle/ops/matmul.h"
#include "heddle/ops/moe.h"
#include "heddle/ops/norm.h"
#include "heddle/ops/quantized.h"
#include "heddle/ops/reduce.h"
#include "heddle/ops/shape.h"
#include "tests/base/temporary.h"

namespace heddle {
namespace {

Tensor ones(const Shape& shape, DType dtype = DType::f32) { return Tensor::full(shape, 1, dtype); }

DropoutSpec spec(float p, std::vector<uint32_t> sample, std::vector<uint32_t> position) {
  return {p, {}, std::make_shared<const RowIds>(RowIds{std::move(sample), std::move(position)})};
}

void refused(const std::vector<std::string>& words, const std::function<void()>& action) {
  expect_error(ErrorKind::shape, words, action);
}

TEST(Refused, key_rows_that_are_none_of_the_keys) {
  const Segments three = Segments::uniform(1, 3);
  for (const Scoring scoring : {Scoring::dot, Scoring::additive}) {
    for (const int32_t outside : {3, 99, -1, std::numeric_limits<int32_t>::min()}) {
      const std::vector<int32_t> rows = {0, outside, 1};
      AttentionOptions options{.key_rows = rows, .scoring = scoring};
      if (scoring == Scoring::additive) options.score_weight = ones({1, 4});
      refused({fmt::format("row {} of the 3", outside)}, [&] {
        attention(ones({3, 4}), ones({3, 4}), ones({3, 4}), three, three, options);
      });
    }
  }
}

TEST(Refused, attention_bias_in_bf16) {
  const Segments three = Segments::uniform(1, 3);
  AttentionOptions options;
  options.bias.table = ones({2, 1}, DType::bf16);
  options.bias.buckets =
      std::make_shared<const std::vector<int32_t>>(std::vector<int32_t>{0, 1, 0});
  refused({"[buckets, 1] f32"}, [&] {
    attention(ones({3, 4}), ones({3, 4}), ones({3, 4}), three, three, options);
  });
}

TEST(Refused, more_experts_than_there_are) {
  for (const int64_t k : {0, 4, 9}) {
    refused({fmt::format("balance_loss: {} of 3 experts", k)}, [&] {
      balance_loss({ones({2, 3})}, k);
    });
  }
  refused({"[2, 4]", "[2, 3]"}, [] { balance_loss({ones({2, 3}), ones({2, 4})}, 1); });
  refused({"no router"}, [] { balance_loss({}, 1); });
}

TEST(Refused, dropout_of_rows_without_a_place_in_the_data) {
  const Tensor x = ones({2, 3});
  DropoutSpec none;
  none.p = 0.5f;
  for (const DropoutSpec& each :
       {spec(0.5f, {0, 1}, {0}), spec(0.5f, {0}, {0}), spec(0.5f, {0}, {0, 1}), none}) {
    refused({"over 2 rows"}, [&] { dropout(x, each); });
  }
  const Segments two = Segments::uniform(1, 2);
  AttentionOptions options{.dropout = none, .scoring = Scoring::additive};
  options.score_weight = ones({1, 3});
  refused({"over 2 rows"}, [&] { attention(x, x, x, two, two, options); });
}

TEST(Refused, dropout_of_all_or_of_what_is_no_probability) {
  const Tensor x = ones({2, 3});
  for (const float p : {1.0f, 2.0f, -0.5f, std::numeric_limits<float>::quiet_NaN()}) {
    expect_error(ErrorKind::usage, {"at least 0 and below 1"}, [&] {
      dropout(x, spec(p, {0, 1}, {0, 0}));
    });
  }
  EXPECT_EQ(dropout(x, {}).raw(), x.raw());
}

TEST(Refused, loss_of_states_and_a_weight_of_unequal_widths) {
  const std::vector<int32_t> targets = {0, 1};
  const auto loss = [&](const Tensor& w, const Tensor& bias) {
    return linear_cross_entropy(ones({2, 4}), w, bias, targets, {});
  };
  refused({"[2, 4]", "[3, 5]"}, [&] { loss(ones({3, 5}), {}); });
  refused({"f32", "bf16"}, [&] { loss(ones({3, 4}, DType::bf16), {}); });
  refused({"bias is [2] f32", "[3] f32"}, [&] { loss(ones({3, 4}), ones({2})); });
  refused({"bias is [3] bf16"}, [&] { loss(ones({3, 4}), ones({3}, DType::bf16)); });
}

TEST(Refused, vectors_and_targets_in_bf16) {
  const Tensor x = ones({2, 4}), w = ones({3, 4});
  const Tensor three = ones({3}, DType::bf16), four = ones({4}, DType::bf16);
  refused({"bias is [3] bf16"}, [&] { linear(x, w, three); });
  refused({"bias is [3] bf16"}, [&] {
    quantized_linear(ones({2, 32}), QuantizedTensor::rounded(ones({3, 32}), 8, 32), three);
  });
  refused({"gamma [4] bf16"}, [&] { layer_norm(x, four, {}, 1e-5f); });
  refused({"beta [4] bf16"}, [&] { layer_norm(x, ones({4}), four, 1e-5f); });
  refused({"[2, 4] bf16"}, [&] { soft_cross_entropy(x, ones({2, 4}, DType::bf16)); });
  refused({"[2, 4] bf16"}, [&] { squared_error(x, ones({2, 4}, DType::bf16)); });
}

TEST(Refused, summands_that_are_not_of_the_result) {
  const Tensor x = ones({4, 3}), w = ones({2, 3});
  for (const Tensor& added : {ones({3, 2}), ones({4, 3}), ones({4, 2}, DType::bf16)}) {
    refused({"linear", "added"}, [&] { linear(x, w, {}, {.added = added}); });
  }
  const std::vector<ImageSize> sizes = {{2, 2}};
  refused({"convolution", "added"}, [&] {
    convolution(x, sizes, ones({2, 12}), {}, {.kernel = 2}, {.added = ones({2, 2})});
  });
}

TEST(Refused, columns_that_do_not_lie_side_by_side) {
  const Tensor across = ones({2, 3}).transposed(0, 1);
  refused({"contiguous"}, [&] { sum(across); });
  refused({"contiguous"}, [&] { softmax(across); });
  refused({"contiguous"}, [&] { reshape(across, {6}); });
}

}  // namespace
}  // namespace heddle
