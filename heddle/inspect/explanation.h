// One attention call step by step, with its real numbers: of a head of a model, or of matrices.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "heddle/inspect/images/image_subject.h"
#include "heddle/inspect/matrix.h"
#include "heddle/inspect/pages/page.h"
#include "heddle/inspect/subject.h"

namespace heddle::inspect {

/// A step: what is computed, why, and the result.
struct ExplainedStep {
  std::string key;      ///< "scores"
  std::string name;     ///< "Scores"
  std::string formula;  ///< "S = Q Kᵀ"
  std::string text;     ///< for a newcomer
  Matrix result;
  std::vector<std::string> rows = {}, cols = {};  ///< labels; empty: numbers
};

struct Explanation {
  std::string title;
  std::string note = {};  ///< which call, of which model
  std::vector<std::string> queries = {}, keys = {};
  double divisor = 1;
  bool is_causal = false;
  size_t label_width = 12;            ///< columns that a terminal has for the name of a row
  std::optional<CellGrid> grid = {};  ///< keys are its cells, all of them
  std::vector<ExplainedStep> steps = {};
};

/// How a query and a key give a score.
enum class Score { dot, gaussian };

/// Matrices that a reader gives. Either scores, or q and k.
struct ExplainedMatrices {
  std::optional<Matrix> q, k, v, scores;
  Score score = Score::dot;
  std::optional<double> divisor = {};  ///< absent: sqrt(width of q), 1 where there is none
  bool is_causal = false;
  std::vector<std::string> tokens = {};  ///< labels of queries and keys
};

/// Scores (dot: q·k; gaussian: -|q - k|²/2), divided, masked, softmax, weighted sum.
/// Errors: usage, naming the flags, for sizes that do not fit, or numbers too large to be computed.
Explanation explain_matrices(const ExplainedMatrices& given);

/// A head of an attention call, and which of its queries.
struct AskedCall {
  std::function<void(const nn::Observer&)> pass;  ///< of the model, as often as one likes
  std::string path;                               ///< of the model
  std::string call;                               ///< its name
  int64_t head = 0, heads = 0;
  int64_t segment = 0, query = -1;  ///< in its segment; -1: all
  std::vector<std::string> queries = {}, keys = {};
  const char* row = "token";  ///< what a query and a key are
  bool is_cross = false;
  int64_t before = 0;
};

/// The first step with a number that is not finite: "step 3 (Scores)"; "" if there is none. What is
/// hidden is -inf in the mask and behind it, and may be so nowhere else.
std::string step_not_finite(const Explanation& e);

/// The steps of a head of a model, from the inputs X to the output of the whole call, added to e.
/// The projections are the model's; scores and what follows are computed again from them in
/// float64.
void explain_call(Explanation& e, const AskedCall& asked);

struct ExplainedHead {
  std::string kind;  ///< "cross"; empty: the last that the model has
  int64_t layer = 0, head = 0;
};

/// The steps of one head over a text. Errors: usage for a kind, layer or head that is not there, or
/// more than 256 tokens; data for numbers that are not finite; those of explain_call().
Explanation explain_head(const Subject& subject, const ExplainedHead& which);

struct ExplainedCell {
  std::string kind = {};  ///< of a detector: "encoder", "decoder" or "cross"; empty: the last
  std::optional<int64_t> layer = {};  ///< of the kind; absent: the last
  int64_t head = 0;
  /// Row and column, from 0; absent: the first token, or the middle of the image.
  std::optional<std::pair<int64_t, int64_t>> cell = {};
  /// Where queries are a detector's own, from 0; absent: the one that is surest of its object.
  std::optional<int64_t> query = {};
};

/// The same of one query of a head over an image. Errors: usage for a kind, layer, head, cell or
/// query that is not there, a cell where queries are of none, a query where they are cells, or more
/// than 1,024 keys; data for numbers that are not finite.
Explanation explain_cell(const ImageSubject& subject, const ExplainedCell& which);

/// For a terminal: each step with its formula, shape and at most 8 columns and 12 rows of numbers.
std::string explanation_text(const Explanation& e);
Page explanation_page(const Explanation& e);

}  // namespace heddle::inspect
