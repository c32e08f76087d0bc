// Attention over HTTP: as the command prints it; roll-out; and what is refused.
#include "tests/cli/page_data.h"
#include "tests/serve/client.h"
#include "tests/serve/running.h"
#include "tests/support/places.h"

namespace heddle::serve {
namespace {

// What the command prints, but the model's path.
std::string printed(std::vector<std::string> words, const std::string& name) {
  words.insert(words.begin(), "attention");
  words.insert(words.end(), {"--json", "--no-importance"});
  const testing::CliResult result = testing::run_heddle(words);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  Json json = Json::parse(result.out);
  json["model"] = name;
  return json.dump();
}

TEST(AttentionRoute, answers_are_those_of_the_command) {
  ServiceOptions options = default_service();
  options.models.push_back("reader=" + testing::text_model("classify"));
  Running running(options);
  const Answer pair = post(running.port(), "/v1/attention",
                           R"({"text": "a dog runs", "target": "ein Hund", "layers": [1]})");
  EXPECT_EQ(pair.body, printed({model_folder() + "/en-de", "--text", "a dog runs", "--target",
                                "ein Hund", "--layer", "1"},
                               "en-de"));
  const Answer text =
      post(running.port(), "/v1/attention", R"({"text": "the dog runs", "heads": [0, 3]})");
  EXPECT_EQ(text.body,
            printed({model_folder() + "/gpt", "--text", "the dog runs", "--head", "0,3"}, "small"));
  const Answer reader =
      post(running.port(), "/v1/attention", R"({"text": "the fox", "model": "reader"})");
  EXPECT_EQ(reader.body, printed({testing::text_model("classify"), "--text", "the fox"}, "reader"));
  EXPECT_EQ(running.taken_at_rest(), 0);
}

// What a model that is told languages reads, whatever the request before asked for.
TEST(AttentionRoute, languages_are_those_of_the_request) {
  const std::string folder = std::string(testing::kFixtures) + "/seq2seq/mbart";
  ServiceOptions options = default_service();
  options.models = {"many=" + folder};
  Running running(options);
  const auto asked = [&](const std::string& source) {
    Json body = Json::parse(R"({"text": "a book", "target": "tea", "target_lang": "ar_AR"})");
    if (!source.empty()) body["source_lang"] = source;
    return post(running.port(), "/v1/attention", body.dump()).body;
  };
  const auto shown = [&](const std::string& source) {
    return printed({folder, "--text", "a book", "--target", "tea", "--target-language", "ar_AR",
                    "--source-language", source},
                   "many");
  };
  EXPECT_EQ(asked("fr_XX"), shown("fr_XX"));
  EXPECT_EQ(asked(""), shown("en_XX"));  // the tokenizer's own
  const Json matrix =
      post(running.port(), "/v1/translations",
           R"({"text": "a book", "source_lang": "fr_XX", "target_lang": "de_DE", "max_tokens": 4,
               "alignment": "matrix"})")
          .json()
          .at("translations")
          .as_array()[0]
          .at("alignment");
  const auto tokens = matrix.at("source_tokens").as_strings("source_tokens");
  EXPECT_EQ(tokens.back(), "fr_XX");
  EXPECT_EQ(tokens[tokens.size() - 2], "(end)");
  EXPECT_EQ(matrix.at("target_tokens").as_array()[0], "de_DE");
  for (const Json& row : matrix.at("weights").as_array()) {
    double sum = 0;
    for (const Json& weight : row.as_array()) sum += weight.as_double();
    EXPECT_EQ(row.size(), tokens.size());
    EXPECT_NEAR(sum, 1, 1e-4);
  }
}

void expect_shares(const Json& json) {
  EXPECT_EQ(json.at("heads").size(), 0u);
  const auto& maps = json.at("rollout").as_array();
  ASSERT_EQ(maps.size(), 3u);
  const auto sum = [](const Json& row) {
    double total = 0;
    for (const Json& weight : row.as_array()) total += weight.as_double();
    return total;
  };
  const auto& own = maps[1].at("weights").as_array();
  const auto& source = maps[2].at("weights").as_array();
  ASSERT_EQ(own.size(), source.size());
  for (size_t i = 0; i < own.size(); ++i) EXPECT_NEAR(sum(own[i]) + sum(source[i]), 1, 1e-4);
}

TEST(AttentionRoute, rolled_out_rows_share_out_one) {
  Running running;
  const std::string asked = R"({"text": "a dog runs", "target": "ein Hund", "rollout": true)";
  const Json plain = post(running.port(), "/v1/attention", asked + "}").json();
  const Json without_least =
      post(running.port(), "/v1/attention", asked + R"(, "discard": 0.5})").json();
  EXPECT_NE(plain.at("rollout"), without_least.at("rollout"));
  for (const Json& json : {plain, without_least}) expect_shares(json);
}

TEST(AttentionRoute, what_cannot_be_shown_is_refused) {
  Running running;
  std::string words;
  for (int i = 0; i < 60; ++i) words += "dog ";
  const std::vector<std::tuple<std::string, int, const char*>> cases = {
      {R"({"text": "a dog", "model": "en-de"})", 400, "target"},
      {R"({"text": "", "target": "ein"})", 400, "empty"},
      {R"({"text": "a dog", "target": "ein", "layers": [7]})", 400, "7"},
      {R"({"text": "a dog", "target": "ein", "heads": [-1]})", 400, "-1"},
      {R"({"text": "a dog", "target": "ein", "heads": 1})", 400, "array"},
      {R"({"text": "a dog", "target": "ein", "heads": [1.5]})", 400, "array"},
      {R"({"text": "a dog", "target": "ein", "format": "svg"})", 400, "svg"},
      {R"({"text": "a dog", "target": "ein", "format": "html", "rollout": true})", 400, "rollout"},
      {R"({"text": "a dog", "target": "ein", "discard": 0.5})", 400, "rollout"},
      {R"({"text": "a dog", "target": "ein", "discard": 2, "rollout": true})", 400, "discard"},
      {R"({"text": "a dog", "model": "none"})", 404, "none"},
      {R"({"text": "a dog", "target": "ein", "model": "small"})", 404, "small"},
      {Json::object({{"text", words}}).dump(), 400, "tokens"},
      {R"({"target": "ein"})", 400, "text"},
  };
  for (const auto& [body, status, word] : cases) {
    const Answer answer = post(running.port(), "/v1/attention", body);
    EXPECT_EQ(answer.status, status) << body << answer.body;
    EXPECT_NE(answer.body.find(word), std::string::npos) << body << answer.body;
    EXPECT_EQ(answer.body.find(model_folder()), std::string::npos) << answer.body;
  }
  EXPECT_EQ(running.taken_at_rest(), 0);
}

}  // namespace
}  // namespace heddle::serve
