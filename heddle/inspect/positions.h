// The table that tells positions apart, as numbers: computed, or read from a model.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "heddle/base/json/json.h"
#include "heddle/inspect/pages/page.h"
#include "heddle/nn/position.h"

namespace heddle::inspect {

struct PositionOptions {
  std::string kind = "sinusoidal";  ///< or "rotary", "none"; "learned" needs a model
  int64_t positions = 10, width = 8;
  nn::SinusoidalOptions sinusoidal = {};
  double base = 10000;  ///< of rotary: pair i turns by base^(-2i/d) at each position
};

struct PositionTable {
  /// Or "grid": learned, of the cells of an image; "axes": of these, learned of their columns and
  /// rows; "bias": attention has one by distance, the tokens get nothing; "window": such biases of
  /// the heads of an image's windows; "recurrence": they get nothing, and are read in turn.
  std::string kind = {};
  std::string about = {};  ///< what a number is: "PE(pos, 2i) = sin(..), .."
  int64_t positions = 0, columns = 0;
  std::vector<std::string> names = {};  ///< of the columns: "sin 0", "cos 0", ..
  /// Of the rows, where they are no positions: of "window" lines and columns from a query to a key.
  std::vector<std::string> row_names = {};
  int64_t window = 0;              ///< tokens at an edge of one; 0: there are none
  std::vector<float> values = {};  ///< [positions, columns]; of rotary the angles in radians
  /// Rotary: exact products pos * frequency; f32 has too few digits of large angles.
  std::vector<double> frequencies = {};
};

/// Errors: usage for an unknown kind or a size below 1 or beyond 2^26 numbers; shape for an odd
/// width, which has no pairs.
PositionTable position_table(const PositionOptions& options);

/// The table of a model directory or run: the learned one of its encoder or decoder or of the grid
/// over its images, or the biases in its windows, or the computed one that its config names, or the
/// angles by which it turns its heads. stack: of a model with both; "": the encoder, where there is
/// one. positions 0: as many as there are learned ones, else max_position_embeddings, of turned
/// heads 128 of them at most. Errors: usage for a stack of a model that has one; data if there is
/// no such model, it has no such table (saying what it has), or more positions are asked for than
/// were learned.
PositionTable model_positions(const std::string& model, const std::string& stack,
                              int64_t positions);

/// Rows, columns and values; rotary: cosine and sine of each angle too.
Json to_json(const PositionTable& table);

/// The table as a page; `title` goes on after "Positions". Errors: usage beyond 2^22 numbers.
Page positions_page(const PositionTable& table, const std::string& title);

}  // namespace heddle::inspect
