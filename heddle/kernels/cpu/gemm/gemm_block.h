// What the driver of matrix products (gemm.cc) asks of the code for one kind of arithmetic.
#pragma once

#include <array>
#include <cstdint>
#include <limits>

#include "heddle/kernels/cpu/gelu_pieces.h"
#include "heddle/tensor/rows.h"

namespace heddle::cpu {

/// Where a row of a block goes.
struct PlacedRow {
  int32_t to;     ///< row of c; below 0: nowhere
  int32_t alike;  ///< so many rows from this one on go to c one behind the other, or nowhere
};

/// Some rows times some panels of a packed b, over a part of the inner dimension.
struct GemmBlock {
  const void* a =
      nullptr;           ///< [rows, inner], or groups of rows as GemmCode::pack_transposed has them
  int64_t a_stride = 0;  ///< elements from one row of a to the next
  int64_t group_bytes = 0;         ///< not 0: a is packed; from one group of rows to the next
  int64_t inner = 0;               ///< a multiple of GemmCode::inner_step
  const void* b = nullptr;         ///< first panel, at the first inner element
  int64_t panel_bytes = 0;         ///< from one panel to the next
  bool goes_on = false;            ///< behind the last panel lie those of other blocks
  const bf16* b_scales = nullptr;  ///< of the first panel, where b is QuantizedRows
  Rows c = {};                     ///< the last panel may be wider than what is left of c
  const float* bias = nullptr;     ///< for the columns of c; may be null
  const float* scale = nullptr;    ///< of the rows of a, where a is int8
  bool accumulate = false;         ///< sums are added to c, which is f32
  bool past_caches = false;        ///< c is stored past the caches; its rows begin at lines of them
  Rows next[2] = {};               ///< what the next block will read, if `fetches`
  // Of code that keeps_sums:
  float* sums = nullptr;  ///< where they wait: of one panel, or of each if there are several chunks
  bool begins = true, ends = true;  ///< whether this is the first, the last chunk
  // Of code that takes windows: inner elements of a row lie in runs.
  int64_t run = 0;  ///< not 0: elements of a run; a multiple of GemmCode::inner_step
  const int64_t* starts = nullptr;    ///< bytes from a row's beginning to each of its runs
  int64_t inner_begin = 0;            ///< of the block, counted over all runs
  const PlacedRow* placed = nullptr;  ///< of each row of a; c begins at its first row then, and its
                                      ///< `rows` are those of a
  // Of code that has_tail, for what has been rounded to c:
  Rows added = {};    ///< as c; empty: nothing
  bool relu = false;  ///< behind what is added
  // Of code that has_gelu:
  const GeluPieces* gelu = nullptr;  ///< not null: c gets the activation
  Rows kept = {};                    ///< as c: what is activated goes there; may be empty
};

/// Where b would go to memory and back: blocks of a transposed a pack their part of b themselves,
/// too.
struct PacksOfBoth {
  int64_t inner = 0;  ///< in chunks of so many inner elements; 0: b is packed before
  int64_t sums = std::numeric_limits<int64_t>::max();  ///< a block has no more of them
  int64_t rows = std::numeric_limits<int64_t>::max();  ///< nor of rows
  /// Of a c of more elements b is packed before: too many blocks would pack the same part.
  int64_t most = std::numeric_limits<int64_t>::max();
};

/// The code for one kind of arithmetic. An element of c is summed along the inner dimension in an
/// order that depends on the inner size only, by the same instructions wherever it lies: so its
/// bits depend neither on the block it is computed in nor on the rows beside it.
struct GemmCode {
  int64_t columns;        ///< of a panel
  int64_t inner_step;     ///< panels are filled up with zeros to a multiple of it; so is a
  int64_t inner_chunk;    ///< a good size of the inner dimension of a block; a multiple of the step
  int64_t block_rows;     ///< a good number of rows of a block
  int64_t group_rows;     ///< rows of a packed group of a
  DType packed;           ///< of panels, and of a
  int64_t tail = 0;       ///< bytes after a panel's elements: what else belongs to its columns
  int8_t zero_point = 0;  ///< of int8 rows of a: what stands for zero
  int64_t behind_group = 0;  ///< bytes after a packed group of a
  int64_t crowded = 0;  ///< not 0: rows of a that lie a multiple of so many bytes apart are copied
  bool has_tail = false;  ///< whether blocks can add something and apply ReLU
  bool has_gelu = false;  ///< whether they can apply GELU, in bf16
  bool has_windows =
      false;  ///< whether rows of a may lie in runs, and go to c where they are placed
  PacksOfBoth of_both = {};
  /// Whether sums of chunks before the last wait in GemmBlock::sums, rows filled up to group_rows,
  /// columns to panels, in an order of the code's; else they wait in c, which is f32 then.
  bool keeps_sums = false;
  int64_t inner_at_once = 0;  ///< up to so many inner elements are one chunk all the same
  // Not 0: a c of so many bytes is stored past the caches; where b is constant, so that no gradient
  // keeps c and it is read soon, of as many as the second says.
  int64_t past_caches = 0, past_caches_of_constant = 0;
  bool fetches = false;  ///< whether blocks fetch what the next one will read
  /// Packs columns [0, min(columns, b.width)) of b [inner, n], or rows of b [n, inner] if it is
  /// transposed, as one panel; b starts at the panel.
  void (*pack)(const Rows& b, bool transposed, void* panel);
  /// Packs a [inner, rows] into groups of group_rows rows, the inner dimension filled up, each so
  /// many bytes behind the one before.
  void (*pack_transposed)(const Rows& a, int64_t group_bytes, void* to);
  void (*block)(const GemmBlock&);

  int64_t chunk_of(int64_t inner) const { return inner <= inner_at_once ? inner : inner_chunk; }
};

/// f32 vectors of the best instruction set.
const GemmCode& gemm_f32();
/// The same for products in bf16: b counts as rounded to it.
const GemmCode& gemm_f32_rounding();
/// Products with QuantizedRows: a is rounded in groups of this size. `has_tail`: see GemmCode.
inline GemmCode groups_code(int64_t group, bool has_tail, void (*block)(const GemmBlock&)) {
  return {.columns = 32,
          .inner_step = group,
          .inner_chunk = int64_t{1} << 40,  // all of it
          .block_rows = 256,
          .group_rows = 1,
          .packed = DType::i8,
          .has_tail = has_tail,
          .pack = nullptr,
          .pack_transposed = nullptr,
          .block = block};
}

/// Of blocks for 4 bits in groups of 32 and of 64, then for 8 bits.
using GroupsCodes = std::array<GemmCode, 4>;
inline GroupsCodes groups_codes(bool has_tail, const std::array<void (*)(const GemmBlock&), 4>& b) {
  return {groups_code(32, has_tail, b[0]), groups_code(64, has_tail, b[1]),
          groups_code(32, has_tail, b[2]), groups_code(64, has_tail, b[3])};
}
inline const GemmCode& code_of(const GroupsCodes& codes, int bits, int64_t group) {
  return codes[(bits == 8 ? 2 : 0) + (group == 64 ? 1 : 0)];
}

/// int8 by vectors of the best instruction set.
const GemmCode& gemm_int8();
/// The same with QuantizedRows of that format.
const GemmCode& gemm_groups(int bits, int64_t group);
#if defined(__x86_64__)
const GemmCode& gemm_avx512_bf16();
const GemmCode& gemm_avx512_fma();
/// `code`, that of f32 by vectors of 512 bits, with blocks of another kind over its packed forms:
/// panels of 32 columns, groups of kPairRows rows.
GemmCode gemm_avx512_f32(GemmCode code);
const GemmCode& gemm_amx();
const GemmCode& gemm_int8_vnni();
const GemmCode& gemm_int8_amx();
const GemmCode& gemm_groups_vnni(int bits, int64_t group);
/// The same bits.
const GemmCode& gemm_groups_amx(int bits, int64_t group);
/// Their common packed form: panels of 32 columns, [inner / 32][2][16 pairs of inner][16 columns];
/// for one block of 32 inner rows that is two tiles of AMX. b may be f32: it is rounded.
void pack_bf16(const Rows& b, bool transposed, void* panel);
/// Groups of 32 rows: [inner / 32][32 rows][32 inner], two tiles of AMX for each 32 inner elements.
void pack_transposed_bf16(const Rows& a, int64_t group_bytes, void* to);
/// Groups of kPairRows rows: of each pair of inner elements, filled up to a multiple of 32, those
/// of all rows of the group. kBehindPairs bytes after each group may be written to.
void pack_pairs(const Rows& a, int64_t group_bytes, void* to);
inline constexpr int64_t kPairRows = 12, kBehindPairs = 64;
#endif

}  // namespace heddle::cpu
