// The tables that tokens by frequency are looked up and predicted in, under their names in
// checkpoints.
#pragma once

#include "heddle/nn/adaptive.h"
#include "heddle/nn/embedding.h"

namespace heddle::nn {

/// How the tokens of a vocabulary are grouped, commonest first, and what the groups share.
/// Source: Baevski & Auli 2019, section 3; Dai et al. 2019, section 4.1.
struct AdaptiveOptions {
  int64_t vocab = 0;
  std::vector<int64_t> cutoffs = {};  ///< ids where the second group begins, the third, ..
  int64_t width = 0;                  ///< of the states
  int64_t narrow = 0;                 ///< of the vectors of the first group's tokens
  int64_t divisor = 1;                ///< each next group's are narrower by it; 1: all in one table
  bool is_tied = true;  ///< tokens are predicted by the tables that they are looked up in
  std::vector<bool> tied_projections = {};   ///< of each group: the same of its projection
  double std = 0.02, projection_std = 0.01;  ///< of the weights at the start

  int64_t groups() const { return static_cast<int64_t>(cutoffs.size()) + 1; }
  /// Width of the vectors of group i; at least 1 in a sound config.
  int64_t narrow_of(int64_t i) const;
  /// Ids of group i begin here; of group groups(): where all end.
  int64_t begin_of(int64_t i) const { return i == 0 ? 0 : i == groups() ? vocab : cutoffs[i - 1]; }
  bool has_projections() const { return divisor > 1 || narrow != width; }

  /// Errors: data, naming `source`, if cutoffs do not rise within the vocabulary or vectors narrow
  /// to nothing.
  void check(const std::string& source) const;
};

/// Parameters of an AdaptiveEmbedding under `in` (emb_layers.I.weight, emb_projs.I) and of an
/// AdaptiveSoftmax under `out` (out_layers.I.weight and bias, out_projs.I, cluster_weight,
/// cluster_bias), as Hugging Face's transfo-xl names them.
class AdaptiveTables {
 public:
  AdaptiveTables(Scope in, Scope out, AdaptiveOptions options)
      : in_(std::move(in)), out_(std::move(out)), o_(std::move(options)) {}

  AdaptiveEmbedding embedding() const;
  OutputProjection output() const;
  /// For TensorNames::tied, of a model that has both.
  std::vector<std::pair<std::string, std::string>> tied() const;

 private:
  std::vector<TokenCluster> clusters(bool is_out) const;
  Parameter* projection(const Scope& s, int64_t group, int64_t number) const;

  Scope in_, out_;
  AdaptiveOptions o_;
};

}  // namespace heddle::nn
