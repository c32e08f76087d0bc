// Temperature, top-k, top-p and min-p, then one draw by the inverse of the running sum.
#include "heddle/infer/search/sample.h"

#include <algorithm>
#include <cmath>

#include "heddle/base/parallel.h"
#include "heddle/base/profile.h"
#include "heddle/base/rng.h"

namespace heddle {
namespace {

struct DrawCandidate {
  int32_t id;
  float logit;
  double weight;  // e^((logit - largest) / temperature)
};

bool is_likelier(const DrawCandidate& a, const DrawCandidate& b) {
  return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
}

// What may come in a row, by id.
void collect(std::span<const float> x, const SampleRow& o, double temperature,
             std::vector<DrawCandidate>& tokens) {
  tokens.clear();
  float largest = -INFINITY;
  for (size_t i = 0; i < x.size(); ++i) {
    const auto id = static_cast<int32_t>(i);
    if (x[i] == -INFINITY || contains(o.suppressed, id) || contains(o.banned, id)) continue;
    tokens.push_back({id, x[i], 0});
    largest = std::max(largest, x[i]);
  }
  for (DrawCandidate& c : tokens) {
    c.weight = std::exp((static_cast<double>(c.logit) - largest) / temperature);
  }
}

// The likeliest token is always kept. The order is by id again afterwards.
void keep_likely(const SearchConfig& search, std::vector<DrawCandidate>& tokens) {
  const int64_t top_k = search.top_k.value_or(0);
  const double top_p = search.top_p.value_or(1), min_p = search.min_p.value_or(0);
  const bool is_top_k = top_k > 0 && top_k < static_cast<int64_t>(tokens.size());
  if (is_top_k) {
    std::nth_element(tokens.begin(), tokens.begin() + (top_k - 1), tokens.end(), is_likelier);
    tokens.resize(static_cast<size_t>(top_k));
  }
  if (top_p < 1) {
    std::sort(tokens.begin(), tokens.end(), is_likelier);
    double total = 0, sum = 0;
    for (const DrawCandidate& c : tokens) total += c.weight;
    size_t kept = 0;
    while (kept < tokens.size() && sum < top_p * total) sum += tokens[kept++].weight;
    tokens.resize(std::max<size_t>(kept, 1));
  }
  if (min_p > 0) {  // the likeliest has the weight 1
    std::erase_if(tokens, [&](const DrawCandidate& c) { return c.weight < min_p; });
  }
  if (is_top_k || top_p < 1) {
    std::sort(tokens.begin(), tokens.end(),
              [](const DrawCandidate& a, const DrawCandidate& b) { return a.id < b.id; });
  }
}

const DrawCandidate& drawn(const std::vector<DrawCandidate>& tokens, double draw) {
  double total = 0, sum = 0;
  for (const DrawCandidate& c : tokens) total += c.weight;
  for (const DrawCandidate& c : tokens) {
    sum += c.weight;
    if (sum > draw * total) return c;
  }
  return tokens.back();  // draw * total was rounded up to the sum
}

NextToken sample_of_row(const Rows& logits, int64_t r, const SampleRow& o) {
  thread_local std::vector<DrawCandidate> tokens;
  const std::span<const float> x(logits.row<float>(r), static_cast<size_t>(logits.width));
  const LogitScale scale = scale_of_row(logits, r);
  if (o.forced >= 0) return {o.forced, scale.log_p(x[o.forced])};
  const double temperature = o.search->temperature.value_or(1);
  collect(x, o, temperature, tokens);
  if (tokens.empty()) return {};
  if (temperature == 0) {
    const DrawCandidate& token = *std::min_element(tokens.begin(), tokens.end(), is_likelier);
    return {token.id, scale.log_p(token.logit)};
  }
  keep_likely(*o.search, tokens);
  const DrawCandidate& token = drawn(tokens, o.draw);
  return {token.id, scale.log_p(token.logit)};
}

}  // namespace

double sample_draw(uint64_t seed, int64_t line, int64_t sample, int64_t position) {
  static constexpr uint64_t kSite = hash_name("translate.sample");
  const RngKey key =
      make_key(seed, static_cast<uint64_t>(sample), kSite, static_cast<uint64_t>(line));
  const auto at = static_cast<uint64_t>(position);
  const PhiloxCounter random =
      philox({static_cast<uint32_t>(at), static_cast<uint32_t>(at >> 32), 0, 0}, key);
  const uint64_t bits = (uint64_t{random[0]} << 32 | random[1]) >> 11;
  return static_cast<double>(bits) * 0x1p-53;
}

std::vector<NextToken> sample_tokens(const Tensor& logits, std::span<const SampleRow> rows) {
  const Rows all = logits.rows();
  std::vector<int64_t> numbers;
  for (int64_t r = 0; r < all.rows; ++r) {
    if (rows[r].search != nullptr) numbers.push_back(r);
  }
  const ProfiledCall timed("sample_tokens", {.bytes = std::ssize(numbers) * all.width * 4});
  std::vector<NextToken> tokens(numbers.size());
  parallel_for(std::ssize(numbers),
               [&](int64_t i) { tokens[i] = sample_of_row(all, numbers[i], rows[numbers[i]]); });
  return tokens;
}

}  // namespace heddle
