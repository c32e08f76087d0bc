// Images with boxes in the files that people have, before they are decoded.
#pragma once

#include <string>
#include <vector>

#include "heddle/data/image_sources.h"
#include "heddle/vision/boxes.h"

namespace heddle {

/// Images of one part with the boxes of each, as their files have them.
struct DetectionSource {
  ImageSource images;                           ///< its labels say nothing
  std::string file;                             ///< that has the boxes, or their folder
  std::vector<std::string> classes;             ///< names
  bool is_numbered = false;                     ///< nobody named them: "0", "1", ..
  std::vector<int64_t> category_ids;            ///< of each class
  std::vector<std::vector<LabelledBox>> boxes;  ///< of each image
  std::vector<int64_t> ids;                     ///< of each image
  /// Of each image what the file says of its size, for which its boxes hold; 0 x 0: nothing.
  std::vector<ImageSize> sizes;
};

struct DetectionSources {
  UnreadPart<DetectionSource> train, val, test;
};

/// What is at a path.
/// - COCO: a .json file (images, annotations, categories of any ids; segmentations are not read)
///   or a folder with such files in it, in annotations/, or in train/, val/ ..
///   (_annotations.coco.json), of which the name has "train", "val" or "test" (of several those of
///   "instances"); one without is train's. Images are looked for by file_name in the folders beside
///   that are called as the file without "instances_", as the part, or images/; and in the file's
///   own and the one above.
/// - VOC: a folder with Annotations/*.xml and JPEGImages/ (or images/, or the images beside);
///   ImageSets/Main/{train,val,test}.txt have the parts, else all are train's. Classes are sorted
///   by name. Corners are taken as points between pixels. `difficult` objects are like others.
/// - A table: a folder with boxes.tsv (split, image, class from 0, xmin, ymin, xmax, ymax),
///   images.tsv (split, image) with the order of images, among them those without boxes, and the
///   image files in images/ or images.tar, which is read where it lies; classes.txt has the names
///   of classes, where it is missing `class_names` do, else these are numbers.
/// Errors, of what stands in a part's own files as it is read: data, naming file and place, for a
/// path of another kind, an id that stands twice, a box of an unknown image or class, a number that
/// is none or absurd, a text that is not UTF-8, a part that is twice there, COCO's images without
/// one that is found; usage for class_names of too few classes, or others than classes.txt has.
/// An image that is missing is reported when it is decoded.
DetectionSources find_detections(const std::string& path,
                                 const std::vector<std::string>& class_names = {});

/// The labels of `source` become those of `classes` that have the same name; a class that the
/// source does not have has the category id 0. Errors: data for a class of a box that is not among
/// them.
void relabel(DetectionSource& source, const std::vector<std::string>& classes);

/// The same for the labels of a model: where nobody named the source's classes, their numbers are
/// those of the model's. Errors: data as well for a number beyond them.
void relabel_for_model(DetectionSource& source, const std::vector<std::string>& labels);

// The readers of each kind. A part without images is none.

/// The file of one part; `part`, if not empty, may be a folder of its images.
DetectionSource read_coco(const std::string& file, const std::string& part);
bool is_voc(const std::string& folder);
DetectionSources read_voc(const std::string& folder);
bool is_box_table(const std::string& folder);
DetectionSources read_box_table(const std::string& folder,
                                const std::vector<std::string>& class_names);

/// Where corners must lie, in pixels from the first: beyond is damage.
inline constexpr double kFarthestCorner = 1e6;
/// Errors: data, with `where` in front, for a number beyond it.
void check_corners(const Box& box, const std::string& where);

/// The number that a text is, all of it. Errors: data, with `where` in front, for another text.
double number_of(const std::string& text, const std::string& where);

/// An image of a part, see ImageSource::add_file(); no boxes yet.
void add_image_file(DetectionSource& source, const std::string& name, int64_t id);

}  // namespace heddle
