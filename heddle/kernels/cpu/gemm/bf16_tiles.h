// Products of matrices that lie in tiles of 1 KB, for computations that keep their matrices in the
// cache and hand the result of a product to the next one, as attention does.
//
// There are three kinds of tiles:
//   left   16 rows of 32 inner elements, bf16
//   right  32 inner elements of 16 columns, bf16: 16 rows of 16 pairs of inner neighbours
//   sum    16 rows of 16 columns, f32
// What a matrix does not fill of its tiles is zero along the inner dimension, anything elsewhere.
#pragma once

#include <cstdint>

#include "heddle/tensor/rows.h"

namespace heddle::cpu {

inline constexpr int64_t kTileBytes = 1024;
inline constexpr int64_t kTileRows = 16;   ///< of left and sum tiles; also columns of right and sum
inline constexpr int64_t kTileInner = 32;  ///< inner elements of left and right tiles

/// Tiles that hold n rows or columns.
inline int64_t tiles_of(int64_t n) { return (n + kTileRows - 1) / kTileRows; }
/// Tiles that hold n inner elements.
inline int64_t inner_tiles_of(int64_t n) { return (n + kTileInner - 1) / kTileInner; }

/// A matrix of tiles, 64-byte aligned; tile (i, j) begins at data + (i * row + j * column) tiles.
struct Tiles {
  char* data = nullptr;
  int64_t row = 0, column = 0;

  char* at(int64_t i, int64_t j) const { return data + (i * row + j * column) * kTileBytes; }
  /// The part that begins at tile (i, j).
  Tiles from(int64_t i, int64_t j) const { return {at(i, j), row, column}; }
};

/// sum = left right, or sum += left right.
struct TileProduct {
  Tiles left;                    ///< [rows, inner]
  Tiles right;                   ///< [inner, columns]
  Tiles sum;                     ///< [rows, columns]
  int64_t rows, columns, inner;  ///< tiles
  bool accumulate = false;
};

/// Whether this machine has AMX or AVX-512 BF16 and is to use it.
bool has_tiles();

/// A sum is added up along the inner dimension, tile by tile, in the same way wherever it lies;
/// inner tiles of zeros change none of its bits (but -0 to +0).
void multiply_tiles(const TileProduct& product);
/// The same by vectors of AVX-512: pairs of inner elements in order, one sum for all. By dot
/// products of pairs, or by FMA, of each pair the even element first.
void multiply_tiles_by_dots(const TileProduct& product);
void multiply_tiles_by_fma(const TileProduct& product);

/// To be called every 100 ns or so during other work between products. After 0.3 us without a
/// product AMX goes to sleep; the next one then takes 0.27 us longer (Xeon of 2023, 2026-11).
void stay_awake();

/// Before and after products; no other matrix product may come between.
void begin_tiles();
void end_tiles();

/// Some rows of some columns of a matrix, bf16 or, as right matrix only, f32, which is rounded. Row
/// i is x.row(index ? index[i] : first + i).
struct TileSource {
  const Rows& x;
  int64_t column, width;  ///< columns [column, column + width)
  int64_t first, count;
  const int32_t* index = nullptr;
};

/// Some rows of a source, in registers: what is stored through pointers could have changed it.
template <class T>
class TileRows {
 public:
  TileRows(const TileSource& source, int64_t first, int64_t most)
      : index_(source.index ? source.index + first : nullptr),
        start_(source.x.row<T>(index_ ? 0 : source.first + first) + source.column),
        stride_(source.x.stride),
        count_(source.count - first < most ? source.count - first : most) {}
  int64_t count() const { return count_; }
  const T* row(int64_t i) const { return start_ + (index_ ? index_[i] : i) * stride_; }

 private:
  const int32_t* index_;
  const T* start_;
  int64_t stride_, count_;
};

/// The source as left matrix; its columns are the inner dimension.
void pack_left(const TileSource& source, const Tiles& to);
/// The source as right matrix; its rows are the inner dimension.
void pack_right(const TileSource& source, const Tiles& to);
/// The transposed source as right matrix; its columns are the inner dimension.
void pack_right_transposed(const TileSource& source, const Tiles& to);
/// The transposed source as left matrix, in pairs of tiles; its rows are the inner dimension.
void pack_left_transposed(const TileSource& source, const Tiles& to);
/// Transposes a left matrix of up to 32 rows and 32 inner elements into another; `rows` and `inner`
/// are tiles' rows that are in use, 16 or 32, of the given matrix and of the other one.
void transpose_left(const Tiles& from, int64_t rows, const Tiles& to, int64_t inner);

}  // namespace heddle::cpu
