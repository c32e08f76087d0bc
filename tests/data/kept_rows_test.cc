// Rows that are kept: found again, and only if they are as they were written.
#include "heddle/data/kept_rows.h"

#include <gtest/gtest.h>

#include <numeric>

#include "heddle/base/log.h"
#include "tests/base/temporary.h"
#include "tests/support/cli_runner.h"

namespace heddle {
namespace {

std::vector<float> row_of(int64_t n) { return {static_cast<float>(n), 0.5F, -1}; }

TEST(KeptRows, rows_come_back_in_any_order_and_from_the_file) {
  const TemporaryFolder folder;
  std::vector<float> out(3);
  {
    KeptRows cache(folder / "rows", 3);
    EXPECT_FALSE(cache.read(0, out));
    for (const int64_t n : {5, 0, 2}) cache.write(n, row_of(n));
    EXPECT_TRUE(cache.read(5, out));
    EXPECT_EQ(out, row_of(5));
  }
  const KeptRows again(folder / "rows", 3);
  for (int64_t n = 0; n < 9; ++n) {
    EXPECT_EQ(again.read(n, out), n == 0 || n == 2 || n == 5) << n;
    if (n == 2) {
      EXPECT_EQ(out, row_of(2));
    }
  }
}

TEST(KeptRows, row_of_zeros_is_told_from_a_hole) {
  const TemporaryFolder folder;
  KeptRows cache(folder / "rows", 3);
  cache.write(3, std::vector<float>(3));
  std::vector<float> out(3, 7);
  EXPECT_FALSE(cache.read(1, out));
  EXPECT_TRUE(cache.read(3, out));
  EXPECT_EQ(out, std::vector<float>(3));
}

// Whatever byte is another, or however many are left, a row is right or not there.
TEST(KeptRows, damaged_and_cut_rows_are_none) {
  const TemporaryFolder folder;
  const std::string path = folder / "rows";
  {
    KeptRows cache(path, 3);
    for (int64_t n = 0; n < 2; ++n) cache.write(n, row_of(n));
  }
  const std::string whole = testing::read_file(path);
  ASSERT_EQ(std::ssize(whole), 2 * KeptRows::row_bytes(3));
  std::vector<float> out(3);
  for (size_t at = 0; at < whole.size(); ++at) {
    std::string bytes = whole;
    bytes[at] = static_cast<char>(bytes[at] ^ 4);
    testing::write_file(path, bytes);
    const KeptRows cache(path, 3);
    const auto struck = static_cast<int64_t>(at) / KeptRows::row_bytes(3);
    const bool is_filling = static_cast<int64_t>(at) % KeptRows::row_bytes(3) >= 8 + 3 * 4;
    for (int64_t n = 0; n < 2; ++n) {
      EXPECT_EQ(cache.read(n, out), n != struck || is_filling) << at;
    }
    testing::write_file(path, whole.substr(0, at));
    const KeptRows shorter(path, 3);
    EXPECT_EQ(shorter.read(0, out), static_cast<int64_t>(at) >= KeptRows::row_bytes(3)) << at;
    EXPECT_FALSE(shorter.read(1, out)) << at;
  }
}

TEST(KeptRows, row_in_anothers_place_is_none) {
  const TemporaryFolder folder;
  {
    KeptRows cache(folder / "rows", 3);
    cache.write(0, row_of(0));
  }
  const std::string bytes = testing::read_file(folder / "rows");
  testing::write_file(folder / "rows", bytes + bytes);
  const KeptRows cache(folder / "rows", 3);
  std::vector<float> out(3);
  EXPECT_TRUE(cache.read(0, out));
  EXPECT_FALSE(cache.read(1, out));
}

}  // namespace
}  // namespace heddle
