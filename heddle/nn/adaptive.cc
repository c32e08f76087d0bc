// Rows sorted by cluster, looked up or predicted there, and put back; whose rows are whose.
#include "heddle/nn/adaptive.h"

#include <algorithm>
#include <cmath>

#include "heddle/ops/elementwise.h"
#include "heddle/ops/embedding.h"
#include "heddle/ops/shape.h"

namespace heddle::nn {
namespace {

// The cluster of an id.
size_t cluster_of(const std::vector<TokenCluster>& clusters, int32_t id) {
  size_t c = 0;
  while (c + 1 < clusters.size() && id >= clusters[c + 1].begin) ++c;
  return c;
}

// x times the transpose of a projection [width, narrow] or, `back`, times the projection.
Tensor projected(const Tensor& x, Parameter* projection, bool back, const Run& run) {
  if (projection == nullptr) return x;
  const Tensor p = projection->in(run.compute);
  return back ? matmul(x, p) : linear(x, p, {});
}

}  // namespace

Tensor AdaptiveEmbedding::operator()(std::span<const int32_t> ids, const Run& run) const {
  const LayerName layer(name_);
  std::vector<std::vector<int32_t>> rows(clusters_.size());  // of each cluster's tables
  std::vector<std::pair<size_t, int32_t>> places;            // cluster, place there
  check_ids(ids, clusters_.back().begin + clusters_.back().tokens, name_);
  for (const int32_t id : ids) {
    const size_t c = cluster_of(clusters_, id);
    places.emplace_back(c, static_cast<int32_t>(rows[c].size()));
    rows[c].push_back(static_cast<int32_t>(id - clusters_[c].begin + clusters_[c].row));
  }
  std::vector<Tensor> parts;
  std::vector<int32_t> begins(clusters_.size());
  for (size_t c = 0, begin = 0; c < clusters_.size(); begin += rows[c++].size()) {
    begins[c] = static_cast<int32_t>(begin);
    if (rows[c].empty()) continue;
    Parameter& table = *clusters_[c].table;
    const Tensor x =
        embedding(is_recording() ? table.in(run.compute) : table.in_or_master(run.compute), rows[c],
                  1, {}, {}, {}, run.compute);
    parts.push_back(projected(x, clusters_[c].projection, false, run));
  }
  if (parts.empty()) {
    const TokenCluster& first = clusters_[0];
    const int64_t width =
        (first.projection != nullptr ? first.projection->shape()[0] : first.table->shape()[1]);
    return Tensor::empty({0, width}, run.compute);
  }
  Tensor x = parts.size() == 1 ? parts[0] : concat(parts, 0);
  if (parts.size() > 1) {
    std::vector<int32_t> index;
    for (const auto& [cluster, place] : places) index.push_back(begins[cluster] + place);
    x = gather_rows(x, index);
  }
  return scale(x, scale_);
}

// The first layer's tokens are followed by the classes of the other clusters.
AdaptiveSoftmax::Layer AdaptiveSoftmax::layer(size_t cluster, const Tensor& h,
                                              const Run& run) const {
  const TokenCluster& c = clusters_[cluster];
  const Tensor all = c.table->in(run.compute), bias = c.bias->in(DType::f32);
  const bool is_whole = c.tokens == all.size(0);
  Layer l{projected(h, c.projection, true, run), is_whole ? all : slice(all, 0, c.row, c.tokens),
          is_whole ? bias : slice(bias, 0, c.row, c.tokens)};
  if (cluster == 0 && head_weight_ != nullptr) {
    l.weight = concat({l.weight, head_weight_->in(run.compute)}, 0);
    l.bias = concat({l.bias, head_bias_->in(DType::f32)}, 0);
  }
  return l;
}

Tensor AdaptiveSoftmax::log_probabilities(const Tensor& h, const Run& run) const {
  const NoGrad off;
  const LayerName name(name_);
  const int64_t rows = h.size(0);
  const Tensor result = Tensor::empty({rows, vocab()}, DType::f32);
  Tensor head;  // log p of the first cluster's tokens, then of the other clusters
  for (size_t c = 0; c < clusters_.size(); ++c) {
    const Layer l = layer(c, h, run);
    const Tensor logits = linear(l.x, l.weight, l.bias, {.result = DType::f32});
    const Tensor log_p = Tensor::empty(logits.shape(), DType::f32);
    kernels().log_softmax(logits.rows(), log_p.rows());
    if (c == 0) head = log_p;
    if (is_counting()) continue;
    const int64_t tokens = clusters_[c].tokens;
    for (int64_t r = 0; r < rows; ++r) {
      const float* const of_row = head.rows().row<float>(r);
      const float of_cluster =
          c == 0 ? 0 : of_row[clusters_[0].tokens + static_cast<int64_t>(c) - 1];
      float* const to = result.rows().row<float>(r) + clusters_[c].begin;
      const float* const from = log_p.rows().row<float>(r);
      for (int64_t j = 0; j < tokens; ++j) to[j] = of_cluster + from[j];
    }
  }
  return result;
}

CrossEntropy AdaptiveSoftmax::loss(const Tensor& h, std::span<const int32_t> targets,
                                   const CrossEntropyOptions& options, const Run& run) const {
  check(options.smoothing == 0 && options.divergence == 0, ErrorKind::data,
        "an adaptive softmax has neither label smoothing nor R-Drop; set both to 0");
  const LayerName name(name_);
  const auto head_tokens = static_cast<int32_t>(clusters_[0].tokens);
  std::vector<int32_t> of_head(targets.begin(), targets.end());
  std::vector<std::vector<int32_t>> rows(clusters_.size()), within(clusters_.size());
  for (size_t r = 0; r < targets.size(); ++r) {
    const int32_t id = targets[r];
    check(id < vocab(), ErrorKind::data, "the target {} of row {} is not below {}", id, r, vocab());
    if (id < head_tokens) continue;
    const size_t c = cluster_of(clusters_, id);
    of_head[r] = head_tokens + static_cast<int32_t>(c) - 1;
    rows[c].push_back(static_cast<int32_t>(r));
    within[c].push_back(static_cast<int32_t>(id - clusters_[c].begin));
  }
  const Layer head = layer(0, h, run);
  CrossEntropy sum = linear_cross_entropy(head.x, head.weight, head.bias, of_head, options);
  for (size_t c = 1; c < clusters_.size(); ++c) {
    if (rows[c].empty()) continue;
    const Layer l = layer(c, gather_rows(h, rows[c]), run);
    const CrossEntropy part = linear_cross_entropy(l.x, l.weight, l.bias, within[c], options);
    sum.loss = add(sum.loss, part.loss);
    sum.total += part.total;
    sum.nll += part.nll;
  }
  return sum;
}

int64_t AdaptiveOptions::narrow_of(int64_t i) const {
  int64_t result = narrow;
  for (int64_t n = 0; n < i && divisor > 1 && result > 0; ++n) result /= divisor;
  return result;
}

void AdaptiveOptions::check(const std::string& source) const {
  int64_t before = 0;
  for (const int64_t cutoff : cutoffs) {
    heddle::check(cutoff > before && cutoff < vocab, ErrorKind::data,
                  "{}: cutoffs are {}; they must rise from above 0 to below vocab_size {}", source,
                  fmt::join(cutoffs, ", "), vocab);
    before = cutoff;
  }
  heddle::check(narrow_of(groups() - 1) >= 1, ErrorKind::data,
                "{}: d_embed {} divided by {} for each of {} cutoffs leaves nothing", source,
                narrow, divisor, cutoffs.size());
}

Parameter* AdaptiveTables::projection(const Scope& s, int64_t group, int64_t number) const {
  return &(s / number).parameter({o_.width, o_.narrow_of(group)}, Init::normal(o_.projection_std));
}

// Of tokens coming in, or, `is_out`, going out.
std::vector<TokenCluster> AdaptiveTables::clusters(bool is_out) const {
  std::vector<TokenCluster> all;
  const bool is_alone = o_.divisor > 1;  // each group in a table of its own
  const Scope tables = is_out && !o_.is_tied ? out_ / "out_layers" : in_ / "emb_layers";
  for (int64_t i = 0; i < o_.groups(); ++i) {
    const int64_t begin = o_.begin_of(i), tokens = o_.begin_of(i + 1) - begin;
    const int64_t table = is_alone ? i : 0, rows = is_alone ? tokens : o_.vocab;
    TokenCluster w{.begin = begin, .tokens = tokens, .row = is_alone ? 0 : begin};
    w.table = &(tables / table / "weight").parameter({rows, o_.narrow_of(i)}, Init::normal(o_.std));
    if (o_.has_projections()) {
      w.projection = is_out && !o_.tied_projections[i] ? projection(out_ / "out_projs", i, i)
                                                       : projection(in_ / "emb_projs", i, table);
    }
    if (is_out) {
      w.bias = &(out_ / "out_layers" / table / "bias").parameter({rows}, Init::zeros());
    }
    all.push_back(w);
  }
  return all;
}

AdaptiveEmbedding AdaptiveTables::embedding() const {
  return {in_.prefix(), clusters(false),
          static_cast<float>(std::sqrt(static_cast<double>(o_.width)))};
}

OutputProjection AdaptiveTables::output() const {
  Parameter *weight = nullptr, *bias = nullptr;
  if (o_.groups() > 1) {
    const int64_t classes = o_.groups() - 1;
    weight = &(out_ / "cluster_weight").parameter({classes, o_.narrow}, Init::normal(o_.std));
    bias = &(out_ / "cluster_bias").parameter({classes}, Init::zeros());
  }
  return OutputProjection(
      std::make_shared<const AdaptiveSoftmax>(out_.prefix(), clusters(true), weight, bias));
}

std::vector<std::pair<std::string, std::string>> AdaptiveTables::tied() const {
  std::vector<std::pair<std::string, std::string>> names;
  const bool is_alone = o_.divisor > 1;
  for (int64_t i = 0; i < o_.groups(); ++i) {
    const int64_t table = is_alone ? i : 0;
    if (o_.is_tied && table == i) {
      names.emplace_back((out_ / "out_layers" / table / "weight").prefix(),
                         (in_ / "emb_layers" / table / "weight").prefix());
    }
    if (o_.has_projections() && o_.tied_projections[i]) {
      names.emplace_back((out_ / "out_projs" / i).prefix(), (in_ / "emb_projs" / table).prefix());
    }
  }
  return names;
}

}  // namespace heddle::nn
