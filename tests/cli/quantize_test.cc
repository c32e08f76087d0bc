// heddle quantize at the command line, and what other commands do with the folder that it writes.
#include <gtest/gtest.h>

#include "heddle/base/files/files.h"
#include "tests/cli/language_model.h"

namespace heddle::testing {
namespace {

class Quantize : public LanguageModelFixture {
 protected:
  const TempDir folder_;
  const std::string made_ = (folder_ / "made").string();

  CliResult quantize(std::vector<std::string> flags) {
    flags.insert(flags.begin(), {"quantize", model()});
    return run_heddle(flags);
  }
  void make(const std::string& to) {
    const CliResult result = quantize({"--to", to, "-o", made_, "--overwrite"});
    ASSERT_EQ(result.exit_code, 0) << result.err;
  }
  void refused(int exit_code, const std::string& part, const std::vector<std::string>& words) {
    const CliResult result = run_heddle(words);
    EXPECT_EQ(result.exit_code, exit_code) << result.err;
    EXPECT_NE(result.err.find(part), std::string::npos) << result.err;
  }
};

TEST_F(Quantize, the_folder_generates_evaluates_and_is_described) {
  const std::string text = (folder_ / "text.txt").string();
  write_file(text, "the old man sees a small dog. my newspaper!");
  for (const std::string to : {"int4", "int8"}) {
    const CliResult result = quantize(
        {"--to", to, "-o", made_, "--overwrite", "--evaluate", text, "--group-size", "64"});
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_NE(result.out.find("24,576 weights of layers in " + to), std::string::npos)
        << result.out;
    EXPECT_NE(result.out.find("perplexity "), std::string::npos) << result.out;
    EXPECT_EQ(run_heddle({"generate", made_, "--prompt", "the", "-n", "4"}).exit_code, 0);
    EXPECT_EQ(run_heddle({"eval", made_, "--data", text}).exit_code, 0);
    EXPECT_EQ(run_heddle({"embed", made_, "--text", "the"}).exit_code, 0);
    const CliResult info = run_heddle({"info", made_, "--json"});
    ASSERT_EQ(info.exit_code, 0) << info.err;
    const Json json = Json::parse(info.out);
    EXPECT_EQ(json.at("quantization_config").get_int("bits"), to == "int4" ? 4 : 8);
    EXPECT_LT(json.at("bytes").get_int("weights"), json.at("bytes").get_int("weights_bf16"));
    EXPECT_NE(run_heddle({"info", made_}).out.find("in groups of 64"), std::string::npos);
  }
}

TEST_F(Quantize, ten_prompts_at_once_give_the_texts_that_each_gives_alone) {
  make("int4");
  const std::vector<std::string> prompts = {"the old man", "my", "a small dog", "two books!"};
  std::string lines;
  for (const std::string& prompt : prompts) lines += prompt + "\n";
  const CliResult together = run_heddle({"generate", made_, "-n", "12"}, with_input(lines));
  ASSERT_EQ(together.exit_code, 0) << together.err;
  std::string alone;
  for (const std::string& prompt : prompts) {
    if (!alone.empty()) alone += "----------\n";
    alone += run_heddle({"generate", made_, "-n", "12"}, with_input(prompt + "\n")).out;
  }
  EXPECT_EQ(together.out, alone);
}

TEST_F(Quantize, export_writes_the_rounded_weights_and_says_so) {
  make("int8");
  const std::string out = (folder_ / "out").string();
  const CliResult result = run_heddle({"export", made_, "-o", out});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.err.find("quantizing"), std::string::npos) << result.err;
  EXPECT_EQ(run_heddle({"generate", out, "--prompt", "the", "-n", "4"}).exit_code, 0);
}

TEST_F(Quantize, how_sentences_become_vectors_comes_along) {
  const std::string source = std::string(kFixtures) + "/texts/dense";
  const std::vector<std::string> quantize = {"quantize", source, "--to", "int8", "-o", made_};
  const CliResult result = run_heddle(quantize);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  for (const char* name :
       {"/modules.json", "/sentence_bert_config.json", "/config_sentence_transformers.json",
        "/1_Pooling/config.json", "/2_Dense/config.json", "/2_Dense/model.safetensors"}) {
    EXPECT_EQ(read_file(made_ + name), read_file(source + name)) << name;
  }
  const CliResult embedded = run_heddle({"embed", made_, "--json"}, with_input("a small dog\n"));
  ASSERT_EQ(embedded.exit_code, 0) << embedded.err;
  // the folders of modules are the model's own: such a model is replaced by another
  std::vector<std::string> again = quantize;
  again.emplace_back("--overwrite");
  EXPECT_EQ(run_heddle(again).exit_code, 0);
  EXPECT_TRUE(path_exists(made_ + "/2_Dense/model.safetensors"));
}

TEST_F(Quantize, training_from_it_is_a_usage_error_that_says_what_to_do) {
  make("int4");
  const std::string text = (folder_ / "text.txt").string();
  std::string words;
  for (int i = 0; i < 100; ++i) words += "the old man sees a small dog. ";
  write_file(text, words);
  for (const char* rank : {"0", "2"}) {
    refused(2, "quantized",
            {"train", "--task", "causal_lm", "--from", made_, "--data", text, "-o",
             (folder_ / "run").string(), "--max-updates", "1", "--lora-rank", rank});
  }
}

TEST_F(Quantize, bad_flags_and_folders_are_errors_with_their_exit_codes) {
  make("int4");
  const std::string other = (folder_ / "other").string();
  refused(2, "--to", {"quantize", model(), "--to", "int3", "-o", other});
  refused(2, "--to", {"quantize", model(), "-o", other});
  refused(2, "--output-to",
          {"quantize", model(), "--to", "int4", "-o", other, "--output-to", "f32"});
  refused(2, "--group-size is 48",
          {"quantize", model(), "--to", "int4", "-o", other, "--group-size", "48"});
  refused(2, "the model itself", {"quantize", model(), "--to", "int4", "-o", model()});
  refused(2, "not empty", {"quantize", model(), "--to", "int4", "-o", made_});
  refused(3, "quantized already", {"quantize", made_, "--to", "int4", "-o", other});
  refused(3, "nowhere", {"quantize", "nowhere", "--to", "int4", "-o", other});
  refused(3, "missing.txt",
          {"quantize", model(), "--to", "int4", "-o", other, "--evaluate", "missing.txt"});
  EXPECT_FALSE(std::filesystem::exists(other));
  write_file(made_ + "/notes.txt", "mine");
  refused(2, "notes.txt", {"quantize", model(), "--to", "int4", "-o", made_, "--overwrite"});
}

}  // namespace
}  // namespace heddle::testing
