// From a dtype known at run time to a C++ type, once per op call.
#pragma once

#include <utility>

#include "heddle/base/error.h"
#include "heddle/tensor/dtype.h"

namespace heddle {

/// Calls f.template operator()<T>() with T = float or bf16.
/// Errors: device if the dtype is not one that heddle computes in.
template <class F>
decltype(auto) visit_float(DType dtype, F&& f) {
  if (dtype == DType::bf16) return std::forward<F>(f).template operator()<bf16>();
  check(dtype == DType::f32, ErrorKind::device,
        "cannot compute in {}; convert the tensor to f32 or bf16 first", dtype_name(dtype));
  return std::forward<F>(f).template operator()<float>();
}

}  // namespace heddle
