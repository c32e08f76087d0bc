// The cases of all ops of heddle/ops, and the checks that each goes through.
#include <gtest/gtest.h>

#include <cmath>

#include "heddle/ops/attention.h"
#include "heddle/ops/elementwise.h"
#include "heddle/ops/embedding.h"
#include "heddle/ops/loss.h"
#include "heddle/ops/matmul.h"
#include "heddle/ops/norm.h"
#include "heddle/ops/reduce.h"
#include "heddle/ops/shape.h"
#include "heddle/ops/softmax.h"
#include "tests/support/op_case.h"

namespace heddle {

std::ostream& operator<<(std::ostream& out, const OpCase& c) {
  return out << c.op << ' ' << c.variant;
}

namespace {

DropoutSpec some_dropout(int64_t rows) {
  auto ids = std::make_shared<RowIds>();
  for (int64_t r = 0; r < rows; ++r) {
    ids->sample.push_back(static_cast<uint32_t>(r / 3));
    ids->position.push_back(static_cast<uint32_t>(r % 3));
  }
  return {0.3f, make_key(1, 2, 3), ids};
}

Segments lengths(const std::vector<int64_t>& l) { return Segments::from_lengths(l); }

void add_elementwise(std::vector<OpCase>& all) {
  const Shape s{5, 19};
  const auto each = [](auto f) {
    return [f](const std::vector<std::vector<float>>& in) {
      std::vector<double> y;
      for (size_t i = 0; i < in[0].size(); ++i) y.push_back(f(in, i));
      return y;
    };
  };
  using In = const std::vector<std::vector<float>>&;
  all.push_back({.op = "add",
                 .variant = "two",
                 .shapes = {s, s},
                 .function = [](const Tensors& x) { return Tensors{add(x[0], x[1])}; },
                 .plain = each([](In in, size_t i) { return double(in[0][i]) + in[1][i]; })});
  all.push_back({.op = "add",
                 .variant = "the_same_twice",
                 .shapes = {s},
                 .function = [](const Tensors& x) { return Tensors{add(x[0], x[0])}; },
                 .plain = each([](In in, size_t i) { return 2.0 * in[0][i]; })});
  all.push_back({.op = "mul",
                 .variant = "two",
                 .shapes = {s, s},
                 .function = [](const Tensors& x) { return Tensors{mul(x[0], x[1])}; },
                 .plain = each([](In in, size_t i) { return double(in[0][i]) * in[1][i]; })});
  all.push_back({.op = "scale",
                 .variant = "by_minus_3",
                 .shapes = {s},
                 .function = [](const Tensors& x) { return Tensors{scale(x[0], -3)}; },
                 .plain = each([](In in, size_t i) { return -3.0 * in[0][i]; })});
  all.push_back({.op = "add_bias",
                 .variant = "rows",
                 .shapes = {s, {19}},
                 .function = [](const Tensors& x) { return Tensors{add_bias(x[0], x[1])}; },
                 .plain = each([](In in, size_t i) { return double(in[0][i]) + in[1][i % 19]; }),
                 .always_f32 = {1}});
  all.push_back({.op = "exp",
                 .variant = "rows",
                 .shapes = {s},
                 .function = [](const Tensors& x) { return Tensors{exp(x[0])}; },
                 .plain = each([](In in, size_t i) { return std::exp(double(in[0][i])); })});
  all.push_back(
      {.op = "cast", .variant = "there_and_back", .shapes = {s}, .function = [](const Tensors& x) {
         const DType other = x[0].dtype() == DType::f32 ? DType::bf16 : DType::f32;
         return Tensors{cast(cast(scale(x[0], 0), other), x[0].dtype())};
       }});
  all.push_back(
      {.op = "dropout", .variant = "p_03", .shapes = {s}, .function = [](const Tensors& x) {
         return Tensors{dropout(x[0], some_dropout(5))};
       }});
}

void add_activations(std::vector<OpCase>& all) {
  const std::vector<std::pair<Activation, std::string>> kinds = {{Activation::relu, "relu"},
                                                                 {Activation::gelu, "gelu"},
                                                                 {Activation::gelu_new, "gelu_new"},
                                                                 {Activation::silu, "silu"},
                                                                 {Activation::tanh, "tanh"}};
  for (const auto& [kind, name] : kinds) {
    for (bool drops : {false, true}) {
      const DropoutSpec spec = drops ? some_dropout(5) : DropoutSpec{};
      const auto f = [kind = kind, spec](auto op) {
        return [=](const Tensors& x) { return Tensors{op(kind, x[0], spec)}; };
      };
      all.push_back({.op = "activation",
                     .variant = name + (drops ? "_with_dropout" : ""),
                     .shapes = {{5, 19}},
                     .function = f(activation),
                     .reference = f(activation_reference),
                     .offset = 0.03f});
    }
  }
}

void add_shapes(std::vector<OpCase>& all) {
  all.push_back({.op = "reshape",
                 .variant = "to_rows",
                 .shapes = {{6, 10}},
                 .function = [](const Tensors& x) {
                   return Tensors{reshape(x[0], {3, 20})};
                 }});
  for (int axis : {0, 1}) {
    all.push_back(
        {.op = "slice",
         .variant = "axis_" + std::to_string(axis),
         .shapes = {{6, 10}},
         .function = [axis](const Tensors& x) { return Tensors{slice(x[0], axis, 2, 3)}; }});
    all.push_back({.op = "concat",
                   .variant = "axis_" + std::to_string(axis),
                   .shapes = {{4, 5}, axis == 0 ? Shape{2, 5} : Shape{4, 2}},
                   .function = [axis](const Tensors& x) { return Tensors{concat(x, axis)}; }});
  }
  all.push_back({.op = "transpose",
                 .variant = "first_and_last",
                 .shapes = {{3, 2, 5}},
                 .function = [](const Tensors& x) { return Tensors{transpose(x[0], 0, 2)}; }});
}

void add_products(std::vector<OpCase>& all) {
  all.push_back({.op = "matmul",
                 .variant = "ragged",
                 .shapes = {{7, 13}, {13, 5}},
                 .function = [](const Tensors& x) { return Tensors{matmul(x[0], x[1])}; },
                 .plain =
                     [](const std::vector<std::vector<float>>& in) {
                       std::vector<double> y(35);
                       for (int i = 0; i < 35; ++i) {
                         for (int l = 0; l < 13; ++l)
                           y[i] += double(in[0][i / 5 * 13 + l]) * in[1][l * 5 + i % 5];
                       }
                       return y;
                     }});
  for (int64_t rows : {7, 300}) {
    const std::string name = std::to_string(rows) + "_rows";
    all.push_back(
        {.op = "linear",
         .variant = name,
         .shapes = {{rows, 24}, {10, 24}},
         .function = [](const Tensors& x) { return Tensors{linear(x[0], x[1], {})}; },
         .reference = [](const Tensors& x) { return Tensors{linear_reference(x[0], x[1], {})}; }});
    all.push_back(
        {.op = "linear",
         .variant = name + "_with_bias",
         .shapes = {{rows, 24}, {10, 24}, {10}},
         .function = [](const Tensors& x) { return Tensors{linear(x[0], x[1], x[2])}; },
         .reference = [](const Tensors& x) { return Tensors{linear_reference(x[0], x[1], x[2])}; },
         .always_f32 = {2}});
  }
}

void add_reductions(std::vector<OpCase>& all) {
  all.push_back(
      {.op = "sum", .variant = "all", .shapes = {{6, 7}}, .function = [](const Tensors& x) {
         return Tensors{sum(x[0])};
       }});
  all.push_back(
      {.op = "mul", .variant = "dot", .shapes = {{6, 7}, {6, 7}}, .function = [](const Tensors& x) {
         return Tensors{dot(x[0], x[1])};
       }});
  all.push_back(
      {.op = "softmax", .variant = "rows", .shapes = {{4, 21}}, .function = [](const Tensors& x) {
         return Tensors{softmax(x[0])};
       }});
}

void add_norms(std::vector<OpCase>& all) {
  const std::vector<Shape> four = {{6, 16}, {6, 16}, {16}, {16}};
  all.push_back(
      {.op = "layer_norm",
       .variant = "rows",
       .shapes = {{6, 16}, {16}, {16}},
       .function = [](const Tensors& x) { return Tensors{layer_norm(x[0], x[1], x[2], 1e-5f)}; },
       .always_f32 = {1, 2}});
  for (bool drops : {false, true}) {
    const std::string with = drops ? "_with_dropout" : "";
    const DropoutSpec spec = drops ? some_dropout(6) : DropoutSpec{};
    const auto f = [&](auto op, bool sum, bool norm) {
      return [=](const Tensors& x) {
        const AddNorm out = op(x[0], x[1], spec, x[2], x[3], 1e-5f);
        return Tensors{sum ? out.sum : Tensor(), norm ? out.norm : Tensor()};
      };
    };
    for (const auto& [sum, norm, name] :
         {std::tuple{true, true, "both"}, {true, false, "only_sum"}, {false, true, "only_norm"}}) {
      all.push_back({.op = "add_norm",
                     .variant = name + with,
                     .shapes = four,
                     .function = f(add_norm, sum, norm),
                     .reference = f(add_norm_reference, sum, norm),
                     .always_f32 = {2, 3}});
    }
    all.push_back(
        {.op = "add",
         .variant = "dropout_add" + with,
         .shapes = {{6, 16}, {6, 16}},
         .function = [spec](const Tensors& x) { return Tensors{dropout_add(x[0], x[1], spec)}; }});
  }
}

const std::vector<int32_t>& ids() {
  static const std::vector<int32_t> some = {3, 0, 3, 8, 1, 3};
  return some;
}
const std::vector<int32_t>& places() {
  static const std::vector<int32_t> some = {0, 1, 2, 0, 1, 2};
  return some;
}

void add_embeddings(std::vector<OpCase>& all) {
  all.push_back({.op = "gather_rows",
                 .variant = "repeated",
                 .shapes = {{9, 12}},
                 .function = [](const Tensors& x) { return Tensors{gather_rows(x[0], ids())}; }});
  for (bool positions : {false, true}) {
    for (bool drops : {false, true}) {
      const DropoutSpec spec = drops ? some_dropout(6) : DropoutSpec{};
      const auto f = [=](auto op) {
        return [=](const Tensors& x) {
          return Tensors{op(x[0], ids(), 4, positions ? x[1] : Tensor(), places(), spec)};
        };
      };
      all.push_back(
          {.op = "embedding",
           .variant = std::string(positions ? "learned_positions" : "words") +
                      (drops ? "_with_dropout" : ""),
           .shapes = positions ? std::vector<Shape>{{9, 12}, {3, 12}} : std::vector<Shape>{{9, 12}},
           .function = f(embedding),
           .reference = f(embedding_reference)});
    }
  }
}

void add_attention(std::vector<OpCase>& all) {
  const Segments same = lengths({3, 1, 7}), queries = lengths({2, 0, 4, 1}),
                 keys = lengths({3, 2, 5, 1});
  for (bool causal : {false, true}) {
    for (bool drops : {false, true}) {
      const std::string name =
          std::string(causal ? "causal" : "all") + (drops ? "_with_dropout" : "");
      const auto options = [=](int64_t rows) {
        return AttentionOptions{
            .heads = 2, .causal = causal, .dropout = drops ? some_dropout(rows) : DropoutSpec{}};
      };
      OpCase c{
          .op = "attention",
          .variant = name,
          .shapes = {{7, 16}, {11, 16}, {11, 16}},
          .function =
              [=](const Tensors& x) {
                return Tensors{attention(x[0], x[1], x[2], queries, keys, options(7))};
              },
          .reference =
              [=](const Tensors& x) {
                return Tensors{attention_reference(x[0], x[1], x[2], queries, keys, options(7))};
              }};
      OpCase self{
          .op = "self_attention",
          .variant = name,
          .shapes = {{11, 48}},
          .function =
              [=](const Tensors& x) { return Tensors{self_attention(x[0], same, options(11))}; },
          .reference =
              [=](const Tensors& x) {
                return Tensors{attention_reference(slice(x[0], 1, 0, 16), slice(x[0], 1, 16, 16),
                                                   slice(x[0], 1, 32, 16), same, same,
                                                   options(11))};
              }};
      OpCase cross{.op = "cross_attention",
                   .variant = name,
                   .shapes = {{7, 16}, {11, 32}},
                   .function =
                       [=](const Tensors& x) {
                         return Tensors{cross_attention(x[0], x[1], queries, keys, options(7))};
                       },
                   .reference =
                       [=](const Tensors& x) {
                         return Tensors{attention_reference(x[0], slice(x[1], 1, 0, 16),
                                                            slice(x[1], 1, 16, 16), queries, keys,
                                                            options(7))};
                       }};
      if (drops) c.reference = self.reference = cross.reference = nullptr;  // it has no dropout
      all.insert(all.end(), {c, self, cross});
    }
  }
}

void add_losses(std::vector<OpCase>& all) {
  static const std::vector<int32_t> targets = {4, -1, 0, 12, 4, 7};
  for (float smoothing : {0.0f, 0.1f}) {
    const CrossEntropyOptions o{.smoothing = smoothing, .grad_scale = 0.5f};
    const std::string with = smoothing > 0 ? "_smoothed" : "";
    const auto f = [o](auto op, bool bias) {
      return [=](const Tensors& x) {
        return Tensors{op(x[0], x[1], bias ? x[2] : Tensor(), targets, o).loss};
      };
    };
    all.push_back({.op = "cross_entropy",
                   .variant = "logits" + with,
                   .shapes = {{6, 13}},
                   .function = [o](const Tensors& x) {
                     return Tensors{cross_entropy(x[0], targets, o).loss};
                   }});
    all.push_back({.op = "linear_cross_entropy",
                   .variant = "plain" + with,
                   .shapes = {{6, 16}, {13, 16}},
                   .function = f(linear_cross_entropy, false),
                   .reference = f(linear_cross_entropy_reference, false)});
    all.push_back({.op = "linear_cross_entropy",
                   .variant = "bias" + with,
                   .shapes = {{6, 16}, {13, 16}, {13}},
                   .function = f(linear_cross_entropy, true),
                   .reference = f(linear_cross_entropy_reference, true),
                   .always_f32 = {2}});
  }
}

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

const std::vector<OpCase>& op_cases() {
  static const std::vector<OpCase> cases = [] {
    std::vector<OpCase> all;
    add_elementwise(all);
    add_activations(all);
    add_shapes(all);
    add_products(all);
    add_reductions(all);
    add_norms(all);
    add_embeddings(all);
    add_attention(all);
    add_losses(all);
    return all;
  }();
  return cases;
}

}  // namespace heddle
