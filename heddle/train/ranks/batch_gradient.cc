// Shards of a rank, sums between ranks, each rank's share of the update.
#include "heddle/train/ranks/batch_gradient.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <numeric>
#include <utility>

#include "heddle/autograd/final_gradients.h"
#include "heddle/base/profile.h"
#include "heddle/base/work_notes.h"
#include "heddle/dist/packed.h"
#include "heddle/kernels/kernels.h"

namespace heddle::train {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// Adds the time that it lives.
class Timed {
 public:
  explicit Timed(double& sum) : sum_(&sum) {}
  ~Timed() { *sum_ += seconds_since(begin_); }
  Timed(const Timed&) = delete;
  Timed& operator=(const Timed&) = delete;

 private:
  double* sum_;
  Clock::time_point begin_ = Clock::now();
};

// Adds the time that it lives to what this rank has waited for others, or else for the wire.
class Blocked {
 public:
  Blocked(const dist::Group& group, RankTimes& times) : group_(&group), times_(&times) {}
  ~Blocked() {
    const double all = seconds_since(begin_);
    const double waited = std::min(all, group_->seconds_waited() - waited_before_);
    times_->waiting += waited;
    times_->wire += all - waited;
  }
  Blocked(const Blocked&) = delete;
  Blocked& operator=(const Blocked&) = delete;

 private:
  const dist::Group* group_;
  RankTimes* times_;
  Clock::time_point begin_ = Clock::now();
  double waited_before_ = group_->seconds_waited();
};

// ((s0 + s1) + (s2 + s3)) + ..
LossSums tree_sum(std::vector<LossSums> sums) {
  for (; sums.size() > 1; sums.resize(sums.size() / 2)) {
    for (size_t i = 0; i < sums.size() / 2; ++i) {
      sums[i] = sums[2 * i];
      sums[i] += sums[2 * i + 1];
    }
  }
  return sums.at(0);
}

}  // namespace

BatchGradient::BatchGradient(Task& task, int64_t shards, int64_t accumulate, dist::Group& group,
                             int64_t bucket_values, bool is_muon)
    : task_(&task), shards_(shards), accumulate_(accumulate), group_(&group) {
  const int64_t ranks = group.ranks();
  check(shards % ranks == 0, ErrorKind::internal, "{} shards of {} ranks", shards, ranks);
  for (const auto& p : parameters().all()) {
    has_buffers_ = has_buffers_ || (p->is_buffer() && !p->is_fixed());
    ranges_.push_back({0, p->elements()});
  }
  if (shards == 1) return;
  layout_.emplace(parameters(), shards, bucket_values);
  tree_.emplace(parameters(), *layout_);
  std::vector<ElementRange> whole = std::exchange(ranges_, layout_->ranges(group.rank(), ranks));
  if (is_muon && ranks > 1) {
    ranges_of_all_ = layout_->ranges_of_muon(parameters(), ranks);
    ranges_ = ranges_of_all_[static_cast<size_t>(group.rank())];
  }
  for (size_t i = 0; i < whole.size(); ++i) {  // nothing changes these, on any rank
    if (!parameters().all()[i]->is_fixed()) continue;
    ranges_[i] = whole[i];
    outside_.push_back(i);
  }
  for (size_t b = 0; b < layout_->buckets().size(); ++b) {
    const GradientLayout::Bucket& bucket = layout_->buckets()[b];
    if (bucket.is_of_buffers) continue;
    for (int64_t k = bucket.first; k < bucket.last; ++k) {
      gradients_.push_back(&parameters().all()[layout_->order()[static_cast<size_t>(k)]]->grad());
      bucket_of_.push_back(b);
    }
  }
}

std::vector<ElementRange> BatchGradient::ranges() const { return ranges_; }

std::span<const std::vector<int64_t>> BatchGradient::own(const Parts& parts) const {
  const auto count = static_cast<int64_t>(parts.size());
  const int64_t each = this->parts() / group_->ranks();
  const int64_t begin = std::min(group_->rank() * each, count);
  return std::span(parts).subspan(static_cast<size_t>(begin),
                                  static_cast<size_t>(std::min(each, count - begin)));
}

LossSums BatchGradient::compute(int64_t epoch, const Parts& parts, const nn::Run& run) {
  const Clock::time_point begin = Clock::now();
  const Timed timed(times_.compute);
  filled_shards_ = (std::ssize(parts) + accumulate_ - 1) / accumulate_;
  const auto mine = own(parts);
  if (!tree_) {
    LossSums sums;
    for (const auto& samples : mine) sums += task_->accumulate(epoch, samples, run);
    return sums;
  }
  std::vector<LossSums> of_shards(static_cast<size_t>(shards_ / group_->ranks()));
  tree_->begin();
  size_t next = 0;
  for (size_t shard = 0; shard < of_shards.size(); ++shard) {
    const bool is_last = shard + 1 == of_shards.size();
    for (int64_t i = 0; i < accumulate_ && next < mine.size(); ++i, ++next) {
      const bool ends = is_last && (i + 1 == accumulate_ || next + 1 == mine.size());
      of_shards[shard] += ends && !is_alone() ? accumulate_last(epoch, mine[next], run)
                                              : task_->accumulate(epoch, mine[next], run);
      note_work();
    }
    if (!is_last) tree_->take();
    if (!is_last && has_buffers_) task_->parameters_changed();
  }
  while (next_ < layout_->buckets().size()) send_next();
  next_ = 0;
  if (has_buffers_) task_->parameters_changed();
  came_ = tree_->came();
  last_compute_ = seconds_since(begin);
  return tree_sum(std::move(of_shards));
}

// The end of this rank's work on a batch: what is final leaves at once.
LossSums BatchGradient::accumulate_last(int64_t epoch, const std::vector<int64_t>& samples,
                                        const nn::Run& run) {
  if (!task_->trains_by_tape()) return task_->accumulate(epoch, samples, run);
  open_.assign(layout_->buckets().size(), 0);
  for (const size_t b : bucket_of_) ++open_[b];
  const FinalGradients asking(gradients_, [this](size_t gradient) {
    --open_[bucket_of_[gradient]];
    while (next_ < open_.size() && open_[next_] == 0 && !layout_->buckets()[next_].is_of_buffers) {
      send_next();
    }
  });
  return task_->accumulate(epoch, samples, run);
}

void BatchGradient::send_next() {
  const GradientLayout::Bucket& b = layout_->buckets()[next_++];
  tree_->take(b);
  if (is_alone()) return;
  dist::StartedValues values = started(b);
  if (!b.is_of_buffers) values.sent_as = group_->wire();
  last_sum_call_ = group_->start_reduce_scatter(std::move(values));
}

dist::StartedValues BatchGradient::started(const GradientLayout::Bucket& bucket) {
  return {values_of(bucket), tree_->sum().storage()};
}

BatchReport BatchGradient::agree(BatchReport own) {
  if (is_alone()) return own;
  const Blocked blocked(*group_, times_);
  group_->finish(last_sum_call_);
  own.compute = last_compute_;
  dist::Packer mine;
  mine(own, came_);
  BatchReport all = own;
  std::vector<LossSums> sums;
  for (const std::string& told : group_->gather(mine.take())) {
    BatchReport report;
    std::vector<uint8_t> came;
    dist::Unpacker unpack(told);
    unpack(report, came);
    check(came.size() == came_.size(), ErrorKind::internal, "a rank told of {} parameters, not {}",
          came.size(), came_.size());
    if (sums.empty()) all.seconds = report.seconds;
    if (all.signal == 0) all.signal = report.signal;
    note_pace(sums.size(), report.compute);
    sums.push_back(report.sums);
    for (size_t i = 0; i < came_.size(); ++i) came_[i] |= came[i];
  }
  all.sums = tree_sum(std::move(sums));
  return all;
}

void BatchGradient::note_pace(size_t rank, double seconds) {
  constexpr double kShare = 0.1;  // of the last update
  if (paces_.size() <= rank) paces_.resize(rank + 1, seconds);
  paces_[rank] += kShare * (seconds - paces_[rank]);
}

std::optional<SlowestRank> BatchGradient::slowest() const {
  if (is_alone() || paces_.empty()) return std::nullopt;
  const auto most = std::ranges::max_element(paces_);
  const double mean =
      std::accumulate(paces_.begin(), paces_.end(), 0.0) / static_cast<double>(paces_.size());
  return SlowestRank{most - paces_.begin(), mean > 0 ? *most / mean - 1 : 0};
}

std::span<float> BatchGradient::values_of(const GradientLayout::Bucket& bucket) {
  return {tree_->sum().data<float>() + bucket.begin, static_cast<size_t>(bucket.size)};
}

// A piece of each bucket for each shard, whoever holds it.
double BatchGradient::norm(const Optimizer& optimizer) {
  if (!tree_) return optimizer.gradient_norm();
  const int64_t ranks = group_->ranks();
  std::vector<double> mine;
  for (const GradientLayout::Bucket& b : layout_->buckets()) {
    if (b.is_of_buffers) continue;
    const ProfilePhase phase("gradient norm");
    const Timed timed(times_.compute);
    const std::span<float> values = values_of(b);
    const int64_t piece = b.size / shards_;
    const dist::Slice slice = group_->slice(b.size);
    for (int64_t at = slice.begin; at < slice.end; at += piece) {
      mine.push_back(kernels().sum_squares(values.data() + at, piece));
    }
  }
  std::vector<std::vector<double>> told = {mine};
  if (!is_alone()) {
    const Blocked blocked(*group_, times_);
    told.clear();
    for (const std::string& bytes : group_->gather(dist::packed(mine))) {
      told.push_back(dist::unpacked<std::vector<double>>(bytes));
    }
  }
  double sum = 0;
  std::vector<size_t> next(told.size());
  for (const GradientLayout::Bucket& b : layout_->buckets()) {
    if (b.is_of_buffers) continue;
    const int64_t piece = b.size / shards_;
    std::vector<double> pieces(static_cast<size_t>(shards_));
    for (int64_t rank = 0; rank < ranks; ++rank) {
      const dist::Slice slice = dist::slice_of(b.size, rank, ranks);
      const auto r = static_cast<size_t>(rank);
      for (int64_t at = slice.begin; at < slice.end; at += piece) {
        pieces[static_cast<size_t>(at / piece)] = told[r].at(next[r]++);
      }
    }
    for (const double squares : pieces) sum += squares;
  }
  return std::sqrt(sum);
}

template <class F>
void BatchGradient::for_ranges(const std::vector<ElementRange>& ranges,
                               const GradientLayout::Bucket& bucket, bool are_inside,
                               const F& f) const {
  for (int64_t k = bucket.first; k < bucket.last; ++k) {
    const size_t i = layout_->order()[static_cast<size_t>(k)];
    const int64_t at = layout_->begin(i) - bucket.begin, n = parameters().all()[i]->elements();
    const auto [begin, size] = ranges[i];
    const auto call = [&](int64_t from, int64_t to) {
      if (from < to) f(i, from, at + from, to - from);
    };
    if (are_inside) {
      call(begin, begin + size);
    } else {
      call(0, begin);
      call(begin + size, n);
    }
  }
}

// Sums are known in slices, whatever a rank updates.
std::string BatchGradient::first_bad(const Optimizer& optimizer) {
  if (!tree_) return optimizer.first_bad_gradient();
  std::string bad;
  const std::vector<ElementRange> slices = layout_->ranges(group_->rank(), group_->ranks());
  for (const GradientLayout::Bucket& b : layout_->buckets()) {
    const std::span<float> values = values_of(b);
    for_ranges(slices, b, true, [&](size_t i, int64_t, int64_t at, int64_t n) {
      const Rows rows{values.data() + at, 1, n, n, DType::f32};
      if (bad.empty() && !kernels().all_finite(rows)) bad = parameters().all()[i]->name();
    });
  }
  return bad;
}

// The mean of what the shards that had samples made of them.
void BatchGradient::change_buffers() {
  for (const GradientLayout::Bucket& b : layout_->buckets()) {
    if (!b.is_of_buffers) continue;
    const std::span<float> changes = values_of(b);
    for_ranges(b, true, [&](size_t i, int64_t from, int64_t at, int64_t n) {
      nn::Parameter& p = *parameters().all()[i];
      float* const values = p.value().data<float>() + from;
      for (int64_t e = 0; e < n; ++e) {
        const float mean =
            changes[static_cast<size_t>(at + e)] / static_cast<float>(filled_shards_);
        values[e] += p.kind() == nn::ParameterKind::counter ? std::round(mean) : mean;
      }
      p.changed(true);
    });
  }
}

// What each rank has of a bucket becomes known to all, where that is no slice of it.
void BatchGradient::gather_ranges(const GradientLayout::Bucket& bucket, std::span<float> values) {
  std::vector<float> mine;
  for_ranges(bucket, true, [&](size_t, int64_t, int64_t at, int64_t n) {
    mine.insert(mine.end(), values.begin() + at, values.begin() + at + n);
  });
  const auto told = group_->gather(dist::packed(mine));
  for (size_t rank = 0; rank < told.size(); ++rank) {
    const auto theirs = dist::unpacked<std::vector<float>>(told[rank]);
    auto next = theirs.begin();
    for_ranges(ranges_of_all_[rank], bucket, true, [&](size_t, int64_t, int64_t at, int64_t n) {
      check(n <= theirs.end() - next, ErrorKind::internal, "rank {} told {} values", rank,
            theirs.size());
      std::copy_n(next, n, values.begin() + at);
      next += n;
    });
  }
}

void BatchGradient::step(Optimizer& optimizer, double learning_rate, double factor) {
  if (!ranges_of_all_.empty()) {
    const Blocked blocked(*group_, times_);
    for (const GradientLayout::Bucket& b : layout_->buckets()) {
      if (!b.is_of_buffers) group_->all_gather(values_of(b));
    }
  }
  std::vector<int64_t> calls;
  {
    const Timed timed(times_.compute);
    if (!tree_) return optimizer.step(learning_rate, factor);
    if (has_buffers_) change_buffers();
    float* const sum = tree_->sum().data<float>();
    std::vector<float*> gradients;
    for (size_t i = 0; i < ranges_.size(); ++i) {
      gradients.push_back(came_[i] != 0 ? sum + layout_->begin(i) + ranges_[i].begin : nullptr);
    }
    optimizer.begin_step();
    for (const GradientLayout::Bucket& b : layout_->buckets()) {
      const std::span order(layout_->order());
      optimizer.step(
          learning_rate, factor, gradients,
          order.subspan(static_cast<size_t>(b.first), static_cast<size_t>(b.last - b.first)));
      if (!is_alone()) calls.push_back(send_weights(b));
    }
    optimizer.step(learning_rate, factor, gradients, outside_);
  }
  const ProfilePhase phase("weights of other ranks");
  for (size_t b = 0; b < calls.size(); ++b) {
    {
      const Blocked blocked(*group_, times_);
      const GradientLayout::Bucket& bucket = layout_->buckets()[b];
      if (ranges_of_all_.empty()) {
        group_->finish(calls[b]);
      } else {
        gather_ranges(bucket, values_of(bucket));
      }
    }
    const Timed timed(times_.compute);
    take_weights(layout_->buckets()[b]);
  }
}

// Where the gradients were, which are used up.
int64_t BatchGradient::send_weights(const GradientLayout::Bucket& bucket) {
  const std::span<float> values = values_of(bucket);
  for_ranges(bucket, true, [&](size_t i, int64_t from, int64_t at, int64_t n) {
    std::copy_n(parameters().all()[i]->value().data<float>() + from, n, values.data() + at);
  });
  return ranges_of_all_.empty() ? group_->start_all_gather(started(bucket)) : 0;
}

void BatchGradient::take_weights(const GradientLayout::Bucket& bucket) {
  const std::span<float> values = values_of(bucket);
  for_ranges(bucket, false, [&](size_t i, int64_t from, int64_t at, int64_t n) {
    std::copy_n(values.data() + at, n, parameters().all()[i]->value().data<float>() + from);
  });
  for (int64_t k = bucket.first; k < bucket.last; ++k) {
    const size_t i = layout_->order()[static_cast<size_t>(k)];
    nn::Parameter& p = *parameters().all()[i];
    if (ranges_[i].size < p.elements()) p.changed(true);
  }
}

// `ranges`: what this rank has of each parameter, null: the parameter has no such moment.
// `are_wanted`: by this rank; else all are undefined.
std::vector<Tensor> BatchGradient::gathered(const std::vector<const Tensor*>& ranges,
                                            bool are_wanted) {
  std::vector<Tensor> whole(ranges.size());
  Tensor flat = Tensor::zeros({layout_->size()}, DType::f32);
  for (const GradientLayout::Bucket& b : layout_->buckets()) {
    const std::span values(flat.data<float>() + b.begin, static_cast<size_t>(b.size));
    for_ranges(b, true, [&](size_t i, int64_t, int64_t at, int64_t n) {
      if (ranges[i] != nullptr) std::copy_n(ranges[i]->data<float>(), n, values.data() + at);
    });
    if (ranges_of_all_.empty()) {
      group_->all_gather(values);
    } else {
      gather_ranges(b, values);
    }
    if (!are_wanted) continue;
    for (int64_t k = b.first; k < b.last; ++k) {
      const size_t i = layout_->order()[static_cast<size_t>(k)];
      if (ranges[i] == nullptr) continue;
      const nn::Parameter& p = *parameters().all()[i];
      whole[i] = Tensor::empty(p.shape(), DType::f32);
      std::copy_n(flat.data<float>() + layout_->begin(i), p.elements(), whole[i].data<float>());
    }
  }
  return whole;
}

std::vector<Moments> BatchGradient::whole_moments(const Optimizer& optimizer) {
  const std::vector<Moments>& mine = optimizer.moments();
  if (is_alone()) return mine;
  std::vector<Moments> all(mine.size());
  for (Tensor Moments::*kind : {&Moments::m, &Moments::v}) {
    std::vector<const Tensor*> ranges;
    for (const Moments& m : mine) ranges.push_back((m.*kind).defined() ? &(m.*kind) : nullptr);
    if (std::ranges::all_of(ranges, [](const Tensor* t) { return t == nullptr; })) continue;
    const std::vector<Tensor> whole = gathered(ranges, group_->rank() == 0);
    for (size_t i = 0; i < all.size(); ++i) all[i].*kind = whole[i];
  }
  std::vector<Tensor> averages = whole_averages(optimizer);
  for (size_t i = 0; i < averages.size(); ++i) all[i].ema = averages[i];
  return all;
}

std::vector<Tensor> BatchGradient::whole_averages(const Optimizer& optimizer) {
  const std::vector<Moments>& mine = optimizer.moments();
  std::vector<Tensor> whole;
  if (std::ranges::none_of(mine, [](const Moments& m) { return m.ema.defined(); })) return whole;
  if (is_alone()) {
    for (const Moments& m : mine) whole.push_back(m.ema.clone());
    return whole;
  }
  std::vector<const Tensor*> ranges;
  for (const Moments& m : mine) ranges.push_back(&m.ema);
  whole = gathered(ranges, true);
  for (size_t i = 0; i < whole.size(); ++i) {  // those that every rank has whole
    if (parameters().all()[i]->is_fixed()) whole[i] = mine[i].ema.clone();
  }
  return whole;
}

}  // namespace heddle::train
