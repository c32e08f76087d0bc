// Sets of ids as sorted lists; a row of logits is gathered from the columns that all share.
#include "heddle/infer/search/candidates.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "heddle/base/parallel.h"

namespace heddle {
namespace {

constexpr int64_t kRows = 8;  // of a call
constexpr int64_t kSample = 128;

}  // namespace

Candidates::Candidates(std::span<const int32_t> allowed, std::span<const int32_t> needed,
                       std::span<const int32_t> suppressed_ids, int64_t vocab)
    : ids(allowed.begin(), allowed.end()) {
  std::vector<int32_t> never(suppressed_ids.begin(), suppressed_ids.end());
  std::ranges::sort(never);
  std::erase_if(ids, [&](int32_t id) { return std::ranges::binary_search(never, id); });
  ids.insert(ids.end(), needed.begin(), needed.end());
  std::ranges::sort(ids);
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  for (const int32_t id : never) {
    if (const int32_t number = number_of(id); number >= 0) suppressed.push_back(number);
  }
  const int64_t steps = std::min(kSample, vocab);
  for (int64_t i = 0; i < steps; ++i) {
    const auto id = static_cast<int32_t>((2 * i + 1) * vocab / (2 * steps));
    if (number_of(id) < 0) sample.push_back(id);
  }
  if (sample.empty()) return;
  each = static_cast<double>(vocab - std::ssize(ids)) / static_cast<double>(sample.size());
}

int32_t Candidates::number_of(int32_t id) const {
  const auto at = std::ranges::lower_bound(ids, id);
  return at != ids.end() && *at == id ? static_cast<int32_t>(at - ids.begin()) : -1;
}

void CandidateOutput::hold(std::span<Candidates* const> all, const nn::Run& run) {
  std::vector<char> is_needed(static_cast<size_t>(output_.vocab()));
  column_of_.resize(is_needed.size(), -1);
  int64_t needed = 0;
  bool has_all = true;
  const auto need = [&](const std::vector<int32_t>& ids) {
    for (const int32_t id : ids) {
      char& mark = is_needed[static_cast<size_t>(id)];
      needed += mark == 0;
      mark = 1;
      has_all = has_all && column_of_[static_cast<size_t>(id)] >= 0;
    }
  };
  for (const Candidates* set : all) need(set->ids), need(set->sample);
  if (needed == 0) return;
  const bool drops = 2 * needed < size();
  if (!has_all || drops) {
    for (const int32_t id : ids_) is_needed[static_cast<size_t>(id)] |= static_cast<char>(!drops);
    ids_.clear();
    for (size_t id = 0; id < is_needed.size(); ++id) {
      column_of_[id] = is_needed[id] != 0 ? static_cast<int32_t>(ids_.size()) : -1;
      if (is_needed[id] != 0) ids_.push_back(static_cast<int32_t>(id));
    }
    rows_ = std::make_unique<nn::OutputRows>(output_, ids_, run);
  }
  const auto find = [&](const std::vector<int32_t>& ids, std::vector<int32_t>& columns) {
    columns.clear();
    for (const int32_t id : ids) columns.push_back(column_of_[static_cast<size_t>(id)]);
  };
  for (Candidates* set : all) {
    find(set->ids, set->columns);
    find(set->sample, set->sampled_columns);
  }
}

float CandidateOutput::log_share(const float* logits, const Candidates& set, float log_sum) {
  float sum = 0;
  for (const int32_t column : set.sampled_columns) sum += std::exp(logits[column] - log_sum);
  return static_cast<float>(-std::log1p(set.each * sum));
}

void CandidateOutput::name_tokens(std::span<NextToken> tokens, const float* logits,
                                  const Candidates& set, bool scores) {
  if (tokens.empty() || tokens[0].id < 0) return;
  float share = 0;
  if (scores) {
    const float best = logits[set.columns[static_cast<size_t>(tokens[0].id)]];
    share = log_share(logits, set, best - tokens[0].log_p);
  }
  for (NextToken& token : tokens) {
    if (token.id < 0) break;
    token.id = set.ids[static_cast<size_t>(token.id)];
    token.log_p += share;
  }
}

Tensor CandidateOutput::own_columns(const Tensor& logits, std::span<const int64_t> numbers,
                                    std::span<const Candidates* const> sets) const {
  int64_t most = 0;
  for (const Candidates* set : sets) most = std::max(most, std::ssize(set->ids));
  const Tensor own = Tensor::empty({std::ssize(numbers), most}, DType::f32);
  const Rows from = logits.rows(), to = own.rows();
  parallel_blocks(to.rows, kRows, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const float* x = from.row<float>(numbers[static_cast<size_t>(i)]);
      float* y = to.row<float>(i);
      for (const int32_t column : sets[static_cast<size_t>(i)]->columns) *y++ = x[column];
    }
  });
  return own;
}

Tensor CandidateOutput::in_vocabulary(const Tensor& logits, std::span<const int64_t> numbers,
                                      std::span<const Candidates* const> sets,
                                      int64_t vocab) const {
  const Tensor all = Tensor::empty({std::ssize(numbers), vocab}, DType::f32);
  const Rows from = logits.rows(), to = all.rows();
  parallel_blocks(to.rows, kRows, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const Candidates& set = *sets[static_cast<size_t>(i)];
      const float* x = from.row<float>(numbers[static_cast<size_t>(i)]);
      float* y = to.row<float>(i);
      std::fill_n(y, vocab, -std::numeric_limits<float>::infinity());
      for (size_t k = 0; k < set.ids.size(); ++k) y[set.ids[k]] = x[set.columns[k]];
    }
  });
  return all;
}

}  // namespace heddle
