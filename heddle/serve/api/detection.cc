// A classifier of texts whose labels are codes of languages.
#include "heddle/serve/api/detection.h"

#include <algorithm>

#include "heddle/data/parallel_text.h"
#include "heddle/serve/api/forms.h"
#include "heddle/serve/api/reading.h"
#include "heddle/text/strings/strings.h"

namespace heddle::serve {
namespace {

constexpr size_t kMostBytes = 1024;  // of a text that are looked at

// Of at most so many bytes, without a part of a character.
std::string beginning_of(const std::string& text) {
  if (text.size() <= kMostBytes) return text;
  return text.substr(0, last_character(std::string_view(text).substr(0, kMostBytes + 1)));
}

// One pass.
std::vector<DetectedLanguages> detect_languages(const ServedModel& classifier,
                                                std::span<const TextToClassify> texts,
                                                int64_t& cut) {
  std::vector<TextToClassify> asked;
  for (const TextToClassify& one : texts) {
    if (!is_blank(one.text)) asked.push_back(one);
  }
  const auto probabilities =
      asked.empty() ? std::vector<std::vector<double>>()
                    : heddle::classify(classifier.loaded(), asked, classifier.precision, cut);
  std::vector<DetectedLanguages> all(texts.size());
  size_t next = 0;
  for (size_t i = 0; i < texts.size(); ++i) {
    if (is_blank(texts[i].text)) continue;
    const std::vector<double>& of_text = probabilities[next++];
    for (size_t k = 0; k < of_text.size(); ++k) {
      all[i].push_back({classifier.loaded().model->labels()[k], of_text[k]});
    }
    std::ranges::stable_sort(all[i], std::greater<>(), &DetectedLanguage::confidence);
  }
  return all;
}

}  // namespace

SharedModel language_classifier(const Service& service) {
  for (const SharedModel& model : service.models()) {
    if (model->use != ModelUse::classify) continue;
    if (std::ranges::all_of(model->loaded().model->labels(), is_language_code)) return model;
  }
  return nullptr;
}

void start_detection(const SharedExchange& e, const SharedModel& classifier,
                     const std::vector<std::string>& texts,
                     std::function<void(const std::vector<DetectedLanguages>&)> on_done) {
  std::vector<TextToClassify> beginnings;
  for (const std::string& text : texts) beginnings.push_back({beginning_of(text)});
  const auto found = std::make_shared<std::vector<DetectedLanguages>>();
  const auto read = [found, classifier](std::span<const TextToClassify> some, int64_t&) {
    int64_t cut = 0;  // the beginning tells
    for (auto& one : detect_languages(*classifier, some, cut)) found->push_back(std::move(one));
  };
  start_reading({.exchange = e,
                 .texts = std::move(beginnings),
                 .read = read,
                 .on_done = [found, on_done = std::move(on_done)] { on_done(*found); }});
}

// As LibreTranslate answers: percents, the likeliest first; of several texts a list each.
void libre_detect(const SharedExchange& e) {
  const Json body = body_of(*e);
  const std::vector<std::string> texts = texts_of(body, "q", e->service.options().most_texts);
  const bool is_list = body.at("q").is_array();
  const SharedModel classifier = language_classifier(e->service);
  if (!classifier) {
    throw Refusal{.status = 404,
                  .message =
                      "no model here tells languages; serve a classifier whose classes are "
                      "their codes"};
  }
  start_detection(e, classifier, texts, [e, is_list](const std::vector<DetectedLanguages>& found) {
    Json all = Json::array();
    for (const DetectedLanguages& of_text : found) {
      Json list = Json::array();
      for (const DetectedLanguage& one : of_text) {
        list.push_back(
            Json::object({{"confidence", 100 * one.confidence}, {"language", one.language}}));
      }
      all.push_back(std::move(list));
    }
    e->send(is_list ? all : all.as_array()[0]);
  });
}

}  // namespace heddle::serve
