// Load on a server: requests sent at the times that were meant, however slowly it answers.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace heddle::serve {

struct TrafficOptions {
  std::string host;  ///< an address or a name
  int port = 80;
  std::string path = "/v1/translations";
  std::string key = {};             ///< shown as Bearer; "": none
  std::vector<std::string> bodies;  ///< of requests, taken in turn
  double rate = 0;                  ///< requests a second, at random times (Poisson); 0: `clients`
  int64_t clients = 1;              ///< without a rate: so many, each of which asks again at once
  double seconds = 10;              ///< of sending; what is under way then is waited for
  double deadline = 1;              ///< seconds within which an answer counts as goodput
  int64_t most_connections = 1024;  ///< a request that finds none free waits, and that counts
  uint64_t seed = 1;                ///< of the times
};

/// What became of the requests. Latencies are in seconds, from the time at which a request was
/// meant to be sent, not from when it was: a server that stalls does not hide that.
struct TrafficReport {
  int64_t sent = 0, answered = 0, in_time = 0, refused = 0, failed = 0;
  int64_t tokens = 0;                          ///< that answers say they wrote
  double seconds = 0;                          ///< from the first to the last
  std::vector<double> latencies = {};          ///< of those answered, rising
  std::vector<double> refusal_latencies = {};  ///< of those refused (429, 503), rising
  std::string first_failure = {};

  /// The least latency that a share of them do not exceed; 0 of none.
  static double quantile(const std::vector<double>& rising, double share);
};

/// Sends and counts. on_tick: called some ten times a second with what is known so far
/// Errors: system if the server cannot be reached at all; usage for a name that there is not.
TrafficReport run_load(const TrafficOptions& options,
                       const std::function<void(const TrafficReport&)>& on_tick = {});

}  // namespace heddle::serve
