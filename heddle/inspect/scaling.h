// How long an update takes on several ranks: what each computes and what goes over the wire.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace heddle::inspect {

/// What connects two ranks; each rank sends and receives at this rate at once.
struct RankLink {
  double bytes_per_second = 0;  ///< in one direction, of payload
  double latency = 0;           ///< seconds from the first byte sent to the first byte received
};

/// "10GbE", "25Gbit/s", "800Mbit/s", "1.2GB/s", "900MB/s": powers of 1,000. Of Ethernet's bits 94.9
/// % carry payload (1,448 of the 1,526 bytes that a frame of TCP takes on the wire; of plain rates
/// all).    Errors: usage
double link_rate(const std::string& text);

/// An update on so many ranks, in seconds.
struct RankedUpdate {
  int64_t ranks = 1;
  double compute = 0;  ///< of each rank's shards
  double wire = 0;     ///< sums of the gradients, then the weights, behind all computing
  int64_t bytes = 0;   ///< that each rank sends
  double seconds() const { return compute + wire; }
};

/// For 1, 2, 4, .. `ranks` (a power of two), by the closed form
///   t(R) = t(1) / R + 2 (R - 1) / R * 4 P / rate + 2 log2(R) * latency:
/// P gradients in f32 are halved log2(R) times on their way to the rank that keeps their sum, and
/// the new weights come back the same way.
/// update_seconds: of one rank alone    parameters: P
/// Errors: usage if `ranks` is no power of two, or a number is not positive
std::vector<RankedUpdate> ranked_updates(double update_seconds, int64_t parameters, int64_t ranks,
                                         const RankLink& link);

}  // namespace heddle::inspect
