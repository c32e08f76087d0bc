// Whether one translator is better than another, or the sentences happened to suit it.
#pragma once

#include <string>
#include <vector>

#include "heddle/train/metrics/metrics.h"

namespace heddle::train {

struct BootstrapOptions {
  int64_t samples = 1000;
  uint32_t seed = 12345;  ///< sacreBLEU's
};

/// A score and how it spreads over corpora drawn, with replacement, from its own lines.
struct ResampledScore {
  double score = 0;       ///< of the corpus
  double mean = 0;        ///< of the samples
  double half_width = 0;  ///< of the interval that holds 95 % of the samples
};

/// A system beside another one, the baseline, on the same sentences.
struct PairedScore {
  ResampledScore system;
  /// How often chance alone gives a difference like this one: the share of samples whose difference
  /// is farther from the samples' mean than the systems are apart. 1 where no sample tells them
  /// apart (there sacreBLEU's count gives the least p that there is).
  double p = 1;
};
/// A baseline, and systems beside it.
struct PairedScores {
  ResampledScore baseline;
  std::vector<PairedScore> systems;
};

/// The spread of one system's score, equal to sacreBLEU's --confidence. Texts and errors as of
/// corpus_bleu().
ResampledScore resampled_bleu(Sentences system, const References& references,
                              const BleuOptions& options = {},
                              const BootstrapOptions& bootstrap = {});
ResampledScore resampled_chrf(Sentences system, const References& references,
                              const ChrfOptions& options = {},
                              const BootstrapOptions& bootstrap = {});

/// The paired bootstrap test, equal to sacreBLEU's --paired-bs. Texts and errors as of
/// corpus_bleu(); the same for any number of threads, and whatever other systems there are.
/// Source: Koehn 2004, "Statistical Significance Tests for Machine Translation Evaluation".
PairedScores paired_bleu(Sentences baseline, const std::vector<std::vector<std::string>>& systems,
                         const References& references, const BleuOptions& options = {},
                         const BootstrapOptions& bootstrap = {});
PairedScores paired_chrf(Sentences baseline, const std::vector<std::vector<std::string>>& systems,
                         const References& references, const ChrfOptions& options = {},
                         const BootstrapOptions& bootstrap = {});

}  // namespace heddle::train
