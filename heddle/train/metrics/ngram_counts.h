// Counts of n-grams behind BLEU and chrF: a line's, which add up to a corpus's.
#pragma once

#include <array>
#include <vector>

#include "heddle/train/metrics/metrics.h"

namespace heddle::train {

constexpr int kBleuOrders = 4, kChrfOrders = 6, kMostOrders = 6;

/// n-grams of one order: in the hypothesis, in the reference, in both. Those of order 1 are the
/// lengths.
struct OrderCounts {
  int64_t hypothesis = 0;
  int64_t reference = 0;
  int64_t matches = 0;
};
struct NgramCounts : std::array<OrderCounts, kMostOrders> {
  NgramCounts& operator+=(const NgramCounts& more);
};

/// Those of each line. Errors: data if the counts of lines differ or are 0, or there is no
/// reference.
std::vector<NgramCounts> bleu_counts(Sentences hypotheses, const References& references,
                                     const BleuOptions& options);
std::vector<NgramCounts> chrf_counts(Sentences hypotheses, const References& references,
                                     const ChrfOptions& options);

/// Of sums over lines; without signature.
BleuScore bleu_of(const NgramCounts& sums);
ChrfScore chrf_of(const NgramCounts& sums);

}  // namespace heddle::train
