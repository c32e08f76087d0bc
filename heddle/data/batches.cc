// Batches by a budget of tokens.
#include "heddle/data/batches.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "heddle/base/error.h"
#include "heddle/base/parallel.h"
#include "heddle/base/profile.h"
#include "heddle/base/rng.h"

namespace heddle {
namespace {

int64_t rows_of(std::span<const int32_t> lengths, int64_t i) { return int64_t{lengths[i]} + 1; }

/// Stable counting sort of pairs by one of their lengths.
void sort_by_length(std::span<int64_t> pairs, std::span<const int32_t> lengths,
                    std::vector<int64_t>& scratch) {
  int32_t longest = 0;
  for (const int64_t p : pairs) longest = std::max(longest, lengths[p]);
  std::vector<size_t> place(static_cast<size_t>(longest) + 2, 0);
  for (const int64_t p : pairs) ++place[lengths[p] + 1];
  std::partial_sum(place.begin(), place.end(), place.begin());
  scratch.resize(pairs.size());
  for (const int64_t p : pairs) scratch[place[lengths[p]]++] = p;
  std::copy(scratch.begin(), scratch.end(), pairs.begin());
}

struct PairRows {
  int32_t source, target;
};

/// Ends of the batches that a walk through the pairs makes by filling each up to the budget.
void cut(std::span<const PairRows> pairs, int64_t budget, std::vector<size_t>& ends) {
  ends.clear();
  int64_t source = 0, target = 0;
  for (size_t i = 0; i < pairs.size(); ++i) {
    const auto [s, t] = pairs[i];
    if (source + s > budget || target + t > budget) {
      ends.push_back(i);
      source = target = 0;
    }
    source += s, target += t;
  }
  if (!pairs.empty()) ends.push_back(pairs.size());
}

/// As few batches as the budget allows, and then the smallest budget that needs no more of them:
/// otherwise the last batch, of the longest sentences, may be a single one, and weigh as much in an
/// update as a full one.
void cut_evenly(std::span<const int64_t> pairs, const PairLengths& lengths, int64_t budget,
                std::vector<size_t>& ends) {
  std::vector<PairRows> rows;  // gathered once: the search walks through them a dozen times
  rows.reserve(pairs.size());
  int64_t low = 1;  // the largest pair: below it no cut is possible
  for (const int64_t p : pairs) {
    const int64_t source = rows_of(lengths.source, p), target = rows_of(lengths.target, p);
    rows.push_back({static_cast<int32_t>(source), static_cast<int32_t>(target)});
    low = std::max({low, source, target});
  }
  int64_t high = budget;
  cut(rows, high, ends);
  const size_t count = ends.size();
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    cut(rows, middle, ends);
    if (ends.size() <= count) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  cut(rows, high, ends);
}

void check_arguments(const PairLengths& lengths, const BatchOptions& options) {
  check(lengths.source.size() == lengths.target.size(), ErrorKind::internal,
        "batches: {} source lengths but {} target lengths", lengths.source.size(),
        lengths.target.size());
  check(options.batch_tokens >= 1, ErrorKind::usage,
        "batches: batch_tokens is {}; at least 1 is needed", options.batch_tokens);
  check(options.block_size >= 1, ErrorKind::usage, "batches: block_size is {}; it must be positive",
        options.block_size);
  check(options.sort_pool >= 0, ErrorKind::usage,
        "batches: sort_pool is {}; it may not be negative (0: no limit)", options.sort_pool);
  for (size_t i = 0; i < lengths.source.size(); ++i) {
    const int64_t source = rows_of(lengths.source, i), target = rows_of(lengths.target, i);
    check(std::max(source, target) <= options.batch_tokens, ErrorKind::usage,
          "batches: pair {} has {} source and {} target tokens with the end token, but a batch "
          "holds at most {} (batch_tokens); raise batch_tokens, or lower the longest sentence "
          "that is allowed",
          i, source, target, options.batch_tokens);
  }
}

/// Batches of one block, whose pairs are in the order in which equal lengths are to stay.
void add_block(std::span<int64_t> pairs, const PairLengths& lengths, const BatchOptions& options,
               RngStream& rng, BatchPlan& plan) {
  const size_t pool =
      options.sort_pool == 0 ? pairs.size() : static_cast<size_t>(options.sort_pool);
  std::vector<int64_t> scratch;
  std::vector<std::pair<size_t, size_t>> batches;  // begin, end
  std::vector<size_t> ends;
  for (size_t begin = 0; begin < pairs.size(); begin += pool) {
    const auto part = pairs.subspan(begin, std::min(pool, pairs.size() - begin));
    sort_by_length(part, lengths.source, scratch);
    sort_by_length(part, lengths.target, scratch);  // stable: source order stays within a target's
    cut_evenly(part, lengths, options.batch_tokens, ends);
    size_t start = begin;
    for (const size_t end : ends) {
      batches.emplace_back(start, begin + end);
      start = begin + end;
    }
  }
  if (options.shuffle) shuffle_values(batches, rng);
  for (const auto& [begin, end] : batches) plan.add(pairs.subspan(begin, end - begin));
}

void append_row_names(uint32_t name, int64_t rows, std::vector<uint32_t>& sample,
                      std::vector<uint32_t>& position) {
  for (int64_t i = 0; i < rows; ++i) {
    sample.push_back(name);
    position.push_back(static_cast<uint32_t>(i));
  }
}

const uint64_t kSite = hash_name("data/text_blocks");

}  // namespace

void BatchPlan::add(std::span<const int64_t> batch) {
  pairs_.insert(pairs_.end(), batch.begin(), batch.end());
  offsets_.push_back(static_cast<int64_t>(pairs_.size()));
}

BatchPlan plan_epoch(const PairLengths& lengths, const BatchOptions& options, int64_t epoch) {
  check_arguments(lengths, options);
  const auto count = static_cast<int64_t>(lengths.source.size());
  const int64_t block_size = std::min(options.block_size, std::max<int64_t>(count, 1));
  RngStream rng(make_key(options.seed, static_cast<uint64_t>(epoch), hash_name("data/batches")));
  // Where the first block begins: neighbours at a border are apart in one epoch only.
  const bool has_blocks = block_size < count;
  const int64_t shift = options.shuffle && has_blocks
                            ? static_cast<int64_t>(rng.below(static_cast<uint64_t>(count)))
                            : 0;
  std::vector<int64_t> starts;
  for (int64_t start = 0; start < count; start += block_size) starts.push_back(start);
  if (options.shuffle) shuffle_values(starts, rng);
  BatchPlan plan;
  std::vector<int64_t> pairs;
  for (const int64_t start : starts) {
    pairs.resize(static_cast<size_t>(std::min(block_size, count - start)));
    for (size_t i = 0; i < pairs.size(); ++i) {
      pairs[i] = (start + shift + static_cast<int64_t>(i)) % count;
    }
    if (options.shuffle) shuffle_values(pairs, rng);
    add_block(pairs, lengths, options, rng, plan);
  }
  return plan;
}

std::vector<std::vector<int64_t>> split_batch(const PairLengths& lengths,
                                              std::span<const int64_t> batch, int64_t shards) {
  check(shards >= 1, ErrorKind::usage, "batches: {} shards; at least 1 is needed", shards);
  const size_t count = std::min(batch.size(), static_cast<size_t>(shards));
  const auto weight = [&](size_t i) {
    return rows_of(lengths.source, batch[i]) + rows_of(lengths.target, batch[i]);
  };
  std::vector<size_t> heaviest_first(batch.size());
  std::iota(heaviest_first.begin(), heaviest_first.end(), size_t{0});
  std::ranges::stable_sort(heaviest_first, std::greater(), weight);
  std::vector<int64_t> load(count, 0);
  std::vector<size_t> shard_of(batch.size());
  for (const size_t i : heaviest_first) {
    const auto lightest = std::min_element(load.begin(), load.end());
    *lightest += weight(i);
    shard_of[i] = static_cast<size_t>(lightest - load.begin());
  }
  std::vector<std::vector<int64_t>> out(count);
  for (size_t i = 0; i < batch.size(); ++i) out[shard_of[i]].push_back(batch[i]);
  return out;
}

PairPacker::PairPacker(PairMarks marks) : marks_(std::move(marks)) {
  check(!marks_.target_start.empty() && marks_.target_end >= 0, ErrorKind::internal,
        "pairs need a first id and an end of targets");
}

void PairPacker::add(int64_t sample, uint32_t name, std::span<const int32_t> source,
                     std::span<const int32_t> target) {
  const auto append = [](std::vector<int32_t>& ids, std::span<const int32_t> some) {
    ids.insert(ids.end(), some.begin(), some.end());
  };
  const size_t source_begin = batch_.source.size(), target_begin = batch_.target_out.size();
  batch_.samples.push_back(sample);
  for (const auto some : {std::span<const int32_t>(marks_.source_start), source,
                          std::span<const int32_t>(marks_.source_end)}) {
    append(batch_.source, some);
  }
  append(batch_.target_in, marks_.target_start);
  append(batch_.target_in, target);
  batch_.target_out.insert(batch_.target_out.end(), marks_.target_start.size() - 1, -1);
  append(batch_.target_out, target);
  batch_.target_out.push_back(marks_.target_end);
  batch_.target_tokens += std::ssize(target) + 1;
  source_rows_.push_back(static_cast<int64_t>(batch_.source.size() - source_begin));
  target_rows_.push_back(static_cast<int64_t>(batch_.target_out.size() - target_begin));
  append_row_names(name, source_rows_.back(), batch_.source_sample, batch_.source_position);
  append_row_names(name, target_rows_.back(), batch_.target_sample, batch_.target_position);
}

TranslationBatch PairPacker::take() {
  batch_.source_segments = Segments::from_lengths(source_rows_);
  batch_.target_segments = Segments::from_lengths(target_rows_);
  source_rows_.clear(), target_rows_.clear();
  return std::exchange(batch_, {});
}

TranslationBatch make_translation_batch(const TokenizedCorpus& corpus,
                                        std::span<const int64_t> pairs, const PairMarks& marks,
                                        const TranslationBatchOptions& options) {
  const ProfilePhase phase("batch");
  for (const int64_t pair : pairs) {
    check(pair >= 0 && pair < corpus.size(), ErrorKind::internal,
          "translation batch: pair {} of a corpus of {}", pair, corpus.size());
  }
  // Drawn on all threads; empty: as the corpus has them.
  const auto drawn = [&](const Resegment& resegment, const auto& view) {
    std::vector<std::vector<int32_t>> ids(resegment ? pairs.size() : 0);
    parallel_for(std::ssize(ids), [&](int64_t i) {
      const int64_t pair = pairs[static_cast<size_t>(i)];
      ids[static_cast<size_t>(i)] = resegment(view(pair).ids(), pair);
    });
    return ids;
  };
  const auto source_of = [&](int64_t pair) { return corpus.source(pair); };
  const auto target_of = [&](int64_t pair) { return corpus.target(pair); };
  const auto sources = drawn(options.source, source_of), targets = drawn(options.target, target_of);
  const auto lay = [](const auto& all, size_t i, const TokenView& view,
                      std::vector<int32_t>& unpacked) -> const std::vector<int32_t>& {
    if (!all.empty()) return all[i];
    unpacked.clear();
    view.append_to(unpacked);
    return unpacked;
  };
  PairPacker packer(marks);
  std::vector<int32_t> source, target;
  for (int64_t pass = 0; pass < options.passes; ++pass) {
    for (size_t i = 0; i < pairs.size(); ++i) {
      const uint32_t name = static_cast<uint32_t>(pairs[i]) ^ (static_cast<uint32_t>(pass) << 31);
      packer.add(pairs[i], name, lay(sources, i, source_of(pairs[i]), source),
                 lay(targets, i, target_of(pairs[i]), target));
    }
  }
  return packer.take();
}

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
