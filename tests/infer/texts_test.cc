// Masked tokens, classes and sentence vectors of texts, against transformers and
// sentence-transformers (tools/make_text_fixtures.py), and what is refused.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "heddle/base/files/files.h"
#include "heddle/infer/answers.h"
#include "heddle/infer/embed.h"
#include "heddle/io/safetensors.h"
#include "tests/base/temporary.h"
#include "tests/support/places.h"

namespace heddle {
namespace {

// f32 through two layers whose sums are of the order of 10: 2^-24 * 10 * sqrt(16 * 24) and some.
constexpr double kTolerance = 2e-5;

std::string fixture(const std::string& name) {
  return join_path(join_path(testing::kFixtures, "texts"), name);
}

Json expected(const std::string& name) { return Json::load(fixture(name) + "/expected.json"); }

/// A copy of a fixture that may be changed.
void copy_fixture(const std::string& name, const TemporaryFolder& folder) {
  std::filesystem::copy(
      fixture(name), folder.path(),
      std::filesystem::copy_options::recursive | std::filesystem::copy_options::overwrite_existing);
}

TEST(FillMasks, tokens_and_probabilities_are_those_of_transformers) {
  const LoadedModel model = load_text_model(fixture("fill"));
  const Json json = expected("fill");
  const Json::Array& cases = json.at("cases").as_array();
  std::vector<std::string> texts;
  for (const Json& one : cases) texts.push_back(one.get_string("text"));
  const auto all = fill_masks(model, texts, 5, {});
  for (size_t i = 0; i < cases.size(); ++i) {
    const Json::Array& masks = cases[i].at("masks").as_array();
    ASSERT_EQ(all[i].size(), masks.size());
    for (size_t m = 0; m < masks.size(); ++m) {
      const Json::Array& fills = masks[m].as_array();
      for (size_t k = 0; k < fills.size(); ++k) {
        EXPECT_EQ(all[i][m][k].id, fills[k].get_int("id"));
        EXPECT_EQ(all[i][m][k].token, fills[k].get_string("token"));
        EXPECT_NEAR(all[i][m][k].probability, fills[k].get_double("probability"), kTolerance);
      }
    }
    EXPECT_EQ(fill_masks(model, {&texts[i], 1}, 5, {})[0][0][0].probability,
              all[i][0][0].probability)
        << "alone it is the same, bit for bit";
  }
  EXPECT_EQ(all[0][0][0].text, "the quick " + all[0][0][0].token + " fox");
}

TEST(FillMasks, texts_that_cannot_be_filled_are_refused) {
  const LoadedModel model = load_text_model(fixture("fill"));
  const auto fill = [&](const std::string& text, int64_t top = 1) {
    return fill_masks(model, {&text, 1}, top, {});
  };
  expect_error(ErrorKind::data, {"the fox", "[MASK]"}, [&] { fill("the fox"); });
  expect_error(ErrorKind::data, {"longer than the 24 tokens"}, [&] {
    fill(
        "[MASK] the the the the the the the the the the the the the the the the the the the the "
        "the the the the");
  });
  expect_error(ErrorKind::usage, {"top is 0"}, [&] { fill("[MASK]", 0); });
  expect_error(ErrorKind::usage, {"top is 161"}, [&] { fill("[MASK]", 161); });
  expect_error(ErrorKind::data, {"not UTF-8"}, [&] { fill("[MASK]\xFF"); });
  const LoadedModel other = load_text_model(fixture("classify"));
  const std::string text = "[MASK]";
  expect_error(ErrorKind::data, {fixture("classify"), "no head for masked tokens"}, [&] {
    fill_masks(other, {&text, 1}, 1, {});
  });
}

TEST(Classify, probabilities_are_those_of_transformers_for_texts_pairs_and_long_ones) {
  const LoadedModel model = load_text_model(fixture("classify"));
  const Json json = expected("classify");
  EXPECT_EQ(model.model->labels(), json.at("labels").as_strings());
  int64_t cut = 0;
  for (const Json& one : json.at("cases").as_array()) {
    TextToClassify text{one.get_string("text")};
    if (!one.at("second").is_null()) text.second = one.get_string("second");
    const std::vector<double> p = classify(model, {&text, 1}, {}, cut)[0];
    const Json::Array& wanted = one.at("probabilities").as_array();
    for (size_t i = 0; i < wanted.size(); ++i) {
      EXPECT_NEAR(p[i], wanted[i].as_double(), kTolerance) << one.dump();
    }
  }
  EXPECT_EQ(cut, 1);
}

TEST(Classify, problem_type_chooses_what_becomes_of_logits) {
  TemporaryFolder folder;
  copy_fixture("classify", folder);
  const TextToClassify text{"the fox"};
  const auto with = [&](const char* type) {
    Json config = Json::load(folder / "config.json");
    config["problem_type"] = type;
    folder.write("config.json", config.dump());
    int64_t cut = 0;
    return classify(load_text_model(folder.path()), {&text, 1}, {}, cut)[0];
  };
  const auto softmax = with("single_label_classification"), logits = with("regression");
  const auto sigmoid = with("multi_label_classification");
  double sum = 0;
  for (const double x : logits) sum += std::exp(x);
  for (size_t i = 0; i < logits.size(); ++i) {
    EXPECT_NEAR(softmax[i], std::exp(logits[i]) / sum, 1e-12);
    EXPECT_NEAR(sigmoid[i], 1 / (1 + std::exp(-logits[i])), 1e-12);
  }
}

TEST(Classify, a_model_without_classes_is_refused) {
  const LoadedModel model = load_text_model(fixture("fill"));
  const TextToClassify text{"the fox"};
  int64_t cut = 0;
  expect_error(ErrorKind::data, {fixture("fill"), "no head for classes"}, [&] {
    classify(model, {&text, 1}, {}, cut);
  });
}

void expect_vectors(const std::vector<std::vector<float>>& got, const Json& wanted) {
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t i = 0; i < got.size(); ++i) {
    const Json::Array& vector = wanted.as_array()[i].as_array();
    ASSERT_EQ(got[i].size(), vector.size());
    for (size_t k = 0; k < vector.size(); ++k) {
      EXPECT_NEAR(got[i][k], vector[k].as_double(), kTolerance) << "text " << i;
    }
  }
}

TEST(Embed, vectors_are_those_of_sentence_transformers_as_its_files_say) {
  const SentenceEncoder encoder = load_sentence_encoder(fixture("encoder"));
  EXPECT_EQ(encoder.text.max_length, 12);
  EXPECT_TRUE(encoder.options.normalize);
  const Json json = expected("encoder");
  int64_t cut = 0;
  expect_vectors(embed(encoder, json.at("texts").as_strings(), {}, cut), json.at("saved"));
  EXPECT_EQ(cut, 1);
}

TEST(Embed, each_pooling_is_that_of_sentence_transformers) {
  SentenceEncoder encoder = load_sentence_encoder(fixture("encoder"));
  encoder.options.normalize = false;
  const Json json = expected("encoder");
  for (const auto& [name, vectors] : json.at("poolings").as_object()) {
    SCOPED_TRACE(name);
    encoder.options.pooling = {pooling_of(name)};
    int64_t cut = 0;
    expect_vectors(embed(encoder, json.at("texts").as_strings(), {}, cut), vectors);
  }
}

TEST(Embed, several_poolings_lie_end_to_end_and_a_text_alone_gives_the_same_bits) {
  SentenceEncoder encoder = load_sentence_encoder(fixture("encoder"));
  const std::vector<std::string> texts = expected("encoder").at("texts").as_strings();
  int64_t cut = 0;
  const auto mean = embed(encoder, texts, {}, cut);
  for (size_t i = 0; i < texts.size(); ++i) {
    EXPECT_EQ(embed(encoder, {&texts[i], 1}, {}, cut)[0], mean[i]);
  }
  encoder.options.normalize = false;
  encoder.options.pooling = {Pooling::cls, Pooling::max};
  EXPECT_EQ(embed(encoder, texts, {}, cut)[0].size(), 32u);
}

TEST(Embed, a_checkpoint_without_a_pooler_gives_the_same_vectors) {
  TemporaryFolder folder;
  copy_fixture("encoder", folder);
  const SafetensorsFile whole = SafetensorsFile::open(fixture("encoder") + "/model.safetensors");
  std::vector<NamedTensorView> rest;
  for (const std::string& name : whole.names()) {
    if (name.starts_with("pooler.")) continue;
    const StoredTensor& info = whole.info(name);
    rest.push_back({name, info.dtype, info.shape, info.bytes});
  }
  ASSERT_EQ(rest.size() + 2, whole.names().size());
  write_safetensors(folder / "model.safetensors", rest);
  const SentenceEncoder encoder = load_sentence_encoder(folder.path());
  const Json json = expected("encoder");
  int64_t cut = 0;
  expect_vectors(embed(encoder, json.at("texts").as_strings(), {}, cut), json.at("saved"));
}

TEST(Embed, a_dense_layer_is_that_of_sentence_transformers) {
  const SentenceEncoder encoder = load_sentence_encoder(fixture("dense"));
  ASSERT_EQ(encoder.options.dense.size(), 1u);
  const Json json = expected("dense");
  int64_t cut = 0;
  expect_vectors(embed(encoder, json.at("texts").as_strings(), {}, cut), json.at("saved"));
}

TEST(Embed, older_pooling_files_prompts_and_lower_case_are_followed) {
  TemporaryFolder folder;
  copy_fixture("encoder", folder);
  folder.write("1_Pooling/config.json",
               R"({"word_embedding_dimension": 16, "pooling_mode_cls_token": true,
                   "pooling_mode_mean_tokens": false, "pooling_mode_max_tokens": true})");
  folder.write("config_sentence_transformers.json",
               R"({"prompts": {"query": "query: "}, "default_prompt_name": "query"})");
  folder.write("sentence_bert_config.json", R"({"max_seq_length": 7, "do_lower_case": true})");
  const SentenceEncoder encoder = load_sentence_encoder(folder.path());
  EXPECT_EQ(encoder.options.pooling, (std::vector<Pooling>{Pooling::cls, Pooling::max}));
  EXPECT_EQ(encoder.options.prompt, "query: ");
  EXPECT_TRUE(encoder.options.lower_case);
  EXPECT_EQ(encoder.text.max_length, 7);
}

TEST(Embed, modules_that_are_not_known_or_broken_are_refused_by_name) {
  const auto expect_refused = [](const std::string& file, const std::string& text,
                                 const std::vector<std::string>& words) {
    TemporaryFolder folder;
    copy_fixture("encoder", folder);
    folder.write(file, text);
    std::vector<std::string> all = words;
    all.push_back(folder.path());
    expect_error(ErrorKind::data, all, [&] { load_sentence_encoder(folder.path()); });
  };
  const std::string transformer = R"([{"path": "", "type": "a.Transformer"})";
  expect_refused("modules.json", "[]", {"modules.json", "Transformer"});
  expect_refused("modules.json", "{}", {"modules.json"});
  expect_refused("modules.json", R"([{"path": "", "type": "a.CLIPModel"}])", {"CLIPModel"});
  expect_refused("modules.json", transformer + R"(, {"path": "2_Dense", "type": "a.Dense"}])",
                 {"Dense"});
  const std::string dense = R"(, {"path": "1_Pooling", "type": "a.Pooling"},
                                  {"path": "1_Pooling", "type": "a.Dense"}])";
  expect_refused("modules.json", transformer + dense, {"in_features"});
  expect_refused("modules.json", transformer + R"(, {"path": "../x", "type": "a.Pooling"}])",
                 {"'../x'"});
  expect_refused("modules.json", transformer + R"(, {"path": "./", "type": "a.Pooling"}])",
                 {"'./'"});
  expect_refused("modules.json", transformer + R"(, {"path": "none", "type": "a.Pooling"}])",
                 {"none"});
  expect_refused("1_Pooling/config.json", "{}", {"no pooling"});
  expect_refused("1_Pooling/config.json", R"({"pooling_mode": "median"})", {"'median'"});
  expect_refused("1_Pooling/config.json", R"({"pooling_mode": "mean", "include_prompt": false})",
                 {"include_prompt"});
  expect_refused("sentence_bert_config.json", R"({"max_seq_length": 0})", {"max_seq_length"});
  expect_refused("sentence_bert_config.json", R"({"max_seq_length": "x"})", {"max_seq_length"});
  expect_refused("config_sentence_transformers.json", R"({"default_prompt_name": "q"})",
                 {"prompts"});
  expect_refused("tokenizer_config.json", R"({"model_max_length": -1})", {"model_max_length"});
}

TEST(LoadedModel, the_tokenizer_of_another_model_is_refused) {
  TemporaryFolder folder;
  copy_fixture("fill", folder);
  std::string vocab = read_file(folder / "vocab.txt");
  for (int i = 0; i < 9; ++i) vocab += "token" + std::to_string(i) + "\n";
  folder.write("vocab.txt", vocab);
  const LoadedModel model = load_text_model(folder.path());
  int64_t cut = 0;
  encode_truncated(model, "the fox", cut);  // a vocabulary may have more than is used
  expect_error(ErrorKind::data, {"'token8'", "another model"},
               [&] { encode_truncated(model, "token8", cut); });
  remove_path(folder / "vocab.txt");
  expect_error(ErrorKind::data, {folder.path(), "no tokenizer"},
               [&] { load_text_model(folder.path()); });
}

}  // namespace
}  // namespace heddle
