// A binary counter of sets of gradients.
#include "heddle/train/ranks/gradient_tree.h"

#include <algorithm>
#include <cstring>

#include "heddle/base/parallel.h"
#include "heddle/base/profile.h"

namespace heddle::train {
namespace {

constexpr int64_t kBlock = 1 << 15;

// to += from, or to = from; of null from: zeros.
void combine(float* to, const float* from, int64_t n, bool adds) {
  parallel_blocks(n, kBlock, [&](int64_t begin, int64_t end) {
    if (from == nullptr && adds) {  // -0 becomes +0, as where zeros come from another rank
      for (int64_t i = begin; i < end; ++i) to[i] += 0.0F;
    } else if (from == nullptr) {
      std::fill(to + begin, to + end, 0.0F);
    } else if (adds) {
      for (int64_t i = begin; i < end; ++i) to[i] += from[i];
    } else {
      std::copy(from + begin, from + end, to + begin);
    }
  });
}

std::span<float> values_of(const Tensor& t) {
  return {t.data<float>(), static_cast<size_t>(t.elements())};
}

}  // namespace

GradientTree::GradientTree(nn::Parameters& parameters, const GradientLayout& layout)
    : parameters_(&parameters), layout_(&layout), buffers_(parameters.all().size()) {}

void GradientTree::begin() {
  sets_.clear();
  shards_ = 0, buckets_ = 0;
  came_.assign(parameters_->all().size(), 0);
  for (size_t i = 0; i < buffers_.size(); ++i) {
    const nn::Parameter& p = *parameters_->all()[i];
    if (!p.is_buffer() || p.is_fixed()) continue;
    const auto before = values_of(p.value());
    buffers_[i].assign(before.begin(), before.end());
  }
}

void GradientTree::take() {
  for (const GradientLayout::Bucket& b : layout_->buckets()) take(b);
}

// Two sets of equally many shards become one: of shard 7 (from 0) three times.
void GradientTree::take(const GradientLayout::Bucket& bucket) {
  const ProfilePhase phase("sum of shards");
  const bool adds = shards_ % 2 == 1;
  if (!adds && buckets_ == 0) sets_.push_back(Tensor::empty({layout_->size()}, DType::f32));
  const auto set = [&](size_t i) { return sets_[i].data<float>() + bucket.begin; };
  size_t last = sets_.size() - 1;
  add_or_copy(bucket, sets_[last].data<float>(), adds);
  for (int64_t n = (shards_ + 1) / 2; adds && n % 2 == 0; n /= 2, --last) {
    combine(set(last - 1), set(last), bucket.size, true);
  }
  if (++buckets_ < layout_->buckets().size()) return;
  buckets_ = 0;
  sets_.resize(last + 1);
  ++shards_;
}

// `to`: where the set begins.
void GradientTree::add_or_copy(const GradientLayout::Bucket& b, float* to, bool adds) {
  int64_t end = b.begin;
  for (int64_t k = b.first; k < b.last; ++k) {
    const size_t i = layout_->order()[static_cast<size_t>(k)];
    nn::Parameter& p = *parameters_->all()[i];
    float* const values = to + layout_->begin(i);
    if (!adds) std::fill(to + end, values, 0.0F);
    end = layout_->begin(i) + p.elements();
    if (p.is_buffer()) {
      const float* const now = p.value().data<float>();
      for (int64_t e = 0; e < p.elements(); ++e) {
        const float change = now[e] - buffers_[i][static_cast<size_t>(e)];
        values[e] = adds ? values[e] + change : change;
      }
      std::ranges::copy(buffers_[i], p.value().data<float>());
      p.changed(true);
      continue;
    }
    const bool has_gradient = p.grad().defined();
    combine(values, has_gradient ? p.grad().data<float>() : nullptr, p.elements(), adds);
    came_[i] |= has_gradient ? 1 : 0;
    p.grad() = Tensor();
  }
  if (!adds) std::fill(to + end, to + b.begin + b.size, 0.0F);
}

Tensor GradientTree::sum() {
  check(!sets_.empty(), ErrorKind::internal, "a sum of {} shards is asked for", shards_);
  return sets_.front();
}

int64_t GradientTree::bytes() const {
  return std::ssize(sets_) * layout_->size() * static_cast<int64_t>(sizeof(float));
}

}  // namespace heddle::train
