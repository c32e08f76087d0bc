// Rows of tables summed, and the product with the whole table.
#include "heddle/nn/embedding.h"

#include <algorithm>
#include <numeric>

#include "heddle/nn/adaptive.h"
#include "heddle/ops/embedding.h"

namespace heddle::nn {
namespace {

// 0, 1, ..
std::vector<int32_t> numbered(size_t n) {
  std::vector<int32_t> all(n);
  std::iota(all.begin(), all.end(), 0);
  return all;
}

}  // namespace

Embedding::Embedding(std::string name, Parameter& table, Positions positions, Options options)
    : name_(std::move(name)),
      table_(&table),
      positions_(std::move(positions)),
      options_(std::move(options)) {}

Tensor Embedding::operator()(const TokenRows& tokens, const Run& run) const {
  const LayerName layer(name_);
  std::vector<int32_t> position_ids = tokens.positions();
  const int64_t needed =
      position_ids.empty() ? 0 : *std::max_element(position_ids.begin(), position_ids.end()) + 1;
  for (int32_t& row : position_ids) row += static_cast<int32_t>(positions_.offset());
  const Tensor positions = positions_.table(needed, run);
  const DropoutSpec spec = run.dropout(options_.dropout, name_, tokens.rows);
  const bool is_all = !options_.norm && options_.types == nullptr;
  const bool is_rounded = table_->quantized() != nullptr && !is_recording();
  std::vector<int32_t> rows;  // of a rounded table only those that are looked up
  if (is_rounded) rows = numbered(tokens.ids.size());
  const Tensor table = is_rounded       ? dequantized_rows(*table_->quantized(), tokens.ids)
                       : is_recording() ? table_->in(run.compute)
                                        : table_->in_or_master(run.compute);
  const Tensor x = embedding(table, is_rounded ? rows : tokens.ids, options_.scale, positions,
                             position_ids, is_all ? spec : DropoutSpec{}, run.compute);
  if (is_all) return x;
  if (options_.types == nullptr) return dropout((*options_.norm)(x), spec);
  std::vector<int32_t> types(tokens.types.begin(), tokens.types.end());
  types.resize(tokens.ids.size());
  const Tensor t = embedding(options_.types->in(run.compute), types, 1, {}, {}, {});
  return dropout(options_.norm ? options_.norm->add(x, t, {}).norm : dropout_add(x, t, {}), spec);
}

Tensor OutputProjection::weight(const Run& run) const {
  check(is_product(), ErrorKind::internal, "an adaptive softmax has no one weight");
  return weight_->in(run.compute);
}

Tensor OutputProjection::bias() const {
  if (bias_ == nullptr) return {};
  const Tensor b = bias_->in(DType::f32);
  return b.view({bias_->elements()}).with_leaf(b.leaf());
}

int64_t OutputProjection::vocab() const {
  return is_product() ? weight_->shape()[0] : adaptive_->vocab();
}

CrossEntropy OutputProjection::loss(const Tensor& h, std::span<const int32_t> targets,
                                    const CrossEntropyOptions& options, const Run& run) const {
  if (!is_product()) return adaptive_->loss(h, targets, options, run);
  return linear_cross_entropy(h, weight(run), bias(), targets, options);
}

Tensor OutputProjection::operator()(const Tensor& h, const Run& run, int64_t first,
                                    int64_t count) const {
  if (!is_product()) {
    const Tensor all = adaptive_->log_probabilities(h, run);
    return count < 0 ? all : all.slice(1, first, count).to_contiguous();
  }
  const LayerName layer(weight_->name());
  return product(h, *weight_, bias(), run, {.result = DType::f32, .first = first, .count = count});
}

}  // namespace heddle::nn
