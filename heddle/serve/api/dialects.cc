// Translation as LibreTranslate's and DeepL's clients ask for it.
#include <algorithm>
#include <map>
#include <set>

#include "heddle/base/utf8.h"
#include "heddle/serve/api/detection.h"
#include "heddle/serve/api/forms.h"
#include "heddle/serve/api/translation_work.h"
#include "heddle/text/strings/language_names.h"

namespace heddle::serve {

namespace {

// How the texts of a request are written, and what parts they have.
struct TextForm {
  const char* key;  // the member that they are in
  std::optional<MarkedFormat> tags = {};
  SplitAt at = SplitAt::lines;
};

// What both dialects ask for: texts, in sentences or with tags, out of a language ("": any) into
// one.
struct DialectRequest {
  TextForm form;
  std::vector<std::string> texts = {};
  std::string source = {}, target = {};
  std::vector<DetectedLanguages> detected = {};  // of each text; none where nothing was asked
  SharedModel model = {};
  SplitTexts split = {};
};
using SharedRequest = std::shared_ptr<DialectRequest>;

// What stands between the tags.
std::vector<std::string> texts_to_detect(const DialectRequest& asked) {
  if (!asked.form.tags) return asked.texts;
  const SplitTexts split = marked_texts(asked.texts, *asked.form.tags, {}, asked.form.key);
  const std::vector<std::string> parts = split.sentences();
  std::vector<std::string> all(asked.texts.size());
  for (size_t k = 0; k < parts.size(); ++k) {
    if (!parts[k].empty()) all[split.text_of(k)] += parts[k] + "\n";
  }
  return all;
}

// The likeliest of all texts together; "" where all are blank.
std::string language_of_all(const std::vector<DetectedLanguages>& detected) {
  std::map<std::string, double> sums;
  for (const DetectedLanguages& of_text : detected) {
    for (const DetectedLanguage& one : of_text) sums[one.language] += one.confidence;
  }
  const auto best = std::ranges::max_element(sums, {}, [](const auto& sum) { return sum.second; });
  return best == sums.end() ? "" : best->first;
}

// The likeliest of a text, or else that of the translator.
DetectedLanguage language_of(const DialectRequest& asked, size_t i) {
  if (i < asked.detected.size() && !asked.detected[i].empty()) return asked.detected[i][0];
  return {.language = asked.model->source_language};
}

// Chooses the translator, and gives it the texts. set_up: of the options, and what is called
using SetUp = std::function<void(TranslationWork&)>;
void translate(const SharedExchange& e, const SharedRequest& asked, const SetUp& set_up) {
  asked->model = translator_of(e->service, Json::object(), asked->source, asked->target);
  const ServedModel& model = *asked->model;
  const std::string& source = asked->source.empty() ? model.source_language : asked->source;
  const Splitting splitting{
      .at = asked->form.at, .language = source, .most = most_sequences(e->service)};
  asked->split = asked->form.tags
                     ? marked_texts(asked->texts, *asked->form.tags, splitting, asked->form.key)
                     : split_texts(asked->texts, splitting);
  if (asked->form.tags) check_attends(model.loaded().translator().facts());
  TranslationWork work{.model = asked->model,
                       .texts = asked->split.sentences(),
                       .options = text_options(model.loaded(), model.translating)};
  work.options.scores = false;
  set_request_languages(*asked->model, asked->source, asked->target, work.options);
  set_up(work);
  start_translation(e, std::move(work));
}

// The same out of the language that the texts are in, where the request names none, a model tells
// it, and a translator has it.
void detect_and_translate(const SharedExchange& e, const SharedRequest& asked,
                          const SetUp& set_up) {
  const SharedModel classifier = asked->source.empty() ? language_classifier(e->service) : nullptr;
  if (!classifier) return translate(e, asked, set_up);
  (void)translator_of(e->service, Json::object(), "", asked->target);  // refuses at once
  const auto on_found = [=](const std::vector<DetectedLanguages>& found) {
    asked->detected = found;
    e->go_on([=] {
      const std::string best = language_of_all(asked->detected);
      if (find_translator(e->service, best, asked->target)) asked->source = best;
      translate(e, asked, set_up);
    });
  };
  start_detection(e, classifier, texts_to_detect(*asked), on_found);
}

// The texts whole again, and what else their sentences might be.
class JoinedTexts {
 public:
  JoinedTexts(SharedRequest asked, const TranslationWork& work, const std::vector<Translation>& all)
      : asked_(std::move(asked)) {
    size_t most = 0;
    for (const Translation& one : all) most = std::max(most, one.others.size());
    for (size_t rank = 0; rank <= most; ++rank) {
      std::vector<Translation> of_rank;
      for (const Translation& one : all) {
        of_rank.push_back(rank == 0 || rank > one.others.size() ? one : one.others[rank - 1]);
      }
      auto& ranked = ranked_.emplace_back(Ranked{.translations = std::move(of_rank)});
      if (asked_->split.marked.empty()) continue;
      ranked.links = links_of(word_alignments({work, ranked.translations}));
    }
    for (const Translation& one : all) counts_.push_back(one.others.size());
  }
  std::string text(size_t i) const { return text(i, 0); }
  // The second best of each sentence together, the third, and so on.
  Json alternatives(size_t i) const {
    const SplitTexts& split = asked_->split;
    size_t most = 0;
    for (size_t k = split.first(i); k < split.first(i) + split.count(i); ++k) {
      most = std::max(most, counts_[k]);
    }
    Json list = Json::array();
    for (size_t rank = 1; rank <= most; ++rank) list.push_back(text(i, rank));
    return list;
  }

 private:
  // Of each sentence that of a rank, or the best where it has none.
  struct Ranked {
    std::vector<Translation> translations;
    std::vector<MarkedText::Links> links = {};
  };

  std::string text(size_t i, size_t rank) const {
    const Ranked& ranked = ranked_[rank];
    return asked_->split.joined(
        i, [&](size_t k) { return ranked.translations[k].text; }, ranked.links);
  }

  SharedRequest asked_;
  std::vector<Ranked> ranked_ = {};
  std::vector<size_t> counts_ = {};  // alternatives of each sentence
};

}  // namespace

// --- LibreTranslate ------------------------------------------------------------------------------

void libre_translate(const SharedExchange& e) {
  const Json body = body_of(*e);
  const auto asked = std::make_shared<DialectRequest>(DialectRequest{.form = {.key = "q"}});
  const bool is_html = choice_of(body, "format", {"text", "html"}) == "html";
  if (is_html) asked->form.tags = MarkedFormat::html;
  asked->source = text_of(body, "source");
  asked->target = text_of(body, "target");
  if (asked->target.empty()) refuse("`target` is missing");
  const bool is_auto = asked->source == "auto";
  if (is_auto) asked->source.clear();
  const ServiceOptions& limits = e->service.options();
  const int64_t alternatives =
      int_of(body, "alternatives", 0, 0, std::min(limits.most_results, limits.most_beams) - 1);
  asked->texts = texts_of(body, "q", limits.most_texts);
  const bool is_list = body.at("q").is_array();
  const auto listed = [is_list, n = asked->texts.size()](const std::function<Json(size_t)>& of) {
    if (!is_list) return of(0);
    Json list = Json::array();
    for (size_t i = 0; i < n; ++i) list.push_back(of(i));
    return list;
  };
  detect_and_translate(e, asked, [=](TranslationWork& work) {
    work.options.search.n_best = alternatives + 1;
    work.options.search.beam = std::max(work.options.search.beam.value_or(1), alternatives + 1);
    work.options.scores = alternatives > 0;
    work.on_done = [=](const TranslationWork& done, const std::vector<Translation>& all) {
      const JoinedTexts joined(asked, done, all);
      Json json =
          Json::object({{"translatedText", listed([&](size_t i) { return joined.text(i); })}});
      if (is_auto) {
        json["detectedLanguage"] = listed([&](size_t i) {
          const DetectedLanguage one = language_of(*asked, i);
          return Json::object({{"confidence", 100 * one.confidence}, {"language", one.language}});
        });
      }
      if (alternatives > 0) {
        json["alternatives"] = listed([&](size_t i) { return joined.alternatives(i); });
      }
      e->send(json);
    };
  });
}

namespace {

// Languages that can be translated from, each with those into.
std::map<std::string, std::set<std::string>> languages_of(const Service& service) {
  std::map<std::string, std::set<std::string>> pairs;
  for (const auto& model : service.models()) {
    if (model->use != ModelUse::translate) continue;
    if (!model->source_language.empty()) {
      pairs[model->source_language].insert(model->target_language);
      continue;
    }
    for (const std::string& from : model->source_languages) {
      pairs[from].insert(model->target_languages.begin(), model->target_languages.end());
    }
  }
  return pairs;
}

std::string upper(std::string code) {
  std::ranges::transform(code, code.begin(), [](char c) {
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c;
  });
  return code;
}
std::string lower(std::string code) {
  std::ranges::transform(code, code.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  });
  return code;
}

// "EN-GB" is "en" here, as long as no model knows better.
std::string deepl_language(const std::string& code) {
  const std::string plain = lower(code);
  return plain.substr(0, plain.find('-'));
}

}  // namespace

void libre_languages(const SharedExchange& e) {
  Json list = Json::array();
  for (const auto& [from, into] : languages_of(e->service)) {
    Json targets = Json::array();
    for (const std::string& to : into) targets.push_back(to);
    list.push_back(Json::object(
        {{"code", from}, {"name", language_name(from)}, {"targets", std::move(targets)}}));
  }
  e->send(list);
}

// --- DeepL ---------------------------------------------------------------------------------------

namespace {

TextForm deepl_form(const Json& body) {
  TextForm form{.key = "text"};
  const std::string tags = text_of(body, "tag_handling");
  if (!tags.empty() && tags != "html" && tags != "xml") {
    refuse("`tag_handling` must be html or xml");
  }
  if (!tags.empty()) form.tags = tags == "html" ? MarkedFormat::html : MarkedFormat::xml;
  const std::string split = choice_of(body, "split_sentences", {"1", "0", "nonewlines"});
  if (split == "0") form.at = SplitAt::nothing;
  if (split == "nonewlines") form.at = SplitAt::sentences;
  return form;
}

}  // namespace

void deepl_translate(const SharedExchange& e) {
  const Json body = body_of(*e);
  const auto asked = std::make_shared<DialectRequest>(DialectRequest{.form = deepl_form(body)});
  asked->source = deepl_language(text_of(body, "source_lang"));
  asked->target = deepl_language(text_of(body, "target_lang"));
  if (asked->target.empty()) refuse("`target_lang` is missing");
  // What would change the translation is refused; what is a hint to DeepL's own models is not.
  refuse_members(body, {"glossary_id", "ignore_tags", "non_splitting_tags", "splitting_tags",
                        "style_id", "custom_instructions"});
  const std::string formality = text_of(body, "formality");
  if (formality == "more" || formality == "less") {
    refuse("`formality` is not there yet; prefer_{} leaves it to the model", formality);
  }
  asked->texts = texts_of(body, "text", e->service.options().most_texts);
  detect_and_translate(e, asked, [=](TranslationWork& work) {
    work.on_done = [=](const TranslationWork& done, const std::vector<Translation>& all) {
      const JoinedTexts joined(asked, done, all);
      Json list = Json::array();
      for (size_t i = 0; i < asked->texts.size(); ++i) {
        const std::string language = language_of(*asked, i).language;
        list.push_back(Json::object(
            {{"detected_source_language", upper(language.empty() ? asked->source : language)},
             {"text", joined.text(i)},
             {"billed_characters", count_characters(asked->texts[i])},
             {"model_type_used", "quality_optimized"}}));
      }
      e->send(Json::object({{"translations", std::move(list)}}));
    };
  });
}

void deepl_languages(const SharedExchange& e) {
  // DeepL's own client puts the form into the body, though it is a GET.
  const auto is_target = [](const Json& form) { return text_of(form, "type") == "target"; };
  const bool wants_targets =
      is_target(query_of(*e)) || (!e->request.body.empty() && is_target(body_of(*e)));
  std::set<std::string> codes;
  for (const auto& [from, into] : languages_of(e->service)) {
    if (!wants_targets) codes.insert(from);
    if (wants_targets) codes.insert(into.begin(), into.end());
  }
  Json list = Json::array();
  for (const std::string& code : codes) {
    Json one = Json::object({{"language", upper(code)}, {"name", language_name(code)}});
    if (wants_targets) one["supports_formality"] = false;
    list.push_back(std::move(one));
  }
  e->send(list);
}

// Nothing is billed; the client asks how much is left.
void deepl_usage(const SharedExchange& e) {
  e->send(Json::object({{"character_count", 0}, {"character_limit", 1'000'000'000'000}}));
}

}  // namespace heddle::serve
