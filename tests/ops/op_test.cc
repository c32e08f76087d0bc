// The checks that every op goes through, one test a case of cases.cc.
#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include "heddle/ops/elementwise.h"

#include "tests/support/op_case.h"

namespace heddle {

std::ostream& operator<<(std::ostream& out, const OpCase& c) {
  return out << c.op << ' ' << c.variant;
}

namespace {

class Op : public testing::TestWithParam<OpCase> {};

TEST_P(Op, forward_equals_the_definition_in_double) { expect_forward_is_right(GetParam()); }
TEST_P(Op, gradients_equal_finite_differences) {
  if (GetParam().op != "cast") expect_gradients_are_finite_differences(GetParam());
}
TEST_P(Op, equals_its_plain_definition_in_f32) { expect_equals_reference(GetParam()); }
TEST_P(Op, is_in_bf16_nearly_what_it_is_in_f32) {
  EXPECT_LE(bf16_error(GetParam()), kMostBf16Error);
}
TEST_P(Op, gives_the_same_bits_with_1_and_4_threads) {
  for (DType dtype : {DType::f32, DType::bf16}) expect_same_bits_for_any_threads(GetParam(), dtype);
}
TEST_P(Op, does_not_depend_on_what_memory_held) {
  for (DType dtype : {DType::f32, DType::bf16}) expect_memory_does_not_matter(GetParam(), dtype);
}

INSTANTIATE_TEST_SUITE_P(All, Op, testing::ValuesIn(op_cases()),
                         [](const auto& each) { return each.param.op + "_" + each.param.variant; });

TEST(OpCases, gradient_that_is_off_by_a_tenth_in_bf16_alone_is_seen) {
  const auto scaled_by = [](float in_bf16) {
    return OpCase{
        .op = "scale", .variant = "wrong", .shapes = {{5, 19}}, .function = [=](const Tensors& x) {
          Tensor y = scale(x[0].detached(), 0.25f);
          return Tensors{record("scale", {x[0]}, y, [=](const Tensor& dy) -> Grads {
            return {scale(dy, dy.dtype() == DType::bf16 ? in_bf16 : 0.25f)};
          })};
        }};
  };
  EXPECT_LE(bf16_error(scaled_by(0.25f)), 0x1p-8);
  EXPECT_GT(bf16_error(scaled_by(0.275f)), 2 * kMostBf16Error);
}

TEST(OpCases, case_without_an_oracle_fails) {
  static const OpCase none{
      .op = "sum", .variant = "none", .shapes = {{1}}, .function = [](const Tensors& x) {
        return Tensors{x[0]};
      }};
  EXPECT_FATAL_FAILURE(expect_forward_is_right(none), "no oracle");
}

}  // namespace
}  // namespace heddle
