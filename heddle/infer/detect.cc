// The likeliest class of each query; boxes in pixels.
#include "heddle/infer/detect.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "heddle/base/rounded.h"

namespace heddle {
namespace {

Box in_pixels(const float* box, ImageSize size) {
  const auto width = static_cast<double>(size.width), height = static_cast<double>(size.height);
  return scaled(Box::of_center(static_cast<double>(box[0]), static_cast<double>(box[1]),
                               static_cast<double>(box[2]), static_cast<double>(box[3])),
                width, height);
}

}  // namespace

void check_sees_all(const ImageProcessor& processor, const std::string& source) {
  check(!processor.do_center_crop, ErrorKind::data,
        "{}: its {} crops images; boxes would lie elsewhere", source, kPreprocessorName);
}

ImageReader load_detector(const std::string& path) {
  ImageReader reader = load_image_reader(path);
  static_cast<void>(reader.loaded.model->need<Detector>(reader.loaded.path));
  check_sees_all(reader.processor, reader.loaded.path);
  return reader;
}

std::vector<ScoredBox> query_boxes(const ObjectPredictions& seen, int64_t queries,
                                   std::span<const ImageSize> sizes, const std::string& source) {
  check(seen.logits.size(0) == queries * std::ssize(sizes), ErrorKind::shape,
        "{} images of {} queries; logits are {}", sizes.size(), queries, seen.logits.shape());
  std::vector<ScoredBox> all;
  for (int64_t r = 0; r < seen.logits.size(0); ++r) {
    const SeenClass likeliest = likeliest_class(seen, r);
    const ImageSize size = sizes[static_cast<size_t>(r / queries)];
    const ScoredBox one{.box = in_pixels(seen.boxes.data<float>() + r * 4, size),
                        .label = likeliest.label,
                        .score = likeliest.probability};
    const Box& b = one.box;  // its area is 0 where a corner is NaN
    const bool is_box = std::isfinite(b.x0 + b.y0 + b.x1 + b.y1);
    check(std::isfinite(one.score) && is_box, ErrorKind::data,
          "{}: the model gives what is not finite; its weights are damaged, or it needs f32",
          source);
    all.push_back(one);
  }
  return all;
}

std::vector<std::vector<ScoredBox>> scored_boxes(const ObjectPredictions& seen, int64_t queries,
                                                 std::span<const ImageSize> sizes,
                                                 const std::string& source) {
  const std::vector<ScoredBox> boxes = query_boxes(seen, queries, sizes, source);
  std::vector<std::vector<ScoredBox>> all;
  for (auto at = boxes.begin(); at != boxes.end(); at += queries) {
    std::ranges::stable_sort(all.emplace_back(at, at + queries), std::greater<>(),
                             &ScoredBox::score);
  }
  return all;
}

std::vector<std::vector<ScoredBox>> detect(const ImageReader& reader, std::span<const Image> fitted,
                                           std::span<const ImageSize> originals,
                                           const Precision& precision, int64_t most_pixels) {
  const auto& model = reader.loaded.model->need<Detector>(reader.loaded.path);
  const NoGrad off;
  nn::Run run;
  run.use(precision);
  std::vector<std::vector<ScoredBox>> all;
  size_t begin = 0;
  for (const size_t end : pass_ends(fitted, most_pixels)) {
    const ImageBatch batch(fitted.subspan(begin, end - begin), reader.processor);
    auto found = scored_boxes(model.predict(batch.rows(), false, run), model.detector().queries,
                              originals.subspan(begin, end - begin), reader.loaded.path);
    std::ranges::move(found, std::back_inserter(all));
    begin = end;
  }
  return all;
}

Json objects_json(std::span<const ScoredBox> boxes, const std::vector<std::string>& labels,
                  ImageSize image) {
  Json json =
      Json::object({{"width", image.width}, {"height", image.height}, {"objects", Json::array()}});
  for (const ScoredBox& one : boxes) {
    json["objects"].push_back(
        Json::object({{"label", labels[static_cast<size_t>(one.label)]},
                      {"score", rounded(one.score, 6)},
                      {"box", Json::Array{rounded(one.box.x0, 2), rounded(one.box.y0, 2),
                                          rounded(one.box.x1, 2), rounded(one.box.y1, 2)}}}));
  }
  return json;
}

std::vector<ScoredBox> sure_boxes(std::span<const ScoredBox> boxes, double threshold,
                                  ImageSize image) {
  std::vector<ScoredBox> sure;
  for (ScoredBox one : boxes) {
    one.box = clipped(one.box, image);
    if (one.score >= threshold && one.box.area() > 0) sure.push_back(one);
  }
  return sure;
}

}  // namespace heddle
