// Translation as LibreTranslate's and DeepL's clients ask for it.
#include <algorithm>
#include <mutex>
#include <set>

#include "heddle/base/utf8.h"
#include "heddle/serve/api/detection.h"
#include "heddle/serve/api/forms.h"
#include "heddle/serve/api/translation_work.h"

namespace heddle::serve {

namespace {

// How the texts of a request are written, and what parts they have.
struct TextForm {
  const char* key;  // the member that they are in
  std::optional<MarkedFormat> tags = {};
  SplitAt at = SplitAt::lines;
};

// What both dialects ask for: texts, in sentences or HTML, out of a language ("": any) into one.
struct DialectRequest {
  SharedModel model = {};
  SplitTexts split = {};
  std::string source = {};  // of the texts, as far as it is known
};

std::shared_ptr<const DialectRequest> dialect_request(const Exchange& e, const std::string& source,
                                                      const std::string& target,
                                                      std::vector<std::string> texts,
                                                      const TextForm& form) {
  DialectRequest asked{.model = translator_of(e.service, Json::object(), source, target)};
  asked.source = source.empty() ? asked.model->source_language : source;
  const Splitting splitting{
      .at = form.at, .language = asked.source, .most = most_sequences(e.service)};
  asked.split = form.tags ? marked_texts(std::move(texts), *form.tags, splitting, form.key)
                          : split_texts(std::move(texts), splitting);
  return std::make_shared<const DialectRequest>(std::move(asked));
}

TranslationWork work_of(const DialectRequest& asked, const std::string& source,
                        const std::string& target) {
  const ServedModel& model = *asked.model;
  TranslationWork work{.model = asked.model,
                       .texts = asked.split.sentences(),
                       .options = text_options(model.loaded(), model.translating)};
  work.options.scores = false;
  set_request_languages(*asked.model, source, target, work.options);
  return work;
}

// The texts whole again, and what else their sentences might be.
class JoinedTexts {
 public:
  JoinedTexts(std::shared_ptr<const DialectRequest> asked, const TranslationWork& work,
              const std::vector<Translation>& all)
      : asked_(std::move(asked)), all_(all) {
    if (!asked_->split.marked.empty()) links_ = links_of(word_alignments(work, all));
  }
  std::string text(size_t i) const {
    return asked_->split.joined(
        i, [&](size_t k) { return all_[k].text; }, links_);
  }
  // The second best of each sentence together, the third, and so on.
  Json alternatives(size_t i) const {
    const SplitTexts& split = asked_->split;
    size_t most = 0;
    for (size_t k = split.first(i); k < split.first(i) + split.count(i); ++k) {
      most = std::max(most, all_[k].others.size());
    }
    Json list = Json::array();
    for (size_t rank = 0; rank < most; ++rank) {
      const auto ranked = [&](size_t k) {
        return rank < all_[k].others.size() ? all_[k].others[rank].text : all_[k].text;
      };
      list.push_back(split.joined(i, ranked, links_));
    }
    return list;
  }

 private:
  std::shared_ptr<const DialectRequest> asked_;
  const std::vector<Translation>& all_;
  std::vector<MarkedText::Links> links_;
};

}  // namespace

// --- LibreTranslate ------------------------------------------------------------------------------

namespace {

// Languages and translations come in any order, on any thread; the later sends both.
class LibreAnswer {
 public:
  // parts: of the answer, each of which is taken once
  LibreAnswer(SharedExchange e, std::shared_ptr<const DialectRequest> asked, bool is_list,
              int parts)
      : exchange_(std::move(e)), asked_(std::move(asked)), is_list_(is_list), missing_(parts) {}

  // found: of each text; none where nothing tells languages
  void take_languages(const std::vector<DetectedLanguages>& found) {
    const auto best = [&](size_t i) {
      DetectedLanguage one{.language = asked_->model->source_language};
      if (!found.empty() && !found[i].empty()) one = found[i][0];
      return Json::object({{"confidence", 100 * one.confidence}, {"language", one.language}});
    };
    take(Json::object({{"detectedLanguage", listed(best)}}));
  }
  void take_translations(const JoinedTexts& joined, bool has_alternatives) {
    Json json =
        Json::object({{"translatedText", listed([&](size_t i) { return joined.text(i); })}});
    if (has_alternatives) {
      json["alternatives"] = listed([&](size_t i) { return joined.alternatives(i); });
    }
    take(json);
  }

 private:
  void take(const Json& part) {
    const std::lock_guard lock(mutex_);
    for (const auto& [key, value] : part.as_object()) json_[key] = value;
    if (--missing_ == 0) exchange_->send(json_);
  }
  Json listed(const std::function<Json(size_t)>& of) const {
    if (!is_list_) return of(0);
    Json list = Json::array();
    for (size_t i = 0; i < asked_->split.texts.size(); ++i) list.push_back(of(i));
    return list;
  }

  const SharedExchange exchange_;
  const std::shared_ptr<const DialectRequest> asked_;
  const bool is_list_;
  std::mutex mutex_;
  Json json_ = Json::object();
  int missing_;
};

}  // namespace

void libre_translate(const SharedExchange& e) {
  const Json body = body_of(*e);
  TextForm form{.key = "q"};
  if (choice_of(body, "format", {"text", "html"}) == "html") form.tags = MarkedFormat::html;
  const bool is_auto = text_of(body, "source") == "auto";
  const std::string source = is_auto ? "" : text_of(body, "source"),
                    target = text_of(body, "target");
  if (target.empty()) refuse("`target` is missing");
  const int64_t alternatives =
      int_of(body, "alternatives", 0, 0,
             std::min(e->service.options().most_results, e->service.options().most_beams) - 1);
  const Json* given = body.find("q");
  const bool is_list = given != nullptr && given->is_array();
  const auto asked = dialect_request(*e, source, target,
                                     texts_of(body, "q", e->service.options().most_texts), form);
  TranslationWork work = work_of(*asked, source, target);
  work.options.search.n_best = alternatives + 1;
  work.options.search.beam = std::max(work.options.search.beam.value_or(1), alternatives + 1);
  work.options.scores = alternatives > 0;

  const auto answer = std::make_shared<LibreAnswer>(e, asked, is_list, is_auto ? 2 : 1);
  if (const auto classifier = is_auto ? language_classifier(e->service) : nullptr) {
    start_detection(
        e, classifier, asked->split.texts,
        [answer](const std::vector<DetectedLanguages>& found) { answer->take_languages(found); });
  } else if (is_auto) {
    answer->take_languages({});
  }
  work.on_done = [=](const TranslationWork& done, const std::vector<Translation>& all) {
    answer->take_translations(JoinedTexts(asked, done, all), alternatives > 0);
  };
  start_translation(e, std::move(work));
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
    if (!model->loaded().tokenizer) continue;
    const auto known = model->loaded().tokenizer->languages();
    for (const auto& [from, ignored] : known) {
      for (const auto& [to, also_ignored] : known) pairs[from].insert(to);
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
    list.push_back(Json::object({{"code", from}, {"name", from}, {"targets", std::move(targets)}}));
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
  const std::string source = deepl_language(text_of(body, "source_lang")),
                    target = deepl_language(text_of(body, "target_lang"));
  if (target.empty()) refuse("`target_lang` is missing");
  // What would change the translation is refused; what is a hint to DeepL's own models is not.
  refuse_members(body, {"glossary_id", "ignore_tags", "non_splitting_tags", "splitting_tags",
                        "style_id", "custom_instructions"});
  const std::string formality = text_of(body, "formality");
  if (formality == "more" || formality == "less") {
    refuse("`formality` is not there yet; prefer_{} leaves it to the model", formality);
  }
  const auto asked =
      dialect_request(*e, source, target, texts_of(body, "text", e->service.options().most_texts),
                      deepl_form(body));
  TranslationWork work = work_of(*asked, source, target);
  work.on_done = [=](const TranslationWork& done, const std::vector<Translation>& all) {
    const JoinedTexts joined(asked, done, all);
    Json list = Json::array();
    for (size_t i = 0; i < asked->split.texts.size(); ++i) {
      const std::string& known = asked->model->source_language;
      list.push_back(
          Json::object({{"detected_source_language", upper(known.empty() ? source : known)},
                        {"text", joined.text(i)},
                        {"billed_characters", count_characters(asked->split.texts[i])},
                        {"model_type_used", "quality_optimized"}}));
    }
    e->send(Json::object({{"translations", std::move(list)}}));
  };
  start_translation(e, std::move(work));
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
    Json one = Json::object({{"language", upper(code)}, {"name", upper(code)}});
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
