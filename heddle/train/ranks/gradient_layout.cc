// Filling buckets, cutting them.
#include "heddle/train/ranks/gradient_layout.h"

#include <algorithm>
#include <numeric>

#include "heddle/dist/group.h"

namespace heddle::train {
namespace {

// Slices are cut at multiples of so many values.
constexpr int64_t kGrain = 16;
// Less would be more latency than bytes: 50 us take as long as 15,000 values at 10 Gbit/s.
constexpr int64_t kFewestValues = int64_t{1} << 17;

int64_t rounded_up(int64_t n, int64_t grain) { return (n + grain - 1) / grain * grain; }

}  // namespace

GradientLayout::GradientLayout(const nn::Parameters& parameters, int64_t shards,
                               int64_t least_values)
    : shards_(shards), begins_(parameters.all().size()) {
  const auto& all = parameters.all();
  for (const auto& p : all) elements_.push_back(p->elements());
  const int64_t eighth = std::accumulate(elements_.begin(), elements_.end(), int64_t{0}) / 8;
  least_values = std::min(least_values, std::max(eighth, kFewestValues));
  for (const bool buffers : {false, true}) {
    buckets_.push_back({.begin = size_, .first = std::ssize(order_)});
    for (size_t i = all.size(); i-- > 0;) {
      if (all[i]->is_buffer() != buffers || all[i]->is_fixed()) continue;
      order_.push_back(i);
      begins_[i] = size_;
      size_ += rounded_up(elements_[i], kGrain);
      if (size_ - buckets_.back().begin < least_values) continue;
      close_bucket(buffers);
      buckets_.push_back({.begin = size_, .first = std::ssize(order_)});
    }
    close_bucket(buffers);
  }
}

void GradientLayout::close_bucket(bool is_of_buffers) {
  Bucket& b = buckets_.back();
  b.last = std::ssize(order_);
  if (b.first == b.last) return buckets_.pop_back();
  b.size = rounded_up(size_ - b.begin, kGrain * shards_);
  b.is_of_buffers = is_of_buffers;
  size_ = b.begin + b.size;
}

std::vector<std::vector<ElementRange>> GradientLayout::ranges_of_muon(
    const nn::Parameters& parameters, int64_t ranks) const {
  std::vector<std::vector<ElementRange>> all;
  std::vector<int64_t> loads;  // values of moments
  std::vector<size_t> matrices;
  for (const size_t i : order_) {
    if (parameters.all()[i]->is_hidden_matrix()) matrices.push_back(i);
  }
  for (int64_t rank = 0; rank < ranks; ++rank) {
    all.push_back(this->ranges(rank, ranks));  // those of buffers, whose sums are known in slices
    int64_t& load = loads.emplace_back();
    for (const size_t i : order_) {
      const nn::Parameter& p = *parameters.all()[i];
      if (p.is_buffer()) continue;
      const dist::Slice slice = dist::slice_of(elements_[i], rank, ranks);
      all.back()[i] =
          p.is_hidden_matrix() ? ElementRange() : ElementRange{slice.begin, slice.size()};
      load += 2 * all.back()[i].size;  // Adam's
    }
  }
  std::ranges::stable_sort(matrices, std::greater(), [&](size_t i) { return elements_[i]; });
  for (const size_t i : matrices) {
    const auto rank = std::ranges::min_element(loads) - loads.begin();
    all[static_cast<size_t>(rank)][i] = {0, elements_[i]};
    loads[static_cast<size_t>(rank)] += elements_[i];
  }
  return all;
}

std::vector<ElementRange> GradientLayout::ranges(int64_t rank, int64_t ranks) const {
  std::vector<ElementRange> ranges(begins_.size());
  for (const Bucket& b : buckets_) {
    const dist::Slice slice = dist::slice_of(b.size, rank, ranks);
    for (int64_t k = b.first; k < b.last; ++k) {
      const size_t i = order_[static_cast<size_t>(k)];
      const int64_t start = begins_[i] - b.begin;
      const int64_t from = std::max(slice.begin - start, int64_t{0});
      const int64_t to = std::min(slice.end - start, elements_[i]);
      if (from < to) ranges[i] = {from, to - from};
    }
  }
  return ranges;
}

}  // namespace heddle::train
