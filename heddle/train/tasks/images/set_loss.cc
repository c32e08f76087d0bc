// Costs, the matching, and the loss of matched and other queries.
#include "heddle/train/tasks/images/set_loss.h"

#include <algorithm>
#include <cmath>

#include "heddle/base/assignment.h"
#include "heddle/base/log_sum_exp.h"
#include "heddle/base/parallel.h"
#include "heddle/ops/elementwise.h"
#include "heddle/ops/embedding.h"
#include "heddle/ops/images/boxes.h"
#include "heddle/ops/images/matchability.h"
#include "heddle/ops/loss.h"
#include "heddle/ops/reduce.h"
#include "heddle/vision/boxes.h"

namespace heddle::train {
namespace {

// What the queries of one image say, in one layer.
struct ImageQueries {
  const float *logits, *boxes;
  int64_t queries, classes;  // no object among them, unless they have sigmoids
  bool has_sigmoids;

  ImageQueries(const ObjectPredictions& all, int64_t layer, int64_t images, int64_t image,
               int64_t count)
      : queries(count), classes(all.logits.size(1)), has_sigmoids(all.has_sigmoids) {
    const int64_t row = (layer * images + image) * count;
    logits = all.logits.data<float>() + row * classes;
    boxes = all.boxes.data<float>() + row * 4;
  }
  double log_sum(int64_t query) const { return log_sum_exp(row(query)); }
  double log_p(int64_t query, int64_t label, double log_sum) const {
    return static_cast<double>(logits[query * classes + label]) - log_sum;
  }
  std::span<const float> row(int64_t query) const {
    return {logits + query * classes, static_cast<size_t>(classes)};
  }
  // log_sum: log_sum() of the query; of sigmoids anything.
  double probability(int64_t query, int64_t label, double log_sum) const {
    if (!has_sigmoids) return std::exp(log_p(query, label, log_sum));
    return 1 / (1 + std::exp(-static_cast<double>(logits[query * classes + label])));
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
    const double log_sum = seen.has_sigmoids ? 0 : seen.log_sum(q);
    const Box box = seen.box(q);
    for (size_t o = 0; o < objects.size(); ++o) {
      const Box own = ImageQueries::box_at(objects[o].box.data());
      costs[o * static_cast<size_t>(seen.queries) + static_cast<size_t>(q)] = finite_or_dear(
          -w.class_cost * seen.probability(q, objects[o].label, log_sum) +
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
      check(object.label >= 0 && object.label < seen.labels(), ErrorKind::data,
            "an object has the label {}; the model has {} classes", object.label, seen.labels());
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

// What query q adds to the class loss; object: its own, or null. Of sigmoids the weights are those
// of the objects, matched or not.
void add_class_loss(const ImageQueries& seen, int64_t q, const ObjectTarget* object,
                    const SetLossWeights& w, SetLossSums& sums) {
  if (seen.has_sigmoids) {
    const double overlap =
        object == nullptr ? 0 : iou(seen.box(q), ImageQueries::box_at(object->box.data()));
    sums.classes +=
        matchability_of_row(seen.row(q), object == nullptr ? -1 : object->label, overlap);
    return;
  }
  const double weight = object == nullptr ? w.eos_coefficient : 1;
  const int64_t label = object == nullptr ? seen.classes - 1 : object->label;
  sums.classes -= weight * seen.log_p(q, label, seen.log_sum(q));
  sums.class_weight += weight;
}

SetLossSums judge_image(const ImageQueries& seen, std::span<const ObjectTarget> objects,
                        std::span<const int64_t> matches, const SetLossWeights& w,
                        bool with_overlap) {
  std::vector<int32_t> object_of(static_cast<size_t>(seen.queries), -1);
  for (size_t o = 0; o < matches.size(); ++o) {
    if (matches[o] >= 0) object_of[static_cast<size_t>(matches[o])] = static_cast<int32_t>(o);
  }
  SetLossSums sums{.objects = std::ssize(objects), .images = 1};
  if (seen.has_sigmoids) sums.class_weight = static_cast<double>(objects.size());
  for (int64_t q = 0; q < seen.queries; ++q) {
    const int32_t o = object_of[static_cast<size_t>(q)];
    add_class_loss(seen, q, o < 0 ? nullptr : &objects[static_cast<size_t>(o)], w, sums);
    if (o < 0) continue;
    const ObjectTarget& object = objects[static_cast<size_t>(o)];
    const std::span<const float> row = seen.row(q);
    ++sums.matched;
    sums.wrong += std::ranges::max_element(row) - row.begin() != object.label;
    sums.distance += seen.distance(q, object);
    sums.giou += 1 - generalized_iou(seen.box(q), ImageQueries::box_at(object.box.data()));
  }
  if (with_overlap) sums.overlap = mean_overlap(seen);
  return sums;
}

// What the queries of some layers are to say, row by row of the predictions.
struct Targets {
  std::vector<int32_t> labels;  // of each row, -1 where it has no object
  std::vector<int32_t> rows;    // that have one
  std::vector<float> boxes;     // of these

  explicit Targets(int64_t count) : labels(static_cast<size_t>(count), -1) {}
  void add(int64_t row, const ObjectTarget& object) {
    labels[static_cast<size_t>(row)] = object.label;
    rows.push_back(static_cast<int32_t>(row));
    boxes.insert(boxes.end(), object.box.begin(), object.box.end());
  }
  // Of each row without an object the class of none, else -1.
  std::vector<int32_t> none(const ObjectPredictions& seen) const {
    const auto last = static_cast<int32_t>(seen.labels());
    std::vector<int32_t> targets;
    for (const int32_t label : labels) targets.push_back(label < 0 ? last : -1);
    return targets;
  }
};

Targets targets_of(const ObjectPredictions& seen, int64_t queries, const BatchObjects& objects,
                   std::span<const Matches> matches) {
  Targets targets(seen.logits.size(0));
  const int64_t images = std::ssize(objects);
  for (int64_t i = 0; i < std::ssize(matches) * images; ++i) {
    const auto image = static_cast<size_t>(i % images);
    const std::vector<int64_t>& of_objects = matches[static_cast<size_t>(i / images)][image];
    for (size_t o = 0; o < of_objects.size(); ++o) {
      if (of_objects[o] >= 0) targets.add(i * queries + of_objects[o], objects[image][o]);
    }
  }
  return targets;
}

// The class loss of sigmoids, times factor.
Tensor matchability(const ObjectPredictions& seen, const Targets& targets, float factor) {
  std::vector<float> overlaps(targets.labels.size());
  for (size_t i = 0; i < targets.rows.size(); ++i) {
    const auto row = static_cast<size_t>(targets.rows[i]);
    overlaps[row] = static_cast<float>(iou(ImageQueries::box_at(seen.boxes.data<float>() + 4 * row),
                                           ImageQueries::box_at(targets.boxes.data() + 4 * i)));
  }
  return scale(sum(matchability_loss(seen.logits, targets.labels, overlaps)), factor);
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
  const Targets targets = targets_of(seen, queries, objects, matches);
  const auto count = static_cast<double>(std::max<int64_t>(1, count_of(objects)));
  Tensor classes;
  if (seen.has_sigmoids) {
    classes = matchability(seen, targets, static_cast<float>(1 / count) * factor);
  } else {
    // As many are matched in each layer.
    const double matched = static_cast<double>(targets.rows.size()) / static_cast<double>(layers);
    const double weight =
        matched + w.eos_coefficient * (static_cast<double>(images * queries) - matched);
    const auto entropy = [&](const std::vector<int32_t>& labels, double of) {
      const auto scale = static_cast<float>(of / weight) * factor;
      return cross_entropy(seen.logits, labels, {.grad_scale = scale}).loss;
    };
    classes = entropy(targets.labels, 1) + entropy(targets.none(seen), w.eos_coefficient);
  }
  if (targets.rows.empty()) return classes;
  const Tensor boxes = gather_rows(seen.boxes, targets.rows);
  const Tensor truth = Tensor::from(targets.boxes, {std::ssize(targets.rows), 4});
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
  const ObjectPredictions& seen = noised.restored;
  const int64_t rows = layers * std::ssize(noised.labels);
  check(seen.logits.size(0) == rows && seen.boxes.shape() == Shape{rows, 4}, ErrorKind::shape,
        "{} layers of {} noised queries: logits are {}, boxes {}", layers, noised.labels.size(),
        seen.logits.shape(), seen.boxes.shape());
  Targets targets(rows);
  for (int64_t l = 0; l < layers; ++l) {
    for (const auto& of_image : objects) {
      for (int64_t g = 0; g < noised.groups; ++g) {
        for (const ObjectTarget& object : of_image) targets.add(std::ssize(targets.rows), object);
      }
    }
  }
  const float each = factor / static_cast<float>(noised.labels.size());
  const Tensor truth = Tensor::from(targets.boxes, {std::ssize(targets.rows), 4});
  const auto mean = [&](const Tensor& losses, double coefficient) {
    return scale(sum(losses), static_cast<float>(coefficient) * each);
  };
  const Tensor classes =
      seen.has_sigmoids ? matchability(seen, targets, each)
                        : cross_entropy(seen.logits, targets.labels, {.grad_scale = each}).loss;
  return classes + mean(box_l1(seen.boxes, truth), w.bbox_loss_coefficient) +
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
