// A classifier of texts whose labels are codes of languages.
#include "heddle/serve/api/detection.h"

#include <algorithm>

#include "heddle/infer/answers.h"
#include "heddle/serve/api/between_steps.h"
#include "heddle/serve/api/forms.h"
#include "heddle/text/strings/strings.h"

namespace heddle::serve {
namespace {

constexpr size_t kMostBytes = 1024;  // of a text that are looked at

// Of at most so many bytes, without a part of a character.
std::string beginning_of(const std::string& text) {
  if (text.size() <= kMostBytes) return text;
  return text.substr(0, last_character(std::string_view(text).substr(0, kMostBytes + 1)));
}

}  // namespace

SharedModel language_classifier(const Service& service) {
  for (const SharedModel& model : service.models()) {
    if (model->use != ModelUse::read || !model->loaded().model->heads().sequence_classes) continue;
    if (std::ranges::all_of(model->loaded().model->labels(), is_language_code)) return model;
  }
  return nullptr;
}

std::vector<DetectedLanguage> detect_language(const ServedModel& classifier,
                                              const std::string& text) {
  if (text.find_first_not_of(" \t\r\n") == std::string::npos) return {};
  const TextToClassify asked{beginning_of(text)};
  int64_t cut = 0;
  const auto probabilities =
      heddle::classify(classifier.loaded(), {&asked, 1}, classifier.precision, cut)[0];
  std::vector<DetectedLanguage> found;
  for (size_t i = 0; i < probabilities.size(); ++i) {
    found.push_back({classifier.loaded().model->labels()[i], probabilities[i]});
  }
  std::ranges::stable_sort(found, std::greater<>(), &DetectedLanguage::confidence);
  return found;
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
  int64_t tokens = 0;
  for (const std::string& text : texts) tokens += std::ssize(beginning_of(text)) / 2 + 2;
  work_between_steps(e, tokens, [=] {
    Json all = Json::array();
    for (const std::string& text : texts) {
      Json list = Json::array();
      for (const DetectedLanguage& one : detect_language(*classifier, text)) {
        list.push_back(
            Json::object({{"confidence", 100 * one.confidence}, {"language", one.language}}));
      }
      if (!is_list) return e->send(list), false;
      all.push_back(std::move(list));
    }
    return e->send(all), false;
  });
}

}  // namespace heddle::serve
