// The thread pool: every call once, errors, loops inside loops and beside each other.
#include "heddle/base/parallel.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

namespace heddle {
namespace {

class Parallel : public testing::Test {
 protected:
  ~Parallel() override { set_num_threads(before_); }

 private:
  int before_ = num_threads();
};

TEST_F(Parallel, every_call_is_made_once_for_any_number_of_threads) {
  for (int threads : {1, 2, 3, 7, 2}) {
    set_num_threads(threads);
    for (int64_t n : {0, 1, 2, 5, 1000}) {
      for (int again = 0; again < 20; ++again) {
        std::vector<std::atomic<int>> calls(static_cast<size_t>(n));
        parallel_for(n, [&](int64_t i) { ++calls[static_cast<size_t>(i)]; });
        for (const auto& c : calls) ASSERT_EQ(c, 1) << threads << " threads, " << n << " calls";
      }
    }
  }
}

TEST_F(Parallel, work_that_takes_time_is_shared) {
  set_num_threads(3);
  std::mutex mutex;
  std::set<int> places;
  parallel_for(30, [&](int64_t) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    EXPECT_TRUE(in_parallel());
    std::lock_guard lock(mutex);
    places.insert(thread_index());
  });
  EXPECT_EQ(places, (std::set<int>{0, 1, 2}));
  EXPECT_FALSE(in_parallel());
  EXPECT_EQ(thread_index(), 0);
}

TEST_F(Parallel, an_error_is_thrown_after_all_calls_and_the_pool_goes_on) {
  set_num_threads(4);
  for (int again = 0; again < 50; ++again) {
    std::atomic<int> calls = 0;
    EXPECT_THROW(parallel_for(100,
                              [&](int64_t i) {
                                ++calls;
                                if (i == 37) throw std::runtime_error("37");
                              }),
                 std::runtime_error);
    EXPECT_EQ(calls, 100);
  }
}

TEST_F(Parallel, of_several_errors_that_of_the_first_call_is_thrown) {
  for (const int threads : {1, 4}) {
    set_num_threads(threads);
    for (int again = 0; again < 50; ++again) {
      try {
        parallel_for(100, [](int64_t i) {
          if (i >= 37) throw std::runtime_error(std::to_string(i));
        });
        ADD_FAILURE() << "no error";
      } catch (const std::runtime_error& e) {
        EXPECT_STREQ(e.what(), "37") << threads << " threads";
      }
    }
  }
}

TEST_F(Parallel, a_loop_in_a_loop_runs_on_the_thread_that_meets_it) {
  set_num_threads(4);
  std::atomic<int> calls = 0;
  parallel_for(8, [&](int64_t) {
    const auto here = std::this_thread::get_id();
    parallel_for(10, [&](int64_t) {
      EXPECT_EQ(std::this_thread::get_id(), here);
      ++calls;
    });
  });
  EXPECT_EQ(calls, 80);
}

TEST_F(Parallel, loops_of_several_threads_at_once_are_all_done) {
  set_num_threads(3);
  std::atomic<int> calls = 0;
  std::vector<std::thread> owners;
  for (int owner = 0; owner < 4; ++owner) {
    owners.emplace_back([&] {
      for (int again = 0; again < 200; ++again) parallel_for(25, [&](int64_t) { ++calls; });
    });
  }
  for (std::thread& t : owners) t.join();
  EXPECT_EQ(calls, 4 * 200 * 25);
}

TEST_F(Parallel, sleeping_workers_wake_up) {
  set_num_threads(2);
  for (int again = 0; again < 20; ++again) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));  // longer than they spin
    std::atomic<int64_t> sum = 0;
    parallel_for(64, [&](int64_t i) { sum += i; });
    EXPECT_EQ(sum, 63 * 32);
  }
}

// For another process, which has no right to more threads than its user may have: none.
[[noreturn]] void loop_without_new_threads() {
  if (getuid() == 0 && setuid(65534) != 0) _exit(2);
  const rlimit none = {0, 0};
  setrlimit(RLIMIT_NPROC, &none);
  set_num_threads(64);
  std::atomic<int> calls = 0;
  for (int again = 0; again < 100; ++again) parallel_for(100, [&](int64_t) { ++calls; });
  _exit(calls == 100 * 100 && num_threads() < 64 ? 0 : 1);
}

// Others need the core: an HTTP thread beside engines whose steps differ in length.
TEST_F(Parallel, an_owner_sleeps_while_a_worker_is_long_in_a_call) {
  set_num_threads(2);
  for (int again = 0; again < 20; ++again) {
    rusage before = {}, after = {};
    std::atomic<bool> has_begun = false;
    parallel_for(2, [&](int64_t i) {
      if (i == 0) {  // the owner's
        while (!has_begun) std::this_thread::yield();
        ::getrusage(RUSAGE_THREAD, &before);
        return;
      }
      has_begun = true;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    });
    ::getrusage(RUSAGE_THREAD, &after);
    const auto us = [](const rusage& r) {
      return 1'000'000 * (r.ru_utime.tv_sec + r.ru_stime.tv_sec) + r.ru_utime.tv_usec +
             r.ru_stime.tv_usec;
    };
    EXPECT_LT(us(after) - us(before), 10'000);
  }
}

TEST(ParallelDeathTest, threads_that_the_system_refuses_are_done_without_and_said_once) {
  EXPECT_EXIT(loop_without_new_threads(), testing::ExitedWithCode(0),
              "^warning: the system gives . of the 64 threads[^\n]*\n$");
}

}  // namespace
}  // namespace heddle
