// The cases of losses.
#include <numeric>

#include "heddle/ops/loss.h"
#include "tests/ops/case_parts.h"
#include "tests/ops/definitions.h"
#include "tests/ops/references.h"

namespace heddle {
namespace {

// Tokens to predict; the second row of six is ignored.
std::vector<int32_t> some_targets(int64_t rows, int64_t vocab) {
  std::vector<int32_t> targets(rows);
  for (int64_t i = 0; i < rows; ++i) {
    targets[i] = i % 6 == 1 ? -1 : static_cast<int32_t>((4 + 7 * i) % vocab);
  }
  return targets;
}

// Of two classes a row, and `smoothing` of all.
Tensor some_shares(int64_t rows, int64_t classes, float smoothing) {
  Tensor shares = Tensor::full({rows, classes}, smoothing / static_cast<float>(classes));
  for (int64_t r = 0; r < rows; ++r) {
    float* const row = shares.data<float>() + r * classes;
    row[r % classes] += 0.7f * (1 - smoothing),
        row[(3 * r + 1) % classes] += 0.3f * (1 - smoothing);
  }
  return shares;
}

}  // namespace

void add_loss_cases(std::vector<OpCase>& all, const OpSizes& z) {
  const int64_t rows = z.norm[0], width = z.norm[1], vocab = z.vocab;
  const std::vector<int32_t> targets = some_targets(rows, vocab);
  for (float smoothing : {0.0f, 0.1f}) {
    const CrossEntropyOptions o{.smoothing = smoothing, .grad_scale = 0.5f};
    const std::string with = smoothing > 0 ? "_smoothed" : "";
    const auto f = [o, targets](auto op, bool bias) {
      return [=](const Tensors& x) {
        return Tensors{op(x[0], x[1], bias ? x[2] : Tensor(), targets, o).loss};
      };
    };
    all.push_back({.op = "cross_entropy",
                   .variant = "logits" + with,
                   .shapes = {{rows, vocab}},
                   .function =
                       [o, targets](const Tensors& x) {
                         return Tensors{cross_entropy(x[0], targets, o).loss};
                       },
                   .plain =
                       [=](const definition::Inputs& in) {
                         return std::vector{
                             definition::cross_entropy(in[0], vocab, targets, smoothing, 0, 0.5)};
                       }});
    all.push_back(
        {.op = "soft_cross_entropy",
         .variant = "shares" + with,
         .shapes = {{rows, vocab}},
         .function =
             [=](const Tensors& x) {
               return Tensors{
                   soft_cross_entropy(x[0], some_shares(rows, vocab, smoothing), 0.5).loss};
             },
         .plain =
             [=](const definition::Inputs& in) {
               const Tensor shares = some_shares(rows, vocab, smoothing);
               return std::vector{
                   definition::soft_cross_entropy(in[0], vocab, shares.to_floats(), 0.5)};
             }});
    all.push_back({.op = "linear_cross_entropy",
                   .variant = "plain" + with,
                   .shapes = {{rows, width}, {vocab, width}},
                   .function = f(linear_cross_entropy, false),
                   .reference = f(linear_cross_entropy_reference, false)});
    all.push_back({.op = "linear_cross_entropy",
                   .variant = "bias" + with,
                   .shapes = {{rows, width}, {vocab, width}, {vocab}},
                   .function = f(linear_cross_entropy, true),
                   .reference = f(linear_cross_entropy_reference, true),
                   .always_f32 = {2}});
  }
  all.push_back({.op = "squared_error",
                 .variant = "rows",
                 .shapes = {{rows, width}},
                 .function =
                     [=](const Tensors& x) {
                       return Tensors{
                           squared_error(x[0], some_shares(rows, width, 0.5f), 0.5).loss};
                     },
                 .plain =
                     [=](const definition::Inputs& in) {
                       const std::vector<float> t = some_shares(rows, width, 0.5f).to_floats();
                       double sum = 0;
                       for (size_t i = 0; i < t.size(); ++i) {
                         sum += (double{in[0][i]} - t[i]) * (double{in[0][i]} - t[i]) / 2;
                       }
                       return std::vector{sum};
                     }});
  static const std::vector<int32_t> twice = {4, -1, 12, 4, -1, 12};
  const CrossEntropyOptions o{.smoothing = 0.1f, .divergence = 3, .grad_scale = 0.5f};
  all.push_back(
      {.op = "cross_entropy",
       .variant = "divergence",
       .shapes = {{6, 13}},
       .function = [o](const Tensors& x) { return Tensors{cross_entropy(x[0], twice, o).loss}; },
       .plain =
           [](const definition::Inputs& in) {
             return std::vector{definition::cross_entropy(in[0], 13, twice, 0.1, 3, 0.5)};
           }});
  all.push_back({.op = "linear_cross_entropy",
                 .variant = "divergence",
                 .shapes = {{6, 16}, {13, 16}, {13}},
                 .function =
                     [o](const Tensors& x) {
                       return Tensors{linear_cross_entropy(x[0], x[1], x[2], twice, o).loss};
                     },
                 .reference =
                     [o](const Tensors& x) {
                       return Tensors{
                           linear_cross_entropy_reference(x[0], x[1], x[2], twice, o).loss};
                     },
                 .always_f32 = {2}});
}

}  // namespace heddle
