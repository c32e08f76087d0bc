// A model that reads images and an image in it, ready to be looked into: which attention calls
// there are, and which parts of the image their queries and keys are.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "heddle/infer/image_batch.h"
#include "heddle/inspect/pages/page.h"
#include "heddle/models/windows.h"
#include "heddle/nn/run.h"

namespace heddle::inspect {

/// How states lie over an image: tokens that are of no part of it, then cells line by line.
struct CellGrid {
  std::vector<std::string> tokens;  ///< "[class]"
  ImageSize size;                   ///< cells

  int64_t cells() const { return std::ssize(tokens) + size.height * size.width; }
  /// "[class]", or "row 3, column 4".
  std::string name(int64_t cell) const;
  friend bool operator==(const CellGrid&, const CellGrid&) = default;
};

/// The rows of a segment of an attention call, as cells of the call's grids; -1: of none (padding).
struct AttentionWindow {
  std::vector<int32_t> queries, keys;
  std::vector<int32_t> regions = {};  ///< of keys: a query sees those of its own; empty: all
};

/// An attention call over the image. Without windows its one segment has the cells of the grids in
/// their order.
struct ImageCall {
  std::string name;   ///< of the observer: "attentions.3"
  std::string title;  ///< for readers: "layer 3", "cross layer 3"
  int64_t layer = 0, heads = 0;
  size_t queries = 0, keys = 0;  ///< of ImageSubject::grids()
  std::vector<AttentionWindow> windows = {};
};

/// A class that the model gives the image, with its probability.
struct ImageClass {
  std::string label;
  double probability = 0;
};

/// What a query of a detector sees, by its likeliest class that is an object.
struct SeenObject {
  std::string label;
  double score = 0;
  std::array<double, 4> box = {};  ///< left, top, right, bottom, as shares of the image
};

/// What one pass over an image computes, as often as one likes and with any observer.
class ImageSubject {
 public:
  /// Loads the model and fits the image. name: of the image, for readers and messages.
  /// Errors: those of load_image_reader(); data if the model takes no image of that size, or has no
  /// attention that lies over the image.
  ImageSubject(const std::string& path, const Image& image, std::string name,
               const Precision& precision);

  const std::string& path() const { return reader_.loaded.path; }  ///< of the model
  const std::string& given() const { return given_; }              ///< what it was called
  const std::string& type() const { return reader_.loaded.type; }
  const std::string& name() const { return name_; }
  /// As the model sees it, before it is normalised.
  const Image& image() const { return fitted_; }
  const std::vector<CellGrid>& grids() const { return grids_; }
  const std::vector<ImageCall>& calls() const { return calls_; }
  /// Whether the state of a token is classified, not those of the grid's cells.
  bool reads_token() const { return reader_.model().facts().reads_token(); }
  /// The likeliest first; empty if the model has no classes.
  const std::vector<ImageClass>& classes() const { return classes_; }
  /// A query each; empty if the model is no detector.
  const std::vector<SeenObject>& objects() const { return objects_; }
  /// Lengths of the last layer's states, a cell of grids().back() each; empty if they lie
  /// otherwise, as those of a detector's queries.
  const std::vector<double>& norms() const { return norms_; }

  /// One pass under the observer.
  void pass(const nn::Observer& observer) const { result(&observer); }
  /// What change() measures.
  std::string measure() const;
  /// How the result of a pass differs from that of a pass without observer.
  double change(const nn::Observer& observer) const;

 private:
  struct Result {
    std::vector<float> logits, states;  // states where there are no logits
  };

  Result result(const nn::Observer* observer) const;
  void note_classes();
  void note_objects();
  void note_calls();
  size_t find_grid(int64_t rows, bool is_of_image);
  void note_windows(ImageCall& call, const ImageWindows& windows);

  std::string given_, name_;
  ImageReader reader_;
  Image fitted_;
  ImageBatch batch_;
  Precision precision_;
  Result plain_;
  std::vector<CellGrid> grids_;
  std::vector<ImageCall> calls_;
  std::vector<ImageClass> classes_;
  std::vector<SeenObject> objects_;
  std::vector<double> norms_;
};

/// The pixels of an image for a page: height, width and, in base64, red, green and blue of each.
/// One of more than `longest` on a side is made smaller.
Json image_json(const Image& image, int64_t longest = 1024);

/// "cat (97.1 %)"; "" where there are no classes.
std::string likeliest_class(const ImageSubject& subject);

}  // namespace heddle::inspect
