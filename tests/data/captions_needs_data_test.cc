// NLVR as it lies in the shared data.
#include <gtest/gtest.h>

#include <set>

#include "heddle/data/captions.h"
#include "tests/base/temporary.h"
#include "tests/support/places.h"

namespace heddle {
namespace {

TEST(NlvrData, every_image_with_a_true_sentence_is_there) {
  const TemporaryFolder folder;
  const CaptionSplit split = open_caption_split(
      {.path = std::string(testing::kData) + "/nlvr", .cache_dir = folder / "cache"});
  ASSERT_EQ(split.train.size(), 547);  // what its README counts
  ASSERT_EQ(split.val.size(), 556);
  std::set<std::string> sentences;
  for (int64_t i = 0; i < split.train.size(); ++i) {
    EXPECT_EQ(split.train.image(i).size, (ImageSize{100, 400}));
    ASSERT_EQ(split.train.captions(i).size(), 1U);
    sentences.insert(split.train.captions(i)[0]);
  }
  EXPECT_GT(sentences.size(), 240U);
}

}  // namespace
}  // namespace heddle
