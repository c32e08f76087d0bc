// What a model with memory carries along the streams of a text, from update to update.
#pragma once

#include <compare>
#include <cstdint>
#include <map>

#include "heddle/nn/relative/relative_rows.h"
#include "heddle/train/run/state.h"

namespace heddle::train {

/// The memories of streams that are read side by side, by the first stream of each part of a batch.
/// A batch that is computed again (to find what is not finite) sees what it saw the first time.
class StreamMemory {
 public:
  /// A batch of an epoch. At batch 0 streams begin.
  struct Place {
    int64_t epoch = 0, batch = 0;
    auto operator<=>(const Place&) const = default;
  };

  /// What the streams from `stream` on have before a batch, as it was put.
  /// Errors: data if it is not known, which a state of another program may cause.
  nn::Memory before(const Place& place, int64_t stream) const;
  /// Notes what they have behind it.
  void put(const Place& place, int64_t stream, nn::Memory behind);

  /// For the state of a run: "memory.STREAM.LAYER", [streams * tokens, width], what comes next; of
  /// the streams alone that were read to the last batch here (others are read by other ranks).
  NamedTensors tensors() const;
  /// The same read back, before the batch of a place. Errors: data for other names, or rows that
  /// are not equally many of each stream.
  void restore(const NamedTensors& tensors, const Place& place, int64_t streams);

 private:
  struct Part {
    Place last;         // the batch that was computed last
    nn::Memory before;  // what it saw
    Place next;
    nn::Memory behind;  // what the next one sees
  };
  std::map<int64_t, Part> parts_;
};

}  // namespace heddle::train
