// Where the time goes: kernel calls under the names of their op and layer, and phases around them.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace heddle {

/// What a call costs beside time.
struct Work {
  int64_t bytes = 0;  ///< read and written
  double flops = 0;   ///< floating-point operations; 0 where they are not counted

  void add(const Work& other) {
    bytes += other.bytes;
    flops += other.flops;
  }
};

enum class ProfilePass : uint8_t {
  none,      ///< work outside every layer and op, the optimizer's for one
  forward,   ///<
  backward,  ///< closures of the tape, and the sums of gradients between them
  phase      ///< no kernel but a ProfilePhase
};

/// What was recorded. Times are in nanoseconds.
struct Profile {
  struct Totals {
    int64_t calls = 0;
    int64_t time = 0;
    Work work = {};
    void add(const Totals& other);
  };
  /// The calls of one kernel by one op in one layer.
  struct Row {
    std::string op, kernel, layer;
    ProfilePass pass = ProfilePass::none;
    Totals totals = {};
  };
  struct Phase {
    std::string name;
    Totals totals = {};    ///< with everything inside
    int64_t own_time = 0;  ///< in neither a kernel nor a phase inside
  };
  /// One call, or one phase; op, kernel and layer are places in `names`.
  struct Event {
    uint32_t op = 0, kernel = 0, layer = 0;
    ProfilePass pass = ProfilePass::none;
    int64_t begin = 0;  ///< since the start of the profile
    int64_t time = 0;
    Work work = {};
  };

  std::vector<Row> rows;
  std::vector<Phase> phases;  ///< in the order in which they first began
  std::vector<std::string> names;
  std::vector<Event> events;        ///< the first ones, see start_profile()
  int64_t events_left_out = 0;      ///< how many more there were
  int64_t time = 0;                 ///< from start to stop
  int64_t time_outside_phases = 0;  ///< and outside kernels
};

/// From here on this thread's calls, layers and phases are recorded, those of other threads are
/// not: a kernel runs its threads inside one call. All are counted; the first `max_events` are kept
/// one by one (48 bytes each).
void start_profile(size_t max_events = 200'000);

/// Ends the recording and gives what was recorded, phases that are under way included; nothing if
/// none was under way. Any thread may call it.
std::optional<Profile> stop_profile();

namespace profile_detail {
inline constinit thread_local bool is_on = false;
void end_call(const char* kernel, int64_t begin, const Work& work);
void enter_phase(const char* name);
void leave_phase();
int64_t now();
inline constinit thread_local int calls = 0;  // how many are under way, one inside the other
inline constinit thread_local Work* counted = nullptr;
}  // namespace profile_detail

/// True on the thread that is profiled.
inline bool is_profiling() { return profile_detail::is_on; }

/// True on the thread of a dry run (autograd/dry_run.h): kernels count their work and do none.
inline bool is_counting() { return profile_detail::counted != nullptr; }
/// Adds to the work of a dry run that is under way.
inline void count_work(const Work& work) { profile_detail::counted->add(work); }

/// A call while it lives, under the name of a kernel. Calls inside it are part of it.
class ProfiledCall {
 public:
  ProfiledCall(const char* kernel, const Work& work)
      : is_on_(is_profiling()), kernel_(kernel), work_(work) {
    if (is_on_ && profile_detail::calls++ == 0) begin_ = profile_detail::now();
  }
  ~ProfiledCall() {
    if (is_on_ && --profile_detail::calls == 0) profile_detail::end_call(kernel_, begin_, work_);
  }
  ProfiledCall(const ProfiledCall&) = delete;
  ProfiledCall& operator=(const ProfiledCall&) = delete;

 private:
  bool is_on_;
  const char* kernel_;
  Work work_;
  int64_t begin_ = 0;
};

/// A part of a command while it lives: "update", "validation". They nest.
class ProfilePhase {
 public:
  explicit ProfilePhase(const char* name) : is_on_(is_profiling()) {
    if (is_on_) profile_detail::enter_phase(name);
  }
  ~ProfilePhase() {
    if (is_on_) profile_detail::leave_phase();
  }
  ProfilePhase(const ProfilePhase&) = delete;
  ProfilePhase& operator=(const ProfilePhase&) = delete;

 private:
  bool is_on_;
};

// What the tape tells; all of it only while is_profiling().

/// Names the op of the calls since the last op, layer or phase began or ended: an op records itself
/// behind its kernels. Calls that nobody names go under the name of their kernel.
void name_profiled_op(const char* op);
void enter_profiled_layer(std::string_view name);
void leave_profiled_layer();
/// The innermost layer, for a ProfiledStep later on.
uint32_t profiled_layer();

/// A step of the backward pass: calls while it lives are this op's, in the layer of its forward
/// pass.
class ProfiledStep {
 public:
  ProfiledStep(const char* op, uint32_t layer);
  ~ProfiledStep();
  ProfiledStep(const ProfiledStep&) = delete;
  ProfiledStep& operator=(const ProfiledStep&) = delete;

 private:
  bool is_on_;
  uint32_t op_before_ = 0, layer_before_ = 0;
};

/// Tables by op and kernel, by layer (the 20 that took longest, and the rest as one), and by phase:
/// calls, ms, share of the whole time, GB, GB/s, GFLOP/s; and the time outside kernels.
std::string profile_tables(const Profile& profile);

/// Writes {"traceEvents": [...]}, piece by piece, in the Trace Event Format: complete events ("X")
/// with name, cat (forward, backward, kernel or phase), ts and dur in microseconds, and args
/// {kernel, layer, bytes, flops}.
void write_trace(const Profile& profile, const std::function<void(std::string_view)>& write);

}  // namespace heddle
