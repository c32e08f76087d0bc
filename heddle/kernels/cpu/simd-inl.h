// Vectors of f32 over f32 and bf16 memory, and what the kernels compute with them. For use inside
// Highway's foreach_target files only; everything is in heddle::cpu::HWY_NAMESPACE.
//
//   #undef HWY_TARGET_INCLUDE
//   #define HWY_TARGET_INCLUDE "heddle/kernels/cpu/norm.cc"
//   #include "heddle/kernels/cpu/targets.h"
//   #include "hwy/foreach_target.h"
//   #include "heddle/kernels/cpu/simd-inl.h"
#if defined(HEDDLE_KERNELS_CPU_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEDDLE_KERNELS_CPU_SIMD_INL_H_
#undef HEDDLE_KERNELS_CPU_SIMD_INL_H_
#else
#define HEDDLE_KERNELS_CPU_SIMD_INL_H_
#endif

#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "heddle/base/error.h"
#include "heddle/base/parallel.h"
#include "heddle/kernels/cpu/scratch.h"
#include "heddle/kernels/dropout.h"
#include "heddle/tensor/dtype.h"
#include "heddle/tensor/rows.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace heddle::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// At most 16 lanes: a vector then lies inside one 16-column group of Dropout.
using F32 = hn::CappedTag<float, 16>;
using U32 = hn::Rebind<uint32_t, F32>;
using I32 = hn::Rebind<int32_t, F32>;
using U16 = hn::Rebind<uint16_t, F32>;
using Vec = hn::Vec<F32>;
using VecU32 = hn::Vec<U32>;
using VecU16 = hn::Vec<U16>;

/// f32 lanes of a vector.
HWY_INLINE int64_t lanes() { return static_cast<int64_t>(hn::Lanes(F32())); }
HWY_INLINE Vec splat(float value) { return hn::Set(F32(), value); }
HWY_INLINE Vec zero() { return hn::Zero(F32()); }

/// How many lanes of a vector are in use: all of them, or the first `count` (1 .. lanes() - 1).
struct Full {};
struct Tail {
  int64_t count;
};

// ---- f32 <-> bf16

/// The f32 values of bf16 bits.
HWY_INLINE Vec widen(VecU16 bits) {
  return hn::BitCast(F32(), hn::ShiftLeft<16>(hn::PromoteTo(U32(), bits)));
}

/// Rounded to nearest even in the upper 16 bits, anything in the lower; NaN stays NaN
/// (Highway 1.0.3 truncates, hence our own).
HWY_INLINE VecU32 rounded_in_place(Vec v) {
  const U32 du;
  const VecU32 u = hn::BitCast(du, v);
  const VecU32 odd = hn::And(hn::ShiftRight<16>(u), hn::Set(du, 1));
  const VecU32 rounded = hn::Add(u, hn::Add(odd, hn::Set(du, 0x7fff)));
  const VecU32 quiet = hn::Or(u, hn::Set(du, 0x400000));
  return hn::IfThenElse(hn::RebindMask(du, hn::IsNaN(v)), quiet, rounded);
}

/// bf16 bits, rounded to nearest even.
HWY_INLINE VecU16 narrow(Vec v) {
  const VecU32 bits = hn::ShiftRight<16>(rounded_in_place(v));
#if HWY_TARGET <= HWY_AVX3
  return hn::TruncateTo(U16(), bits);
#else
  return hn::DemoteTo(U16(), hn::BitCast(I32(), bits));  // at most 0xffff: nothing saturates
#endif
}

/// The value that bf16 holds instead.
HWY_INLINE Vec as_bf16(Vec v) {
  const VecU32 upper = hn::And(rounded_in_place(v), hn::Set(U32(), 0xffff0000u));
  return hn::BitCast(F32(), upper);
}

// ---- loads and stores

/// Memory whose dtype is known at run time only; kernels that mix dtypes use it.
struct AnyPtr {
  void* data = nullptr;
  bool is_bf16 = false;
};
template <class T>
HWY_INLINE T* offset(T* p, int64_t i) {
  return p + i;
}
HWY_INLINE AnyPtr offset(AnyPtr p, int64_t i) {
  return {static_cast<char*>(p.data) + i * (p.is_bf16 ? 2 : 4), p.is_bf16};
}

// Masked loads read no byte past the tail where the target has such loads; elsewhere the tail goes
// through the stack (Highway's fallback reads whole vectors).
#if HWY_TARGET <= HWY_AVX3
template <class D, class T>
HWY_INLINE hn::Vec<D> load_tail(D d, const T* p, int64_t count) {
  return hn::MaskedLoad(hn::FirstN(d, static_cast<size_t>(count)), d, p);
}
template <class D, class T>
HWY_INLINE void store_tail(hn::Vec<D> v, D d, T* p, int64_t count) {
  hn::BlendedStore(v, hn::FirstN(d, static_cast<size_t>(count)), d, p);
}
#else
template <class D, class T>
HWY_INLINE hn::Vec<D> load_tail(D d, const T* p, int64_t count) {
  HWY_ALIGN T lane[16] = {};
  std::memcpy(lane, p, static_cast<size_t>(count) * sizeof(T));
  return hn::Load(d, lane);
}
template <class D, class T>
HWY_INLINE void store_tail(hn::Vec<D> v, D d, T* p, int64_t count) {
  HWY_ALIGN T lane[16];
  hn::Store(v, d, lane);
  std::memcpy(p, lane, static_cast<size_t>(count) * sizeof(T));
}
#endif

HWY_INLINE Vec load(const float* p, Full) { return hn::LoadU(F32(), p); }
HWY_INLINE Vec load(const float* p, Tail t) { return load_tail(F32(), p, t.count); }
HWY_INLINE Vec load(const bf16* p, Full) {
  return widen(hn::LoadU(U16(), reinterpret_cast<const uint16_t*>(p)));
}
HWY_INLINE Vec load(const bf16* p, Tail t) {
  return widen(load_tail(U16(), reinterpret_cast<const uint16_t*>(p), t.count));
}
/// Lanes beyond a tail are zero.
template <class Part>
HWY_INLINE Vec load(AnyPtr p, Part part) {
  return p.is_bf16 ? load(static_cast<const bf16*>(p.data), part)
                   : load(static_cast<const float*>(p.data), part);
}

HWY_INLINE void store(Vec v, float* p, Full) { hn::StoreU(v, F32(), p); }
HWY_INLINE void store(Vec v, float* p, Tail t) { store_tail(v, F32(), p, t.count); }
HWY_INLINE void store(Vec v, bf16* p, Full) {
  hn::StoreU(narrow(v), U16(), reinterpret_cast<uint16_t*>(p));
}
HWY_INLINE void store(Vec v, bf16* p, Tail t) {
  store_tail(narrow(v), U16(), reinterpret_cast<uint16_t*>(p), t.count);
}
template <class Part>
HWY_INLINE void store(Vec v, AnyPtr p, Part part) {
  if (p.is_bf16) {
    store(v, static_cast<bf16*>(p.data), part);
  } else {
    store(v, static_cast<float*>(p.data), part);
  }
}

/// v as memory of the pointer's type would keep it.
HWY_INLINE Vec round_to(Vec v, const float*) { return v; }
HWY_INLINE Vec round_to(Vec v, const bf16*) { return as_bf16(v); }
HWY_INLINE Vec round_to(Vec v, AnyPtr p) { return p.is_bf16 ? as_bf16(v) : v; }

/// Stores v and returns it as the memory keeps it.
template <class Part>
HWY_INLINE Vec store_rounded(Vec v, float* p, Part part) {
  store(v, p, part);
  return v;
}
HWY_INLINE Vec store_rounded(Vec v, bf16* p, Full) {
  const VecU16 bits = narrow(v);
  hn::StoreU(bits, U16(), reinterpret_cast<uint16_t*>(p));
  return widen(bits);
}
HWY_INLINE Vec store_rounded(Vec v, bf16* p, Tail t) {
  const VecU16 bits = narrow(v);
  store_tail(bits, U16(), reinterpret_cast<uint16_t*>(p), t.count);
  return widen(bits);
}
template <class Part>
HWY_INLINE Vec store_rounded(Vec v, AnyPtr p, Part part) {
  return p.is_bf16 ? store_rounded(v, static_cast<bf16*>(p.data), part)
                   : store_rounded(v, static_cast<float*>(p.data), part);
}

/// v in the lanes in use, `other` elsewhere.
HWY_INLINE Vec keep(Vec v, Vec, Full) { return v; }
HWY_INLINE Vec keep(Vec v, Vec other, Tail t) {
  return hn::IfThenElse(hn::FirstN(F32(), static_cast<size_t>(t.count)), v, other);
}

/// Calls f(column, Full{} or Tail{n}) over the columns [0, width), a vector each.
template <class F>
HWY_INLINE void for_columns(int64_t width, const F& f) {
  const int64_t step = lanes();
  int64_t c = 0;
  for (; c + step <= width; c += step) f(c, Full{});
  if (c < width) f(c, Tail{width - c});
}

/// The same with f(column, part, chain): four chains (0 .. 3) of sums that do not wait for each
/// other; the last columns belong to chain 0.
template <class F>
HWY_INLINE void for_columns_in_chains(int64_t width, const F& f) {
  const int64_t step = lanes();
  int64_t c = 0;
  for (; c + 4 * step <= width; c += 4 * step) {
    f(c, Full{}, 0);
    f(c + step, Full{}, 1);
    f(c + 2 * step, Full{}, 2);
    f(c + 3 * step, Full{}, 3);
  }
  for (; c + step <= width; c += step) f(c, Full{}, 0);
  if (c < width) f(c, Tail{width - c}, 0);
}

/// Element (row, column) of rows as T* or AnyPtr.
template <class T>
HWY_INLINE auto at(const Rows& rows, int64_t row, int64_t column = 0) {
  if constexpr (std::is_same_v<T, AnyPtr>) {
    return offset(AnyPtr{rows.data, rows.dtype == DType::bf16}, row * rows.stride + column);
  } else {
    return rows.row<T>(row) + column;
  }
}

/// Calls f.operator()<T>() with T = float or bf16 if all (present) rows have that dtype, otherwise
/// AnyPtr. Errors: device if a dtype is not one that heddle computes in.
template <class F, class... R>
void visit_rows(const F& f, const R&... rows) {
  const auto all = [&](DType dtype) { return (... && (!rows.data || rows.dtype == dtype)); };
  if (all(DType::f32)) return f.template operator()<float>();
  if (all(DType::bf16)) return f.template operator()<bf16>();
  const auto computable = [](const Rows& r) {
    check(!r.data || r.dtype == DType::f32 || r.dtype == DType::bf16, ErrorKind::device,
          "cannot compute in {}; convert the tensor to f32 or bf16 first", dtype_name(r.dtype));
  };
  (computable(rows), ...);
  f.template operator()<AnyPtr>();
}

/// Calls f.operator()<T>(row) for the rows of y, a block of them at a time on all threads; T as
/// visit_rows() finds it of y and the others.
template <class F, class... R>
void for_each_row(const F& f, const Rows& y, const R&... others) {
  visit_rows(
      [&]<class T>() {
        parallel_blocks(y.rows, rows_per_block(y.width * 4), [&](int64_t begin, int64_t end) {
          for (int64_t r = begin; r < end; ++r) f.template operator()<T>(r);
        });
      },
      y, others...);
}

// ---- sums and maxima of lanes

HWY_INLINE float sum_lanes(Vec v) { return hn::GetLane(hn::SumOfLanes(F32(), v)); }
HWY_INLINE float max_lanes(Vec v) { return hn::GetLane(hn::MaxOfLanes(F32(), v)); }

/// Four running sums, one for each chain of for_columns_in_chains.
struct Chains {
  Vec v[4];
  explicit HWY_INLINE Chains(Vec start) : v{start, start, start, start} {}
  HWY_INLINE float sum() const {
    return sum_lanes(hn::Add(hn::Add(v[0], v[1]), hn::Add(v[2], v[3])));
  }
  HWY_INLINE float max() const {
    return max_lanes(hn::Max(hn::Max(v[0], v[1]), hn::Max(v[2], v[3])));
  }
};

/// The largest of the row's elements, -inf if there are none.
template <class P>
HWY_INLINE float max_row(P p, int64_t width) {
  const Vec lowest = splat(-std::numeric_limits<float>::infinity());
  Chains m(lowest);
  for_columns_in_chains(width, [&](int64_t c, auto part, int chain) HWY_ATTR {
    m.v[chain] = hn::Max(m.v[chain], keep(load(offset(p, c), part), lowest, part));
  });
  return m.max();
}

// ---- functions. The coefficients are our own least-maximum fits (relative error of the fits in
// brackets); what remains is the rounding of the last steps.

/// e^r for |r| <= ln 2 / 2 (1 + 1 %) [3e-9].
HWY_INLINE Vec exp_near_zero(Vec r) {
  Vec p = splat(0x1.6a1a6ep-10f);
  p = hn::MulAdd(p, r, splat(0x1.123fc6p-7f));
  p = hn::MulAdd(p, r, splat(0x1.555916p-5f));
  p = hn::MulAdd(p, r, splat(0x1.55548ap-3f));
  p = hn::MulAdd(p, r, splat(0x1.fffffcp-2f));
  return hn::Add(hn::MulAdd(hn::Mul(r, r), p, r), splat(1.0f));
}
/// x - n ln 2, with ln 2 in two parts, the first of 15 bits.
HWY_INLINE Vec without_powers(Vec x, Vec n) {
  return hn::NegMulAdd(n, splat(0x1.7f7d1cp-20f), hn::NegMulAdd(n, splat(0x1.62e4p-1f), x));
}

/// e^x for x <= 88, infinity from 88.4 to 89; NaN for NaN, and 0 below `least`: x86 takes a hundred
/// times as long for the denormals that start at -87.3.
HWY_INLINE Vec exp_normal(Vec x, float least = -87.3f) {
  // Adding 1.5 * 2^23 rounds x / ln 2 to an integer n, which the lowest bits then hold.
  const Vec magic = splat(0x1.8p23f);
  const Vec shifted = hn::MulAdd(x, splat(0x1.715476p+0f), magic);
  const Vec p = exp_near_zero(without_powers(x, hn::Sub(shifted, magic)));
  const auto exponent = hn::Add(hn::BitCast(I32(), shifted), hn::Set(I32(), 127));
  const Vec power = hn::BitCast(F32(), hn::ShiftLeft<23>(exponent));  // 2^n
  return hn::IfThenZeroElse(hn::Lt(x, splat(least)), hn::Mul(p, power));
}

/// 1 / (1 + e^-x); 0 below -88.4, so that x times it is too.
HWY_INLINE Vec sigmoid_vec(Vec x) {
  return hn::Div(splat(1.0f), hn::Add(splat(1.0f), exp_normal(hn::Min(splat(89.0f), hn::Neg(x)))));
}

/// tanh x: x + x^3 p(x^2) below 0.6 [3e-9], 1 - 2 / (e^2x + 1) above.
HWY_INLINE Vec tanh_vec(Vec x) {
  const Vec u = hn::Mul(x, x);
  Vec p = splat(-0x1.825836p-8f);
  p = hn::MulAdd(p, u, splat(0x1.54b898p-6f));
  p = hn::MulAdd(p, u, splat(-0x1.b898dcp-5f));
  p = hn::MulAdd(p, u, splat(0x1.1109aep-3f));
  p = hn::MulAdd(p, u, splat(-0x1.55553ep-2f));
  const Vec near = hn::MulAdd(hn::Mul(p, u), x, x);
  const Vec a = hn::Abs(x);
  const Vec e = exp_normal(hn::Min(splat(88.0f), hn::Add(a, a)));
  const Vec far = hn::Sub(splat(1.0f), hn::Div(splat(2.0f), hn::Add(e, splat(1.0f))));
  return hn::IfThenElse(hn::Lt(a, splat(0.6f)), near, hn::CopySign(far, x));
}

/// The normal distribution at x: cdf = Phi(x), and gauss = e^(-x^2 / 2).
/// Phi(-x) = erfc(z) / 2, erfc(z) = e^(-z^2) t q(t) [2e-8], z = x / sqrt 2, t = 1 / (1 + 0.3 z).
struct Normal {
  Vec cdf;
  Vec gauss;
};
HWY_INLINE Normal normal_vec(Vec x) {
  const Vec gauss = exp_normal(hn::Mul(hn::Mul(x, x), splat(-0.5f)));
  const Vec t =
      hn::Div(splat(1.0f), hn::MulAdd(hn::Abs(x), splat(0.3f * 0x1.6a09e6p-1f), splat(1.0f)));
  Vec q = splat(-0x1.0953e6p-3f);
  q = hn::MulAdd(q, t, splat(0x1.f1630ap-2f));
  q = hn::MulAdd(q, t, splat(-0x1.067a50p-1f));
  q = hn::MulAdd(q, t, splat(0x1.18ac66p-1f));
  q = hn::MulAdd(q, t, splat(-0x1.852b28p-4f));
  q = hn::MulAdd(q, t, splat(0x1.b885eap-3f));
  q = hn::MulAdd(q, t, splat(0x1.2fb1f8p-3f));
  q = hn::MulAdd(q, t, splat(0x1.5da43cp-3f));
  q = hn::MulAdd(q, t, splat(0x1.5a7ef2p-3f));
  const Vec tail = hn::Mul(hn::Mul(hn::Mul(q, t), gauss), splat(0.5f));
  return {hn::IfThenElse(hn::Gt(x, zero()), hn::Sub(splat(1.0f), tail), tail), gauss};
}

// ---- dropout

/// words[w] = philox({c0, c1, c2, c3}, key)[w] in each lane. Even and odd lanes run apart, one
/// 32-bit value in each 64-bit lane; what a product leaves in the upper half never counts, because
/// products read the lower halves only.
HWY_INLINE void philox_lanes(VecU32 c0, VecU32 c1, VecU32 c2, VecU32 c3, RngKey key,
                             VecU32* HWY_RESTRICT words) {
  const U32 du;
  const auto mul = [](VecU32 a, uint32_t m)
                       HWY_ATTR { return hn::BitCast(U32(), hn::MulEven(a, hn::Set(U32(), m))); };
  const auto high = [](VecU32 a) HWY_ATTR { return hn::Shuffle2301(a); };
  VecU32 e0 = c0, e1 = c1, e2 = c2, e3 = c3;
  VecU32 o0 = high(c0), o1 = high(c1), o2 = high(c2), o3 = high(c3);
  VecU32 key0 = hn::Set(du, key.low), key1 = hn::Set(du, key.high);
  for (int round = 0; round < 10; ++round) {
    const VecU32 ep0 = mul(e0, 0xD2511F53u), ep1 = mul(e2, 0xCD9E8D57u);
    const VecU32 op0 = mul(o0, 0xD2511F53u), op1 = mul(o2, 0xCD9E8D57u);
    e0 = hn::Xor3(high(ep1), e1, key0), e1 = ep1;
    o0 = hn::Xor3(high(op1), o1, key0), o1 = op1;
    e2 = hn::Xor3(high(ep0), e3, key1), e3 = ep0;
    o2 = hn::Xor3(high(op0), o3, key1), o3 = op0;
    key0 = hn::Add(key0, hn::Set(du, 0x9E3779B9u));
    key1 = hn::Add(key1, hn::Set(du, 0xBB67AE85u));
  }
  const auto join = [&](VecU32 even, VecU32 odd) HWY_ATTR { return hn::OddEven(high(odd), even); };
  words[0] = join(e0, o0), words[1] = join(e1, o1);
  words[2] = join(e2, o2), words[3] = join(e3, o3);
}

/// The four Philox words of 16 lanes: words[w][lane] = philox({first + lane, c1, c2, c3}, key)[w].
HWY_INLINE void philox16(uint32_t first, uint32_t c1, uint32_t c2, uint32_t c3, RngKey key,
                         uint32_t (*HWY_RESTRICT words)[16]) {
  const U32 du;
  for (uint32_t begin = 0; begin < 16; begin += static_cast<uint32_t>(hn::Lanes(du))) {
    VecU32 lane[4];
    philox_lanes(hn::Iota(du, first + begin), hn::Set(du, c1), hn::Set(du, c2), hn::Set(du, c3),
                 key, lane);
    for (int w = 0; w < 4; ++w) hn::Store(lane[w], du, words[w] + begin);
  }
}

/// The dropout of one row (and head), see heddle::Dropout. Columns are asked for a vector at a
/// time, each at a multiple of lanes(); nearby columns share one block of Philox.
class DropoutRow {
 public:
  DropoutRow(const Dropout& dropout, int64_t row, uint32_t head = 0)
      : on_(dropout.p > 0),
        key_(dropout.key),
        head_(head),
        threshold_(dropout.threshold()),
        scale_(dropout.keep_scale()) {
    if (on_ && dropout.of_samples) {  // one factor for the row
      scale_ = dropout.factor(row, 0, head);
      on_ = false;
    }
    if (!on_) return;
    position_ = dropout.position[row];
    sample_ = dropout.sample[row];
  }

  /// v * keep_scale in the lanes that are kept, 0 in those that are dropped; v if p is 0.
  HWY_INLINE Vec apply(Vec v, int64_t column) {
    if (!on_) return hn::Mul(v, splat(scale_));
    return hn::IfThenZeroElse(dropped(column), hn::Mul(v, splat(scale_)));
  }

  /// Which lanes are dropped; only if p > 0.
  HWY_INLINE hn::Mask<F32> dropped(int64_t column) {
    const U32 du;
    const auto block = static_cast<uint32_t>(column >> 7);
    if (block != block_) fill(block);
    // The 16 bits at the top of a word against the threshold at the top: what lies below decides
    // nothing, since word < limit exactly if its upper half is below the limit's.
    VecU32 word = hn::Load(du, words_[(column & 127) >> 5] + (column & 15));
    if ((column & 16) == 0) word = hn::ShiftLeft<16>(word);
    return hn::RebindMask(F32(), hn::Lt(word, hn::Set(du, threshold_ << 16)));
  }

 private:
  HWY_NOINLINE void fill(uint32_t block) {
    block_ = block;
    philox16(block * 16, position_, sample_, head_, key_, words_);
  }

  HWY_ALIGN uint32_t words_[4][16];
  bool on_;
  RngKey key_;
  uint32_t position_ = 0, sample_ = 0, head_ = 0, threshold_ = 0;
  uint32_t block_ = 0xffffffffu;
  float scale_ = 1;
};

}  // namespace heddle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HEDDLE_KERNELS_CPU_SIMD_INL_H_
