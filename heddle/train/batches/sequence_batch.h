// Sequences of tokens laid end to end, with what is to be predicted of them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "heddle/nn/token_rows.h"

namespace heddle::train {

struct SequenceBatch {
  std::vector<int32_t> ids, types;  ///< [rows]; types may be empty: all 0
  std::vector<int32_t> targets;     ///< [rows] or [sequences]; negative ones do not count
  std::vector<int64_t> lengths;     ///< [sequences]
  RowIds rows;                      ///< names of the rows, for dropout

  /// Lays a sequence, of the sample of this number, behind the others, with its targets and types.
  void add(std::span<const int32_t> sequence, int64_t sample,
           std::span<const int32_t> its_targets = {}, std::span<const int32_t> its_types = {}) {
    ids.insert(ids.end(), sequence.begin(), sequence.end());
    targets.insert(targets.end(), its_targets.begin(), its_targets.end());
    types.insert(types.end(), its_types.begin(), its_types.end());
    lengths.push_back(static_cast<int64_t>(sequence.size()));
    for (size_t i = 0; i < sequence.size(); ++i) {
      rows.sample.push_back(static_cast<uint32_t>(sample));
      rows.position.push_back(static_cast<uint32_t>(i));
    }
  }

  /// As models take them; they point into this batch.
  nn::TokenRows tokens() {
    segments = Segments::from_lengths(lengths);
    return {.ids = ids,
            .segments = &segments,
            .rows = std::make_shared<const RowIds>(rows),
            .types = types};
  }

  Segments segments;
};

}  // namespace heddle::train
