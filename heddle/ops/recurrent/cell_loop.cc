// Steps over a set of sequences that shrinks as they end.
#include "heddle/ops/recurrent/cell_loop.h"

#include <algorithm>
#include <numeric>

#include "heddle/base/parallel.h"
#include "heddle/ops/elementwise.h"

namespace heddle {
namespace {

// Fewer sequences than this do not fill the rows of a matrix unit's tiles: they are worth no thread
// of their own.
constexpr int64_t kLeastSequences = 16;

Rows rows_of(const Tensor& x) { return x.defined() ? x.rows() : Rows(); }

// The rows of the batch that a sequence reads at step t.
int64_t row_of(const Segments& segments, int32_t sequence, int64_t t, bool is_reversed) {
  return is_reversed ? segments.end(sequence) - 1 - t : segments.begin(sequence) + t;
}

StepGroup group_of(std::span<const int32_t> sequences, int64_t first, const Segments& segments,
                   bool is_reversed) {
  StepGroup g{.first = first, .count = std::ssize(sequences)};
  int64_t running = g.count;
  for (int64_t t = 0;; ++t) {
    while (running > 0 && segments.length(sequences[running - 1]) <= t) --running;
    if (running == 0) return g;
    for (const int32_t s : sequences.first(running)) {
      g.rows.push_back(static_cast<int32_t>(row_of(segments, s, t, is_reversed)));
      g.before.push_back(t == 0 ? s
                                : static_cast<int32_t>(row_of(segments, s, t - 1, is_reversed)));
    }
    g.offsets.push_back(std::ssize(g.rows));
  }
}

void check_state(const char* what, const Tensor& x, const Shape& shape, DType dtype) {
  check(!x.defined() || (x.shape() == shape && x.dtype() == dtype), ErrorKind::shape,
        "recurrence: {} is {} {}, it must be {} {}", what, x.defined() ? x.shape() : Shape(),
        x.defined() ? dtype_name(x.dtype()) : "", shape, dtype_name(dtype));
}

}  // namespace

StepPlan::StepPlan(const Segments& segments, bool is_reversed)
    : place_of(segments.count()), last_row(segments.count(), -1), before(segments.rows(), -1) {
  const int64_t n = segments.count();
  std::vector<int32_t> longest(n);
  std::iota(longest.begin(), longest.end(), 0);
  std::stable_sort(longest.begin(), longest.end(),
                   [&](int32_t a, int32_t b) { return segments.length(a) > segments.length(b); });
  const int64_t threads = is_counting() || is_profiling() || in_parallel() ? 1 : num_threads();
  const int64_t parts = std::clamp<int64_t>(n / kLeastSequences, 1, threads);
  for (int64_t part = 0; part < parts; ++part) {
    const int64_t first = std::ssize(order);
    for (int64_t i = part; i < n; i += parts) order.push_back(longest[i]);
    groups.push_back(
        group_of(std::span<const int32_t>(order).subspan(first), first, segments, is_reversed));
  }
  for (int64_t i = 0; i < n; ++i) {
    const int32_t s = order[i];
    place_of[s] = static_cast<int32_t>(i);
    for (int64_t t = 0; t < segments.length(s); ++t) {
      const auto row = static_cast<int32_t>(row_of(segments, s, t, is_reversed));
      before[row] = last_row[s];
      last_row[s] = row;
    }
  }
}

void StepPlan::for_groups(const std::function<void(const StepGroup&)>& f) const {
  parallel_kernels(std::ssize(groups), [&](int64_t i) { f(groups[i]); });
}

CellLoop::CellLoop(const Tensor& x, const StateWeights& weights, const CellState& begin,
                   const Segments& segments, const RecurrenceOptions& options)
    : options_(options),
      x_(x.detached()),
      w_(weights.w.detached()),
      constant_(weights.constant),
      int8_(weights.int8) {
  check(x.rank() == 2 && w_.rank() == 2, ErrorKind::shape, "recurrence: x is {}, w {}", x.shape(),
        w_.shape());
  const int64_t h = w_.size(1), n = segments.count(), gates = gates_of(options.cell) * h;
  const bool rounds = constant_ != 0 && w_.dtype() == DType::f32;
  check(w_.size(0) == gates && x.size(1) == gates && (x.dtype() == w_.dtype() || rounds) &&
            segments.rows() == x.size(0),
        ErrorKind::shape,
        "recurrence: x is {} {}, w {} {}, and there are {} rows of sequences; for a state of {} "
        "they must be [rows, {}] and [{}, {}] of one dtype",
        x.shape(), dtype_name(x.dtype()), w_.shape(), dtype_name(w_.dtype()), segments.rows(), h,
        gates, gates, h);
  check(!int8_ || (constant_ != 0 && w_.dtype() == DType::f32), ErrorKind::internal,
        "recurrence: products in int8 are those of a constant matrix in f32");
  check_state("the bias", weights.bias, {gates}, DType::f32);
  check_state("the state h at the beginning", begin.h, {n, h}, x.dtype());
  check_state("the state c at the beginning", begin.c, {n, h}, DType::f32);
  check(!begin.c.defined() || options.cell == RecurrentCell::lstm, ErrorKind::shape,
        "recurrence: only LSTM has a state c");
  if (weights.bias.defined()) bias_ = weights.bias.detached();
  if (begin.h.defined()) begin_.h = begin.h.detached();
  if (begin.c.defined()) begin_.c = begin.c.detached();
  plan_ = std::make_shared<const StepPlan>(segments, options.is_reversed);
}

// Rows of sequences, or zeros, in the order of the plan.
Tensor CellLoop::in_order(const Tensor& of_sequences, const Shape& shape, DType dtype) const {
  if (!of_sequences.defined()) return Tensor::zeros(shape, dtype);
  Tensor y = Tensor::empty(shape, dtype);
  kernels().gather_rows(of_sequences.rows(), plan_->order.data(), y.rows());
  return y;
}

// The last of each sequence's rows; of one without rows those at the beginning.
Tensor CellLoop::last_of(const Tensor& rows, const Tensor& begin) const {
  Tensor y = Tensor::empty({std::ssize(plan_->order), rows.size(1)}, rows.dtype());
  kernels().gather_rows(rows.rows(), plan_->last_row.data(), y.rows());
  for (int64_t s = 0; s < y.size(0) && begin.defined(); ++s) {
    if (plan_->last_row[s] < 0) {
      kernels().convert(begin.rows().slice(s, 1), y.rows().slice(s, 1));
    }
  }
  return y;
}

Recurrence CellLoop::forward(bool keeps, const BeforeCell& before_cell) {
  const int64_t rows = x_.size(0), h = width();
  const Shape states{std::ssize(plan_->order), h};
  h_ = Tensor::empty({rows, h}, x_.dtype());
  if (options_.cell == RecurrentCell::lstm) c_ = Tensor::empty({rows, h}, DType::f32);
  if (keeps && kept_of(options_.cell) > 0) {
    kept_ = Tensor::empty({rows, kept_of(options_.cell) * h}, x_.dtype());
  }
  const Tensor state = in_order(begin_.h, states, x_.dtype());
  const PackedFactor packed(constant_);
  plan_->for_groups(
      [&](const StepGroup& group) { run(group, state, packed.constant(), before_cell); });
  Recurrence result{.h = h_, .c = c_, .last = {.h = last_of(h_, begin_.h)}};
  if (c_.defined()) result.last.c = last_of(c_, begin_.c);
  return result;
}

void CellLoop::run(const StepGroup& group, const Tensor& state, uint64_t constant,
                   const BeforeCell& before_cell) const {
  const Tensor product = Tensor::empty({group.count, x_.size(1)}, DType::f32);
  const Rows states = state.rows().slice(group.first, group.count);
  for (int64_t t = 0; t < group.steps(); ++t) {
    const LoopStep step{group, t};
    const Rows next = states.slice(0, step.running());
    Rows p;
    if (t > 0 || begin_.h.defined()) {
      p = product.rows().slice(0, step.running());
      kernels().gemm({.a = next,
                      .b = w_.rows(),
                      .c = p,
                      .transpose_b = true,
                      .constant_b = constant,
                      .int8 = int8_});
    }
    kernels().cell({.cell = options_.cell,
                    .rows = step.rows(),
                    .before = step.before(),
                    .x = x_.rows(),
                    .added = before_cell ? before_cell(step, next) : Rows(),
                    .product = p,
                    .bias = bias_.defined() ? bias_.data<float>() : nullptr,
                    .h_before = t > 0 ? h_.rows() : rows_of(begin_.h),
                    .c_before = t > 0 ? rows_of(c_) : rows_of(begin_.c),
                    .h = h_.rows(),
                    .c = rows_of(c_),
                    .kept = rows_of(kept_),
                    .next = next});
  }
}

// What the loop backwards carries from step to step, in the order of the plan, and writes.
struct CellLoop::Carried {
  Tensor dh, dc;      // [sequences, h] f32
  Rows dy;            // of all rows
  Tensor dx, dn;      // [rows, gates h], [rows, h] of GRU
  uint64_t constant;  // of w
};

CellLoop::Gradients CellLoop::backward(const Tensor& dh, const CellState& dlast,
                                       const BehindCell& behind_cell) const {
  const int64_t rows = x_.size(0), h = width();
  const Shape states{std::ssize(plan_->order), h};
  const PackedFactor packed(0);
  Carried carried{.dh = in_order(dlast.h, states, DType::f32),
                  .dc = {},
                  .dy = rows_of(dh),
                  .dx = empty_like(x_),
                  .dn = {},
                  .constant = packed.constant()};
  if (options_.cell == RecurrentCell::lstm) carried.dc = in_order(dlast.c, states, DType::f32);
  if (options_.cell == RecurrentCell::gru) carried.dn = Tensor::empty({rows, h}, x_.dtype());
  plan_->for_groups([&](const StepGroup& group) { run_back(group, carried, behind_cell); });

  Gradients d = sums_over_rows(carried);
  const auto of_sequences = [&](const Tensor& in_order, DType dtype) {
    Tensor y = Tensor::empty(states, dtype);
    kernels().gather_rows(in_order.rows(), plan_->place_of.data(), y.rows());
    return y;
  };
  if (begin_.h.defined()) d.begin.h = of_sequences(carried.dh, x_.dtype());
  if (begin_.c.defined()) d.begin.c = of_sequences(carried.dc, DType::f32);
  return d;
}

// Of x, w and the bias.
CellLoop::Gradients CellLoop::sums_over_rows(const Carried& carried) const {
  const int64_t gates = x_.size(1), h = width();
  Gradients d{.x = carried.dx, .w = Tensor::empty(w_.shape(), DType::f32), .bias = {}, .begin = {}};
  if (bias_.defined()) d.bias = Tensor::empty({gates}, DType::f32);
  const Tensor before = states_before();
  const auto add_gates = [&](const Rows& of_gates, int64_t first) {
    kernels().gemm({.a = of_gates,
                    .b = before.rows(),
                    .c = d.w.rows().slice(first, of_gates.width),
                    .transpose_a = true});
    if (d.bias.defined()) kernels().sum_columns(of_gates, d.bias.data<float>() + first);
  };
  // GRU's blocks of r and z are those of x, that of n is not.
  const int64_t shared = carried.dn.defined() ? gates - h : gates;
  add_gates(d.x.rows().columns(0, shared), 0);
  if (carried.dn.defined()) add_gates(carried.dn.rows(), shared);
  return d;
}

void CellLoop::run_back(const StepGroup& group, const Carried& carried,
                        const BehindCell& behind_cell) const {
  const Tensor block = Tensor::empty({group.count, x_.size(1)}, x_.dtype());
  const Rows dhs = carried.dh.rows().slice(group.first, group.count);
  const Rows dcs =
      carried.dc.defined() ? carried.dc.rows().slice(group.first, group.count) : Rows();
  for (int64_t t = group.steps() - 1; t >= 0; --t) {
    const LoopStep step{group, t};
    const Rows dh = dhs.slice(0, step.running()), dproduct = block.rows().slice(0, step.running());
    kernels().cell_backward({.cell = options_.cell,
                             .rows = step.rows(),
                             .before = step.before(),
                             .h = h_.rows(),
                             .c = rows_of(c_),
                             .kept = rows_of(kept_),
                             .h_before = t > 0 ? h_.rows() : rows_of(begin_.h),
                             .c_before = t > 0 ? rows_of(c_) : rows_of(begin_.c),
                             .dy = carried.dy,
                             .dh = dh,
                             .dc = dcs.data == nullptr ? dcs : dcs.slice(0, step.running()),
                             .dx = carried.dx.rows(),
                             .dn = rows_of(carried.dn),
                             .dproduct = dproduct});
    if (t > 0 || begin_.h.defined()) {
      kernels().gemm({.a = dproduct,
                      .b = w_.rows(),
                      .c = dh,
                      .accumulate = options_.cell == RecurrentCell::gru,
                      .constant_b = carried.constant});
    }
    if (behind_cell) behind_cell(step, {carried.dx.rows(), dproduct, dh});
  }
}

Tensor CellLoop::states_before() const {
  Tensor y = empty_like(h_);
  kernels().gather_rows(h_.rows(), plan_->before.data(), y.rows());
  if (!begin_.h.defined()) return y;
  for (const StepGroup& group : plan_->groups) {
    for (int64_t i = 0; i < (group.steps() > 0 ? group.running(0) : 0); ++i) {
      kernels().convert(begin_.h.rows().slice(group.before[i], 1),
                        y.rows().slice(group.rows[i], 1));
    }
  }
  return y;
}

}  // namespace heddle
