// Expectation maximisation for IBM's models 1 and 2.
//
// An iteration goes over the text twice: by pairs for what each target word expects (a number or
// two of it are kept), then by source words, each of which adds what its occurrences get and has
// its new probabilities before the next one is looked at. So there is no table of counts beside
// that of probabilities, and each sum has one owner, whoever computes it.
#include "heddle/train/alignment/statistical_aligner.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "heddle/base/error.h"
#include "heddle/base/parallel.h"
#include "heddle/base/progress.h"

namespace heddle::train {
namespace {

constexpr double kUnseen = 1e-9;
constexpr int32_t kNone = WordLines::kNone;

// What a prior of 0.01 leaves to words that never go together is exp(digamma(0.01)) = 2e-44, where
// f32 has no digits left; 2^100 times that, it has all.
constexpr double kScale = 0x1p100;

float scaled(double probability) {
  return std::max(static_cast<float>(kScale * probability), std::numeric_limits<float>::min());
}

// The derivative of log Gamma, by its recurrence and the asymptotic series.
double digamma(double x) {
  double sum = 0;
  for (; x < 7; ++x) sum -= 1 / x;
  const double square = 1 / (x * x);
  return sum + std::log(x) - 0.5 / x -
         square * (1.0 / 12 - square * (1.0 / 120 - square * (1.0 / 252 - square / 240)));
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

// Pairs of so many words on their sides.
struct Lengths {
  size_t targets, sources;
  double pairs;
};

}  // namespace

class StatisticalAligner::Learning {
 public:
  Learning(StatisticalAligner& aligner, const WordLines& sources, const WordLines& targets)
      : to_(aligner), table_(aligner.table_), sources_(sources), targets_(targets) {
    for (Scratch& s : scratch_) s.places.resize(targets.different() + 1);
    find_lengths();
    find_places();
    find_table();
  }

  void run() {
    for (int model = 1; model <= to_.options_.model; ++model) {
      for (int i = 1; i <= to_.options_.iterations; ++i) {
        stage_ = fmt::format("model {}, iteration {} of {}", model, i, to_.options_.iterations);
        const Sums sums = expect(model == 2);
        maximise(model == 2);
        if (model == 2) learn_tension(sums);
      }
    }
  }

 private:
  // Of target words, by how much they come from a word.
  struct Sums {
    double nearness = 0, linked = 0;
  };
  // Where a source word stands; the position of none is -1.
  struct Place {
    int32_t pair, position;
  };
  // Of a target word: what a source word gets for each of its probability and nearness to the
  // diagonal, and what none gets.
  struct Expected {
    float each, none;
  };
  // A thread's.
  struct Scratch {
    std::vector<int32_t> places;  // of target words in a row
    std::vector<double> counts, shares;
  };

  // A pair whose products of words would take all the time is not learned from, nor one that has
  // none on a side.
  bool is_learned(int64_t pair) const {
    constexpr size_t kMostWords = 1000;
    const size_t sources = sources_.line(pair).size(), targets = targets_.line(pair).size();
    return sources > 0 && targets > 0 && sources <= kMostWords && targets <= kMostWords;
  }

  Scratch& scratch() { return scratch_[static_cast<size_t>(thread_index())]; }

  size_t row_size(size_t source) const { return table_.begins[source + 1] - table_.begins[source]; }

  std::span<const Place> places_of(size_t source) const {
    return std::span(places_).subspan(firsts_[source], firsts_[source + 1] - firsts_[source]);
  }

  void find_lengths();
  void find_places();
  void find_table();
  Sums expect(bool by_position);
  Sums expect_pair(int64_t pair, bool by_position);
  void maximise(bool by_position);
  void count(size_t source, bool by_position, Scratch& s) const;
  void learn_tension(const Sums& sums);
  void add_done(int64_t work);

  StatisticalAligner& to_;
  Table& table_;
  const WordLines &sources_, &targets_;
  std::vector<Lengths> lengths_;
  std::vector<size_t> firsts_;      // of each source word's places
  std::vector<Place> places_;       // in order
  std::vector<int64_t> work_;       // of each source word: target words beside it
  std::vector<size_t> by_work_;     // source words, those with the most work first
  std::vector<Expected> expected_;  // of each target word
  std::vector<Scratch> scratch_{static_cast<size_t>(num_threads())};
  int64_t all_work_ = 0;  // of an iteration
  std::atomic<int64_t> done_ = 0;
  std::string stage_;
  Progress progress_{to_.options_.label};
};

void StatisticalAligner::Learning::find_lengths() {
  std::map<std::pair<size_t, size_t>, int64_t> pairs;
  for (int64_t i = 0; i < sources_.lines(); ++i) {
    if (is_learned(i)) ++pairs[{targets_.line(i).size(), sources_.line(i).size()}];
  }
  for (const auto& [lengths, count] : pairs) {
    lengths_.push_back({lengths.first, lengths.second, static_cast<double>(count)});
  }
}

// Sorts places by words, by counting.
void StatisticalAligner::Learning::find_places() {
  const size_t words = sources_.different() + 1;
  const auto each = [&](const auto& f) {
    for (int64_t pair = 0; pair < sources_.lines(); ++pair) {
      if (!is_learned(pair)) continue;
      f(size_t{kNone}, Place{static_cast<int32_t>(pair), -1});
      int32_t position = 0;
      for (const int32_t source : sources_.line(pair)) {
        f(static_cast<size_t>(source), Place{static_cast<int32_t>(pair), position++});
      }
    }
  };
  firsts_.assign(words + 1, 0);
  work_.assign(words, 0);
  each([&](size_t source, const Place& at) {
    ++firsts_[source + 1];
    work_[source] += std::ssize(targets_.line(at.pair));
  });
  std::partial_sum(firsts_.begin(), firsts_.end(), firsts_.begin());
  places_.resize(firsts_.back());
  std::vector<size_t> next(firsts_.begin(), firsts_.end() - 1);
  each([&](size_t source, const Place& at) { places_[next[source]++] = at; });
  by_work_.resize(words);
  std::iota(by_work_.begin(), by_work_.end(), 0);
  std::ranges::stable_sort(by_work_, std::greater(), [&](size_t w) { return work_[w]; });
  all_work_ = 2 * std::reduce(work_.begin(), work_.end());
}

// A row for each source word, of all targets that a pair has beside it, and of none, of all; to
// begin with, each is as likely. First its length is found, then it is filled.
void StatisticalAligner::Learning::find_table() {
  const size_t words = sources_.different() + 1, targets = targets_.different();
  const auto each_target = [&](size_t source, int32_t mark, const auto& f) {
    std::vector<int32_t>& marks = scratch().places;
    for (const Place& at : places_of(source)) {
      for (const int32_t target : targets_.line(at.pair)) {
        if (std::exchange(marks[static_cast<size_t>(target)], mark) != mark) f(target);
      }
    }
  };
  table_.begins.assign(words + 1, 0);
  table_.begins[kNone + 1] = targets;
  parallel_for(static_cast<int64_t>(words), [&](int64_t i) {
    const size_t source = by_work_[static_cast<size_t>(i)];
    if (source == kNone) return;
    size_t size = 0;
    each_target(source, static_cast<int32_t>(source), [&](int32_t) { ++size; });
    table_.begins[source + 1] = size;
  });
  std::partial_sum(table_.begins.begin(), table_.begins.end(), table_.begins.begin());
  table_.targets.resize(table_.begins.back());
  table_.likely.assign(table_.begins.back(), scaled(1 / static_cast<double>(targets)));
  parallel_for(static_cast<int64_t>(words), [&](int64_t i) {
    const size_t source = by_work_[static_cast<size_t>(i)];
    const auto row = std::span(table_.targets).subspan(table_.begins[source], row_size(source));
    if (source == kNone) return std::iota(row.begin(), row.end(), 1);
    size_t filled = 0;
    each_target(source, -static_cast<int32_t>(source),
                [&](int32_t target) { row[filled++] = target; });
    std::ranges::sort(row);
  });
}

StatisticalAligner::Learning::Sums StatisticalAligner::Learning::expect(bool by_position) {
  constexpr int64_t kPairs = 128;
  expected_.resize(targets_.words());
  std::vector<Sums> parts(static_cast<size_t>((sources_.lines() + kPairs - 1) / kPairs));
  parallel_blocks(sources_.lines(), kPairs, [&](int64_t begin, int64_t end) {
    Sums& part = parts[static_cast<size_t>(begin / kPairs)];
    int64_t work = 0;
    for (int64_t pair = begin; pair < end; ++pair) {
      if (!is_learned(pair)) continue;
      const Sums sums = expect_pair(pair, by_position);
      part.nearness += sums.nearness;
      part.linked += sums.linked;
      work += std::ssize(targets_.line(pair)) * (std::ssize(sources_.line(pair)) + 1);
    }
    add_done(work);
  });
  Sums sums;
  for (const Sums& part : parts) {
    sums.nearness += part.nearness;
    sums.linked += part.linked;
  }
  return sums;
}

StatisticalAligner::Learning::Sums StatisticalAligner::Learning::expect_pair(int64_t pair,
                                                                             bool by_position) {
  const auto source = sources_.line(pair), target = targets_.line(pair);
  std::vector<double>& shares = scratch().shares;
  Sums sums;
  for (size_t j = 0; j < target.size(); ++j) {
    const double factor = to_.set_shares(j, target.size(), source.size(), by_position, shares);
    const double none = shares[0] * table_.likely[table_.place_of(kNone, target[j])];
    double linked = 0, near = 0;
    for (size_t i = 0; i < source.size(); ++i) {
      const double weight = shares[i + 1] * table_.likely[table_.place_of(source[i], target[j])];
      linked += weight;
      if (by_position) near += weight * nearness(j, target.size(), i, source.size());
    }
    const double all = none + linked;
    expected_[targets_.begin(pair) + j] = {static_cast<float>(factor / all),
                                           static_cast<float>(none / all)};
    sums.linked += linked / all;
    sums.nearness += near / all;
  }
  return sums;
}

// What a source word gets of each target in its row.
void StatisticalAligner::Learning::count(size_t source, bool by_position, Scratch& s) const {
  const size_t begin = table_.begins[source], size = row_size(source);
  for (size_t k = 0; k < size; ++k) {
    s.places[static_cast<size_t>(table_.targets[begin + k])] = static_cast<int32_t>(k);
  }
  s.counts.assign(size, 0);
  for (const Place& at : places_of(source)) {
    const auto target = targets_.line(at.pair);
    const size_t sources = sources_.line(at.pair).size();
    const Expected* expected = &expected_[targets_.begin(at.pair)];
    for (size_t j = 0; j < target.size(); ++j) {
      const auto k = static_cast<size_t>(s.places[static_cast<size_t>(target[j])]);
      if (source == kNone) {
        s.counts[k] += expected[j].none;
        continue;
      }
      const double near =
          by_position ? std::exp(to_.tension_ * nearness(j, target.size(),
                                                         static_cast<size_t>(at.position), sources))
                      : 1;
      s.counts[k] += near * table_.likely[begin + k] * expected[j].each;
    }
  }
}

void StatisticalAligner::Learning::maximise(bool by_position) {
  const double prior = to_.options_.prior;
  parallel_for(std::ssize(by_work_), [&](int64_t i) {
    const size_t source = by_work_[static_cast<size_t>(i)];
    Scratch& s = scratch();
    count(source, by_position, s);
    double all = 0;
    for (const double count : s.counts) all += count + prior;
    const double log_all = prior > 0 && all > 0 ? digamma(all) : 0;
    float* likely = &table_.likely[table_.begins[source]];
    for (const double count : s.counts) {
      *likely++ = scaled(prior > 0 ? std::exp(digamma(count + prior) - log_all)
                         : all > 0 ? count / all
                                   : 0);
    }
    add_done(work_[source]);
  });
}

// Steps up the gradient of the likelihood: nearness as it was found, less as the positions expect
// it.
void StatisticalAligner::Learning::learn_tension(const Sums& sums) {
  constexpr int kSteps = 8;
  constexpr double kRate = 20, kLeast = 0.1, kMost = 14;
  if (sums.linked == 0) return;
  double words = 0;
  for (const Lengths& l : lengths_) words += l.pairs * static_cast<double>(l.targets);
  std::vector<double> parts(lengths_.size());
  for (int step = 0; step < kSteps; ++step) {
    parallel_for(std::ssize(lengths_), [&](int64_t at) {
      const Lengths& l = lengths_[static_cast<size_t>(at)];
      double sum = 0;
      for (size_t j = 0; j < l.targets; ++j) {
        sum += expected_nearness(j, l.targets, l.sources, to_.tension_);
      }
      parts[static_cast<size_t>(at)] = l.pairs * sum;
    });
    const double expected = std::accumulate(parts.begin(), parts.end(), 0.0);
    to_.tension_ += kRate * (sums.nearness / sums.linked - expected / words);
    to_.tension_ = std::clamp(to_.tension_, kLeast, kMost);
  }
}

// The owner of the loop tells, no other thread.
void StatisticalAligner::Learning::add_done(int64_t work) {
  const int64_t done = done_ += work;
  if (thread_index() != 0 || !progress_.is_due()) return;
  const int64_t all = all_work_ * to_.options_.iterations * to_.options_.model;
  progress_.update(static_cast<double>(done) / static_cast<double>(all), stage_);
}

StatisticalAligner::StatisticalAligner(const WordLines& sources, const WordLines& targets,
                                       const AlignerOptions& options)
    : options_(options), tension_(options.tension) {
  check(options.model == 1 || options.model == 2, ErrorKind::usage,
        "statistical alignment: model is {}; there are 1 and 2", options.model);
  check(options.iterations >= 1, ErrorKind::usage,
        "statistical alignment: {} iterations; it needs at least 1", options.iterations);
  check(options.null >= 0 && options.null < 1 && options.prior >= 0 && options.prior < 1,
        ErrorKind::usage, "statistical alignment: null {} and prior {}; both are from 0 to below 1",
        options.null, options.prior);
  check(sources.lines() == targets.lines(), ErrorKind::data,
        "statistical alignment: {} sources, but {} targets", sources.lines(), targets.lines());
  Learning(*this, sources, targets).run();
}

size_t StatisticalAligner::Table::place_of(int32_t source, int32_t target) const {
  const size_t begin = begins[static_cast<size_t>(source)];
  if (source == kNone) return begin + static_cast<size_t>(target) - 1;  // its row has all
  const size_t end = begins[static_cast<size_t>(source) + 1];
  const auto row = std::span(targets).subspan(begin, end - begin);
  const auto at = std::ranges::lower_bound(row, target);
  return at != row.end() && *at == target ? begin + static_cast<size_t>(at - row.begin()) : end;
}

// What each position of the source, behind none, is likely to give a target word, by itself.
// returns: what its nearness is multiplied by for that
double StatisticalAligner::set_shares(size_t target, size_t targets, size_t sources,
                                      bool by_position, std::vector<double>& shares) const {
  shares.resize(sources + 1);
  shares[0] = options_.null;
  double all = 0;
  for (size_t i = 0; i < sources; ++i) {
    shares[i + 1] = by_position ? std::exp(tension_ * nearness(target, targets, i, sources)) : 1;
    all += shares[i + 1];
  }
  const double factor = (1 - options_.null) / all;
  for (size_t i = 1; i <= sources; ++i) shares[i] *= factor;
  return factor;
}

double StatisticalAligner::translation(int32_t source, int32_t target) const {
  if (source == WordLines::kUnknown || target == WordLines::kUnknown) return kUnseen;
  const size_t at = table_.place_of(source, target);
  if (at == table_.begins[static_cast<size_t>(source) + 1]) return kUnseen;
  return std::max(kUnseen, table_.likely[at] / kScale);
}

Alignment StatisticalAligner::align(std::span<const int32_t> source,
                                    std::span<const int32_t> target, bool links_all) const {
  Alignment links;
  if (source.empty()) return links;
  std::vector<double> shares;
  for (size_t j = 0; j < target.size(); ++j) {
    set_shares(j, target.size(), source.size(), options_.model == 2, shares);
    double best = links_all ? 0 : shares[0] * translation(kNone, target[j]);
    int32_t found = -1;
    for (size_t i = 0; i < source.size(); ++i) {
      const double weight = shares[i + 1] * translation(source[i], target[j]);
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
