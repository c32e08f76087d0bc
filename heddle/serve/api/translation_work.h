// Texts of one request on their way through a translator.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "heddle/serve/api/exchange.h"

namespace heddle::serve {

struct TranslationWork {
  SharedModel model = {};
  std::vector<std::string> texts = {};
  TranslateOptions options = {};  ///< prefixes: none, one for all, or one of each text
  /// Called on the engine's thread: at first, of each text as it is done, then of all.
  std::function<void()> on_start = {};
  std::function<void(size_t, const Translation&)> on_text = {};
  std::function<void(const TranslationWork&, const std::vector<Translation>&)> on_done = {};
  std::vector<std::vector<int32_t>> sources = {};  ///< set by start_translation(): ids of the texts
};

/// Tokenizes the texts and hands them to the engine; the exchange fails if one of them cannot be
/// translated. An empty text has an empty translation.
/// Errors: Refusal 429 where the queue is full, 400 for a text that is too long.
void start_translation(const SharedExchange& e, TranslationWork work);

/// Sets the languages of a model of several for the texts of one request, which are tokenized
/// before the next is looked at; of a model whose name says them nothing is to be set.
void set_request_languages(ServedModel& model, const std::string& source, const std::string& target,
                           TranslateOptions& options);

/// The translator that a request names, or one for this pair of languages ("": any): that of the
/// pair before one of many languages.
/// Errors: Refusal.
SharedModel translator_of(const Service& service, const Json& body, const std::string& source,
                          const std::string& target);
/// "model": as the model's folder says, with the members of the body laid over it.
TranslateOptions translate_options_of(const Service& service, const ServedModel& model,
                                      const Json& body);

}  // namespace heddle::serve
