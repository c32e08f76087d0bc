// Dropout: the mask is computed again for the gradient, never kept.
#include "heddle/ops/dropout.h"

#include <utility>

namespace heddle {

std::shared_ptr<const RowIds> RowIds::of(std::span<const int32_t> rows) const {
  RowIds ids;
  for (const int32_t r : rows) {
    ids.sample.push_back(r < 0 ? 0 : sample[r]);
    ids.position.push_back(r < 0 ? 0 : position[r]);
  }
  return std::make_shared<const RowIds>(std::move(ids));
}

DropoutSpec DropoutSpec::of_head(int64_t head) const {
  const uint64_t own = uint64_t{key.high} << 32 | key.low;
  return {p, make_key(own, 0, hash_name("head"), static_cast<uint64_t>(head)), rows};
}

Dropout DropoutSpec::over(int64_t row_count) const {
  if (p == 0) return {};
  check(p > 0 && p < 1, ErrorKind::usage, "dropout of {}; it must be at least 0 and below 1", p);
  const size_t samples = rows ? rows->sample.size() : 0;
  const size_t positions = rows ? rows->position.size() : 0;
  check(std::cmp_equal(samples, row_count) && positions == samples, ErrorKind::shape,
        "dropout over {} rows got {} numbers of samples and {} positions", row_count, samples,
        positions);
  return {p, key, rows->sample.data(), rows->position.data(), of_samples};
}

DropoutSpec DropoutSource::operator()(double p, const std::string& site,
                                      const std::shared_ptr<const RowIds>& rows) const {
  if (!training || p <= 0) return {};
  if (sites != nullptr) sites->push_back(site);
  return {static_cast<float>(p), make_key(seed, update, hash_name(site)), rows};
}

Tensor dropout(const Tensor& x, const DropoutSpec& spec) {
  if (spec.p == 0) return x;
  Tensor y = empty_like(x);
  const Rows in = x.rows();
  kernels().dropout(in, spec.over(in.rows), y.rows());
  return record("dropout", {x}, y, [spec](const Tensor& dy) -> Grads {
    Tensor dx = empty_like(dy);
    kernels().dropout(dy.rows(), spec.over(dy.rows().rows), dx.rows());
    return {dx};
  });
}

}  // namespace heddle
