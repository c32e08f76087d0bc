// Which number format to compute in, by name.
#pragma once

#include <string>

#include "heddle/tensor/dtype.h"

namespace heddle {

/// "f32", "bf16", "auto": bf16 where the CPU multiplies it natively (AVX-512 BF16 or AMX), else
/// f32; or "int8": products with weights in int8, all else as auto has it.
/// Errors: usage for any other name.
Precision resolve_precision(const std::string& name);

/// "f32", "bf16" or "int8".
std::string precision_name(const Precision& precision);

}  // namespace heddle
