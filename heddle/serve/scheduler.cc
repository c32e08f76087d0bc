// A table of jobs beside the engines that work on them.
#include "heddle/serve/scheduler.h"

#include <algorithm>

#include "heddle/base/error.h"
#include "heddle/base/log.h"
#include "heddle/base/run_alone.h"

namespace heddle::serve {

Scheduler::Scheduler(const Model& model, Precision precision, int64_t rows, Engines engines)
    : most_rows_(rows), least_width_(engines.least_width) {
  for (int i = 0; i < engines.count; ++i) {
    lanes_.push_back(std::make_unique<Lane>(model, precision));
    Engine& engine = lanes_.back()->engine;
    engine.limit_rows(rows);
    engine.keep_beginnings(rows / 2);
    engine.limit_prompt_rows(kMostPromptRows);
  }
}

// --- what others see -----------------------------------------------------------------------------

int64_t Scheduler::waiting() const {
  const std::lock_guard lock(mutex_);
  return std::ssize(waiting_);
}

int64_t Scheduler::running() const {
  const std::lock_guard lock(mutex_);
  return std::ssize(running_);
}

bool Scheduler::is_idle() const {
  const std::lock_guard lock(mutex_);
  return waiting_.empty() && running_.empty();
}

int64_t Scheduler::rows() const {
  const std::lock_guard lock(mutex_);
  int64_t rows = 0;
  for (const auto& lane : lanes_) rows += lane->cache_rows;
  return rows;
}

// Of the engines that run nothing so many are called as may join and as there are jobs that wait,
// the last first: the first one's thread may have other models to step. An engine that others join
// only under load is the first one, since it computes on all cores, as those models do.
bool Scheduler::has_work(size_t engine) const {
  const std::lock_guard lock(mutex_);
  const Lane& lane = *lanes_[engine];
  if (lane.width > 0 || !lane.cancelled.empty()) return true;
  if (those_with_room(lane, 1).empty()) return false;
  const auto is_free = [](const auto& other) { return other->width == 0; };
  const std::span all(lanes_);
  const auto before = least_width_ > 0 ? all.first(engine) : all.subspan(engine + 1);
  return std::ranges::count_if(before, is_free) <
         std::min<int64_t>(std::ssize(waiting_), engines_in_use() - running_engines());
}

int64_t Scheduler::submit(Job job) {
  lanes_[0]->engine.check_request(job.request);
  const int64_t rows = rows_needed(job.request), width = job.request.search.width();
  const std::lock_guard lock(mutex_);
  waiting_width_ += width;
  first_deadline_ = std::min(first_deadline_, job.deadline);
  waiting_.emplace(next_, Waiting{.job = std::move(job), .rows = rows, .width = width});
  return next_++;
}

void Scheduler::cancel(int64_t id) {
  WaitingJobs::node_type dropped;  // what it holds is let go of without the lock
  Running left;
  const std::lock_guard lock(mutex_);
  dropped = waiting_.extract(id);
  if (!dropped.empty()) {
    waiting_width_ -= dropped.mapped().width;
  } else if (const auto found = running_.find(id); found != running_.end()) {
    left = leave(found);
    lanes_[left.lane]->cancelled.push_back(id);
  }
}

void Scheduler::keep_waiting(int64_t id) {
  const std::lock_guard lock(mutex_);
  const auto found = waiting_.find(id);
  if (found != waiting_.end()) found->second.job.deadline = Moment::max();
}

void Scheduler::clear() {
  WaitingJobs dropped;
  {
    const std::lock_guard lock(mutex_);
    dropped.swap(waiting_);
    waiting_width_ = 0;
  }
  for (size_t i = 0; i < lanes_.size(); ++i) {
    Lane& lane = *lanes_[i];
    for (const auto& [id, number] : std::exchange(lane.numbers, {})) {
      cancel(id);
      lane.engine.cancel(number);
    }
    lane.cancelled.clear();
    lane.cache_rows = lane.engine.rows();
  }
}

// --- a step --------------------------------------------------------------------------------------

// Of one that runs. With the lock.
Scheduler::Running Scheduler::leave(std::map<int64_t, Running>::iterator at) {
  Running job = std::move(at->second);
  running_.erase(at);
  rows_ -= job.rows, width_ -= job.width;
  lanes_[job.lane]->width -= job.width;
  return job;
}

void Scheduler::end(Lane& lane, int64_t id, JobEnd outcome, std::span<const Hypothesis> found) {
  lane.numbers.erase(id);
  Running job;
  {
    const std::lock_guard lock(mutex_);
    const auto at = running_.find(id);
    if (at == running_.end()) return;  // cancelled
    job = leave(at);
  }
  if (job.on_end) job.on_end(outcome, found);
}

void Scheduler::end_late(Moment now) {
  std::vector<int64_t> late;
  {
    const std::lock_guard lock(mutex_);
    if (first_deadline_ >= now) return;
    first_deadline_ = Moment::max();
    for (const auto& [id, waiting] : waiting_) {
      if (waiting.job.deadline < now) {
        late.push_back(id);
      } else {
        first_deadline_ = std::min(first_deadline_, waiting.job.deadline);
      }
    }
  }
  for (const int64_t id : late) {
    WaitingJobs::node_type job;
    {
      const std::lock_guard lock(mutex_);
      job = waiting_.extract(id);  // one that ends may have cancelled the next
      if (job.empty()) continue;
      waiting_width_ -= job.mapped().width;
    }
    if (const auto& on_end = job.mapped().job.on_end) on_end(JobEnd::timed_out, {});
  }
}

int64_t Scheduler::running_engines() const {
  return std::ranges::count_if(lanes_, [](const auto& lane) { return lane->width > 0; });
}

// All, if those that run and those that wait and have room are enough for each, else one: those
// between would leave cores idle. Several go on until there is half of that. With the lock.
int64_t Scheduler::engines_in_use() const {
  const auto engines = std::ssize(lanes_);
  const int64_t enough = engines * least_width_ / (running_engines() > 1 ? 2 : 1);
  int64_t rows = rows_, width = width_;
  for (auto at = waiting_.begin(); at != waiting_.end() && width < enough; ++at) {
    rows += at->second.rows;
    if (rows > most_rows_) break;
    width += at->second.width;
  }
  return width >= enough ? engines : 1;
}

// Of those that wait, so many that the engine has room for, up to its share; none if others that
// run are as many as are in use and hold more. With the lock.
auto Scheduler::those_with_room(const Lane& lane, size_t most) const
    -> std::vector<WaitingJobs::const_iterator> {
  const int64_t engines = engines_in_use();
  const int64_t share = (width_ + waiting_width_ + engines - 1) / engines;
  const int64_t most_width = std::max(kMostWidth / engines, kLeastWidth);
  // Those that take jobs rather than this one: they run more, or as many and are first.
  int64_t before = 0;
  bool is_behind = false;
  for (const auto& other : lanes_) {
    const bool as_many = other->width == lane.width && lane.width > 0 && !is_behind;
    if (other.get() == &lane) {
      is_behind = true;
    } else if (other->width > lane.width || as_many) {
      ++before;
    }
  }
  if (before >= engines) return {};
  int64_t rows = rows_, width = lane.width, source_rows = 0;
  int passed = 0;
  int64_t may_pass = most_rows_;  // rows that those that have no room still let pass
  std::vector<WaitingJobs::const_iterator> found;
  for (auto at = waiting_.begin(); at != waiting_.end(); ++at) {
    const Waiting& waiting = at->second;
    if (width >= share || found.size() == most) break;
    const bool has_room =
        rows + waiting.rows <= most_rows_ && (width == 0 || width + waiting.width <= most_width);
    if (!has_room || waiting.rows > may_pass) {
      if (passed++ == kMostPassed) break;
      may_pass = std::min(may_pass, waiting.rows - waiting.passed);
      continue;
    }
    if (passed > 0) may_pass -= waiting.rows;
    rows += waiting.rows, width += waiting.width;
    source_rows += waiting.job.request.source_rows();
    found.push_back(at);
    if (waiting.job.prepare || (lane.width > 0 && source_rows >= kMostSourceRows)) break;
  }
  return found;
}

// Whether the engine takes these now, as more that may come are not worth waiting for.
bool Scheduler::is_worth(const Lane& lane,
                         std::span<const WaitingJobs::const_iterator> joining) const {
  int64_t width = 0, tokens = 0;
  bool takes_no_pass = false;  // that others could share: a prompt, or one that is prepared
  for (const auto& at : joining) {
    const int64_t source_rows = at->second.job.request.source_rows();
    width += at->second.width, tokens += source_rows;
    takes_no_pass |= source_rows == 0 || at->second.job.prepare;
  }
  return 4 * width >= lane.width || takes_no_pass || tokens >= kWorthTokens ||
         lane.held >= kMostHeld;
}

// Those that join are counted as running from here on. With the lock.
Scheduler::WaitingJobs Scheduler::take(size_t number) {
  Lane& lane = *lanes_[number];
  WaitingJobs taken;
  const auto joining = those_with_room(lane, waiting_.size());
  if (joining.empty()) return taken;
  if (!is_worth(lane, joining)) {
    ++lane.held;
    return taken;
  }
  lane.held = 0;
  for (const auto& at : joining) {
    auto next = waiting_.extract(at);
    auto& [job, rows, width, passed] = next.mapped();
    for (auto& [id, waiting] : waiting_) {
      if (id > next.key()) break;
      waiting.passed += rows;
    }
    rows_ += rows, width_ += width, lane.width += width, waiting_width_ -= width;
    running_.emplace(
        next.key(),
        Running{.lane = number, .rows = rows, .width = width, .on_end = std::move(job.on_end)});
    taken.insert(taken.end(), std::move(next));
  }
  return taken;
}

void Scheduler::start(Lane& lane, int64_t id, Job job) {
  if (job.prepare) {
    if (const auto on_start = std::exchange(job.on_start, {})) on_start();
    if (!job.prepare(job.request)) return cancel(id);
  }
  job.request.on_start = std::move(job.on_start);
  job.request.on_done = [this, &lane, id](const Outcome& found) {
    end(lane, id, JobEnd::done, found.hypotheses);
  };
  lane.numbers[id] = lane.engine.submit(std::move(job.request));
}

bool Scheduler::step(Moment now, size_t number) {
  end_late(now);
  Lane& lane = *lanes_[number];
  WaitingJobs joining;
  std::vector<int64_t> cancelled;
  bool is_alone = false;
  {
    const std::lock_guard lock(mutex_);
    cancelled.swap(lane.cancelled);
    joining = take(number);
    is_alone = running_engines() <= 1;
  }
  for (const int64_t id : cancelled) {
    const auto found = lane.numbers.extract(id);
    if (!found.empty()) lane.engine.cancel(found.mapped());
  }
  const RunAlone on_one_core(!is_alone);
  for (auto& [id, waiting] : joining) start(lane, id, std::move(waiting.job));
  try {
    lane.engine.step();
  } catch (const std::exception& error) {
    log_error("serve: {}", error.what());
    const auto lost = std::exchange(lane.numbers, {});
    for (const auto& [id, engines] : lost) end(lane, id, JobEnd::failed, {});
  }
  const int64_t rows = lane.engine.rows();
  const std::lock_guard lock(mutex_);
  lane.cache_rows = rows;
  return lane.width > 0 || !waiting_.empty();
}

}  // namespace heddle::serve
