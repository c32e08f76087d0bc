// The pool: workers that take calls from the loop that is running. Each has a range of its own, the
// same in every loop of as many calls, so that it finds in its core's cache what it left there; a
// worker that is through with its range helps the others with theirs.
//
// A loop is over when all its calls have ended. Its owner takes part and waits only for workers
// that are inside a call, never for one that has not woken up yet: a machine that others load,
// where a worker may get no core for a while, costs speed and nothing more.
#include "heddle/base/parallel.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <deque>
#include <fstream>
#include <sstream>
#include <system_error>
#include <thread>
#include <utility>

#include "heddle/base/log.h"
#include "heddle/base/names.h"
#include "heddle/base/run_alone.h"

namespace heddle {
namespace {

thread_local int place = 0;        // in the pool
thread_local bool inside = false;  // a call of parallel_for, or a RunAlone

inline void pause_core() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// How long a worker without work looks for some before it sleeps: longer than the gaps between
// the loops of a forward pass, shorter than what a neighbour would notice.
constexpr std::chrono::microseconds kSpin{100};
constexpr int kLooksPerClock = 64;
// Looks of an owner whose workers are not done, before it sleeps: with `pause`, then with yields.
constexpr int kMostPauses = 1000, kMostYields = 1100;

class Pool {
 public:
  // Lives until the process ends: workers may be asleep in it.
  static Pool& get() {
    static Pool* const pool = new Pool;
    return *pool;
  }

  int threads() const { return threads_.load(std::memory_order_relaxed); }
  void set_threads(int threads) { threads_.store(threads < 1 ? 1 : threads); }

  void run(int64_t n, void (*body)(void*, int64_t), void* context) {
    // Another thread's loop has the workers: this one runs alone, and so do the loops inside it.
    std::unique_lock owner(owner_, std::try_to_lock);
    if (!owner.owns_lock()) {
      const RunAlone alone(true);
      for (int64_t i = 0; i < n; ++i) body(context, i);
      return;
    }
    hire(static_cast<int>(std::min<int64_t>(threads() - 1, n - 1)));
    body_ = body, context_ = context;
    most_ = static_cast<int>(std::min<int64_t>({threads() - 1, n - 1, workers_}));
    for (int64_t p = 0; p <= most_; ++p) {
      ranges_[static_cast<size_t>(p)].next.store(n * p / (most_ + 1), std::memory_order_relaxed);
      ranges_[static_cast<size_t>(p)].end = n * (p + 1) / (most_ + 1);
    }
    const uint64_t number = (state_.load(std::memory_order_relaxed) >> kNumberShift) + 1;
    state_.store(number << kNumberShift | kOpen);  // publishes the loop
    state_.notify_all();
    take_calls();
    // No worker may join any more; those inside a call are waited for.
    state_.fetch_and(~kOpen);
    for (int look = 0; (state_.load() & kActive) != 0; ++look) {
      look < kMostPauses ? pause_core() : look < kMostYields ? std::this_thread::yield() : sleep();
    }
  }

 private:
  // Of the owner: a call that takes so much longer than its own leaves the core to others.
  void sleep() {
    is_owner_asleep_.store(1);
    if ((state_.load() & kActive) != 0) is_owner_asleep_.wait(1);
    is_owner_asleep_.store(0);
  }
  void wake_owner() {
    if (is_owner_asleep_.exchange(0) != 0) is_owner_asleep_.notify_one();
  }

  // state_: the number of the loop, whether workers may join it, and how many are in it.
  static constexpr int kNumberShift = 32;
  static constexpr uint64_t kOpen = uint64_t{1} << 31;
  static constexpr uint64_t kActive = kOpen - 1;

  // Calls [next, end) are still to be made.
  struct alignas(64) Range {
    std::atomic<int64_t> next{0};
    int64_t end = 0;
  };

  Pool() : threads_(default_threads()) {}
  // HEDDLE_THREADS: what heddle launch gives a rank that it does not bind to cores.
  static int default_threads() {
    const char* const given = std::getenv("HEDDLE_THREADS");
    const int threads = given == nullptr ? 0 : std::atoi(given);
    return threads > 0 ? std::min(threads, available_cores()) : available_cores();
  }

  // A system that gives no more threads makes loops slower, not wrong. It is not asked again: each
  // try costs a system call and a stack that is mapped in vain.
  void hire(int workers) {
    while (workers_ < workers) {
      while (std::ssize(ranges_) < workers_ + 2) ranges_.emplace_back();
      try {
        std::thread([this, index = workers_ + 1] { work(index); }).detach();
      } catch (const std::system_error& error) {
        log_warning(
            "the system gives {} of the {} threads that were asked for ({}); going on with {}. See "
            "the limits of processes (ulimit -u, pids.max of a container), or ask for fewer with "
            "{}",
            workers_ + 1, threads(), error.code().message(), workers_ + 1, field_name("threads"));
        set_threads(workers_ + 1);
        return;
      }
      ++workers_;
    }
  }

  void take_calls() {
    inside = true;
    const int ranges = most_ + 1;
    for (int p = place, left = ranges; left > 0; p = p + 1 < ranges ? p + 1 : 0, --left) {
      Range& range = ranges_[static_cast<size_t>(p)];
      for (int64_t i = range.next.fetch_add(1); i < range.end; i = range.next.fetch_add(1)) {
        body_(context_, i);
      }
    }
    inside = false;
  }

  // Waits for an open loop other than `last`; returns its state.
  uint64_t next_loop(uint64_t last) {
    const auto begin = std::chrono::steady_clock::now();
    for (int look = 1;; ++look) {
      const uint64_t state = state_.load();
      if ((state & kOpen) != 0 && state >> kNumberShift != last) return state;
      pause_core();
      if (look % kLooksPerClock == 0 && std::chrono::steady_clock::now() - begin > kSpin) {
        state_.wait(state);  // until it changes
      }
    }
  }

  [[noreturn]] void work(int index) {
    place = index;
    for (uint64_t last = 0;;) {
      uint64_t state = next_loop(last);
      last = state >> kNumberShift;
      // Joins unless the loop is over or another one has begun.
      bool joined = false;
      while ((state & kOpen) != 0 && state >> kNumberShift == last && !joined) {
        joined = state_.compare_exchange_weak(state, state + 1);
      }
      if (!joined) continue;
      if (index <= most_) take_calls();
      state_.fetch_sub(1);
      if (is_owner_asleep_.load()) wake_owner();
    }
  }

  std::mutex owner_;
  std::atomic<int> threads_;
  int workers_ = 0;
  // The loop that is running; written while none is.
  void (*body_)(void*, int64_t) = nullptr;
  void* context_ = nullptr;
  int most_ = 0;                                     // workers that it may have
  std::deque<Range> ranges_ = std::deque<Range>(1);  // the owner's and one for each worker
  alignas(64) std::atomic<uint64_t> state_{0};
  std::atomic<int> is_owner_asleep_{0};
};

// "" where there is no such file.
std::string text_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// Cores of "QUOTA PERIOD" in microseconds; 0 where there is no quota ("max", or -1).
int cores_of(const std::string& line) {
  std::istringstream words(line);
  int64_t quota = 0, period = 0;
  if (!(words >> quota >> period) || quota <= 0 || period <= 0) return 0;
  return static_cast<int>(std::min<int64_t>((quota - 1) / period + 1, 1 << 20));
}

// The smallest quota of a group and those above it. Where a container sees its own group as the
// root, the path may name folders that it does not see: they are passed over.
int smallest_quota(const std::string& root, std::string path, bool is_second_version) {
  int least = 0;
  for (;;) {
    const std::string folder = root + (path == "/" ? "" : path);
    const int cores = is_second_version ? cores_of(text_of(folder + "/cpu.max"))
                                        : cores_of(text_of(folder + "/cpu.cfs_quota_us") + " " +
                                                   text_of(folder + "/cpu.cfs_period_us"));
    if (cores > 0) least = least == 0 ? cores : std::min(least, cores);
    if (path.empty() || path == "/") return least;
    path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
  }
}

}  // namespace

int num_threads() { return Pool::get().threads(); }
void set_num_threads(int threads) { Pool::get().set_threads(threads); }
int thread_index() { return place; }
bool in_parallel() { return inside; }
RunAlone::RunAlone(bool is_alone) : before_(std::exchange(inside, inside || is_alone)) {}
RunAlone::~RunAlone() { inside = before_; }

namespace parallel_detail {
void run(int64_t n, void (*body)(void*, int64_t), void* context) {
  Pool::get().run(n, body, context);
}
}  // namespace parallel_detail

int cpu_quota(const std::string& root, std::string_view groups) {
  std::istringstream lines{std::string(groups)};
  int least = 0;
  for (std::string line; std::getline(lines, line);) {  // NUMBER:CONTROLLERS:PATH
    const size_t first = line.find(':');
    const size_t second = first == line.npos ? line.npos : line.find(':', first + 1);
    if (second == line.npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool is_second_version = controllers.empty();
    if (!is_second_version && ("," + controllers + ",").find(",cpu,") == line.npos) continue;
    const std::string folder = is_second_version ? root : root + "/" + controllers;
    const int cores = smallest_quota(folder, line.substr(second + 1), is_second_version);
    if (cores > 0) least = least == 0 ? cores : std::min(least, cores);
  }
  return least;
}

int available_cores() {
  cpu_set_t set;
  const unsigned all = std::thread::hardware_concurrency();
  int cores = all == 0 ? 1 : static_cast<int>(all);
  if (sched_getaffinity(0, sizeof set, &set) == 0) cores = CPU_COUNT(&set);
  const int quota = cpu_quota("/sys/fs/cgroup", text_of("/proc/self/cgroup"));
  return std::max(1, quota > 0 ? std::min(cores, quota) : cores);
}

}  // namespace heddle
