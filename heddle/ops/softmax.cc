// Softmax and its gradient, which needs the output only.
#include "heddle/ops/softmax.h"

#include "heddle/kernels/kernels.h"

namespace heddle {

Tensor softmax(const Tensor& x) {
  Tensor y = empty_like(x);
  kernels().softmax(x.rows(), y.rows());
  // dL/dx = y * (dy - sum(y * dy)): needs y only, so x can be freed.
  return record("softmax", {x}, y, [y = y.detached()](const Tensor& dy) -> Grads {
    Tensor dx = empty_like(y);
    kernels().softmax_backward(y.rows(), dy.rows(), dx.rows());
    return {dx};
  });
}

}  // namespace heddle
