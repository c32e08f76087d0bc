// Jobs that come, wait, run, end and are cancelled, by a clock that the test turns.
#include "heddle/serve/scheduler.h"

#include <gtest/gtest.h>

#include <limits>
#include <map>

#include "heddle/infer/decoding/translate.h"
#include "tests/base/temporary.h"
#include "tests/infer/small_models.h"

namespace heddle::serve {
namespace {

using Ids = std::vector<int32_t>;
using testing::random_sentences;
using testing::small_config;
using testing::SmallModel;

// A translator, and translations of its sentences one at a time.
struct Subject {
  SmallModel small{small_config()};
  std::vector<Ids> sentences = random_sentences(40, 9, 40);
  TranslateOptions options;

  Subject() { options.search.beam = 3; }
  Job job(size_t i) const {
    return {.request = translation_request(small.model, sentences[i], options)};
  }
  Ids alone(size_t i) const {
    return translate_ids(small.model, std::span(&sentences[i], 1), options)[0].ids;
  }
};

Moment at(int64_t seconds) { return Moment() + std::chrono::seconds(seconds); }

TEST(Scheduler, jobs_that_come_at_any_step_get_what_they_get_alone) {
  const Subject subject;
  Scheduler scheduler(*subject.small.made, {}, 400);
  std::vector<std::optional<Ids>> found(subject.sentences.size());
  size_t started = 0, most_running = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    Job job = subject.job(i);
    job.on_start = [&] { ++started; };
    job.on_end = [&, i](JobEnd outcome, std::span<const Hypothesis> hypotheses) {
      EXPECT_EQ(outcome, JobEnd::done);
      EXPECT_FALSE(found[i]);
      found[i] = as_translation(hypotheses).ids;
    };
    scheduler.submit(std::move(job));
    if (i % 3 == 0) scheduler.step(at(0));
    most_running = std::max(most_running, static_cast<size_t>(scheduler.running()));
    EXPECT_LE(scheduler.rows(), 400);
  }
  while (scheduler.step(at(0))) {
  }
  EXPECT_EQ(started, found.size());
  EXPECT_GT(most_running, 2u);
  EXPECT_TRUE(scheduler.is_idle());
  EXPECT_EQ(scheduler.rows(), 0);
  for (size_t i = 0; i < found.size(); ++i) EXPECT_EQ(found[i], subject.alone(i)) << i;
}

TEST(Scheduler, jobs_that_wait_too_long_end_and_those_that_run_do_not) {
  const Subject subject;
  const Job first = subject.job(0);
  Scheduler scheduler(*subject.small.made, {},
                      Scheduler(*subject.small.made, {}, 1000).rows_needed(first.request));
  std::map<size_t, JobEnd> outcomes;
  for (size_t i = 0; i < 3; ++i) {
    Job job = subject.job(0);
    job.deadline = at(i == 1 ? 10 : 30);
    job.on_end = [&, i](JobEnd outcome, std::span<const Hypothesis>) { outcomes[i] = outcome; };
    scheduler.submit(std::move(job));
  }
  scheduler.step(at(10));  // the first runs; the second may wait until then
  EXPECT_EQ(scheduler.running(), 1);
  EXPECT_TRUE(outcomes.empty());
  scheduler.step(at(11));
  EXPECT_EQ(outcomes, (std::map<size_t, JobEnd>{{1, JobEnd::timed_out}}));
  while (scheduler.step(at(29))) {
  }
  EXPECT_EQ(outcomes, (std::map<size_t, JobEnd>{
                          {0, JobEnd::done}, {1, JobEnd::timed_out}, {2, JobEnd::done}}));
}

TEST(Scheduler, cancelled_jobs_leave_before_the_next_step_and_hear_nothing) {
  const Subject subject;
  Scheduler scheduler(*subject.small.made, {}, 4000);
  std::vector<int64_t> ids;
  std::vector<size_t> ended;
  for (size_t i = 0; i < 6; ++i) {
    Job job = subject.job(i);
    job.on_end = [&, i](JobEnd, std::span<const Hypothesis>) { ended.push_back(i); };
    ids.push_back(scheduler.submit(std::move(job)));
  }
  scheduler.step(at(0));
  const int64_t before = scheduler.rows();
  for (const size_t i : {1, 2, 3, 4}) scheduler.cancel(ids[i]);
  EXPECT_EQ(scheduler.running(), 2);
  EXPECT_LT(scheduler.rows(), before);
  scheduler.cancel(ids[1]);  // once more
  scheduler.cancel(1000);
  while (scheduler.step(at(0))) {
  }
  std::ranges::sort(ended);
  EXPECT_EQ(ended, (std::vector<size_t>{0, 5}));
  EXPECT_EQ(scheduler.rows(), 0);
}

TEST(Scheduler, jobs_that_can_never_run_are_refused_and_the_others_go_on) {
  const Subject subject;
  Scheduler scheduler(*subject.small.made, {}, 60);
  expect_error(ErrorKind::data, {"60"}, [&] {
    Job job = subject.job(0);
    job.request.longest_output = 60;
    scheduler.submit(std::move(job));
  });
  bool is_done = false;
  Job job = subject.job(0);
  job.request.longest_output = 3;
  job.on_end = [&](JobEnd outcome, std::span<const Hypothesis>) {
    is_done = outcome == JobEnd::done;
  };
  EXPECT_EQ(scheduler.submit(std::move(job)), 0);
  while (scheduler.step(at(0))) {
  }
  EXPECT_TRUE(is_done);
}

TEST(Scheduler, weights_that_are_not_finite_fail_the_jobs_that_run) {
  Subject subject;
  for (auto& p : subject.small.parameters.all()) {
    p->value().data<float>()[0] = std::numeric_limits<float>::infinity();
    p->changed(true);
  }
  Scheduler scheduler(*subject.small.made, {}, 1000);
  std::vector<JobEnd> outcomes;
  for (size_t i = 0; i < 2; ++i) {
    Job job = subject.job(i);
    job.on_end = [&](JobEnd outcome, std::span<const Hypothesis>) { outcomes.push_back(outcome); };
    scheduler.submit(std::move(job));
  }
  ::testing::internal::CaptureStderr();
  EXPECT_FALSE(scheduler.step(at(0)));
  EXPECT_NE(::testing::internal::GetCapturedStderr().find("finite"), std::string::npos);
  EXPECT_EQ(outcomes, (std::vector<JobEnd>{JobEnd::failed, JobEnd::failed}));
}

}  // namespace
}  // namespace heddle::serve
