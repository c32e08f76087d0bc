// Which language a text is in.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "heddle/serve/api/exchange.h"

namespace heddle::serve {

struct DetectedLanguage {
  std::string language;   ///< "en"
  double confidence = 0;  ///< its probability
};

/// The first model that is served whose classes are languages ("en", "de"); null where there is
/// none.
SharedModel language_classifier(const Service& service);

/// What a language_classifier() says of a text, the likeliest first; nothing of a blank one.
using DetectedLanguages = std::vector<DetectedLanguage>;
/// Asks a language_classifier() of texts, of which the beginnings count, between the steps of
/// others; on_done: on an engine's thread, with an entry a text. Errors: Refusal where there is no
/// room.
void start_detection(const SharedExchange& e, const SharedModel& classifier,
                     const std::vector<std::string>& texts,
                     std::function<void(const std::vector<DetectedLanguages>&)> on_done);

}  // namespace heddle::serve
