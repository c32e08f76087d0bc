// What the unit for matrix products can do at most: registers times registers, on one thread and on
// all.
#pragma once

#include "heddle/tensor/dtype.h"

namespace heddle::cpu {

/// Multiplies for some milliseconds on this thread as products of such factors do (f32, bf16, i8;
/// see MatrixUnit), with as many sums as hide the latency and without memory.
/// returns: multiplications and additions that were done; 0 where there is no such loop
double multiply_registers(DType factors);

/// Operations a second when all threads do that, over and over for so many seconds; of repetitions
/// the fastest: it is a limit. 0: not known for this CPU.
double register_peak(DType factors, double seconds);

}  // namespace heddle::cpu
