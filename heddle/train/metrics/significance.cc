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
std::vector<std::vector<double>> resample(std::span<const Lines> systems, const BootstrapOptions& o,
                                          const Score& score) {
  constexpr int64_t kAtOnce = 64;  // samples whose lines are held
  check(o.samples >= 1, ErrorKind::usage, "bootstrap: {} samples; it needs at least 1", o.samples);
  const size_t lines = systems[0].size();
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
          for (const uint32_t line : own) sums += systems[s][line];
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

double chrf_score(const NgramCounts& sums) { return chrf_of(sums).score; }

// How often chance gives samples that are as far apart as these scores are.
double p_of(double apart, std::span<const double> a, std::span<const double> b) {
  std::vector<double> differences(a.size());
  for (size_t i = 0; i < a.size(); ++i) differences[i] = std::abs(a[i] - b[i]);
  if (std::ranges::all_of(differences, [](double d) { return d == 0; })) return 1;
  const double mean = mean_of(differences);
  const auto farther =
      std::ranges::count_if(differences, [&](double d) { return d - mean > apart; });
  return static_cast<double>(farther + 1) / static_cast<double>(a.size() + 1);
}

// The first is the baseline.
template <class Score>
PairedScores paired(std::span<const Lines> systems, const BootstrapOptions& bootstrap,
                    const Score& score) {
  const auto samples = resample(systems, bootstrap, score);
  PairedScores result{.baseline = spread(score_of_all(systems[0], score), samples[0]),
                      .systems = {}};
  for (size_t s = 1; s < systems.size(); ++s) {
    const ResampledScore own = spread(score_of_all(systems[s], score), samples[s]);
    const double apart = std::abs(own.score - result.baseline.score);
    result.systems.push_back({.system = own, .p = p_of(apart, samples[s], samples[0])});
  }
  return result;
}

}  // namespace

ResampledScore resampled_bleu(Sentences system, const References& references,
                              const BleuOptions& options, const BootstrapOptions& bootstrap) {
  const Lines lines = bleu_counts(system, references, options);
  return paired({&lines, 1}, bootstrap, bleu_score).baseline;
}

ResampledScore resampled_chrf(Sentences system, const References& references,
                              const ChrfOptions& options, const BootstrapOptions& bootstrap) {
  const Lines lines = chrf_counts(system, references, options);
  return paired({&lines, 1}, bootstrap, chrf_score).baseline;
}

PairedScores paired_bleu(Sentences baseline, const std::vector<std::vector<std::string>>& systems,
                         const References& references, const BleuOptions& options,
                         const BootstrapOptions& bootstrap) {
  std::vector<Lines> lines = {bleu_counts(baseline, references, options)};
  for (const auto& system : systems) lines.push_back(bleu_counts(system, references, options));
  return paired(lines, bootstrap, bleu_score);
}

PairedScores paired_chrf(Sentences baseline, const std::vector<std::vector<std::string>>& systems,
                         const References& references, const ChrfOptions& options,
                         const BootstrapOptions& bootstrap) {
  std::vector<Lines> lines = {chrf_counts(baseline, references, options)};
  for (const auto& system : systems) lines.push_back(chrf_counts(system, references, options));
  return paired(lines, bootstrap, chrf_score);
}

}  // namespace heddle::train
