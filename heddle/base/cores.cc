// How many cores this process may use: the affinity mask, and the quotas of control groups.
#include "heddle/base/cores.h"

#include <sched.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <sstream>
#include <thread>

namespace heddle {
namespace {

// "" where there is no such file.
std::string text_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// Cores of "QUOTA PERIOD" in microseconds; 0 where there is no quota ("max", or -1).
int cores_of(const std::string& line) {
  std::istringstream words(line);
  int64_t quota = 0, period = 0;
  if (!(words >> quota >> period) || quota <= 0 || period <= 0) return 0;
  return static_cast<int>(std::min<int64_t>((quota - 1) / period + 1, 1 << 20));
}

// The smallest quota of a group and those above it. Where a container sees its own group as the
// root, the path may name folders that it does not see: they are passed over.
int smallest_quota(const std::string& root, std::string path, bool is_second_version) {
  int least = 0;
  for (;;) {
    const std::string folder = root + (path == "/" ? "" : path);
    const int cores = is_second_version ? cores_of(text_of(folder + "/cpu.max"))
                                        : cores_of(text_of(folder + "/cpu.cfs_quota_us") + " " +
                                                   text_of(folder + "/cpu.cfs_period_us"));
    if (cores > 0) least = least == 0 ? cores : std::min(least, cores);
    if (path.empty() || path == "/") return least;
    path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
  }
}

}  // namespace

int cpu_quota(const std::string& root, std::string_view groups) {
  std::istringstream lines{std::string(groups)};
  int least = 0;
  for (std::string line; std::getline(lines, line);) {  // NUMBER:CONTROLLERS:PATH
    const size_t first = line.find(':');
    const size_t second = first == line.npos ? line.npos : line.find(':', first + 1);
    if (second == line.npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool is_second_version = controllers.empty();
    if (!is_second_version && ("," + controllers + ",").find(",cpu,") == line.npos) continue;
    const std::string folder = is_second_version ? root : root + "/" + controllers;
    const int cores = smallest_quota(folder, line.substr(second + 1), is_second_version);
    if (cores > 0) least = least == 0 ? cores : std::min(least, cores);
  }
  return least;
}

int available_cores() {
  cpu_set_t set;
  const unsigned all = std::thread::hardware_concurrency();
  int cores = all == 0 ? 1 : static_cast<int>(all);
  if (sched_getaffinity(0, sizeof set, &set) == 0) cores = CPU_COUNT(&set);
  const int quota = cpu_quota("/sys/fs/cgroup", text_of("/proc/self/cgroup"));
  return std::max(1, quota > 0 ? std::min(cores, quota) : cores);
}

}  // namespace heddle
