// Drawn images as files, in the forms of sets that training reads.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "corpora/captions/captioned_scenes.h"
#include "corpora/scenes.h"

namespace heddle::train {

/// What is written: the images of some indices, by a function of the index.
struct SceneFiles {
  std::string folder;  ///< with those above it made if they are missing
  int64_t first = 0;   ///< index of the first image
  int64_t count = 0;   ///< images, numbered from 1 in their names
  std::string part;    ///< "train": names the folder of the images, and the file of boxes
  std::vector<std::string> classes;
};

/// FOLDER/PART/000001.png .. and FOLDER/PART.json, with boxes as COCO has them (categories from 1),
/// which is written last. Drawn on all threads. Errors: system if a file cannot be written.
void write_scenes(const SceneFiles& files, const std::function<DrawnScene(uint64_t index)>& draw);

/// FOLDER/PART/CLASS/000001.png ..: a folder a class.
void write_drawn_shapes(const SceneFiles& files,
                        const std::function<DrawnShape(uint64_t index)>& draw);

/// FOLDER/PART/000001.png .. and FOLDER/PART.jsonl, which is written last: a line an image with
/// file_name ("PART/000001.png"), captions and what to_json() has of its scene. What
/// find_captions() reads. Of the files the classes do not count.
void write_captioned_scenes(const SceneFiles& files,
                            const std::function<CaptionedScene(uint64_t index)>& draw);

}  // namespace heddle::train
