// Which table of kernels a device has.
#include "heddle/kernels/cpu/cpu.h"
#include "heddle/kernels/kernels.h"

namespace heddle {

const Kernels& kernels(Device) { return cpu_kernels(); }

}  // namespace heddle
