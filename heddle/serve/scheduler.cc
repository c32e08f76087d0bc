// A table of jobs beside the engine that works on them.
#include "heddle/serve/scheduler.h"

#include <utility>

#include "heddle/base/error.h"
#include "heddle/base/log.h"

namespace heddle::serve {

Scheduler::Scheduler(const Model& model, Precision precision, int64_t rows)
    : engine_(model, precision) {
  engine_.limit_rows(rows);
  engine_.limit_width(kMostWidth);
}

int64_t Scheduler::submit(Job job) {
  const int64_t id = next_;  // what the engine will call it
  Request request = std::move(job.request);
  request.on_start = [this, id] {
    Known& known = jobs_.at(id);
    known.is_running = true;
    if (known.on_start) known.on_start();
  };
  request.on_done = [this, id](const Outcome& found) { end(id, JobEnd::done, found.hypotheses); };
  const int64_t given = engine_.submit(std::move(request));
  check(given == id, ErrorKind::internal, "scheduler: job {} is request {}", id, given);
  ++next_;
  jobs_.emplace(id, Known{.deadline = job.deadline,
                          .on_start = std::move(job.on_start),
                          .on_end = std::move(job.on_end)});
  return id;
}

void Scheduler::cancel(int64_t id) {
  if (jobs_.erase(id) > 0) engine_.cancel(id);
}

void Scheduler::end(int64_t id, JobEnd outcome, std::span<const Hypothesis> found) {
  auto ended = jobs_.extract(id);
  if (!ended.empty() && ended.mapped().on_end) ended.mapped().on_end(outcome, found);
}

void Scheduler::end_late(Moment now) {
  std::vector<int64_t> late;
  for (const auto& [id, known] : jobs_) {
    if (!known.is_running && known.deadline < now) late.push_back(id);
  }
  for (const int64_t id : late) {
    engine_.cancel(id);
    end(id, JobEnd::timed_out, {});
  }
}

void Scheduler::clear() {
  for (const auto& [id, known] : std::exchange(jobs_, {})) engine_.cancel(id);
}

bool Scheduler::step(Moment now) {
  end_late(now);
  try {
    engine_.step();
  } catch (const std::exception& error) {
    log_error("serve: {}", error.what());
    std::vector<int64_t> lost;
    for (const auto& [id, known] : jobs_) {
      if (known.is_running) lost.push_back(id);
    }
    for (const int64_t id : lost) end(id, JobEnd::failed, {});
  }
  return !jobs_.empty();
}

}  // namespace heddle::serve
