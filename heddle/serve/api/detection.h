// Which language a text is in.
#pragma once

#include <string>

#include "heddle/serve/api/exchange.h"

namespace heddle::serve {

struct DetectedLanguage {
  std::string language;   ///< "en"
  double confidence = 0;  ///< its probability
};

/// The first model that is served whose classes are languages ("en", "de"); null where there is
/// none.
SharedModel language_classifier(const Service& service);

/// What a language_classifier() says of a text, the likeliest first; nothing of a blank one. Of a
/// long text the beginning counts. On the engine's thread.
std::vector<DetectedLanguage> detect_language(const ServedModel& classifier,
                                              const std::string& text);

}  // namespace heddle::serve
