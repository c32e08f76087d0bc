// Attention maps of a pair, and words made of tokens.
#include "heddle/infer/words.h"

#include <gtest/gtest.h>

#include <limits>

#include "heddle/infer/decoding/translate.h"
#include "tests/base/temporary.h"
#include "tests/infer/small_models.h"

namespace heddle::testing {
namespace {

TEST(CrossAttentionMap, has_a_row_for_each_word_and_the_end_that_sums_to_1) {
  const SmallModel m(small_config());
  const std::vector<int32_t> source = {5, 6, 7, 8}, target = {9, 10};
  for (const int64_t layer : {-1, 0, 1}) {
    const Tensor map = cross_attention_map(m.model, source, target, layer);
    ASSERT_EQ(map.shape(), (Shape{3, 5}));
    for (int64_t i = 0; i < 3; ++i) {
      double sum = 0;
      for (int64_t j = 0; j < 5; ++j) sum += map.data<float>()[i * 5 + j];
      EXPECT_NEAR(sum, 1, 1e-5);
    }
  }
}

TEST(CrossAttentionMap, default_is_the_last_layer_or_the_one_before_in_deep_models) {
  const std::vector<int32_t> source = {5, 6, 7}, target = {9, 10};
  for (const auto& [layers, expected] : {std::pair{2, 1}, std::pair{4, 3}, std::pair{6, 4}}) {
    TransformerConfig c = small_config();
    c.decoder_layers = layers;
    const SmallModel m(c);
    for (int64_t layer = 0; layer < layers; ++layer) {
      const bool is_default = cross_attention_map(m.model, source, target).to_floats() ==
                              cross_attention_map(m.model, source, target, layer).to_floats();
      EXPECT_EQ(is_default, layer == expected) << layers << " " << layer;
    }
  }
}

TEST(CrossAttentionMap, layer_that_is_not_there_is_a_shape_error) {
  const SmallModel m(small_config());
  const std::vector<int32_t> ids = {5};
  expect_error(ErrorKind::shape, {"layer 2"}, [&] { cross_attention_map(m.model, ids, ids, 2); });
}

// Every word would go with the first, the largest of what is not a number.
TEST(CrossAttentionMap, weight_that_is_not_finite_is_a_data_error) {
  SmallModel m(small_config());
  for (auto& p : m.parameters.all()) {
    p->value().data<float>()[0] = std::numeric_limits<float>::quiet_NaN();
    p->changed(true);
  }
  const std::vector<int32_t> ids = {5, 6};
  expect_error(ErrorKind::data, {"not finite"}, [&] { cross_attention_map(m.model, ids, ids); });
}

TEST(WordAttention, words_are_whole_and_punctuation_is_left_out) {
  const TemporaryFolder folder;
  write_small_model(folder.path());
  const LoadedModel m = load_translation_model(folder.path());
  const auto source = m.tokenizer->encode("the old man (slowly) reads two books!");
  const auto target = m.tokenizer->encode("der alte Mann hört Grünes, nichts.");
  const auto links = word_attention(m, source, target);
  std::vector<std::string> words;
  const std::vector<std::string> sources = {"the", "old", "man", "slowly", "reads", "two", "books"};
  for (const WordLink& link : links) {
    words.push_back(link.target);
    ASSERT_GE(link.source_index, 0);
    EXPECT_EQ(link.source, sources.at(link.source_index));
    EXPECT_GT(link.weight, 0);
    EXPECT_LE(link.weight, 1);
  }
  EXPECT_EQ(words, (std::vector<std::string>{"der", "alte", "Mann", "hört", "Grünes", "nichts"}));
}

TEST(WordAttention, source_without_words_gives_no_link) {
  const TemporaryFolder folder;
  write_small_model(folder.path());
  const LoadedModel m = load_translation_model(folder.path());
  const auto links = word_attention(m, {}, m.tokenizer->encode("der Mann"));
  ASSERT_EQ(links.size(), 2u);
  EXPECT_EQ(links[0].source_index, -1);
  EXPECT_EQ(links[0].source, "");
}

}  // namespace
}  // namespace heddle::testing
