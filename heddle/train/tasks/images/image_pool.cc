// Sets of images end to end, and batches of both kinds.
#include "heddle/train/tasks/images/image_pool.h"

#include <algorithm>
#include <utility>

#include "heddle/base/rng.h"

namespace heddle::train {

ImagePool::ImagePool(ImageSet labelled, std::vector<ImageSet> unlabelled) {
  sets_.push_back(std::move(labelled));
  std::ranges::move(unlabelled, std::back_inserter(sets_));
  int64_t end = 0;
  for (const ImageSet& set : sets_) ends_.push_back(end += set.size());
}

size_t ImagePool::set_of(int64_t i) const {
  return static_cast<size_t>(std::ranges::upper_bound(ends_, i) - ends_.begin());
}

ImageView ImagePool::image(int64_t i) const {
  const size_t s = set_of(i);
  return sets_[s].image(s == 0 ? i : i - ends_[s - 1]);
}

std::string ImagePool::path(int64_t i) const {
  const size_t s = set_of(i);
  return sets_[s].path(s == 0 ? i : i - ends_[s - 1]);
}

std::vector<std::string> ImagePool::caches() const {
  std::vector<std::string> paths;
  for (const ImageSet& set : sets_) paths.push_back(set.cache_path());
  return paths;
}

std::string ImagePool::key() const {
  std::string key = sets_[0].key();
  for (size_t s = 1; s < sets_.size(); ++s) key += " and " + sets_[s].key();
  return key;
}

TwoKindsPlan::TwoKindsPlan(const ImagePool& pool, int64_t batch, int64_t labelled, uint64_t seed)
    : first_other_(pool.labelled()),
      labelled_(pool.labelled(), labelled, seed),
      others_(pool.size() - pool.labelled(), batch - labelled, seed ^ hash_name("unlabelled")) {}

std::vector<int64_t> TwoKindsPlan::batch(int64_t epoch, int64_t i) {
  const int64_t step = epoch * batches() + i, rounds = labelled_.batches();
  std::vector<int64_t> samples = labelled_.batch(step / rounds, step % rounds);
  for (const int64_t other : others_.batch(epoch, i)) samples.push_back(first_other_ + other);
  return samples;
}

}  // namespace heddle::train
