// A table of jobs beside the engines that work on them.
#include "heddle/serve/scheduler.h"

#include <algorithm>

#include "heddle/base/error.h"
#include "heddle/base/log.h"
#include "heddle/base/parallel.h"

namespace heddle::serve {

Scheduler::Scheduler(const Model& model, Precision precision, int64_t rows, int engines)
    : most_rows_(rows) {
  for (int i = 0; i < engines; ++i) {
    lanes_.push_back(std::make_unique<Lane>(model, precision));
    Engine& engine = lanes_.back()->engine;
    engine.limit_rows(rows);
    engine.keep_beginnings(rows / 2);
    engine.limit_prompt_rows(kMostPromptRows);
  }
}

int64_t Scheduler::rows() const {
  int64_t rows = 0;
  for (const auto& lane : lanes_) rows += lane->engine.rows();
  return rows;
}

int64_t Scheduler::submit(Job job) {
  lanes_[0]->engine.check_request(job.request);
  waiting_.emplace(next_, std::move(job));
  return next_++;
}

void Scheduler::cancel(int64_t id) {
  if (waiting_.erase(id) > 0) return;
  const auto found = running_.find(id);
  if (found == running_.end()) return;
  const Running job = leave(found);
  if (is_in_step_) {
    cancelled_.emplace_back(job.lane, job.number);
  } else {
    lanes_[job.lane]->engine.cancel(job.number);
  }
}

void Scheduler::clear() {
  waiting_.clear();
  while (!running_.empty()) cancel(running_.begin()->first);
}

Scheduler::Running Scheduler::leave(std::map<int64_t, Running>::iterator at) {
  Running job = std::move(at->second);
  running_.erase(at);
  rows_ -= job.rows, width_ -= job.width;
  lanes_[job.lane]->width -= job.width;
  lanes_[job.lane]->jobs.erase(job.number);
  return job;
}

void Scheduler::end(int64_t id, JobEnd outcome, std::span<const Hypothesis> found) {
  const auto at = running_.find(id);
  if (at == running_.end()) return;  // cancelled in this step
  const Running job = leave(at);
  if (job.on_end) job.on_end(outcome, found);
}

void Scheduler::end_late(Moment now) {
  std::vector<int64_t> late;
  for (const auto& [id, job] : waiting_) {
    if (job.deadline < now) late.push_back(id);
  }
  for (const int64_t id : late) {
    const auto job = waiting_.extract(id);  // one that ends may have cancelled the next
    if (!job.empty() && job.mapped().on_end) job.mapped().on_end(JobEnd::timed_out, {});
  }
}

// Of those that wait, the first that have room, or none where more are worth waiting for.
size_t Scheduler::count_of_those_that_join() {
  int64_t rows = rows_, width = width_, tokens = 0;
  size_t count = 0;
  bool has_prompt = false;
  for (const auto& [id, job] : waiting_) {
    rows += rows_needed(job.request);
    const int64_t wider = width + job.request.search.width();
    const bool is_first = running_.empty() && count == 0;
    if (rows > most_rows_ || (wider > kMostWidth && !is_first)) break;
    width = wider;
    tokens += job.request.source_rows();
    has_prompt |= job.request.source_rows() == 0;
    ++count;
  }
  if (count == 0) return 0;
  const bool is_worth = 4 * (width - width_) >= width_ || has_prompt ||
                        tokens >= kWorthTokens * std::ssize(lanes_) || held_ >= kMostHeld;
  held_ = is_worth ? 0 : held_ + 1;
  return is_worth ? count : 0;
}

void Scheduler::start(int64_t id, Job job) {
  const auto least = std::ranges::min_element(lanes_, {}, [](const auto& l) { return l->width; });
  Lane& lane = **least;
  Running running{.lane = static_cast<size_t>(least - lanes_.begin()),
                  .number = 0,
                  .rows = rows_needed(job.request),
                  .width = job.request.search.width(),
                  .on_end = std::move(job.on_end)};
  Request request = std::move(job.request);
  request.on_start = {};
  request.on_done = [this, id](const Outcome& found) {
    const std::lock_guard lock(callbacks_);
    end(id, JobEnd::done, found.hypotheses);
  };
  if (lanes_.size() > 1 && request.goes_on) {
    request.goes_on = [this, goes_on = std::move(request.goes_on)](const Hypothesis& h) {
      const std::lock_guard lock(callbacks_);
      return goes_on(h);
    };
  }
  if (lanes_.size() > 1 && request.on_step) {
    request.on_step = [this, on_step = std::move(request.on_step)](const DecodeStep& step) {
      const std::lock_guard lock(callbacks_);
      on_step(step);
    };
  }
  running.number = lane.engine.submit(std::move(request));
  rows_ += running.rows, width_ += running.width, lane.width += running.width;
  lane.jobs[running.number] = id;
  running_.emplace(id, std::move(running));
  if (job.on_start) job.on_start();
}

void Scheduler::step_lane(Lane& lane) {
  try {
    lane.engine.step();
  } catch (const std::exception& error) {
    const std::lock_guard lock(callbacks_);
    log_error("serve: {}", error.what());
    const auto lost = lane.jobs;
    for (const auto& [number, id] : lost) end(id, JobEnd::failed, {});
  }
}

bool Scheduler::step(Moment now) {
  end_late(now);
  for (size_t count = count_of_those_that_join(); count > 0 && !waiting_.empty(); --count) {
    auto first = waiting_.extract(waiting_.begin());
    start(first.key(), std::move(first.mapped()));
  }
  std::vector<Lane*> busy;
  for (const auto& lane : lanes_) {
    if (!lane->jobs.empty()) busy.push_back(lane.get());
  }
  is_in_step_ = true;
  parallel_for(std::ssize(busy), [&](int64_t i) { step_lane(*busy[static_cast<size_t>(i)]); });
  is_in_step_ = false;
  for (const auto& [lane, number] : std::exchange(cancelled_, {})) {
    lanes_[lane]->engine.cancel(number);
  }
  return !is_idle();
}

}  // namespace heddle::serve
