// Class by class: boxes are matched in each image for each size and IoU, then ranked over images.
#include "heddle/train/metrics/average_precision.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "heddle/base/error.h"
#include "heddle/base/parallel.h"

namespace heddle::train {
namespace {

constexpr size_t kThresholds = 10, kRecalls = 101, kSizes = 4;
constexpr std::array<size_t, 3> kMostFound = {1, 10, 100};

// The bits of numpy.linspace(0.5, 0.95, 10) and (0, 1, 101).
double threshold_at(size_t i) {
  return i == kThresholds - 1 ? 0.95 : static_cast<double>(i) * ((0.95 - 0.5) / 9) + 0.5;
}
double recall_at(size_t i) {
  return i == kRecalls - 1 ? 1.0 : static_cast<double>(i) * (1.0 / 100);
}

struct AreaRange {
  double low, high;
  bool holds(double area) const { return area >= low && area <= high; }
};
// All, small, medium, large; both ends belong to a range.
constexpr std::array<AreaRange, kSizes> kAreas = {
    {{0, 1e10}, {0, 32 * 32}, {32 * 32, 96 * 96}, {96 * 96, 1e10}}};

// An object, or a box that was found, of one class in one image.
struct Truth {
  Box box;
  double area;
  bool is_crowd;
};

struct ImageOfClass {
  std::vector<Truth> truths;
  std::vector<ScoredBox> found;  // the surest first
};

// Of a crowd the share of the found box that lies in it.
double overlap(const Box& found, const Truth& truth) {
  const double shared = intersection(found, truth.box).area(), area = found.area(),
               all = truth.is_crowd ? area : area + truth.box.area() - shared;
  return shared > 0 ? shared / all : 0;
}

// A found box, for one IoU and size.
struct Verdict {
  bool is_hit = false, is_ignored = false;
};

// What becomes of the found boxes of an image for one size, [threshold][found].
struct Matched {
  std::vector<std::vector<Verdict>> verdicts;
  int64_t wanted = 0;  // objects that are to be found
};

// Objects that do not count stand behind the others.
std::vector<size_t> counting_first(const std::vector<bool>& is_ignored) {
  std::vector<size_t> order(is_ignored.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, {}, [&](size_t i) { return is_ignored[i]; });
  return order;
}

class Matcher {
 public:
  Matcher(const ImageOfClass& image, AreaRange range) : image_(image), range_(range) {
    for (const Truth& truth : image.truths) {
      is_ignored_.push_back(truth.is_crowd || !range.holds(truth.area));
    }
    order_ = counting_first(is_ignored_);
  }

  Matched match(const std::vector<std::vector<double>>& overlaps) const {
    Matched result;
    result.wanted = std::ranges::count(is_ignored_, false);
    for (size_t t = 0; t < kThresholds; ++t) {
      result.verdicts.push_back(verdicts(overlaps, std::min(threshold_at(t), 1 - 1e-10)));
    }
    return result;
  }

 private:
  std::vector<Verdict> verdicts(const std::vector<std::vector<double>>& overlaps,
                                double threshold) const {
    std::vector<Verdict> all(image_.found.size());
    std::vector<bool> is_taken(image_.truths.size());
    for (size_t d = 0; d < all.size(); ++d) {
      const size_t chosen = best(overlaps[d], is_taken, threshold);
      if (chosen < is_taken.size()) {
        is_taken[chosen] = true;
        all[d] = {.is_hit = true, .is_ignored = is_ignored_[chosen]};
      } else {
        all[d].is_ignored = !range_.holds(image_.found[d].box.area());
      }
    }
    return all;
  }

  // The object of the largest overlap, of equal ones the last; one that does not count only where
  // no other will do.
  size_t best(const std::vector<double>& overlaps, const std::vector<bool>& is_taken,
              double threshold) const {
    size_t chosen = is_taken.size();
    double least = threshold;
    for (const size_t g : order_) {
      if (is_taken[g] && !image_.truths[g].is_crowd) continue;
      if (chosen < is_taken.size() && !is_ignored_[chosen] && is_ignored_[g]) break;
      if (overlaps[g] < least) continue;
      least = overlaps[g];
      chosen = g;
    }
    return chosen;
  }

  const ImageOfClass& image_;
  AreaRange range_;
  std::vector<bool> is_ignored_;
  std::vector<size_t> order_;
};

// Of one class, for one size, IoU and number of boxes an image.
struct RecallCurve {
  std::vector<double> precisions;  // at each recall
  double recall = 0;
  double mean() const {
    return std::accumulate(precisions.begin(), precisions.end(), 0.0) / kRecalls;
  }
};

// A found box among those of all images.
struct Ranked {
  double score;
  size_t image, place;
};

std::vector<Ranked> ranked(const std::vector<ImageOfClass>& images, size_t most) {
  std::vector<Ranked> all;
  for (size_t i = 0; i < images.size(); ++i) {
    for (size_t d = 0; d < std::min(images[i].found.size(), most); ++d) {
      all.push_back({images[i].found[d].score, i, d});
    }
  }
  std::ranges::stable_sort(all, std::greater<>(), &Ranked::score);
  return all;
}

RecallCurve curve_of(const std::vector<Ranked>& ranks, const std::vector<Matched>& matched,
                     size_t threshold, int64_t wanted) {
  std::vector<double> recalls, precisions;
  double hits = 0, misses = 0;
  for (const Ranked& rank : ranks) {
    const Verdict v = matched[rank.image].verdicts[threshold][rank.place];
    hits += v.is_hit && !v.is_ignored;
    misses += !v.is_hit && !v.is_ignored;
    recalls.push_back(hits / static_cast<double>(wanted));
    precisions.push_back(hits / (misses + hits + std::numeric_limits<double>::epsilon()));
  }
  RecallCurve curve{.precisions = std::vector<double>(kRecalls)};
  if (recalls.empty()) return curve;
  curve.recall = recalls.back();
  for (size_t i = precisions.size() - 1; i > 0; --i) {
    precisions[i - 1] = std::max(precisions[i - 1], precisions[i]);
  }
  for (size_t r = 0; r < kRecalls; ++r) {
    const auto at = std::ranges::lower_bound(recalls, recall_at(r)) - recalls.begin();
    if (at < std::ssize(precisions)) curve.precisions[r] = precisions[static_cast<size_t>(at)];
  }
  return curve;
}

// What one class adds to the means: [size][number of boxes][threshold].
struct ClassCurves {
  std::array<std::array<std::vector<RecallCurve>, 3>, kSizes> curves;
};

ClassCurves curves_of(const std::vector<ImageOfClass>& images) {
  std::vector<std::vector<std::vector<double>>> overlaps;
  for (const ImageOfClass& image : images) {
    overlaps.emplace_back();
    for (const ScoredBox& found : image.found) {
      overlaps.back().emplace_back();
      for (const Truth& truth : image.truths) {
        overlaps.back().back().push_back(overlap(found.box, truth));
      }
    }
  }
  ClassCurves result;
  for (size_t size = 0; size < kSizes; ++size) {
    std::vector<Matched> matched;
    int64_t wanted = 0;
    for (size_t i = 0; i < images.size(); ++i) {
      matched.push_back(Matcher(images[i], kAreas[size]).match(overlaps[i]));
      wanted += matched.back().wanted;
    }
    if (wanted == 0) continue;
    for (size_t m = 0; m < kMostFound.size(); ++m) {
      const std::vector<Ranked> ranks = ranked(images, kMostFound[m]);
      for (size_t t = 0; t < kThresholds; ++t) {
        result.curves[size][m].push_back(curve_of(ranks, matched, t, wanted));
      }
    }
  }
  return result;
}

void check_image(const DetectedImage& image, int64_t classes) {
  const auto check_label = [&](int32_t label) {
    check(label >= 0 && label < classes, ErrorKind::data,
          "average precision: image {} has a box of class {}; there are {}", image.id, label,
          classes);
  };
  for (const LabelledBox& truth : image.truths) check_label(truth.label);
  for (const ScoredBox& found : image.found) {
    check_label(found.label);
    const Box& b = found.box;
    for (const double v : {found.score, b.x0, b.y0, b.x1, b.y1}) {
      check(std::isfinite(v), ErrorKind::data,
            "average precision: image {} has a box with a score or corner of {}", image.id, v);
    }
  }
}

// [class][image], images by their ids.
std::vector<std::vector<ImageOfClass>> by_class(std::span<const DetectedImage> images,
                                                int64_t classes) {
  std::vector<const DetectedImage*> sorted;
  for (const DetectedImage& image : images) sorted.push_back(&image);
  std::ranges::stable_sort(sorted, {}, &DetectedImage::id);
  std::vector<std::vector<ImageOfClass>> all(static_cast<size_t>(classes));
  for (auto& of_class : all) of_class.resize(images.size());
  for (size_t i = 0; i < sorted.size(); ++i) {
    check_image(*sorted[i], classes);
    for (const LabelledBox& t : sorted[i]->truths) {
      all[static_cast<size_t>(t.label)][i].truths.push_back(
          {t.box, t.area.value_or(t.box.area()), t.is_crowd});
    }
    for (const ScoredBox& f : sorted[i]->found) {
      all[static_cast<size_t>(f.label)][i].found.push_back(f);
    }
  }
  for (auto& of_class : all) {
    for (ImageOfClass& image : of_class) {
      std::ranges::stable_sort(image.found, std::greater<>(), &ScoredBox::score);
      if (image.found.size() > kMostFound.back()) image.found.resize(kMostFound.back());
    }
  }
  return all;
}

// The mean over the classes that have objects of a size; over all thresholds, or one.
template <class F>
double mean_over(std::span<const ClassCurves> classes, size_t size, size_t most, const F& value,
                 size_t first = 0, size_t last = kThresholds) {
  double sum = 0;
  int64_t count = 0;
  for (const ClassCurves& c : classes) {
    const std::vector<RecallCurve>& curves = c.curves[size][most];
    for (size_t t = first; t < std::min(last, curves.size()); ++t, ++count) sum += value(curves[t]);
  }
  return count > 0 ? sum / static_cast<double>(count) : -1;
}

}  // namespace

std::vector<Metric> DetectionScores::metrics() const {
  return {{"map", ap},
          {"map_50", ap50},
          {"map_75", ap75},
          {"map_small", ap_small},
          {"map_medium", ap_medium},
          {"map_large", ap_large},
          {"mar_1", ar1},
          {"mar_10", ar10},
          {"mar_100", ar100},
          {"mar_small", ar_small},
          {"mar_medium", ar_medium},
          {"mar_large", ar_large}};
}

DetectionScores score_detections(std::span<const DetectedImage> images, int64_t classes) {
  const std::vector<std::vector<ImageOfClass>> sorted = by_class(images, classes);
  std::vector<ClassCurves> all(sorted.size());
  parallel_for(classes, [&](int64_t c) {
    all[static_cast<size_t>(c)] = curves_of(sorted[static_cast<size_t>(c)]);
  });
  const auto precision = [](const RecallCurve& curve) { return curve.mean(); };
  const auto recall = [](const RecallCurve& curve) { return curve.recall; };
  DetectionScores s;
  s.ap = mean_over(all, 0, 2, precision);
  s.ap50 = mean_over(all, 0, 2, precision, 0, 1);
  s.ap75 = mean_over(all, 0, 2, precision, 5, 6);
  s.ap_small = mean_over(all, 1, 2, precision);
  s.ap_medium = mean_over(all, 2, 2, precision);
  s.ap_large = mean_over(all, 3, 2, precision);
  s.ar1 = mean_over(all, 0, 0, recall);
  s.ar10 = mean_over(all, 0, 1, recall);
  s.ar100 = mean_over(all, 0, 2, recall);
  s.ar_small = mean_over(all, 1, 2, recall);
  s.ar_medium = mean_over(all, 2, 2, recall);
  s.ar_large = mean_over(all, 3, 2, recall);
  for (const ClassCurves& c : all) {
    s.class_ap.push_back(mean_over({&c, 1}, 0, 2, precision));
    s.class_ap50.push_back(mean_over({&c, 1}, 0, 2, precision, 0, 1));
    const std::vector<RecallCurve>& curves = c.curves[0][2];
    s.class_curve50.push_back(curves.empty() ? std::vector<double>() : curves[0].precisions);
  }
  return s;
}

}  // namespace heddle::train
