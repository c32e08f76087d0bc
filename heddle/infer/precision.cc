// Number formats by name, and what the CPU multiplies natively.
#include "heddle/infer/precision.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "heddle/base/error.h"

namespace heddle {

bool has_native_bf16() {
#if defined(__x86_64__)
  // avx512f is in GCC's list, which also asks whether the system saves the registers; AMX-BF16
  // (leaf 7, EDX bit 22) and AVX512-BF16 (leaf 7.1, EAX bit 5) are asked for by number.
  if (!__builtin_cpu_supports("avx512f")) return false;
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & (1u << 22))) return true;
  return __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a & (1u << 5));
#else
  return false;
#endif
}

DType resolve_precision(const std::string& name) {
  if (name == "f32") return DType::f32;
  if (name == "bf16") return DType::bf16;
  check(name == "auto", ErrorKind::usage, "--precision is '{}'; it must be f32, bf16 or auto",
        name);
  return has_native_bf16() ? DType::bf16 : DType::f32;
}

}  // namespace heddle
