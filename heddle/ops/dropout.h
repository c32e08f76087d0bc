// Dropout whose mask is a pure function of seed, update, layer and the row's place in the data.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "heddle/autograd/tape.h"
#include "heddle/kernels/kernels.h"

namespace heddle {

/// Where each row of a batch comes from: what makes masks independent of batching.
struct RowIds {
  std::vector<uint32_t> sample;    ///< [rows] number of the sample in the corpus
  std::vector<uint32_t> position;  ///< [rows] position in its sequence

  /// Those of some rows, in this order; 0 and 0 where a row is -1.
  std::shared_ptr<const RowIds> of(std::span<const int32_t> rows) const;
};

/// What to drop: probability p, the key of this use, and the rows that it runs over. p = 0:
/// nothing.
struct DropoutSpec {
  float p = 0;
  RngKey key;
  std::shared_ptr<const RowIds> rows;
  /// All rows of a sample are dropped or none is: stochastic depth. Source: Huang et al. 2016.
  bool of_samples = false;

  /// The same rows with other numbers, those of a head.
  DropoutSpec of_head(int64_t head) const;
  /// For a kernel over `row_count` rows. Errors: usage unless 0 <= p < 1; shape if the row ids are
  /// of another number.
  Dropout over(int64_t row_count) const;
};

/// Gives the layers of a pass their dropout.
struct DropoutSource {
  bool training = false;  ///< dropout on
  uint64_t seed = 0, update = 0;
  std::vector<std::string>* sites = nullptr;  ///< receives the site of each dropout, for tests

  /// Dropout of probability p at a site (a layer's name) over rows of these ids; nothing unless
  /// training. Two of a pass need two sites: one site draws one mask.
  DropoutSpec operator()(double p, const std::string& site,
                         const std::shared_ptr<const RowIds>& rows) const;
};

/// Zeroes elements with probability p and scales the rest by 1 / (1 - p) (see Dropout).
/// x: [rows, width]    returns: the same shape and dtype
/// Source: Srivastava et al. 2014.
Tensor dropout(const Tensor& x, const DropoutSpec& spec);

}  // namespace heddle
