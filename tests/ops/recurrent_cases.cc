// The cases of recurrent ops: cells, ways, attention by each scoring.
#include <cmath>

#include "heddle/ops/attention.h"
#include "heddle/ops/elementwise.h"
#include "heddle/ops/recurrent/attention_penalties.h"
#include "tests/ops/case_parts.h"
#include "tests/ops/definitions.h"
#include "tests/ops/recurrent_references.h"

namespace heddle {
namespace {

// Weights of a step are a quarter of the inputs': states neither saturate nor grow.
Tensor small(const Tensor& x) { return scale(x, 0.25f); }

// Pre-activations far from the kink of ReLU: one state in two is always 0.
Tensor from_kink(const Tensor& x) {
  Tensor far = Tensor::empty(x.shape(), x.dtype());
  for (int64_t i = 0; i < x.elements(); ++i) {
    set_element(far.rows(), i / x.size(1), i % x.size(1), i % 2 == 0 ? 6 : -6);
  }
  return add(x, far);
}

Tensors outputs_of(const Recurrence& y) { return {y.h, y.last.h, y.last.c}; }

void add_recurrence(std::vector<OpCase>& all, const OpSizes& z) {
  const Segments some = Segments::from_lengths(z.sentences);
  const int64_t h = z.width, n = some.count(), rows = some.rows();
  for (const auto& [cell, name] : {std::pair{RecurrentCell::tanh, "tanh"},
                                   {RecurrentCell::relu, "relu"},
                                   {RecurrentCell::gru, "gru"},
                                   {RecurrentCell::lstm, "lstm"}}) {
    const int64_t gates = gates_of(cell) * h;
    for (const bool is_reversed : {false, true}) {
      const RecurrenceOptions options{.cell = cell, .is_reversed = is_reversed};
      const auto f = [=](auto op) {
        return [=](const Tensors& x) {
          const CellState begin{x[3], options.cell == RecurrentCell::lstm ? x[4] : Tensor()};
          const bool has_kink = options.cell == RecurrentCell::relu;
          const Tensor w = has_kink ? scale(x[1], 0.0625f) : small(x[1]);
          return outputs_of(op(has_kink ? from_kink(x[0]) : x[0], {w, x[2]}, begin, some, options));
        };
      };
      OpCase c{.op = "recurrence",
               .variant = fmt::format("{}{}", name, is_reversed ? "_reversed" : ""),
               .shapes = {{rows, gates}, {gates, h}, {gates}, {n, h}},
               .function = f(recurrence),
               .reference = f(recurrence_reference),
               .always_f32 = {2}};
      if (cell == RecurrentCell::lstm) c.shapes.push_back({n, h}), c.always_f32.push_back(4);
      all.push_back(c);
    }
  }
  const auto f = [=](auto op) {
    return [=](const Tensors& x) {
      const Recurrence y = op(x[0], {small(x[1]), {}}, {}, some, {.cell = RecurrentCell::lstm});
      return Tensors{Tensor(), Tensor(), y.last.c};
    };
  };
  all.push_back({.op = "recurrence",
                 .variant = "lstm_from_zeros_last_c_alone",
                 .shapes = {{rows, 4 * h}, {4 * h, h}},
                 .function = f(recurrence),
                 .reference = f(recurrence_reference)});
}

struct AttentiveCase {
  std::string name;
  AttentiveOptions options;
  bool has_query, is_gated, has_begin, has_asked = false;
};

void add_attentive(std::vector<OpCase>& all, const OpSizes& z) {
  // Sources without tokens, and sentences without, come in recurrent_test.
  const Segments targets = Segments::from_lengths(z.sentences);
  std::vector<int64_t> lengths(z.sentences.rbegin(), z.sentences.rend());
  const Segments keys = Segments::from_lengths(lengths);
  const int64_t h = z.width, e = h + 3, n = targets.count();
  for (const AttentiveCase& k :
       {AttentiveCase{
            "lstm_additive_gated", {RecurrentCell::lstm, Scoring::additive}, true, true, true},
        AttentiveCase{"gru_dot", {RecurrentCell::gru, Scoring::dot, 0.3f}, false, false, false},
        AttentiveCase{"tanh_linear", {RecurrentCell::tanh, Scoring::linear}, true, false, true},
        AttentiveCase{"gru_scaled_dot_gated", {RecurrentCell::gru, Scoring::dot}, true, true, true},
        AttentiveCase{"lstm_additive_asked",
                      {RecurrentCell::lstm, Scoring::additive},
                      true,
                      false,
                      false,
                      true},
        AttentiveCase{
            "gru_dot_asked", {RecurrentCell::gru, Scoring::dot}, false, false, false, true}}) {
    const int64_t d = k.has_query ? h - 2 : h, gates = gates_of(k.options.cell) * h;
    const int64_t score = k.options.scoring == Scoring::dot      ? 0
                          : k.options.scoring == Scoring::linear ? 2 * d
                                                                 : d;
    OpCase c{.op = "attentive_recurrence", .variant = k.name, .shapes = {}, .function = {}};
    c.shapes = {{targets.rows(), gates}, {gates, h},      {gates}, {gates, e},
                {keys.rows(), d},        {keys.rows(), e}};
    c.always_f32 = {2};
    const auto input = [&](bool is_there, const Shape& shape, bool is_f32 = false) {
      if (!is_there) return size_t{0};
      if (is_f32) c.always_f32.push_back(static_cast<int>(c.shapes.size()));
      c.shapes.push_back(shape);
      return c.shapes.size() - 1;
    };
    const size_t query = input(k.has_query, {d, h}), weight = input(score > 0, {1, score});
    const size_t gate = input(k.is_gated, {1, h}), gate_bias = input(k.is_gated, {1}, true);
    const size_t begin_h = input(k.has_begin, {n, h});
    const size_t begin_c =
        input(k.has_begin && k.options.cell == RecurrentCell::lstm, {n, h}, true);
    const size_t asked = input(k.has_asked, {targets.rows(), d});
    const auto f = [=](auto op) {
      return [=](const Tensors& x) {
        const auto at = [&](size_t i) { return i == 0 ? Tensor() : x[i]; };
        AttentiveWeights w{.state = {small(x[1]), x[2]}, .context = small(x[3])};
        if (query != 0) w.query = small(x[query]);
        w.score = at(weight), w.gate = at(gate), w.gate_bias = at(gate_bias);
        const AttentiveRecurrence y =
            op(x[0], w, AttendedSources{.k = x[4], .v = x[5], .keys = &keys, .asked = at(asked)},
               {at(begin_h), at(begin_c)}, targets, k.options);
        return Tensors{y.states.h, y.contexts, y.weights, y.states.last.h, y.states.last.c};
      };
    };
    c.function = f(attentive_recurrence), c.reference = f(attentive_reference);
    all.push_back(c);
  }
}

// What unevenness() is asked of where the weights are not those of a recurrence.
void add_mean_weights(std::vector<OpCase>& all, const OpSizes& z) {
  const Segments queries = Segments::from_lengths(z.queries);
  const Segments keys = Segments::from_lengths(z.keys);
  const int64_t w = z.width, heads = z.heads, d = w / heads;
  const auto plain = [=](const definition::Inputs& in) {
    definition::Doubles means;
    for (int64_t s = 0; s < queries.count(); ++s) {
      for (int64_t i = queries.begin(s); i < queries.end(s); ++i) {
        std::vector<double> mean(static_cast<size_t>(keys.length(s)));
        for (int64_t h = 0; h < heads; ++h) {
          std::vector<double> e;
          double sum = 0;
          for (int64_t j = keys.begin(s); j < keys.end(s); ++j) {
            double score = 0;
            for (int64_t c = h * d; c < (h + 1) * d; ++c) {
              score += double{in[0][i * w + c]} * in[1][j * w + c];
            }
            e.push_back(std::exp(score / std::sqrt(static_cast<double>(d))));
            sum += e.back();
          }
          for (size_t j = 0; j < e.size(); ++j) {
            mean[j] += e[j] / sum / static_cast<double>(heads);
          }
        }
        means.insert(means.end(), mean.begin(), mean.end());
      }
    }
    return means;
  };
  all.push_back({.op = "mean_attention_weights",
                 .variant = "ragged",
                 .shapes = {{queries.rows(), w}, {keys.rows(), w}},
                 .function =
                     [=](const Tensors& x) {
                       return Tensors{
                           mean_attention_weights(x[0], x[1], queries, keys, {.heads = heads})};
                     },
                 .plain = plain});
}

void add_unevenness(std::vector<OpCase>& all, const OpSizes& z) {
  const Segments targets = Segments::from_lengths(z.queries), keys = Segments::from_lengths(z.keys);
  int64_t pairs = 0;
  for (int64_t s = 0; s < keys.count(); ++s) pairs += targets.length(s) * keys.length(s);
  all.push_back({.op = "unevenness",
                 .variant = "ragged",
                 .shapes = {{pairs}},
                 .function =
                     [=](const Tensors& x) {
                       return Tensors{unevenness(cast(x[0], DType::f32), targets, keys)};
                     },
                 .plain =
                     [=](const definition::Inputs& in) {
                       double total = 0;
                       for (int64_t s = 0, first = 0; s < keys.count(); ++s) {
                         const int64_t m = keys.length(s);
                         for (int64_t key = 0; key < m; ++key) {
                           double sum = 0;
                           for (int64_t r = 0; r < targets.length(s); ++r)
                             sum += in[0][first + r * m + key];
                           total += (1 - sum) * (1 - sum);
                         }
                         first += targets.length(s) * m;
                       }
                       return definition::Doubles{total / static_cast<double>(keys.count())};
                     }});
}

// Of weights, which are positive.
void add_entropy(std::vector<OpCase>& all, const OpSizes& z) {
  const int64_t rows = 3, pairs = rows * z.width;
  all.push_back({.op = "mean_entropy",
                 .variant = "squares",
                 .shapes = {{pairs}},
                 .function =
                     [=](const Tensors& x) {
                       const Tensor root = cast(x[0], DType::f32);
                       return Tensors{mean_entropy(mul(root, root), rows)};
                     },
                 .plain =
                     [=](const definition::Inputs& in) {
                       double sum = 0;
                       for (int64_t i = 0; i < pairs; ++i) {
                         const double weight = double{in[0][i]} * in[0][i];
                         sum -= weight * std::log(weight);
                       }
                       return definition::Doubles{sum / static_cast<double>(rows)};
                     }});
}

// Of rows that want one of their keys, or two of them; of weights, which are positive.
void add_guided(std::vector<OpCase>& all, const OpSizes& z) {
  const int64_t w = z.width;
  const WantedWeights wanted{.places = {w - 1, w, w + 1, w + 1}, .begins = {0, 1, 3, 4}};
  all.push_back({.op = "guided_attention_loss",
                 .variant = "squares",
                 .shapes = {{3 * w}},
                 .function =
                     [=](const Tensors& x) {
                       const Tensor root = cast(x[0], DType::f32);
                       return Tensors{guided_attention_loss(mul(root, root), wanted)};
                     },
                 .plain =
                     [=](const definition::Inputs& in) {
                       const auto weight = [&](int64_t i) { return double{in[0][i]} * in[0][i]; };
                       return definition::Doubles{-std::log(weight(w - 1)) -
                                                  std::log(weight(w) + weight(w + 1)) -
                                                  std::log(weight(w + 1))};
                     }});
}

}  // namespace

void add_recurrent_cases(std::vector<OpCase>& all, const OpSizes& z) {
  add_recurrence(all, z);
  add_attentive(all, z);
  add_unevenness(all, z);
  add_entropy(all, z);
  add_guided(all, z);
  add_mean_weights(all, z);
}

}  // namespace heddle
