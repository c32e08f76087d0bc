// Repetitions after a warm-up, and their median.
#include "heddle/bench/timing.h"

#include <algorithm>
#include <chrono>
#include <vector>

namespace heddle::bench {
namespace {

using Clock = std::chrono::steady_clock;

double since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

}  // namespace

Timing time_repeatedly(const std::function<void()>& f, double seconds, int warm_up, int64_t least) {
  for (int i = 0; i < warm_up; ++i) f();
  std::vector<double> times;
  const Clock::time_point begin = Clock::now();
  while (since(begin) < seconds || static_cast<int64_t>(times.size()) < least) {
    const Clock::time_point start = Clock::now();
    f();
    times.push_back(since(start));
  }
  return {median(times), static_cast<int64_t>(times.size())};
}

}  // namespace heddle::bench
