// Engines that step beside each other while jobs come and go from other threads.
#include "heddle/serve/engine_threads.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <optional>

#include "tests/serve/translation_jobs.h"
#include "tests/support/wait.h"

namespace heddle::serve {
namespace {

using Ids = std::vector<int32_t>;
struct Subject : testing::TranslationJobs {
  Subject() : TranslationJobs(60) {}
  std::shared_ptr<Scheduler> scheduler(int engines) const {
    return std::make_shared<Scheduler>(*small.made, Precision(), 600, Engines{engines});
  }
};

// Counts down, and tells when none are left.
struct Countdown {
  explicit Countdown(size_t count) : left(count) {}
  void operator()() {
    if (--left == 0) done.set_value();
  }
  bool comes() {
    return done.get_future().wait_for(std::chrono::seconds(60)) == std::future_status::ready;
  }
  std::atomic<size_t> left;
  std::promise<void> done;
};

TEST(EngineThreads, jobs_of_several_threads_get_what_they_get_alone) {
  const Subject subject;
  const auto scheduler = subject.scheduler(3);
  const size_t count = subject.sentences.size();
  std::vector<std::optional<Ids>> found(count);
  Countdown countdown(2 * count / 3);
  EngineThreads threads({scheduler});
  const auto come = [&](size_t first) {
    for (size_t i = first; i < count; i += 2) {
      Job job = subject.job(i);
      const bool is_dropped = i % 3 == 2;
      job.on_end = [&, i, is_dropped](JobEnd, std::span<const Hypothesis> hypotheses) {
        if (is_dropped) return;
        found[i] = as_translation(hypotheses).ids;
        countdown();
      };
      const int64_t id = scheduler->submit(std::move(job));
      threads.wake();
      if (is_dropped) scheduler->cancel(id);
    }
  };
  std::thread other(come, 1);
  come(0);
  other.join();
  ASSERT_TRUE(countdown.comes());
  for (size_t i = 0; i < count; ++i) {
    if (i % 3 == 2) continue;
    const auto alone =
        translate_ids(subject.small.model, std::span(&subject.sentences[i], 1), subject.options);
    EXPECT_EQ(found[i], alone[0].ids) << i;
  }
}

TEST(EngineThreads, schedulers_that_are_replaced_end_their_jobs_and_are_let_go_of) {
  const Subject subject;
  auto first = subject.scheduler(2);
  const std::weak_ptr<Scheduler> leaving = first;
  EngineThreads threads({first});
  Countdown countdown(20);
  for (size_t i = 0; i < 20; ++i) {
    Job job = subject.job(i);
    job.on_end = [&, first](JobEnd, std::span<const Hypothesis>) { countdown(); };
    first->submit(std::move(job));
  }
  first.reset();
  threads.replace({subject.scheduler(1)});
  threads.wake();
  EXPECT_TRUE(countdown.comes());
  EXPECT_TRUE(testing::comes_true([&] { return leaving.expired(); }));
}

TEST(EngineThreads, a_job_for_a_scheduler_that_was_taken_before_it_was_replaced_is_done) {
  const Subject subject;
  auto taken = subject.scheduler(2);  // by a request, which has not given it a job yet
  const std::weak_ptr<Scheduler> leaving = taken;
  const auto next = subject.scheduler(2);
  EngineThreads threads({taken});
  threads.replace({next});
  const auto do_one = [&](const std::shared_ptr<Scheduler>& scheduler) {
    Countdown countdown(1);
    Job job = subject.job(0);
    job.on_end = [&, scheduler](JobEnd outcome, std::span<const Hypothesis>) {
      EXPECT_EQ(outcome, JobEnd::done);
      countdown();
    };
    scheduler->submit(std::move(job));
    threads.wake();
    return countdown.comes();
  };
  ASSERT_TRUE(do_one(next));  // the thread that did it has looked around since
  EXPECT_TRUE(do_one(taken));
  taken.reset();
  EXPECT_TRUE(testing::comes_true([&] { return leaving.expired(); }));
}

// While one is freed, which takes long for a large model, others go on.
TEST(EngineThreads, a_scheduler_that_nobody_else_has_is_freed_without_the_mutex) {
  const Subject subject;
  EngineThreads threads({subject.scheduler(2)});
  std::vector<std::future<void>> wakings;
  std::atomic<int> freed = 0, in_time = 0;
  const auto make = [&] {
    return std::shared_ptr<Scheduler>(
        new Scheduler(*subject.small.made, Precision(), 600, {2}), [&](Scheduler* scheduler) {
          wakings.push_back(std::async(std::launch::async, [&] { threads.wake(); }));
          const auto state = wakings.back().wait_for(std::chrono::seconds(30));
          in_time += state == std::future_status::ready ? 1 : 0;
          delete scheduler;
          ++freed;
        });
  };
  for (int i = 0; i < 3; ++i) {
    threads.replace({make()});
    threads.replace({subject.scheduler(1)});
    EXPECT_TRUE(testing::comes_true([&] { return freed == i + 1; }));
  }
  EXPECT_EQ(in_time, 3);
}

TEST(EngineThreads, tasks_are_done_in_their_order_and_one_that_throws_ends_none) {
  EngineThreads threads({});
  std::promise<std::vector<int>> done;
  std::vector<int> order;
  ::testing::internal::CaptureStderr();
  threads.post([&] { order.push_back(1); });
  threads.post([] { throw std::runtime_error("a task that fails"); });
  threads.post([&] {
    order.push_back(2);
    done.set_value(order);
  });
  EXPECT_EQ(done.get_future().get(), (std::vector<int>{1, 2}));
  EXPECT_NE(::testing::internal::GetCapturedStderr().find("a task that fails"), std::string::npos);
}

// A crowd of passes of another kind delays each token by one of them, not by all.
TEST(EngineThreads, a_step_comes_between_two_tasks) {
  const Subject subject;
  const auto scheduler = subject.scheduler(1);
  EngineThreads threads({scheduler});
  std::vector<int> seen;  // steps before each task
  int steps = 0;
  Countdown countdown(1);
  Job job = subject.job(0);
  job.request.search.min_new_tokens = 6;
  job.request.longest_output = 8;
  job.request.on_step = [&](const DecodeStep&) {
    if (++steps > 1) return;
    for (int i = 0; i < 3; ++i) threads.post([&] { seen.push_back(steps); });
  };
  job.on_end = [&](JobEnd, std::span<const Hypothesis>) { countdown(); };
  scheduler->submit(std::move(job));
  threads.wake();
  ASSERT_TRUE(countdown.comes());
  EXPECT_EQ(seen, (std::vector<int>{1, 2, 3}));
}

TEST(EngineThreads, jobs_that_are_under_way_at_the_end_are_dropped_with_what_they_hold) {
  const Subject subject;
  const auto scheduler = subject.scheduler(2);
  const auto held = std::make_shared<int>(0);
  {
    EngineThreads threads({scheduler});
    for (size_t i = 0; i < 40; ++i) {
      Job job = subject.job(i);
      job.on_end = [held](JobEnd, std::span<const Hypothesis>) {};
      scheduler->submit(std::move(job));
    }
    threads.wake();
  }
  EXPECT_EQ(held.use_count(), 1);
  EXPECT_TRUE(scheduler->is_idle());
}

}  // namespace
}  // namespace heddle::serve
