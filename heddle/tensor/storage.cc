// The caching allocator: blocks by rounded size, in large pages.
#include "heddle/tensor/storage.h"

#include <malloc.h>
#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "heddle/base/error.h"
#include "heddle/base/large_pages.h"

namespace heddle {
namespace {

// Sizes are rounded up to an eighth of their power of two, so that packed batches, whose row
// counts differ each time, find a block of the cache that fits.
int64_t rounded(int64_t bytes) {
  if (bytes <= 512) return 512;
  const int64_t step = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(bytes))) / 8;
  return (bytes + step - 1) / step * step;
}

struct Cache {
  std::mutex mutex;
  std::map<int64_t, std::vector<void*>> free;
  AllocatorStats stats;
  bool fill = false;
};

// Never destroyed: tensors of static lifetime give their memory back after main.
Cache& cache() {
  static Cache* const the_cache = new Cache;
  return *the_cache;
}

void* system_allocate(int64_t capacity) {
  void* data = allocate_in_large_pages(capacity);
  if (data == nullptr) {
    release_cached_memory();
    data = allocate_in_large_pages(capacity);
  }
  check(data != nullptr, ErrorKind::system,
        "out of memory: {} bytes were needed; use a smaller batch or model", capacity);
  return data;
}

thread_local std::shared_ptr<int64_t> untouched;  // bytes in use, while there is UntouchedMemory

std::shared_ptr<Storage> untouched_block(int64_t bytes) {
  const auto size = static_cast<size_t>(std::max<int64_t>(1, bytes));
  void* const data = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  check(data != MAP_FAILED, ErrorKind::system,
        "there are no {} bytes of addresses; use a smaller batch or model", bytes);
  *untouched += bytes;
  const auto free = [size, bytes, in_use = untouched](void* block) {
    munmap(block, size);
    *in_use -= bytes;
  };
  return Storage::borrow(data, bytes, std::shared_ptr<void>(data, free));
}

}  // namespace

std::shared_ptr<Storage> Storage::allocate(int64_t bytes) {
  if (untouched != nullptr) return untouched_block(bytes);
  std::shared_ptr<Storage> storage(new Storage);
  storage->bytes_ = bytes;
  const int64_t capacity = rounded(bytes);
  Cache& c = cache();
  bool fill = false;
  {
    std::lock_guard lock(c.mutex);
    auto it = c.free.find(capacity);
    if (it != c.free.end() && !it->second.empty()) {
      storage->data_ = it->second.back();
      it->second.pop_back();
      c.stats.cached -= capacity;
    }
    fill = c.fill;
  }
  const bool fresh = storage->data_ == nullptr;
  if (fresh) storage->data_ = system_allocate(capacity);
  storage->capacity_ = capacity;
  {
    std::lock_guard lock(c.mutex);
    c.stats.system_allocations += fresh;
    c.stats.in_use += capacity;
    c.stats.peak = std::max(c.stats.peak, c.stats.in_use);
  }
  if (fill) std::memset(storage->data_, 0xff, capacity);
  return storage;
}

std::shared_ptr<Storage> Storage::borrow(void* data, int64_t bytes, std::shared_ptr<void> owner) {
  std::shared_ptr<Storage> storage(new Storage);
  storage->data_ = data;
  storage->bytes_ = bytes;
  storage->owner_ = std::move(owner);
  return storage;
}

Storage::~Storage() {
  if (capacity_ == 0) return;
  Cache& c = cache();
  std::lock_guard lock(c.mutex);
  c.free[capacity_].push_back(data_);
  c.stats.in_use -= capacity_;
  c.stats.cached += capacity_;
}

UntouchedMemory::UntouchedMemory()
    : in_use_(std::make_shared<int64_t>(0)), before_(std::exchange(untouched, in_use_)) {}
UntouchedMemory::~UntouchedMemory() { untouched = before_; }

bool UntouchedMemory::is_used() { return untouched != nullptr; }

AllocatorStats allocator_stats() {
  std::lock_guard lock(cache().mutex);
  return cache().stats;
}

void release_cached_memory() {
  std::map<int64_t, std::vector<void*>> blocks;
  {
    Cache& c = cache();
    std::lock_guard lock(c.mutex);
    blocks.swap(c.free);
    c.stats.cached = 0;
  }
  for (const auto& [capacity, of_size] : blocks) {  // without the mutex: others allocate meanwhile
    for (void* block : of_size) free_in_large_pages(block, capacity);
  }
  release_free_large_pages();
#if defined(__GLIBC__)
  malloc_trim(0);  // it keeps what lies between blocks that are still in use
#endif
}

void reset_allocator_peak() {
  Cache& c = cache();
  std::lock_guard lock(c.mutex);
  c.stats.peak = c.stats.in_use;
}

void set_fill_allocations(bool fill) {
  std::lock_guard lock(cache().mutex);
  cache().fill = fill;
}

}  // namespace heddle
