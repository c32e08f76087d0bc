// What /v1/translations says beside texts: log probabilities, weights, sentences, what is cut, and
// what all hypotheses agree on while they grow; and languages that are told.
#include "heddle/infer/answers.h"
#include "heddle/infer/words.h"
#include "tests/serve/client.h"
#include "tests/serve/running.h"

namespace heddle::serve {
namespace {

const Json& first_of(const Json& answer) { return answer.at("translations").as_array().at(0); }

std::string translated(const ServedModel& model, const std::string& text, int64_t beam = 1) {
  TranslateOptions options = model.translating;
  options.search.beam = beam;
  return translate_lines(model.loaded(), std::vector{text}, options)[0].text;
}

std::vector<Json> events_of(int port, const Json& body) {
  Client client(port);
  client.send(request_text("POST", "/v1/translations", body.dump()));
  const std::string bytes = client.receive_until("[DONE]");
  std::vector<Json> events;
  for (size_t at = 0; (at = bytes.find("data: {", at)) != std::string::npos; ++at) {
    events.push_back(Json::parse(bytes.substr(at + 6, bytes.find("\n\n", at) - at - 6)));
  }
  return events;
}

TEST(Translations, log_probabilities_of_tokens_come_to_the_score) {
  Running running;
  const Json json =
      post(running.port(), "/v1/translations",
           R"({"text": "a dog runs", "beam": 3, "scores": true, "length_penalty": 0})")
          .json();
  const Json& one = first_of(json);
  ASSERT_EQ(one.at("log_probs").size(), one.at("tokens").size());
  ASSERT_GT(one.at("tokens").size(), 0u);
  double sum = 0;
  for (const Json& log_p : one.at("log_probs").as_array()) {
    EXPECT_LE(log_p.as_double(), 0);
    sum += log_p.as_double();
  }
  // The end, which is no token of the text, takes the rest.
  EXPECT_LE(one.get_double("score"), sum + 1e-5);
}

TEST(Translations, matrices_are_the_weights_of_the_heads_that_were_asked_for) {
  Running running;
  const Json body = Json::parse(
      R"({"text": ["a dog runs", ""], "alignment": "matrix", "layers": [0], "heads": [2, 3]})");
  const Json json = post(running.port(), "/v1/translations", body.dump()).json();
  const Json& matrix = first_of(json).at("alignment");
  const LoadedModel& model = running.model(0).loaded();
  const std::vector<std::vector<int32_t>> source = {
      source_ids(model, "a dog runs", "text", false, nullptr)};
  const std::vector<std::vector<int32_t>> target = {
      translate_ids(model.translator(), source,
                    text_options(model, running.model(0).translating))[0]
          .ids};
  const Tensor wanted =
      cross_attention_maps(model.translator(), source, target, {.layers = {0}, .heads = {2, 3}})[0];
  const auto& rows = matrix.at("weights").as_array();
  ASSERT_EQ(std::ssize(rows), wanted.size(0));
  EXPECT_EQ(std::ssize(matrix.at("source_tokens").as_array()), wanted.size(1));
  EXPECT_EQ(std::ssize(matrix.at("target_tokens").as_array()), wanted.size(0));
  for (int64_t i = 0; i < wanted.size(0); ++i) {
    for (int64_t j = 0; j < wanted.size(1); ++j) {
      EXPECT_NEAR(rows[i].as_array()[j].as_double(), wanted.data<float>()[i * wanted.size(1) + j],
                  1e-6);  // six decimals, as `heddle attention --json` writes them
    }
  }
  EXPECT_TRUE(json.at("translations").as_array()[1].at("alignment").is_null());
}

TEST(Translations, sentences_are_translated_by_themselves_and_keep_their_white_space) {
  Running running;
  const std::string text = "  A dog runs.  Two men!\n\nthe bird sings. ";
  const auto t = [&](const char* sentence) { return translated(running.model(0), sentence); };
  const std::string wanted =
      "  " + t("A dog runs.") + "  " + t("Two men!") + "\n\n" + t("the bird sings.") + " ";
  const Json body =
      Json::object({{"text", text}, {"split_sentences", true}, {"alignment", "hard"}});
  const Json json = post(running.port(), "/v1/translations", body.dump()).json();
  EXPECT_EQ(first_of(json).get_string("text"), wanted);
  const auto& sentences = first_of(json).at("sentences").as_array();
  ASSERT_EQ(sentences.size(), 3u);
  EXPECT_EQ(sentences[1].get_string("source"), "Two men!");
  EXPECT_EQ(sentences[1].get_string("text"), t("Two men!"));
  EXPECT_TRUE(sentences[2].at("alignment").is_string());
  // The others' clients expect it.
  const Json libre =
      post(running.port(), "/translate",
           Json::object({{"q", text}, {"source", "en"}, {"target", "de"}, {"alternatives", 1}})
               .dump())
          .json();
  EXPECT_EQ(libre.at("alternatives").size(), 1u);
  const Json deepl = post(running.port(), "/v2/translate",
                          Json::object({{"text", text}, {"target_lang", "DE"}}).dump())
                         .json();
  EXPECT_EQ(first_of(deepl).get_string("text"), wanted);
  const Json whole =
      post(running.port(), "/v2/translate",
           Json::object({{"text", text}, {"target_lang", "DE"}, {"split_sentences", "0"}}).dump())
          .json();
  EXPECT_EQ(first_of(whole).get_string("text"), translated(running.model(0), text));
}

TEST(Translations, what_was_cut_is_said) {
  Running running;
  std::string text;
  for (int i = 0; i < 100; ++i) text += "dog ";
  Json body = Json::object({{"text", std::vector<std::string>{"a dog", text}}, {"truncate", true}});
  const Json json = post(running.port(), "/v1/translations", body.dump()).json();
  const auto& all = json.at("translations").as_array();
  EXPECT_FALSE(all.at(0).get_bool("truncated"));
  EXPECT_TRUE(all.at(1).get_bool("truncated"));
  body = Json::parse(R"({"text": "a dog runs", "max_tokens": 2})");
  EXPECT_EQ(first_of(post(running.port(), "/v1/translations", body.dump()).json())
                .get_string("finish_reason"),
            "length");
}

// A model of random weights writes on until it must end. Here the end is a little likelier than
// some token that it writes: the first for which a translation of the text is shorter. returns: how
// long
bool write_model_that_ends(const std::string& folder, const std::string& text, int64_t beam) {
  const Tokenizer& tokenizer = testing::shared_tokenizer();
  const int64_t vocab = tokenizer.vocab_size();
  std::vector<int32_t> source = tokenizer.encode(text);
  source.push_back(tokenizer.eos_id());
  TranslateOptions options{.longest_without_end = 30};
  options.search.beam = beam;
  for (int64_t token = 4; token < vocab; ++token) {
    testing::SmallModel m(testing::small_config(vocab));
    for (auto& p : m.parameters.all()) {
      const Tensor& rows = p->value();
      if (rows.rank() != 2 || rows.size(0) != vocab) continue;
      const int64_t width = rows.size(1);
      float* x = p->value().data<float>();
      for (int64_t i = 0; i < width; ++i) {
        x[tokenizer.eos_id() * width + i] = 4 * x[token * width + i];
      }
      p->changed(true);
    }
    const auto found = translate_ids(m.model, std::span(&source, 1), options);
    const int64_t length = std::ssize(found[0].ids);
    if (length < 2 || length >= 30) continue;
    save_model(folder, *m.made, m.parameters, {.tokenizer = &tokenizer});
    return true;
  }
  return false;
}

TEST(Translations, a_text_that_ends_by_itself_at_the_last_place_was_not_cut) {
  const testing::TempDir folder;
  const std::string path = (folder / "en-de").string(), text = "two men and a dog";
  for (const int64_t beam : {1, 3}) {
    ASSERT_TRUE(write_model_that_ends(path, text, beam));
    ServiceOptions options;
    options.models = {path};
    Running running(options);
    Json body = Json::object({{"text", text}, {"beam", beam}, {"max_tokens", 30}});
    const Json free = post(running.port(), "/v1/translations", body.dump()).json();
    const int64_t length = free.at("usage").get_int("target_tokens");
    ASSERT_LT(length, 30);
    for (const int64_t most : {length + 1, length, length - 1}) {
      if (most < 1) continue;
      body["max_tokens"] = most, body["stream"] = false;
      const std::string wanted = most < length ? "length" : "stop";
      const Json whole = post(running.port(), "/v1/translations", body.dump()).json();
      EXPECT_EQ(first_of(whole).get_string("finish_reason"), wanted) << beam << " " << most;
      EXPECT_EQ(first_of(whole).get_string("text") == first_of(free).get_string("text"),
                most >= length);
      body["stream"] = true;
      EXPECT_EQ(events_of(running.port(), body).back().get_string("finish_reason"), wanted);
    }
  }
}

TEST(Translations, what_all_hypotheses_agree_on_is_never_taken_back) {
  Running running;
  for (const int64_t beam : {1, 4}) {
    // The model writes no spaces of its own: what it is made to begin with has some.
    Json body = Json::parse(R"({"prefix": "a man and a dog",
        "text": ["a dog runs", "two men and a cat", "the bird sings.", ""]})");
    body["beam"] = beam;
    const Json whole = post(running.port(), "/v1/translations", body.dump()).json();
    body["stream"] = true, body["partial"] = true;
    std::vector<std::string> prefixes(4);
    int finals = 0, partial = 0;
    for (const Json& event : events_of(running.port(), body)) {
      const auto index = static_cast<size_t>(event.get_int("index"));
      const bool is_final = event.get_bool("final");
      const std::string& text = event.get_string(is_final ? "text" : "partial");
      EXPECT_TRUE(text.starts_with(prefixes[index])) << prefixes[index] << "|" << text;
      if (is_final) {
        EXPECT_EQ(text, whole.at("translations").as_array()[index].get_string("text"));
      } else {
        EXPECT_GT(text.size(), prefixes[index].size());
        prefixes[index] = text;
      }
      ++(is_final ? finals : partial);
    }
    EXPECT_EQ(finals, 4);
    EXPECT_GT(partial, 0);
  }
}

TEST(Translations, stream_of_parts_says_what_comes_without_it_and_each_text_behind_its_last_part) {
  Running running;
  for (
      const char* more :
      {R"({"format": "html", "split_sentences": true, "alignment": "hard", "n_best": 2, "beam": 2})",
       R"({"format": "html"})", R"({"keep": ["dog"], "scores": true})",
       R"({"split_sentences": true, "alignment": "hard"})"}) {
    Json body = Json::parse(more);
    body["text"] = std::vector<std::string>{
        "<p>a <b>dog</b> runs. two <i>men</i>!</p><p>the bird</p>", "<br><hr>", "", "a dog"};
    const Json whole = post(running.port(), "/v1/translations", body.dump()).json();
    body["stream"] = true;
    std::vector<size_t> parts(4, 0), texts(4, 0);
    for (const Json& event : events_of(running.port(), body)) {
      ASSERT_TRUE(event.get_bool("final")) << event.dump();
      const auto index = static_cast<size_t>(event.get_int("index"));
      const Json& text = whole.at("translations").as_array().at(index);
      const auto& sentences = text.at("sentences").as_array();
      const Json* const sentence = event.find("sentence");
      if (sentence == nullptr) {
        EXPECT_EQ(event.get_string("text"), text.get_string("text")) << more;
        EXPECT_EQ(parts[index], sentences.size());
        ++texts[index];
        continue;
      }
      ++parts[index];
      EXPECT_EQ(texts[index], 0u);
      const Json& wanted = sentences.at(static_cast<size_t>(sentence->as_int()));
      for (const auto& [key, value] : wanted.as_object()) {
        if (key == "source") continue;
        EXPECT_EQ(event.at(key).dump(), value.dump()) << more << key;
      }
      EXPECT_EQ(event.find("alignment") != nullptr, body.contains("alignment"));
    }
    EXPECT_EQ(texts, (std::vector<size_t>{1, 1, 1, 1})) << more;
  }
}

TEST(Translations, options_that_do_not_go_together_are_refused) {
  Running running;
  for (const char* body :
       {R"({"text": "a", "partial": true})", R"({"text": "a", "alignment": "soft"})",
        R"({"text": "a", "alignment": "matrix", "layers": [9]})",
        R"({"text": "a", "alignment": "matrix", "heads": ["x"]})",
        R"({"text": "a", "alignment": "matrix", "stream": true})",
        R"({"text": "a", "split_sentences": true, "prefix": "b"})"}) {
    EXPECT_EQ(post(running.port(), "/v1/translations", body).status, 400) << body;
  }
  EXPECT_EQ(running.taken_at_rest(), 0);
}

TEST(Detect, languages_are_those_of_the_classifier_in_percent) {
  ServiceOptions options = default_service();
  options.models.push_back(language_folder());
  Running running(options);
  const ServedModel& classifier = running.model(2);
  const TextToClassify text{"the quick fox"};
  int64_t cut = 0;
  const auto wanted = heddle::classify(classifier.loaded(), {&text, 1}, {}, cut)[0];
  const Json list = post(running.port(), "/detect", R"({"q": "the quick fox"})").json();
  ASSERT_EQ(list.size(), wanted.size());
  double last = 100;
  for (const Json& one : list.as_array()) {
    const auto& labels = classifier.loaded().model->labels();
    const auto at = std::ranges::find(labels, one.get_string("language")) - labels.begin();
    EXPECT_EQ(one.get_double("confidence"), 100 * wanted[static_cast<size_t>(at)]);
    EXPECT_LE(one.get_double("confidence"), last);
    last = one.get_double("confidence");
  }
  EXPECT_EQ(post(running.port(), "/detect",
                 "q=the+fox&q=", "Content-Type: application/x-www-form-urlencoded\r\n")
                .json()
                .as_array()
                .at(1)
                .size(),
            0u);
  const Json found = post(running.port(), "/translate",
                          R"({"q": "the quick fox", "source": "auto", "target": "de"})")
                         .json();
  EXPECT_EQ(found.at("detectedLanguage"), list.as_array()[0]);
  Running without;
  EXPECT_EQ(post(without.port(), "/detect", R"({"q": "a"})").status, 404);
}

}  // namespace
}  // namespace heddle::serve
