// Chunks of the fused loss: alike, never larger than stated, and of the same sum as one.
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "heddle/base/like_chunks.h"
#include "heddle/base/rng.h"
#include "heddle/ops/loss.h"
#include "tests/ops/references.h"

namespace heddle {
namespace {

LikeChunks chunks_of(int64_t tokens, int64_t copies, int64_t row_bytes) {
  return {tokens, 32 / copies, row_bytes * copies, 24 << 20};
}

struct Sizes {
  int64_t tokens, vocab, copies = 1, bytes = 2;
};

TEST(FusedLoss, chunks_are_alike_and_never_larger_than_stated) {
  std::vector<Sizes> all = {{8200, 50257}, {130, 151936}, {2048, 151936}, {2048, 32000}};
  for (const int64_t vocab : {13, 10000, 32000, 50257, 151936, 262144}) {
    for (const int64_t tokens : {1, 31, 33, 65, 97, 130, 500, 2047, 8200}) {
      for (const int64_t bytes : {2, 4}) {
        all.push_back({tokens, vocab, 1, bytes});
        all.push_back({tokens, vocab, 2, bytes});
      }
    }
  }
  for (const Sizes& s : all) {
    SCOPED_TRACE(testing::Message() << s.tokens << " tokens, vocabulary " << s.vocab << ", "
                                    << s.copies << " rows each, " << s.bytes << " bytes");
    const int64_t row_bytes = s.vocab * s.bytes;
    const LikeChunks chunks = chunks_of(s.tokens, s.copies, row_bytes);
    const auto length = [&](int64_t i) { return chunks.begin(i + 1) - chunks.begin(i); };
    EXPECT_EQ(chunks.begin(0), 0);
    EXPECT_EQ(chunks.begin(chunks.count()), s.tokens);
    const int64_t most = std::max<int64_t>(24 << 20, 64 * row_bytes);
    for (int64_t i = 0; i < chunks.count(); ++i) {
      EXPECT_GT(length(i), 0);
      EXPECT_LE(length(i), chunks.longest());
      EXPECT_LE(length(i) * s.copies * row_bytes, most);
    }
    EXPECT_GE(2 * length(chunks.count() - 1), length(0));
  }
  EXPECT_EQ(chunks_of(0, 1, 100).count(), 0);
}

// 80,000 logits in f32 are 320 KB: 130 rows are three chunks, of 64 rows at most.
TEST(FusedLoss, several_chunks_have_the_loss_and_the_gradients_of_all_logits_at_once) {
  constexpr int64_t kRows = 130, kVocab = 80000;
  ASSERT_EQ(chunks_of(kRows, 1, kVocab * 4).count(), 3);
  ASSERT_EQ(chunks_of(kRows / 2, 2, kVocab * 4).count(), 3);
  // The smaller weight is read again for each block of rows, the larger is not.
  for (const int64_t width : {16, 40}) {
    for (const float divergence : {0.0f, 3.0f}) {
      SCOPED_TRACE(testing::Message() << "width " << width << ", divergence " << divergence);
      RngStream random(make_key(1, 2, 3));
      const auto tensor = [&](const Shape& shape) {
        std::vector<float> values(static_cast<size_t>(shape.elements()));
        for (float& v : values) v = random.uniform() - 0.5f;
        return Tensor::from(values, shape);
      };
      const Tensor x = tensor({kRows, width}), w = tensor({kVocab, width}), b = tensor({kVocab});
      std::vector<int32_t> targets(kRows);
      for (size_t r = 0; r < targets.size(); ++r) {
        const size_t token = r % (kRows / 2);
        targets[r] = token % 7 == 3 ? -1 : static_cast<int32_t>(token * 601);
      }
      const CrossEntropyOptions o{
          .smoothing = 0.1f, .divergence = divergence, .grad_scale = 1.0f / kRows};
      std::array<Leaf, 3> got, want;
      const CrossEntropy loss = linear_cross_entropy(x.with_leaf(&got[0]), w.with_leaf(&got[1]),
                                                     b.with_leaf(&got[2]), targets, o);
      backward(loss.loss);
      const CrossEntropy whole = linear_cross_entropy_reference(
          x.with_leaf(&want[0]), w.with_leaf(&want[1]), b.with_leaf(&want[2]), targets, o);
      backward(whole.loss);
      EXPECT_NEAR(loss.total, whole.total, 1e-5 * whole.total);
      EXPECT_EQ(loss.predicted, whole.predicted);
      for (size_t i = 0; i < got.size(); ++i) {
        const std::vector<float> ours = got[i].grad.to_floats(), all = want[i].grad.to_floats();
        ASSERT_EQ(ours.size(), all.size());
        for (size_t j = 0; j < ours.size(); ++j) {
          ASSERT_NEAR(ours[j], all[j], 1e-7 + 1e-4 * std::abs(all[j]))
              << "input " << i << ": " << j;
        }
      }
    }
  }
}

}  // namespace
}  // namespace heddle
