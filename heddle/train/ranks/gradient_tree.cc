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
  shards_ = 0;
  came_.assign(parameters_->all().size(), 0);
  for (size_t i = 0; i < buffers_.size(); ++i) {
    const nn::Parameter& p = *parameters_->all()[i];
    if (!p.is_buffer() || p.is_fixed()) continue;
    const auto before = values_of(p.value());
    buffers_[i].assign(before.begin(), before.end());
  }
}

void GradientTree::take() {
  const ProfilePhase phase("sum of shards");
  const bool adds = shards_ % 2 == 1;
  if (!adds) sets_.push_back(Tensor::empty({layout_->size()}, DType::f32));
  add_or_copy(values_of(sets_.back()), adds);
  put_buffers_back();
  ++shards_;
  // Two sets of equally many shards become one.
  for (int64_t n = shards_ / 2; shards_ % 2 == 0 && n % 2 == 0; n /= 2) {
    const Tensor higher = sets_.back();
    sets_.pop_back();
    combine(sets_.back().data<float>(), higher.data<float>(), higher.elements(), true);
  }
}

void GradientTree::add_or_copy(std::span<float> to, bool adds) {
  for (const GradientLayout::Bucket& b : layout_->buckets()) {
    int64_t end = b.begin;
    for (int64_t k = b.first; k < b.last; ++k) {
      const size_t i = layout_->order()[static_cast<size_t>(k)];
      nn::Parameter& p = *parameters_->all()[i];
      float* const values = to.data() + layout_->begin(i);
      if (!adds) std::fill(to.data() + end, values, 0.0F);
      end = layout_->begin(i) + p.elements();
      if (p.is_buffer()) {
        const float* const now = p.value().data<float>();
        for (int64_t e = 0; e < p.elements(); ++e) {
          const float change = now[e] - buffers_[i][static_cast<size_t>(e)];
          values[e] = adds ? values[e] + change : change;
        }
        continue;
      }
      const bool has_gradient = p.grad().defined();
      combine(values, has_gradient ? p.grad().data<float>() : nullptr, p.elements(), adds);
      came_[i] |= has_gradient ? 1 : 0;
      p.grad() = Tensor();
    }
    if (!adds) std::fill(to.data() + end, to.data() + b.begin + b.size, 0.0F);
  }
}

void GradientTree::put_buffers_back() {
  for (size_t i = 0; i < buffers_.size(); ++i) {
    if (buffers_[i].empty()) continue;
    nn::Parameter& p = *parameters_->all()[i];
    std::ranges::copy(buffers_[i], p.value().data<float>());
    p.changed(true);
  }
}

std::span<float> GradientTree::sum() {
  check(sets_.size() == 1, ErrorKind::internal, "a sum of {} shards is asked for", shards_);
  return values_of(sets_.back());
}

int64_t GradientTree::bytes() const {
  return std::ssize(sets_) * layout_->size() * static_cast<int64_t>(sizeof(float));
}

}  // namespace heddle::train
