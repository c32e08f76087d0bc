// Biases of queries, scores of types, sinusoids of distances.
#include "heddle/nn/relative_attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "heddle/ops/elementwise.h"
#include "heddle/ops/shape.h"

namespace heddle::nn {
namespace {

// The greatest of query place - key place of each segment, where places count as their negatives if
// `sign` is -1: then its negative is the least.
int32_t extreme(const RelativeRows& rows, int32_t sign) {
  bool is_found = false;
  int32_t most = 0;
  for (int64_t s = 0; s < rows.queries.count(); ++s) {
    int32_t query = std::numeric_limits<int32_t>::min(), key = std::numeric_limits<int32_t>::max();
    if (rows.queries.length(s) == 0 || rows.keys.length(s) == 0) continue;
    for (int64_t i = rows.queries.begin(s); i < rows.queries.end(s); ++i) {
      query = std::max(query, sign * rows.query_places[i]);
    }
    for (int64_t j = rows.keys.begin(s); j < rows.keys.end(s); ++j) {
      key = std::min(key, sign * rows.key_places[j]);
    }
    most = is_found ? std::max(most, query - key) : query - key;
    is_found = true;
  }
  return most;
}

}  // namespace

Distances distances(int32_t farthest, int32_t nearest, int64_t clamp, int64_t width, DType dtype) {
  const auto most =
      static_cast<int32_t>(clamp > 0 ? std::min<int64_t>(clamp, std::numeric_limits<int32_t>::max())
                                     : std::numeric_limits<int32_t>::max());
  farthest = std::clamp(farthest, -most, most);
  nearest = std::clamp(nearest, -most, most);
  const int64_t half = width / 2;
  const Tensor table = Tensor::empty({farthest - nearest + 1, width}, DType::f32);
  for (int64_t i = 0; i < half; ++i) {
    const double frequency =
        std::pow(10000.0, -2.0 * static_cast<double>(i) / static_cast<double>(width));
    for (int64_t t = 0; t < table.size(0); ++t) {
      const double angle = static_cast<double>(farthest - t) * frequency;
      table.data<float>()[t * width + i] = static_cast<float>(std::sin(angle));
      table.data<float>()[t * width + half + i] = static_cast<float>(std::cos(angle));
    }
  }
  return {farthest, cast(table, dtype)};
}

void drop(Distances& distances, double p, const Run& run) {
  auto ids = std::make_shared<RowIds>();
  for (int64_t t = 0; t < distances.table.size(0); ++t) {
    ids->sample.push_back(0);
    ids->position.push_back(static_cast<uint32_t>(distances.farthest - t));
  }
  distances.table = dropout(distances.table, run.dropout(p, "pos_emb", ids));
}

int32_t farthest(const RelativeRows& rows) { return extreme(rows, 1); }
int32_t nearest(const RelativeRows& rows) { return -extreme(rows, -1); }

void see_back(RelativeRows& rows, int64_t window) {
  rows.order = rows.key_places;
  for (const int32_t place : rows.query_places) {
    rows.limit.push_back(place + 1);
    rows.first.push_back(window > 0 ? static_cast<int32_t>(place + 1 - window)
                                    : std::numeric_limits<int32_t>::min());
  }
}

// (q + s) · e for the two embeddings e of each head: [rows, 2 * heads] f32.
Tensor RelativeAttention::type_scores(const Tensor& q, const Run& run) const {
  const Tensor embeddings = options_.types->in(run.compute);
  const int64_t width = q.size(1), d = width / options_.heads;
  const Tensor biased = add_bias(q, options_.type->in(DType::f32));
  std::vector<Tensor> scores;
  for (int64_t h = 0; h < options_.heads; ++h) {
    scores.push_back(linear(slice(biased, 1, h * d, d), slice(embeddings, 1, h * d, d), {}));
  }
  return cast(concat(scores, 1), DType::f32);
}

Tensor RelativeAttention::operator()(const Tensor& q, const RelativeKeys& keys, const Call& call,
                                     const Run& run) const {
  const LayerName layer(name_);
  RelativeInputs x{add_bias(q, options_.content->in(DType::f32)),
                   add_bias(q, options_.distance->in(DType::f32)),
                   keys.k,
                   keys.v,
                   keys.r,
                   {}};
  if (!call.rows->query_types.empty()) x.types = type_scores(q, run);
  const RelativeOptions options{.heads = options_.heads,
                                .farthest = keys.farthest,
                                .dropout = run.dropout(options_.dropout, name_, call.row_ids)};
  if (run.observer != nullptr && run.observer->relative) {
    run.observer->relative(call.observed, x, *call.rows, options);
  }
  return relative_attention(x, *call.rows, options);
}

}  // namespace heddle::nn
