// What a detector finds in images.
#pragma once

#include <span>
#include <vector>

#include "heddle/base/json/json.h"
#include "heddle/infer/image_batch.h"
#include "heddle/models/detector.h"
#include "heddle/vision/boxes.h"

namespace heddle {

/// Errors: data, naming `source`, for a processor that crops: a detector's boxes are shares of what
/// it sees, and would lie elsewhere in the image.
void check_sees_all(const ImageProcessor& processor, const std::string& source);
/// load_image_reader() of a detector. Errors: data for another model; those of check_sees_all().
ImageReader load_detector(const std::string& path);

/// What each query of each image sees, by likeliest_class(), in the order of
/// `seen`. sizes: of the images, in whose pixels boxes are; boxes are not clipped.
/// returns: [images * queries]    Errors: data, naming `source`, for numbers that are not finite.
std::vector<ScoredBox> query_boxes(const ObjectPredictions& seen, int64_t queries,
                                   std::span<const ImageSize> sizes, const std::string& source);

/// The same surest first, of equals the lower query. returns: [images][queries]
std::vector<std::vector<ScoredBox>> scored_boxes(const ObjectPredictions& seen, int64_t queries,
                                                 std::span<const ImageSize> sizes,
                                                 const std::string& source);

/// scored_boxes() of images, in passes of at most `most_pixels`; originals: their sizes before they
/// were fitted (ImageProcessor::fit()). Errors: data if the model is no detector, or takes no
/// images of a size.
std::vector<std::vector<ScoredBox>> detect(const ImageReader& reader, std::span<const Image> fitted,
                                           std::span<const ImageSize> originals,
                                           const Precision& precision,
                                           int64_t most_pixels = kMostPassPixels);

/// {"width", "height", "objects": [{"label", "score", "box": [left, top, right, bottom]}]}: of the
/// image, in pixels, scores to six digits, boxes to hundredths.
Json objects_json(std::span<const ScoredBox> boxes, const std::vector<std::string>& labels,
                  ImageSize image);

/// Those of at least `threshold`, clipped to their image.
std::vector<ScoredBox> sure_boxes(std::span<const ScoredBox> boxes, double threshold,
                                  ImageSize image);

}  // namespace heddle
