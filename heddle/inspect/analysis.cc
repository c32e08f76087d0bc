// The steps of each layer (Vaswani et al. 2017, section 3) and the sums over them.
#include "heddle/inspect/analysis.h"

#include <algorithm>

namespace heddle::inspect {
namespace {

// Adds the steps of one stack.
class StackSteps {
 public:
  StackSteps(const StackPlan& stack, const Workload& w, int64_t length, std::vector<Step>& steps)
      : s_(stack), w_(w), length_(length), rows_(w.batch * length), steps_(steps) {}

  void add() {
    input();
    self_attention();
    if (s_.has_cross) cross_attention();
    feed_forward();
    if (!s_.has_last_norm) return;
    add({.part = s_.name + " output", .name = "last norm", .kept = 2 * rows_ * s_.width}, 1,
        s_.norm());
  }

 private:
  // The default shapes are those of the residual stream.
  void add(Step step, int64_t times, int64_t parameters) {
    if (step.in.empty()) step.in = {rows_, s_.width};
    if (step.out.empty()) step.out = {rows_, s_.width};
    if (step.part.empty()) step.part = s_.name + " layer";
    step.times = times;
    step.parameters = parameters;
    steps_.push_back(std::move(step));
  }

  void linear(const std::string& name, int64_t rows, int64_t in, int64_t out, bool has_bias,
              int64_t kept) {
    add({.name = name,
         .in = {rows, in},
         .out = {rows, out},
         .flops = 2 * rows * in * out,
         .kept = kept},
        s_.layers, linear_parameters(in, out, has_bias));
  }

  void norm(const std::string& name) {
    add({.name = name, .kept = 2 * rows_ * s_.width}, s_.layers, s_.norm());
  }
  void norm_before() {
    if (s_.has_last_norm) norm("norm");
  }
  void norm_after() {
    if (!s_.has_last_norm) norm("add and norm");
  }

  void input() {
    const std::string part = s_.name + " input";
    add({.part = part, .name = "token embeddings", .in = {rows_}, .kept = rows_ * s_.width}, 1,
        s_.token_rows * s_.width + s_.of_input.all());
    if (s_.adds_positions) {
      add({.part = part, .name = "add positions"}, 1, s_.position_rows * s_.width);
    }
    if (s_.type_rows > 0) add({.part = part, .name = "add types"}, 1, s_.type_rows * s_.width);
    if (s_.has_embedding_norm) {
      add({.part = part, .name = "norm", .kept = 2 * rows_ * s_.width}, 1, s_.norm());
    }
  }

  // Pairs of a query and a position that it sees, in blocks of `block`: the diagonal and below.
  int64_t causal_pairs(int64_t block) const {
    const int64_t rest = length_ % block;
    return length_ / block * (block * (block + 1) / 2) + rest * (rest + 1) / 2;
  }

  // Scores, softmax and weighted sum of queries over `keys` positions each.
  void attention(int64_t keys, bool is_self) {
    const bool is_windowed = is_self && w_.window > 0 && w_.window < keys;
    const int64_t seen = is_windowed ? w_.window : keys;
    const int64_t entries = length_ * seen;
    // What a causal query may not see is not computed by the fused kernel: the diagonal and what
    // lies below it. The plain definition computes all, then hides.
    const int64_t visible = is_self && s_.is_causal ? causal_pairs(seen) : entries;
    const int64_t pairs = s_.scoring.kind == Scoring::dot ? visible : entries;
    const int64_t flops = 2 * w_.batch * pairs * s_.query_width();
    const int64_t hidden = 2 * w_.batch * (pairs - visible) * s_.query_width();
    const std::vector<int64_t> matrix = {w_.batch * s_.heads, length_, seen};
    scores(keys, entries, {.out = matrix, .flops = flops, .hidden_flops = hidden});
    if (s_.has_distances) {
      add({.name = "scores of distances",
           .out = matrix,
           .flops = flops,
           .is_attention = true,
           .hidden_flops = hidden},
          s_.layers, 0);
    }
    add({.name = "softmax",
         .in = matrix,
         .out = matrix,
         .matrix = w_.batch * s_.heads * entries,
         .matrix_rows = w_.batch * s_.heads * length_},
        s_.layers, 0);
    add({.name = "weighted sum of values",
         .in = matrix,
         .out = {rows_, s_.query_width()},
         .flops = flops,
         .is_attention = true,
         .hidden_flops = hidden,
         .kept = rows_ * s_.query_width()},
        s_.layers, 0);
  }

  // How queries are scored against keys; `products` is the step where every pair has one as wide
  // as the queries.
  void scores(int64_t keys, int64_t entries, Step products) {
    products.is_attention = true;
    if (s_.scoring.kind == Scoring::dot) {
      products.name = s_.scoring.scale == 1 ? "scores q k^T" : "scores q k^T / sqrt(d_k)";
      add(products, s_.layers, 0);
    } else if (s_.scoring.kind == Scoring::additive) {
      // The sums and their tanh, both read by the backward pass.
      products.name = "scores v tanh(q + k)";
      products.kept_f32 = 2 * w_.batch * entries * s_.width;
      add(products, s_.layers, s_.score_weights());
    } else {
      // A share of each query and one of each key: only their sums are made pair by pair.
      const int64_t shares = rows_ + w_.batch * keys;
      add({.name = "shares of queries and keys",
           .in = {shares, s_.width},
           .out = {shares, s_.heads},
           .flops = 2 * shares * s_.width},
          s_.layers, s_.score_weights());
      products.name = "scores: sums of shares";
      products.in = {shares, s_.heads};
      products.flops = products.hidden_flops = 0;
      add(products, s_.layers, 0);
    }
  }

  void self_attention() {
    norm_before();
    const int64_t d = s_.width, q = s_.query_width(), all = q + 2 * s_.key_width();
    add({.name = "queries, keys, values",
         .out = {rows_, all},
         .flops = 2 * rows_ * d * all,
         .kept = rows_ * all},
        s_.layers, linear_parameters(d, all, s_.has_bias) + head_norm_parameters(s_));
    if (s_.has_distances) {
      add({.name = "keys of distances",
           .in = {length_, d},
           .out = {length_, q},
           .flops = 2 * length_ * d * q,
           .kept = length_ * q},
          s_.layers, distance_parameters(s_));
    }
    attention(length_, true);
    linear("output projection", rows_, q, d, s_.has_projection_bias, 0);
    norm_after();
  }

  void cross_attention() {
    norm_before();
    const int64_t d = s_.width, source = w_.batch * w_.source;
    linear("queries to the source", rows_, d, d, s_.has_bias, rows_ * d);
    add({.name = "keys, values of the source",
         .in = {source, d},
         .out = {source, 2 * d},
         .flops = 4 * source * d * d,
         .kept = 2 * source * d},
        s_.layers, 2 * linear_parameters(d, d, s_.has_bias));
    attention(w_.source, false);
    linear("output projection", rows_, d, d, s_.has_projection_bias, 0);
    norm_after();
  }

  void feed_forward() {
    norm_before();
    const int64_t copies = std::max<int64_t>(1, s_.experts);
    int64_t rows = rows_;  // an expert's rows are those that chose it; all experts' together:
    if (s_.experts > 0) {
      linear("router", rows_, s_.width, s_.experts, false, rows_ * s_.experts);
      rows *= s_.chosen_experts;
    }
    const int64_t inner = rows * s_.hidden, wide = (s_.is_gated ? 2 : 1) * s_.hidden;
    add({.name = s_.is_gated ? "feed-forward, gate and up" : "feed-forward, in",
         .in = {rows, s_.width},
         .out = {rows, wide},
         .flops = 2 * rows * s_.width * wide,
         .kept = s_.is_gated || s_.keeps_before_activation ? rows * wide : 0},
        s_.layers, copies * linear_parameters(s_.width, wide, s_.has_mlp_bias));
    add({.name = s_.is_gated ? "silu(gate) * up" : "activation",
         .in = {rows, wide},
         .out = {rows, s_.hidden},
         .kept = s_.is_gated ? 2 * inner : inner},
        s_.layers, 0);
    add({.name = s_.is_gated ? "feed-forward, down" : "feed-forward, out",
         .in = {rows, s_.hidden},
         .out = {rows, s_.width},
         .flops = 2 * rows * s_.hidden * s_.width},
        s_.layers, copies * linear_parameters(s_.hidden, s_.width, s_.has_mlp_bias));
    if (s_.experts > 0) add({.name = "sum of the experts", .kept = rows * s_.width}, s_.layers, 0);
    norm_after();
  }

  const StackPlan& s_;
  const Workload& w_;
  int64_t length_, rows_;
  std::vector<Step>& steps_;
};

int64_t target_length(const ModelPlan& plan, const Workload& w) {
  return plan.stacks.size() > 1 ? w.target : w.source;
}

std::vector<Step> steps_of(const ModelPlan& plan, const Workload& w) {
  std::vector<Step> steps;
  for (size_t i = 0; i < plan.stacks.size(); ++i) {
    StackSteps(plan.stacks[i], w, i == 0 ? w.source : w.target, steps).add();
  }
  const int64_t d = plan.stacks.back().width;
  if (plan.has_pooler) {
    steps.push_back({.part = "output",
                     .name = "pooler of the first token",
                     .in = {w.batch, d},
                     .out = {w.batch, d},
                     .parameters = linear_parameters(d, d, true),
                     .flops = 2 * w.batch * d * d,
                     .kept = w.batch * d});
  }
  if (plan.vocab > 0) {
    const int64_t rows = w.batch * target_length(plan, w);
    const int64_t own = output_parameters(plan) - (plan.has_pooler ? steps.back().parameters : 0);
    steps.push_back(
        {.part = "output",
         .name = "logits of the next token",
         .in = {rows, d},
         .out = {rows, plan.vocab},
         .parameters = own,
         .flops = 2 * rows * (plan.output_products > 0 ? plan.output_products : d * plan.vocab)});
  }
  return steps;
}

int64_t sum_flops(const std::vector<Step>& steps) {
  int64_t sum = 0;
  for (const Step& step : steps) sum += step.times * step.flops;
  return sum;
}

Bytes bytes_of(int64_t scalars) { return {4 * scalars, 2 * scalars}; }
Bytes mixed_bytes(int64_t matrices, int64_t vectors) {
  return {4 * (matrices + vectors), 2 * matrices + 4 * vectors};
}

// Weights with two axes: products and tables. Norms and biases are the rest.
int64_t matrix_parameters(const ModelPlan& plan) {
  int64_t count = plan.is_output_tied ? 0 : plan.vocab * plan.stacks.back().width;
  if (plan.has_output_bias && plan.is_output_bias_a_row) count += plan.vocab;
  count += plan.of_output.matrices;
  if (plan.has_pooler) count += plan.stacks.back().width * plan.stacks.back().width;
  for (const StackPlan& s : plan.stacks) {
    const int64_t attention = 2 * s.width * (s.query_width() + s.key_width()) +
                              (s.has_distances ? s.width * s.query_width() : 0) +
                              s.of_attention.matrices;
    const int64_t mlp = (s.is_gated ? 3 : 2) * s.width * s.hidden;
    count += s.width * (s.token_rows + s.position_rows + s.type_rows) + s.of_input.matrices +
             s.layers * ((s.has_cross ? 2 : 1) * (attention + s.score_weights()) +
                         std::max<int64_t>(1, s.experts) * mlp + s.experts * s.width);
  }
  return count;
}

// Passes over 1, 2, .. tokens in all: a pass over t tokens takes c0 + c1 t + c2 t^2.
double all_passes_flops(const Analysis& a) {
  Workload w = a.workload;
  int64_t& length = a.plan.stacks.size() > 1 ? w.target : w.source;
  const auto n = static_cast<double>(length);
  double f[3];
  for (int i = 0; i < 3; ++i) {
    length = i + 1;
    f[i] = static_cast<double>(sum_flops(steps_of(a.plan, w)));
  }
  const double c2 = (f[2] - 2 * f[1] + f[0]) / 2, c1 = f[1] - f[0] - 3 * c2, c0 = f[0] - c1 - c2;
  return c0 * n + c1 * n * (n + 1) / 2 + c2 * n * (n + 1) * (2 * n + 1) / 6;
}

void add_flops(Analysis& a) {
  for (const Step& step : a.steps) {
    const int64_t flops = step.times * step.flops;
    a.forward_flops += flops;
    if (step.is_attention) a.attention_flops += flops;
  }
  // Backward, each product has two: by either factor. Flash attention's five are scores again,
  // and the gradients of values, weights, queries and keys.
  const int64_t linear = a.forward_flops - a.attention_flops;
  a.training_flops = 3 * a.forward_flops;
  // Scores of other kinds have no flash attention.
  const bool has_flash = a.plan.stacks.back().scoring.kind == Scoring::dot;
  a.training_flash_flops =
      has_flash ? 3 * linear + a.attention_flops + 5 * a.attention_flops / 2 : a.training_flops;
  if (a.plan.vocab == 0 || !a.plan.stacks.back().is_causal) return;
  // Over caches each token is computed once, and sees what a causal pass lets it see.
  a.decoding_flops = a.forward_flops;
  for (const Step& step : a.steps) a.decoding_flops -= step.times * step.hidden_flops;
  if (a.workload.window == 0) a.uncached_decoding_flops = all_passes_flops(a);
}

void add_memory(Analysis& a) {
  const int64_t matrices = a.matrix_parameters, vectors = a.parameters - matrices;
  a.weights = mixed_bytes(matrices, vectors);
  // f32: gradients and two moments. bf16: the f32 masters of matrices too.
  a.optimizer = {12 * a.parameters, 12 * a.parameters + 4 * matrices};
  int64_t kept = 0, kept_f32 = 0, widest = 0, all = 0, rows = 0, dearest = 0;
  for (const Step& step : a.steps) {
    kept += step.times * step.kept;
    kept_f32 += step.times * step.kept_f32;
    all += step.times * step.matrix;
    rows += step.times * step.matrix_rows;
    dearest = std::max(dearest, step.matrix);
    if (step.matrix > 0) {
      a.attention.entries = std::max(a.attention.entries, step.out[1] * step.out[2]);
      a.attention.matrices += step.times * step.out[0];
    }
    if (step.matrix == 0 && !step.is_attention) {
      int64_t in = 1, out = 1;
      for (const int64_t n : step.in) in *= n;
      for (const int64_t n : step.out) out *= n;
      widest = std::max(widest, in + out);
    }
  }
  a.kept = {4 * (kept + kept_f32), 2 * kept + 4 * kept_f32};
  a.at_once = bytes_of(widest);
  a.attention.head = bytes_of(a.attention.entries);
  a.attention.all = bytes_of(all);
  a.attention.one_layer = bytes_of(dearest);
  a.attention.has_flash = a.plan.stacks.back().scoring.kind == Scoring::dot;
  a.attention.flash = a.attention.has_flash ? Bytes{4 * rows, 4 * rows} : a.attention.all;
  int64_t entering = 0;
  for (size_t i = 0; i < a.plan.stacks.size(); ++i) {
    const StackPlan& s = a.plan.stacks[i];
    entering +=
        s.layers * s.width * a.workload.batch * (i == 0 ? a.workload.source : a.workload.target);
  }
  a.recomputed = bytes_of(entering);
}

void add_caches(Analysis& a) {
  const StackPlan& writer = a.plan.stacks.back();
  if (a.decoding_flops == 0) return;
  const int64_t each = writer.layers * 2 * writer.key_width();
  a.cache_token = bytes_of(each);
  int64_t tokens = a.workload.batch * target_length(a.plan, a.workload);
  if (writer.has_cross) {
    a.cache_source = bytes_of(each);
    tokens += a.workload.batch * a.workload.source;
  }
  a.cache = bytes_of(each * tokens);
}

// All sums are whole numbers of 64 bits: FLOPs of training, the largest of them, must fit.
void check_countable(const ModelPlan& plan, const Workload& w) {
  double flops = 0;
  const double longest = static_cast<double>(std::max(w.source, w.target));
  for (const StackPlan& s : plan.stacks) {
    const auto d = static_cast<double>(s.width), f = static_cast<double>(s.hidden);
    const auto q = static_cast<double>(std::max(s.query_width(), s.width));
    const double copies = s.experts > 0 ? static_cast<double>(s.experts) : 1;
    flops += static_cast<double>(s.layers) * (16 * d * q + 6 * d * f * copies + 8 * longest * q);
    flops += d * static_cast<double>(plan.vocab + s.token_rows + s.position_rows + s.type_rows);
  }
  flops *= 16 * longest * static_cast<double>(w.batch);
  check(flops < 9e18, ErrorKind::data,
        "{}: with batch {} and length {} the sums do not fit into 64 bits; ask for less", plan.name,
        w.batch, std::max(w.source, w.target));
}

Workload filled(const ModelPlan& plan, Workload w) {
  if (w.source == 0)
    w.source = plan.stacks[0].position_rows > 0 ? plan.stacks[0].position_rows : 512;
  if (w.target == 0) w.target = w.source;
  check(w.batch >= 1, ErrorKind::usage, "`batch` is {}; it must be at least 1", w.batch);
  check(w.source >= 1, ErrorKind::usage, "`length` is {}; it must be at least 1", w.source);
  check(w.target >= 1, ErrorKind::usage, "`target_length` is {}; it must be at least 1", w.target);
  check(w.window >= 0, ErrorKind::usage, "`window` is {}; it must be at least 1, or 0 for none",
        w.window);
  check_countable(plan, w);
  for (size_t i = 0; i < plan.stacks.size(); ++i) {
    const int64_t length = i == 0 ? w.source : w.target, rows = plan.stacks[i].position_rows;
    check(
        rows == 0 || length <= rows, ErrorKind::data,
        "{}: {} tokens are more than its {} learned positions; ask for a shorter `length`, or for "
        "more positions with `set`",
        plan.name, length, rows);
  }
  return w;
}

}  // namespace

Analysis analyze(const ModelPlan& plan, const Workload& workload) {
  Analysis a{.plan = plan, .workload = filled(plan, workload)};
  a.steps = steps_of(plan, a.workload);
  a.parameters = model_parameters(plan);
  a.matrix_parameters = matrix_parameters(plan);
  add_flops(a);
  add_memory(a);
  add_caches(a);
  return a;
}

}  // namespace heddle::inspect
