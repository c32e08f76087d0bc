// Attention weights of chosen heads, recomputed row by row, with what can be said of each head; the
// page of `heddle attention`: heads to pick, as lines and as matrices, with their statistics.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "heddle/inspect/pages/page.h"
#include "heddle/inspect/subject.h"

namespace heddle::inspect {

/// What attention goes from and to: "it" to "animal".
struct Link {
  std::string from, to;
};

struct HeadsOptions {
  std::vector<int64_t> layers = {};  ///< from 0; empty: all
  std::vector<int64_t> heads = {};   ///< from 0; empty: all
  std::optional<Link> link = {};
  bool importance = true;  ///< one pass more for each head
  /// Up to so many weights in all maps together are kept whole; else the largest of each row and an
  /// overview, so that memory and page are linear in the length.
  int64_t most_weights = 3'000'000;
  std::function<void(int64_t done, int64_t all)> progress = {};
};

/// The largest weights of each row, and of each block of a grid the largest weight in it.
struct SparseMap {
  int64_t kept = 0;                   ///< weights kept of a row
  std::vector<int64_t> columns = {};  ///< [rows * kept], largest first; -1 where a row has fewer
  std::vector<float> weights = {};    ///< [rows * kept]
  int64_t grid_rows = 0, grid_cols = 0;
  std::vector<float> grid = {};  ///< [grid_rows * grid_cols]
};

/// One head of one attention call.
struct HeadMap {
  size_t kind = 0;  ///< of the subject's
  int64_t layer = 0, head = 0;
  int64_t rows = 0, cols = 0;
  std::vector<float> weights;        ///< [rows * cols] if kept whole
  std::optional<SparseMap> sparse;   ///< else
  double entropy = 0;                ///< mean over the rows of -sum w ln w, nats
  double distance = 0;               ///< mean over the rows of sum w |row - column|, tokens
  std::optional<double> importance;  ///< Subject::change() when its output is zero
  /// Of the link, where this head's sides have both words: mean over the tokens of `from` of the
  /// weight on all tokens of `to`, and how many words get more.
  std::optional<double> link;
  int64_t words_above = 0;
};

/// The maps of the chosen heads, by kind, layer and head. Weights are computed from queries and
/// keys in blocks of rows; nothing of size rows * cols exists beyond `most_weights`.
/// Errors: usage, naming the flag, for a layer, head or word that is not there; data, naming layer
/// and head, for weights that are not finite.
std::vector<HeadMap> attention_maps(const Subject& subject, const HeadsOptions& options);

/// An observer under which one head of a call gives zeros. heads: of the call
nn::Observer without_head(const std::string& call, int64_t head, int64_t heads);

/// The heads by link, strongest first, those without left out; by importance where there is no
/// link. returns: indices of `maps`
std::vector<size_t> ranking(const std::vector<HeadMap>& maps, bool by_link);

/// "encoder, layer 2, head 5", counted from 0 as the fields `layer` and `head` do.
std::string head_name(const Subject& subject, const HeadMap& map);

/// The page over these maps, which opens with maps[shown].
Page attention_page(const Subject& subject, const std::vector<HeadMap>& maps,
                    const std::optional<Link>& link, size_t shown);

/// The same as plain JSON: "sides" (tokens and words), "heads" with statistics and "weights", a row
/// a query, 6 digits; where only the largest are kept, "columns" beside them.
Json attention_json(const Subject& subject, const std::vector<HeadMap>& maps,
                    const std::optional<Link>& link);

/// [rows, cols] weights as an array of rows, 6 digits.
Json weights_json(const std::vector<float>& weights, int64_t rows, int64_t cols);

/// The head that a reader should see first: the best of the link, else the most important one of
/// the last kind (cross attention, if there is any), else the first.
size_t first_shown(const std::vector<HeadMap>& maps);

/// The heads with their statistics as text, the best of the link or the most important first.
std::string heads_table(const Subject& subject, const std::vector<HeadMap>& maps,
                        const std::optional<Link>& link, size_t most);

}  // namespace heddle::inspect
