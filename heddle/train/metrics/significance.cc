// Paired bootstrap resampling (Koehn 2004), as sacreBLEU does it.
#include "heddle/train/metrics/significance.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

#include "heddle/base/error.h"
#include "heddle/base/parallel.h"
#include "heddle/train/metrics/ngram_counts.h"
#include "heddle/train/metrics/pcg64.h"

namespace heddle::train {
namespace {

using Lines = std::vector<NgramCounts>;

// The scores of each system in each sample: all of them have the same lines drawn.
template <class Score>
std::vector<std::vector<double>> resample(const std::vector<const Lines*>& systems,
                                          const BootstrapOptions& o, const Score& score) {
  constexpr int64_t kAtOnce = 64;  // samples whose lines are held
  check(o.samples >= 1, ErrorKind::usage, "bootstrap: {} samples; it needs at least 1", o.samples);
  const size_t lines = systems[0]->size();
  std::vector<std::vector<double>> scores(systems.size(),
                                          std::vector<double>(static_cast<size_t>(o.samples)));
  Pcg64 rng(o.seed);
  std::vector<uint32_t> drawn;
  for (int64_t first = 0; first < o.samples; first += kAtOnce) {
    const int64_t count = std::min(kAtOnce, o.samples - first);
    drawn.resize(static_cast<size_t>(count) * lines);
    for (uint32_t& line : drawn) line = rng.below(static_cast<uint32_t>(lines));
    parallel_blocks(count, 4, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const auto own = std::span(drawn).subspan(static_cast<size_t>(i) * lines, lines);
        for (size_t s = 0; s < systems.size(); ++s) {
          NgramCounts sums;
          for (const uint32_t line : own) sums += (*systems[s])[line];
          scores[s][static_cast<size_t>(first + i)] = score(sums);
        }
      }
    });
  }
  return scores;
}

double mean_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

ResampledScore spread(double score, std::vector<double> samples) {
  std::ranges::sort(samples);
  const size_t cut = samples.size() / 40;
  return {.score = score,
          .mean = mean_of(samples),
          .half_width = (samples[samples.size() - cut - 1] - samples[cut]) / 2};
}

template <class Score>
double score_of_all(const Lines& lines, const Score& score) {
  NgramCounts sums;
  for (const NgramCounts& c : lines) sums += c;
  return score(sums);
}

double bleu_score(const NgramCounts& sums) { return bleu_of(sums).score; }

template <class Score>
PairedScores paired(const Lines& system, const Lines& baseline, const BootstrapOptions& bootstrap,
                    const Score& score) {
  const auto scores = resample({&system, &baseline}, bootstrap, score);
  const std::vector<double>&a = scores[0], &b = scores[1];
  PairedScores result{.system = spread(score_of_all(system, score), a),
                      .baseline = spread(score_of_all(baseline, score), b)};
  std::vector<double> differences(a.size());
  for (size_t i = 0; i < a.size(); ++i) differences[i] = std::abs(a[i] - b[i]);
  if (std::ranges::all_of(differences, [](double d) { return d == 0; })) return result;
  const double mean = mean_of(differences);
  const double seen = std::abs(result.system.score - result.baseline.score);
  const auto farther =
      std::ranges::count_if(differences, [&](double d) { return d - mean > seen; });
  result.p = static_cast<double>(farther + 1) / static_cast<double>(a.size() + 1);
  return result;
}

}  // namespace

ResampledScore resampled_bleu(Sentences system, const References& references,
                              const BleuOptions& options, const BootstrapOptions& bootstrap) {
  const Lines lines = bleu_counts(system, references, options);
  return spread(score_of_all(lines, bleu_score), resample({&lines}, bootstrap, bleu_score)[0]);
}

PairedScores paired_bleu(Sentences system, Sentences baseline, const References& references,
                         const BleuOptions& options, const BootstrapOptions& bootstrap) {
  return paired(bleu_counts(system, references, options),
                bleu_counts(baseline, references, options), bootstrap, bleu_score);
}

PairedScores paired_chrf(Sentences system, Sentences baseline, const References& references,
                         const ChrfOptions& options, const BootstrapOptions& bootstrap) {
  return paired(chrf_counts(system, references, options),
                chrf_counts(baseline, references, options), bootstrap,
                [](const NgramCounts& sums) { return chrf_of(sums).score; });
}

}  // namespace heddle::train
