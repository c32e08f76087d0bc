// Ranks that exchange with log2(ranks) others, over TCP or MPI.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "heddle/dist/group.h"
#include "heddle/dist/rendezvous.h"
#include "heddle/dist/start.h"
#include "heddle/dist/watch.h"
#include "heddle/dist/wire.h"

namespace heddle::dist {

/// Recursive halving for sums and doubling for what all are to know: in step k a rank exchanges
/// with the one whose number differs in bit k, sending and receiving at once. Its calls are those
/// of Group, but none is started and goes on by itself: see ThreadedGroup.
class RankGroup {
 public:
  /// Of the ranks that have met. wire: null: connections of TCP
  /// Errors: ranks where one of them does not come.
  RankGroup(Meeting meeting, std::unique_ptr<Wire> wire, const GroupOptions& options);
  /// To be called before it is destroyed, unless an error is under way; all ranks call it.
  void close() { wire_->close(); }

  int64_t rank() const { return rank_; }
  int64_t ranks() const { return ranks_; }
  void reduce_scatter(std::span<float> values, DType sent_as = DType::f32);
  void all_gather(std::span<float> values);
  std::vector<std::string> gather(std::string_view mine);
  std::string broadcast(std::string_view of_rank_0);
  double seconds_waited() const;
  /// What is said of this rank.
  Watch& watch() { return *watch_; }

 private:
  enum class Call : uint32_t { reduce_scatter, all_gather, gather, broadcast };
  struct Head;
  template <class Sent>
  class Sums;
  class Texts;
  struct Halves;
  Halves halves(std::span<float> values, int64_t step) const;
  template <class Sent>
  void add_up(std::span<float> values);
  std::span<const std::byte> sent(std::span<const float> values, float);
  std::span<const std::byte> sent(std::span<const float> values, bf16);
  void begin_wait();
  void end_wait();
  template <class Receiver>
  void exchange(int64_t step, uint64_t values, std::span<const std::byte> bytes, bool sends,
                Receiver* receiver);
  void check_head(const Head& theirs, const Head& mine, int64_t partner) const;
  [[noreturn]] void fail_partner(int64_t partner);
  void begin(Call call);

  int64_t rank_, ranks_, steps_;
  std::unique_ptr<Watch> watch_;
  std::unique_ptr<Wire> wire_;
  Call call_ = Call::gather;  // the one under way
  uint64_t calls_ = 0;
  std::vector<std::byte> staging_;
  std::vector<bf16> rounded_;  // what is sent of a sum
  mutable std::mutex waited_mutex_;
  double waited_ = 0, waits_since_ = 0;  // seconds; 0: does not wait
};

}  // namespace heddle::dist
