// One attention call, as the observer of a pass is shown it.
#pragma once

#include <string>
#include <variant>

#include "heddle/ops/relative_attention.h"

namespace heddle::nn {

/// What the scores of products, or of small networks, are made of.
struct DotInputs {
  Tensor q;  ///< [query rows, heads * d]
  Tensor k;  ///< [key rows, key_heads * d]
  const AttentionOptions* options;
};

/// What the scores by content and distance are made of.
struct DistanceInputs {
  RelativeInputs x;
  const RelativeRows* rows;
  const RelativeOptions* options;
};

/// A view: what it refers to lives as long as the observer has not returned.
class AttentionCall {
 public:
  AttentionCall(std::string name, const Tensor& q, const Tensor& k, const Segments& queries,
                const Segments& keys, const AttentionOptions& options);
  AttentionCall(std::string name, const RelativeInputs& x, const RelativeRows& rows,
                const RelativeOptions& options);

  /// "cross_attentions.0".
  const std::string& name() const { return name_; }
  /// Segment i of both is sequence i.
  const Segments& queries() const { return *queries_; }
  const Segments& keys() const { return *keys_; }
  int64_t heads() const;

  /// The weights of some queries of one segment and head without dropout, [rows.count, keys] f32,
  /// computed again.
  Tensor weights(int64_t segment, int64_t head, QueryRows rows = {}) const;
  /// Row by row, 1 where a query of the segment sees a key, else 0; empty: each sees all.
  std::vector<uint8_t> seen(int64_t segment) const;
  /// Whether no query of segment 0 sees a key that comes after it.
  bool is_causal() const;

  /// One of the two is not null.
  const DotInputs* dot() const { return std::get_if<DotInputs>(&inputs_); }
  const DistanceInputs* distance() const { return std::get_if<DistanceInputs>(&inputs_); }

 private:
  std::string name_;
  const Segments *queries_, *keys_;
  std::variant<DotInputs, DistanceInputs> inputs_;
};

}  // namespace heddle::nn
