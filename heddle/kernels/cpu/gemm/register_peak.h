// What the unit for matrix products can do at most: registers times registers.
#pragma once

#include "heddle/tensor/dtype.h"

namespace heddle::cpu {

/// Multiplies for some milliseconds on this thread as products of such factors do (f32, bf16, i8;
/// see MatrixUnit), with as many sums as hide the latency and without memory.
/// returns: multiplications and additions that were done; 0 where there is no such loop
double multiply_registers(DType factors);

}  // namespace heddle::cpu
