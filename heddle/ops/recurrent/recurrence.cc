// The loop of cells as an op.
#include "heddle/ops/recurrent/recurrence.h"

#include "heddle/ops/recurrent/cell_loop.h"

namespace heddle {

Recurrence recurrence(const Tensor& x, const StateWeights& weights, const CellState& begin,
                      const Segments& segments, const RecurrenceOptions& options) {
  const bool keeps = needs_grad({&x, &weights.w, &weights.bias, &begin.h, &begin.c});
  check(!keeps || !weights.int8, ErrorKind::internal, "recurrence: int8 has no gradient");
  const auto loop = std::make_shared<CellLoop>(x, weights, begin, segments, options);
  Recurrence y = loop->forward(keeps);
  const std::vector<Tensor> inputs = {x, weights.w, weights.bias, begin.h, begin.c};
  const BackwardMany backward = [loop](std::span<const Tensor> dys) -> Grads {
    const CellLoop::Gradients d =
        loop->backward(dys[0], {dys[1], dys.size() > 2 ? dys[2] : Tensor()});
    return {d.x, d.w, d.bias, d.begin.h, d.begin.c};
  };
  if (y.last.c.defined()) {
    record_many("recurrence", inputs, {&y.h, &y.last.h, &y.last.c}, backward);
  } else {
    record_many("recurrence", inputs, {&y.h, &y.last.h}, backward);
  }
  return y;
}

}  // namespace heddle
