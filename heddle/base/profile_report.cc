// Tables and trace of a profile.
#include "heddle/base/profile_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "heddle/base/json/json.h"
#include "heddle/base/progress.h"

namespace heddle {
namespace {

constexpr size_t kLayers = 20;

struct TableLine {
  std::vector<std::string> cells;
};

// Columns as wide as their widest cell; the first `texts` to the left, numbers to the right.
std::string aligned(const std::vector<TableLine>& lines, size_t texts) {
  std::vector<size_t> widths;
  for (const TableLine& line : lines) {
    widths.resize(std::max(widths.size(), line.cells.size()));
    for (size_t i = 0; i < line.cells.size(); ++i) {
      widths[i] = std::max(widths[i], line.cells[i].size());
    }
  }
  std::string out;
  for (const TableLine& line : lines) {
    std::string row;
    for (size_t i = 0; i < line.cells.size(); ++i) {
      row += i == 0 ? "" : "  ";
      row += i < texts ? fmt::format("{:<{}}", line.cells[i], widths[i])
                       : fmt::format("{:>{}}", line.cells[i], widths[i]);
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
  for (std::string cell : {ms(t.time), fmt::format("{:.1f} %", share(t.time, whole)),
                           t.work.bytes > 0 ? fmt::format("{:.3f}", bytes * 1e-9) : "",
                           rate(bytes, t.time), rate(t.work.flops, t.time)}) {
    line.cells.push_back(std::move(cell));
  }
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
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second.time > b.second.time; });
  return sorted;
}

std::string op_table(const Profile& p) {
  using Key = std::pair<std::string, std::string>;
  std::vector<TableLine> lines = {
      {{"op", "kernel", "calls", "ms", "share", "GB", "GB/s", "GFLOP/s"}}};
  const auto key = [](const Profile::Row& r) { return Key{label(r.op, r.pass), r.kernel}; };
  for (const auto& [names, t] : sums<Key>(p, key)) {
    TableLine line{{names.first, names.second, format_count(t.calls)}};
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
      {{"layer", "calls", "backward ms", "ms", "share", "GB", "GB/s", "GFLOP/s"}}};
  const auto add_line = [&](const std::string& name, int64_t back, const Profile::Totals& t) {
    TableLine line{{name, format_count(t.calls), back > 0 ? ms(back) : ""}};
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
      {{"phase", "calls", "ms", "share", "GB", "GB/s", "GFLOP/s", "own ms"}}};
  for (const Profile::Phase& phase : p.phases) {
    TableLine line{{phase.name, format_count(phase.totals.calls)}};
    add_numbers(line, phase.totals, p.time);
    line.cells.push_back(ms(phase.own_time));
    lines.push_back(std::move(line));
  }
  lines.push_back({{"outside phases", "", "", "", "", "", "", ms(p.time_outside_phases)}});
  return aligned(lines, 1);
}

const char* category(ProfilePass pass) {
  constexpr const char* kNames[] = {"kernel", "forward", "backward", "phase"};
  return kNames[static_cast<size_t>(pass)];
}

std::string trace_event(const Profile& p, const Profile::Event& e) {
  Json args = Json::object({{"kernel", p.names[e.kernel]},
                            {"layer", p.names[e.layer]},
                            {"bytes", e.work.bytes},
                            {"flops", e.work.flops}});
  Json event = Json::object({{"name", label(p.names[e.op], e.pass)},
                             {"cat", category(e.pass)},
                             {"ph", "X"},
                             {"ts", static_cast<double>(e.begin) * 1e-3},
                             {"dur", static_cast<double>(e.time) * 1e-3},
                             {"pid", 1},
                             {"tid", 1}});
  event["args"] = std::move(args);
  return event.dump();
}

}  // namespace

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
