// Number formats by name, and what the CPU multiplies natively.
#include "heddle/infer/loading/precision.h"

#include "heddle/base/error.h"
#include "heddle/kernels/cpu/matrix_unit.h"

namespace heddle {

Precision resolve_precision(const std::string& name) {
  if (name == "f32") return DType::f32;
  if (name == "bf16") return DType::bf16;
  check(name == "auto" || name == "int8", ErrorKind::usage,
        "`precision` is '{}'; it must be f32, bf16, int8 or auto", name);
  const bool has_native_bf16 = matrix_unit() != MatrixUnit::vectors;
  return {has_native_bf16 ? DType::bf16 : DType::f32, name == "int8"};
}

std::string precision_name(const Precision& precision) {
  return precision.int8 ? "int8" : dtype_name(precision.compute);
}

}  // namespace heddle
