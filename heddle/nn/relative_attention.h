// Multi-head attention by content and distance, as Transformer-XL and XLNet have it.
#pragma once

#include "heddle/nn/layers.h"
#include "heddle/nn/memory.h"
#include "heddle/nn/words.h"
#include "heddle/ops/relative_attention.h"

namespace heddle::nn {

/// What the distances of one pass look like before each layer projects them.
struct Distances {
  int32_t farthest = 0;  ///< see RelativeOptions
  Tensor table;          ///< [distances, width] sinusoids: sines, then cosines
};
/// Sinusoids of the distances farthest .. nearest, both at most `clamp` from 0 if that is above 0.
/// Source: Vaswani et al. 2017, section 3.5, of places that may be negative.
Distances distances(int32_t farthest, int32_t nearest, int64_t clamp, int64_t width, DType dtype);

/// Drops numbers of each distance on its own.
void drop(Distances& distances, double p, const Run& run);
/// The greatest and the least distance of a query and a key of its segment; 0 if there is none.
int32_t farthest(const RelativeRows& rows);
int32_t nearest(const RelativeRows& rows);

/// The rule of a causal stack with memory: key_places of `keys` rows, query_places of `queries`; a
/// query sees what is at most window - 1 places back (0: all), and nothing after itself.
void see_back(RelativeRows& rows, int64_t window);

/// Keys, values and projected distances of one layer.
struct RelativeKeys {
  Tensor k, v;  ///< [key rows, heads * d]
  Tensor r;     ///< [distances, heads * d]
  int32_t farthest = 0;
};

/// The scores' biases and what follows them.
class RelativeAttention {
 public:
  struct Options {
    int64_t heads = 1;
    double dropout = 0;             ///< of the weights
    Parameter* content = nullptr;   ///< u: heads * d values
    Parameter* distance = nullptr;  ///< v
    Parameter* type = nullptr;      ///< s of XLNet, or null
    Parameter* types = nullptr;     ///< [2, ..]: keys of the own type, and of another
  };
  /// `name` is the site of the dropout.
  RelativeAttention(std::string name, Options options)
      : name_(std::move(name)), options_(options) {}

  /// q: [rows, heads * d]; rows.query_types empty: types do not count. `observed`: the name that an
  /// observer is given; row_ids: for dropout    returns: [rows, heads * d], before any projection.
  struct Call {
    const RelativeRows* rows = nullptr;
    std::shared_ptr<const RowIds> row_ids = nullptr;
    std::string observed = {};
  };
  Tensor operator()(const Tensor& q, const RelativeKeys& keys, const Call& call,
                    const Run& run) const;

 private:
  Tensor type_scores(const Tensor& q, const Run& run) const;

  std::string name_;
  Options options_;
};

}  // namespace heddle::nn
