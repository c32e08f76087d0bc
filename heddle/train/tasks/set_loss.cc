// Costs, the matching, and the loss of matched and other queries.
#include "heddle/train/tasks/set_loss.h"

#include <algorithm>
#include <cmath>

#include "heddle/base/assignment.h"
#include "heddle/base/parallel.h"
#include "heddle/ops/elementwise.h"
#include "heddle/ops/embedding.h"
#include "heddle/ops/images/boxes.h"
#include "heddle/ops/loss.h"
#include "heddle/ops/reduce.h"
#include "heddle/vision/boxes.h"

namespace heddle::train {
namespace {

// What the queries of one image say, in one layer.
struct ImageQueries {
  const float *logits, *boxes;
  int64_t queries, classes;  // no object among them

  ImageQueries(const ObjectPredictions& all, int64_t layer, int64_t images, int64_t image,
               int64_t count)
      : queries(count), classes(all.logits.size(1)) {
    const int64_t row = (layer * images + image) * count;
    logits = all.logits.data<float>() + row * classes;
    boxes = all.boxes.data<float>() + row * 4;
  }
  double log_sum(int64_t query) const {
    const float* const row = logits + query * classes;
    const double most = static_cast<double>(*std::max_element(row, row + classes));
    double sum = 0;
    for (int64_t c = 0; c < classes; ++c) sum += std::exp(static_cast<double>(row[c]) - most);
    return most + std::log(sum);
  }
  double log_p(int64_t query, int64_t label, double log_sum) const {
    return static_cast<double>(logits[query * classes + label]) - log_sum;
  }
  Box box(int64_t query) const { return box_at(boxes + query * 4); }
  static Box box_at(const float* b) {
    return Box::of_center(static_cast<double>(b[0]), static_cast<double>(b[1]),
                          static_cast<double>(b[2]), static_cast<double>(b[3]));
  }
  double distance(int64_t query, const ObjectTarget& object) const {
    double sum = 0;
    for (size_t i = 0; i < 4; ++i) {
      sum += std::abs(static_cast<double>(boxes[query * 4 + static_cast<int64_t>(i)]) -
                      static_cast<double>(object.box[i]));
    }
    return sum;
  }
};

// A cost that no pair of finite numbers has: what is broken is chosen last.
double finite_or_dear(double cost) { return std::isfinite(cost) ? cost : 1e9; }

// [objects, queries]
std::vector<double> costs_of(const ImageQueries& seen, std::span<const ObjectTarget> objects,
                             const SetLossWeights& w) {
  std::vector<double> costs(objects.size() * static_cast<size_t>(seen.queries));
  for (int64_t q = 0; q < seen.queries; ++q) {
    const double log_sum = seen.log_sum(q);
    const Box box = seen.box(q);
    for (size_t o = 0; o < objects.size(); ++o) {
      const Box own = ImageQueries::box_at(objects[o].box.data());
      costs[o * static_cast<size_t>(seen.queries) + static_cast<size_t>(q)] = finite_or_dear(
          -w.class_cost * std::exp(seen.log_p(q, objects[o].label, log_sum)) +
          w.bbox_cost * seen.distance(q, objects[o]) - w.giou_cost * generalized_iou(box, own));
    }
  }
  return costs;
}

void check_targets(const ObjectPredictions& seen, int64_t layers, int64_t queries,
                   const BatchObjects& objects) {
  const int64_t rows = layers * queries * std::ssize(objects);
  check(seen.logits.size(0) == rows && seen.boxes.shape() == Shape{rows, 4}, ErrorKind::shape,
        "{} layers of {} queries of {} images: logits are {}, boxes {}", layers, queries,
        objects.size(), seen.logits.shape(), seen.boxes.shape());
  for (const auto& of_image : objects) {
    for (const ObjectTarget& object : of_image) {
      check(object.label >= 0 && object.label < seen.logits.size(1) - 1, ErrorKind::data,
            "an object has the label {}; the model has {} classes", object.label,
            seen.logits.size(1) - 1);
    }
  }
}

int64_t count_of(const BatchObjects& objects) {
  int64_t count = 0;
  for (const auto& of_image : objects) count += std::ssize(of_image);
  return count;
}

// Mean over the pairs of queries.
double mean_overlap(const ImageQueries& seen) {
  double sum = 0;
  for (int64_t a = 0; a < seen.queries; ++a) {
    const Box box = seen.box(a);
    for (int64_t b = 0; b < a; ++b) sum += iou(box, seen.box(b));
  }
  const auto pairs =
      static_cast<double>(std::max<int64_t>(1, seen.queries * (seen.queries - 1) / 2));
  return sum / pairs;
}

SetLossSums judge_image(const ImageQueries& seen, std::span<const ObjectTarget> objects,
                        std::span<const int64_t> matches, const SetLossWeights& w,
                        bool with_overlap) {
  std::vector<int32_t> object_of(static_cast<size_t>(seen.queries), -1);
  for (size_t o = 0; o < matches.size(); ++o) {
    if (matches[o] >= 0) object_of[static_cast<size_t>(matches[o])] = static_cast<int32_t>(o);
  }
  SetLossSums sums{.objects = std::ssize(objects), .images = 1};
  for (int64_t q = 0; q < seen.queries; ++q) {
    const int32_t o = object_of[static_cast<size_t>(q)];
    const double weight = o < 0 ? w.eos_coefficient : 1;
    const int64_t label = o < 0 ? seen.classes - 1 : objects[static_cast<size_t>(o)].label;
    sums.classes -= weight * seen.log_p(q, label, seen.log_sum(q));
    sums.class_weight += weight;
    if (o < 0) continue;
    const ObjectTarget& object = objects[static_cast<size_t>(o)];
    const float* const row = seen.logits + q * seen.classes;
    ++sums.matched;
    sums.wrong += std::max_element(row, row + seen.classes) - row != label;
    sums.distance += seen.distance(q, object);
    sums.giou += 1 - generalized_iou(seen.box(q), ImageQueries::box_at(object.box.data()));
  }
  if (with_overlap) sums.overlap = mean_overlap(seen);
  return sums;
}

}  // namespace

SetLossSums& SetLossSums::operator+=(const SetLossSums& o) {
  classes += o.classes, class_weight += o.class_weight;
  distance += o.distance, giou += o.giou, overlap += o.overlap;
  objects += o.objects, matched += o.matched, images += o.images, wrong += o.wrong;
  return *this;
}

std::vector<Matches> match_objects(const ObjectPredictions& seen, int64_t layers, int64_t queries,
                                   const BatchObjects& objects, const SetLossWeights& weights) {
  check_targets(seen, layers, queries, objects);
  const int64_t images = std::ssize(objects);
  std::vector<Matches> all(static_cast<size_t>(layers), Matches(objects.size()));
  parallel_for(layers * images, [&](int64_t i) {
    const auto image = static_cast<size_t>(i % images);
    const std::vector<double> costs = costs_of(
        ImageQueries(seen, i / images, images, i % images, queries), objects[image], weights);
    all[static_cast<size_t>(i / images)][image] =
        cheapest_pairs(costs, std::ssize(objects[image]), queries);
  });
  return all;
}

SetLossSums judge(const ObjectPredictions& seen, int64_t layer, int64_t queries,
                  const BatchObjects& objects, const Matches& matches,
                  const SetLossWeights& weights, bool with_overlap) {
  SetLossSums sums;
  const int64_t images = std::ssize(objects);
  for (int64_t i = 0; i < images; ++i) {
    const auto n = static_cast<size_t>(i);
    sums += judge_image(ImageQueries(seen, layer, images, i, queries), objects[n], matches[n],
                        weights, with_overlap);
  }
  return sums;
}

Tensor set_loss(const ObjectPredictions& seen, int64_t queries, const BatchObjects& objects,
                std::span<const Matches> matches, const SetLossWeights& w, float factor) {
  const int64_t images = std::ssize(objects), layers = std::ssize(matches);
  check_targets(seen, layers, queries, objects);
  const auto none = static_cast<int32_t>(seen.logits.size(1) - 1);
  std::vector<int32_t> something(static_cast<size_t>(seen.logits.size(0)), -1), nothing = something;
  std::ranges::fill(nothing, none);
  std::vector<int32_t> rows;
  std::vector<float> truths;
  for (int64_t i = 0; i < layers * images; ++i) {
    const auto image = static_cast<size_t>(i % images);
    const std::vector<int64_t>& of_objects = matches[static_cast<size_t>(i / images)][image];
    for (size_t o = 0; o < of_objects.size(); ++o) {
      if (of_objects[o] < 0) continue;
      const auto row = static_cast<int32_t>(i * queries + of_objects[o]);
      const ObjectTarget& object = objects[image][o];
      something[static_cast<size_t>(row)] = object.label;
      nothing[static_cast<size_t>(row)] = -1;
      rows.push_back(row);
      truths.insert(truths.end(), object.box.begin(), object.box.end());
    }
  }
  // As many are matched in each layer.
  const double matched = static_cast<double>(rows.size()) / static_cast<double>(layers);
  const double weight =
      matched + w.eos_coefficient * (static_cast<double>(images * queries) - matched);
  const auto entropy = [&](const std::vector<int32_t>& targets, double of) {
    const auto scale = static_cast<float>(of / weight) * factor;
    return cross_entropy(seen.logits, targets, {.grad_scale = scale}).loss;
  };
  const Tensor classes = entropy(something, 1) + entropy(nothing, w.eos_coefficient);
  if (rows.empty()) return classes;
  const auto count = static_cast<double>(std::max<int64_t>(1, count_of(objects)));
  const Tensor boxes = gather_rows(seen.boxes, rows);
  const Tensor truth = Tensor::from(truths, {std::ssize(rows), 4});
  const auto mean = [&](const Tensor& losses, double coefficient) {
    return scale(sum(losses), static_cast<float>(coefficient / count) * factor);
  };
  return classes + mean(box_l1(boxes, truth), w.bbox_loss_coefficient) +
         mean(generalized_iou_loss(boxes, truth), w.giou_loss_coefficient);
}

NoisedObjects with_noise(const BatchObjects& objects, std::span<const RngKey> keys, int64_t labels,
                         const DenoisingWeights& how) {
  check(keys.size() == objects.size(), ErrorKind::shape, "noise: {} keys of {} images", keys.size(),
        objects.size());
  NoisedObjects all{.groups = how.groups};
  for (size_t i = 0; i < objects.size(); ++i) {
    RngStream random(keys[i]);
    const auto drawn = [&] { return random.between(-1, 1); };
    all.counts.push_back(std::ssize(objects[i]));
    for (int64_t g = 0; g < how.groups; ++g) {
      for (const ObjectTarget& object : objects[i]) {
        const bool is_drawn = random.happens(how.label_noise);
        const auto anew = static_cast<int32_t>(random.index(labels));
        all.labels.push_back(is_drawn ? anew : object.label);
        std::array<float, 4> box = object.box;
        for (size_t k = 0; k < 2; ++k) {
          const auto edge = static_cast<double>(object.box[k + 2]);
          const double middle = static_cast<double>(box[k]) + drawn() * how.box_noise * edge / 2;
          box[k] = static_cast<float>(std::clamp(middle, 0.0, 1.0));
          box[k + 2] = static_cast<float>(std::min(1.0, edge * (1 + drawn() * how.box_noise)));
        }
        all.boxes.push_back(box);
      }
    }
  }
  return all;
}

Tensor restoration_loss(const NoisedObjects& noised, int64_t layers, const BatchObjects& objects,
                        const SetLossWeights& w, float factor) {
  if (noised.labels.empty()) return {};
  std::vector<int32_t> labels;
  std::vector<float> truths;
  for (int64_t l = 0; l < layers; ++l) {
    for (const auto& of_image : objects) {
      for (int64_t g = 0; g < noised.groups; ++g) {
        for (const ObjectTarget& object : of_image) {
          labels.push_back(object.label);
          truths.insert(truths.end(), object.box.begin(), object.box.end());
        }
      }
    }
  }
  const float each = factor / static_cast<float>(noised.labels.size());
  const Tensor truth = Tensor::from(truths, {std::ssize(labels), 4});
  const ObjectPredictions& seen = noised.restored;
  const auto mean = [&](const Tensor& losses, double coefficient) {
    return scale(sum(losses), static_cast<float>(coefficient) * each);
  };
  return cross_entropy(seen.logits, labels, {.grad_scale = each}).loss +
         mean(box_l1(seen.boxes, truth), w.bbox_loss_coefficient) +
         mean(generalized_iou_loss(seen.boxes, truth), w.giou_loss_coefficient);
}

double class_loss_floor(std::span<const int64_t> counts, int64_t images, int64_t queries,
                        double eos_coefficient) {
  double objects = 0, entropy = 0;
  for (const int64_t n : counts) objects += static_cast<double>(n);
  const double others =
      eos_coefficient * std::max(0.0, static_cast<double>(images * queries) - objects);
  const double all = objects + others;
  const auto add = [&](double part) {
    if (part > 0) entropy -= part / all * std::log(part / all);
  };
  for (const int64_t n : counts) add(static_cast<double>(n));
  add(others);
  return entropy;
}

}  // namespace heddle::train
