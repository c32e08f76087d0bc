// What stands beside a SentencePiece model for transformers gives the ids and texts of the model.
// tests/text/tokenizer_fixtures_test.cc shows that a tokenizer.json is read as `tokenizers` reads
// it, tools/check_export.py that transformers reads this one so.
#include "heddle/text/sentencepiece/sentencepiece_tokenizer.h"

#include <gtest/gtest.h>

#include <random>

#include "heddle/base/files/files.h"
#include "heddle/base/json/json.h"
#include "heddle/text/training/tokenizer_trainer.h"
#include "tests/base/temporary.h"
#include "tests/support/places.h"
#include "tests/text/small_tokenizers.h"

namespace heddle {
namespace {

using namespace std::string_literals;
using testing::small_corpus;
using testing::small_tokenizer;

struct Case {
  const char* name;
  TokenizerType type;
  const char* normalization;
  bool byte_fallback;
};

std::vector<std::string> hard_texts(bool has_bytes) {
  std::vector<std::string> texts = {"",
                                    " ",
                                    "   ",
                                    " a",
                                    "a ",
                                    "  two  spaces  ",
                                    "line\nbreak\n\n",
                                    "\ttab\t\r\n",
                                    "the old man reads two books!",
                                    "der alte Mann kauft ein grünes Fahrrad.",
                                    "Straße İı ẞ",
                                    "日本語 テキスト",
                                    "x日y 日日 z",
                                    "<s> a <pad> <unk>",
                                    "\u00A0e\u0301 ﬁ ①",
                                    "aaaa aaa sisisi ssss"};
  if (has_bytes)
    texts.insert(texts.end(),
                 {"<0x41><0xE2> </s></s>", "\0a\0"s, "👩‍👩‍👧‍👦 \u202Ertl"});
  std::mt19937 random(3);
  std::vector<std::string> atoms = small_corpus();
  for (const char* atom : {" ", "  ", "a", "s", "ß", "the", "\n", "si", "ster", "der", "<s>", "e"})
    atoms.insert(atoms.end(), 40, atom);
  if (has_bytes) atoms.insert(atoms.end(), 40, "😀");
  for (int i = 0; i < 1000; ++i) {
    std::string text;
    for (auto n = random() % 12; n > 0; --n) text += atoms[random() % atoms.size()];
    texts.push_back(text);
  }
  return texts;
}

class ForTransformers : public ::testing::TestWithParam<Case> {};

TEST_P(ForTransformers, tokenizer_json_has_the_ids_and_texts_of_the_model) {
  const Case& c = GetParam();
  const Tokenizer model = small_tokenizer(c.type, c.normalization, c.byte_fallback);
  const TemporaryFolder folder;
  model.save_folder(folder.path());
  const Tokenizer json = Tokenizer::load(folder / "tokenizer.json");
  ASSERT_EQ(json.vocab_size(), model.vocab_size());
  for (int32_t id = 0; id < model.vocab_size(); ++id) EXPECT_EQ(json.token(id), model.token(id));
  EXPECT_EQ(json.pad_id(), model.pad_id());
  EXPECT_EQ(json.bos_id(), model.bos_id());
  EXPECT_EQ(json.eos_id(), model.eos_id());
  for (const std::string& text : hard_texts(c.byte_fallback)) {
    SCOPED_TRACE("text: " + Json(text).dump());
    const std::vector<int32_t> ids = model.encode(text);
    ASSERT_EQ(json.encode(text), ids);
    ASSERT_EQ(json.with_special(ids).ids, ids);
    ASSERT_EQ(json.decode(ids), model.decode(ids));
    std::vector<int32_t> ended = ids;
    ended.insert(ended.begin(), model.bos_id());
    ended.push_back(model.eos_id());
    ASSERT_EQ(json.decode(ended), model.decode(ended));
  }
}

TEST_P(ForTransformers, heddle_reads_the_model_and_not_what_is_beside_it) {
  const Case& c = GetParam();
  const Tokenizer model = small_tokenizer(c.type, c.normalization, c.byte_fallback);
  const TemporaryFolder folder, again;
  model.save_folder(folder.path());
  for (const char* type : {"gpt2", "llama", "xlnet", "t5"}) {
    folder.write("config.json", "{\"model_type\": \""s + type + "\"}");
    const Tokenizer read = Tokenizer::load(folder.path());
    EXPECT_EQ(read.kind(), "SentencePiece");
    EXPECT_EQ(read.fingerprint(), model.fingerprint());
    EXPECT_EQ(read.model_bytes(), model.model_bytes());
    read.save_folder(again.path());
    for (const char* name : {"tokenizer.json", "tokenizer_config.json", "tokenizer.model"}) {
      EXPECT_EQ(read_file(again / name), read_file(folder / name)) << name;
    }
  }
  // As transformers saves it, without the model.
  remove_path(folder / "tokenizer.model");
  EXPECT_EQ(Tokenizer::load(folder.path()).encode("the old man"), model.encode("the old man"));
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, ForTransformers,
    ::testing::Values(Case{"bpe", TokenizerType::bpe, "identity", true},
                      Case{"bpe_unknown", TokenizerType::bpe, "identity", false},
                      Case{"bpe_nfkc", TokenizerType::bpe, "nfkc", true},
                      Case{"unigram", TokenizerType::unigram, "identity", true},
                      Case{"unigram_unknown", TokenizerType::unigram, "identity", false},
                      Case{"unigram_nmt_nfkc_cf", TokenizerType::unigram, "nmt_nfkc_cf", true}),
    [](const auto& suite) { return std::string(suite.param.name); });

TEST(ForTransformers, folders_of_before_are_read_as_they_were) {
  const Tokenizer model = small_tokenizer(TokenizerType::bpe);
  const TemporaryFolder folder;
  folder.write("tokenizer.model", model.model_bytes());
  folder.write("tokenizer_config.json", "{\n  \"tokenizer_class\": \"SentencePiece\"\n}\n");
  folder.write("config.json", R"({"model_type": "llama"})");
  const Tokenizer read = Tokenizer::load(folder.path());
  EXPECT_EQ(read.kind(), "SentencePiece");
  EXPECT_EQ(read.fingerprint(), model.fingerprint());
}

TEST(ForTransformers, of_a_list_of_words_there_is_no_tokenizer_json) {
  const std::vector<std::string> words = {"un", "deux"};
  const Tokenizer list = word_list_tokenizer(words);
  const TemporaryFolder folder;
  list.save_folder(folder.path());
  EXPECT_FALSE(path_exists(folder / "tokenizer.json"));
  const Json config = Json::load(folder / "tokenizer_config.json");
  EXPECT_EQ(config.get_string("tokenizer_class"), "SentencePiece");
  folder.write("config.json", R"({"model_type": "llama"})");
  EXPECT_EQ(Tokenizer::load(folder.path()).fingerprint(), list.fingerprint());
}

// The class is beside the file, so that transformers takes it whatever the model is; with it and
// without, as in runs of before, it is the same tokenizer.
void expect_class_beside(const Tokenizer& made, const char* file, const char* tokenizer_class) {
  const TemporaryFolder folder, again;
  made.save_folder(folder.path());
  const Json config = Json::load(folder / "tokenizer_config.json");
  EXPECT_EQ(config.get_string("tokenizer_class"), tokenizer_class);
  const Tokenizer with = Tokenizer::load(folder.path());
  EXPECT_EQ(with.fingerprint(), made.fingerprint());
  ASSERT_EQ(with.files().size(), 1u);
  with.save_folder(again.path());
  EXPECT_EQ(Json::load(again / "tokenizer_config.json"), config);
  remove_path(folder / "tokenizer_config.json");
  const Tokenizer without = Tokenizer::load(folder.path());
  EXPECT_EQ(without.fingerprint(), made.fingerprint());
  EXPECT_EQ(without.encode("hello"), made.encode("hello"));
  EXPECT_EQ(without.files()[0].name, file);
  // Another file of that name says something else.
  folder.write("tokenizer_config.json", R"({"model_max_length": 5})");
  EXPECT_NE(Tokenizer::load(folder.path()).fingerprint(), made.fingerprint());
}

TEST(ForTransformers, a_vocabulary_alone_gets_its_class) {
  const std::vector<std::string> texts = {"hello hello", "hell yes"};
  expect_class_beside(train_word_pieces(texts, 20), "vocab.txt", "BertTokenizer");
  expect_class_beside(character_tokenizer(texts), "tokenizer.json", "PreTrainedTokenizerFast");
}

// A tokenizer.json or GPT-2's files that another model took over: its type is not theirs.
TEST(ForTransformers, files_that_say_no_class_get_one) {
  const Json whole = Json::load(join_path(testing::kFixtures, "tokenizers/whole/roberta.json"));
  const Json gpt2 = Json::load(join_path(testing::kFixtures, "tokenizers/folders/gpt2.json"));
  const TemporaryFolder roberta_folder, gpt2_folder, saved;
  roberta_folder.write("tokenizer.json", whole.at("tokenizer").dump());
  for (const auto& [name, content] : gpt2.at("files").as_object()) {
    gpt2_folder.write(name, content.as_string());
  }
  for (const auto& [folder, name] :
       {std::pair{&roberta_folder, "PreTrainedTokenizerFast"}, {&gpt2_folder, "GPT2Tokenizer"}}) {
    const Tokenizer read = Tokenizer::load(folder->path());
    read.save_folder(saved.path());
    const Json config = Json::load(saved / "tokenizer_config.json");
    EXPECT_EQ(config.get_string("tokenizer_class"), name);
    if (folder == &roberta_folder) {
      EXPECT_EQ(config.get_string("cls_token"), read.token(read.cls_id()));
      EXPECT_EQ(config.get_string("mask_token"), "<mask>");
    }
    const Tokenizer again = Tokenizer::load(saved.path());
    EXPECT_EQ(again.fingerprint(), read.fingerprint());
    for (const std::string text : {"a <mask> b", "<s>x</s> <unk>", " Hello"}) {
      EXPECT_EQ(again.encode(text), read.encode(text));
      EXPECT_EQ(again.decode(again.encode(text)), read.decode(read.encode(text)));
    }
    for (auto id : {&Tokenizer::pad_id, &Tokenizer::unk_id, &Tokenizer::bos_id, &Tokenizer::eos_id,
                    &Tokenizer::cls_id, &Tokenizer::sep_id, &Tokenizer::mask_id}) {
      EXPECT_EQ((again.*id)(), (read.*id)());
    }
    for (const char* file : {"tokenizer.json", "tokenizer_config.json"}) remove_path(saved / file);
  }
}

}  // namespace
}  // namespace heddle
