// Attention maps in batches, words made of tokens, and the links between them.
#include "heddle/infer/words.h"

#include <gtest/gtest.h>

#include "tests/base/temporary.h"
#include "tests/infer/plain_decoding.h"

namespace heddle::testing {
namespace {

TEST(AttentionMaps, batch_equals_each_pair_alone_and_layers_and_heads_are_averaged) {
  const SmallModel m(small_config());
  const auto sources = random_sentences(6, 7, 40), targets = random_sentences(6, 5, 40, 4);
  const auto maps = [&](const AlignmentOptions& o) {
    return cross_attention_maps(m.model, sources, targets, o);
  };
  const auto all = maps({.layers = {0, 1}});
  std::vector<std::vector<Tensor>> each;
  for (const int64_t layer : {0, 1}) {
    for (const int64_t head : {0, 1, 2, 3}) {
      each.push_back(maps({.layers = {layer}, .heads = {head}, .batch_tokens = 1}));
    }
  }
  for (size_t i = 0; i < sources.size(); ++i) {
    const auto rows = static_cast<int64_t>(targets[i].size()) + 1;
    const auto columns = static_cast<int64_t>(sources[i].size()) + 1;
    ASSERT_EQ(all[i].shape(), (Shape{rows, columns}));
    for (int64_t j = 0; j < rows * columns; ++j) {
      double mean = 0;
      for (const auto& one : each) mean += one[i].data<float>()[j] / 8;
      EXPECT_NEAR(all[i].data<float>()[j], mean, 1e-6);
    }
  }
}

// What is given before a target is read, and has no row; what stands behind a source has columns.
TEST(AttentionMaps, marks_around_pairs_are_read) {
  const SmallModel m(small_config());
  auto sources = random_sentences(4, 7, 40), targets = random_sentences(4, 5, 40, 4);
  const PairMarks told = {.source_end = {3, 8}, .target_start = {2, 9}, .target_end = 3},
                  ends = {.source_end = {8}, .target_start = {2}, .target_end = 3};
  const auto maps = cross_attention_maps(m.model, sources, targets, {.marks = told});
  const auto untold = cross_attention_maps(m.model, sources, targets);
  for (Ids& ids : sources) ids.push_back(3);
  for (Ids& ids : targets) ids.insert(ids.begin(), 9);
  const auto spelt = cross_attention_maps(m.model, sources, targets, {.marks = ends});
  for (size_t i = 0; i < maps.size(); ++i) {
    const auto rows = static_cast<int64_t>(targets[i].size());
    ASSERT_EQ(maps[i].shape(), (Shape{rows, static_cast<int64_t>(sources[i].size()) + 1}));
    EXPECT_EQ(maps[i].to_floats(), spelt[i].slice(0, 1, rows).to_floats());
    EXPECT_NE(maps[i].to_floats()[0], untold[i].to_floats()[0]);
  }
}

TEST(AttentionMaps, layer_or_head_that_is_not_there_is_a_shape_error_and_a_usage_error_of_flags) {
  const SmallModel m(small_config());
  const std::vector<Ids> ids = {{5}};
  expect_error(ErrorKind::shape, {"head 4", "4"},
               [&] { cross_attention_maps(m.model, ids, ids, {.heads = {4}}); });
  expect_error(ErrorKind::usage, {"no decoder layer 2", "0 to 1"},
               [&] { check_alignment(m.model.facts(), {.layers = {2}}); });
  expect_error(ErrorKind::usage, {"no head -1", "0 to 3"},
               [&] { check_alignment(m.model.facts(), {.heads = {-1}}); });
}

TEST(SplitWords, gives_the_tokens_of_what_spaces_part_without_punctuation_at_the_ends) {
  const Tokenizer& t = shared_tokenizer();
  const std::string text = "the old  man, (slowly) reads \"two\" books ! ...";
  const auto ids = t.encode(text);
  std::vector<std::string> words;
  std::vector<bool> marks;
  for (const WordSpan& w : split_words(t, ids)) {
    std::string word = t.decode(
        std::span(ids).subspan(static_cast<size_t>(w.begin), static_cast<size_t>(w.end - w.begin)));
    word.erase(0, word.find_first_not_of(' '));
    words.push_back(word.substr(0, word.find_last_not_of(' ') + 1));
    marks.push_back(w.is_punctuation);
  }
  ASSERT_EQ(words.size(), 9u);
  // A token "old" or "ol" + "d" alike: the words are whole, whatever the tokens are.
  EXPECT_EQ(words[0], "the");
  EXPECT_EQ(words[1], "old");
  EXPECT_EQ(words[4], "reads");
  EXPECT_EQ(words[6], "books");
  EXPECT_EQ(words[2].substr(0, 3), "man");
  EXPECT_EQ(marks, (std::vector<bool>{0, 0, 0, 0, 0, 0, 0, 1, 1}));
}

// Two source words of 2 and 1 tokens, a mark, and the end; weights laid out by hand.
TEST(AlignWords, sums_over_source_tokens_averages_over_target_tokens_and_keeps_marks_apart) {
  const Tensor map = Tensor::from(std::vector<float>{.20f, .20f, .30f, .25f, .05f,  //
                                                     .10f, .10f, .50f, .25f, .05f,  //
                                                     .00f, .10f, .10f, .70f, .10f,  //
                                                     .60f, .10f, .10f, .10f, .10f},
                                  {4, 5});
  const std::vector<WordSpan> source = {{0, 2}, {2, 3}, {3, 4, true}};
  const auto align = [&](const std::vector<WordSpan>& target, bool shifted = false) {
    return align_words(map, source, target, shifted);
  };
  // Row 0: .4 against .3; row 1: .2, .5; row 2 rests on the mark; rows 0 and 1: .3, .4.
  EXPECT_EQ(align({{0, 1}, {1, 2}, {2, 3}}), (Alignment{{0, 0}, {0, 2}, {1, 1}}));
  EXPECT_EQ(align({{0, 2}}), (Alignment{{1, 0}}));
  EXPECT_EQ(align({{2, 3, true}}), (Alignment{{2, 0}}));
  EXPECT_EQ(align({{2, 3}}, true), (Alignment{{0, 0}}));  // row 3
  EXPECT_EQ(to_pharaoh(align({{0, 1}, {1, 2}, {2, 3}})), "0-0 0-2 1-1");
}

TEST(AlignWords, without_source_words_there_is_no_link_and_marks_alone_take_what_there_is) {
  const Tensor map = Tensor::full({2, 2}, 0.5f);
  EXPECT_EQ(align_words(map, {}, std::vector<WordSpan>{{0, 1}}), Alignment());
  const std::vector<WordSpan> mark = {{0, 1, true}}, word = {{0, 1}};
  EXPECT_EQ(align_words(map, mark, word), (Alignment{{0, 0}}));
}

TEST(AlignPairs, agree_with_the_maps_of_each_pair) {
  const TemporaryFolder folder;
  write_small_model(folder.path());
  const LoadedModel m = load_translation_model(folder.path());
  const std::vector<Ids> sources = {
      m.tokenizer->encode("the old man reads"), {}, m.tokenizer->encode("my sister hears the dog")};
  const std::vector<Ids> targets = {
      m.tokenizer->encode("der alte Mann"), m.tokenizer->encode("nichts"), {}};
  const auto all = align_pairs(m, sources, targets);
  EXPECT_EQ(all[1], Alignment());
  EXPECT_EQ(all[2], Alignment());
  EXPECT_EQ(all[0], align_words(cross_attention_map(m.translator(), sources[0], targets[0]),
                                split_words(*m.tokenizer, sources[0]),
                                split_words(*m.tokenizer, targets[0])));
  EXPECT_EQ(all[0].size(), 3u);
}

}  // namespace
}  // namespace heddle::testing
