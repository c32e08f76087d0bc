// The checks that every op goes through, one test a case of cases.cc.
#include <gtest/gtest.h>

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
TEST_P(Op, equals_its_plain_definition_in_f32) { expect_equals_reference(GetParam(), DType::f32); }
TEST_P(Op, nearly_equals_its_plain_definition_in_bf16) {
  expect_equals_reference(GetParam(), DType::bf16);
}
TEST_P(Op, gives_the_same_bits_with_1_and_4_threads) {
  for (DType dtype : {DType::f32, DType::bf16}) expect_same_bits_for_any_threads(GetParam(), dtype);
}
TEST_P(Op, does_not_depend_on_what_memory_held) {
  for (DType dtype : {DType::f32, DType::bf16}) expect_memory_does_not_matter(GetParam(), dtype);
}

INSTANTIATE_TEST_SUITE_P(All, Op, testing::ValuesIn(op_cases()),
                         [](const auto& each) { return each.param.op + "_" + each.param.variant; });

}  // namespace
}  // namespace heddle
