// The state of a run: what a resume needs to end in the same bits.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "heddle/base/json/fields.h"
#include "heddle/io/snapshot.h"
#include "heddle/nn/parameters.h"
#include "heddle/train/optimizer.h"
#include "heddle/train/scores.h"

namespace heddle::train {

/// Weights kept for the average, and how good they were.
struct KeptWeights {
  int64_t update = 0;
  ValidationScore score;
};

/// What one line of the log sums up: updates since the last such line.
struct LogWindow : LossSums {
  double gradient_norm = 0;  ///< sum over updates
  int64_t updates = 0;
  double seconds = 0;  ///< spent on these updates

  template <class V>
  void fields(V& v) {
    v("loss", loss, "");
    v("nll", nll, "");
    v("predicted", predicted, "");
    v("tokens", tokens, "");
    v("gradient_norm", gradient_norm, "");
    v("updates", updates, "");
    v("seconds", seconds, "");
  }
};

/// Place in the data, and what validations have found.
struct Progression {
  int64_t update = 0;  ///< updates done
  int64_t epoch = 0;
  int64_t batch = 0;             ///< batches of this epoch that are done
  double seconds = 0;            ///< spent on training, validating and saving, over all resumes
  int64_t log_bytes = 0;         ///< length of log.jsonl
  std::deque<KeptWeights> kept;  ///< files state/weights-UPDATE.safetensors
  int64_t best_update = 0;       ///< of the validation that gave best/; 0: none yet
  std::string best_kind;         ///< "snapshot", "ema" or "average"
  ValidationScore best;
  double best_cost = 0;  ///< what `select` compares, of that; the mean over `select_window`
  std::map<std::string, std::vector<double>> recent_costs;  ///< of each kind, those of that window
  double stop_best = 0;          ///< best of what early stopping looks at; less is better
  int64_t without_better = 0;    ///< validations since then
  int64_t validated_update = 0;  ///< of the last validation
  bool finished = false;
  std::string corpus;      ///< Task::training_key()
  std::string validation;  ///< Task::validation_key()
  std::string machine;     ///< machine_signature() of the process that saved
  std::string version;     ///< of the heddle that saved; "": before states named it
  LogWindow window;

  /// All but the weights that are kept, the best score, recent costs and the window.
  template <class V>
  void fields(V& v) {
    v("update", update, "");
    v("epoch", epoch, "");
    v("batch", batch, "");
    v("seconds", seconds, "");
    v("log_bytes", log_bytes, "");
    v("best_update", best_update, "");
    v("best_kind", best_kind, "");
    v("best_cost", best_cost, "");
    v("stop_best", stop_best, "");
    v("without_better", without_better, "");
    v("validated_update", validated_update, "");
    v("finished", finished, "");
    v("corpus", corpus, "");
    v("validation", validation, "");
    v("machine", machine, "");
    v("heddle", version, "");
  }
};

/// What a task carries from batch to batch, see Task::carried().
using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

/// The state folder of a run.
class StateFolder {
 public:
  /// `folder` is RUN/state. Locks it. Errors: usage if another process trains there.
  explicit StateFolder(std::string folder);

  /// Reads the last committed state into parameters and optimizer, and what the task carried if it
  /// is asked for. Nothing if there is none. `accept` sees the progression before any tensor is
  /// read, and throws where the run must not go on. Errors: data if files are altered, naming them.
  std::optional<Progression> load(nn::Parameters& parameters, Optimizer& optimizer,
                                  NamedTensors* carried = nullptr,
                                  const std::function<void(const Progression&)>& accept = {});
  /// The same of the state in a folder that another process has locked, which is left as it is.
  static std::optional<Progression> read(
      const std::string& folder, nn::Parameters& parameters, Optimizer& optimizer,
      NamedTensors* carried = nullptr, const std::function<void(const Progression&)>& accept = {});
  /// The progression alone of a state folder, without weights and lock: for a run that is finished.
  static std::optional<Progression> peek(const std::string& folder);
  /// Its fields that the manifest has, no file being looked at. Nothing if none was committed, or
  /// its manifest cannot be read.
  static std::optional<Progression> place(const std::string& folder);
  /// True if a state was committed here.
  bool holds_state() const;
  /// Whether these write a file of that name; what else is in the folder is somebody's, and stays.
  static bool owns(const std::string& name);
  /// Whether a folder holds nothing but such files.
  static bool holds_only_states(const std::string& folder);
  /// Removes all states.
  void clear();
  /// Writes a snapshot and commits it; removes what is not needed any more. moments: whole, one for
  /// each parameter. Errors: system for a full disk; the older state then stays.
  void save(const Progression& progression, const nn::Parameters& parameters,
            std::span<const Moments> moments, const NamedTensors& carried = {});

  /// Keeps the weights of an update for averaging (to be named by the next save()).
  void keep_weights(int64_t update, const nn::Parameters& parameters);
  /// Mean of kept weights, f64 sums in order; one tensor a parameter.
  std::vector<Tensor> average(const std::deque<KeptWeights>& kept,
                              const nn::Parameters& parameters) const;

  /// Seconds that a run has worked, noted between two saves so that a kill does not lose them;
  /// 0 if nothing is noted. A note that cannot be written is none: it is not worth an error.
  double noted_seconds() const;
  void note_seconds(double seconds) const;

 private:
  std::string folder_;
  FolderLock lock_;
  std::optional<Manifest> manifest_;
};

/// Where the instruction set and precision of a run are recorded, as in "avx512+amx bf16": bits are
/// promised equal only for an equal one.
std::string machine_signature(DType compute);

}  // namespace heddle::train
