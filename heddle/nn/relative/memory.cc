// Rows of hidden states from pass to pass.
#include "heddle/nn/relative/memory.h"

#include <algorithm>

#include "heddle/ops/embedding.h"
#include "heddle/ops/shape.h"

namespace heddle::nn {

Memory Memory::before(const Memory* given, const Segments& tokens, int64_t n, int64_t layers,
                      int64_t width, DType dtype) {
  if (given == nullptr || given->layers.empty()) {
    const Tensor x = Tensor::zeros({tokens.count() * n, width}, dtype);  // never written to
    return {Segments::uniform(tokens.count(), n), std::vector<Tensor>(layers, x)};
  }
  const auto held = static_cast<int64_t>(given->layers.size());
  check(given->segments.count() == tokens.count() && held == layers, ErrorKind::shape,
        "the memory is of {} sequences and {} layers; {} and {} are needed",
        given->segments.count(), held, tokens.count(), layers);
  return *given;
}

Memory Memory::next(const std::vector<Tensor>& x, const Segments& tokens, const Keep& keep) const {
  const NoGrad off;
  std::vector<int64_t> lengths;
  std::vector<int32_t> rows;  // of kept and new ones, sequence by sequence
  for (int64_t i = 0; i < tokens.count(); ++i) {
    const int64_t added =
        keep.reuse > 0 ? std::min(keep.reuse, tokens.length(i)) : tokens.length(i);
    const int64_t end = segments.end(i) + tokens.begin(i) + added;
    const int64_t n = std::min(keep.most, segments.length(i) + added);
    for (int64_t r = end - n; r < end; ++r) rows.push_back(static_cast<int32_t>(r));
    lengths.push_back(n);
  }
  Memory result{Segments::from_lengths(lengths), {}};
  for (size_t i = 0; i < x.size(); ++i) {
    const Tensor all = join_segments(layers[i].detached(), segments, x[i].detached(), tokens);
    result.layers.push_back(gather_rows(all, rows));
  }
  return result;
}

}  // namespace heddle::nn
