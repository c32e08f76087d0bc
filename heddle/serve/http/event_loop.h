// The loop over a context's handlers that servers and clients of many connections run.
#pragma once

#include <utility>  // Boost 1.74 needs it and does not say so

#include <boost/asio.hpp>
#include <chrono>
#include <cstdint>
#include <thread>

namespace heddle::serve {

/// So many connections that wait are worth gathering what they send.
inline constexpr int64_t kCrowd = 32;

/// Runs handlers until then. While is_crowded() holds, what comes within a millisecond is taken
/// together: each waking takes a core from those that compute.
template <class IsCrowded>
void run_together(boost::asio::io_context& context, std::chrono::steady_clock::time_point until,
                  const IsCrowded& is_crowded) {
  while (context.run_one_until(until) > 0) {
    for (int i = 0; i < 1024 && context.poll_one() > 0; ++i) {
    }
    if (is_crowded()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace heddle::serve
