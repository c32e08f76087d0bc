// The steps of attention in float64, in the order in which a paper writes them.
#include "heddle/inspect/explanation.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "heddle/base/error.h"

namespace heddle::inspect {
namespace {

constexpr int64_t kMostTokens = 256;
constexpr double kHidden = -std::numeric_limits<double>::infinity();

// The parts of one head.
struct HeadNumbers {
  Matrix q, k;
  Matrix v;  // no rows: there are no values
  Matrix scores;
  Matrix bias;  // of each pair, by the distance between them; no rows: there is none
  Matrix mask;
  bool is_windowed = false;  // keys that are far behind are hidden, too
  Matrix w;                  // of scores that are no products: what their network has learned
  // How the scores came about.
  std::string formula = "S = Q Kᵀ";
  std::string text =
      "How well each query (row) fits each key (column): the products of their numbers, summed.";
};

// The scores by distance: row t of r is for the distance of row t.
struct ByDistance {
  Matrix q, r, scores;
  std::vector<std::string> names;  // of the rows of r
  Matrix types;                    // of each pair; no rows: tokens have no types
};

Matrix scores_of(const Matrix& q, const Matrix& k, Score score) {
  Matrix s(q.rows, k.rows);
  for (int64_t i = 0; i < q.rows; ++i) {
    for (int64_t j = 0; j < k.rows; ++j) {
      double sum = 0;
      for (int64_t d = 0; d < q.cols; ++d) {
        const double x = q.at(i, d), y = k.at(j, d);
        sum += score == Score::dot ? x * y : -(x - y) * (x - y) / 2;
      }
      s.at(i, j) = sum;
    }
  }
  return s;
}

// Those of a small network of this head. w: [1, d] of additive, [1, 2 d] of linear scores
Matrix network_scores(const HeadNumbers& head, Scoring scoring) {
  const Matrix &q = head.q, &k = head.k, &w = head.w;
  Matrix s(q.rows, k.rows);
  for (int64_t i = 0; i < q.rows; ++i) {
    for (int64_t j = 0; j < k.rows; ++j) {
      for (int64_t d = 0; d < q.cols; ++d) {
        const double x = q.at(i, d), y = k.at(j, d);
        s.at(i, j) += scoring == Scoring::additive ? w.at(0, d) * std::tanh(x + y)
                                                   : w.at(0, d) * x + w.at(0, q.cols + d) * y;
      }
    }
  }
  return s;
}

// Query i of n sees keys 0 to i + m - n.
Matrix mask_of(int64_t n, int64_t m, bool is_causal) {
  Matrix mask(n, m);
  if (!is_causal) return mask;
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = std::max<int64_t>(0, i + m - n + 1); j < m; ++j) mask.at(i, j) = kHidden;
  }
  return mask;
}

// A row of -inf gives zeros, as everywhere in heddle.
Matrix softmax_of(const Matrix& x) {
  Matrix p(x.rows, x.cols);
  for (int64_t i = 0; i < x.rows; ++i) {
    double high = kHidden, sum = 0;
    for (int64_t j = 0; j < x.cols; ++j) high = std::max(high, x.at(i, j));
    if (high == kHidden) continue;
    for (int64_t j = 0; j < x.cols; ++j) sum += p.at(i, j) = std::exp(x.at(i, j) - high);
    for (int64_t j = 0; j < x.cols; ++j) p.at(i, j) /= sum;
  }
  return p;
}

Matrix product(const Matrix& a, const Matrix& b) {
  Matrix c(a.rows, b.cols);
  for (int64_t i = 0; i < a.rows; ++i) {
    for (int64_t j = 0; j < a.cols; ++j) {
      for (int64_t d = 0; d < b.cols; ++d) c.at(i, d) += a.at(i, j) * b.at(j, d);
    }
  }
  return c;
}

// A matrix of queries (rows) and keys (columns).
void add_pairs(Explanation& e, std::string key, std::string name, std::string formula,
               std::string text, const Matrix& result) {
  e.steps.push_back({std::move(key), std::move(name), std::move(formula), std::move(text), result,
                     e.queries, e.keys});
}

// Scores, divided, masked, softmax, weighted sum.
void add_steps(Explanation& e, const HeadNumbers& head) {
  if (head.w.rows > 0) {
    e.steps.push_back({"score_weights",
                       "Weights of the scores",
                       "w",
                       "Learned in training: by these numbers a query is compared with a key.",
                       head.w,
                       {"w"}});
  }
  add_pairs(e, "scores", "Scores", head.formula, head.text, head.scores);
  Matrix scaled = head.scores;
  for (double& x : scaled.values) x /= e.divisor;
  add_pairs(e, "scaled", "Divided", fmt::format("S / {:.6g}", e.divisor),
            e.divisor == 1
                ? "Nothing is divided here."
                : "Sums over more numbers are larger; without this the softmax would give "
                  "nearly everything to one key, and learning would stand still.",
            scaled);
  const bool has_bias = head.bias.rows > 0;
  if (has_bias) {
    add_pairs(e, "bias", "Bias", "B",
              "What this head adds by how far the key stands from the query, before or "
              "behind: a number that it has learned for each bucket of distances.",
              head.bias);
  }
  add_pairs(e, "mask", "Mask",
            head.is_windowed ? "M = 0 where the key is near and not later, else -∞"
            : e.is_causal    ? "M = 0 where the key is not later, else -∞"
                             : "M = 0 everywhere",
            head.is_windowed ? "No query may see a key that comes after it, or one that is too far "
                               "back: what remains is a band."
            : e.is_causal ? "No query may see a key that comes after it: what remains is a lower "
                            "triangle."
                          : "Every query sees every key.",
            head.mask);
  Matrix masked = scaled;
  for (size_t i = 0; i < masked.values.size(); ++i) {
    masked.values[i] += head.mask.values[i] + (has_bias ? head.bias.values[i] : 0);
  }
  add_pairs(e, "masked", "Masked", has_bias ? "S / divisor + B + M" : "S / divisor + M",
            "What the softmax reads.", masked);
  const Matrix weights = softmax_of(masked);
  add_pairs(e, "weights", "Weights", "A = softmax of each row: exp(x) / sum of exp(x)",
            "Shares: no weight is below 0, and each row sums to 1.", weights);
  if (head.v.rows == 0) return;
  e.steps.push_back({"sum", "Weighted sum", "H = A V",
                     "For each query the values of the keys, mixed by those shares.",
                     product(weights, head.v), e.queries});
}

// Scores by content, by distance and by type; their sum becomes the head's.
void add_distance_steps(Explanation& e, const ByDistance& d, HeadNumbers& head) {
  const bool has_types = d.types.rows > 0;
  e.steps.push_back({"q_distance", "Queries of distances", "Q + v",
                     "The same queries with another bias: compared with how far away a token is.",
                     d.q, e.queries});
  e.steps.push_back({"r", "Distances", "R = sinusoids of the distances W_R",
                     "A key for each distance: no token has a position, each pair has a distance.",
                     d.r, d.names});
  add_pairs(e, "content_scores", "Scores of tokens", "S_c = (Q + u) Kᵀ",
            "How well each query (row) fits each key (column), wherever they stand.", head.scores);
  add_pairs(e, "distance_scores", "Scores of distances",
            "S_d[i, j] = (q_i + v) · r, r of the distance from i to j",
            "How well each query fits a key that far away, whatever its token.", d.scores);
  if (has_types) {
    add_pairs(e, "type_scores", "Scores of types",
              "S_t[i, j] = (q_i + s) · e, e of \"same type\" or of \"another\"",
              "How well each query fits keys of its own part of the text, or of another.", d.types);
  }
  for (size_t i = 0; i < head.scores.values.size(); ++i) {
    head.scores.values[i] += d.scores.values[i] + (has_types ? d.types.values[i] : 0);
  }
  head.formula = has_types ? "S = S_c + S_d + S_t" : "S = S_c + S_d";
  head.text = "What a key says and how far away it is, together.";
}

void check_sizes(const ExplainedMatrices& g, int64_t queries, int64_t keys) {
  if (g.q) {
    check(g.q->cols == g.k->cols, ErrorKind::usage,
          "`q` has {} columns and `k` {}; a query and a key must have as many numbers", g.q->cols,
          g.k->cols);
  }
  check(!g.v || g.v->rows == keys, ErrorKind::usage,
        "`v` has {} rows, but there are {} keys; each key has one row of values",
        g.v ? g.v->rows : 0, keys);
  check(queries <= kMostTokens && keys <= kMostTokens, ErrorKind::usage,
        "{} queries and {} keys are too many to follow; at most {} can be shown", queries, keys,
        kMostTokens);
  const auto tokens = static_cast<int64_t>(g.tokens.size());
  check(tokens == 0 || (tokens == keys && tokens == queries), ErrorKind::usage,
        "`tokens` has {} tokens, but there are {} queries and {} keys; give one token for each",
        tokens, queries, keys);
}

std::vector<std::string> numbered(const char* name, int64_t count) {
  std::vector<std::string> labels;
  for (int64_t i = 0; i < count; ++i) labels.push_back(fmt::format("{} {}", name, i + 1));
  return labels;
}

// What one pass shows of the call.
struct Seen {
  nn::AttentionSteps steps;
  HeadNumbers head;
  Scoring scoring = Scoring::dot;
  float scale = 0;
  int64_t key_head = 0, key_heads = 1;  // that serves the head, out of so many
  std::optional<ByDistance> distance = {};
  bool is_there = false;
};

// Rows of a tensor.
struct RowRange {
  int64_t first = 0, count = 0;
};

Matrix matrix_of_rows(const Tensor& x, RowRange rows, int64_t begin, int64_t width) {
  return matrix_of(x.slice(0, rows.first, rows.count), begin, width);
}

// One row of a matrix, or all where none is chosen.
Matrix chosen_row(const Matrix& all, int64_t row) {
  if (row < 0) return all;
  Matrix one(1, all.cols);
  for (int64_t j = 0; j < all.cols; ++j) one.at(0, j) = all.at(row, j);
  return one;
}

Matrix mask_of(const nn::AttentionCall& call, int64_t segment) {
  Matrix mask(call.queries().length(segment), call.keys().length(segment));
  const std::vector<uint8_t> seen = call.seen(segment);
  for (size_t i = 0; i < seen.size(); ++i) mask.values[i] = seen[i] != 0 ? 0 : kHidden;
  return mask;
}

bool hides_before(const Matrix& mask) {
  for (int64_t i = 0; i < mask.rows; ++i) {
    for (int64_t j = 0; j < i + mask.cols - mask.rows; ++j) {
      if (mask.at(i, j) == kHidden) return true;
    }
  }
  return false;
}

// Scores of distances and types, which relative attention adds to those of the tokens.
ByDistance by_distance(const nn::DistanceInputs& in, int64_t head, int64_t width) {
  const RelativeRows& rows = *in.rows;
  const int64_t n = rows.queries.rows(), m = rows.keys.rows(), count = in.x.r.size(0);
  ByDistance d{.q = matrix_of(in.x.distance, head * width, width),
               .r = matrix_of(in.x.r, head * width, width),
               .scores = Matrix(n, m),
               .names = {},
               .types = {}};
  for (int64_t t = 0; t < count; ++t) {
    const int64_t back = in.options->farthest - t;
    d.names.push_back(back >= 0 ? fmt::format("{} back", back) : fmt::format("{} ahead", -back));
  }
  const Matrix all = scores_of(d.q, d.r, Score::dot);
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < m; ++j) {
      d.scores.at(i, j) =
          all.at(i, in.options->row_of_r(count, rows.query_positions[i], rows.key_positions[j]));
    }
  }
  if (!in.x.types.defined()) return d;
  const Matrix types = matrix_of(in.x.types, 2 * head, 2);
  d.types = Matrix(n, m);
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < m; ++j) {
      d.types.at(i, j) = types.at(i, rows.query_types[i] != rows.key_types[j] ? 1 : 0);
    }
  }
  return d;
}

// What a head adds to the score of each pair. sizes: a matrix of as many pairs
Matrix bias_of(const nn::DotInputs& in, const Matrix& sizes, int64_t head) {
  const RelativeBias& bias = in.options->bias;
  Matrix b(sizes.rows, sizes.cols);
  for (int64_t i = 0; i < b.rows; ++i) {
    for (int64_t j = 0; j < b.cols; ++j) {
      const int64_t distance = bias.distance(i + b.cols - b.rows, j);
      b.at(i, j) = bias.table.data<float>()[bias.bucket(distance) * bias.table.size(1) + head];
    }
  }
  return b;
}

Seen see(const AskedCall& asked) {
  Seen seen;
  RowRange queries, keys;
  nn::Observer observer;
  observer.attention = [&](const nn::AttentionCall& call) {
    if (call.name() != asked.call) return;
    HeadNumbers& h = seen.head;
    const int64_t head = asked.head;
    queries = {call.queries().begin(asked.segment), call.queries().length(asked.segment)};
    keys = {call.keys().begin(asked.segment), call.keys().length(asked.segment)};
    h.mask = mask_of(call, asked.segment);
    h.is_windowed = call.is_causal() && hides_before(h.mask);
    if (const nn::DistanceInputs* in = call.distance()) {
      const int64_t width = in->x.k.size(1) / call.heads();
      h.q = matrix_of(in->x.content, head * width, width);
      h.k = matrix_of(in->x.k, head * width, width);
      seen.distance = by_distance(*in, head, width);
      seen.key_head = head, seen.key_heads = call.heads();
      seen.scale = in->options->scale;
      return;
    }
    const nn::DotInputs& in = *call.dot();
    seen.scoring = in.options->scoring;
    if (seen.scoring != Scoring::dot) {
      h.w = matrix_of(in.options->score_weight.slice(0, head, 1));
    }
    const int64_t width = in.q.size(1) / call.heads();
    h.q = chosen_row(matrix_of_rows(in.q, queries, head * width, width), asked.query);
    seen.key_head = in.options->key_head(head), seen.key_heads = in.options->heads_of_keys();
    h.k = matrix_of_rows(in.k, keys, seen.key_head * width, width);
    seen.scale = in.options->scale;
    if (in.options->bias.table.defined()) {
      h.bias = chosen_row(bias_of(in, h.mask, head), asked.query);
    }
    h.mask = chosen_row(h.mask, asked.query);
  };
  observer.steps = [&](const std::string& name, const nn::AttentionSteps& steps) {
    if (name != asked.call) return;
    seen.steps = steps;
    seen.is_there = true;
  };
  asked.pass(observer);
  check(seen.is_there, ErrorKind::internal, "explain: no pass computed {}", asked.call);
  const int64_t width = seen.steps.v.size(1) / seen.key_heads;  // keys may be wider
  seen.head.v = matrix_of_rows(seen.steps.v, keys, seen.key_head * width, width);
  if (asked.query >= 0) queries = {queries.first + asked.query, 1};
  for (Tensor* x : {&seen.steps.x, &seen.steps.heads, &seen.steps.output}) {
    if (x->defined()) *x = x->slice(0, queries.first, queries.count);
  }
  return seen;
}

}  // namespace

Explanation explain_matrices(const ExplainedMatrices& g) {
  check(g.scores.has_value() || (g.q && g.k), ErrorKind::usage,
        "there is nothing to explain: give a model and `text`, or `q` and `k`, or `scores`");
  check(!g.scores || (!g.q && !g.k), ErrorKind::usage,
        "`scores` stands in place of `q` and `k`; give either");
  HeadNumbers head;
  if (g.score == Score::gaussian) {
    head.formula = "S = -|q - k|² / 2";
    head.text =
        "How near each query (row) is to each key (column): 0 if they are equal, the lower the "
        "farther.";
  }
  const int64_t queries = g.scores ? g.scores->rows : g.q->rows;
  const int64_t keys = g.scores ? g.scores->cols : g.k->rows;
  check_sizes(g, queries, keys);
  head.scores = g.scores ? *g.scores : Matrix(queries, keys);
  head.mask = mask_of(queries, keys, g.is_causal);
  if (g.q) head.scores = scores_of(*g.q, *g.k, g.score);
  if (g.v) head.v = *g.v;
  const double root = g.q && g.score == Score::dot ? std::sqrt(static_cast<double>(g.q->cols)) : 1;
  Explanation e;
  e.title = "Attention, step by step";
  e.divisor = g.divisor.value_or(root);
  e.is_causal = g.is_causal;
  check(std::isfinite(e.divisor) && e.divisor > 0, ErrorKind::usage,
        "`divide` is {}; scores are divided by a number above 0", e.divisor);
  e.queries = g.tokens.empty() ? numbered("query", head.scores.rows) : g.tokens;
  e.keys = g.tokens.empty() ? numbered("key", head.scores.cols) : g.tokens;
  if (g.q) {
    e.steps.push_back(
        {"q", "Queries", "Q", "What is asked, a row for each query.", *g.q, e.queries});
    e.steps.push_back({"k", "Keys", "K", "What is found by, a row for each key.", *g.k, e.keys});
  }
  if (g.v) {
    e.steps.push_back({"v", "Values", "V", "What is given out, a row for each key.", *g.v, e.keys});
  }
  add_steps(e, head);
  const std::string unknown = step_not_finite(e);
  check(unknown.empty(), ErrorKind::usage,
        "the numbers of {} are not finite: those that were given are too large; give smaller ones",
        unknown);
  return e;
}

namespace {

std::string projected(const char* symbol, const char* from, int64_t in, int64_t out) {
  return fmt::format("{0} = {1} W_{0}, where W_{0} is [{2} x {3}]", symbol, from, in, out);
}

void compute_scores(Seen& seen) {
  HeadNumbers& head = seen.head;
  if (seen.scoring == Scoring::dot) {
    head.scores = scores_of(head.q, head.k, Score::dot);
    return;
  }
  head.scores = network_scores(head, seen.scoring);
  const bool is_additive = seen.scoring == Scoring::additive;
  head.formula = is_additive ? "S[i, j] = tanh(q_i + k_j) · w" : "S[i, j] = [q_i; k_j] · w";
  head.text =
      is_additive
          ? "How well each query (row) fits each key (column): their sum goes through tanh, "
            "and w says what counts of it."
          : "How well each query (row) fits each key (column), by one linear layer over "
            "both. What it makes of the query is the same for every key, so that the "
            "weights do not depend on it.";
}

// Of a recurrent decoder: its states ask, and a context goes into the cell.
void explain_states(Explanation& e, const Seen& seen) {
  const nn::AttentionSteps& steps = seen.steps;
  const HeadNumbers& head = seen.head;
  const auto from = [&](const char* symbol, const char* x, int64_t in) {
    return steps.has_projections ? projected(symbol, x, in, head.q.cols)
                                 : fmt::format("{} = {}", symbol, x);
  };
  e.steps.push_back({"x", "States", "X",
                     "A row for each token: the state of the lowest layer before it is read, and "
                     "beside it, where attention_query names the token, its embedding.",
                     matrix_of(steps.x), e.queries});
  e.steps.push_back({"q", "Queries", from("Q", "X", steps.x.size(1)), "What each row asks for.",
                     head.q, e.queries});
  e.steps.push_back({"k", "Keys", from("K", "M", steps.v.size(1)),
                     "What each part of the source offers to be found by; M is the encoder's last "
                     "layer.",
                     head.k, e.keys});
  e.steps.push_back({"v", "Values", "V = M",
                     "What each part of the source gives to who finds it: the row itself.", head.v,
                     e.keys});
  add_steps(e, head);
  e.steps.push_back({"output", "Context", "C = H",
                     "What the cell is given beside the token: the next state follows from both.",
                     matrix_of(steps.heads), e.queries});
}

}  // namespace

void explain_call(Explanation& e, const AskedCall& asked) {
  Seen seen = see(asked);
  HeadNumbers& head = seen.head;
  const int64_t width = head.q.cols, begin = asked.head * width, d = seen.steps.x.size(1);
  compute_scores(seen);
  e.queries = asked.queries, e.keys = asked.keys;
  e.divisor = head.w.rows > 0   ? 1
              : seen.scale != 0 ? 1.0 / static_cast<double>(seen.scale)
                                : std::sqrt(static_cast<double>(width));
  if (!seen.steps.output.defined()) return explain_states(e, seen);
  const auto what = [&](const char* format) {
    return fmt::format(fmt::runtime(format), fmt::arg("row", asked.row));
  };
  const char* from = asked.is_cross ? "M" : asked.before > 0 ? "[memory; X]" : "X";
  e.steps.push_back({"x", "Hidden states", "X",
                     what("A row for each {row}: what the layers before have made of it."),
                     matrix_of(seen.steps.x), e.queries});
  if (seen.distance) {
    e.steps.push_back(
        {"q", "Queries of tokens", fmt::format("Q + u, {}", projected("Q", "X", d, width)),
         "What each token asks for, and u, what all of them do: compared with tokens.", head.q,
         e.queries});
  } else {
    e.steps.push_back({"q", "Queries", projected("Q", "X", d, width),
                       what("What each {row} asks for."), head.q, e.queries});
  }
  e.steps.push_back({"k", "Keys", projected("K", from, d, width),
                     asked.is_cross ? "What each part of the source offers to be found by; M is "
                                      "the encoder's last layer."
                                    : what("What each {row} offers to be found by."),
                     head.k, e.keys});
  e.steps.push_back({"v", "Values", projected("V", from, d, width),
                     asked.is_cross ? "What each part of the source gives to who finds it."
                                    : what("What each {row} gives to who finds it."),
                     head.v, e.keys});
  if (seen.distance) add_distance_steps(e, *seen.distance, head);
  add_steps(e, head);
  e.steps.push_back({"concat", "All heads side by side",
                     fmt::format("[H_0 ... H_{}], this head's columns are {} to {}",
                                 asked.heads - 1, begin, begin + width - 1),
                     "Each head has looked in its own way; their results stand beside each other.",
                     matrix_of(seen.steps.heads), e.queries});
  e.steps.push_back({"output", "Output", fmt::format("[H_0 ... H_{}] W_O", asked.heads - 1),
                     "Mixed by one more matrix; this is added to X.", matrix_of(seen.steps.output),
                     e.queries});
}

}  // namespace heddle::inspect
