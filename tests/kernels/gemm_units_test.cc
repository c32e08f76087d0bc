// The tests of matrix products again, in a child that sees fewer instructions, so that the paths
// without AMX, without bf16 and without AVX-512 stay tested.
#include <cstdlib>
#include <filesystem>

#include "heddle/kernels/cpu/gemm/gemm_block.h"
#include "heddle/kernels/cpu/gemm/register_peak.h"
#include "heddle/kernels/cpu/matrix_unit.h"
#include "tests/kernels/another_unit.h"
#include "tests/kernels/kernel_case.h"

namespace heddle::kernel_test {
namespace {

// In a child: the instruction set of the f32 vectors, a number of Highway's.
const bool fewer_vectors = [] {
  const char* target = std::getenv("HEDDLE_TEST_TARGET");
  if (target != nullptr) hwy::SetSupportedTargetsForTest(std::atoll(target));
  return target != nullptr;
}();

// In a child, which may be limited, and here.
TEST(MatrixUnit, vectors_are_those_of_all_kernels) {
  const char* wanted = std::getenv("HEDDLE_MATRIX_UNIT");
  if (wanted != nullptr && std::string_view(wanted) == "avx2") {
    EXPECT_EQ(matrix_unit(), MatrixUnit::vectors);
    EXPECT_EQ(vector_set(), "avx2");
  } else if (wanted != nullptr) {
    int most = 0;
    while (matrix_unit_name(static_cast<MatrixUnit>(most)) != wanted) ++most;
    EXPECT_LE(static_cast<int>(matrix_unit()), most) << wanted;
  }
#if defined(__x86_64__)
  // Dot products of bf16 are taken by themselves where they are fast: Intel's that have FP16 are
  // not.
  if (wanted == nullptr && __builtin_cpu_is("intel") && __builtin_cpu_supports("avx512fp16")) {
    EXPECT_NE(matrix_unit(), MatrixUnit::avx512_bf16);
  }
#endif
  kernels();
  const int64_t lanes = vector_set() == "avx512" ? 16 : vector_set() == "avx2" ? 8 : 4;
  EXPECT_EQ(cpu::gemm_f32().columns, 2 * lanes);
  // What a bench measures between products leaves it so.
  cpu::register_peak(DType::f32, 0.001);
  EXPECT_EQ(cpu::gemm_f32().columns, 2 * lanes);
}

// Runs the tests of products in a child that may use no more than this. Where that is all there is,
// they are not run twice.
void expect_pass_with(const std::string& unit, int64_t target = 0) {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  std::string command = "HEDDLE_MATRIX_UNIT=" + unit + " ";
  if (target != 0) command += fmt::format("HEDDLE_TEST_TARGET={} ", target);
  const char* tests = target != 0 || is_another_here(unit)
                          ? "Gemm.*:GemmInt8.*:GemmGroups.*:MatrixUnit.*"
                          : "MatrixUnit.*";
  command += fmt::format("'{}' --gtest_brief=1 '--gtest_filter={}' 1>&2", self, tests);
  EXPECT_EQ(std::system(command.c_str()), 0) << command;
}

TEST(GemmWithFewerInstructions, all_holds_without_amx) { expect_pass_with("avx512_bf16"); }
TEST(GemmWithFewerInstructions, all_holds_without_dot_products_of_bf16) {
  expect_pass_with("avx512_fma");
}
TEST(GemmWithFewerInstructions, all_holds_with_vnni_alone) { expect_pass_with("avx512_vnni"); }
TEST(GemmWithFewerInstructions, all_holds_without_bf16) { expect_pass_with("vectors"); }
TEST(GemmWithFewerInstructions, all_holds_without_avx512) { expect_pass_with("avx2"); }
TEST(GemmWithFewerInstructions, all_holds_without_avx2) { expect_pass_with("vectors", HWY_SSE4); }

}  // namespace
}  // namespace heddle::kernel_test
