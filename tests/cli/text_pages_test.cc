// The pages of heddle fill, classify and embed hold the numbers that the commands print.
#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

#include "heddle/inspect/pages/page.h"
#include "tests/cli/page_data.h"

namespace heddle::testing {
namespace {

class TextPages : public ::testing::Test {
 protected:
  // The lines that a command prints, the same with and without a page.
  std::vector<Json> lines_of(std::vector<std::string> words, const std::string& input) {
    CliOptions options;
    options.input = input;
    words.emplace_back("--json");
    const CliResult alone = run_heddle(words, options);
    words.insert(words.end(), {"--page", page_});
    const CliResult result = run_heddle(words, options);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(result.out, alone.out);
    EXPECT_NE(result.err.find("in " + page_ + "; open it in a browser\n"), std::string::npos)
        << result.err;
    std::vector<Json> lines;
    std::istringstream stream(result.out);
    for (std::string line; std::getline(stream, line);) lines.push_back(Json::parse(line));
    return lines;
  }

  TempDir folder_;
  const std::string page_ = (folder_ / "page.html").string();
};

TEST_F(TextPages, fill_has_the_tokens_around_masks_and_those_for_them) {
  const auto lines =
      lines_of({"fill", text_model("fill"), "--top", "3"}, "the [MASK] fox\n[MASK] [MASK]\n");
  const Json data = page_data(page_);
  EXPECT_EQ(data.get_int("count"), 2);
  const Json::Array& texts = data.at("texts").as_array();
  ASSERT_EQ(texts.size(), 2u);
  EXPECT_EQ(texts[0].at("parts").as_strings(), (std::vector<std::string>{"the ", " fox"}));
  EXPECT_EQ(texts[1].at("parts").as_strings(), (std::vector<std::string>{"", " ", ""}));
  for (size_t t = 0; t < 2; ++t) {
    const Json::Array &masks = texts[t].at("masks").as_array(),
                      &said = lines[t].at("masks").as_array();
    ASSERT_EQ(masks.size(), t + 1);
    for (size_t m = 0; m < masks.size(); ++m) {
      ASSERT_EQ(masks[m].size(), 3u);
      for (size_t i = 0; i < 3; ++i) {
        const Json::Array& token = masks[m].as_array()[i].as_array();
        EXPECT_EQ(token[0].as_string(), said[m].as_array()[i].get_string("token"));
        EXPECT_EQ(token[1].as_double(), said[m].as_array()[i].get_double("probability"));
      }
    }
  }
}

TEST_F(TextPages, classes_are_those_printed_likeliest_first) {
  const auto lines = lines_of({"classify", text_model("classify"), "--top", "2"}, "the fox\nlow\n");
  const Json data = page_data(page_);
  EXPECT_EQ(data.get_string("scale"), "softmax");
  const auto labels = data.at("labels").as_strings();
  EXPECT_EQ(labels, (std::vector<std::string>{"bad", "neutral", "good"}));
  const Json::Array& texts = data.at("texts").as_array();
  ASSERT_EQ(texts.size(), 2u);
  EXPECT_EQ(texts[0].get_string("text"), "the fox");
  for (size_t t = 0; t < 2; ++t) {
    const Json::Array& classes = texts[t].at("classes").as_array();
    ASSERT_EQ(classes.size(), 2u);
    EXPECT_EQ(labels[classes[0].as_array()[0].as_int()], lines[t].get_string("label"));
    EXPECT_GE(classes[0].as_array()[1].as_double(), classes[1].as_array()[1].as_double());
    for (const Json& one : classes) {
      EXPECT_EQ(one.as_array()[1].as_double(),
                lines[t].at("probabilities").get_double(labels[one.as_array()[0].as_int()]));
    }
  }
}

TEST_F(TextPages, similarity_is_the_cosine_of_the_vectors_printed) {
  const auto lines = lines_of({"embed", text_model("encoder"), "--no-normalize"}, "the fox\nlow\n");
  const auto a = lines[0].at("embedding").as_array(), b = lines[1].at("embedding").as_array();
  double ab = 0, aa = 0, bb = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    ab += a[i].as_double() * b[i].as_double();
    aa += a[i].as_double() * a[i].as_double();
    bb += b[i].as_double() * b[i].as_double();
  }
  const double share = (ab / std::sqrt(aa * bb) + 1) / 2;
  const Json data = page_data(page_);
  EXPECT_EQ(data.at("texts").as_strings(), (std::vector<std::string>{"the fox", "low"}));
  EXPECT_EQ(data.get_int("width"), static_cast<int64_t>(a.size()));
  const auto s = static_cast<float>(share);
  EXPECT_EQ(data.get_string("cosines"), inspect::pack_weights({1, s, s, 1}));
}

TEST_F(TextPages, many_texts_are_counted_and_the_first_are_held) {
  std::string input;
  for (int i = 0; i < 205; ++i) input += "the fox\n";
  EXPECT_EQ(lines_of({"embed", text_model("encoder")}, input).size(), 205u);
  const Json data = page_data(page_);
  EXPECT_EQ(data.get_int("count"), 205);
  EXPECT_EQ(data.at("texts").size(), 200u);
}

TEST_F(TextPages, path_that_cannot_be_written_ends_before_the_model_is_read) {
  for (const std::string command : {"fill", "classify", "embed"}) {
    const CliResult missing = run_heddle({command, "/no/model", "--page", "/no/such/page.html"});
    EXPECT_EQ(missing.exit_code, 3) << missing.err;
    EXPECT_NE(missing.err.find("the folder /no/such does not exist"), std::string::npos)
        << missing.err;
    const CliResult folder = run_heddle({command, "/no/model", "--page", folder_.path().string()});
    EXPECT_EQ(folder.exit_code, 3) << folder.err;
    EXPECT_NE(folder.err.find("it is a folder; name a file"), std::string::npos) << folder.err;
  }
}

}  // namespace
}  // namespace heddle::testing
