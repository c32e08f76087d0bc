// Products of 16 rows and more with weights of four or eight bits in groups by AMX: a tile product
// holds the inner elements of one group, whose sums go on in f32 as VNNI's do
// (gemm_groups_vnni.cc), to the bit. Rows that are left are VNNI's.
#if defined(__x86_64__)
#include "heddle/kernels/cpu/gemm/amx_shape.h"
#include "heddle/kernels/cpu/gemm/gemm_panel.h"
#include "heddle/kernels/cpu/gemm/groups.h"
#include "heddle/kernels/cpu/scratch.h"

namespace heddle::cpu {
namespace {

#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512bf16,amx-tile,amx-int8")

constexpr int64_t kTile = 16;  // rows, and columns

// Sums of one group on their way from a tile.
struct alignas(64) Dots {
  int32_t at[kTile][kTile];
};

// A panel's weights as tiles take them: fours of inner elements, of 32 columns each, with a sign.
// Eight bits lie so already.
template <int kGroup>
void unpack_four_bits(const char* b, int64_t groups, char* to) {
  const __m512i mask = _mm512_set1_epi8(15), zero_point = _mm512_set1_epi8(8);
  constexpr int64_t kHalf = kGroup * 16;  // bytes of the first or the second half of a group
  for (int64_t g = 0; g < groups; ++g, to += 2 * kHalf) {
    for (int64_t i = 0; i < kHalf; i += 64, b += 64) {
      const __m512i x = _mm512_loadu_si512(b);
      const __m512i low = _mm512_and_si512(x, mask);
      const __m512i high = _mm512_and_si512(_mm512_srli_epi16(x, 4), mask);
      _mm512_storeu_si512(to + i, _mm512_sub_epi8(low, zero_point));
      _mm512_storeu_si512(to + kHalf + i, _mm512_sub_epi8(high, zero_point));
    }
  }
}

// 16 rows of a times a panel of 32 columns, two groups at a time: while tiles multiply two, vectors
// scale the sums of the two before.
template <int kGroup>
class RowsTimesPanel {
 public:
  // units: what a unit of each row stands for, [groups, 16]; scales: of the columns, [groups, 32].
  RowsTimesPanel(const char* a, int64_t a_stride, const float* units, const char* b,
                 const bf16* scales, int64_t groups)
      : a_(a), stride_(a_stride), units_(units), b_(b), scales_(scales), groups_(groups) {}

  void multiply() {
    const __m512 zero = _mm512_setzero_ps();
    for (auto& of_row : sums_) of_row[0] = of_row[1] = zero;
    for (int64_t g = 0; g < groups_ + 2; g += 2) {
      const bool has_first = g < groups_, has_second = g + 1 < groups_;
      if (has_first) multiply_first(g);
      scale(g - 2, 0);
      if (has_second) multiply_second(g + 1);
      scale(g - 2, 4);
      Dots* const to = dots_[g / 2 % 2];
      if (has_first) _tile_stored(0, to[0].at, 64);
      if (has_first) _tile_stored(1, to[1].at, 64);
      scale(g - 2, 8);
      if (has_second) _tile_stored(2, to[2].at, 64);
      if (has_second) _tile_stored(3, to[3].at, 64);
      scale(g - 2, 12);
    }
  }
  void store(const PanelOut& out, int64_t row) const {
    for (int64_t r = 0; r < kTile; ++r) out.store(row + r, sums_[r][0], sums_[r][1]);
  }

 private:
  // Of a panel: a group, and four inner elements of all columns.
  static constexpr int64_t kBytes = kGroup * 32, kFours = 128;

  // Twice, since GCC takes the number of a tile as a literal alone.
  void multiply_first(int64_t g) {
    _tile_loadd(4, a_ + g * kGroup, stride_);
    _tile_loadd(6, b_ + g * kBytes, kFours);
    _tile_loadd(7, b_ + g * kBytes + 64, kFours);
    _tile_zero(0);
    _tile_zero(1);
    _tile_dpbssd(0, 4, 6);
    _tile_dpbssd(1, 4, 7);
  }
  void multiply_second(int64_t g) {
    _tile_loadd(5, a_ + g * kGroup, stride_);
    _tile_loadd(6, b_ + g * kBytes, kFours);
    _tile_loadd(7, b_ + g * kBytes + 64, kFours);
    _tile_zero(2);
    _tile_zero(3);
    _tile_dpbssd(2, 5, 6);
    _tile_dpbssd(3, 5, 7);
  }
  // Four rows of the sums of groups g and g + 1.
  void scale(int64_t g, int row) {
    if (g < 0) return;
    const Dots* const dots = dots_[g / 2 % 2];
    const __m512i first = _mm512_loadu_si512(scales_ + g * 32);
    scale(dots, units_ + g * kTile, widened<0>(first), widened<1>(first), row);
    if (g + 1 == groups_) return;
    const __m512i second = _mm512_loadu_si512(scales_ + (g + 1) * 32);
    scale(dots + 2, units_ + (g + 1) * kTile, widened<0>(second), widened<1>(second), row);
  }
  void scale(const Dots* dots, const float* units, __m512 low, __m512 high, int row) {
#pragma GCC unroll 4
    for (int r = row; r < row + 4; ++r) {
      const __m512 unit = _mm512_set1_ps(units[r]);
      sums_[r][0] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(_mm512_load_si512(dots[0].at[r])),
                                    _mm512_mul_ps(unit, low), sums_[r][0]);
      sums_[r][1] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(_mm512_load_si512(dots[1].at[r])),
                                    _mm512_mul_ps(unit, high), sums_[r][1]);
    }
  }

  const char* a_;
  int64_t stride_;
  const float* units_;
  const char* b_;
  const bf16* scales_;
  int64_t groups_;
  __m512 sums_[kTile][2];
  Dots dots_[2][4];  // of two groups: columns 0 to 15 and 16 to 31 of each
};

// Tiles 0 to 3 for sums, 4 and 5 for a group of 16 rows, 6 and 7 of 16 columns.
void shape(int64_t group) {
  TileShapes s;
  for (int i = 0; i < 8; ++i) s.rows[i] = kTile, s.row_bytes[i] = 64;
  s.row_bytes[4] = s.row_bytes[5] = static_cast<uint16_t>(group);
  s.rows[6] = s.rows[7] = static_cast<uint8_t>(group / 4);
  memory_is_read();
  _tile_loadconfig(&s);
}

template <int kBits, int kGroup>
void block(const GemmBlock& g) {
  const int64_t full = g.c.rows / kTile * kTile, groups = g.inner / kGroup;
  if (full > 0) {
    const auto* const a = static_cast<const char*>(g.a);
    float* const units = scratch<float, 9>(full * groups);
    for (int64_t row = 0; row < full; ++row) {
      const auto* of_row = reinterpret_cast<const RoundedGroup*>(a + row * g.a_stride + g.inner);
      float* const to = units + row / kTile * groups * kTile + row % kTile;
      for (int64_t i = 0; i < groups; ++i) to[i * kTile] = of_row[i].scale;
    }
    char* const unpacked = kBits == 4 ? scratch<char, 10>(g.inner * 32) : nullptr;
    shape(kGroup);
    for (int64_t column = 0; column < g.c.width; column += 32) {
      const char* b = static_cast<const char*>(g.b) + column / 32 * g.panel_bytes;
      const bf16* const scales = g.b_scales + column / 32 * groups * 32;
      if constexpr (kBits == 4) unpack_four_bits<kGroup>(b, groups, unpacked), b = unpacked;
      memory_is_read();
      const PanelOut out(g, column);
      for (int64_t row = 0; row < full; row += kTile) {
        const float* const of_tile = units + row * groups;
        RowsTimesPanel<kGroup> product(a + row * g.a_stride, g.a_stride, of_tile, b, scales,
                                       groups);
        product.multiply();
        product.store(out, row);
      }
    }
    _tile_release();
  }
  if (full == g.c.rows) return;
  GemmBlock rest = g;
  rest.a = static_cast<const char*>(g.a) + full * g.a_stride;
  rest.c = g.c.slice(full, g.c.rows - full);
  if (g.added.data != nullptr) rest.added = g.added.slice(full, g.c.rows - full);
  gemm_groups_vnni(kBits, kGroup).block(rest);
}

#pragma GCC pop_options

}  // namespace

const GemmCode& gemm_groups_amx(int bits, int64_t group) {
  static const GroupsCodes codes =
      groups_codes(true, {block<4, 32>, block<4, 64>, block<8, 32>, block<8, 64>});
  return code_of(codes, bits, group);
}

}  // namespace heddle::cpu
#endif
