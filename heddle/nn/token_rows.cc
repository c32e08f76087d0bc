// Positions, orders and memories of tokens.
#include "heddle/nn/token_rows.h"

#include <algorithm>

#include "heddle/ops/embedding.h"
#include "heddle/ops/shape.h"

namespace heddle::nn {

std::vector<int32_t> TokenRows::positions() const {
  if (position_ids.empty()) return segments->positions();
  return {position_ids.begin(), position_ids.end()};
}

void check_ids(std::span<const int32_t> ids, int64_t vocab, const std::string& what,
               ErrorKind kind) {
  for (const int32_t id : ids) {
    check(id >= 0 && id < vocab, kind, "{}: the id {} is not in the vocabulary of {}", what, id,
          vocab);
  }
}

void TokenOrder::check(const Segments& tokens) const {
  const auto rows = static_cast<size_t>(tokens.rows());
  int64_t pairs = 0;
  for (int64_t s = 0; s < tokens.count(); ++s) {
    pairs += tokens.length(s) * tokens.length(s);
  }
  heddle::check(steps.empty() || steps.size() == rows, ErrorKind::shape,
                "there are {} steps for {} tokens", steps.size(), rows);
  heddle::check(hidden.empty() || (steps.empty() && hidden.size() == static_cast<size_t>(pairs)),
                ErrorKind::shape,
                "the mask has {} values and {} steps beside it; it needs {} and none",
                hidden.size(), steps.size(), pairs);
  heddle::check(
      targets.count() == 0 || (targets.count() == tokens.count() &&
                               targets.rows() == static_cast<int64_t>(target_tokens.size())),
      ErrorKind::shape, "there are {} predictions for {} sequences and {} for {}", targets.rows(),
      targets.count(), target_tokens.size(), tokens.count());
  for (int64_t s = 0; s < targets.count(); ++s) {
    for (int64_t t = targets.begin(s); t < targets.end(s); ++t) {
      const int32_t token = target_tokens[t];
      heddle::check(token == -1 || (token >= tokens.begin(s) && token < tokens.end(s)),
                    ErrorKind::shape, "prediction {} is of token {}, which is not in sequence {}",
                    t, token, s);
    }
  }
}

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
