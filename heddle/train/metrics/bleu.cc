// BLEU: a bilingual evaluation by clipped n-gram precision (Papineni et al. 2002), as sacreBLEU.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>
#include <unordered_map>

#include "heddle/base/error.h"
#include "heddle/base/parallel.h"
#include "heddle/train/metrics/metrics.h"
#include "heddle/train/metrics/tokenize_13a.h"

namespace heddle::train {
namespace detail {
namespace {

// A place in one of the sentences, and how many symbols from it on agree with the place before it
// in sorted order.
struct NgramStart {
  uint32_t sentence;
  uint32_t begin;
  uint32_t shared;
};

uint32_t shared_prefix(std::span<const uint32_t> a, std::span<const uint32_t> b) {
  const size_t most = std::min(a.size(), b.size());
  uint32_t n = 0;
  while (n < most && a[n] == b[n]) ++n;
  return n;
}

// Every place of every sentence, sorted by the max_order symbols from there on: equal n-grams of
// every order lie side by side, so that one sort serves all orders.
std::vector<NgramStart> sorted_places(const std::vector<std::span<const uint32_t>>& sentences,
                                      size_t max_order) {
  std::vector<NgramStart> places;
  for (uint32_t s = 0; s < sentences.size(); ++s) {
    for (uint32_t i = 0; i < sentences[s].size(); ++i) places.push_back({s, i, 0});
  }
  const auto symbols = [&](const NgramStart& p) {
    const auto rest = sentences[p.sentence].subspan(p.begin);
    return rest.first(std::min(rest.size(), max_order));
  };
  std::sort(places.begin(), places.end(), [&](const NgramStart& a, const NgramStart& b) {
    const auto x = symbols(a), y = symbols(b);
    return std::lexicographical_compare(x.begin(), x.end(), y.begin(), y.end());
  });
  for (size_t i = 1; i < places.size(); ++i) {
    places[i].shared = shared_prefix(symbols(places[i - 1]), symbols(places[i]));
  }
  return places;
}

}  // namespace

std::array<int64_t, kMaxOrder> clipped_matches(const Symbols& hypothesis,
                                               std::span<const Symbols> references, int max_order) {
  std::vector<std::span<const uint32_t>> sentences = {hypothesis};
  sentences.insert(sentences.end(), references.begin(), references.end());
  const auto places = sorted_places(sentences, static_cast<size_t>(max_order));
  std::array<int64_t, kMaxOrder> matches = {};
  std::vector<int64_t> counts(sentences.size());
  for (uint32_t n = 1; n <= static_cast<uint32_t>(max_order); ++n) {
    for (size_t i = 0; i < places.size();) {
      std::fill(counts.begin(), counts.end(), 0);
      size_t end = i;
      do {  // the places that begin with the same n-gram; one too near the end of its sentence for
            // an n-gram agrees with no other
        const NgramStart& p = places[end++];
        counts[p.sentence] += p.begin + n <= sentences[p.sentence].size();
      } while (end < places.size() && places[end].shared >= n);
      const int64_t most = *std::max_element(counts.begin() + 1, counts.end());
      matches[n - 1] += std::min(counts[0], most);
      i = end;
    }
  }
  return matches;
}

int64_t ngram_count(int64_t length, int64_t order) {
  return std::max<int64_t>(0, length - order + 1);
}

void check_corpus(const char* metric, Sentences hypotheses, std::span<const Sentences> references) {
  check(!references.empty(), ErrorKind::data, "{}: no reference; it needs at least one", metric);
  check(!hypotheses.empty(), ErrorKind::data, "{}: no hypothesis; it needs at least one line",
        metric);
  for (const Sentences& lines : references) {
    check(lines.size() == hypotheses.size(), ErrorKind::data,
          "{}: {} hypotheses but {} references; line i of one must translate line i of the other",
          metric, hypotheses.size(), lines.size());
  }
}

}  // namespace detail

namespace {

constexpr int kOrders = 4;

// What a sentence adds to the corpus's sums.
struct BleuCounts {
  int64_t hypothesis_length = 0;
  int64_t reference_length = 0;
  std::array<int64_t, kOrders> matches = {};
  std::array<int64_t, kOrders> totals = {};
};

std::vector<std::string> words_of(const std::string& line, const BleuOptions& options) {
  const std::string text = options.lowercase ? lower_case(line) : line;
  if (options.tokenizer == BleuTokenizer::mteval_13a) return tokenize_13a(text);
  const auto words = split_whitespace(text);
  return {words.begin(), words.end()};
}

// Of several references the one closest in length to the hypothesis; of two as close, the shorter.
int64_t closest_length(int64_t length, std::span<const detail::Symbols> references) {
  int64_t closest = std::numeric_limits<int64_t>::max();
  for (const auto& reference : references) {
    const auto candidate = static_cast<int64_t>(reference.size());
    const int64_t gap = std::abs(candidate - length), best = std::abs(closest - length);
    if (gap < best || (gap == best && candidate < closest)) closest = candidate;
  }
  return closest;
}

BleuCounts sentence_counts(const std::string& hypothesis, std::span<const Sentences> references,
                           size_t line, const BleuOptions& options) {
  std::unordered_map<std::string, uint32_t> numbers;
  const auto symbols_of = [&](const std::string& text) {
    detail::Symbols symbols;
    for (auto& word : words_of(text, options)) {
      const auto next = static_cast<uint32_t>(numbers.size());
      symbols.push_back(numbers.try_emplace(std::move(word), next).first->second);
    }
    return symbols;
  };
  const detail::Symbols words = symbols_of(hypothesis);
  std::vector<detail::Symbols> reference_words;
  for (const Sentences& lines : references) reference_words.push_back(symbols_of(lines[line]));

  BleuCounts counts;
  counts.hypothesis_length = static_cast<int64_t>(words.size());
  counts.reference_length = closest_length(counts.hypothesis_length, reference_words);
  const auto matches = detail::clipped_matches(words, reference_words, kOrders);
  for (int n = 0; n < kOrders; ++n) {
    counts.matches[n] = matches[n];
    counts.totals[n] = detail::ngram_count(counts.hypothesis_length, n + 1);
  }
  return counts;
}

double brevity_penalty(int64_t hypothesis_length, int64_t reference_length) {
  if (hypothesis_length >= reference_length) return 1;
  if (hypothesis_length == 0) return 0;
  return std::exp(1 -
                  static_cast<double>(reference_length) / static_cast<double>(hypothesis_length));
}

BleuScore score_of(const BleuCounts& sums) {
  BleuScore bleu;
  bleu.hypothesis_length = sums.hypothesis_length;
  bleu.reference_length = sums.reference_length;
  bleu.brevity_penalty = brevity_penalty(sums.hypothesis_length, sums.reference_length);
  if (std::all_of(sums.matches.begin(), sums.matches.end(), [](int64_t m) { return m == 0; })) {
    return bleu;
  }
  double log_sum = 0, smoothing = 1;
  for (int n = 0; n < kOrders; ++n) {
    if (sums.totals[n] == 0) return bleu;  // log 0: effective order is off
    const auto total = static_cast<double>(sums.totals[n]);
    if (sums.matches[n] == 0) smoothing *= 2;
    bleu.precisions[n] = sums.matches[n] == 0 ? 100 / (smoothing * total)
                                              : 100 * static_cast<double>(sums.matches[n]) / total;
    log_sum += std::log(bleu.precisions[n]);
  }
  bleu.score = bleu.brevity_penalty * std::exp(log_sum / kOrders);
  return bleu;
}

BleuScore bleu_of(Sentences hypotheses, std::span<const Sentences> references,
                  const BleuOptions& options) {
  detail::check_corpus("bleu", hypotheses, references);
  std::vector<BleuCounts> counts(hypotheses.size());
  parallel_blocks(std::ssize(hypotheses), 16, [&](int64_t begin, int64_t end) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
      counts[i] = sentence_counts(hypotheses[i], references, i, options);
    }
  });
  BleuCounts sums;
  for (const BleuCounts& c : counts) {
    sums.hypothesis_length += c.hypothesis_length;
    sums.reference_length += c.reference_length;
    for (int n = 0; n < kOrders; ++n) sums.matches[n] += c.matches[n];
    for (int n = 0; n < kOrders; ++n) sums.totals[n] += c.totals[n];
  }
  BleuScore bleu = score_of(sums);
  bleu.signature = fmt::format("nrefs:{}|case:{}|eff:no|tok:{}|smooth:exp|version:{}",
                               references.size(), options.lowercase ? "lc" : "mixed",
                               options.tokenizer == BleuTokenizer::none ? "none" : "13a",
                               detail::kMetricVersion);
  return bleu;
}

}  // namespace

BleuTokenizer bleu_tokenizer(const std::string& name) {
  if (name == "13a") return BleuTokenizer::mteval_13a;
  check(name == "none", ErrorKind::usage,
        "bleu: unknown tokenizer '{}'; known are '13a' (the default) and 'none'", name);
  return BleuTokenizer::none;
}

BleuScore corpus_bleu(Sentences hypotheses, Sentences references, const BleuOptions& options) {
  return bleu_of(hypotheses, {&references, 1}, options);
}

BleuScore corpus_bleu(Sentences hypotheses, std::span<const std::vector<std::string>> references,
                      const BleuOptions& options) {
  return bleu_of(hypotheses, std::vector<Sentences>(references.begin(), references.end()), options);
}

}  // namespace heddle::train
