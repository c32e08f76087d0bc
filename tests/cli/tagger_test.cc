// heddle classify of a tagger: a word and its class a line.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "heddle/infer/loading/text_model.h"
#include "tests/cli/tagger_model.h"

namespace heddle::testing {
namespace {

class Tagger : public ::testing::Test {
 protected:
  Tagger() { write_tagger(model_); }
  CliResult classify(const std::string& input, std::vector<std::string> flags = {}) {
    CliOptions options;
    options.input = input;
    flags.insert(flags.begin(), {"classify", model_});
    return run_heddle(std::move(flags), options);
  }
  std::vector<Json> objects(const std::string& input, std::vector<std::string> flags = {}) {
    flags.emplace_back("--json");
    std::istringstream out(classify(input, flags).out);
    std::vector<Json> lines;
    for (std::string line; std::getline(out, line);) lines.push_back(Json::parse(line));
    return lines;
  }

  const TempDir folder_;
  const std::string model_ = (folder_ / "model").string();
};

TEST_F(Tagger, class_of_a_word_is_that_of_its_first_token) {
  const LoadedModel model = load_text_model(model_);
  const std::vector<std::string> words = {"the", "lowerfox", "low"};
  std::vector<int32_t> ids;
  std::vector<size_t> firsts;
  for (const std::string& word : words) {
    const auto own = model.tokenizer->encode(word);
    firsts.push_back(ids.size() + 1);  // behind [CLS]
    ids.insert(ids.end(), own.begin(), own.end());
  }
  ASSERT_GT(ids.size(), words.size()) << "a word has several tokens";
  const Encoding encoding = model.tokenizer->with_special(ids);
  const PackedTexts packed(model.tokens(), {&encoding, 1});
  const nn::TokenRows tokens = packed.tokens();
  const NoGrad off;
  const nn::Run run;
  const auto logits =
      model.model->heads().token_classes(model.model->hidden(tokens, run), tokens, run).to_floats();
  // Beside another text, which changes nothing.
  const auto lines = objects("low fox\nthe  lowerfox\tlow\n");
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[1].get_string("text"), "the  lowerfox\tlow");
  const Json::Array& got = lines[1].at("words").as_array();
  ASSERT_EQ(got.size(), words.size());
  for (size_t w = 0; w < words.size(); ++w) {
    const float* row = &logits[firsts[w] * kTaggerLabels.size()];
    const size_t most = std::max_element(row, row + kTaggerLabels.size()) - row;
    double sum = 0;
    for (size_t c = 0; c < kTaggerLabels.size(); ++c) sum += std::exp(row[c] - row[most]);
    EXPECT_EQ(got[w].get_string("word"), words[w]);
    EXPECT_EQ(got[w].get_string("label"), kTaggerLabels[most]);
    EXPECT_NEAR(got[w].get_double("probability"), 1 / sum, 1e-5);
  }
}

TEST_F(Tagger, plain_output_is_a_word_a_line_and_an_empty_line_behind_each_text) {
  const auto lines = objects("the fox\nlow\n");
  const auto label = [&](size_t text, size_t word) {
    return lines[text].at("words").as_array()[word].get_string("label");
  };
  const std::string wanted =
      "the\t" + label(0, 0) + "\nfox\t" + label(0, 1) + "\n\nlow\t" + label(1, 0) + "\n\n";
  EXPECT_EQ(classify("the fox\nlow\n").out, wanted);
  EXPECT_EQ(classify("", {"--text", "the fox", "--text", "low"}).out, wanted);
}

TEST_F(Tagger, blank_and_bad_lines_keep_their_place) {
  const std::string the = classify("the\n").out;
  EXPECT_EQ(classify("the\n\n  \nthe\n").out, the + "\n\n" + the);
  EXPECT_EQ(classify("\n").out, "\n");
  EXPECT_EQ(objects("\n")[0].dump(), R"({"text": "", "words": []})");
  const CliResult bad = classify("the\nb\xFF\nthe\n");
  EXPECT_EQ(bad.exit_code, 3);
  EXPECT_EQ(bad.out, the);
  const CliResult skipped = classify("the\nb\xFF\nthe\n", {"--skip-bad"});
  EXPECT_EQ(skipped.exit_code, 0) << skipped.err;
  EXPECT_EQ(skipped.out, the + "\n" + the);
  EXPECT_TRUE(objects("the\nb\xFF\nthe\n", {"--skip-bad"})[1].contains("error"));
}

TEST_F(Tagger, words_beyond_what_the_model_takes_have_no_class) {
  const std::string text = "the the the the the the the the fox low";
  const CliResult result = classify(text + "\nthe\n");
  EXPECT_EQ(result.err, "warning: classify: 1 of 2 texts were longer than 10 tokens and cut\n");
  EXPECT_NE(result.out.find("\nfox\t_\nlow\t_\n\nthe\t"), std::string::npos) << result.out;
  EXPECT_EQ(result.out.find("the\t_"), std::string::npos) << result.out;
  const Json words = objects(text + "\n")[0].at("words");
  EXPECT_TRUE(words.as_array()[7].at("label").is_string());
  EXPECT_EQ(words.as_array()[8].dump(), R"({"word": "fox", "label": null, "probability": null})");
}

TEST_F(Tagger, flags_for_classes_of_texts_are_refused) {
  for (const std::vector<std::string>& flags :
       std::vector<std::vector<std::string>>{{"--top", "2"}, {"--pair"}}) {
    const CliResult result = classify("the\tfox\n", flags);
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_EQ(result.out, "");
    EXPECT_NE(result.err.find(flags[0] + " is for classes of texts"), std::string::npos)
        << result.err;
  }
}

TEST_F(Tagger, page_has_the_words_with_their_classes) {
  const std::string page = (folder_ / "page.html").string();
  const auto lines = objects("the fox\nlow\n", {"--page", page});
  const Json data = page_data(page);
  EXPECT_EQ(data.at("labels").as_strings(), kTaggerLabels);
  EXPECT_EQ(data.get_int("count"), 2);
  const Json::Array& texts = data.at("texts").as_array();
  ASSERT_EQ(texts.size(), 2u);
  for (size_t t = 0; t < 2; ++t) {
    const Json::Array &words = texts[t].at("words").as_array(),
                      &said = lines[t].at("words").as_array();
    ASSERT_EQ(words.size(), said.size());
    for (size_t w = 0; w < words.size(); ++w) {
      EXPECT_EQ(words[w].as_array()[0].as_string(), said[w].get_string("word"));
      EXPECT_EQ(kTaggerLabels[words[w].as_array()[1].as_int()], said[w].get_string("label"));
      EXPECT_EQ(words[w].as_array()[2].as_double(), said[w].get_double("probability"));
    }
  }
}

}  // namespace
}  // namespace heddle::testing
