// How anything is timed: repetitions after a warm-up, and their median.
#pragma once

#include <cstdint>
#include <functional>

namespace heddle::bench {

struct Timing {
  double median = 0;  ///< seconds of a repetition
  int64_t repetitions = 0;
};

/// Calls f `warm_up` times, then again and again until `seconds` have passed and it ran `least`
/// times.
Timing time_repeatedly(const std::function<void()>& f, double seconds, int warm_up = 2,
                       int64_t least = 3);

}  // namespace heddle::bench
