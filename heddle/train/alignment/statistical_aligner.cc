// Expectation maximisation for IBM's models 1 and 2.
#include "heddle/train/alignment/statistical_aligner.h"

#include <algorithm>
#include <cmath>

#include "heddle/base/error.h"
#include "heddle/base/utf8.h"
#include "heddle/text/strings/strings.h"

namespace heddle::train {
namespace {

constexpr double kUnseen = 1e-9;
constexpr int32_t kNone = 0, kUnknown = -1;

// The form in which words are compared.
std::string form_of(const std::string& word) {
  size_t begin = word.size(), end = 0;  // of what is no punctuation
  for (size_t at = 0; at < word.size();) {
    const size_t here = at;
    if (is_punctuation(next_code_point(word, at))) continue;
    begin = std::min(begin, here);
    end = at;
  }
  return begin < end ? lower_case(std::string_view(word).substr(begin, end - begin)) : word;
}

// The derivative of log Gamma, by its recurrence and the asymptotic series.
double digamma(double x) {
  double sum = 0;
  for (; x < 7; ++x) sum -= 1 / x;
  const double square = 1 / (x * x);
  return sum + std::log(x) - 0.5 / x -
         square * (1.0 / 12 - square * (1.0 / 120 - square * (1.0 / 252 - square / 240)));
}

// Pairs whose products of words would take all the time are not learned from.
template <class Ids>
bool is_too_long(const Ids& source, const Ids& target) {
  constexpr size_t kMostWords = 1000;
  return source.size() > kMostWords || target.size() > kMostWords;
}

// How far a pair of positions is from the diagonal, from 0 to -1.
double nearness(size_t target, size_t targets, size_t source, size_t sources) {
  return -std::abs(static_cast<double>(target + 1) / static_cast<double>(targets) -
                   static_cast<double>(source + 1) / static_cast<double>(sources));
}

// What the positions of a target word expect of nearness, under a tension.
double expected_nearness(size_t target, size_t targets, size_t sources, double tension) {
  double all = 0, sum = 0;
  for (size_t i = 0; i < sources; ++i) {
    const double h = nearness(target, targets, i, sources), weight = std::exp(tension * h);
    all += weight;
    sum += weight * h;
  }
  return sum / all;
}

}  // namespace

// What an iteration finds beside counts of words.
struct StatisticalAligner::Sums {
  double nearness = 0, linked = 0;  // of target words, by how much they come from a word
};

int64_t StatisticalAligner::Row::place_of(int32_t target) const {
  const auto at = std::ranges::lower_bound(targets, target);
  return at != targets.end() && *at == target ? at - targets.begin() : -1;
}

StatisticalAligner::StatisticalAligner(std::span<const LineWords> sources,
                                       std::span<const LineWords> targets,
                                       const AlignerOptions& options)
    : options_(options), tension_(options.tension) {
  check(options.model == 1 || options.model == 2, ErrorKind::usage,
        "statistical alignment: model is {}; there are 1 and 2", options.model);
  check(options.iterations >= 1, ErrorKind::usage,
        "statistical alignment: {} iterations; it needs at least 1", options.iterations);
  check(options.null >= 0 && options.null < 1 && options.prior >= 0 && options.prior < 1,
        ErrorKind::usage, "statistical alignment: null {} and prior {}; both are from 0 to below 1",
        options.null, options.prior);
  check(sources.size() == targets.size(), ErrorKind::data,
        "statistical alignment: {} sources, but {} targets", sources.size(), targets.size());
  source_words_.emplace("", kNone);
  learn_words(sources, source_words_, sources_);
  learn_words(targets, target_words_, targets_);
  find_pairs();
  for (int model = 1; model <= options.model; ++model) {
    for (int i = 0; i < options.iterations; ++i) {
      Sums sums;
      expect(model == 2, sums);
      maximise();
      if (model == 2) learn_tension(sums);
    }
  }
  sources_.clear();
  targets_.clear();
}

void StatisticalAligner::learn_words(std::span<const LineWords> lines, Vocabulary& vocabulary,
                                     std::vector<Ids>& ids) {
  for (const LineWords& words : lines) {
    Ids& line = ids.emplace_back();
    for (const std::string& word : words) {
      const auto next = static_cast<int32_t>(vocabulary.size());
      line.push_back(vocabulary.try_emplace(form_of(word), next).first->second);
    }
  }
}

StatisticalAligner::Ids StatisticalAligner::ids_of(const LineWords& words,
                                                   const Vocabulary& vocabulary) const {
  Ids ids;
  for (const std::string& word : words) {
    const auto at = vocabulary.find(form_of(word));
    ids.push_back(at == vocabulary.end() ? kUnknown : at->second);
  }
  return ids;
}

// A row for each source word, of all targets that a pair has beside it; to begin with, each is as
// likely.
void StatisticalAligner::find_pairs() {
  rows_.resize(source_words_.size());
  const auto keep_once = [](std::vector<int32_t>& targets) {
    std::ranges::sort(targets);
    targets.erase(std::ranges::unique(targets).begin(), targets.end());
  };
  std::vector<size_t> limits(rows_.size(), 64);
  for (size_t i = 0; i < sources_.size(); ++i) {
    if (is_too_long(sources_[i], targets_[i])) continue;
    if (!sources_[i].empty()) ++lengths_[{targets_[i].size(), sources_[i].size()}];
    for (const int32_t source : sources_[i]) {
      std::vector<int32_t>& row = rows_[static_cast<size_t>(source)].targets;
      row.insert(row.end(), targets_[i].begin(), targets_[i].end());
      size_t& limit = limits[static_cast<size_t>(source)];
      if (row.size() < limit) continue;
      keep_once(row);
      limit = std::max(limit, 2 * row.size());
    }
  }
  for (size_t target = 0; target < target_words_.size(); ++target) {
    rows_[kNone].targets.push_back(static_cast<int32_t>(target));
  }
  for (Row& row : rows_) {
    keep_once(row.targets);
    row.probabilities.assign(row.targets.size(), 1.0 / static_cast<double>(target_words_.size()));
    row.counts.assign(row.targets.size(), 0);
  }
}

// What each position of the source, behind none, is likely to give a target word, by itself.
void StatisticalAligner::set_shares(size_t target, size_t targets, size_t sources, bool by_position,
                                    std::vector<double>& shares) const {
  shares.resize(sources + 1);
  shares[0] = options_.null;
  double all = 0;
  for (size_t i = 0; i < sources; ++i) {
    shares[i + 1] = by_position ? std::exp(tension_ * nearness(target, targets, i, sources)) : 1;
    all += shares[i + 1];
  }
  for (size_t i = 1; i <= sources; ++i) shares[i] *= (1 - options_.null) / all;
}

void StatisticalAligner::expect(bool by_position, Sums& sums) {
  std::vector<double*> counts;
  std::vector<double> weights, shares;
  for (size_t pair = 0; pair < sources_.size(); ++pair) {
    const Ids &source = sources_[pair], &target = targets_[pair];
    if (source.empty() || target.empty() || is_too_long(source, target)) continue;
    for (size_t j = 0; j < target.size(); ++j) {
      set_shares(j, target.size(), source.size(), by_position, shares);
      counts.clear();
      weights.clear();
      double all = 0;
      for (size_t i = 0; i <= source.size(); ++i) {
        Row& row = rows_[i == 0 ? kNone : static_cast<size_t>(source[i - 1])];
        const auto at = static_cast<size_t>(i == 0 ? target[j] : row.place_of(target[j]));
        counts.push_back(&row.counts[at]);
        weights.push_back(shares[i] * row.probabilities[at]);
        all += weights.back();
      }
      for (size_t i = 0; i <= source.size(); ++i) {
        const double share = weights[i] / all;
        *counts[i] += share;
        if (i == 0) continue;
        sums.linked += share;
        sums.nearness += share * nearness(j, target.size(), i - 1, source.size());
      }
    }
  }
}

void StatisticalAligner::maximise() {
  for (Row& row : rows_) {
    double all = 0;
    for (const double count : row.counts) all += count + options_.prior;
    for (size_t i = 0; i < row.counts.size(); ++i) {
      const double count = row.counts[i] + options_.prior;
      row.probabilities[i] = options_.prior > 0 ? std::exp(digamma(count) - digamma(all))
                             : all > 0          ? count / all
                                                : 0;
      row.counts[i] = 0;
    }
  }
}

// Steps up the gradient of the likelihood: nearness as it was found, less as the positions expect
// it.
void StatisticalAligner::learn_tension(const Sums& sums) {
  constexpr int kSteps = 8;
  constexpr double kRate = 20, kLeast = 0.1, kMost = 14;
  if (sums.linked == 0) return;
  for (int step = 0; step < kSteps; ++step) {
    double expected = 0, words = 0;
    for (const auto& [lengths, pairs] : lengths_) {
      const auto [targets, sources] = lengths;
      for (size_t j = 0; j < targets; ++j) {
        expected += static_cast<double>(pairs) * expected_nearness(j, targets, sources, tension_);
      }
      words += static_cast<double>(pairs) * static_cast<double>(targets);
    }
    tension_ += kRate * (sums.nearness / sums.linked - expected / words);
    tension_ = std::clamp(tension_, kLeast, kMost);
  }
}

double StatisticalAligner::probability(int32_t source, int32_t target) const {
  if (source == kUnknown || target == kUnknown) return kUnseen;
  const Row& row = rows_[static_cast<size_t>(source)];
  const int64_t at = row.place_of(target);
  return at < 0 ? kUnseen : std::max(kUnseen, row.probabilities[static_cast<size_t>(at)]);
}

double StatisticalAligner::translation(const std::string& source, const std::string& target) const {
  return probability(ids_of({source}, source_words_)[0], ids_of({target}, target_words_)[0]);
}

Alignment StatisticalAligner::align(const LineWords& source, const LineWords& target) const {
  const Ids sources = ids_of(source, source_words_), targets = ids_of(target, target_words_);
  Alignment links;
  if (sources.empty()) return links;
  std::vector<double> shares;
  for (size_t j = 0; j < targets.size(); ++j) {
    set_shares(j, targets.size(), sources.size(), options_.model == 2, shares);
    double best = shares[0] * probability(kNone, targets[j]);
    int32_t found = -1;
    for (size_t i = 0; i < sources.size(); ++i) {
      const double weight = shares[i + 1] * probability(sources[i], targets[j]);
      if (weight <= best) continue;
      best = weight;
      found = static_cast<int32_t>(i);
    }
    if (found >= 0) links.push_back({found, static_cast<int32_t>(j)});
  }
  std::ranges::sort(links);
  return links;
}

}  // namespace heddle::train
