// How the gradients of a model lie end to end where shards are summed.
#pragma once

#include <cstdint>
#include <vector>

#include "heddle/nn/parameters.h"
#include "heddle/train/optimizer.h"

namespace heddle::train {

/// f32 values of all parameters in buckets of whole parameters: the last parameter comes first, as
/// gradients do in a backward pass. A function of the parameters and of the number of shards alone,
/// so that it is the same for any number of ranks. Buffers, of which a shard leaves the change that
/// it made, have a bucket of their own behind the others.
class GradientLayout {
 public:
  /// A bucket: values [begin, begin + size), in as many equal pieces of a multiple of 16 values as
  /// there are shards. Behind its last parameter zeros fill it up.
  struct Bucket {
    int64_t begin = 0, size = 0;
    int64_t first = 0, last = 0;  ///< its parameters: order()[first, last)
    bool is_of_buffers = false;
  };

  static constexpr int64_t kBucketValues = int64_t{6} << 20;

  /// least_values: a bucket is full when it has so many; or an eighth of all, so that those of a
  /// small model too leave during its backward pass.
  GradientLayout(const nn::Parameters& parameters, int64_t shards,
                 int64_t least_values = kBucketValues);

  int64_t size() const { return size_; }
  int64_t shards() const { return shards_; }
  const std::vector<Bucket>& buckets() const { return buckets_; }
  /// Numbers of the parameters as they follow each other.
  const std::vector<size_t>& order() const { return order_; }
  /// Where a parameter's values begin.
  int64_t begin(size_t parameter) const { return begins_[parameter]; }

  /// The elements of each parameter that one of `ranks` ranks holds: those in its slice of the
  /// bucket, see dist::slice_of().
  std::vector<ElementRange> ranges(int64_t rank, int64_t ranks) const;
  /// What ranks hold where Muon updates matrices: [rank][parameter]. Each such matrix is one
  /// rank's, the largest first that of the rank with the least moments so far; of others each has a
  /// part.
  std::vector<std::vector<ElementRange>> ranges_of_muon(const nn::Parameters& parameters,
                                                        int64_t ranks) const;

 private:
  void close_bucket(bool is_of_buffers);

  int64_t shards_, size_ = 0;
  std::vector<Bucket> buckets_;
  std::vector<size_t> order_;
  std::vector<int64_t> begins_, elements_;
};

}  // namespace heddle::train
