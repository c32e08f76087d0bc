// heddle eval --text at the command line: perplexity of a text, and bad input.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/cli/language_model.h"
#include "tests/cli/page_data.h"

namespace heddle::testing {
namespace {

class EvalText : public LanguageModelFixture {
 protected:
  TempDir folder;
  const std::string text = (folder / "text").string();

  CliResult eval(std::vector<std::string> flags = {}) {
    flags.insert(flags.begin(), {"eval", model(), "--data", text});
    return run_heddle(flags);
  }
};

TEST_F(EvalText, figures_fit_each_other_and_count_the_text) {
  std::string content;
  for (const std::string& line : small_corpus()) content += line + "\n";
  content.resize(1200);
  write_file(text, content + "é");
  const CliResult result = eval({"--json", "--context", "32", "--stride", "8"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json json = Json::parse(result.out);
  const double nll = json.get_double("nll");
  EXPECT_EQ(json.get_int("bytes"), 1202);
  EXPECT_EQ(json.get_int("characters"),
            static_cast<int64_t>(1201 - std::count_if(content.begin(), content.end(),
                                                      [](char c) { return (c & 0xC0) == 0x80; })));
  EXPECT_EQ(json.get_int("tokens"),
            static_cast<int64_t>(shared_tokenizer().encode(content + "é").size()) - 1);
  EXPECT_NEAR(json.get_double("ppl"), std::exp(nll / json.get_double("tokens")),
              1e-6 * json.get_double("ppl"));
  EXPECT_NEAR(json.get_double("bits_per_byte"), nll / std::log(2.0) / 1202, 1e-9);
  const double hits = json.get_double("accuracy") * json.get_double("tokens");
  EXPECT_NEAR(hits, std::round(hits), 1e-9);
  EXPECT_LT(hits, json.get_double("tokens"));
  EXPECT_EQ(eval({"--json", "--context", "32", "--stride", "8", "--batch-tokens", "1"}).out,
            result.out);
  const CliResult plain = eval();
  EXPECT_NE(plain.out.find("context 40, stride 20"), std::string::npos) << plain.out;
}

TEST_F(EvalText, page_holds_the_text_and_the_loss_of_each_token) {
  const std::string page = (folder / "page.html").string(), content = "the old man\nsees a <b> é\n";
  write_file(text, content);
  const CliResult result = eval({"--json", "--page", page});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err, "eval: a page in " + page + "; open it in a browser\n");
  EXPECT_EQ(result.out, eval({"--json"}).out);
  const Json said = Json::parse(result.out), data = page_data(page);
  std::string whole;
  for (const std::string& token : data.at("texts").as_strings()) whole += token;
  EXPECT_EQ(whole, shared_tokenizer().decode(shared_tokenizer().encode(content)));
  double nll = 0, hits = 0;
  for (const Json& loss : data.at("loss").as_array()) nll += loss.as_double();
  for (const Json& rank : data.at("rank").as_array()) hits += rank.as_int() == 1;
  const auto tokens = static_cast<double>(said.get_int("tokens"));
  EXPECT_EQ(static_cast<double>(data.at("loss").size()), tokens);
  EXPECT_NEAR(nll, said.get_double("nll"), 1e-5 * tokens);
  EXPECT_NEAR(hits / tokens, said.get_double("accuracy"), 1e-12);
  EXPECT_EQ(data.get_int("vocab"), 312);
  EXPECT_NE(data.get_string("summary").find("perplexity "), std::string::npos);
}

TEST_F(EvalText, page_that_cannot_be_written_is_refused_before_the_text_is_read) {
  const CliResult missing = eval({"--page", "/no/such/page.html"});
  EXPECT_EQ(missing.exit_code, 3);
  EXPECT_NE(missing.err.find("the folder /no/such does not exist"), std::string::npos)
      << missing.err;
}

// Routers of zeros find all experts equal, so each token goes through the first two.
TEST_F(EvalText, routing_of_a_mixture_is_shown) {
  nn::Parameters parameters(5);
  const auto mixture = make_model(
      nn::Scope(parameters),
      Json::parse(R"({"model_type": "mixtral", "vocab_size": 312, "max_position_embeddings": 40,
          "hidden_size": 32, "intermediate_size": 24, "num_hidden_layers": 2,
          "num_attention_heads": 4, "num_key_value_heads": 2, "num_local_experts": 4})"));
  for (auto& p : parameters.all()) {
    if (!p->name().ends_with("layers.1.block_sparse_moe.gate.weight")) continue;
    std::fill_n(p->value().data<float>(), p->elements(), 0.0f);
    p->changed(true);
  }
  const std::string path = (folder / "mixture").string();
  save_model(path, *mixture, parameters);
  shared_tokenizer().save(path + "/tokenizer.model");
  write_file(text, small_corpus()[0]);
  const CliResult result = run_heddle({"eval", path, "--data", text, "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json json = Json::parse(result.out);
  const auto& layers = json.at("routing").as_array();
  ASSERT_EQ(layers.size(), 2u);
  double sum = 0;
  for (const Json& share : layers[0].as_array()) sum += share.as_double();
  EXPECT_NEAR(sum, 1, 1e-12);
  EXPECT_EQ(layers[1].dump(), "[0.5, 0.5, 0.0, 0.0]");
  const CliResult table = run_heddle({"eval", path, "--data", text});
  EXPECT_NE(table.out.find("even: 25.0 %"), std::string::npos) << table.out;
  EXPECT_NE(table.out.find("    1   50.0  50.0   0.0   0.0\n"), std::string::npos) << table.out;
  EXPECT_FALSE(Json::parse(eval({"--json"}).out).contains("routing"));
}

// As in training: documents in the column that is named, their ends between them.
TEST_F(EvalText, rows_of_json_lines_are_documents) {
  const auto tokens = [&](const std::vector<std::string>& flags) {
    std::vector<std::string> words = {"eval", model(), "--json"};
    words.insert(words.end(), flags.begin(), flags.end());
    const CliResult result = run_heddle(words);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return Json::parse(result.out).get_int("tokens");
  };
  write_file(folder / "rows.jsonl",
             "{\"body\": \"the old man\"}\n{\"body\": \"the young woman\"}\n");
  const Tokenizer& t = shared_tokenizer();
  EXPECT_EQ(tokens({"--data", (folder / "rows.jsonl").string(), "--text-key", "body"}),
            std::ssize(t.encode("the old man")) + 1 + std::ssize(t.encode("the young woman")) - 1);
  EXPECT_EQ(run_heddle({"eval", model(), "--data", (folder / "rows.jsonl").string()}).exit_code, 3);
}

TEST_F(EvalText, texts_and_windows_that_make_no_sense_are_refused) {
  const auto refused = [&](int exit_code, const std::string& part,
                           const std::vector<std::string>& flags) {
    const CliResult result = eval(flags);
    EXPECT_EQ(result.exit_code, exit_code) << result.err;
    EXPECT_EQ(result.out, "");
    EXPECT_NE(result.err.find(part), std::string::npos) << result.err;
  };
  refused(3, "text", {});  // no such file
  write_file(text, "");
  refused(3, "the file has no text", {});
  write_file(text, "the \xff");
  refused(3, "not UTF-8", {});
  write_file(text, "the old man reads");
  refused(2, "--context is 41", {"--context", "41"});
  refused(2, "--context is 1", {"--context", "1"});
  refused(2, "--stride is 40", {"--stride", "40"});
  refused(2, "--no-memory", {"--no-memory"});
  refused(2, "--data for all other models", {"--src", text});
  for (const std::vector<std::string>& flag :
       std::vector<std::vector<std::string>>{{"--beam", "5"},
                                             {"--truncate"},
                                             {"--lowercase"},
                                             {"--max-length", "3"},
                                             {"--shortlist", "x"},
                                             {"--source-language", "en"},
                                             {"--target-language", "de"}}) {
    refused(2, flag[0] + " is a flag of translators", flag);
  }
  refused(2, "--label-key is a flag of models with classes", {"--label-key", "x"});
  refused(2, "--seed is for models of masked tokens", {"--seed", "3"});
  EXPECT_EQ(run_heddle({"eval", model()}).exit_code, 2);
  const TempDir other;
  const std::string translator = (other / "translator").string();
  write_small_model(translator);
  EXPECT_EQ(run_heddle({"eval", translator}).exit_code, 2);
  EXPECT_EQ(run_heddle({"eval", translator, "--data", text}).exit_code, 2);
}

// A model with memory reads segments end to end.
TEST(EvalTextMemory, segments_have_a_memory_unless_it_is_switched_off) {
  const TempDir folder;
  const std::string model = (folder / "xl").string(), text = (folder / "text").string();
  nn::Parameters parameters(5);
  const auto xl = make_model(
      nn::Scope(parameters),
      Json::parse(R"({"model_type": "transfo-xl", "vocab_size": 312, "d_model": 16, "d_embed": 16,
                      "n_head": 2, "d_head": 8, "d_inner": 24, "n_layer": 2, "div_val": 1,
                      "cutoffs": [], "mem_len": 20, "init_std": 0.3})"));
  save_model(model, *xl, parameters);
  shared_tokenizer().save(model + "/tokenizer.model");
  std::string content;
  for (const std::string& line : small_corpus()) content += line + "\n";
  write_file(text, content.substr(0, 800));
  const auto eval = [&](std::vector<std::string> flags) {
    flags.insert(flags.begin(), {"eval", model, "--data", text, "--context", "8"});
    return run_heddle(flags);
  };
  const CliResult with = eval({"--json"}), without = eval({"--json", "--no-memory"});
  ASSERT_EQ(with.exit_code, 0) << with.err;
  const Json a = Json::parse(with.out), b = Json::parse(without.out);
  EXPECT_EQ(a.get_int("memory"), 20);
  EXPECT_EQ(b.get_int("memory"), 0);
  EXPECT_EQ(a.get_int("tokens"), b.get_int("tokens"));
  EXPECT_NE(a.get_double("ppl"), b.get_double("ppl"));
  EXPECT_NE(eval({}).out.find("segments of 8, and a memory of 20 tokens"), std::string::npos);
  EXPECT_NE(eval({"--no-memory"}).out.find("segments of 8, without memory"), std::string::npos);
  const CliResult refused = eval({"--stride", "4"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_NE(refused.err.find("--stride is 4"), std::string::npos) << refused.err;
}

}  // namespace
}  // namespace heddle::testing
