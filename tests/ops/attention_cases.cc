// The cases of attention: fused, by other scores, by distances; and of rotary positions.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "heddle/ops/attention.h"
#include "heddle/ops/moe.h"
#include "heddle/ops/relative_attention.h"
#include "heddle/ops/rope.h"
#include "heddle/ops/scoring.h"
#include "heddle/ops/shape.h"
#include "tests/ops/case_parts.h"
#include "tests/ops/definitions.h"
#include "tests/ops/references.h"

namespace heddle {
namespace {

Segments lengths(const std::vector<int64_t>& l) { return Segments::from_lengths(l); }

void add_attention(std::vector<OpCase>& all, const OpSizes& z) {
  const Segments same = lengths(z.sentences), queries = lengths(z.queries), keys = lengths(z.keys);
  const int64_t w = z.width, heads = z.heads, n = same.rows(), q = queries.rows(), k = keys.rows();
  for (bool causal : {false, true}) {
    for (bool drops : {false, true}) {
      const std::string name =
          std::string(causal ? "causal" : "all") + (drops ? "_with_dropout" : "");
      const auto options = [=](int64_t rows) {
        return AttentionOptions{.heads = heads,
                                .causal = causal,
                                .dropout = drops ? some_dropout(rows) : DropoutSpec{}};
      };
      OpCase c{
          .op = "attention",
          .variant = name,
          .shapes = {{q, w}, {k, w}, {k, w}},
          .function =
              [=](const Tensors& x) {
                return Tensors{attention(x[0], x[1], x[2], queries, keys, options(q))};
              },
          .reference =
              [=](const Tensors& x) {
                return Tensors{attention_reference(x[0], x[1], x[2], queries, keys, options(q))};
              }};
      OpCase self{
          .op = "self_attention",
          .variant = name,
          .shapes = {{n, 3 * w}},
          .function =
              [=](const Tensors& x) { return Tensors{self_attention(x[0], same, options(n))}; },
          .reference =
              [=](const Tensors& x) {
                return Tensors{attention_reference(slice(x[0], 1, 0, w), slice(x[0], 1, w, w),
                                                   slice(x[0], 1, 2 * w, w), same, same,
                                                   options(n))};
              }};
      OpCase cross{
          .op = "cross_attention",
          .variant = name,
          .shapes = {{q, w}, {k, 2 * w}},
          .function =
              [=](const Tensors& x) {
                return Tensors{cross_attention(x[0], x[1], queries, keys, options(q))};
              },
          .reference =
              [=](const Tensors& x) {
                return Tensors{attention_reference(x[0], slice(x[1], 1, 0, w), slice(x[1], 1, w, w),
                                                   queries, keys, options(q))};
              }};
      if (drops) c.reference = self.reference = cross.reference = nullptr;  // it has no dropout
      using definition::Columns;
      using definition::dot_attention;
      const int64_t d = w / heads;
      c.plain = dot_attention({0, 0, w}, {1, 0, w}, {2, 0, w}, d, queries, keys, options(q));
      self.plain =
          dot_attention({0, 0, 3 * w}, {0, w, 3 * w}, {0, 2 * w, 3 * w}, d, same, same, options(n));
      cross.plain =
          dot_attention({0, 0, w}, {1, 0, 2 * w}, {1, w, 2 * w}, d, queries, keys, options(q));
      all.insert(all.end(), {c, self, cross});
    }
  }
}

// Two heads of queries for each of the keys; the plain definition takes copies of the keys' heads.
void add_grouped_attention(std::vector<OpCase>& all, const OpSizes& z) {
  const Segments same = lengths(z.sentences), queries = lengths(z.queries), keys = lengths(z.keys);
  const int64_t w = z.width, heads = 2 * z.heads, d = w / heads, n = same.rows();
  for (const bool causal : {false, true}) {
    const AttentionOptions o{.heads = heads, .key_heads = z.heads, .causal = causal};
    const auto copied = [=](const Tensor& x) {
      std::vector<Tensor> parts;
      for (int64_t h = 0; h < heads; ++h) parts.push_back(slice(x, 1, h / 2 * d, d));
      return concat(parts, 1);
    };
    const auto plain = [=](const Tensor& q, const Tensor& k, const Tensor& v, const Segments& of_q,
                           const Segments& of_k) {
      return Tensors{attention_reference(q, copied(k), copied(v), of_q, of_k,
                                         {.heads = heads, .causal = causal})};
    };
    const std::string name = causal ? "grouped_causal" : "grouped";
    all.push_back(
        {.op = "attention",
         .variant = name,
         .shapes = {{queries.rows(), w}, {keys.rows(), w / 2}, {keys.rows(), w / 2}},
         .function =
             [=](const Tensors& x) {
               return Tensors{attention(x[0], x[1], x[2], queries, keys, o)};
             },
         .reference = [=](const Tensors& x) { return plain(x[0], x[1], x[2], queries, keys); }});
    all.push_back(
        {.op = "self_attention",
         .variant = name,
         .shapes = {{n, 2 * w}},
         .function = [=](const Tensors& x) { return Tensors{self_attention(x[0], same, o)}; },
         .reference =
             [=](const Tensors& x) {
               return plain(slice(x[0], 1, 0, w), slice(x[0], 1, w, w / 2),
                            slice(x[0], 1, w + w / 2, w / 2), same, same);
             }});
  }
}

// Windows, hidden keys and any order, with and without grouped keys, by one rule of ranges.
void add_visibility(std::vector<OpCase>& all, const OpSizes& z) {
  const Segments same = lengths(z.contexts), queries = lengths(z.queries), keys = lengths(z.keys);
  const int64_t w = z.width, heads = z.heads, n = same.rows(), q = queries.rows(), k = keys.rows();
  const std::vector<int32_t> positions = same.positions();
  const auto add_case = [&](const std::string& variant, const Visibility& v, int64_t key_heads,
                            bool drops) {
    const int64_t e = w / heads * key_heads;
    const AttentionOptions o{.heads = heads,
                             .key_heads = key_heads,
                             .visibility = std::make_shared<const Visibility>(v),
                             .dropout = drops ? some_dropout(n) : DropoutSpec{}};
    OpCase c{.op = "self_attention",
             .variant = variant,
             .shapes = {{n, w + 2 * e}},
             .function = [=](const Tensors& x) { return Tensors{self_attention(x[0], same, o)}; }};
    const int64_t all_columns = w + 2 * e;
    c.plain = definition::dot_attention({0, 0, all_columns}, {0, w, all_columns},
                                        {0, w + e, all_columns}, w / heads, same, same, o);
    if (!drops) {
      c.reference = [=](const Tensors& x) {
        return Tensors{attention_reference(slice(x[0], 1, 0, w), slice(x[0], 1, w, e),
                                           slice(x[0], 1, w + e, e), same, same, o)};
      };
    }
    all.push_back(c);
  };
  for (const int64_t window : z.windows) {
    Visibility v = visibility_of(same, same, true);
    keep_window(v, same, same, positions, positions, window);
    add_case("window_" + std::to_string(window), v, heads, false);
    add_case("window_" + std::to_string(window) + "_with_dropout", v, heads, true);
    add_case("window_" + std::to_string(window) + "_grouped", v, heads / 2, false);
  }
  std::vector<uint8_t> unseen;
  for (int64_t j = 0; j < n; ++j) unseen.push_back(j % 3 == 1);
  Visibility hidden = visibility_of(same, same, false);
  hide_keys(hidden, same, unseen);
  add_case("unseen", hidden, heads, false);
  Visibility steps;  // the last query of all sees nothing
  for (int64_t i = 0; i < q; ++i) steps.first.push_back(static_cast<int32_t>(i % 2));
  for (int64_t i = 0; i < q; ++i) steps.limit.push_back(i + 1 < q ? 3 : 0);
  for (int64_t j = 0; j < k; ++j) steps.order.push_back(static_cast<int32_t>(j * 3 % 4));
  const AttentionOptions o{.heads = heads, .visibility = std::make_shared<const Visibility>(steps)};
  all.push_back(
      {.op = "attention",
       .variant = "steps",
       .shapes = {{q, w}, {k, w}, {k, w}},
       .function =
           [=](const Tensors& x) { return Tensors{attention(x[0], x[1], x[2], queries, keys, o)}; },
       .reference =
           [=](const Tensors& x) {
             return Tensors{attention_reference(x[0], x[1], x[2], queries, keys, o)};
           }});
}

// Five distances in three buckets; keys further away count as two positions off.
void add_biased_attention(std::vector<OpCase>& all, const OpSizes& z) {
  const Segments queries = lengths(z.queries), keys = lengths(z.keys);
  const int64_t q = queries.rows(), k = keys.rows(), w = z.width, heads = z.heads;
  const auto buckets =
      std::make_shared<const std::vector<int32_t>>(std::vector<int32_t>{2, 0, 1, 2, 0});
  for (const bool causal : {false, true}) {
    const auto options = [=](const Tensors& x) {
      return AttentionOptions{.heads = heads, .causal = causal, .bias = {x[3], buckets}};
    };
    all.push_back({.op = "attention",
                   .variant = causal ? "bias_causal" : "bias",
                   .shapes = {{q, w}, {k, w}, {k, w}, {3, heads}},
                   .function =
                       [=](const Tensors& x) {
                         return Tensors{attention(x[0], x[1], x[2], queries, keys, options(x))};
                       },
                   .reference =
                       [=](const Tensors& x) {
                         return Tensors{
                             attention_reference(x[0], x[1], x[2], queries, keys, options(x))};
                       },
                   .always_f32 = {3}});
  }
}

void add_experts(std::vector<OpCase>& all, const OpSizes& z) {
  const Shape logits = {z.norm[0], 5};
  const int64_t rows = logits[0];
  all.push_back({.op = "route",
                 .variant = "two_of_five",
                 .shapes = {logits},
                 .function = [](const Tensors& x) { return Tensors{route(x[0], 2).weights}; },
                 .plain =
                     [](const definition::Inputs& in) {
                       definition::Doubles y;
                       for (size_t r = 0; r < in[0].size() / 5; ++r) {
                         definition::Doubles p = definition::row(in[0], static_cast<int64_t>(r), 5);
                         definition::softmax(p);
                         std::sort(p.begin(), p.end(), std::greater<>());
                         y.insert(y.end(), {p[0] / (p[0] + p[1]), p[1] / (p[0] + p[1])});
                       }
                       return y;
                     }});
  all.push_back({.op = "scale_rows",
                 .variant = "rows",
                 .shapes = {z.norm, {rows, 1}},
                 .function = [](const Tensors& x) { return Tensors{scale_rows(x[0], x[1])}; },
                 .plain =
                     [width = z.norm[1]](const std::vector<std::vector<float>>& in) {
                       std::vector<double> y;
                       for (size_t i = 0; i < in[0].size(); ++i) {
                         y.push_back(double(in[0][i]) * in[1][i / width]);
                       }
                       return y;
                     },
                 .always_f32 = {1}});
  all.push_back({.op = "balance_loss",
                 .variant = "two_layers",
                 .shapes = {logits, logits},
                 .function = [](const Tensors& x) { return Tensors{balance_loss(x, 2)}; },
                 .plain =
                     [rows](const definition::Inputs& in) {
                       definition::Doubles chosen(5), mean(5);
                       for (int64_t i = 0; i < 2 * rows; ++i) {
                         const auto& layer = in[i / rows];
                         definition::Doubles p = definition::row(layer, i % rows, 5);
                         definition::softmax(p);
                         for (int e = 0; e < 5; ++e) {
                           const auto above = std::count_if(
                               p.begin(), p.end(), [&](double other) { return other > p[e]; });
                           chosen[e] += above < 2 ? 0.5 / double(rows) : 0;
                           mean[e] += p[e] * 0.5 / double(rows);
                         }
                       }
                       return std::vector{
                           5 * std::inner_product(chosen.begin(), chosen.end(), mean.begin(), 0.0)};
                     }});
}

void add_rope(std::vector<OpCase>& all, const OpSizes& z) {
  const int64_t rows = z.norm[0], width = z.width;
  const std::vector<int32_t> positions = some_positions(rows, 4);
  const auto table = rotary_table(width / 2, 0, {});
  all.push_back(
      {.op = "rope",
       .variant = "two_thirds",
       .shapes = {{rows, 3 * width}},
       .function =
           [=](const Tensors& x) {
             return Tensors{rope(x[0], positions,
                                 {.head_width = width / 2, .columns = 2 * width, .table = table})};
           },
       .plain = definition::each([=](const definition::Inputs& in, size_t i) {
         const auto row = static_cast<int64_t>(i) / (3 * width);
         const auto column = static_cast<int64_t>(i) % (3 * width);
         if (column >= 2 * width) return double(in[0][i]);
         const int64_t d = width / 2, c = column % d, pair = c % (d / 2);
         const double angle = positions[row] * std::pow(10000, -2.0 * double(pair) / double(d));
         const double other = in[0][c < d / 2 ? i + d / 2 : i - d / 2];
         return in[0][i] * std::cos(angle) + (c < d / 2 ? -other : other) * std::sin(angle);
       })});
}

// Additive: v tanh(q + k), linear: w [q; k], each with the weights of its head in the last input.
auto scored(bool is_linear, int64_t w, int64_t d, const Segments& queries, const Segments& keys,
            bool causal) {
  return [=](const definition::Inputs& in) {
    return definition::Attention{
        .queries = queries,
        .keys = keys,
        .heads = w / d,
        .score =
            [&](int64_t h, int64_t i, int64_t j) {
              double sum = 0;
              for (int64_t c = 0; c < d; ++c) {
                const double q = in[0][i * w + h * d + c], k = in[1][j * w + h * d + c];
                const float* of_head = in[3].data() + h * (is_linear ? 2 : 1) * d;
                sum +=
                    is_linear ? of_head[c] * q + of_head[d + c] * k : of_head[c] * std::tanh(q + k);
              }
              return sum;
            },
        .value = [&](int64_t h, int64_t j, int64_t c) -> double {
          return in[2][j * w + h * d + c];
        },
        .value_width = d,
        .sees = [=](int64_t, int64_t, int64_t back) { return !causal || back >= 0; }}();
  };
}

void add_scored_attention(std::vector<OpCase>& all, const OpSizes& z) {
  const Segments queries = lengths(z.queries), keys = lengths(z.keys);
  const int64_t q = queries.rows(), k = keys.rows(), w = z.width, h = z.heads;
  for (const bool causal : {false, true}) {
    for (const bool is_linear : {false, true}) {
      all.push_back({.op = "attention",
                     .variant = std::string(is_linear ? "linear" : "additive") +
                                (causal ? "_scores_causal" : "_scores"),
                     .shapes = {{q, w}, {k, w}, {k, w}, {h, (is_linear ? 2 : 1) * w / h}},
                     .function =
                         [=](const Tensors& x) {
                           return Tensors{attention(
                               x[0], x[1], x[2], queries, keys,
                               {.heads = h,
                                .causal = causal,
                                .scoring = is_linear ? Scoring::linear : Scoring::additive,
                                .score_weight = x[3]})};
                         },
                     .plain = scored(is_linear, w, w / h, queries, keys, causal)});
    }
  }
  all.push_back(
      {.op = "attention",
       .variant = "gaussian",
       .shapes = {{3, 5}, {4, 5}, {4, 7}},
       .function =
           [](const Tensors& x) { return Tensors{attend(gaussian_scores(x[0], x[1]), x[2])}; },
       .plain =
           [](const definition::Inputs& in) {
             return definition::Attention{
                 .queries = Segments::uniform(1, 3),
                 .keys = Segments::uniform(1, 4),
                 .heads = 1,
                 .score =
                     [&](int64_t, int64_t i, int64_t j) {
                       double sum = 0;
                       for (int64_t c = 0; c < 5; ++c) {
                         sum -= std::pow(double(in[0][i * 5 + c]) - in[1][j * 5 + c], 2) / 2;
                       }
                       return sum;
                     },
                 .value = [&](int64_t, int64_t j, int64_t c) -> double { return in[2][j * 7 + c]; },
                 .value_width = 7,
                 .sees = [](int64_t, int64_t, int64_t) { return true; }}();
           }});
}

// Keys before the queries of their segment, as a memory holds them; positions count from the first.
RelativeRows rows_with_memory(const Segments& queries, const Segments& keys) {
  RelativeRows rows;
  rows.queries = queries, rows.keys = keys;
  for (int64_t s = 0; s < keys.count(); ++s) {
    const int64_t n = queries.length(s), m = keys.length(s);
    for (int64_t i = 0; i < n; ++i) rows.query_positions.push_back(static_cast<int32_t>(m - n + i));
    for (int64_t j = 0; j < m; ++j) rows.key_positions.push_back(static_cast<int32_t>(j));
  }
  return rows;
}

void see_back(RelativeRows& rows, int32_t window) {
  rows.visibility.order = rows.key_positions;
  for (const int32_t position : rows.query_positions) {
    rows.visibility.limit.push_back(position + 1);
    rows.visibility.first.push_back(position + 1 - window);
  }
}

// ((q + u) k + (q + v) r) / sqrt(d), r by distance; of rows without types.
auto relative_to_queries(const RelativeRows& rows, const RelativeOptions& options, int64_t w,
                         int64_t distances) {
  return [=](const definition::Inputs& in) {
    const int64_t d = w / options.heads;
    return definition::Attention{
        .queries = rows.queries,
        .keys = rows.keys,
        .heads = options.heads,
        .score =
            [&](int64_t h, int64_t i, int64_t j) {
              const int64_t t =
                  options.row_of_r(distances, rows.query_positions[i], rows.key_positions[j]);
              double sum = 0;
              for (int64_t c = h * d; c < (h + 1) * d; ++c) {
                sum += double(in[0][i * w + c]) * in[2][j * w + c] +
                       double(in[1][i * w + c]) * in[4][t * w + c];
              }
              return sum / std::sqrt(double(d));
            },
        .value = [&](int64_t h, int64_t j, int64_t c) -> double {
          return in[3][j * w + h * d + c];
        },
        .value_width = d,
        .sees = [](int64_t, int64_t, int64_t back) { return back >= 0; },
        .kept = [&](int64_t h, int64_t query, int64_t key) {  // a key of its own for each head
          DropoutSpec spec = options.dropout;
          spec.key = make_key(uint64_t{spec.key.high} << 32 | spec.key.low, 0, hash_name("head"),
                              static_cast<uint64_t>(h));
          return spec.over(rows.queries.rows()).factor(query, key);
        }}();
  };
}

void add_relative_attention(std::vector<OpCase>& all, const OpSizes& z) {
  const RelativeRows plain = rows_with_memory(lengths(z.queries), lengths(z.keys));
  const int64_t q = plain.queries.rows(), k = plain.keys.rows(), w = z.width, heads = z.heads;
  const auto longest = static_cast<int32_t>(plain.keys.max_length());
  const auto add_case = [&](const std::string& variant, const RelativeRows& rows, int32_t farthest,
                            int64_t distances, const DropoutSpec& dropout) {
    const RelativeOptions options{.heads = heads, .farthest = farthest, .dropout = dropout};
    const auto inputs = [](const Tensors& x) {
      return RelativeInputs{x[0], x[1], x[2], x[3], x[4], x.size() > 5 ? x[5] : Tensor()};
    };
    OpCase c{.op = "relative_attention",
             .variant = variant,
             .shapes = {{q, w}, {q, w}, {k, w}, {k, w}, {distances, w}},
             .function = [=](const Tensors& x) {
               return Tensors{relative_attention(inputs(x), rows, options)};
             }};
    if (dropout.p <= 0) {
      c.reference = [=](const Tensors& x) {
        return Tensors{relative_attention_reference(inputs(x), rows, options)};
      };
    } else {  // whose reference has none
      c.plain = relative_to_queries(rows, options, w, distances);
    }
    if (!rows.query_types.empty()) {
      c.shapes.push_back({q, 2 * heads});
      c.always_f32 = {5};
    }
    all.push_back(c);
  };
  RelativeRows causal = plain;
  see_back(causal, longest);
  add_case("causal", causal, longest - 1, longest, {});
  add_case("causal_with_dropout", causal, longest - 1, longest, some_dropout(q));
  RelativeRows window = plain;
  see_back(window, 2);
  add_case("window", window, longest - 1, longest, {});
  RelativeRows both_ways = plain;  // distances 1, 0, -1: further ones count as these
  for (int64_t i = 0; i < q; ++i) both_ways.query_types.push_back(static_cast<int32_t>(i % 2));
  for (int64_t j = 0; j < k; ++j) both_ways.key_types.push_back(static_cast<int32_t>(j % 3));
  add_case("both_ways_with_types", both_ways, 1, 3, {});
  for (int32_t& position : both_ways.query_positions) position = -position;
  for (int32_t& position : both_ways.key_positions) position = -position;
  int64_t pairs = 0;
  for (int64_t s = 0; s < plain.queries.count(); ++s) {
    pairs += plain.queries.length(s) * plain.keys.length(s);
  }
  for (int64_t i = 0; i < pairs; ++i) both_ways.hidden.push_back(i % 3 == 0);
  add_case("backwards_with_mask", both_ways, longest, 2 * longest, {});
}

}  // namespace

void add_attention_cases(std::vector<OpCase>& all, const OpSizes& z) {
  add_attention(all, z);
  add_scored_attention(all, z);
  add_relative_attention(all, z);
  add_grouped_attention(all, z);
  add_visibility(all, z);
  add_biased_attention(all, z);
  add_rope(all, z);
  add_experts(all, z);
}

}  // namespace heddle
