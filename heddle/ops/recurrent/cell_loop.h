// The loop over steps that recurrent ops share: which sequences still run, products of their states
// and cells, forwards and backwards.
#pragma once

#include <functional>
#include <memory>

#include "heddle/ops/recurrent/recurrence.h"

namespace heddle {

/// Sequences that go through all their steps together, the longest first: at each step those that
/// have not ended are the first of them.
struct StepGroup {
  int64_t first = 0, count = 0;        ///< those of StepPlan::order
  std::vector<int64_t> offsets = {0};  ///< [steps + 1] step t has rows [offsets[t], offsets[t + 1])
  std::vector<int32_t> rows = {};      ///< of a step's sequences, in the batch
  std::vector<int32_t> before = {};    ///< rows of the step before; at step 0 numbers of sequences

  int64_t steps() const { return std::ssize(offsets) - 1; }
  /// Sequences that have a step t.
  int64_t running(int64_t t) const { return offsets[t + 1] - offsets[t]; }
};

/// The steps of a batch, cut into groups that threads can take on their own: a sequence's bits do
/// not depend on what it is grouped with.
struct StepPlan {
  std::vector<int32_t> order;     ///< of all sequences: numbers, those of a group together
  std::vector<int32_t> place_of;  ///< of a sequence in that order
  std::vector<int32_t> last_row;  ///< [sequences] the row that each reads last; -1: none
  std::vector<int32_t> before;    ///< [rows] the row that is read before each; -1: none
  std::vector<StepGroup> groups;

  StepPlan(const Segments& segments, bool is_reversed);
  /// Calls f(group) for each, on any thread.
  void for_groups(const std::function<void(const StepGroup&)>& f) const;
};

/// A constant factor of products that is packed once for several; a new one is forgotten at the
/// end.
class PackedFactor {
 public:
  explicit PackedFactor(uint64_t constant)
      : constant_(constant != 0 ? constant : new_constant()), is_own_(constant == 0) {}
  PackedFactor(const PackedFactor&) = delete;
  PackedFactor& operator=(const PackedFactor&) = delete;
  ~PackedFactor() {
    if (is_own_) forget_packed(constant_);
  }
  uint64_t constant() const { return constant_; }

 private:
  uint64_t constant_;
  bool is_own_;
};

/// A step as what stands beside the cell sees it.
struct LoopStep {
  const StepGroup& group;
  int64_t t;
  int64_t running() const { return group.running(t); }
  const int32_t* rows() const { return group.rows.data() + group.offsets[t]; }
  const int32_t* before() const { return group.before.data() + group.offsets[t]; }
};

/// All that the steps of a call read and write.
class CellLoop {
 public:
  /// What else the pre-activations of the input get in a step, [running, gates h] f32, or absent
  /// rows. state: [running, h] that before it.
  using BeforeCell = std::function<Rows(const LoopStep&, const Rows& state)>;
  /// Gradients of a step behind those of its cell.
  struct StepGradients {
    Rows dx;        ///< [rows, gates h] of the input's pre-activations
    Rows dproduct;  ///< [running, gates h] of the state's
    Rows dh;        ///< [running, h] f32 of the state before
  };
  /// Adds what the state before gets otherwise to dh.
  using BehindCell = std::function<void(const LoopStep&, const StepGradients&)>;

  struct Gradients {
    Tensor x, w, bias;
    CellState begin;  ///< of the dtypes of CellState
  };

  CellLoop(const Tensor& x, const StateWeights& weights, const CellState& begin,
           const Segments& segments, const RecurrenceOptions& options);

  /// returns: states and last states, without a place on the tape. `keeps`: for a backward pass
  Recurrence forward(bool keeps, const BeforeCell& before_cell = {});
  /// dh: [rows, h], dlast: what their gradients are; undefined: zeros
  Gradients backward(const Tensor& dh, const CellState& dlast,
                     const BehindCell& behind_cell = {}) const;

  const StepPlan& plan() const { return *plan_; }
  const RecurrenceOptions& options() const { return options_; }
  int64_t width() const { return w_.size(1); }
  /// [rows, h] the state before each token.
  Tensor states_before() const;

 private:
  struct Carried;
  void run(const StepGroup& group, const Tensor& state, uint64_t constant,
           const BeforeCell& before_cell) const;
  void run_back(const StepGroup& group, const Carried& carried, const BehindCell& behind) const;
  Gradients sums_over_rows(const Carried& carried) const;
  Tensor in_order(const Tensor& of_sequences, const Shape& shape, DType dtype) const;
  Tensor last_of(const Tensor& rows, const Tensor& begin) const;

  RecurrenceOptions options_;
  Tensor x_, w_, bias_, h_, c_, kept_;
  CellState begin_;
  uint64_t constant_;
  bool int8_;
  std::shared_ptr<const StepPlan> plan_;
};

}  // namespace heddle
