// Rows of tables summed, and the product with the whole table.
#include "heddle/nn/embedding.h"

#include <algorithm>

#include "heddle/nn/adaptive.h"
#include "heddle/ops/embedding.h"

namespace heddle::nn {
Embedding::Embedding(std::string name, Parameter& words, Positions positions, Options options)
    : name_(std::move(name)),
      words_(&words),
      positions_(std::move(positions)),
      options_(std::move(options)) {}

Tensor Embedding::operator()(const WordRows& words, const Run& run) const {
  const LayerName layer(name_);
  const std::vector<int32_t> places = words.positions();
  const int64_t needed = places.empty() ? 0 : *std::max_element(places.begin(), places.end()) + 1;
  const Tensor positions = positions_.table(needed, run);
  const DropoutSpec spec = run.dropout(options_.dropout, name_, words.rows);
  const bool is_all = !options_.norm && options_.types == nullptr;
  const Tensor table = is_recording() ? words_->in(run.compute) : words_->in_or_master(run.compute);
  const Tensor x = embedding_as(run.compute, table, words.ids, options_.scale, positions, places,
                                is_all ? spec : DropoutSpec{});
  if (is_all) return x;
  if (options_.types == nullptr) return dropout((*options_.norm)(x), spec);
  std::vector<int32_t> types(words.types.begin(), words.types.end());
  types.resize(words.ids.size());
  const Tensor t = embedding(options_.types->in(run.compute), types, 1, {}, {}, {});
  return dropout(options_.norm ? options_.norm->add(x, t, {}).norm : dropout_add(x, t, {}), spec);
}

Tensor WordOutput::weight(const Run& run) const {
  check(is_product(), ErrorKind::internal, "an adaptive softmax has no one weight");
  return weight_->in(run.compute);
}

Tensor WordOutput::bias() const {
  if (bias_ == nullptr) return {};
  const Tensor b = bias_->in(DType::f32);
  return b.view({bias_->elements()}).with_leaf(b.leaf());
}

int64_t WordOutput::vocab() const {
  return is_product() ? weight_->shape()[0] : adaptive_->vocab();
}

CrossEntropy WordOutput::loss(const Tensor& h, std::span<const int32_t> targets,
                              const CrossEntropyOptions& options, const Run& run) const {
  if (!is_product()) return adaptive_->loss(h, targets, options, run);
  return linear_cross_entropy(h, weight(run), bias(), targets, options);
}

Tensor WordOutput::operator()(const Tensor& h, const Run& run, int64_t first, int64_t count) const {
  if (!is_product()) {
    const Tensor all = adaptive_->log_probabilities(h, run);
    return count < 0 ? all : all.slice(1, first, count).to_contiguous();
  }
  const LayerName layer(weight_->name());
  return product(h, *weight_, bias(), run, {.result = DType::f32, .first = first, .count = count});
}

}  // namespace heddle::nn
