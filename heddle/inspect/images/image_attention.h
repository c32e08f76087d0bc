// Where the heads of an image's model look: their weights over the image, roll-out, and the page of
// `heddle attention` for images.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "heddle/inspect/images/image_subject.h"

namespace heddle::inspect {

struct ImageHeadsOptions {
  std::vector<int64_t> layers = {};  ///< from 0; empty: all
  std::vector<int64_t> heads = {};   ///< from 0; empty: all
  bool importance = true;            ///< one pass more for each head
  double discard = 0;                ///< roll-out: see discard_least()
  /// Up to so many weights in all heads together are kept whole. Else those of the rows of tokens
  /// that are of no part of the image are, and of each other row the largest.
  int64_t most_weights = 3'000'000;
};

/// One head of one attention call, its rows (window after window) end to end.
struct ImageHead {
  size_t call = 0;  ///< of the subject's
  int64_t head = 0;
  /// Whole: [queries, keys] of each window. Else of each row the `kept` largest, largest first, but
  /// for the first `whole_rows` rows, which are whole.
  std::vector<float> weights;
  int64_t kept = 0, whole_rows = 0;   ///< 0, 0: whole
  std::vector<int64_t> columns = {};  ///< in their window, of the rows that are not whole
  double entropy = 0;                 ///< mean over the rows of -sum w ln w, nats
  /// Mean over the rows of cells of sum w * distance, as wide as a cell is, over keys that are
  /// cells, by their share. Nothing where queries and keys are not the same cells.
  std::optional<double> distance = {};
  std::optional<double> importance;  ///< ImageSubject::change() when its output is zero
};

/// How the heads of a layer become one matrix before they are multiplied.
enum class Fuse : uint8_t { mean, max };

/// Attention rolled out over the layers: the product over the layers, last first, of (A + I) / 2,
/// where A is the heads' mean, or their largest, of which discard_least() may leave out some (and
/// each row divided by its sum).
/// Source: Abnar and Zuidema 2020, "Quantifying Attention Flow in Transformers", section 3.2; their
/// heads are averaged.
struct Rollout {
  std::vector<float> mean, max;  ///< [rows, cells of the first grid], rows of sum 1
  /// Cells of the last grid that have rows; -1: the mean of all that are of the image.
  std::vector<int64_t> rows = {};
  size_t queries = 0, keys = 0;  ///< the last and the first grid
  int64_t layers = 0;
  double discard = 0;  ///< as asked for
};

struct ImageMaps {
  std::vector<ImageHead> heads;
  std::optional<Rollout> rollout;  ///< nothing where a layer has too many weights to hold
};

/// The maps of the chosen heads by layer and head, and the roll-out of all.
/// Errors: usage, naming the flag, for a layer or head that is not there; those of check_discard().
ImageMaps image_maps(const ImageSubject& subject, const ImageHeadsOptions& options);

Page image_attention_page(const ImageSubject& subject, const ImageMaps& maps);
/// The same as plain JSON, 6 digits: "grid", "classes", "heads" with statistics and "weights", a
/// row a query; where only the largest are kept, "columns" beside them; "rollout".
Json image_attention_json(const ImageSubject& subject, const ImageMaps& maps);
/// The heads with their statistics as text, the most important first.
std::string image_heads_table(const ImageSubject& subject, const ImageMaps& maps, size_t most);

}  // namespace heddle::inspect
