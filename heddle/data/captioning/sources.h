// Images with captions in the files that people have, before they are decoded.
#pragma once

#include <string>
#include <vector>

#include "heddle/data/image_sources.h"

namespace heddle {

/// What an image is said to show, by which captions can be checked.
struct WrittenScene {
  std::string json = {};   ///< its line of JSON where that has "objects"; else empty
  std::string where = {};  ///< opens messages about it: "FILE: line 7"
};

/// Images of one part with the captions of each.
struct CaptionSource {
  ImageSource images;                              ///< its labels say nothing
  std::string file;                                ///< that has the captions
  std::vector<std::vector<std::string>> captions;  ///< of each image, at least one
  std::vector<WrittenScene> scenes;                ///< of each image
};

/// `unseen`: held out too, of what training images lack.
struct CaptionSources {
  UnreadPart<CaptionSource> train, val, test, unseen;
};

/// What is at a path.
/// - JSON lines: a .jsonl file, which is train's, or a folder with train.jsonl, val.jsonl (or
///   valid, validation, dev), test.jsonl, unseen.jsonl. A line is an image: "file_name", below the
///   file's folder, and "captions", a list of texts; other members do not matter here (see
///   WrittenScene for "objects"). Image files beside those that are named, of which no line speaks,
///   are counted in a warning.
/// - NLVR: a folder with train.tsv, dev.tsv, test.tsv (image, label, sentence) and the images of
///   each in PART_images.tar.gz, PART_images.tar or the folder PART_images. Captions are the
///   sentences whose label is "true"; where there is no train.tsv, dev.tsv is train's. Archives are
///   read where they lie.
/// Errors: data, naming the path, for one of another kind; of a part that is read, naming file and
/// line, for a file without a line, broken or cut JSON, text that is not UTF-8, an image that is
/// missing or stands twice, one without a caption, an empty caption, a table without these columns
/// or with another label. What is wrong with an image is said when it is decoded.
CaptionSources find_captions(const std::string& path);

// The readers of each kind.

CaptionSource read_caption_lines(const std::string& file);
/// `part`: "dev", of dev.tsv and its images.
CaptionSource read_nlvr(const std::string& folder, const std::string& part);

/// Errors: data, with `where` in front, for a caption of white space alone.
void check_caption(const std::string& caption, const std::string& where);

}  // namespace heddle
