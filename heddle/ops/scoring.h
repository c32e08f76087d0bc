// Attention by any scores, composed of primitive ops: what the fused kernel is not for, and its
// plain definition.
#pragma once

#include <span>
#include <vector>

#include "heddle/ops/attention.h"

namespace heddle {

/// How well each query fits each key, with gradients. q: [n, d], k: [m, d]    returns: [n, m]
/// Errors: shape if the widths differ.
/// q k times a factor.
Tensor dot_scores(const Tensor& q, const Tensor& k, float factor);
/// vᵀ tanh(q + k), where q and k are W₁q and W₂k already. v: [1, d], of the dtype of q
/// Source: Bahdanau et al. 2015, "Neural Machine Translation by Jointly Learning to Align and
/// Translate", appendix A.1.2.
Tensor additive_scores(const Tensor& q, const Tensor& k, const Tensor& v);
/// wᵀ [q; k], one linear layer over both. w: [1, 2 d]. The part of the query is the same for every
/// key, so the softmax does not depend on the query.
Tensor linear_scores(const Tensor& q, const Tensor& k, const Tensor& w);
/// -|q - k|² / 2: a soft look-up by nearness (Nadaraya 1964; Watson 1964).
Tensor gaussian_scores(const Tensor& q, const Tensor& k);

/// softmax(scores) v over the keys that each query sees.
/// scores: [n, m], v: [m, any], mask: n * m values, row by row, 0: hidden; empty: all are seen
/// returns: [n, any]; a query that sees no key gives zeros. `dropout` is of the weights.
/// Errors: shape if the sizes do not fit.
Tensor attend(const Tensor& scores, const Tensor& v, std::span<const uint8_t> mask = {},
              const DropoutSpec& dropout = {});

/// Errors: shape unless heads, widths and segments fit one another.
void check_attention(const Tensor& q, const Tensor& k, const Tensor& v, const Segments& queries,
                     const Segments& keys, const AttentionOptions& options);
/// A mask, as attend() takes it, of rows of one segment's queries: by options.visibility, or
/// causal.
std::vector<uint8_t> seen_keys(const Segments& queries, const Segments& keys, int64_t segment,
                               QueryRows rows, const AttentionOptions& options);
/// Scores of a head, [n, m], with its bias; `position` is that of the first query.
Tensor add_bias(const Tensor& scores, const RelativeBias& bias, int64_t head, int64_t position);
/// Scores with -inf where the mask hides a key.
Tensor hide(const Tensor& scores, std::span<const uint8_t> mask);

/// attention() for any scoring, segment by segment and head by head; the pairs of
/// queries and keys are computed in chunks, but with a gradient all are kept. Errors: shape.
Tensor scored_attention(const Tensor& q, const Tensor& k, const Tensor& v, const Segments& queries,
                        const Segments& keys, const AttentionOptions& options);
/// The scores of one segment and head by options.scoring, before the mask. q: [n, d], k: [m, d]
Tensor head_scores(const Tensor& q, const Tensor& k, const AttentionOptions& options, int64_t head);

}  // namespace heddle
