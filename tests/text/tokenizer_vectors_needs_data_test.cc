// Every vector of ../shared/data/tokenizers whose vocabulary is there: ids and texts.
#include <gtest/gtest.h>

#include "heddle/base/files/files.h"
#include "heddle/base/json/json.h"
#include "heddle/text/tokenizer.h"
#include "tests/base/temporary.h"
#include "tests/base/unzipped.h"
#include "tests/support/places.h"
#include "tests/text/json_ids.h"

namespace heddle {
namespace {

std::string data_path(const std::string& name) {
  return join_path(join_path(testing::kData, "tokenizers"), name);
}

std::string unzipped(const std::string& name) { return testing::unzipped(data_path(name)); }

Tokenizer gpt2() {
  TemporaryFolder folder;
  folder.write("encoder.json", unzipped("gpt2/encoder.json.gz"));
  folder.write("vocab.bpe", unzipped("gpt2/vocab.bpe.gz"));
  return Tokenizer::load(folder.path());
}

Tokenizer bert() {
  TemporaryFolder folder;
  folder.write("vocab.txt", unzipped("bert_uncased/vocab.txt.gz"));
  return Tokenizer::load(folder.path());
}

Tokenizer t5() {
  TemporaryFolder folder;
  return Tokenizer::load(folder.write("tokenizer.json", unzipped("t5/tokenizer.json.gz")));
}

std::vector<std::string> split(const std::string& text, const std::string& mark) {
  std::vector<std::string> parts;
  for (size_t at = 0;;) {
    const size_t found = text.find(mark, at);
    parts.push_back(text.substr(at, found - at));
    if (found == text.npos) return parts;
    at = found + mark.size();
  }
}

void expect_ggml(const Tokenizer& tokenizer, const std::string& out) {
  const auto inputs =
      split(read_file(data_path("tests/ggml_vocab_inputs.txt")), "\n__ggml_vocab_test__\n");
  const auto lines = split(read_file(data_path("tests/" + out)), "\n");
  ASSERT_EQ(inputs.size(), 47u);
  for (size_t i = 0; i < inputs.size(); ++i) {
    std::string ids;
    for (const int32_t id : tokenizer.encode(inputs[i])) ids += " " + std::to_string(id);
    EXPECT_EQ(ids, lines.at(i)) << Json(inputs[i]).dump();
  }
}

TEST(TokenizerVectors, gpt2_gives_the_47_lines_of_llama_cpp) {
  expect_ggml(gpt2(), "ggml_vocab_gpt-2.out");
}

TEST(TokenizerVectors, bert_gives_the_47_lines_of_llama_cpp) {
  expect_ggml(bert(), "ggml_vocab_bert-bge.out");
}

/// The texts were made by transformers 4, which cleaned up after every tokenizer.
void expect_hugging_face(const Tokenizer& tokenizer, const std::string& model) {
  const Json all = Json::parse(unzipped("tests/hf_tokenizer_tests.json.gz"));
  const Json::Array& cases = all.at(model).as_array();
  ASSERT_EQ(cases.size(), 18u);
  for (const Json& one : cases) {
    SCOPED_TRACE(one.dump());
    const Ids expected = ids_of(one.at("encoded").at("input_ids"));
    const Encoding encoding = tokenizer.with_special(tokenizer.encode(one.get_string("input")));
    EXPECT_EQ(encoding.ids, expected);
    if (const Json* types = one.at("encoded").find("token_type_ids")) {
      EXPECT_EQ(encoding.types, ids_of(*types));
    }
    EXPECT_EQ(tokenizer.decode(expected, {.skip_special = false, .clean_up = true}),
              one.get_string("decoded_with_special"));
    EXPECT_EQ(tokenizer.decode(expected, {.clean_up = true}),
              one.get_string("decoded_without_special"));
  }
}

TEST(TokenizerVectors, bert_base_uncased_gives_18_ids_and_texts) {
  expect_hugging_face(bert(), "bert-base-uncased");
}

TEST(TokenizerVectors, distilgpt2_gives_18_ids_and_texts) {
  expect_hugging_face(gpt2(), "distilgpt2");
}

TEST(TokenizerVectors, t5_base_gives_18_ids_and_texts) { expect_hugging_face(t5(), "t5-base"); }

TEST(TokenizerVectors, french_paragraphs_have_their_ids_and_tokens) {
  const std::tuple<const char*, Tokenizer, bool> all[] = {
      {"tests/bert_uncased_encoded.json.gz", bert(), true},
      {"tests/t5_base_encoded.json.gz", t5(), true},
      {"tests/gpt2_encoded_tokens.json.gz", gpt2(), false}};
  for (const auto& [name, tokenizer, has_special] : all) {
    SCOPED_TRACE(name);
    const Json paragraph = Json::parse(unzipped(name));
    const Ids ids = tokenizer.encode(paragraph.get_string("text"));
    const Ids expected = ids_of(paragraph.at("token_ids"));
    EXPECT_EQ(has_special ? tokenizer.with_special(ids).ids : ids, expected);
    std::vector<std::string> tokens;
    for (const int32_t id : ids) tokens.push_back(tokenizer.token(id));
    EXPECT_EQ(tokens, paragraph.at("bpe_tokens").as_strings());
    EXPECT_EQ(tokenizer.decode(expected, {.skip_special = false, .clean_up = true}),
              paragraph.get_string("decoded_text"));
  }
}

TEST(TokenizerVectors, spiece_model_gives_the_ids_of_tokenizer_json) {
  const Tokenizer json = t5(), model = Tokenizer::from_bytes(unzipped("t5/spiece.model.gz"));
  for (const std::string text : {"Hello world", "Studies have shown that (1) 3 % of it works.",
                                 "\u00dcber uns, d\u00e9partement"}) {
    EXPECT_EQ(json.encode(text), model.encode(text)) << text;
  }
}

TEST(TokenizerVectors, a_merge_of_an_unknown_token_is_refused_by_name) {
  expect_error(ErrorKind::data, {"mini/tokenizer.json", "merge 1", "'off'"},
               [] { Tokenizer::load(data_path("mini/tokenizer.json")); });
}

TEST(TokenizerVectors, gpt2_gives_back_each_text) {
  const Tokenizer tokenizer = gpt2();
  const std::string inputs = read_file(data_path("tests/ggml_vocab_inputs.txt"));
  EXPECT_EQ(tokenizer.decode(tokenizer.encode(inputs)), inputs);
}

TEST(TokenizerVectors, a_megabyte_without_a_space_takes_seconds_at_most) {
  const std::string text(1 << 20, 'a');
  EXPECT_GT(gpt2().encode(text).size(), 1000u);
}

}  // namespace
}  // namespace heddle
