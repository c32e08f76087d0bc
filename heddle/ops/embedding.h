// Token embeddings plus positions.
#pragma once

#include <optional>
#include <span>

#include "heddle/ops/dropout.h"

namespace heddle {

/// y[r] = dropout(table[ids[r]] * scale + positions[position_ids[r]]), with `positions` undefined
/// or [positions, width]; learned positions get a gradient, others are constants. table: [vocab,
/// width], ids, position_ids: [rows]    returns: [rows, width] of the dtype of table, or of
/// `result`: of an f32 table as its bf16 copy gives it, without the copy. Errors: data if an id is
/// outside the table or a position outside the positions.
Tensor embedding(const Tensor& table, std::span<const int32_t> ids, float scale,
                 const Tensor& positions, std::span<const int32_t> position_ids,
                 const DropoutSpec& spec, std::optional<DType> result = {});
/// y[r] = dropout(x[r] + positions[position_ids[r]]). x: [rows, width], positions: [positions,
/// width], f32 or of the dtype of x, position_ids: [rows]    returns: the shape and dtype of x
/// Errors: as above.
Tensor add_positions(const Tensor& x, const Tensor& positions,
                     std::span<const int32_t> position_ids, const DropoutSpec& spec);
/// y[i] = x[index[i]]. x: [rows, width]    Errors: shape if an index is outside.
/// The gradient of a row that several i have is summed in f32, and rounded to the dtype of x once.
Tensor gather_rows(const Tensor& x, std::span<const int32_t> index);

}  // namespace heddle
