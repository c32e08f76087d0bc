// Matrix products in int8 by vectors of 16-bit integers: a row of a times four rows of b at a time.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heddle/kernels/cpu/gemm/gemm_int8.cc"
#include "heddle/kernels/cpu/targets.h"
#include "hwy/foreach_target.h"
//
#include "heddle/kernels/cpu/gemm/gemm_block.h"
#include "heddle/kernels/cpu/gemm/quantize.h"
#include "heddle/kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heddle::cpu::HWY_NAMESPACE {
namespace {

using I16 = hn::CappedTag<int16_t, 32>;
using HalfI8 = hn::Rebind<int8_t, I16>;
using WideI32 = hn::RepartitionToWide<I16>;

constexpr int64_t kColumns = 4;  // of a panel: [4][inner], and then their scales
constexpr int64_t kInner = 64;   // a multiple of the lanes of I16

void pack(const Rows& b, bool /*transposed*/, void* panel) {
  const int64_t width = (b.width + kInner - 1) / kInner * kInner;
  const int64_t count = std::min(kColumns, b.rows);
  std::memset(panel, 0, static_cast<size_t>(kColumns * width) + kColumns * sizeof(float));
  const Rows q = {panel, kColumns, width, width, DType::i8};
  quantize_rows(b.slice(0, count), 0, q.slice(0, count),
                reinterpret_cast<float*>(static_cast<char*>(panel) + kColumns * width));
}

// The sums of a row times the columns of a panel.
void row_times_panel(const int8_t* a, const int8_t* b, int64_t inner, int32_t* sums) {
  const I16 d;
  const WideI32 wide;
  hn::Vec<WideI32> sum[kColumns][2];
#pragma GCC unroll 4
  for (auto& pair : sum) pair[0] = pair[1] = hn::Zero(wide);
  for (int64_t l = 0; l < inner; l += static_cast<int64_t>(hn::Lanes(d))) {
    const auto x = hn::PromoteTo(d, hn::LoadU(HalfI8(), a + l));
#pragma GCC unroll 4
    for (int c = 0; c < kColumns; ++c) {
      const auto y = hn::PromoteTo(d, hn::LoadU(HalfI8(), b + c * inner + l));
      sum[c][0] = hn::ReorderWidenMulAccumulate(wide, x, y, sum[c][0], sum[c][1]);
    }
  }
#pragma GCC unroll 4
  for (int c = 0; c < kColumns; ++c) {
    sums[c] = hn::GetLane(hn::SumOfLanes(wide, hn::Add(sum[c][0], sum[c][1])));
  }
}

void block(const GemmBlock& g) {
  for (int64_t column = 0; column < g.c.width; column += kColumns) {
    const auto* b = static_cast<const int8_t*>(g.b) + column / kColumns * g.panel_bytes;
    const auto* scale = reinterpret_cast<const float*>(b + kColumns * g.inner);
    const int64_t count = std::min(kColumns, g.c.width - column);
    for (int64_t row = 0; row < g.c.rows; ++row) {
      int32_t sums[kColumns];
      row_times_panel(static_cast<const int8_t*>(g.a) + row * g.a_stride, b, g.inner, sums);
      for (int64_t c = 0; c < count; ++c) {
        float value = static_cast<float>(sums[c]) * (g.scale[row] * scale[c]);
        if (g.bias != nullptr) value += g.bias[column + c];
        visit_float(g.c.dtype, [&]<class T>() { g.c.row<T>(row)[column + c] = T(value); });
      }
    }
  }
}

}  // namespace

const GemmCode& gemm_int8_code() {
  static const GemmCode code = {.columns = kColumns,
                                .inner_step = kInner,
                                .inner_chunk = kMostInt8Inner,
                                .block_rows = 64,
                                .group_rows = 1,
                                .packed = DType::i8,
                                .tail = kColumns * static_cast<int64_t>(sizeof(float)),
                                .pack = pack,
                                .pack_transposed = nullptr,
                                .block = block};
  return code;
}

}  // namespace heddle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heddle::cpu {

HWY_EXPORT(gemm_int8_code);
const GemmCode& gemm_int8() { return HWY_DYNAMIC_DISPATCH(gemm_int8_code)(); }

}  // namespace heddle::cpu
#endif
