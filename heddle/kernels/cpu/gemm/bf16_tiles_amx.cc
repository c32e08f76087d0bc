// Products of tiles by AMX, four sums at a time.
#if defined(__x86_64__)
#include "heddle/kernels/cpu/gemm/amx_shape.h"
#include "heddle/kernels/cpu/gemm/bf16_tiles.h"

namespace heddle::cpu {
namespace {

#pragma GCC push_options
#pragma GCC target("amx-tile,amx-bf16")

// Steps between tiles, in bytes.
struct Steps {
  int64_t left_row, left_inner, right_inner, right_column, sum_row, sum_column;
  explicit Steps(const TileProduct& p)
      : left_row(p.left.row * kTileBytes),
        left_inner(p.left.column * kTileBytes),
        right_inner(p.right.row * kTileBytes),
        right_column(p.right.column * kTileBytes),
        sum_row(p.sum.row * kTileBytes),
        sum_column(p.sum.column * kTileBytes) {}
};

// kRows by kColumns sums, each 1 or 2; a, b and c are the first tiles.
template <int kRows, int kColumns>
inline void multiply_some(const Steps& step, const char* a, const char* b, char* c, int64_t inner,
                          bool accumulate) {
  constexpr bool kLower = kRows == 2, kRight = kColumns == 2;
  char *right = c + step.sum_column, *lower = c + step.sum_row;
  char* last = lower + step.sum_column;
  if (accumulate) {
    _tile_loadd(0, c, 64);
    if constexpr (kRight) _tile_loadd(1, right, 64);
    if constexpr (kLower) _tile_loadd(2, lower, 64);
    if constexpr (kLower && kRight) _tile_loadd(3, last, 64);
  } else {
    _tile_zero(0);
    if constexpr (kRight) _tile_zero(1);
    if constexpr (kLower) _tile_zero(2);
    if constexpr (kLower && kRight) _tile_zero(3);
  }
  for (int64_t l = 0; l < inner; ++l) {
    _tile_loadd(4, a, 64);
    _tile_loadd(6, b, 64);
    if constexpr (kRight) _tile_loadd(7, b + step.right_column, 64);
    if constexpr (kLower) _tile_loadd(5, a + step.left_row, 64);
    _tile_dpbf16ps(0, 4, 6);
    if constexpr (kRight) _tile_dpbf16ps(1, 4, 7);
    if constexpr (kLower) _tile_dpbf16ps(2, 5, 6);
    if constexpr (kLower && kRight) _tile_dpbf16ps(3, 5, 7);
    a += step.left_inner;
    b += step.right_inner;
  }
  _tile_stored(0, c, 64);
  if constexpr (kRight) _tile_stored(1, right, 64);
  if constexpr (kLower) _tile_stored(2, lower, 64);
  if constexpr (kLower && kRight) _tile_stored(3, last, 64);
}

// All rows of kColumns columns of sums.
template <int kColumns>
inline void multiply_columns(const TileProduct& p, const Steps& step, const char* b, char* c) {
  const char* a = p.left.data;
  int64_t rows = p.rows;
  for (; rows >= 2; rows -= 2) {
    multiply_some<2, kColumns>(step, a, b, c, p.inner, p.accumulate);
    a += 2 * step.left_row;
    c += 2 * step.sum_row;
  }
  if (rows > 0) multiply_some<1, kColumns>(step, a, b, c, p.inner, p.accumulate);
}

}  // namespace

void multiply_tiles(const TileProduct& p) {
  memory_is_read();
  const Steps step(p);
  const char* b = p.right.data;
  char* c = p.sum.data;
  int64_t columns = p.columns;
  for (; columns >= 2; columns -= 2) {
    multiply_columns<2>(p, step, b, c);
    b += 2 * step.right_column;
    c += 2 * step.sum_column;
  }
  if (columns > 0) multiply_columns<1>(p, step, b, c);
}

// Loads and zeros do not do it; what the tiles hold is of no use any more.
void stay_awake() { _tile_dpbf16ps(0, 4, 6); }

void begin_tiles() { shape_tiles(16, 16); }
void end_tiles() { _tile_release(); }

#pragma GCC pop_options

}  // namespace heddle::cpu
#endif
