// Jobs that come, wait, run, end and are cancelled, by a clock that the test turns.
#include "heddle/serve/scheduler.h"

#include <gtest/gtest.h>

#include <limits>
#include <map>

#include "heddle/infer/decoding/caption.h"
#include "tests/base/temporary.h"
#include "tests/infer/small_captioner.h"
#include "tests/serve/translation_jobs.h"
#include "tests/vision/drawn.h"

namespace heddle::serve {
namespace {

using Ids = std::vector<int32_t>;
struct Subject : testing::TranslationJobs {
  Subject() : TranslationJobs(40) {}
};

Moment at(int64_t seconds) { return Moment() + std::chrono::seconds(seconds); }

// A step of each engine; whether there is more to do.
bool step_all(Scheduler& scheduler) {
  for (size_t i = 0; i < scheduler.engines(); ++i) scheduler.step(at(0), i);
  return !scheduler.is_idle();
}

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

TEST(Scheduler, a_job_of_what_has_begun_waits_beyond_its_deadline) {
  const Subject subject;
  Scheduler scheduler(*subject.small.made, {},
                      Scheduler(*subject.small.made, {}, 1000).rows_needed(subject.job(0).request));
  std::vector<JobEnd> outcomes;
  std::vector<int64_t> ids;
  for (size_t i = 0; i < 3; ++i) {
    Job job = subject.job(0);
    job.deadline = at(10);
    job.on_start = [&, i] {
      if (i == 0) scheduler.keep_waiting(ids[1]);
    };
    job.on_end = [&](JobEnd outcome, std::span<const Hypothesis>) { outcomes.push_back(outcome); };
    ids.push_back(scheduler.submit(std::move(job)));
  }
  scheduler.step(at(0));
  scheduler.keep_waiting(1000);  // one that is not there
  while (scheduler.step(at(20))) {
  }
  // The third one's time ran out while the first ran.
  EXPECT_EQ(outcomes, (std::vector<JobEnd>{JobEnd::timed_out, JobEnd::done, JobEnd::done}));
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
  scheduler.cancel(ids[1]);  // once more
  scheduler.cancel(1000);
  scheduler.step(at(0));
  EXPECT_LT(scheduler.rows(), before);
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

// --- what joins when ---------------------------------------------------------------------------

// A translator whose jobs are of equal length: sentences of four tokens.
struct Arrivals {
  explicit Arrivals(int64_t rows = 100'000, Engines engines = {})
      : scheduler(*subject.small.made, {}, rows, engines) {
    subject.options.search.beam = 1;
    subject.options.search.min_new_tokens = 30;
    subject.options.longest_without_end = 31;
    subject.sentences.assign(1, Ids(4, 20));
  }
  void come(int count) {
    for (int i = 0; i < count; ++i) scheduler.submit(subject.job(0));
  }
  // Steps until those that wait have joined; returns how many it took.
  int steps_until_all_run() {
    for (int n = 1;; ++n) {
      scheduler.step(at(0));
      if (scheduler.waiting() == 0) return n;
      EXPECT_LT(n, 100);
    }
  }

  Subject subject;
  Scheduler scheduler;
};

TEST(Scheduler, where_nothing_runs_whoever_comes_joins_at_once) {
  Arrivals arrivals;
  arrivals.come(1);
  EXPECT_EQ(arrivals.steps_until_all_run(), 1);
}

TEST(Scheduler, few_that_come_while_many_run_are_held_for_so_many_steps) {
  Arrivals arrivals;
  arrivals.come(16);
  EXPECT_EQ(arrivals.steps_until_all_run(), 1);
  arrivals.come(3);  // fewer than a quarter
  EXPECT_EQ(arrivals.steps_until_all_run(), Scheduler::kMostHeld + 1);
  EXPECT_EQ(arrivals.scheduler.running(), 19);
  arrivals.come(1);  // counted anew
  EXPECT_EQ(arrivals.steps_until_all_run(), Scheduler::kMostHeld + 1);
}

TEST(Scheduler, a_quarter_of_those_that_run_joins_at_once_and_so_does_a_full_pass) {
  Arrivals arrivals;
  arrivals.come(16);
  arrivals.scheduler.step(at(0));
  arrivals.come(4);
  EXPECT_EQ(arrivals.steps_until_all_run(), 1);
  arrivals.come(200);
  EXPECT_EQ(arrivals.steps_until_all_run(), 1);
  // Five rows each, with the end: 52 of them are 260 tokens, a sixth of those that run.
  arrivals.come(51);
  EXPECT_EQ(arrivals.steps_until_all_run(), Scheduler::kMostHeld + 1);
  arrivals.come(52);
  EXPECT_EQ(arrivals.steps_until_all_run(), 1);
}

// Those that run wait for no pass over hundreds of sources, which join some at each step.
TEST(Scheduler, many_sources_join_in_parts_where_others_run) {
  Arrivals arrivals;
  arrivals.come(300);
  EXPECT_EQ(arrivals.steps_until_all_run(), 1);
  arrivals.come(210);  // five rows each
  arrivals.scheduler.step(at(0));
  EXPECT_EQ(arrivals.scheduler.running(), 300 + 205);
  EXPECT_EQ(arrivals.steps_until_all_run(), Scheduler::kMostHeld + 1);
}

TEST(Scheduler, those_held_join_at_once_when_the_others_are_done) {
  Arrivals arrivals;
  arrivals.come(16);
  arrivals.scheduler.step(at(0));
  for (int64_t id = 0; id < 16; ++id) {
    if (id == 8) arrivals.come(1);
    arrivals.scheduler.cancel(id);
  }
  EXPECT_EQ(arrivals.steps_until_all_run(), 1);
}

// A prompt takes no pass of its own: nothing is gained by holding it.
TEST(Scheduler, prompts_join_at_the_next_step) {
  nn::Parameters parameters(5);
  const auto gpt2 = make_model(
      nn::Scope(parameters),
      Json::parse(R"({"model_type": "gpt2", "vocab_size": 40, "n_positions": 40, "n_embd": 32,
                      "n_layer": 2, "n_head": 4, "eos_token_id": 39})"));
  Scheduler scheduler(*gpt2, {}, 4000);
  const auto come = [&] {
    scheduler.submit({.request = {.tokens = {1, 2}, .longest_output = 20}});
  };
  for (int i = 0; i < 16; ++i) come();
  scheduler.step(at(0));
  come();
  scheduler.step(at(0));
  EXPECT_EQ(scheduler.waiting(), 0);
}

TEST(Scheduler, no_more_run_than_there_is_room_for) {
  Arrivals alone;
  const int64_t each = alone.scheduler.rows_needed(alone.subject.job(0).request);
  Arrivals arrivals(10 * each, {3});
  arrivals.come(25);
  step_all(arrivals.scheduler);
  EXPECT_EQ(arrivals.scheduler.running(), 10);
  for (int64_t id = 0; id < 5; ++id) arrivals.scheduler.cancel(id);
  step_all(arrivals.scheduler);
  EXPECT_EQ(arrivals.scheduler.running(), 10);
  Arrivals wide;
  wide.come(600);
  wide.scheduler.step(at(0));
  EXPECT_EQ(wide.scheduler.running(), Scheduler::kMostWidth);
}

// Of two long jobs there is room for one. Short ones pass the other, until so many rows have as it
// takes itself; then its room is kept.
TEST(Scheduler, short_jobs_pass_one_without_room_and_it_is_not_starved) {
  const Subject subject;
  Arrivals arrivals;
  const Job long_job = arrivals.subject.job(0);
  Job short_job = subject.job(0);
  short_job.request.longest_output = 1;
  const int64_t most = arrivals.scheduler.rows_needed(long_job.request);
  const int64_t least = arrivals.scheduler.rows_needed(short_job.request);
  Scheduler scheduler(*arrivals.subject.small.made, {}, 2 * most - 1);
  std::string ended;
  const auto submit = [&](Job job, char name) {
    job.on_end = [&, name](JobEnd, std::span<const Hypothesis>) { ended += name; };
    scheduler.submit(std::move(job));
  };
  for (const char name : {'a', 'b'}) submit(long_job, name);
  for (int i = 0; i < 40; ++i) submit(short_job, '.');
  for (int step = 0; step < 10; ++step) scheduler.step(at(0));
  EXPECT_EQ(ended, std::string(static_cast<size_t>(most / least), '.'));
  while (scheduler.step(at(0))) {
  }
  EXPECT_EQ(std::ranges::count(ended, '.'), 40);
  EXPECT_NE(ended.find('a'), std::string::npos);
  EXPECT_NE(ended.find('b'), std::string::npos);
}

TEST(Scheduler, each_engine_takes_its_share_and_one_without_work_is_called) {
  Arrivals arrivals(100'000, {3});
  const auto who_has_work = [&] {
    std::vector<size_t> engines;
    for (size_t i = 0; i < 3; ++i) {
      if (arrivals.scheduler.has_work(i)) engines.push_back(i);
    }
    return engines;
  };
  EXPECT_EQ(who_has_work(), std::vector<size_t>());
  arrivals.come(1);
  EXPECT_EQ(who_has_work(), std::vector<size_t>{2});
  arrivals.scheduler.step(at(0), 0);  // whoever steps takes it
  EXPECT_EQ(who_has_work(), std::vector<size_t>{0});
  arrivals.come(1);
  arrivals.scheduler.step(at(0), 0);  // which has its share
  EXPECT_EQ(arrivals.scheduler.waiting(), 1);
  EXPECT_EQ(who_has_work(), (std::vector<size_t>{0, 2}));
  arrivals.scheduler.step(at(0), 2);
  EXPECT_EQ(arrivals.scheduler.running(), 2);
  arrivals.come(28);
  arrivals.scheduler.step(at(0), 1);
  EXPECT_EQ(arrivals.scheduler.running(), 12);
  arrivals.scheduler.step(at(0), 2);
  EXPECT_EQ(arrivals.scheduler.running(), 21);
  arrivals.scheduler.step(at(0), 0);
  EXPECT_EQ(arrivals.scheduler.running(), 30);
}

TEST(Scheduler, engines_join_the_first_once_there_are_enough_rows_for_each) {
  Arrivals arrivals(100'000, {.count = 4, .least_width = 4});
  Scheduler& scheduler = arrivals.scheduler;
  const auto who_has_work = [&] {
    std::string engines;
    for (size_t i = 0; i < 4; ++i) engines += scheduler.has_work(i) ? "+" : "-";
    return engines;
  };
  arrivals.come(5);
  EXPECT_EQ(who_has_work(), "+---");
  scheduler.step(at(0), 0);
  EXPECT_EQ(scheduler.running(), 5);  // more than a fourth
  arrivals.come(10);
  EXPECT_EQ(who_has_work(), "+---");
  scheduler.step(at(0), 1);  // 15 are not enough for four
  EXPECT_EQ(scheduler.running(), 5);
  arrivals.come(1);
  EXPECT_EQ(who_has_work(), "++++");
  for (const auto& [engine, running] :
       std::map<size_t, int64_t>{{0, 5}, {1, 9}, {2, 13}, {3, 16}}) {
    scheduler.step(at(0), engine);  // up to its share
    EXPECT_EQ(scheduler.running(), running);
  }
  // Of 11 several go on, of 7 the one that runs most, and the others end.
  for (int64_t id = 0; id < 9; ++id) scheduler.cancel(id);
  arrivals.come(4);
  scheduler.step(at(0), 0);
  EXPECT_EQ(scheduler.running(), 10);
  for (const int64_t id : {9, 10, 16, 17}) scheduler.cancel(id);
  scheduler.step(at(0), 0), scheduler.step(at(0), 2);
  EXPECT_EQ(scheduler.running(), 6);
  EXPECT_EQ(scheduler.waiting(), 1);
  scheduler.step(at(0), 3);
  EXPECT_EQ(scheduler.running(), 7);
}

TEST(Scheduler, several_engines_give_what_one_gives_and_hear_of_cancelled_jobs) {
  const Subject subject;
  Scheduler scheduler(*subject.small.made, {}, 4000, {3});
  std::vector<std::optional<Ids>> found(subject.sentences.size());
  int64_t last = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    Job job = subject.job(i);
    job.on_end = [&, i](JobEnd, std::span<const Hypothesis> hypotheses) {
      found[i] = as_translation(hypotheses).ids;
      if (i == 3) scheduler.cancel(last);  // of another engine, before its step
    };
    last = scheduler.submit(std::move(job));
    if (i % 5 == 4) step_all(scheduler);
  }
  while (step_all(scheduler)) {
  }
  EXPECT_EQ(scheduler.rows(), 0);
  for (size_t i = 0; i + 1 < found.size(); ++i) EXPECT_EQ(found[i], subject.alone(i)) << i;
}

// Images as jobs, whose memories are set once their turn has come.
struct CaptionJobs {
  testing::SmallCaptioner small{""};
  std::vector<Tensor> memories;
  TranslateOptions options{.search = {.min_new_tokens = 6, .beam = 2}, .longest_without_end = 9};

  explicit CaptionJobs(int64_t count) {
    std::vector<Image> images;
    for (int64_t i = 0; i < count; ++i) images.push_back(testing::noise(12 + 4 * i, 16, i));
    memories = encode_images(*small.model, {}, images, {}).memories;
  }
  Job job(size_t i) const {
    return {.request = memory_request(*small.model, memories[i].size(0), options),
            .prepare = [this, i](Request& request) {
              request.memory = memories[i];
              return true;
            }};
  }
  Ids alone(size_t i) const {
    return translate_memories(*small.model, std::span(&memories[i], 1), options)[0].ids;
  }
};

TEST(Scheduler, jobs_that_are_prepared_join_one_a_step_and_get_what_they_get_alone) {
  const CaptionJobs subject(5);
  Scheduler scheduler(*subject.small.made, {}, 4000);
  std::vector<std::optional<Ids>> found(subject.memories.size());
  int64_t prepared = 0, started = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    Job job = subject.job(i);
    job.prepare = [&, i, prepare = job.prepare](Request& request) {
      EXPECT_EQ(started, ++prepared);  // it waits no longer
      EXPECT_EQ(request.source_rows(), subject.memories[i].size(0));
      return prepare(request);
    };
    job.on_start = [&] { ++started; };
    job.on_end = [&, i](JobEnd outcome, std::span<const Hypothesis> hypotheses) {
      EXPECT_EQ(outcome, JobEnd::done);
      found[i] = as_translation(hypotheses).ids;
    };
    scheduler.submit(std::move(job));
  }
  for (int64_t step = 1; step <= 5; ++step) {
    scheduler.step(at(0));
    EXPECT_EQ(prepared, step);
    EXPECT_EQ(scheduler.running(), step);
  }
  while (scheduler.step(at(0))) {
  }
  EXPECT_EQ(started, 5);
  EXPECT_EQ(scheduler.rows(), 0);
  for (size_t i = 0; i < found.size(); ++i) EXPECT_EQ(found[i], subject.alone(i)) << i;
}

TEST(Scheduler, a_job_that_cannot_be_prepared_leaves_and_the_others_go_on) {
  const CaptionJobs subject(3);
  Scheduler scheduler(*subject.small.made, {}, 4000);
  std::vector<size_t> ended;
  for (size_t i = 0; i < 3; ++i) {
    Job job = subject.job(i);
    if (i == 1) job.prepare = [](Request&) { return false; };
    job.on_end = [&, i](JobEnd, std::span<const Hypothesis>) { ended.push_back(i); };
    scheduler.submit(std::move(job));
  }
  scheduler.step(at(0));
  scheduler.step(at(0));
  EXPECT_EQ(scheduler.running(), 1);
  EXPECT_EQ(scheduler.waiting(), 1);
  while (scheduler.step(at(0))) {
  }
  EXPECT_EQ(ended, (std::vector<size_t>{0, 2}));
  EXPECT_TRUE(scheduler.is_idle());
  EXPECT_EQ(scheduler.rows(), 0);
}

}  // namespace
}  // namespace heddle::serve
