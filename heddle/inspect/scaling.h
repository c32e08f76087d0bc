// How long an update takes on several ranks: what each computes and what goes over the wire.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "heddle/tensor/dtype.h"

namespace heddle::inspect {

/// What connects two ranks; each rank sends and receives at this rate at once.
struct RankLink {
  double bytes_per_second = 0;   ///< in one direction, of payload
  double latency = 0;            ///< seconds from the first byte sent to the first byte received
  DType gradients = DType::f32;  ///< as they are sent; weights go in f32
  /// Seconds that sending a byte, and receiving and adding another, takes of the cores that
  /// compute; 0 where a rank has a core to spare.
  double processor = 0;
};

/// "10GbE", "25Gbit/s", "800Mbit/s", "1.2GB/s", "900MB/s": powers of 1,000. Of Ethernet's bits 94.9
/// % carry payload (1,448 of the 1,526 bytes that a frame of TCP takes on the wire; of plain rates
/// all).    Errors: usage
double link_rate(const std::string& text);

/// An update on so many ranks, in seconds.
struct RankedUpdate {
  int64_t ranks = 1;
  double compute = 0;   ///< of each rank's shard
  double wire = 0;      ///< sums of the gradients, then the weights
  double hidden = 0;    ///< of it: sums on their way while the backward pass goes on
  double exchange = 0;  ///< what sending, receiving and adding takes of the cores that compute
  int64_t bytes = 0;    ///< that each rank sends
  double seconds() const { return compute + exchange + wire - hidden; }
};

/// What a backward pass takes of the computing of a shard: two products for each of the forward
/// pass.
constexpr double kBackwardShare = 2.0 / 3;

/// For 1, 2, 4, .. `ranks` (a power of two), each with one shard, by the closed form
///   t(R) = t(1) / R + left + w(n(1), 4) + w(n(2), 4) + ..,
///   w(n, b) = (R - 1) / R * b n / rate + log2(R) * latency:
/// a bucket of n gradients is halved log2(R) times on its way to the ranks that keep its sums, and
/// the new weights come back the same way. Sums of bucket i leave behind that of bucket
/// i - 1 and not before its gradients are there, which a backward pass makes at an even rate:
///   e(i) = max(e(i - 1), kBackwardShare * t(1) / R * (n(1) + .. + n(i)) / P) + w(n(i), g),
/// g the bytes of a gradient on its way; `left` is what is on its way when the backward pass has
/// ended. Each byte that a rank sends takes link.processor in addition.
/// update_seconds: of one rank alone    buckets: gradients of each, as they leave
/// Errors: usage if `ranks` is no power of two, or a number is not positive
std::vector<RankedUpdate> ranked_updates(double update_seconds, const std::vector<int64_t>& buckets,
                                         int64_t ranks, const RankLink& link);

}  // namespace heddle::inspect
