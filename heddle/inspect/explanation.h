// One attention call step by step, with its real numbers: of a head of a model, or of matrices.
#pragma once

#include <optional>
#include <string>
#include <vector>

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
  std::string note;  ///< which call, of which model
  std::vector<std::string> queries, keys;
  double divisor = 1;
  bool is_causal = false;
  std::vector<ExplainedStep> steps;
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
/// Errors: usage, naming the flags, for sizes that do not fit.
Explanation explain_matrices(const ExplainedMatrices& given);

struct ExplainedHead {
  std::string kind;  ///< "cross"; empty: the last that the model has
  int64_t layer = 0, head = 0;
};

/// The same of one head of a model, from the inputs X to the output of the whole call. The
/// projections are the model's; scores and what follows are computed again from them in float64.
/// Errors: usage for a kind, layer or head that is not there, or more than 256 tokens.
Explanation explain_head(const Subject& subject, const ExplainedHead& which);

/// For a terminal: each step with its formula, shape and at most 8 columns and 12 rows of numbers.
std::string explanation_text(const Explanation& e);
Page explanation_page(const Explanation& e);

}  // namespace heddle::inspect
