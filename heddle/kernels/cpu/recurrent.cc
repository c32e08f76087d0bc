// One step of a recurrent cell, forward and backward: Elman 1990; LSTM as Gers et al. 2000; GRU as
// cuDNN and PyTorch have it, with the reset gate behind the product (Cho et al. 2014, footnote).
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heddle/kernels/cpu/recurrent.cc"
#include "heddle/kernels/recurrent.h"

#include "heddle/base/parallel.h"
#include "heddle/kernels/cpu/scratch.h"
#include "heddle/kernels/cpu/targets.h"
#include "hwy/foreach_target.h"
// after foreach_target.h
#include "heddle/kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heddle::cpu::HWY_NAMESPACE {
namespace {

HWY_INLINE Vec slope_of_sigmoid(Vec s) { return hn::NegMulAdd(s, s, s); }
HWY_INLINE Vec slope_of_tanh(Vec t) { return hn::NegMulAdd(t, t, splat(1.0f)); }

// Columns [c, c + lanes) of row i of an f32 block, zeros where it is absent.
template <class Part>
HWY_INLINE Vec load_or_zero(const Rows& rows, int64_t i, int64_t c, Part part) {
  return rows.data == nullptr ? zero() : load(rows.row<float>(i) + c, part);
}

// The pre-activations of one sequence.
template <class T>
struct PreActivations {
  const CellArgs& a;
  int64_t i, row;

  /// Of the input.
  template <class Part>
  HWY_INLINE Vec input(int64_t c, Part part) const {
    const Vec x = load(at<T>(a.x, row, c), part);
    return a.added.data == nullptr ? x : hn::Add(x, load_or_zero(a.added, i, c, part));
  }
  /// Of the state.
  template <class Part>
  HWY_INLINE Vec state(int64_t c, Part part) const {
    const Vec p = load_or_zero(a.product, i, c, part);
    return a.bias == nullptr ? p : hn::Add(p, load(a.bias + c, part));
  }
  template <class Part>
  HWY_INLINE Vec both(int64_t c, Part part) const {
    return hn::Add(input(c, part), state(c, part));
  }
};

template <class T, class Part>
HWY_INLINE void keep_gates(const CellArgs& a, int64_t row, int64_t c, Vec k0, Vec k1, Vec k2,
                           Vec k3, Part part) {
  if (a.kept.data == nullptr) return;
  const int64_t width = a.h.width;
  store(k0, at<T>(a.kept, row, c), part);
  store(k1, at<T>(a.kept, row, width + c), part);
  store(k2, at<T>(a.kept, row, 2 * width + c), part);
  store(k3, at<T>(a.kept, row, 3 * width + c), part);
}

// The new state of some columns.
template <RecurrentCell kCell, class T, class Part>
HWY_INLINE Vec state_of(const PreActivations<T>& p, int64_t c, Part part) {
  const CellArgs& a = p.a;
  const int64_t width = a.h.width;
  if constexpr (kCell == RecurrentCell::lstm) {
    const Vec i = sigmoid_vec(p.both(c, part)), f = sigmoid_vec(p.both(width + c, part));
    const Vec g = tanh_vec(p.both(2 * width + c, part));
    const Vec o = sigmoid_vec(p.both(3 * width + c, part));
    const Vec before = load_or_zero(a.c_before, a.before[p.i], c, part);
    const Vec cell = hn::MulAdd(f, before, hn::Mul(i, g));
    store(cell, a.c.row<float>(p.row) + c, part);
    keep_gates<T>(a, p.row, c, i, f, g, o, part);
    return hn::Mul(o, tanh_vec(cell));
  } else if constexpr (kCell == RecurrentCell::gru) {
    const Vec r = sigmoid_vec(p.both(c, part)), z = sigmoid_vec(p.both(width + c, part));
    const Vec s = p.state(2 * width + c, part);
    const Vec n = tanh_vec(hn::MulAdd(r, s, p.input(2 * width + c, part)));
    const Vec h =
        a.h_before.data == nullptr ? zero() : load(at<T>(a.h_before, a.before[p.i], c), part);
    keep_gates<T>(a, p.row, c, r, z, n, s, part);
    return hn::MulAdd(z, hn::Sub(h, n), n);
  } else if constexpr (kCell == RecurrentCell::tanh) {
    return tanh_vec(p.both(c, part));
  } else {
    return hn::Max(zero(), p.both(c, part));  // NaN stays
  }
}

template <RecurrentCell kCell, class T>
HWY_INLINE void step_row(const CellArgs& a, int64_t i) {
  const PreActivations<T> p{a, i, a.rows[i]};
  for_columns(a.h.width, [&](int64_t c, auto part) HWY_ATTR {
    const Vec h = state_of<kCell>(p, c, part);
    store(h, at<T>(a.h, p.row, c), part);
    store(h, at<T>(a.next, i, c), part);
  });
}

// The gradients of some columns of one sequence; those of pre-activations go to dx and dproduct.
template <class T>
struct StepBackward {
  const CellBackwardArgs& a;
  int64_t i, row;

  template <class Part>
  HWY_INLINE Vec kept(int64_t gate, int64_t c, Part part) const {
    return load(at<T>(a.kept, row, gate * a.dh.width + c), part);
  }
  template <class Part>
  HWY_INLINE void put(int64_t gate, int64_t c, Vec of_input, Vec of_state, Part part) const {
    store(of_input, at<T>(a.dx, row, gate * a.dh.width + c), part);
    store(of_state, at<T>(a.dproduct, i, gate * a.dh.width + c), part);
  }
  template <class Part>
  HWY_INLINE void lstm(Vec dh, int64_t c, Part part) const {
    const Vec in = kept(0, c, part), f = kept(1, c, part), g = kept(2, c, part);
    const Vec o = kept(3, c, part), t = tanh_vec(load(a.c.row<float>(row) + c, part));
    float* const dc_at = a.dc.row<float>(i) + c;
    const Vec dc = hn::MulAdd(hn::Mul(dh, o), slope_of_tanh(t), load(dc_at, part));
    const Vec before = load_or_zero(a.c_before, a.before[i], c, part);
    const Vec d[] = {hn::Mul(hn::Mul(dc, g), slope_of_sigmoid(in)),
                     hn::Mul(hn::Mul(dc, before), slope_of_sigmoid(f)),
                     hn::Mul(hn::Mul(dc, in), slope_of_tanh(g)),
                     hn::Mul(hn::Mul(dh, t), slope_of_sigmoid(o))};
    for (int64_t gate = 0; gate < 4; ++gate) put(gate, c, d[gate], d[gate], part);
    store(hn::Mul(dc, f), dc_at, part);
  }
  template <class Part>
  HWY_INLINE void gru(Vec dh, int64_t c, Part part) const {
    const Vec r = kept(0, c, part), z = kept(1, c, part), n = kept(2, c, part);
    const Vec h =
        a.h_before.data == nullptr ? zero() : load(at<T>(a.h_before, a.before[i], c), part);
    const Vec d_n = hn::Mul(hn::Mul(dh, hn::Sub(splat(1.0f), z)), slope_of_tanh(n));
    const Vec d_r = hn::Mul(hn::Mul(d_n, kept(3, c, part)), slope_of_sigmoid(r));
    const Vec d_z = hn::Mul(hn::Mul(dh, hn::Sub(h, n)), slope_of_sigmoid(z));
    const Vec of_state = hn::Mul(d_n, r);
    put(0, c, d_r, d_r, part);
    put(1, c, d_z, d_z, part);
    put(2, c, d_n, of_state, part);
    store(of_state, at<T>(a.dn, row, c), part);
    store(hn::Mul(dh, z), a.dh.row<float>(i) + c, part);
  }
};

template <RecurrentCell kCell, class T>
HWY_INLINE void step_backward_row(const CellBackwardArgs& a, int64_t i) {
  const StepBackward<T> step{a, i, a.rows[i]};
  for_columns(a.dh.width, [&](int64_t c, auto part) HWY_ATTR {
    Vec dh = load(a.dh.row<float>(i) + c, part);
    if (a.dy.data != nullptr) dh = hn::Add(dh, load(at<T>(a.dy, step.row, c), part));
    if constexpr (kCell == RecurrentCell::lstm) {
      step.lstm(dh, c, part);
    } else if constexpr (kCell == RecurrentCell::gru) {
      step.gru(dh, c, part);
    } else {
      const Vec h = load(at<T>(a.h, step.row, c), part);
      const Vec d = kCell == RecurrentCell::tanh ? hn::Mul(dh, slope_of_tanh(h))
                                                 : hn::IfThenElseZero(hn::Gt(h, zero()), dh);
      step.put(0, c, d, d, part);
    }
  });
}

// Calls f.operator()<cell>().
template <class F>
void visit_cell(RecurrentCell cell, const F& f) {
  switch (cell) {
    case RecurrentCell::tanh: return f.template operator()<RecurrentCell::tanh>();
    case RecurrentCell::relu: return f.template operator()<RecurrentCell::relu>();
    case RecurrentCell::gru: return f.template operator()<RecurrentCell::gru>();
    case RecurrentCell::lstm: return f.template operator()<RecurrentCell::lstm>();
  }
}

// Sequences of a block of work: what a cell computes for each element is worth more than a load.
int64_t sequences_per_block(int64_t width) { return rows_per_block(width * 16); }

}  // namespace

void cell_impl(const CellArgs& a) {
  visit_cell(a.cell, [&]<RecurrentCell kCell>() {
    visit_rows(
        [&]<class T>() {
          parallel_blocks(a.next.rows, sequences_per_block(a.h.width),
                          [&](int64_t begin, int64_t end) {
                            for (int64_t i = begin; i < end; ++i) step_row<kCell, T>(a, i);
                          });
        },
        a.x, a.h, a.h_before, a.kept, a.next);
  });
}

void cell_backward_impl(const CellBackwardArgs& a) {
  visit_cell(a.cell, [&]<RecurrentCell kCell>() {
    visit_rows(
        [&]<class T>() {
          parallel_blocks(a.dproduct.rows, sequences_per_block(a.dh.width),
                          [&](int64_t begin, int64_t end) {
                            for (int64_t i = begin; i < end; ++i) step_backward_row<kCell, T>(a, i);
                          });
        },
        a.h, a.kept, a.h_before, a.dy, a.dx, a.dn, a.dproduct);
  });
}

}  // namespace heddle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heddle::cpu {
HWY_EXPORT(cell_impl);
HWY_EXPORT(cell_backward_impl);
}  // namespace heddle::cpu

namespace heddle {

RecurrentKernels RecurrentKernels::of_cpu() {
  return {HEDDLE_CPU_KERNEL(cell), HEDDLE_CPU_KERNEL(cell_backward)};
}

}  // namespace heddle
#endif
