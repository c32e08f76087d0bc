// Temperature, top-k, top-p and min-p, then one draw by the inverse of the running sum.
#include "heddle/infer/sample.h"

#include <algorithm>
#include <cmath>

#include "heddle/base/parallel.h"
#include "heddle/base/profile.h"
#include "heddle/base/rng.h"

namespace heddle {
namespace {

struct Candidate {
  int32_t id;
  float logit;
  double weight;  // e^((logit - largest) / temperature)
};

bool is_likelier(const Candidate& a, const Candidate& b) {
  return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
}

bool contains(std::span<const int32_t> ids, int32_t id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

// What may come in row r, by id.
void collect(std::span<const float> x, const SampleWordsOptions& o, int64_t r,
             std::vector<Candidate>& words) {
  words.clear();
  const std::span<const int32_t> banned =
      o.banned.empty() ? std::span<const int32_t>() : std::span<const int32_t>(o.banned[r]);
  float largest = -INFINITY;
  for (size_t i = 0; i < x.size(); ++i) {
    const auto id = static_cast<int32_t>(i);
    if (x[i] == -INFINITY || contains(o.suppressed, id) || contains(banned, id)) continue;
    words.push_back({id, x[i], 0});
    largest = std::max(largest, x[i]);
  }
  for (Candidate& c : words) {
    c.weight = std::exp((static_cast<double>(c.logit) - largest) / o.sampling.temperature);
  }
}

// The likeliest word is always kept. The order is by id again afterwards.
void keep_likely(const Sampling& s, std::vector<Candidate>& words) {
  const bool is_top_k = s.top_k > 0 && s.top_k < static_cast<int64_t>(words.size());
  if (is_top_k) {
    std::nth_element(words.begin(), words.begin() + (s.top_k - 1), words.end(), is_likelier);
    words.resize(static_cast<size_t>(s.top_k));
  }
  if (s.top_p < 1) {
    std::sort(words.begin(), words.end(), is_likelier);
    double total = 0, sum = 0;
    for (const Candidate& c : words) total += c.weight;
    size_t kept = 0;
    while (kept < words.size() && sum < s.top_p * total) sum += words[kept++].weight;
    words.resize(std::max<size_t>(kept, 1));
  }
  if (s.min_p > 0) {  // the likeliest has the weight 1
    std::erase_if(words, [&](const Candidate& c) { return c.weight < s.min_p; });
  }
  if (is_top_k || s.top_p < 1) {
    std::sort(words.begin(), words.end(),
              [](const Candidate& a, const Candidate& b) { return a.id < b.id; });
  }
}

const Candidate& drawn(const std::vector<Candidate>& words, double draw) {
  double total = 0, sum = 0;
  for (const Candidate& c : words) total += c.weight;
  for (const Candidate& c : words) {
    sum += c.weight;
    if (sum > draw * total) return c;
  }
  return words.back();  // draw * total was rounded up to the sum
}

NextWord sample_of_row(const Rows& logits, int64_t r, double draw, const SampleWordsOptions& o) {
  thread_local std::vector<Candidate> words;
  const std::span<const float> x(logits.row<float>(r), static_cast<size_t>(logits.width));
  const LogitScale scale = scale_of_row(logits, r);
  if (!o.forced.empty() && o.forced[r] >= 0) return {o.forced[r], scale.log_p(x[o.forced[r]])};
  collect(x, o, r, words);
  if (words.empty()) return {};
  keep_likely(o.sampling, words);
  const Candidate& word = drawn(words, draw);
  return {word.id, scale.log_p(word.logit)};
}

}  // namespace

void check_sampling(const Sampling& s) {
  check(std::isfinite(s.temperature) && s.temperature > 0, ErrorKind::usage,
        "--temperature is {}; it must be above 0 (for the likeliest word each time, leave out "
        "--sample)",
        s.temperature);
  check(s.top_k >= 0, ErrorKind::usage, "--top-k is {}; it must be at least 1, or 0 for all words",
        s.top_k);
  check(s.top_p > 0 && s.top_p <= 1, ErrorKind::usage,
        "--top-p is {}; it must be above 0 and at most 1", s.top_p);
  check(s.min_p >= 0 && s.min_p <= 1, ErrorKind::usage, "--min-p is {}; it must be from 0 to 1",
        s.min_p);
}

double sample_draw(uint64_t seed, int64_t line, int64_t sample, int64_t place) {
  static constexpr uint64_t kSite = hash_name("translate.sample");
  const RngKey key =
      make_key(seed, static_cast<uint64_t>(sample), kSite, static_cast<uint64_t>(line));
  const auto at = static_cast<uint64_t>(place);
  const PhiloxCounter words =
      philox({static_cast<uint32_t>(at), static_cast<uint32_t>(at >> 32), 0, 0}, key);
  const uint64_t bits = (uint64_t{words[0]} << 32 | words[1]) >> 11;
  return static_cast<double>(bits) * 0x1p-53;
}

std::vector<NextWord> sample_words(const Tensor& logits, std::span<const double> draws,
                                   const SampleWordsOptions& options) {
  const Rows rows = logits.rows();
  const ProfiledCall timed("sample_words", {.bytes = rows.rows * rows.width * 4});
  std::vector<NextWord> words(rows.rows);
  parallel_for(rows.rows, [&](int64_t r) { words[r] = sample_of_row(rows, r, draws[r], options); });
  return words;
}

}  // namespace heddle
