// Products of a transposed a in parts of the inner dimension.
#include "heddle/kernels/cpu/gemm/gemm_parts.h"

#include <algorithm>
#include <bit>

#include "heddle/base/parallel.h"
#include "heddle/kernels/cpu/gemm/gemm_grid.h"
#include "heddle/kernels/cpu/scratch.h"
#include "heddle/kernels/elementwise.h"

namespace heddle::cpu {

int64_t inner_parts(const GemmCode& code, const GemmArgs& g) {
  // Two threads, in memory: 192 x 64 x 32768 1.50 -> 1.06 ms, 192 x 192 x 8320 .67 -> .45; more
  // elements gain nothing (576 x 192 x 8320, 384 x 384 x 4096).
  constexpr int64_t kMostElements = 64 << 10, kLeastInner = 1280, kMostParts = 8;
  const bool is_plain = g.bias == nullptr && g.added.data == nullptr &&
                        g.pre_activation.data == nullptr && g.activation == Activation::none;
  if (code.of_both.inner == 0 || !g.transpose_a || g.transpose_b || g.c.dtype != DType::f32 ||
      !is_plain || g.c.rows * g.c.width > kMostElements || g.a.rows < 2 * kLeastInner) {
    return 1;
  }
  const auto parts = static_cast<uint64_t>(g.a.rows / kLeastInner);
  return std::min<int64_t>(static_cast<int64_t>(std::bit_floor(parts)), kMostParts);
}

void multiply_in_parts(const GemmArgs& g, int64_t parts, void (*multiply)(const GemmArgs&)) {
  const int64_t inner = round_up(g.a.rows / parts, 64);
  const Rows all = {scratch<float, 13>(parts * g.c.rows * g.c.width), parts * g.c.rows, g.c.width,
                    g.c.width, DType::f32};
  const auto sums = [&](int64_t part) { return all.slice(part * g.c.rows, g.c.rows); };
  parallel_for(parts, [&](int64_t part) {
    const int64_t first = part * inner;
    const int64_t count = part + 1 == parts ? g.a.rows - first : inner;
    multiply({.a = g.a.slice(first, count),
              .b = g.b.slice(first, count),
              .c = sums(part),
              .transpose_a = true});
  });
  const ElementwiseKernels kernels = ElementwiseKernels::of_cpu();
  for (int64_t part = 1; part + 1 < parts; ++part) kernels.add(sums(0), sums(part), sums(0));
  if (g.accumulate) kernels.add(g.c, sums(0), g.c);
  kernels.add(g.accumulate ? g.c : sums(0), sums(parts - 1), g.c);
}

}  // namespace heddle::cpu
