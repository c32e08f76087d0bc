// A profile as tables for people, and as a trace for chrome://tracing and Perfetto.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "heddle/base/profile.h"

namespace heddle {

/// Tables by op and kernel, by layer (the 20 that took longest, and the rest as one), and by phase:
/// calls, ms, share of the whole time, GB, GB/s, GFLOP/s; and the time outside kernels.
std::string profile_tables(const Profile& profile);

/// Writes {"traceEvents": [...]}, piece by piece, in the Trace Event Format: complete events ("X")
/// with name, cat (forward, backward, kernel or phase), ts and dur in microseconds, and args
/// {kernel, layer, bytes, flops}.
void write_trace(const Profile& profile, const std::function<void(std::string_view)>& write);

}  // namespace heddle
