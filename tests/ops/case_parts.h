// What the lists of cases share.
#pragma once

#include "heddle/ops/dropout.h"
#include "tests/support/op_case.h"

namespace heddle {

/// Dropout over rows of three-token samples.
inline DropoutSpec some_dropout(int64_t rows) {
  auto ids = std::make_shared<RowIds>();
  for (int64_t r = 0; r < rows; ++r) {
    ids->sample.push_back(static_cast<uint32_t>(r / 3));
    ids->position.push_back(static_cast<uint32_t>(r % 3));
  }
  return {0.3f, make_key(1, 2, 3), ids};
}

/// Positions 0, 1, .. of each sentence of so many tokens.
inline std::vector<int32_t> some_positions(int64_t n, int64_t sentence) {
  std::vector<int32_t> positions(n);
  for (int64_t i = 0; i < n; ++i) positions[i] = static_cast<int32_t>(i % sentence);
  return positions;
}

/// The cases of attention by any scores; tests/ops/attention_cases.cc.
void add_attention_cases(std::vector<OpCase>& all, const OpSizes& z);
/// Those of recurrence; tests/ops/recurrent_cases.cc.
void add_recurrent_cases(std::vector<OpCase>& all, const OpSizes& z);
/// Those of losses; tests/ops/loss_cases.cc.
void add_loss_cases(std::vector<OpCase>& all, const OpSizes& z);
/// Those of windows over images; tests/ops/patch_cases.cc.
void add_patch_cases(std::vector<OpCase>& all, const OpSizes& z);
/// Those of boxes; tests/ops/box_cases.cc.
void add_box_cases(std::vector<OpCase>& all, const OpSizes& z);
/// Those of batch norm; tests/ops/batch_norm_cases.cc.
void add_batch_norm_cases(std::vector<OpCase>& all, const OpSizes& z);

}  // namespace heddle
