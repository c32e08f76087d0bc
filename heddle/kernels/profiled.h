// A table of kernels whose calls are timed.
#pragma once

#include "heddle/kernels/kernels.h"

namespace heddle {

/// The same kernels, each call a ProfiledCall under the kernel's name. There is one such table.
Kernels profiled_kernels(const Kernels& plain);

}  // namespace heddle
