// Pages of 2 MB: blocks side by side in chunks, the best fit first, free neighbours joined.
#include "heddle/base/large_pages.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <map>
#include <mutex>
#include <set>
#include <utility>

namespace heddle {
namespace {

#ifdef __SANITIZE_ADDRESS__
constexpr bool kShares = false;  // malloc of each block knows where it ends
#else
constexpr bool kShares = true;
#endif

constexpr int64_t kLine = 64, kPage = 2 << 20;
// The system is asked for so much at a time; memory it becomes page by page, as it is written.
constexpr int64_t kChunk = 32 * kPage;
constexpr int64_t kShared = kChunk / 2;  // larger blocks have pages of their own

int64_t rounded(int64_t bytes, int64_t to) { return (bytes + to - 1) / to * to; }

void* own_pages(int64_t bytes) {
  const auto size = static_cast<size_t>(rounded(bytes, kPage));
  void* const data = std::aligned_alloc(kPage, size);
  if (data != nullptr) madvise(data, size, MADV_HUGEPAGE);
  return data;
}

// What is free in the pages that blocks share: ranges that do not touch.
class SharedPages {
 public:
  void* take(int64_t bytes) {
    auto best = by_size_.lower_bound({bytes, nullptr});
    if (best == by_size_.end()) {
      auto* const chunk = static_cast<char*>(own_pages(kChunk));
      if (chunk == nullptr) return nullptr;
      give_back(chunk, kChunk);
      best = by_size_.lower_bound({bytes, nullptr});
    }
    const auto [size, begin] = *best;
    erase(by_address_.find(begin));
    if (size > bytes) insert(begin + bytes, size - bytes);
    return begin;
  }

  void give_back(char* begin, int64_t bytes) {
    const auto after = by_address_.lower_bound(begin);
    if (after != by_address_.begin()) {
      const auto before = std::prev(after);
      if (before->first + before->second == begin) {
        begin = before->first, bytes += before->second;
        erase(before);
      }
    }
    if (after != by_address_.end() && begin + bytes == after->first) {
      bytes += after->second;
      erase(after);
    }
    insert(begin, bytes);
  }

  void release_free() const {
    for (const auto& [begin, bytes] : by_address_) {
      const int64_t skipped = -reinterpret_cast<intptr_t>(begin) & (kPage - 1);
      const int64_t whole = (bytes - skipped) / kPage * kPage;
      if (whole > 0) madvise(begin + skipped, static_cast<size_t>(whole), MADV_DONTNEED);
    }
  }

 private:
  void insert(char* begin, int64_t bytes) {
    by_address_.emplace(begin, bytes);
    by_size_.emplace(bytes, begin);
  }
  void erase(std::map<char*, int64_t>::iterator range) {
    by_size_.erase({range->second, range->first});
    by_address_.erase(range);
  }

  std::map<char*, int64_t> by_address_;
  std::set<std::pair<int64_t, char*>> by_size_;
};

std::mutex shared_mutex;
// Never destroyed: threads and tensors of static lifetime give their memory back after main.
SharedPages& shared_pages() {
  static auto* const pages = new SharedPages;
  return *pages;
}

bool is_shared(int64_t bytes) { return kShares && bytes < kShared; }

int64_t lines_of(int64_t bytes) { return rounded(std::max(bytes, int64_t{1}), kLine); }

}  // namespace

void* allocate_in_large_pages(int64_t bytes) {
  if (is_shared(bytes)) {
    std::lock_guard lock(shared_mutex);
    return shared_pages().take(lines_of(bytes));
  }
  if (bytes >= kPage) return own_pages(bytes);
  return std::aligned_alloc(kLine, static_cast<size_t>(lines_of(bytes)));
}

void free_in_large_pages(void* block, int64_t bytes) {
  if (block == nullptr) return;
  if (!is_shared(bytes)) return std::free(block);
  std::lock_guard lock(shared_mutex);
  shared_pages().give_back(static_cast<char*>(block), lines_of(bytes));
}

void release_free_large_pages() {
  std::lock_guard lock(shared_mutex);
  shared_pages().release_free();
}

}  // namespace heddle
