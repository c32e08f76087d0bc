// Whole folders of Marian and other encoder-decoders against transformers: ids of sentences,
// translations by every rule, texts.
#include <gtest/gtest.h>

#include <filesystem>

#include "heddle/base/files/files.h"
#include "heddle/base/json/json.h"
#include "heddle/infer/decoding/translate.h"
#include "heddle/models/transformer.h"
#include "tests/base/temporary.h"
#include "tests/support/places.h"

namespace heddle {
namespace {

std::string fixture(const std::string& name) {
  return std::string(testing::kFixtures) + "/marian/" + name;
}

// A copy of a folder, to be changed.
class MarianFolder {
 public:
  explicit MarianFolder(const std::string& name) {
    std::filesystem::copy(fixture(name), dir_.path(), std::filesystem::copy_options::recursive);
  }
  const std::string& path() const { return dir_.path(); }
  std::string operator/(const std::string& name) const { return dir_ / name; }
  void write(const std::string& name, const std::string& text) { dir_.write(name, text); }
  void change_config(const std::string& key, const Json& value) {
    Json config = Json::load(dir_ / "config.json");
    config[key] = value;
    dir_.write("config.json", config.dump());
  }

 private:
  TemporaryFolder dir_;
};

std::vector<int32_t> ids_of(const Json& json) {
  const std::vector<int64_t> ids = json.as_ints();
  return {ids.begin(), ids.end()};
}

// All translations, best first.
std::vector<Translation> flat(const Translation& best) {
  std::vector<Translation> all = {best};
  all.insert(all.end(), best.others.begin(), best.others.end());
  return all;
}

class MarianCases : public ::testing::TestWithParam<const char*> {};

// Scores: sums of some 20 log p, each of which errs by about 1e-6.
TEST_P(MarianCases, every_translation_is_that_of_generate) {
  MarianFolder folder(GetParam());
  const Json cases = Json::load(folder / "cases.json");
  size_t compared = 0;
  for (const Json& c : cases.as_array()) {
    const std::string settings = c.at("settings").dump();
    folder.write("generation_config.json", settings);
    LoadedModel model = load_translation_model(folder.path());
    TranslateOptions options = default_options(model);
    if (const Json* pair = c.find("languages"); pair != nullptr && !pair->is_null()) {
      const std::vector<std::string> languages = pair->as_strings();
      set_languages(model, languages[0], languages[1], options);
    }
    options.search.n_best = options.search.beam.value_or(1);
    options.scores = true;
    std::vector<std::string> lines;
    for (const Json& r : c.at("results").as_array()) lines.push_back(r.get_string("line"));
    const std::vector<Translation> translations = translate_lines(model, lines, options);
    for (size_t i = 0; i < lines.size(); ++i) {
      const Json& expected = c.at("results").as_array()[i];
      SCOPED_TRACE(settings + "\n" + lines[i]);
      std::vector<int32_t> ids = source_ids(model, lines[i], "", false, nullptr);
      ids.insert(ids.end(), options.source_end.begin(), options.source_end.end());
      EXPECT_EQ(ids, ids_of(expected.at("ids")));
      const std::vector<Translation> all = flat(translations[i]);
      const Json::Array& theirs = expected.at("translations").as_array();
      ASSERT_EQ(all.size(), theirs.size());
      for (size_t k = 0; k < all.size(); ++k) {
        EXPECT_EQ(all[k].ids, ids_of(theirs[k].at("ids"))) << k;
        EXPECT_EQ(all[k].text, theirs[k].get_string("text")) << k;
        const Json& score = theirs[k].at("score");
        if (score.is_number()) {
          EXPECT_NEAR(all[k].score, score.as_double(), 2e-5) << k;
        }
        ++compared;
      }
    }
  }
  EXPECT_GE(compared, 36u);
}

INSTANTIATE_TEST_SUITE_P(Folders, MarianCases,
                         ::testing::Values("opus", "separate", "../seq2seq/bart",
                                           "../seq2seq/m2m_100", "../seq2seq/mbart",
                                           "../seq2seq/t5"),
                         [](const auto& folder) {
                           const std::string path = folder.param;
                           return path.substr(path.rfind('/') + 1);
                         });

// An end is forced behind the greatest length by some models alone.
TEST(Marian, asked_lengths_are_those_of_the_tokens_whether_an_end_is_forced_or_not) {
  for (const char* folder : {"opus", "../seq2seq/bart", "../seq2seq/t5"}) {
    const LoadedModel model = load_translation_model(fixture(folder));
    for (const int64_t most : {1, 3}) {
      TranslateOptions options = default_options(model);
      options.search.min_new_tokens = most;  // so that none ends before
      options.longest_without_end = most;
      const std::vector<std::vector<int32_t>> sources = {{5, 6, 7}};
      const Translation found = translate_ids(model.translator(), sources, options)[0];
      EXPECT_EQ(std::ssize(found.ids), most) << folder;
    }
  }
}

TEST(Marian, settings_of_config_json_count_where_there_is_no_generation_config) {
  MarianFolder folder("opus");
  folder.change_config("num_beams", 6);
  folder.change_config("max_length", 17);
  folder.change_config("bad_words_ids", Json::parse("[[84], [3, 4, 5]]"));
  const LoadedModel model = load_translation_model(folder.path());
  EXPECT_EQ(model.type, "marian");
  const TranslateOptions options = default_options(model);
  EXPECT_EQ(options.search.beam, 6);
  EXPECT_EQ(options.longest_without_end, 15);  // 17 with the start and the end
  EXPECT_TRUE(token_id(options.search.forced_eos));
  EXPECT_EQ(options.search.suppressed_ids(), std::vector<int32_t>{84});
  EXPECT_EQ(options.search.banned_ngrams(), (std::vector<std::vector<int32_t>>{{3, 4, 5}}));
}

TEST(Marian, sides_of_separate_vocabularies_have_ids_of_their_own) {
  const LoadedModel model = load_translation_model(fixture("separate"));
  EXPECT_NE(model.tokenizer->token(7), model.target().token(7));
  EXPECT_FALSE(dynamic_cast<const Transformer&>(*model.model)
                   .transformer_config()
                   .share_encoder_decoder_embeddings);
  EXPECT_EQ(model.tokenizer->kind(), "Marian");
  EXPECT_EQ(Tokenizer::load(fixture("opus")).kind(), "Marian");
}

TEST(Marian, switches_that_transformers_lacks_are_refused_by_name) {
  for (const char* key : {"normalize_before", "normalize_embedding", "is_decoder"}) {
    MarianFolder folder("opus");
    folder.change_config(key, true);
    expect_error(ErrorKind::data, {"config.json", key, "only false"},
                 [&] { load_translation_model(folder.path()); });
  }
  MarianFolder folder("opus");
  folder.change_config("decoder_vocab_size", 30);
  expect_error(ErrorKind::data, {"decoder_vocab_size is 30 but vocab_size 85", "one table"},
               [&] { load_translation_model(folder.path()); });
}

TEST(Marian, special_ids_beyond_the_vocabulary_matter_to_translation_alone) {
  MarianFolder folder("opus");
  folder.change_config("decoder_start_token_id", 58100);
  EXPECT_NO_THROW(load_model(folder.path()));
  expect_error(ErrorKind::data, {"config.json", "58100 is not below"},
               [&] { load_translation_model(folder.path()); });
}

TEST(Marian, files_that_are_missing_or_of_another_model_are_named) {
  for (const char* name : {"source.spm", "target.spm", "vocab.json"}) {
    MarianFolder folder("opus");
    std::filesystem::remove(folder / name);
    expect_error(ErrorKind::data, {name}, [&] { load_translation_model(folder.path()); });
    EXPECT_NO_THROW(load_model(folder.path()));
  }
  MarianFolder folder("opus");
  Json vocab = Json::load(folder / "vocab.json");
  vocab["more"] = 85;
  folder.write("vocab.json", vocab.dump());
  expect_error(ErrorKind::data, {"vocab.json", "ids up to 85", "85 tokens"},
               [&] { load_translation_model(folder.path()); });
  folder.write("vocab.json", R"({"</s>": 0, "a": 1})");
  expect_error(ErrorKind::data, {"vocab.json", "'<unk>'"},
               [&] { load_translation_model(folder.path()); });
}

}  // namespace
}  // namespace heddle
