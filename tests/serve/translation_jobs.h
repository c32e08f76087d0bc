// Translations of random sentences, as jobs of a scheduler.
#pragma once

#include <vector>

#include "heddle/infer/decoding/translate.h"
#include "heddle/serve/scheduler.h"
#include "tests/infer/small_models.h"

namespace heddle::testing {

/// A translator, and translations of its sentences one at a time.
struct TranslationJobs {
  using Ids = std::vector<int32_t>;
  SmallModel small{small_config()};
  std::vector<Ids> sentences;
  TranslateOptions options;

  explicit TranslationJobs(int count) : sentences(random_sentences(count, 9, 40)) {
    options.search.beam = 3;
  }
  serve::Job job(size_t i) const {
    return {.request = translation_request(small.model, sentences[i], options)};
  }
  Ids alone(size_t i) const {
    return translate_ids(small.model, std::span(&sentences[i], 1), options)[0].ids;
  }
};

}  // namespace heddle::testing
