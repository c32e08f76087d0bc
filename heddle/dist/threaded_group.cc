// A queue of calls and the thread that makes them.
#include "heddle/dist/threaded_group.h"

#include <utility>

namespace heddle::dist {

ThreadedGroup::ThreadedGroup(DType wire, const std::function<std::unique_ptr<RankGroup>()>& make)
    : wire_(wire), exceptions_(std::uncaught_exceptions()) {
  calls_.emplace_back([&] { group_ = make(); });
  started_ = 1;
  thread_ = std::thread([this] { run(); });
  try {
    finish(1);
  } catch (...) {
    {
      const std::lock_guard lock(mutex_);
      is_ending_ = true;
    }
    has_come_.notify_one();
    thread_.join();
    throw;
  }
}

ThreadedGroup::~ThreadedGroup() {
  const bool is_failing = std::uncaught_exceptions() > exceptions_;
  if (is_failing) leave_with("it has ended by an error");
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true, is_failing_ = is_failing;
  }
  has_come_.notify_one();
  thread_.join();
}

int64_t ThreadedGroup::start(Call call) {
  const std::lock_guard lock(mutex_);
  if (error_) std::rethrow_exception(error_);
  calls_.push_back(std::move(call));
  has_come_.notify_one();
  return ++started_;
}

void ThreadedGroup::finish(int64_t call) {
  std::unique_lock lock(mutex_);
  has_ended_.wait(lock, [&] { return ended_ >= call; });
  if (error_) std::rethrow_exception(error_);
}

void ThreadedGroup::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    has_come_.wait(lock, [this] { return is_ending_ || !calls_.empty(); });
    if (is_failing_ || calls_.empty()) break;
    Call call = std::move(calls_.front());
    calls_.pop_front();
    lock.unlock();
    std::exception_ptr error;
    try {
      call();
    } catch (const std::exception& e) {  // the caller may compute for long before it asks
      error = std::current_exception();
      if (group_ != nullptr) leave_with(e.what());
    }
    call = nullptr;  // what it kept alive
    lock.lock();
    ++ended_;
    if (error) {
      error_ = error;
      calls_.clear();
      ended_ = started_;
    }
    has_ended_.notify_all();
  }
  const bool ends_well = !error_ && !is_failing_;
  lock.unlock();
  if (ends_well) group_->close();
  group_.reset();
}

int64_t ThreadedGroup::start_reduce_scatter(StartedValues of) {
  return start([this, of = std::move(of)] { group_->reduce_scatter(of.values, of.sent_as); });
}

int64_t ThreadedGroup::start_all_gather(StartedValues of) {
  return start([this, of = std::move(of)] { group_->all_gather(of.values); });
}

std::vector<std::string> ThreadedGroup::gather(std::string_view mine) {
  std::vector<std::string> all;
  finish(start([&] { all = group_->gather(mine); }));
  return all;
}

std::string ThreadedGroup::broadcast(std::string_view of_rank_0) {
  std::string text;
  finish(start([&] { text = group_->broadcast(of_rank_0); }));
  return text;
}

}  // namespace heddle::dist
