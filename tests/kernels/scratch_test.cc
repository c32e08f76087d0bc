// Memory that kernels keep between calls.
#include "heddle/kernels/cpu/scratch.h"

#include <gtest/gtest.h>

#include "heddle/base/error.h"

namespace heddle::cpu {
namespace {

TEST(Buffer, that_found_no_memory_can_be_asked_again) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "its allocator ends the process";
#endif
  Buffer buffer;
  buffer.reserve(100);
  try {
    buffer.reserve(int64_t{1} << 60);
    FAIL() << "no error";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::system);
  }
  EXPECT_EQ(buffer.data(), nullptr);
  char* const again = buffer.reserve(1000);
  ASSERT_NE(again, nullptr);
  again[999] = 1;
}

}  // namespace
}  // namespace heddle::cpu
