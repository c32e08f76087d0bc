// Rows looked up by number, and the sums of their gradients.
#include "heddle/ops/embedding.h"

#include <numeric>

#include "heddle/ops/elementwise.h"

namespace heddle {
namespace {

using Ids = std::shared_ptr<const std::vector<int32_t>>;

// A copy for the gradient of `table`, null if it has none.
Ids kept(const Tensor& table, std::span<const int32_t> ids) {
  if (!needs_grad({&table})) return nullptr;
  return std::make_shared<const std::vector<int32_t>>(ids.begin(), ids.end());
}

void check_range(const char* what, std::span<const int32_t> ids, int64_t limit, ErrorKind kind) {
  for (size_t i = 0; i < ids.size(); ++i) {
    check(ids[i] >= 0 && ids[i] < limit, kind, "{} {} of row {} is outside the table of {}", what,
          ids[i], i, limit);
  }
}

Tensor scattered(const Tensor& dy, const Ids& ids, float scale, const Dropout& dropout,
                 const Shape& shape) {
  if (ids == nullptr) return {};
  Tensor d = Tensor::zeros(shape, DType::f32);
  kernels().embedding_backward(dy.rows(), ids->data(), scale, dropout, d.rows());
  return d;
}

}  // namespace

Tensor embedding(const Tensor& table, std::span<const int32_t> ids, float scale,
                 const Tensor& positions, std::span<const int32_t> position_ids,
                 const DropoutSpec& spec, std::optional<DType> result) {
  check_range("id", ids, table.size(0), ErrorKind::data);
  const auto rows = static_cast<int64_t>(ids.size());
  if (positions.defined()) {
    check(position_ids.size() == ids.size() && positions.size(1) == table.size(1), ErrorKind::shape,
          "embedding: {} ids, {} position ids, table {}, positions {}", ids.size(),
          position_ids.size(), table.shape(), positions.shape());
    check_range("position", position_ids, positions.size(0), ErrorKind::data);
  }
  Tensor y = Tensor::empty({rows, table.size(1)}, result.value_or(table.dtype()));
  kernels().embedding(table.rows(), ids.data(), scale,
                      positions.defined() ? positions.rows() : Rows{}, position_ids.data(),
                      spec.over(rows), y.rows());
  return record("embedding", {table, positions}, y,
                [ids = kept(table, ids), position_ids = kept(positions, position_ids), spec, scale,
                 table_shape = table.shape(),
                 positions_shape = positions.shape()](const Tensor& dy) -> Grads {
                  const Dropout dropout = spec.over(dy.size(0));
                  return {scattered(dy, ids, scale, dropout, table_shape),
                          scattered(dy, position_ids, 1, dropout, positions_shape)};
                });
}

Tensor add_positions(const Tensor& x, const Tensor& positions,
                     std::span<const int32_t> position_ids, const DropoutSpec& spec) {
  const int64_t rows = x.size(0);
  check(x.rank() == 2 && std::ssize(position_ids) == rows && positions.size(1) == x.size(1),
        ErrorKind::shape, "add_positions: x is {}, positions {}, {} position ids", x.shape(),
        positions.shape(), position_ids.size());
  check_range("position", position_ids, positions.size(0), ErrorKind::data);
  std::vector<int32_t> all(rows);  // x is a table of which each row is looked up
  std::iota(all.begin(), all.end(), 0);
  Tensor y = empty_like(x);
  kernels().embedding(x.rows(), all.data(), 1, positions.rows(), position_ids.data(),
                      spec.over(rows), y.rows());
  return record("add_positions", {x, positions}, y,
                [ids = kept(positions, position_ids), spec,
                 shape = positions.shape()](const Tensor& dy) -> Grads {
                  const Tensor dx = dropout(dy, spec);
                  return {dx, scattered(dx, ids, 1, {}, shape)};
                });
}

Tensor gather_rows(const Tensor& x, std::span<const int32_t> index) {
  check_range("index", index, x.size(0), ErrorKind::shape);
  Tensor y = Tensor::empty({static_cast<int64_t>(index.size()), x.size(1)}, x.dtype());
  kernels().gather_rows(x.rows(), index.data(), y.rows());
  return record(
      "gather_rows", {x}, y,
      [index = kept(x, index), shape = x.shape(), dtype = x.dtype()](const Tensor& dy) -> Grads {
        return {cast(scattered(dy, index, 1, {}, shape), dtype)};
      });
}

}  // namespace heddle
