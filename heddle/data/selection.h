// Some of the images of a cache.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "heddle/base/rng.h"

namespace heddle {

/// Numbers of images in a cache, in any order. Copies share them.
class Selection {
 public:
  /// All of 0 .. count - 1.
  explicit Selection(int64_t count);

  int64_t size() const { return std::ssize(*chosen_); }
  int64_t operator[](int64_t i) const { return (*chosen_)[static_cast<size_t>(i)]; }
  /// Those at some places of this selection. Errors: internal for a place that there is not.
  Selection select(const std::vector<int64_t>& places) const;
  /// 16 hex digits: equal for the same numbers in the same order.
  std::string key() const;

 private:
  std::shared_ptr<const std::vector<int64_t>> chosen_;
};

/// Numbers of images, rising.
struct HeldOutImages {
  std::vector<int64_t> held_out, others;
};
/// The share of so many images, rounded up and chosen by the key, and the others.
/// Errors: data, naming `path`, if either part is empty.
HeldOutImages hold_out_share(int64_t images, double share, RngKey key, const std::string& path);

}  // namespace heddle
