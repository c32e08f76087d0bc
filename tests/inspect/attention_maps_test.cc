// Maps, statistics and importance of heads against other ways to compute them.
#include "heddle/inspect/attention_maps.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "heddle/infer/loading/loaded_model.h"
#include "heddle/infer/words.h"
#include "tests/base/temporary.h"
#include "tests/infer/small_models.h"
#include "tests/inspect/damaged_model.h"

namespace heddle::inspect {
namespace {

constexpr const char* kSource = "the old man reads two books!";
constexpr const char* kTarget = "der alte Mann liest zwei Bücher!";

class AttentionMaps : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = std::make_unique<TemporaryFolder>();
    testing::write_small_model(path());
    subject_ = std::make_unique<Subject>(open(path()));
  }
  static void TearDownTestSuite() { subject_.reset(), folder_.reset(); }
  static std::string path() { return *folder_ / "model"; }
  static Subject open(const std::string& model) {
    return Subject::open(model, {.source = kSource, .target = kTarget, .ids = {}});
  }
  static const Subject& subject() { return *subject_; }
  static std::vector<HeadMap> maps(const HeadsOptions& options) {
    return attention_maps(subject(), options);
  }

 private:
  static inline std::unique_ptr<TemporaryFolder> folder_;
  static inline std::unique_ptr<Subject> subject_;
};

TEST_F(AttentionMaps, sides_are_what_encoder_and_decoder_read_and_write) {
  const auto& sides = subject().sides();
  ASSERT_EQ(sides.size(), 3u);
  EXPECT_EQ(sides[0].list_words(), "the, old, man, reads, two, books, !, (end)");
  EXPECT_EQ(sides[1].list_words(), "(start), der, alte, Mann, liest, zwei, Bücher, !");
  EXPECT_EQ(sides[2].list_words(), "der, alte, Mann, liest, zwei, Bücher, !, (end)");
  EXPECT_EQ(sides[1].size(), sides[2].size());
  for (const Side& side : sides) {  // the words cover all tokens, in order
    int64_t at = 0;
    for (const Side::Word& word : side.words) {
      EXPECT_EQ(word.begin, at);
      EXPECT_GT(word.end, word.begin);
      at = word.end;
    }
    EXPECT_EQ(at, side.size());
  }
}

TEST_F(AttentionMaps, rows_sum_to_1_and_the_decoder_sees_nothing_that_follows) {
  const auto all = maps({.importance = false});
  ASSERT_EQ(all.size(), 3u * 2 * 4);
  for (const HeadMap& map : all) {
    for (int64_t i = 0; i < map.rows; ++i) {
      double sum = 0;
      for (int64_t j = 0; j < map.cols; ++j) {
        const float w = map.weights[i * map.cols + j];
        sum += w;
        if (subject().kinds()[map.kind].is_causal && j > i) {
          EXPECT_EQ(w, 0);
        }
      }
      EXPECT_NEAR(sum, 1, 1e-5);
    }
  }
}

TEST_F(AttentionMaps, mean_of_the_cross_heads_is_the_cross_attention_map) {
  const LoadedModel model = load_translation_model(path());
  const auto heads = maps({.layers = {1}, .importance = false});
  const std::vector<float> mean =
      cross_attention_map(model.translator(), model.tokenizer->encode(kSource),
                          model.tokenizer->encode(kTarget), 1)
          .to_floats();
  std::vector<double> sum(mean.size());
  int found = 0;
  for (const HeadMap& map : heads) {
    if (subject().kinds()[map.kind].name != "cross") continue;
    ++found;
    ASSERT_EQ(map.weights.size(), mean.size());
    for (size_t i = 0; i < mean.size(); ++i) sum[i] += map.weights[i];
  }
  ASSERT_EQ(found, 4);
  for (size_t i = 0; i < mean.size(); ++i) EXPECT_NEAR(sum[i] / 4, mean[i], 1e-6);
}

TEST_F(AttentionMaps, statistics_and_link_are_what_the_weights_say) {
  const auto all = maps({.link = Link{"MAN", "old"}, .importance = false});
  const std::vector<int64_t> from = subject().sides()[0].find("man"),
                             to = subject().sides()[0].find("old");
  for (const HeadMap& map : all) {
    double entropy = 0, distance = 0, link = 0;
    for (int64_t i = 0; i < map.rows; ++i) {
      for (int64_t j = 0; j < map.cols; ++j) {
        const double w = map.weights[i * map.cols + j];
        if (w > 0) entropy -= w * std::log(w);
        distance += w * std::abs(static_cast<double>(i - j));
      }
    }
    for (const int64_t i : from) {
      for (const int64_t j : to) link += map.weights[i * map.cols + j];
    }
    EXPECT_NEAR(map.entropy, entropy / static_cast<double>(map.rows), 1e-5);
    EXPECT_NEAR(map.distance, distance / static_cast<double>(map.rows), 1e-5);
    EXPECT_EQ(map.link.has_value(), subject().kinds()[map.kind].name == "encoder");
    if (map.link) {
      EXPECT_NEAR(*map.link, link / static_cast<double>(from.size()), 1e-6);
    }
  }
  const auto order = ranking(all, true);
  ASSERT_EQ(order.size(), 8u);
  for (size_t k = 1; k < order.size(); ++k) EXPECT_GE(all[order[k - 1]].link, all[order[k]].link);
  EXPECT_EQ(first_shown(all), order[0]);
}

TEST_F(AttentionMaps, sparse_maps_hold_the_largest_of_each_row_and_of_each_block) {
  const auto whole = maps({.importance = false});
  const auto sparse = maps({.importance = false, .most_weights = 0});
  for (size_t m = 0; m < whole.size(); ++m) {
    ASSERT_TRUE(sparse[m].sparse);
    EXPECT_TRUE(sparse[m].weights.empty());
    const SparseMap& s = *sparse[m].sparse;
    EXPECT_EQ(s.kept, 4);
    EXPECT_EQ(s.grid, whole[m].weights);  // blocks of one weight: the text is short
    for (int64_t i = 0; i < whole[m].rows; ++i) {
      std::vector<float> row(whole[m].weights.begin() + i * whole[m].cols,
                             whole[m].weights.begin() + (i + 1) * whole[m].cols);
      for (int64_t k = 0; k < s.kept; ++k) {
        EXPECT_EQ(s.weights[i * s.kept + k], row[s.columns[i * s.kept + k]]);
      }
      std::sort(row.rbegin(), row.rend());
      for (int64_t k = 0; k < s.kept; ++k) EXPECT_EQ(s.weights[i * s.kept + k], row[k]);
    }
    EXPECT_EQ(sparse[m].entropy, whole[m].entropy);
  }
}

// A head gives nothing if the output projection has zeros in its columns.
TEST_F(AttentionMaps, importance_is_the_rise_of_the_loss_without_the_heads_columns) {
  const TemporaryFolder other;
  const struct {
    const char* kind;
    const char* tensor;
  } cases[] = {{"encoder", "model.encoder.layers.1.self_attn.out_proj.weight"},
               {"decoder", "model.decoder.layers.1.self_attn.out_proj.weight"},
               {"cross", "model.decoder.layers.1.encoder_attn.out_proj.weight"}};
  const auto all = maps({.layers = {1}, .heads = {2}});
  ASSERT_EQ(all.size(), 3u);
  for (const auto& c : cases) {
    LoadedModel model = load_translation_model(path());
    bool is_found = false;
    for (auto& p : model.parameters.all()) {
      if (p->parts()[0].name != c.tensor) continue;
      is_found = true;
      for (int64_t row = 0; row < 32; ++row) {
        std::fill_n(p->value().data<float>() + row * 32 + 2 * 8, 8, 0.0f);
      }
    }
    ASSERT_TRUE(is_found) << c.tensor;
    save_model(other / "model", *model.model, model.parameters, {.tokenizer = &*model.tokenizer});
    const double rise = open(other / "model").loss() - subject().loss();
    for (const HeadMap& map : all) {
      if (subject().kinds()[map.kind].name == c.kind) {
        EXPECT_NEAR(*map.importance, rise, 1e-5);
      }
    }
    EXPECT_GT(std::abs(rise), 1e-4) << c.kind;  // else the test shows nothing
  }
}

TEST_F(AttentionMaps, head_layer_or_word_that_is_not_there_is_a_usage_error_that_says_what_is) {
  expect_error(ErrorKind::usage, {"layer 2", "encoder 0 to 1"}, [] { maps({.layers = {2}}); });
  expect_error(ErrorKind::usage, {"head -1", "cross 0 to 3"}, [] { maps({.heads = {-1}}); });
  expect_error(ErrorKind::usage, {"from", "'cat'", "the, old, man", "der, alte"}, [] {
    maps({.link = Link{"cat", "man"}});
  });
  expect_error(ErrorKind::usage, {"to", "'cat'"}, [] { maps({.link = Link{"man", "cat"}}); });
  // The encoder does not look at the target.
  expect_error(ErrorKind::usage, {"from 'man' to 'Mann'"}, [] {
    maps({.link = Link{"man", "Mann"}});
  });
  expect_error(ErrorKind::usage, {"text is empty"},
               [] { Subject::open(path(), {.source = "  ", .target = {}, .ids = {}}); });
  expect_error(ErrorKind::usage, {"target is empty"},
               [] { Subject::open(path(), {.source = "man", .target = "", .ids = {}}); });
  expect_error(ErrorKind::data, {"text", "not UTF-8"},
               [] { Subject::open(path(), {.source = "caf\xE9", .target = {}, .ids = {}}); });
}

std::unique_ptr<Model> small_gpt2(nn::Parameters& parameters) {
  return make_model(
      nn::Scope(parameters),
      Json::parse(R"({"model_type": "gpt2", "vocab_size": 30, "n_positions": 8, "n_embd": 16,
                      "n_layer": 2, "n_head": 2})"));
}

TEST(AttentionMapsOfGpt2, weights_that_are_not_finite_are_a_data_error) {
  const TemporaryFolder folder;
  const Subject subject = damaged_subject(folder / "model");
  expect_error(ErrorKind::data, {"layer 0, head 0", "not finite"},
               [&] { attention_maps(subject, {.importance = false}); });
}

TEST(AttentionMapsOfGpt2, ids_take_the_position_of_a_tokenizer) {
  const TemporaryFolder folder;
  nn::Parameters parameters(1);
  const auto gpt2 = small_gpt2(parameters);
  save_model(folder / "model", *gpt2, parameters);
  const Subject subject =
      Subject::open(folder / "model", {.source = "", .target = {}, .ids = {3, 4, 5}});
  ASSERT_EQ(subject.kinds().size(), 1u);
  EXPECT_TRUE(subject.kinds()[0].is_causal);
  const auto all = attention_maps(subject, {.link = Link{"#5", "#3"}});
  ASSERT_EQ(all.size(), 4u);
  EXPECT_EQ(all[0].weights[1], 0);  // #3 does not see #4
  EXPECT_EQ(*all[3].link, all[3].weights[6]);
  EXPECT_NE(*all[0].importance, 0);
  expect_error(ErrorKind::usage, {"no tokenizer", "ids"}, [&] {
    Subject::open(folder / "model", {.source = "text", .target = {}, .ids = {}});
  });
  expect_error(ErrorKind::usage, {"30 is not in the vocabulary"},
               [&] { Subject::open(folder / "model", {.source = "", .target = {}, .ids = {30}}); });
}

TEST_F(AttentionMaps, json_holds_the_weights_and_the_page_the_same_packed) {
  const auto all = maps({.layers = {0}, .heads = {1}, .link = Link{"man", "old"}});
  const Json json = attention_json(subject(), all, Link{"man", "old"});
  const Json& head = json.at("heads").as_array()[0];
  EXPECT_EQ(head.at("weights").size(), static_cast<size_t>(all[0].rows));
  EXPECT_NEAR(head.at("weights").as_array()[2].as_array()[1].as_double(),
              all[0].weights[2 * all[0].cols + 1], 1e-6);
  const Page page = attention_page(subject(), all, Link{"man", "old"}, 0);
  EXPECT_EQ(page.data.at("heads").as_array()[0].get_string("weights"),
            pack_weights(all[0].weights));
  EXPECT_NE(page_html(page).find("attentionLines"), std::string::npos);
}

}  // namespace
}  // namespace heddle::inspect
