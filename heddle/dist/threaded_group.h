// A group whose calls are made by a thread of its own, so that they go on while their caller
// computes.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "heddle/dist/rank_group.h"

namespace heddle::dist {

/// Makes the calls of a RankGroup in the order in which they come. Its thread is the only one that
/// touches the wire, from the beginning to the end, as MPI wants it (MPI_THREAD_FUNNELED). An error
/// of one call is that of all that follow it.
class ThreadedGroup final : public Group {
 public:
  /// wire: see Group::wire()    make: called by the thread. Errors: those of `make`.
  ThreadedGroup(DType wire, const std::function<std::unique_ptr<RankGroup>()>& make);
  /// Ends what is under way; where an error is, the others are told.
  ~ThreadedGroup() override;

  int64_t rank() const override { return group_->rank(); }
  int64_t ranks() const override { return group_->ranks(); }
  int64_t start_reduce_scatter(StartedValues of) override;
  int64_t start_all_gather(StartedValues of) override;
  void finish(int64_t call) override;
  std::vector<std::string> gather(std::string_view mine) override;
  std::string broadcast(std::string_view of_rank_0) override;
  DType wire() const override { return wire_; }
  double seconds_waited() const override { return group_->seconds_waited(); }
  void note_update(int64_t update) override { group_->watch().note_update(update); }
  void expect_work() override { group_->watch().expect_work(); }
  void note_input_wait(bool waits) override { group_->watch().note_input_wait(waits); }
  void leave_with(std::string_view why) noexcept override { group_->watch().leave_with(why); }
  void check_alive() override { group_->watch().check_alive(); }

 private:
  using Call = std::function<void()>;

  int64_t start(Call call);
  void run();

  DType wire_;
  std::unique_ptr<RankGroup> group_;
  std::mutex mutex_;
  std::condition_variable has_come_, has_ended_;
  std::deque<Call> calls_;  // the first one is under way
  int64_t started_ = 0, ended_ = 0;
  std::exception_ptr error_;
  bool is_ending_ = false, is_failing_ = false;
  int exceptions_;
  std::thread thread_;
};

}  // namespace heddle::dist
