// Translation as LibreTranslate's and DeepL's clients ask for it.
#include <algorithm>
#include <set>

#include "heddle/base/utf8.h"
#include "heddle/serve/api/detection.h"
#include "heddle/serve/api/forms.h"
#include "heddle/serve/api/translation_work.h"

namespace heddle::serve {

// --- LibreTranslate ------------------------------------------------------------------------------

void libre_translate(const SharedExchange& e) {
  const Json body = body_of(*e);
  const std::string source = text_of(body, "source"), target = text_of(body, "target");
  const std::string format = text_of(body, "format", "text");
  if (format != "text" && format != "html") refuse("`format` must be text or html");
  const bool is_auto = source == "auto";
  const SharedModel model =
      translator_of(e->service, Json::object(), is_auto ? std::string() : source, target);
  const int64_t alternatives =
      int_of(body, "alternatives", 0, 0,
             std::min(e->service.options().most_results, e->service.options().most_beams) - 1);
  const Json* asked = body.find("q");
  const bool is_list = asked != nullptr && asked->is_array();
  auto texts = texts_of(body, "q", e->service.options().most_texts);
  const auto split = std::make_shared<const SplitTexts>(
      format == "html"
          ? marked_texts(std::move(texts), true, {})
          : split_texts(std::move(texts), true, is_auto ? model->source_language : source));
  TranslationWork work{.model = model,
                       .texts = split->sentences(),
                       .options = text_options(model->loaded(), model->translating)};
  set_request_languages(*model, is_auto ? "" : source, target, work.options);
  work.options.search.n_best = alternatives + 1;
  work.options.search.beam = std::max(work.options.search.beam.value_or(1), alternatives + 1);
  work.options.scores = alternatives > 0;
  const SharedModel classifier = is_auto ? language_classifier(e->service) : nullptr;
  work.on_done = [=](const TranslationWork& done, const std::vector<Translation>& all) {
    std::vector<MarkedText::Links> links;
    if (!split->marked.empty()) links = word_links(done, all);
    const auto listed = [&](const auto& of) {
      if (!is_list) return of(0);
      Json list = Json::array();
      for (size_t i = 0; i < split->texts.size(); ++i) list.push_back(of(i));
      return list;
    };
    Json json = Json::object();
    if (is_auto) {
      json["detectedLanguage"] = listed([&](size_t i) {
        DetectedLanguage best{.language = model->source_language};
        if (classifier) {
          const auto found = detect_language(*classifier, split->texts[i]);
          if (!found.empty()) best = found[0];
        }
        return Json::object({{"confidence", 100 * best.confidence}, {"language", best.language}});
      });
    }
    json["translatedText"] = listed([&](size_t i) {
      return Json(split->joined(
          i, [&](size_t k) { return all[k].text; }, links));
    });
    // The second best of each sentence together, the third, and so on.
    const auto alternative = [&](size_t i, size_t rank) {
      return split->joined(
          i,
          [&](size_t k) {
            return rank < all[k].others.size() ? all[k].others[rank].text : all[k].text;
          },
          links);
    };
    if (alternatives > 0) {
      json["alternatives"] = listed([&](size_t i) {
        size_t most = 0;
        for (size_t k = split->first(i); k < split->first(i) + split->count(i); ++k) {
          most = std::max(most, all[k].others.size());
        }
        Json list = Json::array();
        for (size_t rank = 0; rank < most; ++rank) list.push_back(alternative(i, rank));
        return list;
      });
    }
    e->send(json);
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

void deepl_translate(const SharedExchange& e) {
  const Json body = body_of(*e);
  const std::string source = deepl_language(text_of(body, "source_lang")),
                    target = deepl_language(text_of(body, "target_lang"));
  if (target.empty()) refuse("`target_lang` is missing");
  const std::string tags = text_of(body, "tag_handling");
  if (!tags.empty() && tags != "html" && tags != "xml")
    refuse("`tag_handling` must be html or xml");
  const SharedModel model = translator_of(e->service, Json::object(), source, target);
  auto texts = texts_of(body, "text", e->service.options().most_texts);
  const auto split = std::make_shared<const SplitTexts>(
      tags.empty() ? split_texts(std::move(texts), text_of(body, "split_sentences", "1") != "0",
                                 source.empty() ? model->source_language : source)
                   : marked_texts(std::move(texts), true, {}));
  TranslationWork work{.model = model,
                       .texts = split->sentences(),
                       .options = text_options(model->loaded(), model->translating)};
  set_request_languages(*model, source, target, work.options);
  work.options.scores = false;
  work.on_done = [=](const TranslationWork& done, const std::vector<Translation>& all) {
    std::vector<MarkedText::Links> links;
    if (!split->marked.empty()) links = word_links(done, all);
    Json list = Json::array();
    for (size_t i = 0; i < split->texts.size(); ++i) {
      const std::string from = model->source_language.empty() ? source : model->source_language;
      list.push_back(Json::object({{"detected_source_language", upper(from)},
                                   {"text", split->joined(
                                                i, [&](size_t k) { return all[k].text; }, links)},
                                   {"billed_characters", count_characters(split->texts[i])},
                                   {"model_type_used", "quality_optimized"}}));
    }
    e->send(Json::object({{"translations", std::move(list)}}));
  };
  start_translation(e, std::move(work));
}

void deepl_languages(const SharedExchange& e) {
  // DeepL's own client puts the form into the body, though it is a GET.
  const bool wants_targets = e->request.query.find("type=target") != std::string::npos ||
                             e->request.body.find("type=target") != std::string::npos;
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
