// Blocks keep their bytes, find room again, and go back to the system.
#include "heddle/base/large_pages.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <vector>

#include "heddle/base/rng.h"

namespace heddle {
namespace {

struct Block {
  unsigned char* data;
  int64_t bytes;
  unsigned char fill;
};

Block new_block(int64_t bytes, unsigned char fill) {
  const Block block{static_cast<unsigned char*>(allocate_in_large_pages(bytes)), bytes, fill};
  std::memset(block.data, fill, static_cast<size_t>(bytes));
  return block;
}

void free_block(const Block& block) { free_in_large_pages(block.data, block.bytes); }

bool is_whole(const Block& block) {
  const std::vector<unsigned char> expected(static_cast<size_t>(block.bytes), block.fill);
  return std::memcmp(block.data, expected.data(), expected.size()) == 0;
}

int64_t resident_bytes() {
  int64_t size = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> size >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

constexpr int64_t kMegabyte = 1 << 20;

TEST(LargePages, blocks_are_aligned_and_share_no_byte) {
  RngStream random(make_key(1, 0, 0));
  std::vector<Block> blocks;
  for (int i = 0; i < 2000; ++i) {
    if (blocks.size() > 40) {
      const size_t at = static_cast<size_t>(random.below(blocks.size()));
      ASSERT_TRUE(is_whole(blocks[at])) << i;
      free_block(blocks[at]);
      blocks.erase(blocks.begin() + static_cast<int64_t>(at));
    }
    const int64_t bytes = 1 + static_cast<int64_t>(random.below(uint64_t{1} << (1 + i % 20)));
    blocks.push_back(new_block(bytes, static_cast<unsigned char>(i)));
    ASSERT_EQ(reinterpret_cast<uintptr_t>(blocks.back().data) % 64, 0u);
  }
  for (const Block& block : blocks) {
    EXPECT_TRUE(is_whole(block));
    free_block(block);
  }
}

TEST(LargePages, blocks_of_no_bytes_are_apart) {
  void *const a = allocate_in_large_pages(0), *const b = allocate_in_large_pages(0);
  EXPECT_NE(a, nullptr);
  EXPECT_NE(a, b);
  free_in_large_pages(a, 0);
  free_in_large_pages(b, 0);
}

TEST(LargePages, block_that_grows_finds_room_where_smaller_ones_were) {
  const int64_t before = resident_bytes();
  for (int64_t bytes = kMegabyte; bytes < 40 * kMegabyte; bytes += kMegabyte / 4) {
    const Block kept = new_block(64, 1), grown = new_block(bytes, 2);
    free_block(grown);
    free_block(kept);
  }
  EXPECT_LT(resident_bytes() - before, 512 * kMegabyte);  // 3 GB were asked for
}

#ifndef __SANITIZE_ADDRESS__  // which keeps what is freed for a while
TEST(LargePages, pages_of_freed_blocks_go_back_to_the_system) {
  std::vector<Block> blocks;
  for (int i = 0; i < 200; ++i) blocks.push_back(new_block(kMegabyte, 3));
  const int64_t full = resident_bytes();
  for (int i = 0; i < 200; ++i) {
    if (i % 20 != 0) free_block(blocks[static_cast<size_t>(i)]);
  }
  release_free_large_pages();
  EXPECT_LT(resident_bytes(), full - 150 * kMegabyte);
  for (int i = 0; i < 200; i += 20) {
    EXPECT_TRUE(is_whole(blocks[static_cast<size_t>(i)]));
    free_block(blocks[static_cast<size_t>(i)]);
  }
}
#endif

}  // namespace
}  // namespace heddle
