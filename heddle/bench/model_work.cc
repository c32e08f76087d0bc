// Random tokens, and the names of their rows.
#include "heddle/bench/model_work.h"

namespace heddle::bench {

RngStream random_numbers() { return RngStream(make_key(1, 0, hash_name("bench"))); }

std::vector<int32_t> random_tokens(RngStream& random, int64_t n, int64_t vocab, int64_t first) {
  std::vector<int32_t> tokens(n);
  for (int32_t& w : tokens) w = static_cast<int32_t>(first + random.below(vocab - first));
  return tokens;
}

void name_rows(const Segments& segments, std::vector<uint32_t>& sample,
               std::vector<uint32_t>& position) {
  for (int64_t i = 0; i < segments.count(); ++i) {
    for (int64_t r = 0; r < segments.length(i); ++r) {
      sample.push_back(static_cast<uint32_t>(i));
      position.push_back(static_cast<uint32_t>(r));
    }
  }
}

}  // namespace heddle::bench
