// The gradient of a batch: of its shards, which ranks share among them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "heddle/dist/group.h"
#include "heddle/train/ranks/gradient_tree.h"
#include "heddle/train/scores.h"
#include "heddle/train/tasks/task.h"

namespace heddle::train {

/// Samples of a batch, in parts that are computed one after the other.
using Parts = std::vector<std::vector<int64_t>>;

/// Seconds of a rank, of the thread that trains. What is on the wire while it computes counts as
/// computing.
struct RankTimes {
  double compute = 0;  ///< on its shards, and on its share of the weights
  double waiting = 0;  ///< then for another rank that had not come to an exchange
  double wire = 0;     ///< and for sums and weights on their way
};

/// The rank that computes longest.
struct SlowestRank {
  int64_t rank = 0;
  double over_mean = 0;  ///< share of the mean of all ranks that it takes longer
};

/// What all ranks know of a batch once its shards are computed.
struct BatchReport {
  LossSums sums = {};  ///< of the whole batch
  int64_t signal = 0;  ///< the first one that a rank has received; 0: none
  double seconds = 0;  ///< by the clock of rank 0
  double compute = 0;  ///< seconds that a rank took for its shards; agree() fills it in
};

/// Computes the gradient of a batch, and updates weights by it. A batch comes in `shards` shards of
/// `accumulate` parts each (where parts are fewer, the last shards are empty), whose sums are added
/// along a fixed tree: the bits depend on shards, but not on ranks. Each rank computes equally many
/// shards that follow each other, holds the sum of a share of the gradients, updates these weights,
/// and tells them to the others. One shard is the sum of its parts in the parameters themselves.
/// Sums between ranks are under way while the rest of a rank's last shard is computed: each bucket
/// (see GradientLayout) leaves when its gradients are final, in the order of buckets. Weights are,
/// while the next bucket's are computed.
///
/// compute(), agree(), norm(), then step(): in this order, on all ranks.
class BatchGradient {
 public:
  /// shards: a power of two, and of ranks at least.
  /// is_muon: an update takes whole matrices. A rank then holds some of them, and parts of all
  /// else; gradients become known whole before weights are updated.
  BatchGradient(Task& task, int64_t shards, int64_t accumulate, dist::Group& group,
                int64_t bucket_values = GradientLayout::kBucketValues, bool is_muon = false);

  /// What this rank updates of each parameter.
  std::vector<ElementRange> ranges() const;
  /// In how many parts a batch comes.
  int64_t parts() const { return shards_ * accumulate_; }
  /// Those of them that this rank computes.
  std::span<const std::vector<int64_t>> own(const Parts& parts) const;

  /// The loss of this rank's shards, and their gradients.
  LossSums compute(int64_t epoch, const Parts& parts, const nn::Run& run);
  /// Ends when all ranks have computed, and the sums are there. `own`: what this one knows.
  BatchReport agree(BatchReport own);
  /// sqrt of the sum of squares of all gradients, summed in fixed order in f64; the same on all
  /// ranks.
  double norm(const Optimizer& optimizer);
  /// The first parameter of which this rank has a gradient that is not finite, or "".
  std::string first_bad(const Optimizer& optimizer);
  /// Optimizer::step() with this gradient; afterwards all weights are known.
  void step(Optimizer& optimizer, double learning_rate, double factor);

  /// Whole moments, on rank 0; on other ranks m and v are undefined. All ranks call it.
  std::vector<Moments> whole_moments(const Optimizer& optimizer);
  /// The moving averages alone, on all ranks, to be written to.
  std::vector<Tensor> whole_averages(const Optimizer& optimizer);

  /// Bytes of the sums of shards.
  int64_t bytes() const { return tree_ ? tree_->bytes() : 0; }
  const RankTimes& times() const { return times_; }
  /// Over about the last ten updates; nothing where there is one rank.
  std::optional<SlowestRank> slowest() const;

 private:
  bool is_alone() const { return group_->is_alone(); }
  nn::Parameters& parameters() const { return task_->parameters(); }
  std::span<float> values_of(const GradientLayout::Bucket& bucket);
  /// Calls f(parameter, element, values of a bucket from there on, elements of them) for what lies
  /// in these ranges of a bucket's parameters, or outside of them.
  template <class F>
  void for_ranges(const std::vector<ElementRange>& ranges, const GradientLayout::Bucket& bucket,
                  bool are_inside, const F& f) const;
  template <class F>
  void for_ranges(const GradientLayout::Bucket& bucket, bool are_own, const F& f) const {
    for_ranges(ranges_, bucket, are_own, f);
  }
  void gather_ranges(const GradientLayout::Bucket& bucket, std::span<float> values);
  LossSums accumulate_last(int64_t epoch, const std::vector<int64_t>& samples, const nn::Run& run);
  void send_next();
  void note_pace(size_t rank, double seconds);
  void change_buffers();
  int64_t send_weights(const GradientLayout::Bucket& bucket);
  void take_weights(const GradientLayout::Bucket& bucket);
  dist::StartedValues started(const GradientLayout::Bucket& bucket);
  std::vector<Tensor> gathered(const std::vector<const Tensor*>& ranges, bool are_wanted);

  Task* task_;
  int64_t shards_, accumulate_;
  int64_t filled_shards_ = 0;  // of the whole batch, not of this rank: those that have samples
  dist::Group* group_;
  std::optional<GradientLayout> layout_;  // of several shards
  std::optional<GradientTree> tree_;
  std::vector<ElementRange> ranges_;
  // Of all ranks, where they are not slices of buckets; else empty.
  std::vector<std::vector<ElementRange>> ranges_of_all_;
  std::vector<uint8_t> came_;
  bool has_buffers_ = false;
  std::vector<const Tensor*> gradients_;  // where parameters have them, but for buffers,
  std::vector<size_t> bucket_of_;         // and which bucket's they are
  std::vector<int64_t> open_;             // of each bucket: gradients that are not final
  size_t next_ = 0;                       // bucket that is to be sent
  int64_t last_sum_call_ = 0;             // the last call that was started for them
  std::vector<size_t> outside_;           // parameters of no bucket
  std::vector<double> paces_;             // seconds that ranks compute for an update, smoothed
  double last_compute_ = 0;
  RankTimes times_;
};

}  // namespace heddle::train
