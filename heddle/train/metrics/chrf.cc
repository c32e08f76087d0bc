// chrF: F-score of character n-grams (Popović 2015), as sacreBLEU computes chrF2.
#include <fmt/format.h>

#include "heddle/base/parallel.h"
#include "heddle/train/metrics/metrics.h"
#include "heddle/train/metrics/tokenize_13a.h"

namespace heddle::train {
namespace {

constexpr int kOrders = 6;
constexpr double kBetaSquared = 4;  // beta = 2
static_assert(kOrders <= detail::kMaxOrder);

// n-grams of one order: in the hypothesis, in the reference, in both.
struct OrderCounts {
  int64_t hypothesis = 0;
  int64_t reference = 0;
  int64_t matches = 0;
};
using ChrfCounts = std::array<OrderCounts, kOrders>;

// Precision and recall are averaged over the orders that both sides have ("eff:yes").
double f_score(const ChrfCounts& counts) {
  double precision = 0, recall = 0;
  int orders = 0;
  for (const OrderCounts& c : counts) {
    if (c.hypothesis == 0 || c.reference == 0) continue;
    precision += static_cast<double>(c.matches) / static_cast<double>(c.hypothesis);
    recall += static_cast<double>(c.matches) / static_cast<double>(c.reference);
    ++orders;
  }
  if (orders == 0 || precision + recall == 0) return 0;
  precision /= orders;
  recall /= orders;
  return 100 * ((1 + kBetaSquared) * precision * recall / (kBetaSquared * precision + recall));
}

detail::Symbols characters_of(const std::string& line, const ChrfOptions& options) {
  return characters_without_whitespace(options.lowercase ? lower_case(line) : line);
}

ChrfCounts counts_against(const detail::Symbols& hypothesis, const detail::Symbols& reference) {
  const auto matches = detail::clipped_matches(hypothesis, {&reference, 1}, kOrders);
  ChrfCounts counts;
  for (int n = 0; n < kOrders; ++n) {
    counts[n].reference = detail::ngram_count(static_cast<int64_t>(reference.size()), n + 1);
    // An order that the reference lacks does not count against the hypothesis.
    if (counts[n].reference == 0) continue;
    counts[n].hypothesis = detail::ngram_count(static_cast<int64_t>(hypothesis.size()), n + 1);
    counts[n].matches = matches[n];
  }
  return counts;
}

ChrfCounts sentence_counts(const std::string& hypothesis, std::span<const Sentences> references,
                           size_t line, const ChrfOptions& options) {
  const detail::Symbols characters = characters_of(hypothesis, options);
  ChrfCounts best;
  double best_score = -1;
  for (const Sentences& lines : references) {
    const ChrfCounts counts = counts_against(characters, characters_of(lines[line], options));
    const double score = references.size() == 1 ? 0 : f_score(counts);
    if (score > best_score) {
      best = counts;
      best_score = score;
    }
  }
  return best;
}

ChrfScore chrf_of(Sentences hypotheses, std::span<const Sentences> references,
                  const ChrfOptions& options) {
  detail::check_corpus("chrf", hypotheses, references);
  std::vector<ChrfCounts> counts(hypotheses.size());
  parallel_blocks(std::ssize(hypotheses), 16, [&](int64_t begin, int64_t end) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
      counts[i] = sentence_counts(hypotheses[i], references, i, options);
    }
  });
  ChrfCounts sums;
  for (const ChrfCounts& c : counts) {
    for (int n = 0; n < kOrders; ++n) {
      sums[n].hypothesis += c[n].hypothesis;
      sums[n].reference += c[n].reference;
      sums[n].matches += c[n].matches;
    }
  }
  return {.score = f_score(sums),
          .signature = fmt::format("nrefs:{}|case:{}|eff:yes|nc:6|nw:0|space:no|version:{}",
                                   references.size(), options.lowercase ? "lc" : "mixed",
                                   detail::kMetricVersion)};
}

}  // namespace

ChrfScore corpus_chrf(Sentences hypotheses, Sentences references, const ChrfOptions& options) {
  return chrf_of(hypotheses, {&references, 1}, options);
}

ChrfScore corpus_chrf(Sentences hypotheses, std::span<const std::vector<std::string>> references,
                      const ChrfOptions& options) {
  return chrf_of(hypotheses, std::vector<Sentences>(references.begin(), references.end()), options);
}

}  // namespace heddle::train
