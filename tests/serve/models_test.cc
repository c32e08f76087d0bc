// Models as clients know them: by their names, not their folders; the first that can do what is
// asked; the languages that they have; and nothing of them without a key.
#include <sys/stat.h>

#include "heddle/base/files/files.h"
#include "heddle/infer/answers.h"
#include "heddle/text/strings/strings.h"
#include "tests/cli/page_data.h"
#include "tests/cli/tagger_model.h"
#include "tests/serve/client.h"
#include "tests/serve/running.h"

namespace heddle::serve {
namespace {

using testing::TempDir;

std::string message_of(const Answer& answer) {
  return answer.json().at("error").get_string("message");
}

// Whether a body is refused with a message that has this word and no folder.
void expect_refused(const Running& running, const std::string& path, const std::string& body,
                    int status, const std::string& word) {
  const Answer answer = post(running.port(), path, body);
  ASSERT_EQ(answer.status, status) << path << body << answer.body;
  const std::string message = message_of(answer);
  EXPECT_NE(message.find(word), std::string::npos) << body << message;
  EXPECT_EQ(message.find("/tmp"), std::string::npos) << message;
  EXPECT_EQ(message.find(testing::kFixtures), std::string::npos) << message;
}

std::string multilingual_folder(const std::string& family) {
  return std::string(testing::kFixtures) + "/seq2seq/" + family;
}

TEST(Models, each_is_found_by_its_name_as_the_list_has_it) {
  ServiceOptions options = default_service();
  options.models.push_back("ours/gpt=" + model_folder() + "/gpt");
  const Running running(options);
  const Json list = get(running.port(), "/v1/models").json();
  ASSERT_EQ(list.at("data").size(), 3u);
  for (const Json& model : list.at("data").as_array()) {
    const Answer answer = get(running.port(), "/v1/models/" + model.get_string("id"));
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(answer.json(), model);
  }
  EXPECT_EQ(get(running.port(), "/v1/models/ours%2Fgpt").json().get_string("id"), "ours/gpt");
  const Answer none = get(running.port(), "/v1/models/none");
  EXPECT_EQ(none.status, 404);
  EXPECT_EQ(none.json().at("error").get_string("code"), "model_not_found");
  EXPECT_EQ(get(running.port(), "/v1/models/").status, 404);
  const Answer wrong = post(running.port(), "/v1/models/small", "{}");
  EXPECT_EQ(wrong.status, 405);
  EXPECT_NE(wrong.head.find("allow: GET"), std::string::npos) << wrong.head;
  const std::string counted = get(running.port(), "/metrics").body;
  EXPECT_EQ(counted.find("ours%2F"), std::string::npos) << counted;
}

TEST(Models, the_page_says_nothing_of_them_without_a_key) {
  const TempDir folder;
  const std::string path = (folder / "keys").string();
  testing::write_file(path, "first-key\n");
  ASSERT_EQ(::chmod(path.c_str(), 0600), 0);
  ServiceOptions options;
  options.models = {"hidden-one=" + model_folder() + "/gpt"};
  const Running open(options);
  EXPECT_NE(get(open.port(), "/").body.find("hidden-one"), std::string::npos);
  options.keys_path = path;
  const Running closed(options);
  for (const char* page : {"/", "/openapi.json"}) {
    const Answer answer = get(closed.port(), page);
    EXPECT_EQ(answer.status, 200) << page;
    EXPECT_EQ(answer.body.find("hidden-one"), std::string::npos) << page;
  }
  EXPECT_EQ(get(closed.port(), "/v1/models/hidden-one").status, 401);
  EXPECT_EQ(
      get(closed.port(), "/v1/models/hidden-one", "Authorization: Bearer first-key\r\n").status,
      200);
}

TEST(Models, say_what_they_can_and_how_long_a_text_may_be) {
  const TempDir folder;
  const std::string fixed = (folder / "fixed").string();
  testing::write_fixed_translator(fixed);
  ServiceOptions options = default_service();
  options.models.push_back(std::string(testing::kFixtures) + "/seq2seq/t5");
  options.models.push_back(fixed);
  const Running running(options);
  const auto said = [&](const char* name) {
    return get(running.port(), std::string("/v1/models/") + name).json();
  };
  EXPECT_TRUE(said("en-de").at("alignment").as_bool());
  EXPECT_TRUE(said("en-de").contains("max_length"));
  EXPECT_FALSE(said("t5").contains("max_length"));  // it has no limit
  EXPECT_FALSE(said("fixed").at("alignment").as_bool());
  EXPECT_FALSE(said("small").contains("alignment"));
  expect_refused(running, "/v1/translations",
                 R"({"text": "a dog", "model": "fixed", "alignment": "hard"})", 400,
                 "no attention over its source");
}

TEST(Models, the_first_that_can_do_what_is_asked_is_taken) {
  const TempDir folder;
  testing::write_tagger(folder / "tagger");
  ServiceOptions options;
  options.models = {folder / "tagger", testing::text_model("encoder"),
                    testing::text_model("classify")};
  const Running running(options);
  const auto asked = [&](const char* path, const char* body) {
    const Answer answer = post(running.port(), path, body);
    EXPECT_EQ(answer.status, 200) << answer.body;
    return answer.json().get_string("model");
  };
  EXPECT_EQ(asked("/v1/classify", R"({"text": "the fox"})"), "classify");
  EXPECT_EQ(asked("/v1/embeddings", R"({"input": "the fox"})"), "encoder");
  EXPECT_EQ(asked("/v1/embeddings", R"({"input": "the fox", "model": "classify"})"), "classify");
  const Json tagger = get(running.port(), "/v1/models/tagger").json();
  EXPECT_EQ(tagger.get_string("use"), "embedding");  // classes of words are not asked for here
  EXPECT_FALSE(tagger.contains("num_labels"));
  expect_refused(running, "/v1/classify", R"({"text": "the fox", "model": "tagger"})", 404,
                 "'tagger' is for embedding, not classification");
  options.models.pop_back();
  const Running without(options);
  expect_refused(without, "/v1/classify", R"({"text": "the fox"})", 404, "for classification");
}

TEST(Models, pairs_have_the_classes_that_the_library_gives_them) {
  ServiceOptions options;
  options.models = {testing::text_model("classify")};
  const Running running(options);
  const std::vector<TextToClassify> pairs = {{"the fox", "a dog"}, {"the dog", "runs"}};
  int64_t cut = 0;
  const auto wanted = heddle::classify(running.model(0).loaded(), pairs, {}, cut);
  const Json found = post(running.port(), "/v1/classify",
                          R"({"text": ["the fox", "the dog"], "text_pair": ["a dog", "runs"]})")
                         .json();
  ASSERT_EQ(found.at("classes").size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    const Json& of_pair = found.at("classes").as_array()[i].at("probabilities");
    const auto& labels = running.model(0).loaded().model->labels();
    for (size_t k = 0; k < labels.size(); ++k) {
      EXPECT_NEAR(of_pair.get_double(labels[k]), wanted[i][k], 1e-6);
    }
  }
  expect_refused(running, "/v1/classify", R"({"text": ["a", "b"], "text_pair": "c"})", 400,
                 "`text_pair` has 1");
}

TEST(Models, a_chat_template_that_is_broken_is_named_without_its_folder) {
  const TempDir folder;
  const std::string model = folder / "broken";
  std::filesystem::copy(model_folder() + "/gpt", model);
  testing::write_file(model + "/chat_template.jinja", "{% nothing %}");
  ServiceOptions options;
  options.models = {model};
  const Running running(options);
  const std::string body = R"({"messages": [{"role": "user", "content": "a"}]})";
  const Answer answer = post(running.port(), "/v1/chat/completions", body);
  EXPECT_EQ(answer.status, 400);
  EXPECT_TRUE(message_of(answer).starts_with("broken/chat_template.jinja")) << answer.body;
}

// --- languages -----------------------------------------------------------------------------------

TEST(Languages, a_model_of_many_lists_them_and_is_told_which) {
  ServiceOptions options;
  options.models = {multilingual_folder("mbart")};
  const Running running(options);
  const Json model = get(running.port(), "/v1/models/mbart").json();
  for (const char* key : {"source_languages", "target_languages"}) {
    const auto& languages = model.at(key).as_array();
    EXPECT_EQ(languages.size(), 25u);
    EXPECT_NE(std::ranges::find(languages, Json("de_DE")), languages.end());
  }
  const char* const path = "/v1/translations";
  const std::string line = Json::load(multilingual_folder("mbart") + "/cases.json")
                               .as_array()[0]
                               .at("results")
                               .as_array()[0]
                               .get_string("line");
  const auto body = [&](const std::string& source, const std::string& target) {
    Json json = Json::object({{"text", line}, {"model", "mbart"}, {"max_tokens", 8}});
    if (!source.empty()) json["source_lang"] = source;
    if (!target.empty()) json["target_lang"] = target;
    return json;
  };
  expect_refused(running, path, body("en_XX", "").dump(), 400, "say which with `target_lang`: ar");
  expect_refused(running, path, body("en_XX", "de_DEE").dump(), 400, "`target_lang` is 'de_DEE'");
  expect_refused(running, path, body("en", "de_DE").dump(), 400, "`source_lang` is 'en'");
  const Answer answer = post(running.port(), path, body("en_XX", "de_DE").dump());
  EXPECT_EQ(answer.status, 200) << answer.body;
  Json pair = body("en_XX", "");
  pair.erase("max_tokens");
  pair["target"] = answer.json().at("translations").as_array()[0].get_string("text");
  expect_refused(running, "/v1/attention", pair.dump(), 400, "`target_lang`");
  pair["target_lang"] = "de_DE";
  const Answer maps = post(running.port(), "/v1/attention", pair.dump());
  EXPECT_EQ(maps.status, 200) << maps.body;
}

TEST(Languages, those_that_a_named_model_lacks_are_refused) {
  ServiceOptions options = default_service();
  options.models.push_back("plain=" + model_folder() + "/en-de");
  const Running running(options);
  const auto refuses = [&](const char* members, const char* word) {
    const std::string body = R"({"text": "a dog", )" + std::string(members) + "}";
    expect_refused(running, "/v1/translations", body, 400, word);
    expect_refused(running, "/v1/attention", R"({"target": "ein Hund", )" + body.substr(1), 400,
                   word);
  };
  refuses(R"("model": "en-de", "source_lang": "fr", "target_lang": "de")", "`source_lang` is 'fr'");
  refuses(R"("model": "en-de", "source_lang": "en", "target_lang": "xx")", "`target_lang` is 'xx'");
  refuses(R"("model": "plain", "target_lang": "de")", "'plain' marks no languages");
  const std::string right =
      R"({"text": "a dog", "model": "en-de", "source_lang": "en", "target_lang": "de"})";
  EXPECT_EQ(post(running.port(), "/v1/translations", right).status, 200);
}

// --- members of a body ---------------------------------------------------------------------------

TEST(Members, unknown_ones_are_refused_by_name_on_our_own_paths) {
  ServiceOptions options = default_service();
  options.models.push_back(testing::text_model("classify"));
  for (const std::string& model : image_service().models) options.models.push_back(model);
  const Running running(options);
  const std::string image = base64_text(read_file(testing::fixture_image("rgb.png")));
  const std::vector<std::tuple<const char*, Json, const char*>> cases = {
      {"/v1/translations", Json::object({{"text", "a dog"}, {"beams", 9}}), "did you mean 'beam'"},
      {"/v1/translations", Json::object({{"text", "a dog"}, {"heads", Json(Json::Array{Json(0)})}}),
       "`heads` is of an `alignment`"},
      {"/v1/classify", Json::object({{"text", "the fox"}, {"bogus", 1}}), "`bogus`"},
      {"/v1/attention", Json::object({{"text", "the dog"}, {"head", 1}}), "`head`"},
      {"/v1/attention", Json::object({{"text", "the dog"}, {"source_lang", "en"}}),
       "`source_lang` is for translators"},
      {"/v1/images/classify", Json::object({{"image", image}, {"threshold", 0.5}}), "`threshold`"},
      {"/v1/images/detect", Json::object({{"image", image}, {"limit", 1}}), "`limit`"}};
  for (const auto& [path, body, word] : cases) {
    expect_refused(running, path, body.dump(), 400, word);
  }
  EXPECT_EQ(post(running.port(), "/v1/images/detect?limit=1",
                 read_file(testing::fixture_image("rgb.png")), "Content-Type: image/png\r\n")
                .status,
            400);
}

TEST(Members, of_others_clients_are_refused_only_if_they_would_change_the_text) {
  const Running running;
  const auto asked = [&](const char* more) {
    return post(running.port(), "/v1/completions",
                R"({"prompt": "the dog", "max_tokens": 2, )" + std::string(more) + "}");
  };
  EXPECT_EQ(asked(R"("user": "me", "store": true, "metadata": {"a": "b"})").status, 200);
  EXPECT_EQ(asked(R"("min_tokens": 0, "presence_penalty": 0)").status, 200);
  for (const char* key : {"min_tokens", "ignore_eos", "use_beam_search", "presence_penalty"}) {
    const Answer answer = asked((R"(")" + std::string(key) + R"(": 1)").c_str());
    EXPECT_EQ(answer.status, 400) << key;
    EXPECT_NE(message_of(answer).find(key), std::string::npos) << answer.body;
  }
}

TEST(Members, null_is_as_good_as_absent) {
  const Running running;
  const auto text = [&](const char* body) {
    const Answer answer = post(running.port(), "/v1/translations", body);
    EXPECT_EQ(answer.status, 200) << answer.body;
    return answer.json().at("translations").dump();
  };
  EXPECT_EQ(text(R"({"text": "a dog runs", "max_tokens": null, "length_penalty": null,
                     "prefix": null, "keep": null, "model": null, "source_lang": null})"),
            text(R"({"text": "a dog runs"})"));
}

}  // namespace
}  // namespace heddle::serve
