// What LibreTranslate's and DeepL's clients are promised of tags, sentences and languages.
#include "heddle/infer/words.h"
#include "heddle/text/strings/marked_text.h"
#include "heddle/text/strings/strings.h"
#include "tests/serve/client.h"
#include "tests/serve/running.h"

namespace heddle::serve {
namespace {

class Dialects : public ::testing::Test {
 protected:
  Running running_;

  // As it stands between tags.
  std::string translated(const std::string& sentence) {
    const ServedModel& model = running_.model(0);
    return html_escaped(
        translate_lines(model.loaded(), std::vector{sentence}, model.translating)[0].text, false);
  }
  Answer libre(const Json& more) {
    Json body = Json::object({{"source", "en"}, {"target", "de"}});
    for (const auto& [key, value] : more.as_object()) body[key] = value;
    return post(running_.port(), "/translate", body.dump());
  }
  Answer deepl(const Json& more) {
    Json body = Json::object({{"target_lang", "DE"}});
    for (const auto& [key, value] : more.as_object()) body[key] = value;
    return post(running_.port(), "/v2/translate", body.dump());
  }
  static std::string text_of(const Answer& answer) {
    const Json json = answer.json();
    if (json.contains("translatedText")) return json.get_string("translatedText");
    return json.at("translations").as_array().at(0).get_string("text");
  }
};

TEST_F(Dialects, sentences_between_tags_are_translated_by_themselves) {
  const std::string html = "<p>A dog runs. Two men!\n A bird sings.</p>\n<div>a cat</div>";
  const std::string wanted = "<p>" + translated("A dog runs.") + " " + translated("Two men!") +
                             "\n " + translated("A bird sings.") + "</p>\n<div>" +
                             translated("a cat") + "</div>";
  EXPECT_EQ(text_of(libre(Json::object({{"q", html}, {"format", "html"}}))), wanted);
  for (const char* tags : {"html", "xml"}) {
    const std::string text = tags == std::string("xml") ? "<r>" + html + "</r>" : html;
    const std::string whole = tags == std::string("xml") ? "<r>" + wanted + "</r>" : wanted;
    EXPECT_EQ(text_of(deepl(Json::object({{"text", text}, {"tag_handling", tags}}))), whole);
  }
  const Json unsplit = Json::object({{"text", "<p>A dog runs. Two men!</p>"},
                                     {"tag_handling", "html"},
                                     {"split_sentences", "0"}});
  EXPECT_EQ(text_of(deepl(unsplit)), "<p>" + translated("A dog runs. Two men!") + "</p>");
  // More than the model takes at once.
  std::string sentences;
  for (int i = 0; i < 40; ++i) sentences += "A dog runs in the park. ";
  EXPECT_EQ(libre(Json::object({{"q", "<p>" + sentences + "</p>"}, {"format", "html"}})).status,
            200);
}

TEST_F(Dialects, translations_of_html_and_kept_spans_split_where_they_are_asked_to) {
  Json body = Json::object({{"text", "<p>A dog runs. Two <b>men!</b></p>"}, {"format", "html"}});
  const auto sentences = [&] {
    const Json json = post(running_.port(), "/v1/translations", body.dump()).json();
    return json.at("translations").as_array().at(0).at("sentences").as_array();
  };
  EXPECT_EQ(sentences().size(), 1u);
  body["split_sentences"] = true;
  ASSERT_EQ(sentences().size(), 2u);
  EXPECT_EQ(sentences()[1].get_string("source"), "Two men!");
  EXPECT_EQ(sentences()[1].get_string("text"), translated("Two men!"));
  body = Json::object({{"text", "a {n} dog\na cat"}, {"keep", "{n}"}, {"split_sentences", true}});
  ASSERT_EQ(sentences().size(), 2u);
  EXPECT_EQ(sentences()[0].get_string("source"), "a dog");
}

TEST_F(Dialects, xml_stays_xml_and_what_is_none_is_refused) {
  const std::string head = "<?xml version=\"1.0\"?>\n";
  const Json json =
      Json::object({{"text", head + "<r><source>a dog</source><target/><title>a cat</title></r>"},
                    {"tag_handling", "xml"}});
  EXPECT_EQ(text_of(deepl(json)), head + "<r><source>" + translated("a dog") +
                                      "</source><target/><title>" + translated("a cat") +
                                      "</title></r>");
  const Answer broken = deepl(Json::object({{"text", "<a>a dog"}, {"tag_handling", "xml"}}));
  EXPECT_EQ(broken.status, 400);
  EXPECT_NE(broken.body.find("`text`: this is no well-formed XML"), std::string::npos)
      << broken.body;
  EXPECT_EQ(deepl(Json::object({{"text", "<a>a dog"}, {"tag_handling", "html"}})).status, 200);
}

// As the links of each alternative say, which are not those of the best.
TEST_F(Dialects, tags_of_an_alternative_go_with_its_own_words) {
  const LoadedModel& model = running_.model(0).loaded();
  TranslateOptions options = running_.model(0).translating;
  options.search.beam = options.search.n_best = 8;
  const auto links_of = [&](const std::string& plain, const Translation& translation) {
    const std::vector<int32_t> source = source_ids(model, plain, "", false, nullptr);
    const Alignment found =
        align_pairs(model, std::span(&source, 1), std::span(&translation.ids, 1), {})[0];
    MarkedText::Links links;
    for (const AlignmentLink& link : found) links.emplace_back(link.source, link.target);
    return links;
  };
  int differing = 0;
  for (const char* word : {"dog", "cat", "man", "bird", "park", "child"}) {
    const std::string plain = fmt::format("a {} runs in the park", word);
    const std::string html = fmt::format("<b>a {}</b> runs <i>in</i> the <u>park</u>", word);
    const MarkedText marked = MarkedText::of_html(html);
    const Translation best = translate_lines(model, std::vector{plain}, options)[0];
    const Json body = Json::object({{"q", html}, {"format", "html"}, {"alternatives", 7}});
    const std::vector<Json> found = libre(body).json().at("alternatives").as_array();
    ASSERT_EQ(found.size(), 7u);
    for (size_t i = 0; i < found.size(); ++i) {
      const auto with = [&](const Translation& of_links) {
        const std::vector<MarkedText::Links> links = {links_of(plain, of_links)};
        return marked.with(std::vector{best.others[i].text}, links);
      };
      EXPECT_EQ(found[i].as_string(), with(best.others[i]));
      differing += with(best.others[i]) != with(best) ? 1 : 0;
    }
  }
  EXPECT_GT(differing, 0);
}

TEST_F(Dialects, ends_of_lines_are_spaces_where_that_is_asked_for) {
  const std::string text = "a dog\nruns. Two men!\n";
  const auto split = [&](const char* at) {
    return text_of(deepl(Json::object({{"text", text}, {"split_sentences", at}})));
  };
  EXPECT_EQ(html_escaped(split("nonewlines"), false),
            translated("a dog runs.") + " " + translated("Two men!") + "\n");
  EXPECT_EQ(html_escaped(split("1"), false),
            translated("a dog") + "\n" + translated("runs.") + " " + translated("Two men!") + "\n");
}

TEST_F(Dialects, languages_have_names) {
  const Json libre = get(running_.port(), "/languages").json().as_array().at(0);
  EXPECT_EQ(libre.get_string("code"), "en");
  EXPECT_EQ(libre.get_string("name"), "English");
  const Json deepl = get(running_.port(), "/v2/languages?type=target").json().as_array().at(0);
  EXPECT_EQ(deepl.get_string("language"), "DE");
  EXPECT_EQ(deepl.get_string("name"), "German");
}

// --- which translator ----------------------------------------------------------------------------

class DetectedSource : public ::testing::Test {
 protected:
  static constexpr const char* kText = "the quick fox";
  const testing::TempDir folder_;
  std::string language_;  // that the classifier finds

  void SetUp() override {
    testing::write_small_model_of_seed((folder_ / "other").string(), 8);
    const Running running(service({}));
    const Json found = post(running.port(), "/detect", Json::object({{"q", kText}}).dump()).json();
    language_ = found.as_array().at(0).get_string("language");
  }
  // The translator of another language comes first.
  ServiceOptions service(const std::vector<std::string>& more) const {
    ServiceOptions options;
    options.models = {language_folder(), "pt-de=" + model_folder() + "/en-de"};
    options.models.insert(options.models.end(), more.begin(), more.end());
    return options;
  }
  static std::string translated(const ServedModel& model) {
    return translate_lines(model.loaded(), std::vector<std::string>{kText}, model.translating)[0]
        .text;
  }
};

TEST_F(DetectedSource, chooses_the_translator_that_has_it) {
  const Running running(service({language_ + "-de=" + (folder_ / "other").string()}));
  const std::string first = translated(running.model(1)), wanted = translated(running.model(2));
  ASSERT_NE(first, wanted);
  const auto libre = [&](const char* source, const char* text, const char* format) {
    return post(
               running.port(), "/translate",
               Json::object({{"q", text}, {"source", source}, {"target", "de"}, {"format", format}})
                   .dump())
        .json();
  };
  EXPECT_EQ(libre("pt", kText, "text").get_string("translatedText"), first);
  const Json found = libre("auto", kText, "text");
  EXPECT_EQ(found.get_string("translatedText"), wanted);
  EXPECT_EQ(found.at("detectedLanguage").get_string("language"), language_);
  // Tags are no words.
  const Json tagged = libre("auto", "<p>the quick fox</p>", "html");
  EXPECT_EQ(tagged.at("detectedLanguage"), found.at("detectedLanguage"));
  EXPECT_EQ(libre("auto", " ", "text").get_string("translatedText"), "");
  const auto deepl = [&](const char* source) {
    Json body = Json::object({{"text", kText}, {"target_lang", "DE"}});
    if (source != nullptr) body["source_lang"] = source;
    return post(running.port(), "/v2/translate", body.dump())
        .json()
        .at("translations")
        .as_array()
        .at(0);
  };
  EXPECT_EQ(deepl(nullptr).get_string("text"), wanted);
  EXPECT_EQ(lower_case(deepl(nullptr).get_string("detected_source_language")), language_);
  EXPECT_EQ(deepl("PT").get_string("text"), first);
  EXPECT_EQ(deepl("PT").get_string("detected_source_language"), "PT");
  EXPECT_EQ(running.taken_at_rest(), 0);
}

TEST_F(DetectedSource, of_no_translator_leaves_the_first_into_the_target) {
  const Running running(service({}));
  const Json body = Json::object({{"q", kText}, {"source", "auto"}, {"target", "de"}});
  const Json found = post(running.port(), "/translate", body.dump()).json();
  EXPECT_EQ(found.get_string("translatedText"), translated(running.model(1)));
  EXPECT_EQ(found.at("detectedLanguage").get_string("language"), language_);
  EXPECT_EQ(post(running.port(), "/translate",
                 Json::object({{"q", kText}, {"source", "auto"}, {"target", "sv"}}).dump())
                .status,
            400);
  // What the translation refuses once the language is known.
  const std::string letters(30'000, 'x');
  const Answer refused =
      post(running.port(), "/translate",
           Json::object({{"q", letters}, {"source", "auto"}, {"target", "de"}}).dump());
  EXPECT_EQ(refused.status, 400);
  EXPECT_NE(refused.body.find("text 1"), std::string::npos) << refused.body;
  EXPECT_EQ(running.taken_at_rest(), 0);
}

}  // namespace
}  // namespace heddle::serve
