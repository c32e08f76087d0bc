// Which number format to compute in, by name.
#pragma once

#include <string>

#include "heddle/tensor/dtype.h"

namespace heddle {

/// "f32", "bf16", or "auto": bf16 where the CPU multiplies it natively (AVX-512 BF16 or AMX), else
/// f32. Errors: usage for any other name.
DType resolve_precision(const std::string& name);

/// Whether matrix products in bf16 are faster than in f32 on this CPU.
bool has_native_bf16();

}  // namespace heddle
