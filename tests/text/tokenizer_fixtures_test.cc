// Ids and texts of Hugging Face's tokenizers and transformers on hard texts, for small tokenizers
// of every kind and each component alone (tools/make_tokenizer_fixtures.py).
#include <gtest/gtest.h>

#include <optional>
#include <set>
#include <thread>

#include "heddle/base/files/files.h"
#include "heddle/base/json/json.h"
#include "heddle/text/strings/strings.h"
#include "heddle/text/tokenizer.h"
#include "tests/base/temporary.h"
#include "tests/support/places.h"
#include "tests/text/json_ids.h"

namespace heddle {
namespace {

std::string fixture_path(const std::string& name) {
  return join_path(join_path(testing::kFixtures, "tokenizers"), name);
}

void expect_cases(const Tokenizer& tokenizer, const Json& fixture) {
  for (const Json& one : fixture.at("cases").as_array()) {
    const std::string& text = one.get_string("text");
    SCOPED_TRACE("text: " + Json(text).dump());
    const Ids ids = tokenizer.encode(text);
    EXPECT_EQ(ids, ids_of(one.at("ids")));
    const Encoding special = tokenizer.with_special(ids);
    EXPECT_EQ(special.ids, ids_of(one.at("special")));
    EXPECT_EQ(special.ids.size(), ids.size() + static_cast<size_t>(tokenizer.special_count()));
    if (one.contains("types")) {
      EXPECT_EQ(special.types, ids_of(one.at("types")));
    }
    EXPECT_EQ(tokenizer.decode(special.ids), one.get_string("text_back"));
    if (one.contains("special_back")) {
      EXPECT_EQ(tokenizer.decode(special.ids, {.skip_special = false}),
                one.get_string("special_back"));
    }
  }
  for (const Json& pair : fixture.at("pairs").as_array()) {
    const Encoding both = tokenizer.with_special(tokenizer.encode(pair.get_string("a")),
                                                 tokenizer.encode(pair.get_string("b")));
    EXPECT_EQ(both.ids, ids_of(pair.at("ids"))) << pair.dump();
    EXPECT_EQ(both.types, ids_of(pair.at("types"))) << pair.dump();
  }
}

class WholeTokenizer : public ::testing::TestWithParam<const char*> {
 protected:
  Json fixture_ = Json::load(fixture_path(std::string("whole/") + GetParam() + ".json"));
  TemporaryFolder folder_;
  std::string path_ = folder_.write("tokenizer.json", fixture_.at("tokenizer").dump());
};

TEST_P(WholeTokenizer, gives_the_ids_and_texts_of_tokenizers) {
  expect_cases(Tokenizer::load(path_), fixture_);
}

TEST_P(WholeTokenizer, a_second_time_and_on_threads_it_gives_the_same) {
  const Tokenizer tokenizer = Tokenizer::load(path_);
  std::atomic<int> different = 0;
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int round = 0; round < 2; ++round) {
        for (const Json& one : fixture_.at("cases").as_array()) {
          different += tokenizer.encode(one.get_string("text")) != ids_of(one.at("ids"));
        }
      }
    });
  }
  threads.clear();
  EXPECT_EQ(different, 0);
}

INSTANTIATE_TEST_SUITE_P(Kinds, WholeTokenizer,
                         ::testing::Values("gpt2", "roberta", "llama3", "qwen2", "byte_normalizer",
                                           "llama", "mistral", "unk_fused", "unk_single", "bert",
                                           "bert_cased", "bert_accents", "bert_bare", "t5", "xlnet",
                                           "unigram_bytes", "word_level", "clip", "bpe_prefix"),
                         [](const auto& suite) { return std::string(suite.param); });

// The texts are those of transformers 5.24.
TEST(CleanUp, spaces_go_where_tokenizer_config_says_so_alone) {
  const std::tuple<const char*, const char*, const char*> all[] = {
      {"bert_bare", "Hello world. It ' s new!", "Hello world. It's new!"},
      {"unigram_bytes", "Hello , world . It 's new !", "Hello, world. It's new!"},
      {"word_level", "hello world . it ' s new !", "hello world. it's new!"}};
  for (const auto& [name, plain, cleaned] : all) {
    SCOPED_TRACE(name);
    const TemporaryFolder folder;
    folder.write(
        "tokenizer.json",
        Json::load(fixture_path(fmt::format("whole/{}.json", name))).at("tokenizer").dump());
    const auto decoded = [&] {
      const Tokenizer tokenizer = Tokenizer::load(folder.path());
      return tokenizer.decode(tokenizer.encode("Hello , world . It 's new !"));
    };
    EXPECT_EQ(decoded(), plain);
    for (const char* value : {"{}", R"({"clean_up_tokenization_spaces": null})",
                              R"({"clean_up_tokenization_spaces": false})"}) {
      folder.write("tokenizer_config.json", value);
      EXPECT_EQ(decoded(), plain) << value;
    }
    folder.write("tokenizer_config.json", R"({"clean_up_tokenization_spaces": true})");
    EXPECT_EQ(decoded(), cleaned);
  }
}

void write_files(const Json& fixture, const TemporaryFolder& folder) {
  for (const auto& [name, content] : fixture.at("files").as_object()) {
    folder.write(name, content.is_string() ? content.as_string()
                                           : base64_bytes(content.get_string("base64"), name));
  }
}

class FolderTokenizer : public ::testing::TestWithParam<const char*> {
 protected:
  const Json fixture_ = Json::load(fixture_path(std::string("folders/") + GetParam() + ".json"));

  void write_files(const TemporaryFolder& folder) const { heddle::write_files(fixture_, folder); }
};

TEST_P(FolderTokenizer, gives_the_ids_texts_and_special_ids_of_transformers) {
  TemporaryFolder folder;
  write_files(folder);
  const Tokenizer tokenizer = Tokenizer::load(folder.path());
  expect_cases(tokenizer, fixture_);
  const std::pair<const char*, int32_t> special[] = {
      {"pad", tokenizer.pad_id()},  {"unk", tokenizer.unk_id()}, {"bos", tokenizer.bos_id()},
      {"eos", tokenizer.eos_id()},  {"cls", tokenizer.cls_id()}, {"sep", tokenizer.sep_id()},
      {"mask", tokenizer.mask_id()}};
  for (const auto& [name, id] : special) {
    const Json* expected = fixture_.at("special").find(name);
    EXPECT_EQ(id, expected == nullptr ? -1 : expected->as_int()) << name;
  }
}

// Which class reads the files may hang on config.json alone, which a model's folder has its own of.
TEST_P(FolderTokenizer, saved_beside_any_config_it_is_read_as_it_was) {
  std::set<std::string> fingerprints;
  for (const std::string type : {"", "gpt2", "roberta", "t5", "xlnet", "llama"}) {
    SCOPED_TRACE(type);
    TemporaryFolder folder, copy;
    write_files(folder);
    Json config = Json::object();
    config["model_type"] = type;
    folder.write("tokenizer_config.json", "{}");
    folder.write("config.json", config.dump());
    std::optional<Tokenizer> tokenizer;
    try {
      tokenizer = Tokenizer::load(folder.path());
    } catch (const Error&) {
      continue;  // a family whose special tokens the model lacks
    }
    fingerprints.insert(tokenizer->fingerprint());
    tokenizer->save_folder(copy.path());
    for (const char* other : {"gpt2", "t5", "llama", "bert"}) {
      config["model_type"] = other;
      copy.write("config.json", config.dump());
      const Tokenizer again = Tokenizer::load(copy.path());
      EXPECT_EQ(again.fingerprint(), tokenizer->fingerprint());
      EXPECT_EQ(again.vocab_size(), tokenizer->vocab_size());
      EXPECT_EQ(again.eos_id(), tokenizer->eos_id());
      for (const Json& one : fixture_.at("cases").as_array()) {
        const Ids ids = tokenizer->encode(one.get_string("text"));
        EXPECT_EQ(again.encode(one.get_string("text")), ids);
        EXPECT_EQ(again.with_special(ids).ids, tokenizer->with_special(ids).ids);
      }
    }
  }
  // Those that are read in several ways are told apart.
  const std::string name = GetParam();
  const size_t ways = name == "roberta" ? 2 : name.starts_with("sp_") ? 2 : 1;
  EXPECT_GE(fingerprints.size(), ways);
}

INSTANTIATE_TEST_SUITE_P(Kinds, FolderTokenizer,
                         ::testing::Values("gpt2", "gpt2_added", "roberta", "bert", "bert_cased",
                                           "sp_t5", "sp_xlnet", "sp_llama", "sp_llama_legacy",
                                           "sp_llama_bare", "mbart", "sp_mbart50", "nllb",
                                           "nllb_legacy", "m2m_100"),
                         [](const auto& suite) { return std::string(suite.param); });

// Languages by name, and what stands around a text in one of them: as transformers has them.
TEST(TokenizerLanguages, are_the_special_tokens_that_name_one_and_stand_where_the_family_has_them) {
  struct Case {
    const char* fixture;
    std::string language, around;
    size_t languages;
  };
  for (const Case& c :
       {Case{"mbart", "fr_XX", "x </s> fr_XX", 25}, Case{"sp_mbart50", "sl_SI", "sl_SI x </s>", 52},
        Case{"nllb", "zho_Hans", "zho_Hans x </s>", 3},
        Case{"nllb_legacy", "deu_Latn", "x </s> deu_Latn", 3},
        Case{"m2m_100", "zu", "__zu__ x </s>", 100}, Case{"sp_t5", "", "x </s>", 0},
        Case{"bert", "", "[CLS] x [SEP]", 0}}) {
    SCOPED_TRACE(c.fixture);
    TemporaryFolder folder;
    write_files(Json::load(fixture_path(std::string("folders/") + c.fixture + ".json")), folder);
    const Tokenizer tokenizer = Tokenizer::load(folder.path());
    const auto languages = tokenizer.languages();
    EXPECT_EQ(languages.size(), c.languages);
    int32_t id = -1;
    for (const auto& [name, token] : languages) id = name == c.language ? token : id;
    EXPECT_EQ(id < 0, c.language.empty());
    const int32_t x = tokenizer.token_id("a");
    std::string around;
    for (const int32_t i : tokenizer.with_special(std::vector{x}, id).ids) {
      around += (around.empty() ? "" : " ") + (i == x ? "x" : tokenizer.token(i));
    }
    EXPECT_EQ(around, c.around);
  }
}

class OneComponent : public ::testing::Test {
 protected:
  Tokenizer with(const char* key, const Json& component) {
    Json json = Json::object();
    json["model"] = fixture_.at("model");
    json[key] = component;
    return Tokenizer::load(folder_.write("tokenizer.json", json.dump()));
  }

  void expect_all(const char* key, const char* list) {
    for (const Json& one : fixture_.at(list).as_array()) {
      SCOPED_TRACE(one.at("json").dump());
      const Tokenizer tokenizer = with(key, one.at("json"));
      const Json::Array& texts = fixture_.at("texts").as_array();
      for (size_t i = 0; i < texts.size(); ++i) {
        EXPECT_EQ(tokenizer.encode(texts[i].as_string()), ids_of(one.at("ids").as_array()[i]))
            << "text: " << texts[i].dump();
      }
    }
  }

  Json fixture_ = Json::load(fixture_path("components.json"));
  TemporaryFolder folder_;
};

TEST_F(OneComponent, each_normalizer_gives_the_ids_of_tokenizers) {
  expect_all("normalizer", "normalizers");
}

TEST_F(OneComponent, each_pre_tokenizer_gives_the_ids_of_tokenizers) {
  expect_all("pre_tokenizer", "pre_tokenizers");
}

TEST_F(OneComponent, a_space_in_front_waits_for_what_the_normalizer_leaves_of_the_start) {
  for (const Json& one : fixture_.at("first").as_array()) {
    SCOPED_TRACE(one.at("normalizer").dump());
    Json json = Json::object();
    json["model"] = fixture_.at("model");
    for (const char* key : {"normalizer", "pre_tokenizer"}) json[key] = one.at(key);
    const Tokenizer tokenizer = Tokenizer::load(folder_.write("tokenizer.json", json.dump()));
    const Json::Array& texts = fixture_.at("texts").as_array();
    for (size_t i = 0; i < texts.size(); ++i) {
      EXPECT_EQ(tokenizer.encode(texts[i].as_string()), ids_of(one.at("ids").as_array()[i]))
          << "text: " << texts[i].dump();
    }
  }
}

TEST_F(OneComponent, each_decoder_gives_the_text_of_tokenizers) {
  Json model = Json::object();
  model["type"] = "WordLevel";
  model["unk_token"] = ".";
  int64_t count = 0;
  for (const Json& token : fixture_.at("decoder_tokens").as_array()) {
    model["vocab"][token.as_string()] = count++;
  }
  fixture_["model"] = model;
  for (const Json& decoder : fixture_.at("decoders").as_array()) {
    SCOPED_TRACE(decoder.at("json").dump());
    const Tokenizer tokenizer = with("decoder", decoder.at("json"));
    for (const Json& one : decoder.at("tokens").as_array()) {
      EXPECT_EQ(tokenizer.decode(ids_of(one.at("ids"))), one.get_string("text")) << one.dump();
    }
  }
}

}  // namespace
}  // namespace heddle
