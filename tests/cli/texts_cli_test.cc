// heddle fill, classify and embed at the command line.
#include <gtest/gtest.h>

#include <regex>

#include <algorithm>
#include <filesystem>

#include "heddle/base/json/json.h"
#include "heddle/infer/loading/loaded_model.h"
#include "heddle/text/tokenizer.h"
#include "tests/cli/page_data.h"
#include "tests/infer/small_models.h"
#include "tests/support/cli_runner.h"
#include "tests/support/places.h"

namespace heddle::testing {
namespace {

CliResult run_on(const std::string& input, std::vector<std::string> words) {
  CliOptions options;
  options.input = input;
  return run_heddle(std::move(words), options);
}

std::vector<Json> lines_of(const std::string& text) {
  std::vector<Json> lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find('\n', at);
    lines.push_back(Json::parse(text.substr(at, end - at)));
    at = end + 1;
  }
  return lines;
}

TEST(FillCommand, prints_tokens_with_probabilities_and_the_text) {
  const CliResult plain =
      run_heddle({"fill", text_model("fill"), "--text", "the [MASK] fox", "--top", "3"});
  ASSERT_EQ(plain.exit_code, 0) << plain.err;
  EXPECT_EQ(std::count(plain.out.begin(), plain.out.end(), '\n'), 3);
  const CliResult json =
      run_on("the [MASK] fox\n[MASK] [MASK]\n", {"fill", text_model("fill"), "--json"});
  ASSERT_EQ(json.exit_code, 0) << json.err;
  const auto lines = lines_of(json.out);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[1].at("masks").size(), 2u);
  const Json best = lines[0].at("masks").as_array()[0].as_array()[0];
  EXPECT_EQ(best.get_string("text"), "the " + best.get_string("token") + " fox");
  EXPECT_NE(plain.out.find(best.get_string("text")), std::string::npos) << plain.out;
}

TEST(FillCommand, other_masks_stay_in_the_text_and_texts_are_parted_by_empty_lines) {
  const CliResult result =
      run_on("the [MASK] fox [MASK] low\nthe [MASK]\n", {"fill", text_model("fill"), "--top", "1"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const std::regex form(
      "mask 1:\n0\\.\\d+ +(\\S+) +the \\S+ fox \\[MASK\\] low\n"
      "mask 2:\n0\\.\\d+ +(\\S+) +the \\[MASK\\] fox ?\\S+ low\n"
      "\n0\\.\\d+ +(\\S+) +the ?\\S+\n");
  EXPECT_TRUE(std::regex_match(result.out, form)) << result.out;
}

TEST(ClassifyCommand, prints_labels_likeliest_first) {
  const CliResult plain = run_on("the fox\nlow\n", {"classify", text_model("classify")});
  ASSERT_EQ(plain.exit_code, 0) << plain.err;
  const CliResult json = run_heddle(
      {"classify", text_model("classify"), "--text", "the fox", "--text", "low", "--json"});
  const auto lines = lines_of(json.out);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_TRUE(plain.out.starts_with(lines[0].get_string("label") + "\t0.")) << plain.out;
  double sum = 0;
  for (const auto& [label, p] : lines[0].at("probabilities").as_object()) sum += p.as_double();
  EXPECT_NEAR(sum, 1, 1e-9);
  const CliResult first =
      run_on("the fox\nlow\n", {"classify", text_model("classify"), "--top", "1"});
  EXPECT_EQ(std::count(first.out.begin(), first.out.end(), '\t'), 2) << first.out;
  EXPECT_TRUE(plain.out.starts_with(first.out.substr(0, first.out.find('\n')))) << first.out;
  const CliResult pair = run_on("the fox\tlow\n", {"classify", text_model("classify"), "--pair"});
  EXPECT_EQ(pair.exit_code, 0) << pair.err;
  EXPECT_NE(pair.out, plain.out.substr(0, plain.out.find('\n') + 1));
}

TEST(EmbedCommand, a_line_in_is_a_vector_out_and_cutting_is_said_once) {
  const std::string text(100, 'a');
  std::string words;
  for (int i = 0; i < 40; ++i) words += "the ";
  const CliResult json = run_on("the fox\n" + words + "\n" + words + "\n\n",
                                {"embed", text_model("encoder"), "--json"});
  ASSERT_EQ(json.exit_code, 0) << json.err;
  const auto lines = lines_of(json.out);
  ASSERT_EQ(lines.size(), 4u);
  double sum = 0;
  for (const Json& x : lines[0].at("embedding").as_array()) sum += x.as_double() * x.as_double();
  EXPECT_NEAR(sum, 1, 1e-5);
  EXPECT_EQ(json.err, "warning: embed: 2 of 4 texts were longer than 12 tokens and cut\n");
  const CliResult plain = run_heddle({"embed", text_model("encoder"), "--text", "the fox",
                                      "--pooling", "cls", "--pooling", "max", "--no-normalize"});
  ASSERT_EQ(plain.exit_code, 0) << plain.err;
  EXPECT_EQ(std::count(plain.out.begin(), plain.out.end(), ' '), 31);
}

// As sentence-transformers does before it tokenises.
TEST(EmbedCommand, spaces_around_a_text_are_none_of_it) {
  const CliResult result = run_heddle({"embed", text_model("encoder"), "--text", "the fox",
                                       "--text", " \t the fox \n", "--text", "the  fox"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  std::istringstream lines(result.out);
  std::string plain, spaced, inner;
  std::getline(lines, plain), std::getline(lines, spaced), std::getline(lines, inner);
  EXPECT_EQ(spaced, plain);
  EXPECT_FALSE(inner.empty());
}

// A tokenizer tells the parts of a pair apart; these models have no types to take that.
TEST(TextCommands, models_without_token_types_take_texts_of_any_tokenizer) {
  const std::string size = R"("vocab_size": 160, "pad_token_id": 0, )";
  const std::string distil = R"({"model_type": "distilbert", "dim": 16, "n_layers": 1,
      "n_heads": 2, "hidden_dim": 24, )" +
                             size;
  const std::string llama = R"({"model_type": "llama", "hidden_size": 16, "num_hidden_layers": 1,
      "num_attention_heads": 2, "intermediate_size": 24, )" +
                            size;
  const std::string gpt2 =
      R"({"model_type": "gpt2", "n_embd": 16, "n_layer": 1, "n_head": 2, )" + size;
  const std::string xl = R"({"model_type": "transfo-xl", "cutoffs": [40], "d_model": 16,
      "d_embed": 16, "n_head": 2, "d_head": 8, "d_inner": 20, "n_layer": 1, "mem_len": 4, )" +
                         size;
  const std::string rnn =
      R"({"model_type": "rnn_lm", "embedding_size": 12, "hidden_size": 16, )" + size;
  const std::tuple<std::string, std::vector<std::string>> all[] = {
      {distil + R"("architectures": ["DistilBertForMaskedLM"]})",
       {"fill", "--text", "the [MASK] fox"}},
      {distil + R"("architectures": ["DistilBertForSequenceClassification"]})",
       {"classify", "--pair"}},
      {llama + R"("architectures": ["LlamaForSequenceClassification"]})", {"classify", "--pair"}},
      {gpt2 + R"("architectures": ["GPT2ForSequenceClassification"]})", {"classify"}},
      {gpt2 + R"("architectures": ["GPT2Model"]})", {"embed", "--pooling", "mean"}},
      {xl + R"("architectures": ["TransfoXLForSequenceClassification"]})", {"classify", "--pair"}},
      {xl + R"("architectures": ["TransfoXLModel"]})", {"embed", "--pooling", "mean"}},
      {rnn + R"("architectures": ["RnnForSequenceClassification"]})", {"classify", "--pair"}},
      {rnn + R"("architectures": ["RnnModel"]})", {"embed", "--pooling", "mean"}}};
  for (const auto& [config, words] : all) {
    const TempDir folder;
    nn::Parameters parameters(5);
    const auto made = make_model(nn::Scope(parameters), Json::parse(config));
    save_model((folder / "model").string(), *made, parameters);
    for (const char* name : {"vocab.txt", "tokenizer_config.json"}) {
      std::filesystem::copy_file(text_model("classify") + "/" + name, folder / "model" / name);
    }
    std::vector<std::string> flags = words;
    flags.insert(flags.begin() + 1, (folder / "model").string());
    const CliResult result = run_on("the fox\tlow\n", flags);
    EXPECT_EQ(result.exit_code, 0) << config << result.err;
    EXPECT_EQ(result.err, "") << config;
  }
}

TEST(TextCommands, bad_input_ends_with_its_exit_code_and_reason) {
  const std::tuple<std::string, std::vector<std::string>, int, std::string> all[] = {
      {"", {"fill", text_model("fill"), "--text", "no mask"}, 3, "has no [MASK]"},
      {"", {"fill", text_model("fill"), "--text", "[MASK]", "--top", "0"}, 2, "--top is 0"},
      {"", {"fill", text_model("encoder"), "--text", "[MASK]"}, 3, "no head for masked tokens"},
      {"", {"fill", "/no/such", "--text", "[MASK]"}, 3, "/no/such"},
      {"", {"classify", text_model("classify")}, 2, "empty"},
      {"a\n", {"classify", text_model("classify"), "--top", "0"}, 2, "--top is 0"},
      {"b\xFF\n", {"classify", text_model("classify")}, 3, "line 1: not UTF-8"},
      {"no tab\n", {"classify", text_model("classify"), "--pair"}, 3, "no tab"},
      {"", {"classify", text_model("fill"), "--text", "a"}, 3, "no head for classes"},
      {"a\n",
       {"embed", text_model("encoder"), "--pooling", "median"},
       2,
       "unknown pooling 'median'"},
      {"a\n", {"embed", text_model("encoder"), "--max-length", "25"}, 2, "--max-length is 25"},
      {"a\n", {"embed", text_model("encoder"), "--max-length", "2"}, 3, "no room"},
      {"a\n", {"embed", text_model("encoder"), "--normalize", "--no-normalize"}, 2, "excludes"}};
  for (const auto& [input, words, exit_code, reason] : all) {
    const CliResult result = run_on(input, words);
    EXPECT_EQ(result.exit_code, exit_code) << reason << ": " << result.err;
    EXPECT_NE(result.err.find(reason), std::string::npos) << result.err;
    EXPECT_EQ(result.out, "");
  }
}

TEST(TextCommands, translators_are_refused_by_what_they_are) {
  const TempDir folder;
  const std::string translator = (folder / "model").string();
  write_small_model(translator);
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"fill", translator, "--text", "[MASK]"},
                                             {"classify", translator, "--text", "a"},
                                             {"embed", translator, "--text", "a"},
                                             {"generate", translator, "--prompt", "a"}}) {
    const CliResult result = run_on("", words);
    EXPECT_EQ(result.exit_code, 3) << words[0];
    EXPECT_NE(result.err.find(translator + ": it is a translator (heddle_transformer)"),
              std::string::npos)
        << result.err;
  }
}

TEST(InfoCommand, tells_the_tokenizer_of_an_encoder) {
  const CliResult result = run_heddle({"info", text_model("classify"), "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Tokenizer tokenizer = Tokenizer::load(text_model("classify"));
  const Json told = Json::parse(result.out).at("tokenizer");
  EXPECT_EQ(told.get_int("tokens"), tokenizer.vocab_size());
  EXPECT_EQ(told.get_string("fingerprint"), tokenizer.fingerprint());
}

TEST(TokenizerInfo, says_kind_size_and_what_stands_around_texts) {
  const CliResult plain = run_heddle({"tokenizer", "info", text_model("fill")});
  ASSERT_EQ(plain.exit_code, 0) << plain.err;
  EXPECT_NE(plain.out.find("WordPiece, 160 tokens"), std::string::npos) << plain.out;
  EXPECT_NE(plain.out.find("a pair is [CLS] TEXT [SEP] SECOND [SEP]"), std::string::npos);
  const CliResult ids =
      run_on("the [MASK]\n", {"tokenizer", "encode", text_model("fill"), "--special", "--tokens"});
  EXPECT_EQ(ids.out, "[CLS] the [MASK] [SEP]\n") << ids.err;
  const CliResult json = run_heddle({"tokenizer", "info", text_model("encoder"), "--json"});
  EXPECT_EQ(Json::parse(json.out).at("special").at("mask").get_int("id"), 4) << json.out;
}

}  // namespace
}  // namespace heddle::testing
