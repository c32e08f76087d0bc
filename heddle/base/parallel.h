// Threads: one OpenMP pool for the whole program.
#pragma once

#include <omp.h>

#include <cstdint>
#include <exception>

namespace heddle {

/// Threads used by parallel_for; the default is what OpenMP finds.
inline int num_threads() { return omp_get_max_threads(); }
/// Errors: none; values below 1 count as 1.
inline void set_num_threads(int threads) { omp_set_num_threads(threads < 1 ? 1 : threads); }
/// The calling thread's place in its team, 0 .. num_threads() - 1.
inline int thread_index() { return omp_get_thread_num(); }

/// Calls f(i) for i in [0, n), each once, on any thread. The work of an i must not depend on the
/// thread or on other i: that is what makes results equal for any number of threads.
template <class F>
void parallel_for(int64_t n, const F& f) {
  if (n <= 1 || num_threads() == 1 || omp_in_parallel()) {
    for (int64_t i = 0; i < n; ++i) f(i);
    return;
  }
  std::exception_ptr error;
#pragma omp parallel for schedule(dynamic, 1)
  for (int64_t i = 0; i < n; ++i) {
    try {
      f(i);
    } catch (...) {
#pragma omp critical(heddle_parallel_for)
      error = std::current_exception();
    }
  }
  if (error) std::rethrow_exception(error);
}

/// Calls f(begin, end) over blocks of fixed size that cover [0, n).
template <class F>
void parallel_blocks(int64_t n, int64_t block, const F& f) {
  parallel_for((n + block - 1) / block, [&](int64_t b) {
    const int64_t begin = b * block;
    f(begin, begin + block < n ? begin + block : n);
  });
}

}  // namespace heddle
