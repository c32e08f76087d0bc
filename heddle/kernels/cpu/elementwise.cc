// Kernels that take one element of each operand at a time.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "heddle/kernels/cpu/elementwise.cc"
#include <cstring>

#include "heddle/base/parallel.h"
#include "heddle/kernels/cpu/scratch.h"
#include "heddle/kernels/cpu/targets.h"
#include "heddle/kernels/elementwise.h"
#include "hwy/foreach_target.h"
// after foreach_target.h
#include "heddle/kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heddle::cpu::HWY_NAMESPACE {
namespace {

// Calls f(row, begin, end) over blocks of columns of rows; where every operand is contiguous, all
// is one long row.
template <class F, class... R>
void for_blocks(const F& f, const Rows& y, const R&... inputs) {
  if ((y.contiguous() && ... && inputs.contiguous())) {
    parallel_blocks(y.rows * y.width, 8192, [&](int64_t b, int64_t e) { f(0, b, e); });
    return;
  }
  parallel_blocks(y.rows, rows_per_block(y.width * 4), [&](int64_t b, int64_t e) {
    for (int64_t r = b; r < e; ++r) f(r, 0, y.width);
  });
}

// y = op(x..), element by element.
template <class Op, class... R>
void map(const Op& op, const Rows& y, const R&... x) {
  visit_rows(
      [&]<class T>() {
        for_blocks(
            [&](int64_t r, int64_t b, int64_t e) HWY_ATTR {
              const auto py = at<T>(y, r, b);
              const auto run = [&](auto... px) HWY_ATTR {
                for_columns(e - b, [&](int64_t c, auto part) HWY_ATTR {
                  store(op(load(offset(px, c), part)...), offset(py, c), part);
                });
              };
              run(at<T>(x, r, b)...);
            },
            y, x...);
      },
      y, x...);
}

}  // namespace

void convert_impl(Rows x, Rows y) {
  if (x.dtype == y.dtype) {
    for_blocks(
        [&](int64_t r, int64_t b, int64_t e) {
          std::memcpy(y.slice(r, 1).columns(b, 1).data, x.slice(r, 1).columns(b, 1).data,
                      static_cast<size_t>((e - b) * size_of(x.dtype)));
        },
        y, x);
    return;
  }
  map([](Vec v) HWY_ATTR { return v; }, y, x);
}
void add_impl(Rows a, Rows b, Rows y) {
  map([](Vec u, Vec v) HWY_ATTR { return hn::Add(u, v); }, y, a, b);
}
void mul_impl(Rows a, Rows b, Rows y) {
  map([](Vec u, Vec v) HWY_ATTR { return hn::Mul(u, v); }, y, a, b);
}
void axpby_impl(float alpha, Rows x, float beta, Rows y) {
  if (beta == 0) {
    map([alpha](Vec u) HWY_ATTR { return hn::Mul(splat(alpha), u); }, y, x);
    return;
  }
  map([alpha, beta](Vec u, Vec v)
          HWY_ATTR { return hn::MulAdd(splat(alpha), u, hn::Mul(splat(beta), v)); },
      y, x, y);
}
void add_row_impl(Rows x, const float* bias, Rows y) {
  for_each_row(
      [&]<class T>(int64_t r) HWY_ATTR {
        const auto px = at<T>(x, r);
        const auto py = at<T>(y, r);
        for_columns(y.width, [&](int64_t c, auto part) HWY_ATTR {
          store(hn::Add(load(offset(px, c), part), load(bias + c, part)), offset(py, c), part);
        });
      },
      y, x);
}

}  // namespace heddle::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace heddle::cpu {
HWY_EXPORT(convert_impl);
HWY_EXPORT(add_impl);
HWY_EXPORT(mul_impl);
HWY_EXPORT(axpby_impl);
HWY_EXPORT(add_row_impl);
}  // namespace heddle::cpu

namespace heddle {

ElementwiseKernels ElementwiseKernels::of_cpu() {
  return {HEDDLE_CPU_KERNEL(convert), HEDDLE_CPU_KERNEL(add), HEDDLE_CPU_KERNEL(mul),
          HEDDLE_CPU_KERNEL(axpby), HEDDLE_CPU_KERNEL(add_row)};
}

}  // namespace heddle
#endif
