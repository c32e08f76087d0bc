// Decoding as one writes it down: no cache, no batch.
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "heddle/infer/decoding/translate.h"
#include "tests/infer/small_models.h"

namespace heddle::testing {

using Ids = std::vector<int32_t>;

inline void expect_same(const std::vector<Translation>& a, const std::vector<Translation>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].ids, b[i].ids) << i;
    EXPECT_EQ(a[i].score, b[i].score) << i;  // bit for bit
  }
}

inline Ids with_end(Ids ids) {
  ids.push_back(3);
  return ids;
}

// Logits of the token behind start and `prefix`, by one uncached pass over a sentence alone.
inline Tensor uncached_logits(const EncoderDecoder& model, const Ids& source, const Ids& prefix,
                              const nn::Run& run) {
  const NoGrad off;
  const Ids from = with_end(source);
  Ids to = {2};
  to.insert(to.end(), prefix.begin(), prefix.end());
  const Segments keys = Segments::uniform(1, static_cast<int64_t>(from.size()));
  const Segments queries = Segments::uniform(1, static_cast<int64_t>(to.size()));
  const Tensor memory = model.encode(nn::TokenRows{from, &keys, nullptr}, run);
  const Tensor h = model.decode({to, &queries, nullptr}, memory, keys, run);
  return model.output()(h.slice(0, h.size(0) - 1, 1), run);
}

}  // namespace heddle::testing
