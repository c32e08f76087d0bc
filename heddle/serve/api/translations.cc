// Translation in heddle's own words, LibreTranslate's and DeepL's.
#include <algorithm>
#include <set>

#include "heddle/base/utf8.h"
#include "heddle/infer/words.h"
#include "heddle/serve/api/forms.h"
#include "heddle/serve/api/translation_work.h"

namespace heddle::serve {
namespace {

Json one_translation(const Translation& t, const Tokenizer& tokenizer, bool has_scores) {
  Json json = Json::object({{"text", t.text}});
  if (!has_scores) return json;
  json["score"] = t.score;
  json["tokens"] = Json::array();
  for (const int32_t id : t.ids) json["tokens"].push_back(tokenizer.token(id));
  return json;
}

// With all of them under "n_best" where several were asked for.
Json translation_json(const Translation& t, const Tokenizer& tokenizer, bool has_scores,
                      bool has_several) {
  Json json = one_translation(t, tokenizer, has_scores);
  if (!has_several) return json;
  json["n_best"] = Json::array();
  json["n_best"].push_back(one_translation(t, tokenizer, true));
  for (const Translation& other : t.others) {
    json["n_best"].push_back(one_translation(other, tokenizer, true));
  }
  return json;
}

// Word alignments by attention, a pass over the finished texts. On the engine's thread.
std::vector<Alignment> alignments_of(const TranslationWork& work,
                                     const std::vector<Translation>& translations) {
  const LoadedModel& model = work.model->loaded();
  std::vector<std::vector<int32_t>> targets;
  for (const Translation& t : translations) targets.push_back(t.ids);
  return align_pairs(model, work.sources, targets, {.precision = work.model->precision});
}

int64_t tokens_of(const std::vector<Translation>& translations) {
  int64_t tokens = 0;
  for (const Translation& t : translations) tokens += std::ssize(t.ids);
  return tokens;
}

}  // namespace

void translations(const SharedExchange& e) {
  const Json body = e->json();
  const std::string source = text_of(body, "source_lang"), target = text_of(body, "target_lang");
  const SharedModel model = translator_of(e->service, body, source, target);
  const bool has_scores = bool_of(body, "scores", false), streams = bool_of(body, "stream", false);
  const std::string alignment = text_of(body, "alignment", "none");
  if (alignment != "none" && alignment != "hard") {
    refuse("`alignment` is '{}'; it must be none or hard", alignment);
  }
  if (streams && alignment != "none") refuse("`stream` takes no `alignment`");
  auto work = std::make_shared<TranslationWork>(
      TranslationWork{.model = model,
                      .texts = texts_of(body, "text", e->service.options().most_texts),
                      .options = translate_options_of(e->service, *model, body)});
  set_request_languages(*model, source, target, work->options);
  const bool has_several = work->options.search.n_best > 1;
  work->options.scores = has_scores || has_several;
  if (body.contains("prefix")) {
    const std::vector<std::string> prefixes = texts_of(body, "prefix", std::ssize(work->texts));
    if (prefixes.size() != 1 && prefixes.size() != work->texts.size()) {
      refuse("there are {} prefixes for {} texts; give one for all, or one for each",
             prefixes.size(), work->texts.size());
    }
    for (const std::string& prefix : prefixes) {
      work->options.prefixes.push_back(prefix_ids(model->loaded(), prefix, "prefix"));
    }
  }
  const auto as_json = [model, has_scores, has_several](const Translation& t) {
    return translation_json(t, model->loaded().target(), has_scores, has_several);
  };
  TranslationWork asked = *work;
  if (streams) {
    asked.on_text = [e, as_json](size_t i, const Translation& t) {
      Json event = as_json(t);
      event["index"] = i;
      event["final"] = true;
      e->event(event.dump());
    };
  }
  asked.on_done = [e, as_json, alignment, streams, model](const TranslationWork& done,
                                                          const std::vector<Translation>& all) {
    if (streams) {
      e->event("[DONE]");
      return e->end_events();
    }
    Json list = Json::array();
    for (const Translation& t : all) list.push_back(as_json(t));
    Json json = Json::object({{"id", "tr-" + e->id}, {"object", "translations"}});
    json["model"] = model->name;
    if (alignment == "hard") {
      const std::vector<Alignment> found = alignments_of(done, all);
      std::vector<std::string> links;
      for (const Alignment& one : found) links.push_back(to_pharaoh(one));
      for (size_t i = 0; i < list.size(); ++i) {
        Json item = list.as_array()[i];
        item["alignment"] = links[i];
        json["translations"].push_back(std::move(item));
      }
    } else {
      json["translations"] = std::move(list);
    }
    json["usage"] = Json::object({{"target_tokens", tokens_of(all)}});
    e->send(json);
  };
  if (streams) asked.on_start = [e] { e->begin_events(); };
  start_translation(e, std::move(asked));
}

// --- LibreTranslate ------------------------------------------------------------------------------

void libre_translate(const SharedExchange& e) {
  const Json body = body_of(*e);
  const std::string source = text_of(body, "source"), target = text_of(body, "target");
  if (text_of(body, "format", "text") != "text") refuse("`format` must be text");
  const bool is_auto = source == "auto";
  const SharedModel model =
      translator_of(e->service, Json::object(), is_auto ? std::string() : source, target);
  const int64_t alternatives =
      int_of(body, "alternatives", 0, 0,
             std::min(e->service.options().most_results, e->service.options().most_beams) - 1);
  const Json* asked = body.find("q");
  const bool is_list = asked != nullptr && asked->is_array();
  TranslationWork work{.model = model,
                       .texts = texts_of(body, "q", e->service.options().most_texts),
                       .options = text_options(model->loaded(), model->translating)};
  set_request_languages(*model, is_auto ? "" : source, target, work.options);
  work.options.search.n_best = alternatives + 1;
  work.options.search.beam = std::max(work.options.search.beam.value_or(1), alternatives + 1);
  work.options.scores = alternatives > 0;
  work.on_done = [e, is_list, is_auto, alternatives, model](const TranslationWork&,
                                                            const std::vector<Translation>& all) {
    const auto listed = [&](const auto& of) {
      if (!is_list) return of(all.at(0));
      Json list = Json::array();
      for (const Translation& t : all) list.push_back(of(t));
      return list;
    };
    Json json = Json::object();
    if (is_auto) {
      json["detectedLanguage"] = listed([&](const Translation&) {
        return Json::object({{"confidence", 0}, {"language", model->source_language}});
      });
    }
    json["translatedText"] = listed([](const Translation& t) { return Json(t.text); });
    if (alternatives > 0) {
      json["alternatives"] = listed([](const Translation& t) {
        Json list = Json::array();
        for (const Translation& other : t.others) list.push_back(other.text);
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
  if (!text_of(body, "tag_handling").empty()) refuse("`tag_handling` is not there yet");
  const SharedModel model = translator_of(e->service, Json::object(), source, target);
  auto texts = texts_of(body, "text", e->service.options().most_texts);
  TranslationWork work{
      .model = model, .texts = texts, .options = text_options(model->loaded(), model->translating)};
  set_request_languages(*model, source, target, work.options);
  work.options.scores = false;
  work.on_done = [e, texts = std::move(texts), source, model](const TranslationWork&,
                                                              const std::vector<Translation>& all) {
    Json list = Json::array();
    for (size_t i = 0; i < all.size(); ++i) {
      const std::string from = model->source_language.empty() ? source : model->source_language;
      list.push_back(Json::object({{"detected_source_language", upper(from)},
                                   {"text", all[i].text},
                                   {"billed_characters", count_characters(texts[i])},
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
