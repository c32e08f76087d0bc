// BLEU: clipped n-gram precision (Papineni et al. 2002), and chrF: F-score of character n-grams
// (Popović 2015), as sacreBLEU computes them; counting what was found of hand-made alignments.
#include "heddle/train/metrics/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <sstream>
#include <unordered_map>

#include "heddle/base/error.h"
#include "heddle/base/parallel.h"
#include "heddle/train/metrics/ngram_counts.h"
#include "heddle/train/metrics/tokenize_13a.h"

namespace heddle::train {
namespace {

// What the signatures say of the implementation.
constexpr const char* kMetricVersion = "heddle-0.1.0";

constexpr double kBetaSquared = 4;  // of chrF: beta = 2

// A sentence as numbers: equal words (or characters) have equal numbers.
using Symbols = std::vector<uint32_t>;

// A place in one of the sentences, and how many symbols from it on agree with the place before it
// in sorted order.
struct NgramStart {
  uint32_t sentence;
  uint32_t begin;
  uint32_t shared;
};

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
    const auto before = symbols(places[i - 1]);
    places[i].shared = std::ranges::mismatch(before, symbols(places[i])).in1 - before.begin();
  }
  return places;
}

// For each order n = 1..max_order, at [n - 1]: the hypothesis's n-grams that are also in a
// reference, each counted at most as often as in the reference that has it most.
std::array<int64_t, kMostOrders> clipped_matches(const Symbols& hypothesis,
                                                 std::span<const Symbols> references,
                                                 int max_order) {
  std::vector<std::span<const uint32_t>> sentences = {hypothesis};
  sentences.insert(sentences.end(), references.begin(), references.end());
  const auto places = sorted_places(sentences, static_cast<size_t>(max_order));
  std::array<int64_t, kMostOrders> matches = {};
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

NgramCounts counts_of(const Symbols& hypothesis, std::span<const Symbols> references,
                      int64_t reference_length, int orders) {
  const auto ngrams = [](int64_t length, int order) {
    return std::max<int64_t>(0, length - order + 1);
  };
  const auto matches = clipped_matches(hypothesis, references, orders);
  NgramCounts counts;
  for (int n = 0; n < orders; ++n) {
    counts[n] = {ngrams(std::ssize(hypothesis), n + 1), ngrams(reference_length, n + 1),
                 matches[n]};
  }
  return counts;
}

// What count(line) gives, of all lines.
template <class Count>
std::vector<NgramCounts> counts_of_lines(const char* metric, Sentences hypotheses,
                                         const References& references, const Count& count) {
  check(!references.empty(), ErrorKind::data, "{}: no reference; it needs at least one", metric);
  check(!hypotheses.empty(), ErrorKind::data, "{}: no hypothesis; it needs at least one line",
        metric);
  for (const Sentences& lines : references) {
    check(lines.size() == hypotheses.size(), ErrorKind::data,
          "{}: {} hypotheses but {} references; line i of one must translate line i of the other",
          metric, hypotheses.size(), lines.size());
  }
  std::vector<NgramCounts> counts(hypotheses.size());
  parallel_blocks(std::ssize(hypotheses), 16, [&](int64_t begin, int64_t end) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
      counts[i] = count(i);
    }
  });
  return counts;
}

NgramCounts sum_of(const std::vector<NgramCounts>& counts) {
  NgramCounts sums;
  for (const NgramCounts& c : counts) sums += c;
  return sums;
}

// --- BLEU ---

std::vector<std::string> words_of(const std::string& line, const BleuOptions& options) {
  const std::string text = options.lowercase ? lower_case(line) : line;
  if (options.tokenizer == BleuTokenizer::mteval_13a) return tokenize_13a(text);
  const auto words = split_whitespace(text);
  return {words.begin(), words.end()};
}

// Of several references the one closest in length to the hypothesis; of two as close, the shorter.
int64_t closest_length(int64_t length, std::span<const Symbols> references) {
  const auto distance = [&](const Symbols& reference) {
    return std::pair(std::abs(std::ssize(reference) - length), std::ssize(reference));
  };
  return std::ssize(*std::ranges::min_element(references, {}, distance));
}

NgramCounts bleu_line(const std::string& hypothesis, const References& references, size_t line,
                      const BleuOptions& options) {
  std::unordered_map<std::string, uint32_t> numbers;
  const auto symbols_of = [&](const std::string& text) {
    Symbols symbols;
    for (auto& word : words_of(text, options)) {
      const auto next = static_cast<uint32_t>(numbers.size());
      symbols.push_back(numbers.try_emplace(std::move(word), next).first->second);
    }
    return symbols;
  };
  const Symbols words = symbols_of(hypothesis);
  std::vector<Symbols> reference_words;
  for (const Sentences& lines : references) reference_words.push_back(symbols_of(lines[line]));
  return counts_of(words, reference_words, closest_length(std::ssize(words), reference_words),
                   kBleuOrders);
}

double brevity_penalty(int64_t hypothesis_length, int64_t reference_length) {
  if (hypothesis_length >= reference_length) return 1;
  if (hypothesis_length == 0) return 0;
  return std::exp(1 -
                  static_cast<double>(reference_length) / static_cast<double>(hypothesis_length));
}

// --- chrF ---

// Precision and recall are averaged over the orders that both sides have ("eff:yes").
double f_score(const NgramCounts& counts) {
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

NgramCounts chrf_line(const std::string& hypothesis, const References& references, size_t line,
                      const ChrfOptions& options) {
  const auto characters_of = [&](const std::string& text) {
    return characters_without_whitespace(options.lowercase ? lower_case(text) : text);
  };
  const Symbols characters = characters_of(hypothesis);
  NgramCounts best;
  double best_score = -1;
  for (const Sentences& lines : references) {
    const Symbols reference = characters_of(lines[line]);
    NgramCounts counts = counts_of(characters, {&reference, 1}, std::ssize(reference), kChrfOrders);
    // An order that the reference lacks does not count against the hypothesis.
    for (OrderCounts& c : counts) c.hypothesis = c.reference == 0 ? 0 : c.hypothesis;
    const double score = references.size() == 1 ? 0 : f_score(counts);
    if (score > best_score) {
      best = counts;
      best_score = score;
    }
  }
  return best;
}

// --- alignments ---

void sort_unique(Alignment& links) {
  std::sort(links.begin(), links.end());
  links.erase(std::unique(links.begin(), links.end()), links.end());
}

double share(int64_t part, int64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

int64_t common(const Alignment& a, const Alignment& b) {
  return std::ranges::count_if(
      a, [&](const AlignmentLink& link) { return std::ranges::binary_search(b, link); });
}

}  // namespace

BleuTokenizer bleu_tokenizer(const std::string& name) {
  if (name == "13a") return BleuTokenizer::mteval_13a;
  check(name == "none", ErrorKind::usage,
        "bleu: unknown tokenizer '{}'; known are '13a' (the default) and 'none'", name);
  return BleuTokenizer::none;
}

NgramCounts& NgramCounts::operator+=(const NgramCounts& more) {
  for (size_t n = 0; n < size(); ++n) {
    at(n).hypothesis += more[n].hypothesis;
    at(n).reference += more[n].reference;
    at(n).matches += more[n].matches;
  }
  return *this;
}

std::vector<NgramCounts> bleu_counts(Sentences hypotheses, const References& references,
                                     const BleuOptions& options) {
  return counts_of_lines("bleu", hypotheses, references, [&](size_t line) {
    return bleu_line(hypotheses[line], references, line, options);
  });
}

std::vector<NgramCounts> chrf_counts(Sentences hypotheses, const References& references,
                                     const ChrfOptions& options) {
  return counts_of_lines("chrf", hypotheses, references, [&](size_t line) {
    return chrf_line(hypotheses[line], references, line, options);
  });
}

BleuScore bleu_of(const NgramCounts& sums) {
  BleuScore bleu;
  bleu.hypothesis_length = sums[0].hypothesis;
  bleu.reference_length = sums[0].reference;
  bleu.brevity_penalty = brevity_penalty(bleu.hypothesis_length, bleu.reference_length);
  if (std::ranges::all_of(sums, [](const OrderCounts& c) { return c.matches == 0; })) return bleu;
  double log_sum = 0, smoothing = 1;
  for (int n = 0; n < kBleuOrders; ++n) {
    const OrderCounts& c = sums[n];
    if (c.hypothesis == 0) return bleu;  // log 0: effective order is off
    const auto total = static_cast<double>(c.hypothesis);
    if (c.matches == 0) smoothing *= 2;
    bleu.precisions[n] =
        c.matches == 0 ? 100 / (smoothing * total) : 100 * static_cast<double>(c.matches) / total;
    log_sum += std::log(bleu.precisions[n]);
  }
  bleu.score = bleu.brevity_penalty * std::exp(log_sum / kBleuOrders);
  return bleu;
}

ChrfScore chrf_of(const NgramCounts& sums) { return {.score = f_score(sums), .signature = {}}; }

BleuScore corpus_bleu(Sentences hypotheses, const References& references,
                      const BleuOptions& options) {
  BleuScore bleu = bleu_of(sum_of(bleu_counts(hypotheses, references, options)));
  bleu.signature =
      fmt::format("nrefs:{}|case:{}|eff:no|tok:{}|smooth:exp|version:{}", references.size(),
                  options.lowercase ? "lc" : "mixed",
                  options.tokenizer == BleuTokenizer::none ? "none" : "13a", kMetricVersion);
  return bleu;
}

ChrfScore corpus_chrf(Sentences hypotheses, const References& references,
                      const ChrfOptions& options) {
  ChrfScore chrf = chrf_of(sum_of(chrf_counts(hypotheses, references, options)));
  chrf.signature =
      fmt::format("nrefs:{}|case:{}|eff:yes|nc:6|nw:0|space:no|version:{}", references.size(),
                  options.lowercase ? "lc" : "mixed", kMetricVersion);
  return chrf;
}

GoldAlignment parse_gold(std::string_view line, int base, bool reversed, const std::string& where) {
  GoldAlignment gold;
  std::istringstream words{std::string(line)};
  for (std::string word; words >> word;) {
    int32_t first = 0, second = 0;
    const char* end = word.data() + word.size();
    const auto a = std::from_chars(word.data(), end, first);
    const bool has_sign = a.ec == std::errc() && a.ptr != end && (*a.ptr == '-' || *a.ptr == 'p');
    const auto b = has_sign ? std::from_chars(a.ptr + 1, end, second) : a;
    check(has_sign && b.ec == std::errc() && b.ptr == end, ErrorKind::data,
          "{}: '{}' is no link; 3-4 is a sure one, 3p4 a possible one", where, word);
    check(first >= base && second >= base, ErrorKind::data,
          "{}: the link '{}' is below the first word's number, {}; see `gold_base`", where, word,
          base);
    AlignmentLink link{first - base, second - base};
    if (reversed) std::swap(link.source, link.target);
    if (*a.ptr == '-') gold.sure.push_back(link);
    gold.possible.push_back(link);
  }
  sort_unique(gold.sure);
  sort_unique(gold.possible);
  return gold;
}

double AlignmentScore::precision() const { return share(found_possible, found); }
double AlignmentScore::recall() const { return share(found_sure, sure); }
double AlignmentScore::error_rate() const {
  return 1 - share(found_sure + found_possible, found + sure);
}

void add_pair(AlignmentScore& score, const Alignment& found, const GoldAlignment& gold,
              size_t source_words, size_t target_words) {
  const auto is_outside = [&](const AlignmentLink& link) {
    return link.source >= static_cast<int32_t>(source_words) ||
           link.target >= static_cast<int32_t>(target_words);
  };
  GoldAlignment inside = gold;
  score.out_of_range += static_cast<int64_t>(std::erase_if(inside.possible, is_outside));
  std::erase_if(inside.sure, is_outside);
  score.found += static_cast<int64_t>(found.size());
  score.sure += static_cast<int64_t>(inside.sure.size());
  score.found_sure += common(found, inside.sure);
  score.found_possible += common(found, inside.possible);
}

}  // namespace heddle::train
