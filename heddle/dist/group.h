// The processes that train one model together: who they are, and what they sum and tell each other.
#pragma once

#include <bit>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/base/error.h"
#include "heddle/tensor/dtype.h"

namespace heddle::dist {

/// Whether a group may have so many ranks, or a batch so many shards: 1, 2, 4, .. 64, so that sums
/// have the same bits for each.
constexpr bool is_rank_count(int64_t n) {
  return n >= 1 && n <= 64 && std::has_single_bit(static_cast<uint64_t>(n));
}

/// A part of n values that lie in a row: [begin, end).
struct Slice {
  int64_t begin = 0, end = 0;
  int64_t size() const { return end - begin; }
  friend bool operator==(const Slice&, const Slice&) = default;
};

/// Where the part of `rank` lies of n values, among `ranks` (a power of two): the values are halved
/// log2(ranks) times, for the lowest bit of the rank first (0: the lower half), each time at a
/// multiple of 16 values. A part may be empty; together they are all values.
Slice slice_of(int64_t n, int64_t rank, int64_t ranks);

/// Values of a call that goes on while its caller does something else.
struct StartedValues {
  std::span<float> values;
  std::shared_ptr<void> owner;  ///< of their memory: it stays until the call has ended
  DType sent_as = DType::f32;   ///< sums alone: f32, or bf16, to which what is sent is rounded
};

/// Processes, called ranks, 0 .. ranks() - 1, each with a group of its own. Calls that all ranks
/// make (sums, gather, broadcast, barrier) come from one thread of each rank, in the same order on
/// all ranks; they return when this rank's part is done. Those that are started return at once, and
/// have their place in this order; what they lead to is known, and their values may be touched,
/// when finish() has returned.
/// Errors of all calls: ranks where another rank was lost, has ended or has failed (named by its
/// number and host); internal where the ranks call different things.
class Group {
 public:
  Group() = default;
  virtual ~Group() = default;
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  virtual int64_t rank() const = 0;
  /// How many there are: a power of two.
  virtual int64_t ranks() const = 0;
  bool is_alone() const { return ranks() == 1; }

  /// The part of n values that is `rank`'s, see slice_of(); this rank's own without one.
  Slice slice(int64_t n, int64_t rank) const { return slice_of(n, rank, ranks()); }
  Slice slice(int64_t n) const { return slice_of(n, rank(), ranks()); }

  /// Sums values, equally many on all ranks, element by element along the fixed tree over ranks,
  /// ((v0 + v1) + (v2 + v3)) + ..: the same bits as such a sum in one process. Afterwards the slice
  /// of this rank holds the sums, the rest is scratch.
  /// With wire() bf16 what a rank sends is rounded: these are no longer those bits.
  void reduce_scatter(std::span<float> values);
  /// Every rank's slice of the values becomes known to all.
  void all_gather(std::span<float> values);
  /// The same, started; sums go as their values say. returns: the number of the call
  virtual int64_t start_reduce_scatter(StartedValues of) = 0;
  virtual int64_t start_all_gather(StartedValues of) = 0;
  /// Returns when the started call of that number, and those before it, have ended.
  virtual void finish(int64_t call) = 0;
  /// The bytes of every rank, in the order of ranks, to all.
  virtual std::vector<std::string> gather(std::string_view mine) = 0;
  /// The bytes that rank 0 gives, to all; what others give is not read.
  virtual std::string broadcast(std::string_view of_rank_0) = 0;
  /// Returns when all ranks have come here.
  void barrier();

  /// How gradients are to be sent: f32, or bf16; reduce_scatter() sends so.
  virtual DType wire() const { return DType::f32; }
  /// Seconds that calls have waited for another rank that had not come to the same call, so far;
  /// any thread.
  virtual double seconds_waited() const { return 0; }

  /// Says to the others that this rank is in this update, so that they can name where it was last
  /// heard of, and has a deadline from now on; any thread.
  virtual void note_update(int64_t update) = 0;
  /// From now on this rank has a deadline: if for GroupOptions::step_seconds it notes no update and
  /// no work (note_work() of base/work_notes.h), and neither waits for another one nor for input,
  /// all give it up.
  virtual void expect_work() = 0;
  /// Whether this rank waits for input that others may give at any time, as who types it.
  virtual void note_input_wait(bool waits) = 0;
  /// This rank ends by an error of its own: the others end with its message. Never throws.
  virtual void leave_with(std::string_view message) noexcept = 0;
  /// Errors: ranks if another rank is known to be lost. To be called within long work, so that a
  /// rank ends soon; 20 s after the loss its process ends wherever it is.
  virtual void check_alive() = 0;
};

/// The only rank of its group: nothing is sent.
class LocalGroup final : public Group {
 public:
  int64_t rank() const override { return 0; }
  int64_t ranks() const override { return 1; }
  int64_t start_reduce_scatter(StartedValues of) override;
  int64_t start_all_gather(StartedValues of) override;
  void finish(int64_t call) override;
  std::vector<std::string> gather(std::string_view mine) override;
  std::string broadcast(std::string_view of_rank_0) override;
  void note_update(int64_t update) override;
  void expect_work() override;
  void note_input_wait(bool waits) override;
  void leave_with(std::string_view message) noexcept override;
  void check_alive() override;
};

/// Ends by an error that all ranks have come to know of, which all call it with: none leaves before
/// the others know, so that all end by this error, and no one by the loss of another.
[[noreturn]] void fail_together(Group& group, ErrorKind kind, const std::string& message);

/// What must be equal on all ranks, by what a message calls it: {"learning_rate", "0.0003"}.
using Facts = std::map<std::string, std::string>;

/// Compares the facts of all ranks; all ranks call it.
/// Errors: usage, on all ranks, with each fact that differs and the ranks that have it so.
void check_equal(Group& group, const Facts& facts);

}  // namespace heddle::dist
