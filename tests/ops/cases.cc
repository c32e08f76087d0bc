// The cases of all ops of heddle/ops: op_test.cc checks them, bench/ops.cc times them.
#include <cmath>
#include <cstdlib>
#include <numeric>

#include "heddle/ops/elementwise.h"
#include "heddle/ops/embedding.h"
#include "heddle/ops/matmul.h"
#include "heddle/ops/norm.h"
#include "heddle/ops/reduce.h"
#include "heddle/ops/shape.h"
#include "tests/ops/case_parts.h"
#include "tests/ops/definitions.h"
#include "tests/ops/references.h"

namespace heddle {

namespace {

void add_elementwise(std::vector<OpCase>& all, const OpSizes& z) {
  const Shape s = z.elements;
  const int64_t rows = s[0], width = s[1];
  using definition::each;
  using In = const definition::Inputs&;
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
  all.push_back(
      {.op = "add_bias",
       .variant = "rows",
       .shapes = {s, {width}},
       .function = [](const Tensors& x) { return Tensors{add_bias(x[0], x[1])}; },
       .plain = each([width](In in, size_t i) { return double(in[0][i]) + in[1][i % width]; }),
       .always_f32 = {1}});
  all.push_back(
      {.op = "cast",
       .variant = "there_and_back",
       .shapes = {s},
       .function =
           [](const Tensors& x) {
             const DType other = x[0].dtype() == DType::f32 ? DType::bf16 : DType::f32;
             return Tensors{cast(cast(x[0], other), x[0].dtype())};
           },
       .plain = each([](In in, size_t i) { return definition::rounded_to_bf16(in[0][i]); })});
  all.push_back({.op = "dropout",
                 .variant = "p_03",
                 .shapes = {s},
                 .function = [spec = some_dropout(rows)](
                                 const Tensors& x) { return Tensors{dropout(x[0], spec)}; },
                 .plain = each([spec = some_dropout(rows), rows, width](In in, size_t i) {
                   const auto [row, column] = std::lldiv(static_cast<int64_t>(i), width);
                   return double(in[0][i]) * spec.over(rows).factor(row, column);
                 })});
}

void add_activations(std::vector<OpCase>& all, const OpSizes& z) {
  const std::vector<std::pair<Activation, std::string>> kinds = {{Activation::relu, "relu"},
                                                                 {Activation::gelu, "gelu"},
                                                                 {Activation::gelu_new, "gelu_new"},
                                                                 {Activation::silu, "silu"},
                                                                 {Activation::tanh, "tanh"}};
  for (const auto& [kind, name] : kinds) {
    for (bool drops : {false, true}) {
      const DropoutSpec spec = drops ? some_dropout(z.elements[0]) : DropoutSpec{};
      const auto f = [kind = kind, spec](auto op) {
        return [=](const Tensors& x) { return Tensors{op(kind, x[0], spec)}; };
      };
      all.push_back({.op = "activation",
                     .variant = name + (drops ? "_with_dropout" : ""),
                     .shapes = {z.elements},
                     .function = f(activation),
                     .reference = f(activation_reference),
                     .offset = 0.03f});
    }
  }
}

void add_shapes(std::vector<OpCase>& all, const OpSizes& z) {
  const int64_t rows = z.moved[0], width = z.moved[1];
  const auto moved = [](int64_t count, auto from) {
    return definition::moved(count,
                             [from](int64_t i) -> std::pair<int64_t, int64_t> { return from(i); });
  };
  all.push_back({.op = "reshape",
                 .variant = "to_rows",
                 .shapes = {z.moved},
                 .function =
                     [=](const Tensors& x) {
                       return Tensors{reshape(x[0], {rows / 2, 2 * width})};
                     },
                 .plain = moved(rows * width, [](int64_t i) { return std::pair(0, i); })});
  for (int axis : {0, 1}) {
    const int64_t count = z.moved[axis] / 2, across = axis == 0 ? width : count;
    all.push_back(
        {.op = "slice",
         .variant = "axis_" + std::to_string(axis),
         .shapes = {z.moved},
         .function = [=](const Tensors& x) { return Tensors{slice(x[0], axis, 2, count)}; },
         .plain = moved(rows * width / 2, [=](int64_t i) {
           const int64_t r = i / across, c = i % across;
           return std::pair(0, axis == 0 ? (r + 2) * width + c : r * width + c + 2);
         })});
    all.push_back({.op = "concat",
                   .variant = "axis_" + std::to_string(axis),
                   .shapes = {z.moved, axis == 0 ? Shape{rows / 2, width} : Shape{rows, width / 2}},
                   .function = [axis](const Tensors& x) { return Tensors{concat(x, axis)}; },
                   .plain = moved(rows * width * 3 / 2, [=](int64_t i) {
                     if (axis == 0) {
                       return i < rows * width ? std::pair(0, i) : std::pair(1, i - rows * width);
                     }
                     const int64_t r = i / (width * 3 / 2), c = i % (width * 3 / 2);
                     return c < width ? std::pair(0, r * width + c)
                                      : std::pair(1, r * width / 2 + c - width);
                   })});
  }
  const int64_t sixth = rows / 6;
  all.push_back({.op = "join_segments",
                 .variant = "some_empty",
                 .shapes = {{3 * sixth, width}, {2 * sixth, width}},
                 .function =
                     [sixth](const Tensors& x) {
                       const std::vector<int64_t> a = {2 * sixth, 0, sixth}, b = {0, sixth, sixth};
                       return Tensors{join_segments(x[0], Segments::from_lengths(a), x[1],
                                                    Segments::from_lengths(b))};
                     },
                 .plain = moved(5 * sixth * width, [=](int64_t i) {  // a a b a b, a sixth each
                   const int64_t part = i / (sixth * width);
                   constexpr int kInput[] = {0, 0, 1, 0, 1}, kPart[] = {0, 1, 0, 2, 1};
                   return std::pair(kInput[part],
                                    kPart[part] * sixth * width + i % (sixth * width));
                 })});
  all.push_back({.op = "transpose",
                 .variant = "first_and_last",
                 .shapes = {{rows / 2, 2, width / 2}},
                 .function = [](const Tensors& x) { return Tensors{transpose(x[0], 0, 2)}; },
                 .plain = moved(rows / 2 * width, [=](int64_t i) {  // [width / 2, 2, rows / 2]
                   const int64_t a = i / rows, b = i / (rows / 2) % 2, c = i % (rows / 2);
                   return std::pair(0, (c * 2 + b) * (width / 2) + a);
                 })});
}

void add_products(std::vector<OpCase>& all, const OpSizes& z) {
  const auto [m, k, n] = z.product;
  all.push_back({.op = "matmul",
                 .variant = "ragged",
                 .shapes = {{m, k}, {k, n}},
                 .function = [](const Tensors& x) { return Tensors{matmul(x[0], x[1])}; },
                 .plain =
                     [m = m, k = k, n = n](const std::vector<std::vector<float>>& in) {
                       std::vector<double> y(m * n);
                       for (int64_t i = 0; i < m * n; ++i) {
                         for (int64_t l = 0; l < k; ++l)
                           y[i] += double(in[0][i / n * k + l]) * in[1][l * n + i % n];
                       }
                       return y;
                     }});
  const int64_t in = z.linear[0], out = z.linear[1];
  for (int64_t rows : z.linear_rows) {
    const std::string name = std::to_string(rows) + "_rows";
    all.push_back(
        {.op = "linear",
         .variant = name,
         .shapes = {{rows, in}, {out, in}},
         .function = [](const Tensors& x) { return Tensors{linear(x[0], x[1], {})}; },
         .reference = [](const Tensors& x) { return Tensors{linear_reference(x[0], x[1], {})}; }});
    all.push_back(
        {.op = "linear",
         .variant = name + "_with_bias",
         .shapes = {{rows, in}, {out, in}, {out}},
         .function = [](const Tensors& x) { return Tensors{linear(x[0], x[1], x[2])}; },
         .reference = [](const Tensors& x) { return Tensors{linear_reference(x[0], x[1], x[2])}; },
         .always_f32 = {2}});
  }
  for (const Activation kind : {Activation::relu, Activation::gelu, Activation::gelu_new,
                                Activation::silu, Activation::tanh}) {
    all.push_back(
        {.op = "linear",
         .variant = fmt::format("with_activation_{}", static_cast<int>(kind)),
         .shapes = {{5, in}, {out, in}, {out}},
         .function =
             [kind](const Tensors& x) {
               return Tensors{linear(x[0], x[1], x[2], {.activation = kind})};
             },
         .reference =
             [kind](const Tensors& x) { return Tensors{linear_reference(x[0], x[1], x[2], kind)}; },
         .always_f32 = {2}});
  }
}

// Row by row: y = f(row of the first input).
auto of_rows(int64_t width,
             const std::function<definition::Doubles(const definition::Doubles&)>& f) {
  return [=](const definition::Inputs& in) {
    definition::Doubles all;
    for (int64_t r = 0; r < static_cast<int64_t>(in[0].size()) / width; ++r) {
      const definition::Doubles y = f(definition::row(in[0], r, width));
      all.insert(all.end(), y.begin(), y.end());
    }
    return all;
  };
}

void add_reductions(std::vector<OpCase>& all, const OpSizes& z) {
  using In = const definition::Inputs&;
  all.push_back(
      {.op = "sum",
       .variant = "all",
       .shapes = {z.reduced},
       .function = [](const Tensors& x) { return Tensors{sum(x[0])}; },
       .plain =
           [](In in) { return std::vector{std::accumulate(in[0].begin(), in[0].end(), 0.0)}; }});
  all.push_back({.op = "mul",
                 .variant = "dot",
                 .shapes = {z.reduced, z.reduced},
                 .function = [](const Tensors& x) { return Tensors{dot(x[0], x[1])}; },
                 .plain =
                     [](In in) {
                       return std::vector{
                           std::inner_product(in[0].begin(), in[0].end(), in[1].begin(), 0.0)};
                     }});
  all.push_back({.op = "softmax",
                 .variant = "rows",
                 .shapes = {z.softmax},
                 .function = [](const Tensors& x) { return Tensors{softmax(x[0])}; },
                 .plain = of_rows(z.softmax[1], [](const definition::Doubles& x) {
                   definition::Doubles y = x;
                   definition::softmax(y);
                   return y;
                 })});
}

void add_norms(std::vector<OpCase>& all, const OpSizes& z) {
  const Shape rows = z.norm, row = {z.norm[1]};
  const std::vector<Shape> four = {rows, rows, row, row};
  all.push_back(
      {.op = "layer_norm",
       .variant = "rows",
       .shapes = {rows, row, row},
       .function = [](const Tensors& x) { return Tensors{layer_norm(x[0], x[1], x[2], 1e-5f)}; },
       .plain = definition::each([width = rows[1]](const definition::Inputs& in, size_t i) {
         const auto [r, c] = std::lldiv(static_cast<int64_t>(i), width);
         const auto [mean, rstd] =
             definition::mean_and_rstd(definition::row(in[0], r, width), 1e-5);
         return (in[0][i] - mean) * rstd * in[1][c] + in[2][c];
       }),
       .always_f32 = {1, 2}});
  all.push_back(
      {.op = "rms_norm",
       .variant = "rows",
       .shapes = {rows, row},
       .function = [](const Tensors& x) { return Tensors{layer_norm(x[0], x[1], {}, 1e-5f)}; },
       .plain =
           [width = rows[1]](const std::vector<std::vector<float>>& in) {
             std::vector<double> y;
             for (size_t i = 0; i < in[0].size(); ++i) {
               double sum = 0;
               for (int64_t c = 0; c < width; ++c) {
                 const double x = in[0][i / width * width + c];
                 sum += x * x;
               }
               y.push_back(in[0][i] * in[1][i % width] /
                           std::sqrt(sum / static_cast<double>(width) + 1e-5));
             }
             return y;
           },
       .always_f32 = {1}});
  const Segments images =
      Segments::from_lengths(std::vector<int64_t>{rows[0] / 3, rows[0] - rows[0] / 3});
  all.push_back({.op = "group_norm",
                 .variant = "two_groups",
                 .shapes = {rows, row, row},
                 .function =
                     [=](const Tensors& x) {
                       return Tensors{group_norm(x[0], x[1], x[2], images, 2, 1e-5f)};
                     },
                 .plain =
                     [=, width = rows[1]](const definition::Inputs& in) {
                       definition::Doubles y(in[0].size());
                       for (int64_t s = 0; s < images.count(); ++s) {
                         for (int64_t group = 0; group < 2; ++group) {
                           definition::Doubles of;
                           std::vector<size_t> at;
                           for (int64_t r = images.begin(s); r < images.begin(s) + images.length(s);
                                ++r) {
                             for (int64_t c = 0; c < width / 2; ++c) {
                               at.push_back(static_cast<size_t>(r * width + group * width / 2 + c));
                               of.push_back(in[0][at.back()]);
                             }
                           }
                           const auto [mean, rstd] = definition::mean_and_rstd(of, 1e-5);
                           for (const size_t i : at) {
                             const size_t c = i % static_cast<size_t>(width);
                             y[i] = (in[0][i] - mean) * rstd * in[1][c] + in[2][c];
                           }
                         }
                       }
                       return y;
                     },
                 .always_f32 = {1, 2}});
  for (bool drops : {false, true}) {
    const std::string with = drops ? "_with_dropout" : "";
    const DropoutSpec spec = drops ? some_dropout(rows[0]) : DropoutSpec{};
    const auto rms = [&](auto op) {
      return [=](const Tensors& x) {
        const AddNorm out = op(x[0], x[1], spec, x[2], Tensor(), 1e-5f);
        return Tensors{out.sum, out.norm};
      };
    };
    all.push_back({.op = "add_rms_norm",
                   .variant = "both" + with,
                   .shapes = {rows, rows, row},
                   .function = rms(add_norm),
                   .reference = rms(add_norm_reference),
                   .always_f32 = {2}});
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
         .shapes = {rows, rows},
         .function = [spec](const Tensors& x) { return Tensors{dropout_add(x[0], x[1], spec)}; },
         .plain = definition::each([spec, rows](const definition::Inputs& in, size_t i) {
           const auto [r, c] = std::lldiv(static_cast<int64_t>(i), rows[1]);
           return in[0][i] + double(in[1][i]) * spec.over(rows[0]).factor(r, c);
         })});
  }
}

// Tokens of a table, some of them more than once.
std::vector<int32_t> some_ids(int64_t n, int64_t table) {
  std::vector<int32_t> ids(n);
  for (int64_t i = 0; i < n; ++i) ids[i] = static_cast<int32_t>((3 + 5 * i * i) % table);
  return ids;
}

void add_embeddings(std::vector<OpCase>& all, const OpSizes& z) {
  const Shape table = z.table, positions_table = {3, z.table[1]};
  const std::vector<int32_t> ids = some_ids(z.tokens, table[0]),
                             position_ids = some_positions(z.tokens, 3);
  all.push_back({.op = "gather_rows",
                 .variant = "repeated",
                 .shapes = {table},
                 .function = [ids](const Tensors& x) { return Tensors{gather_rows(x[0], ids)}; },
                 .plain = definition::moved(z.tokens * table[1], [=](int64_t i) {
                   return std::pair<int64_t, int64_t>(0,
                                                      ids[i / table[1]] * table[1] + i % table[1]);
                 })});
  for (bool positions : {false, true}) {
    for (bool drops : {false, true}) {
      const DropoutSpec spec = drops ? some_dropout(z.tokens) : DropoutSpec{};
      const auto f = [=](auto op) {
        return [=](const Tensors& x) {
          return Tensors{op(x[0], ids, 4, positions ? x[1] : Tensor(), position_ids, spec)};
        };
      };
      all.push_back({.op = "embedding",
                     .variant = std::string(positions ? "learned_positions" : "tokens") +
                                (drops ? "_with_dropout" : ""),
                     .shapes = positions ? std::vector<Shape>{table, positions_table}
                                         : std::vector<Shape>{table},
                     .function = f([](const auto&... x) { return embedding(x...); }),
                     .reference = f(embedding_reference)});
    }
  }
}

}  // namespace

std::vector<OpCase> op_cases(const OpSizes& sizes) {
  std::vector<OpCase> all;
  add_elementwise(all, sizes);
  add_activations(all, sizes);
  add_shapes(all, sizes);
  add_products(all, sizes);
  add_reductions(all, sizes);
  add_norms(all, sizes);
  add_embeddings(all, sizes);
  add_attention_cases(all, sizes);
  add_recurrent_cases(all, sizes);
  add_patch_cases(all, sizes);
  add_box_cases(all, sizes);
  add_batch_norm_cases(all, sizes);
  add_loss_cases(all, sizes);
  return all;
}

const std::vector<OpCase>& op_cases() {
  static const std::vector<OpCase> cases = op_cases(OpSizes());
  return cases;
}

}  // namespace heddle
