// What an observer may ask of an attention call, computed when it asks.
#include "heddle/nn/attention_call.h"

#include "heddle/ops/scoring.h"

namespace heddle::nn {

AttentionCall::AttentionCall(std::string name, const Tensor& q, const Tensor& k,
                             const Segments& queries, const Segments& keys,
                             const AttentionOptions& options)
    : name_(std::move(name)),
      queries_(&queries),
      keys_(&keys),
      inputs_(DotInputs{q.detached(), k.detached(), &options}) {}

AttentionCall::AttentionCall(std::string name, const RelativeInputs& x, const RelativeRows& rows,
                             const RelativeOptions& options)
    : name_(std::move(name)),
      queries_(&rows.queries),
      keys_(&rows.keys),
      inputs_(DistanceInputs{x.detached(), &rows, &options}) {}

int64_t AttentionCall::heads() const {
  return dot() != nullptr ? dot()->options->heads : distance()->options->heads;
}

Tensor AttentionCall::weights(int64_t segment, int64_t head, QueryRows rows) const {
  if (const DotInputs* in = dot()) {
    return attention_weights(in->q, in->k, *queries_, *keys_, *in->options, segment, head, rows);
  }
  const DistanceInputs& in = *distance();
  return relative_attention_weights(in.x, *in.rows, *in.options, segment, head, rows);
}

std::vector<uint8_t> AttentionCall::seen(int64_t segment) const {
  const int64_t n = queries_->length(segment), m = keys_->length(segment);
  if (const DotInputs* in = dot()) {
    return seen_keys(*queries_, *keys_, segment, {0, n}, *in->options);
  }
  const RelativeRows& rows = *distance()->rows;
  if (rows.visibility.is_all() && rows.hidden.empty()) return {};
  int64_t before = 0;  // pairs of the segments before
  for (int64_t s = 0; s < segment; ++s) before += queries_->length(s) * keys_->length(s);
  std::vector<uint8_t> seen;
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < m; ++j) {
      const bool is_hidden = !rows.hidden.empty() && rows.hidden[before + i * m + j] != 0;
      seen.push_back(!is_hidden && rows.visibility.sees(queries_->begin(segment) + i,
                                                        keys_->begin(segment) + j, j));
    }
  }
  return seen;
}

bool AttentionCall::is_causal() const {
  if (const DotInputs* in = dot()) return in->options->causal;
  const int64_t n = queries_->length(0), m = keys_->length(0);
  return n > 1 && m > 0 &&
         !distance()->rows->visibility.sees(queries_->begin(0), keys_->begin(0) + m - 1, m - 1);
}

}  // namespace heddle::nn
