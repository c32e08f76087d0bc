// Threads: one pool for the whole program, with as many as it may use cores.
#pragma once

#include <cstdint>
#include <exception>
#include <mutex>
#include <string>
#include <string_view>

namespace heddle {

/// Threads that parallel_for uses; the default is the number of cores that this process may use.
int num_threads();
/// Errors: none; values below 1 count as 1.
void set_num_threads(int threads);
/// The calling thread's place in the pool, 0 .. num_threads() - 1; 0 outside parallel_for.
int thread_index();
/// Whether the caller is inside parallel_for: there a further one runs on the calling thread alone.
bool in_parallel();

namespace parallel_detail {
/// Calls body(context, i) for i in [0, n), each once; body throws nothing.
void run(int64_t n, void (*body)(void* context, int64_t i), void* context);
}  // namespace parallel_detail

/// Calls f(i) for i in [0, n), each once, on any thread. The work of an i must not depend on the
/// thread or on other i: that is what makes results equal for any number of threads.
/// Errors: rethrows what f threw of the least i, after all calls have ended.
template <class F>
void parallel_for(int64_t n, const F& f) {
  if (n <= 1 || num_threads() == 1 || in_parallel()) {
    for (int64_t i = 0; i < n; ++i) f(i);
    return;
  }
  struct Context {
    const F& f;
    std::mutex mutex;
    std::exception_ptr error;
    int64_t first;  // whose error it is
  } context{f, {}, {}, n};
  const auto body = [](void* at, int64_t i) {
    Context& c = *static_cast<Context*>(at);
    try {
      c.f(i);
    } catch (...) {
      std::lock_guard lock(c.mutex);
      if (i < c.first) c.first = i, c.error = std::current_exception();
    }
  };
  parallel_detail::run(n, body, &context);
  if (context.error) std::rethrow_exception(context.error);
}

/// Calls f(begin, end) over blocks of fixed size that cover [0, n).
template <class F>
void parallel_blocks(int64_t n, int64_t block, const F& f) {
  parallel_for((n + block - 1) / block, [&](int64_t b) {
    const int64_t begin = b * block;
    f(begin, begin + block < n ? begin + block : n);
  });
}

/// Cores that the affinity mask of the process allows (`taskset`), and no more than the quota of
/// its control groups pays for (containers: `docker --cpus 2`), rounded up. At least 1.
int available_cores();

/// The quota of the control groups that `groups` names (the text of /proc/self/cgroup), in cores
/// rounded up; 0 where there is none. The smallest counts of a group and those above it. `root` is
/// where their files lie, /sys/fs/cgroup.
/// Sources: the kernel's documentation, cgroup-v2 (cpu.max) and cgroup-v1 (cpu.cfs_quota_us).
int cpu_quota(const std::string& root, std::string_view groups);

}  // namespace heddle
