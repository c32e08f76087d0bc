// Asks the CPU and the system what they have.
#include "heddle/kernels/cpu/matrix_unit.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "heddle/base/error.h"
#include "heddle/kernels/cpu/targets.h"
#include "hwy/targets.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace heddle {
namespace {

constexpr std::array<std::string_view, 5> kNames = {"vectors", "avx512_vnni", "avx512_fma",
                                                    "avx512_bf16", "amx"};
constexpr std::string_view kNarrow = "avx2";  // vectors, of no more than 256 bits

MatrixUnit of_this_machine() {
#if defined(__x86_64__)
  // GCC's list also asks whether the system saves the registers of AVX-512; AVX512-VNNI (leaf 7,
  // ECX bit 11), AVX512-BF16 (leaf 7.1, EAX bit 5), AMX-BF16 and AMX-TILE (leaf 7, EDX bits 22 and
  // 24) are asked for by number.
  if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
      !__builtin_cpu_supports("avx512vl")) {
    return MatrixUnit::vectors;
  }
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(c & (1u << 11))) return MatrixUnit::vectors;
  const unsigned tiles = d;
  if (!__get_cpuid_count(7, 1, &a, &b, &c, &d) || !(a & (1u << 5))) return MatrixUnit::avx512_vnni;
  constexpr unsigned kTileBf16AndInt8 = (1u << 24) | (1u << 22) | (1u << 25);
  if ((tiles & kTileBf16AndInt8) != kTileBf16AndInt8) return MatrixUnit::avx512_bf16;
  // Linux lets a process use the tiles after it has asked (ARCH_REQ_XCOMP_PERM, XTILEDATA).
  const bool allowed = syscall(SYS_arch_prctl, 0x1023, 18) == 0;
  return allowed ? MatrixUnit::amx : MatrixUnit::avx512_bf16;
#else
  return MatrixUnit::vectors;
#endif
}

// Whether a dot product of bf16 pairs takes longer than the two FMA that do the same: so on Intel's
// cores that also have AVX512-FP16 (leaf 7, EDX bit 23) and are made for tiles: 0.74 ns against
// 0.36 (model 207, 2026-11). On AMD's it takes half as long as these.
bool has_slow_dots() {
#if defined(__x86_64__)
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __builtin_cpu_is("intel") && __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & (1u << 23));
#else
  return false;
#endif
}

// The fastest up to `best`, which the machine has.
MatrixUnit fastest(MatrixUnit best) {
  return best == MatrixUnit::avx512_bf16 && has_slow_dots() ? MatrixUnit::avx512_fma : best;
}

struct Chosen {
  MatrixUnit unit;
  std::string_view vectors;
};

// Of Highway's instruction sets the best goes first. Once: asking it again undoes the choice.
std::string_view choose_vectors(bool is_limited) {
#if defined(__x86_64__)
  int64_t targets = hwy::SupportedTargets();
  if (is_limited) {
    targets &= -HWY_AVX2;
    hwy::GetChosenTarget().Update(targets);
  }
  return targets & HWY_AVX3 ? "avx512" : targets & HWY_AVX2 ? "avx2" : "sse4";
#else
  return "generic";
#endif
}

// As HEDDLE_MATRIX_UNIT wants it, where it is set, of what this machine has.
Chosen choose(std::string_view wanted) {
  const MatrixUnit best = of_this_machine();
  if (wanted.empty()) return {fastest(best), choose_vectors(false)};
  if (wanted == kNarrow) return {MatrixUnit::vectors, choose_vectors(true)};
  const auto it = std::find(kNames.begin(), kNames.end(), wanted);
  check(it != kNames.end(), ErrorKind::usage,
        "HEDDLE_MATRIX_UNIT is '{}'; it must be avx2, vectors, avx512_vnni, avx512_fma, "
        "avx512_bf16 or amx",
        wanted);
  const auto most = static_cast<MatrixUnit>(it - kNames.begin());
  return {most > best ? fastest(best) : most, choose_vectors(false)};
}

const Chosen& chosen() {
  static const Chosen all = [] {
    const char* wanted = std::getenv("HEDDLE_MATRIX_UNIT");
    return choose(wanted == nullptr ? "" : wanted);
  }();
  return all;
}

}  // namespace

MatrixUnit matrix_unit() { return chosen().unit; }
bool is_of_amd() {
#if defined(__x86_64__)
  return __builtin_cpu_is("amd");
#else
  return false;
#endif
}
std::string_view vector_set() { return chosen().vectors; }

std::string_view matrix_unit_name(MatrixUnit unit) { return kNames[static_cast<size_t>(unit)]; }

}  // namespace heddle
