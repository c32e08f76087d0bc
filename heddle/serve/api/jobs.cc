// A list of ids beside the scheduler's jobs.
#include "heddle/serve/api/jobs.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>

#include "heddle/base/names.h"

namespace heddle::serve {
namespace {

JobOutcome outcome_of(JobEnd end) {
  if (end == JobEnd::timed_out) return JobOutcome::timed_out;
  return end == JobEnd::done ? JobOutcome::done : JobOutcome::failed;
}

// The jobs of a request that have not ended, with what they took of the budget. Engines of several
// threads may work on them: what they say is heard one after the other, and nothing of it once one
// of them failed or the client left.
class Batch : public std::enable_shared_from_this<Batch> {
 public:
  // begin: called once the first job waits no longer
  Batch(SharedExchange e, SharedModel model, std::function<void()> begin)
      : exchange_(std::move(e)),
        model_(std::move(model)),
        scheduler_(*model_->scheduler),
        begin_(std::move(begin)) {}

  void submit(QueuedJob job, int64_t tokens) {
    const Moment received = exchange_->received;
    const auto number = std::make_shared<int64_t>(-1);
    Job asked{
        .request = std::move(job.request),
        .deadline = received + std::chrono::seconds(exchange_->service.options().queue_seconds)};
    asked.on_start = [self = shared_from_this()] { self->started(); };
    asked.request.on_read = [self = shared_from_this()] {
      self->exchange_->reach(RequestPhase::decoding);
    };
    asked.on_end = [self = shared_from_this(), number, on_done = std::move(job.on_done)](
                       JobEnd outcome, std::span<const Hypothesis> found) {
      self->ended(*number, outcome, found, on_done);
    };
    hear(asked.request);
    if (job.prepare) {
      asked.prepare = [self = shared_from_this(), number, prepare = std::move(job.prepare)](
                          Request& request) { return self->prepare(*number, request, prepare); };
    }
    try {
      const std::lock_guard lock(mutex_);  // it may end before its number is known
      if (is_dropped_) return exchange_->service.budget().give_back(tokens);
      if (has_begun_) asked.deadline = Moment::max();
      *number = scheduler_.submit(std::move(asked));
      return void(jobs_[*number] = tokens);
    } catch (...) {
      exchange_->service.budget().give_back(tokens);
      fail(std::current_exception());
    }
  }

  void fail(const std::exception_ptr& error) {
    exchange_->fail(error);
    drop();
  }

  void drop() {
    const std::lock_guard lock(mutex_);
    is_dropped_ = true;
    exchange_->service.metrics().ended(JobOutcome::cancelled, std::ssize(jobs_));
    for (const auto& [id, tokens] : std::exchange(jobs_, {})) {
      scheduler_.cancel(id);
      exchange_->service.budget().give_back(tokens);
    }
  }

 private:
  // A job waits no longer. What was begun is finished: the others wait for as long as they must.
  void started() {
    const std::lock_guard hearing(callbacks_);
    if (is_dropped_) return;
    const std::chrono::duration<double> waited = Clock::now() - exchange_->received;
    exchange_->service.metrics().started(waited.count());
    exchange_->start();
    {
      const std::lock_guard lock(mutex_);
      if (std::exchange(has_begun_, true)) return;
      for (const auto& [id, tokens] : jobs_) scheduler_.keep_waiting(id);
    }
    try {
      if (begin_) begin_();
    } catch (...) {
      fail(std::current_exception());
    }
  }

  void hear(Request& request) {
    if (request.goes_on) {
      request.goes_on = [self = shared_from_this(),
                         goes_on = std::move(request.goes_on)](const Hypothesis& h) {
        const std::lock_guard lock(self->callbacks_);
        return !self->is_dropped_ && goes_on(h);
      };
    }
    if (request.on_step) {
      request.on_step = [self = shared_from_this(),
                         on_step = std::move(request.on_step)](const DecodeStep& step) {
        const std::lock_guard lock(self->callbacks_);
        if (!self->is_dropped_) on_step(step);
      };
    }
  }

  // returns: whether the request can join.
  bool prepare(const int64_t& id, Request& request, const std::function<void(Request&)>& make) {
    const FieldsByKey by_key;
    try {
      if (!is_dropped_) make(request);
    } catch (...) {
      if (take_out(id, JobOutcome::failed)) fail(std::current_exception());
    }
    return !is_dropped_;
  }

  // returns: whether it was still there
  bool take_out(const int64_t& id, JobOutcome outcome) {
    {
      const std::lock_guard lock(mutex_);
      const auto job = jobs_.extract(id);
      if (job.empty()) return false;
      exchange_->service.worked_off(job.mapped());
    }
    exchange_->service.metrics().ended(outcome);
    return true;
  }

  void ended(const int64_t& id, JobEnd outcome, std::span<const Hypothesis> found,
             const std::function<void(std::span<const Hypothesis>)>& on_done) {
    const std::lock_guard hearing(callbacks_);
    if (!take_out(id, outcome_of(outcome))) return;
    if (outcome == JobEnd::done) {
      try {
        return on_done(found);
      } catch (...) {
        exchange_->fail(std::current_exception());
      }
    } else if (outcome == JobEnd::timed_out) {
      exchange_->fail(waited_too_long(exchange_->service));
    } else {
      exchange_->fail(Refusal{
          .status = 500, .message = "the model gives what is not finite", .type = "server_error"});
    }
    drop();
  }

  const SharedExchange exchange_;
  const SharedModel model_;
  Scheduler& scheduler_;
  const std::function<void()> begin_;
  std::mutex callbacks_;             // held by each
  std::mutex mutex_;                 // of what follows
  std::map<int64_t, int64_t> jobs_;  // id: tokens
  bool has_begun_ = false;
  std::atomic<bool> is_dropped_ = false;
};

}  // namespace

void start_jobs(const SharedExchange& e, const SharedModel& model, std::vector<QueuedJob> jobs,
                std::function<void()> begin) {
  Service& service = e->service;
  std::vector<int64_t> tokens;
  int64_t all = 0, width = 0;
  for (const QueuedJob& job : jobs) {
    // Each sequence of a step costs its logits, however short it is.
    const int64_t rows = std::max(model->scheduler->rows_needed(job.request), 16 * job.width);
    if (rows > service.options().cache_rows) {
      refuse("the request may come to {} tokens; the server has room for {}", rows,
             service.options().cache_rows);
    }
    tokens.push_back(rows + job.prepare_tokens);
    all += tokens.back();
    width += job.width;
  }
  if (width > most_sequences(service)) {
    refuse("the request has {} sequences; at most {}", width, most_sequences(service));
  }
  take_room(*e, all);
  if (jobs.empty()) return begin ? begin() : void();
  const auto batch = std::make_shared<Batch>(e, model, std::move(begin));
  e->on_gone([batch, &service] {
    batch->drop();
    service.engines().wake();
  });
  e->reach(RequestPhase::queued);
  for (size_t i = 0; i < jobs.size(); ++i) batch->submit(std::move(jobs[i]), tokens[i]);
  service.engines().wake();
}

}  // namespace heddle::serve
