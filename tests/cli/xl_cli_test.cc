// Transformer-XL and XLNet at the command line: training with memory, and what they cannot do.
#include <gtest/gtest.h>

#include "tests/cli/language_model.h"

namespace heddle::testing {
namespace {

void write_model(const std::string& folder, const std::string& config) {
  nn::Parameters parameters(5);
  const auto model = make_model(nn::Scope(parameters), Json::parse(config));
  save_model(folder, *model, parameters);
}

void expect_refused(const std::vector<std::string>& words, const std::string& part) {
  const CliResult result = run_heddle(words);
  EXPECT_EQ(result.exit_code, 3) << result.err;
  EXPECT_NE(result.err.find(part), std::string::npos) << result.err;
}

TEST(XlCommand, xlnet_generates_and_is_refused_where_the_order_of_the_text_is_needed) {
  const TempDir folder;
  const std::string xlnet = (folder / "xlnet").string(), text = (folder / "text").string();
  write_model(xlnet, R"({"model_type": "xlnet", "vocab_size": 312, "d_model": 16, "n_head": 2,
                         "n_layer": 1, "d_inner": 24, "architectures": ["XLNetLMHeadModel"]})");
  write_file(text, "the old man reads");
  const CliResult words =
      run_heddle({"generate", xlnet, "--ids", "5,9,7", "--max-new-tokens", "5", "--json"});
  ASSERT_EQ(words.exit_code, 0) << words.err;
  EXPECT_EQ(Json::parse(words.out).at("ids").as_array().size(), 5u) << words.out;
  const CliResult next = run_heddle({"generate", xlnet, "--ids", "5,9,7", "--top", "3"});
  EXPECT_EQ(next.exit_code, 0) << next.err;
  expect_refused({"eval", xlnet, "--data", text}, "a xlnet predicts tokens in any order");
}

TEST(XlCommand, pages_show_attention_by_distance) {
  const TempDir folder;
  const std::string xl = (folder / "xl").string(), page = (folder / "page.html").string();
  write_model(xl, R"({"model_type": "transfo-xl", "vocab_size": 312, "d_model": 16, "d_embed": 16,
                      "n_head": 2, "d_head": 8, "d_inner": 24, "n_layer": 1, "div_val": 1,
                      "cutoffs": [], "mem_len": 20})");
  shared_tokenizer().save(xl + "/tokenizer.model");
  const CliResult heads = run_heddle({"attention", xl, "--text", "the old man", "--page", page});
  EXPECT_EQ(heads.exit_code, 0) << heads.err;
  const CliResult steps = run_heddle({"explain", xl, "--text", "the old man"});
  ASSERT_EQ(steps.exit_code, 0) << steps.err;
  EXPECT_NE(steps.out.find("S = S_c + S_d"), std::string::npos) << steps.out;
}

TEST(XlCommand, flags_train_with_memory_and_report_without) {
  const TempDir folder;
  const std::string text = (folder / "text").string(), run = (folder / "run").string();
  std::string content;
  for (const std::string& line : small_corpus()) content += line + "\n";
  write_file(text, content);
  const CliResult trained = run_heddle(
      {"train", "--task",        "causal_lm", "--model-type",     "transfo-xl", "--data",
       text,    "--out",         run,         "--cutoffs",        "",           "--div-val",
       "1",     "--d-model",     "16",        "--d-embed",        "16",         "--n-head",
       "2",     "--d-head",      "8",         "--d-inner",        "24",         "--n-layer",
       "1",     "--mem-len",     "16",        "--block-size",     "8",          "--batch-size",
       "4",     "--max-updates", "6",         "--validate-every", "3"});
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  const CliResult with = run_heddle({"eval", run, "--data", text, "--context", "8", "--json"});
  ASSERT_EQ(with.exit_code, 0) << with.err;
  EXPECT_EQ(Json::parse(with.out).get_int("memory"), 16);
  const CliResult words = run_heddle({"generate", run, "--prompt", "the", "--max-new-tokens", "5"});
  EXPECT_EQ(words.exit_code, 0) << words.err;
}

}  // namespace
}  // namespace heddle::testing
