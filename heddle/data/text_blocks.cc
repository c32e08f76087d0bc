// Where the sequences of an epoch begin.
#include "heddle/data/text_blocks.h"

#include <algorithm>
#include <numeric>

#include "heddle/base/error.h"
#include "heddle/base/rng.h"

namespace heddle {
namespace {

const uint64_t kSite = hash_name("data/text_blocks");

}  // namespace

BlockOrder block_order(const std::string& name) {
  if (name == "random") return BlockOrder::random;
  if (name == "consecutive") return BlockOrder::consecutive;
  check(name == "streams", ErrorKind::usage,
        "sampling is '{}'; choose random, consecutive or streams", name);
  return BlockOrder::streams;
}

BlockPlan::BlockPlan(int64_t tokens, const BlockOptions& options)
    : tokens_(tokens), options_(options) {
  check(tokens > options.block, ErrorKind::data,
        "the training text has {} tokens, but a sequence takes {} (block_size {} and the one that "
        "is predicted last); give more text or lower `block_size`",
        tokens, options.block + 1, options.block);
  samples_ = std::max<int64_t>(1, (tokens - 1) / options.block);
  batches_ = (samples_ + options.batch - 1) / options.batch;
  if (options.order != BlockOrder::streams) return;
  batches_ = samples_ / options.batch;
  check(batches_ > 0, ErrorKind::data,
        "the training text has {} tokens, but {} streams of it (batch_size) take {} (block_size {} "
        "each and one more); give more text, or lower `batch_size` or `block_size`",
        tokens, options.batch, options.batch * options.block + 1, options.block);
  samples_ = batches_ * options.batch;
}

std::vector<int64_t> BlockPlan::batch(int64_t i) const {
  const int64_t first = i * options_.batch;
  const bool is_open = options_.order == BlockOrder::random;
  const int64_t end = is_open ? first + options_.batch : std::min(first + options_.batch, samples_);
  std::vector<int64_t> samples(static_cast<size_t>(end - first));
  std::iota(samples.begin(), samples.end(), first);
  return samples;
}

int64_t BlockPlan::begin(int64_t epoch, int64_t sample) {
  if (options_.order == BlockOrder::random) {
    RngStream random(make_key(options_.seed, static_cast<uint64_t>(epoch), kSite,
                              static_cast<uint64_t>(sample)));
    return static_cast<int64_t>(random.below(static_cast<uint64_t>(tokens_ - options_.block)));
  }
  if (placed_epoch_ != epoch) place(epoch);
  return begins_[static_cast<size_t>(sample)];
}

void BlockPlan::place(int64_t epoch) {
  RngStream random(make_key(options_.seed, static_cast<uint64_t>(epoch), kSite));
  const int64_t spare = tokens_ - 1 - samples_ * options_.block;
  const auto shift = static_cast<int64_t>(random.below(static_cast<uint64_t>(spare) + 1));
  begins_.resize(static_cast<size_t>(samples_));
  const bool is_stream = options_.order == BlockOrder::streams;
  for (int64_t i = 0; i < samples_; ++i) {
    const int64_t at = is_stream ? i % options_.batch * batches_ + i / options_.batch : i;
    begins_[static_cast<size_t>(i)] = shift + at * options_.block;
  }
  if (!is_stream) shuffle_values(begins_, random);
  placed_epoch_ = epoch;
}

std::vector<int64_t> ShuffledPlan::batch(int64_t epoch, int64_t i) {
  if (epoch_ != epoch) {
    RngStream random(make_key(seed_, static_cast<uint64_t>(epoch), kSite));
    order_.resize(static_cast<size_t>(samples_));
    std::iota(order_.begin(), order_.end(), int64_t{0});
    shuffle_values(order_, random);
    epoch_ = epoch;
  }
  const int64_t end = std::min((i + 1) * batch_, samples_);
  return {order_.begin() + i * batch_, order_.begin() + end};
}

}  // namespace heddle
