// The plain definitions of fused ops.
#include "tests/ops/references.h"

#include <cmath>
#include <limits>

#include "heddle/ops/embedding.h"
#include "heddle/ops/reduce.h"
#include "heddle/ops/scoring.h"
#include "heddle/ops/shape.h"

namespace heddle {
namespace {

constexpr float kUnseen = -std::numeric_limits<float>::infinity();
constexpr float kHidden = -1e30f;  // of the mask of pairs

// The part of kUnseen, or of kHidden, that each score of a segment gets.
Tensor mask_of(const RelativeRows& rows, int64_t segment, int64_t mask_begin) {
  const int64_t n = rows.queries.length(segment), m = rows.keys.length(segment);
  Tensor mask = Tensor::zeros({n, m}, DType::f32);
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < m; ++j) {
      float& value = mask.data<float>()[i * m + j];
      if (!rows.hidden.empty() && rows.hidden[mask_begin + i * m + j] != 0) value = kHidden;
      if (!rows.visibility.sees(rows.queries.begin(segment) + i, rows.keys.begin(segment) + j, j)) {
        value = kUnseen;
      }
    }
  }
  return mask;
}

// y[i, j] = x[i, index[i * m + j]]. x: [n, any] f32
Tensor gather_columns(const Tensor& x, const std::vector<int32_t>& index, int64_t m) {
  const int64_t n = x.size(0), width = x.size(1);
  std::vector<int32_t> flat;
  for (int64_t i = 0; i < n * m; ++i) {
    flat.push_back(static_cast<int32_t>(i / m * width) + index[i]);
  }
  return reshape(gather_rows(reshape(x, {n * width, 1}), flat), {n, m});
}

// The scores of one segment and head before scale and mask: q, k, r are its parts.
Tensor plain_scores(const RelativeInputs& x, const RelativeRows& rows, const RelativeOptions& o,
                    int64_t segment, int64_t head) {
  const int64_t n = rows.queries.length(segment), m = rows.keys.length(segment);
  const int64_t q_first = rows.queries.begin(segment), k_first = rows.keys.begin(segment);
  std::vector<int32_t> distance, is_other;
  for (int64_t i = q_first; i < q_first + n; ++i) {
    for (int64_t j = k_first; j < k_first + m; ++j) {
      distance.push_back(static_cast<int32_t>(
          o.row_of_r(x.r.size(0), rows.query_positions[i], rows.key_positions[j])));
      if (x.types.defined()) is_other.push_back(rows.query_types[i] != rows.key_types[j]);
    }
  }
  const Tensor content = cast(matmul(x.content, transpose(x.k, 0, 1)), DType::f32);
  const Tensor far = cast(matmul(x.distance, transpose(x.r, 0, 1)), DType::f32);
  const Tensor scores = add(content, gather_columns(far, distance, m));
  if (!x.types.defined()) return scores;
  const Tensor types = slice(slice(x.types, 0, q_first, n), 1, 2 * head, 2);
  // A copy, as a reshape needs: slices have gaps between their rows.
  return add(scores, gather_columns(concat({types}, 0), is_other, m));
}

}  // namespace

Tensor activation_reference(Activation kind, const Tensor& x, const DropoutSpec& spec) {
  return dropout(activation(kind, x), spec);
}

Tensor embedding_reference(const Tensor& table, std::span<const int32_t> ids, float scale_by,
                           const Tensor& positions, std::span<const int32_t> position_ids,
                           const DropoutSpec& spec) {
  Tensor y = scale(gather_rows(table, ids), scale_by);
  if (positions.defined()) y = add(y, gather_rows(positions, position_ids));
  return dropout(y, spec);
}

Tensor linear_reference(const Tensor& x, const Tensor& w, const Tensor& bias, Activation kind) {
  const Tensor product = matmul(x, transpose(w, 0, 1));
  const Tensor y = bias.defined() ? add_bias(product, bias) : product;
  return kind == Activation::none ? y : activation(kind, y, {});
}

AddNorm add_norm_reference(const Tensor& x, const Tensor& sub, const DropoutSpec& spec,
                           const Tensor& gamma, const Tensor& beta, float eps) {
  const Tensor h = add(x, dropout(sub, spec));
  return {h, layer_norm(h, gamma, beta, eps)};
}

CrossEntropy linear_cross_entropy_reference(const Tensor& x, const Tensor& w, const Tensor& bias,
                                            std::span<const int32_t> targets,
                                            const CrossEntropyOptions& options) {
  return cross_entropy(linear(x, w, bias), targets, options);
}

Tensor attention_reference(const Tensor& q, const Tensor& k, const Tensor& v,
                           const Segments& queries, const Segments& keys,
                           const AttentionOptions& o) {
  check(o.dropout.p <= 0 && o.key_rows.empty(), ErrorKind::internal,
        "attention_reference has neither dropout nor key_rows");
  return scored_attention(q, k, v, queries, keys, o);
}

Tensor relative_attention_reference(const RelativeInputs& x, const RelativeRows& rows,
                                    const RelativeOptions& o) {
  check(o.dropout.p <= 0, ErrorKind::internal, "relative_attention_reference has no dropout");
  const int64_t d = x.content.size(1) / o.heads;
  const float factor = o.scale != 0 ? o.scale : 1.0f / std::sqrt(static_cast<float>(d));
  std::vector<Tensor> parts;
  int64_t mask_begin = 0;
  for (int64_t i = 0; i < rows.queries.count(); ++i) {
    const int64_t n = rows.queries.length(i), m = rows.keys.length(i);
    if (n == 0) continue;
    if (m == 0) {
      parts.push_back(Tensor::zeros({n, x.content.size(1)}, x.content.dtype()));
      continue;
    }
    std::vector<Tensor> heads;
    for (int64_t h = 0; h < o.heads; ++h) {
      const auto part = [&](const Tensor& t, const Segments& s) {
        return slice(slice(t, 0, s.begin(i), s.length(i)), 1, h * d, d);
      };
      const RelativeInputs of_head{part(x.content, rows.queries), part(x.distance, rows.queries),
                                   part(x.k, rows.keys),          part(x.v, rows.keys),
                                   slice(x.r, 1, h * d, d),       x.types};
      const Tensor scores = scale(plain_scores(of_head, rows, o, i, h), factor);
      const Tensor p = softmax(add(scores, mask_of(rows, i, mask_begin)));
      heads.push_back(matmul(cast(p, x.v.dtype()), of_head.v));
    }
    parts.push_back(concat(heads, 1));
    mask_begin += n * m;
  }
  return concat(parts, 0);
}

}  // namespace heddle
