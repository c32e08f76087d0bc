// The images that a run is trained on: those with labels, then those without.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "heddle/data/batches.h"
#include "heddle/data/images.h"

namespace heddle::train {

class ImagePool {
 public:
  ImagePool(ImageSet labelled, std::vector<ImageSet> unlabelled);

  int64_t size() const { return ends_.back(); }
  int64_t labelled() const { return ends_[0]; }
  bool has_label(int64_t i) const { return i < labelled(); }
  const std::vector<std::string>& labels() const { return sets_[0].labels(); }
  /// 0 <= i < size(), here and below.
  ImageView image(int64_t i) const;
  int32_t label(int64_t i) const { return sets_[0].label(i); }  ///< of those that have one
  std::string path(int64_t i) const;
  std::vector<std::string> caches() const;
  /// Differs where any of the sets does.
  std::string key() const;

 private:
  size_t set_of(int64_t i) const;

  std::vector<ImageSet> sets_;
  std::vector<int64_t> ends_;
};

/// Batches with a fixed number of labelled images in each (but for the last ones of a round), the
/// others without labels: an epoch goes once through the others, those with labels go round at a
/// pace of their own. What a batch holds is a pure function of seed, epoch and its number.
class TwoKindsPlan {
 public:
  TwoKindsPlan(const ImagePool& pool, int64_t batch, int64_t labelled, uint64_t seed);

  int64_t batches() const { return others_.batches(); }
  std::vector<int64_t> batch(int64_t epoch, int64_t i);

 private:
  int64_t first_other_;
  ShuffledPlan labelled_, others_;
};

}  // namespace heddle::train
