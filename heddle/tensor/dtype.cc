// The names of the element types.
#include "heddle/tensor/dtype.h"

#include <cstddef>

namespace heddle {

const char* dtype_name(DType dtype) {
  constexpr const char* kNames[] = {"f32", "bf16", "f16", "f64", "i64",
                                    "i32", "i16",  "i8",  "u8",  "bool"};
  return kNames[static_cast<size_t>(dtype)];
}

}  // namespace heddle
