// Products that their arguments do not make.
#include "heddle/kernels/cpu/gemm/gemm_check.h"

#include "heddle/base/error.h"
#include "heddle/kernels/cpu/gemm/quantize.h"

namespace heddle::cpu {
namespace {

void check_windows(const GemmArgs& g) {
  const GemmWindows& w = *g.windows;
  const auto [height, width] = w.outputs();
  check(takes_windows(g.a.dtype), ErrorKind::internal, "gemm: no windows in {} here",
        dtype_name(g.a.dtype));
  check(g.transpose_b && !g.transpose_a && !g.accumulate && !g.int8 && !is_quantized(g) &&
            g.first == 0 && g.pre_activation.data == nullptr && g.c.dtype == g.a.dtype &&
            (g.activation == Activation::none || g.activation == Activation::relu) &&
            (g.added.data == nullptr || (g.added.rows == g.c.rows && g.added.width == g.c.width &&
                                         g.added.dtype == g.c.dtype)),
        ErrorKind::internal, "gemm: windows times what they cannot be multiplied with");
  check(height > 0 && width > 0 && w.options.padding < w.options.kernel &&
            g.a.rows == w.images * w.size.height * w.size.width && g.a.width == w.channels &&
            g.a.stride == g.a.width && g.c.rows == w.images * height * width &&
            g.c.width == g.b.rows && g.b.width == w.options.kernel * w.line(),
        ErrorKind::internal, "gemm: windows [{}, {}] times [{}, {}] transposed into [{}, {}]",
        g.a.rows, g.a.width, g.b.rows, g.b.width, g.c.rows, g.c.width);
}

}  // namespace

void check_gemm(const GemmArgs& g) {
  if (g.windows != nullptr) return check_windows(g);
  const int64_t m = g.transpose_a ? g.a.width : g.a.rows;
  const int64_t k = g.transpose_a ? g.a.rows : g.a.width;
  const QuantizedRows& q = g.quantized_b;
  const int64_t n = is_quantized(g) ? q.rows : g.transpose_b ? g.b.rows : g.b.width;
  const int64_t inner = is_quantized(g) ? q.width : g.transpose_b ? g.b.width : g.b.rows;
  const bool is_part = g.first > 0 || g.c.width < n;
  check(g.c.rows == m && g.first + g.c.width <= n && inner == k &&
            (g.a.dtype == g.b.dtype || g.b.dtype == DType::f32 || g.int8 || is_quantized(g)),
        ErrorKind::internal, "gemm: [{}, {}] {} times [{}, {}] {} into [{}, {}]", m, k,
        dtype_name(g.a.dtype), inner, n, dtype_name(g.b.dtype), g.c.rows, g.c.width);
  const bool is_constant = is_quantized(g) || (g.transpose_b && g.constant_b != 0);
  check(!is_part || (is_constant && g.first >= 0 && g.first % 64 == 0), ErrorKind::internal,
        "gemm: columns from {} on are no part of a transposed constant b", g.first);
  check(!g.accumulate || g.c.dtype == DType::f32, ErrorKind::internal,
        "gemm: sums are kept in f32, not {}", dtype_name(g.c.dtype));
  check(g.activation == Activation::none || !g.accumulate, ErrorKind::internal,
        "gemm: sums that grow have no activation yet");
  check(g.pre_activation.data == nullptr ||
            (g.activation != Activation::none && g.pre_activation.rows == m &&
             g.pre_activation.width == n && g.pre_activation.dtype == g.c.dtype),
        ErrorKind::internal,
        "gemm: the pre-activation is kept beside an activation, in the shape of c");
  check(g.added.data == nullptr ||
            (!g.accumulate && g.pre_activation.data == nullptr && g.added.rows == m &&
             g.added.width == g.c.width && g.added.dtype == g.c.dtype),
        ErrorKind::internal, "gemm: what is added has the size and dtype of a fresh c");
  check(!g.int8 || (g.transpose_b && !g.transpose_a && g.constant_b != 0 && !g.accumulate),
        ErrorKind::internal, "gemm: int8 needs a plain a, a transposed constant b and a fresh c");
  check(!is_quantized(g) || (!g.transpose_a && !g.accumulate && !g.int8 &&
                             (q.bits == 4 || q.bits == 8) && (q.group == 32 || q.group == 64)),
        ErrorKind::internal,
        "gemm: {} bits in groups of {} need a plain a and a fresh c; there are 4 and 8 bits, "
        "groups of 32 and 64",
        q.bits, q.group);
  check(!g.int8 || k <= kMostInt8Inner, ErrorKind::internal,
        "gemm: sums of {} products in int8 can overflow", k);
}

}  // namespace heddle::cpu
