// Which table of kernels a device has.
#include "heddle/base/profile.h"
#include "heddle/kernels/cpu/cpu.h"
#include "heddle/kernels/profiled.h"

namespace heddle {

const Kernels& kernels(Device) {
  if (!is_profiling()) [[likely]] {
    return cpu_kernels();
  }
  static const Kernels profiled = profiled_kernels(cpu_kernels());
  return profiled;
}

}  // namespace heddle
