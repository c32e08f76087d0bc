// The recorder: sums by op, kernel, layer and pass, and the first events one by one.
#include "heddle/base/profile.h"

#include <fmt/format.h>

#include <chrono>
#include <mutex>
#include <unordered_map>
#include <utility>

namespace heddle {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint32_t kNone = 0;          // names[0] is ""
constexpr size_t kMaxNames = 1 << 20;  // beyond that, names are dropped
constexpr size_t kMaxPending = 256;    // calls that wait for the name of their op

void add(Work& sum, const Work& work) {
  sum.bytes += work.bytes;
  sum.flops += work.flops;
}

struct OpenPhase {
  uint32_t name = kNone;
  uint32_t as_layer = kNone;  // "(name)", for calls outside every layer
  int64_t begin = 0;
  int64_t inside = 0;  // time of kernels and phases in it
  Work work = {};
};

// The lock is for stop_profile() by another thread; it is never waited for otherwise.
struct Recorder {
  std::mutex mutex;
  bool is_active = false;
  size_t max_events = 0;
  int64_t begin = 0;
  Profile profile;
  std::unordered_map<std::string, uint32_t> ids;  // of names
  std::unordered_map<uint64_t, size_t> row_of;    // packed ids -> place in rows
  std::unordered_map<uint32_t, size_t> phase_of;  // name -> place in phases
  std::vector<Profile::Event> pending;
  std::vector<uint32_t> layers;
  std::vector<OpenPhase> phases;                 // the first is the whole run
  uint32_t step_op = kNone, step_layer = kNone;  // of the backward pass

  uint32_t id(std::string_view name) {
    const auto found = ids.find(std::string(name));
    if (found != ids.end()) return found->second;
    if (profile.names.size() >= kMaxNames) return kNone;
    const auto number = static_cast<uint32_t>(profile.names.size());
    profile.names.emplace_back(name);
    ids.emplace(name, number);
    return number;
  }

  void add_event(const Profile::Event& e) {
    if (profile.events.size() < max_events) {
      profile.events.push_back(e);
    } else {
      ++profile.events_left_out;
    }
  }

  void commit(Profile::Event e) {
    if (e.op == kNone) {
      e.op = e.kernel;
    } else if (e.pass == ProfilePass::none) {
      e.pass = ProfilePass::forward;
    }
    const uint64_t key = uint64_t{e.op} << 42 | uint64_t{e.kernel} << 22 | uint64_t{e.layer} << 2 |
                         static_cast<uint64_t>(e.pass);
    const auto [place, is_new] = row_of.emplace(key, profile.rows.size());
    const auto& names = profile.names;
    if (is_new) profile.rows.push_back({names[e.op], names[e.kernel], names[e.layer], e.pass, {}});
    profile.rows[place->second].totals.add({1, e.time, e.work});
    add_event(e);
  }

  void commit_pending(uint32_t op = kNone) {
    for (Profile::Event& e : pending) {
      e.op = op;
      commit(e);
    }
    pending.clear();
  }

  void add_call(const char* kernel, int64_t from, int64_t to, const Work& work) {
    Profile::Event e;
    e.kernel = id(kernel);
    e.begin = from - begin;
    e.time = to - from;
    e.work = work;
    OpenPhase& phase = phases.back();
    phase.inside += e.time;
    add(phase.work, work);
    if (step_op != kNone) {
      e.op = step_op;
      e.layer = step_layer != kNone ? step_layer : phase.as_layer;
      e.pass = ProfilePass::backward;
      commit(e);
      return;
    }
    const bool has_layer = !layers.empty() && layers.back() != kNone;
    e.layer = has_layer ? layers.back() : phase.as_layer;
    e.pass = has_layer ? ProfilePass::forward : ProfilePass::none;
    if (pending.size() >= kMaxPending) commit_pending();
    pending.push_back(e);
  }

  void begin_phase(std::string_view name, int64_t now) {
    commit_pending();
    const uint32_t number = id(name);
    phases.push_back({.name = number, .as_layer = id(fmt::format("({})", name)), .begin = now});
    const bool is_new = phase_of.emplace(number, profile.phases.size()).second;
    if (is_new) profile.phases.push_back({std::string(name), {}, 0});
  }

  void end_phase(int64_t now) {
    commit_pending();
    const OpenPhase open = phases.back();
    phases.pop_back();
    const int64_t time = now - open.begin;
    phases.back().inside += time;
    add(phases.back().work, open.work);
    Profile::Phase& p = profile.phases[phase_of.at(open.name)];
    p.totals.add({1, time, open.work});
    p.own_time += time - open.inside;
    add_event({.op = open.name,
               .pass = ProfilePass::phase,
               .begin = open.begin - begin,
               .time = time,
               .work = open.work});
  }
};

Recorder& recorder() {
  static Recorder* recorder = new Recorder;  // never destroyed: a signal may end the program late
  return *recorder;
}

// Calls f(recorder) if it still records.
template <class F>
void with_recorder(const F& f) {
  Recorder& r = recorder();
  const std::lock_guard lock(r.mutex);
  if (r.is_active) f(r);
}

}  // namespace

namespace profile_detail {

int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch())
      .count();
}

void end_call(const char* kernel, int64_t begin, const Work& work) {
  const int64_t end = now();
  with_recorder([&](Recorder& r) { r.add_call(kernel, begin, end, work); });
}

void enter_phase(const char* name) {
  with_recorder([&](Recorder& r) { r.begin_phase(name, now()); });
}

void leave_phase() {
  const int64_t end = now();
  with_recorder([&](Recorder& r) {
    if (r.phases.size() > 1) r.end_phase(end);
  });
}

}  // namespace profile_detail

void Profile::Totals::add(const Totals& other) {
  calls += other.calls;
  time += other.time;
  heddle::add(work, other.work);
}

void start_profile(size_t max_events) {
  Recorder& r = recorder();
  const std::lock_guard lock(r.mutex);
  r.is_active = true;
  r.max_events = max_events;
  r.profile = {};
  r.profile.names.emplace_back();
  r.ids = {{"", kNone}};
  r.row_of.clear();
  r.phase_of.clear();
  r.pending.clear();
  r.layers.clear();
  r.step_op = r.step_layer = kNone;
  r.begin = profile_detail::now();
  r.phases.assign(1, {.as_layer = r.id("(outside phases)"), .begin = r.begin});
  profile_detail::calls = 0;
  profile_detail::is_on = true;
}

std::optional<Profile> stop_profile() {
  const int64_t end = profile_detail::now();
  profile_detail::is_on = false;
  Recorder& r = recorder();
  const std::lock_guard lock(r.mutex);
  if (!r.is_active) return std::nullopt;
  r.is_active = false;
  while (r.phases.size() > 1) r.end_phase(end);
  r.commit_pending();
  r.profile.time = end - r.begin;
  r.profile.time_outside_phases = r.profile.time - r.phases[0].inside;
  return std::move(r.profile);
}

void name_profiled_op(const char* op) {
  with_recorder([&](Recorder& r) {
    if (!r.pending.empty()) r.commit_pending(r.id(op));
  });
}

void enter_profiled_layer(std::string_view name) {
  with_recorder([&](Recorder& r) {
    r.commit_pending();
    r.layers.push_back(r.id(name));
  });
}

void leave_profiled_layer() {
  with_recorder([&](Recorder& r) {
    r.commit_pending();
    if (!r.layers.empty()) r.layers.pop_back();
  });
}

uint32_t profiled_layer() {
  uint32_t layer = kNone;
  with_recorder([&](Recorder& r) {
    if (!r.layers.empty()) layer = r.layers.back();
  });
  return layer;
}

ProfiledStep::ProfiledStep(const char* op, uint32_t layer) : is_on_(is_profiling()) {
  if (!is_on_) return;
  with_recorder([&](Recorder& r) {
    r.commit_pending();
    op_before_ = std::exchange(r.step_op, r.id(op));
    layer_before_ = std::exchange(r.step_layer, layer);
  });
}

ProfiledStep::~ProfiledStep() {
  if (!is_on_) return;
  with_recorder([&](Recorder& r) {
    r.step_op = op_before_;
    r.step_layer = layer_before_;
  });
}

}  // namespace heddle
