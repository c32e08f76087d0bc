// The recorder: sums by op, kernel, layer and pass, and the first events one by one.
#include "heddle/base/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "heddle/base/json/json.h"
#include "heddle/base/progress.h"

namespace heddle {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint32_t kNone = 0;          // names[0] is ""
constexpr size_t kMaxNames = 1 << 20;  // beyond that, names are dropped
// Calls that wait for the name of their op. A convolution by Winograd's tiles of 512 images makes
// 9,000.
constexpr size_t kMaxPending = 1 << 16;

struct OpenPhase {
  uint32_t name = kNone;
  uint32_t as_layer = kNone;  // "(name)", for calls outside every layer
  int64_t begin = 0;
  int64_t inside = 0;  // time of kernels and phases in it
  Work work = {};
};

struct Recorder {
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
    phase.work.add(work);
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
    phases.back().work.add(open.work);
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

// The lock is for stop_profile() by another thread; it is never waited for otherwise.
struct Shared {
  std::mutex mutex;
  Recorder recorder;
};

Shared& shared() {
  static Shared* shared = new Shared;  // never destroyed: a signal may end the program late
  return *shared;
}

// Calls f(recorder) if it still records.
template <class F>
void with_recorder(const F& f) {
  const std::lock_guard lock(shared().mutex);
  if (shared().recorder.is_active) f(shared().recorder);
}

constexpr size_t kLayers = 20;

using TableLine = std::vector<std::string>;  // cells

// Columns as wide as their widest cell; the first `texts` to the left, numbers to the right.
std::string aligned(const std::vector<TableLine>& lines, size_t texts) {
  std::vector<size_t> widths;
  for (const TableLine& line : lines) {
    widths.resize(std::max(widths.size(), line.size()));
    for (size_t i = 0; i < line.size(); ++i) {
      widths[i] = std::max(widths[i], line[i].size());
    }
  }
  std::string out;
  for (const TableLine& line : lines) {
    std::string row;
    for (size_t i = 0; i < line.size(); ++i) {
      row += i == 0 ? "" : "  ";
      row += i < texts ? fmt::format("{:<{}}", line[i], widths[i])
                       : fmt::format("{:>{}}", line[i], widths[i]);
    }
    row.erase(row.find_last_not_of(' ') + 1);
    out += row + "\n";
  }
  return out;
}

double milliseconds(int64_t time) { return static_cast<double>(time) * 1e-6; }

double share(int64_t part, int64_t whole) {
  return whole > 0 ? 100 * static_cast<double>(part) / static_cast<double>(whole) : 0;
}

// "" for what is not known.
std::string rate(double amount, int64_t time) {  // 1e9 in a second = 1 in a nanosecond
  return amount > 0 && time > 0 ? fmt::format("{:.1f}", amount / static_cast<double>(time)) : "";
}

std::string ms(int64_t time) { return fmt::format("{:.1f}", milliseconds(time)); }

void add_numbers(TableLine& line, const Profile::Totals& t, int64_t whole) {
  const auto bytes = static_cast<double>(t.work.bytes);
  line.insert(line.end(), {ms(t.time), fmt::format("{:.1f} %", share(t.time, whole)),
                           t.work.bytes > 0 ? fmt::format("{:.3f}", bytes * 1e-9) : "",
                           rate(bytes, t.time), rate(t.work.flops, t.time)});
}

std::string label(const std::string& op, ProfilePass pass) {
  return pass == ProfilePass::backward ? op + " backward" : op;
}

// Sums of rows under a key, longest first.
template <class Key, class KeyOf>
std::vector<std::pair<Key, Profile::Totals>> sums(const Profile& p, const KeyOf& key_of) {
  std::map<Key, Profile::Totals> totals;
  for (const Profile::Row& row : p.rows) totals[key_of(row)].add(row.totals);
  std::vector<std::pair<Key, Profile::Totals>> sorted(totals.begin(), totals.end());
  std::ranges::stable_sort(sorted, std::greater(), [](const auto& s) { return s.second.time; });
  return sorted;
}

std::string op_table(const Profile& p) {
  using Key = std::pair<std::string, std::string>;
  std::vector<TableLine> lines = {
      {"op", "kernel", "calls", "ms", "share", "GB", "GB/s", "GFLOP/s"}};
  const auto key = [](const Profile::Row& r) { return Key{label(r.op, r.pass), r.kernel}; };
  for (const auto& [names, t] : sums<Key>(p, key)) {
    TableLine line = {names.first, names.second, format_count(t.calls)};
    add_numbers(line, t, p.time);
    lines.push_back(std::move(line));
  }
  return aligned(lines, 2);
}

std::string layer_table(const Profile& p) {
  std::map<std::string, int64_t> backward;
  for (const Profile::Row& r : p.rows) {
    if (r.pass == ProfilePass::backward) backward[r.layer] += r.totals.time;
  }
  std::vector<TableLine> lines = {
      {"layer", "calls", "backward ms", "ms", "share", "GB", "GB/s", "GFLOP/s"}};
  const auto add_line = [&](const std::string& name, int64_t back, const Profile::Totals& t) {
    TableLine line = {name, format_count(t.calls), back > 0 ? ms(back) : ""};
    add_numbers(line, t, p.time);
    lines.push_back(std::move(line));
  };
  const auto layers = sums<std::string>(p, [](const Profile::Row& r) { return r.layer; });
  Profile::Totals rest;
  int64_t rest_backward = 0;
  for (size_t i = 0; i < layers.size(); ++i) {
    const auto& [name, t] = layers[i];
    if (i < kLayers) {
      add_line(name, backward[name], t);
    } else {
      rest.add(t);
      rest_backward += backward[name];
    }
  }
  if (layers.size() > kLayers) {
    add_line(fmt::format("{} more", layers.size() - kLayers), rest_backward, rest);
  }
  return aligned(lines, 1);
}

std::string phase_table(const Profile& p) {
  std::vector<TableLine> lines = {
      {"phase", "calls", "ms", "share", "GB", "GB/s", "GFLOP/s", "own ms"}};
  for (const Profile::Phase& phase : p.phases) {
    TableLine line = {phase.name, format_count(phase.totals.calls)};
    add_numbers(line, phase.totals, p.time);
    line.push_back(ms(phase.own_time));
    lines.push_back(std::move(line));
  }
  lines.push_back({"outside phases", "", "", "", "", "", "", ms(p.time_outside_phases)});
  return aligned(lines, 1);
}

const char* category(ProfilePass pass) {
  constexpr const char* kNames[] = {"kernel", "forward", "backward", "phase"};
  return kNames[static_cast<size_t>(pass)];
}

std::string trace_event(const Profile& p, const Profile::Event& e) {
  const Json args = Json::object({{"kernel", p.names[e.kernel]},
                                  {"layer", p.names[e.layer]},
                                  {"bytes", e.work.bytes},
                                  {"flops", e.work.flops}});
  const Json event = Json::object({{"name", label(p.names[e.op], e.pass)},
                                   {"cat", category(e.pass)},
                                   {"ph", "X"},
                                   {"ts", static_cast<double>(e.begin) * 1e-3},
                                   {"dur", static_cast<double>(e.time) * 1e-3},
                                   {"pid", 1},
                                   {"tid", 1},
                                   {"args", args}});
  return event.dump();
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
  work.add(other.work);
}

void start_profile(size_t max_events) {
  const std::lock_guard lock(shared().mutex);
  Recorder& r = shared().recorder;
  r = Recorder();
  r.is_active = true;
  r.max_events = max_events;
  r.begin = profile_detail::now();
  r.profile.names.emplace_back();
  r.ids = {{"", kNone}};
  r.phases.assign(1, {.as_layer = r.id("(outside phases)"), .begin = r.begin});
  profile_detail::calls = 0;
  profile_detail::is_on = true;
}

std::optional<Profile> stop_profile() {
  const int64_t end = profile_detail::now();
  profile_detail::is_on = false;
  const std::lock_guard lock(shared().mutex);
  Recorder& r = shared().recorder;
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

std::string profile_tables(const Profile& profile) {
  Profile::Totals all;
  for (const Profile::Row& row : profile.rows) all.add(row.totals);
  std::string out = fmt::format(
      "profile: {:.3f} s, of which {:.3f} s ({:.1f} %) in {} kernel calls and {:.3f} s ({:.1f} %) "
      "outside kernels\n",
      milliseconds(profile.time) * 1e-3, milliseconds(all.time) * 1e-3,
      share(all.time, profile.time), format_count(all.calls),
      milliseconds(profile.time - all.time) * 1e-3, share(profile.time - all.time, profile.time));
  if (!profile.rows.empty()) out += "\n" + op_table(profile) + "\n" + layer_table(profile);
  // "own": where the time outside kernels is.
  if (!profile.phases.empty()) out += "\n" + phase_table(profile);
  return out;
}

void write_trace(const Profile& profile, const std::function<void(std::string_view)>& write) {
  write("{\"displayTimeUnit\": \"ms\", \"traceEvents\": [");
  std::string_view before = "\n";
  for (const Profile::Event& event : profile.events) {
    write(before);
    write(trace_event(profile, event));
    before = ",\n";
  }
  write("\n]}\n");
}

}  // namespace heddle
