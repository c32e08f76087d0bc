// Models as they are served: loaded once, known by name.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "heddle/infer/decoding/translate.h"
#include "heddle/infer/embed.h"
#include "heddle/serve/scheduler.h"

namespace heddle::serve {

/// What a model is asked for.
enum class ModelUse : uint8_t { translate, generate, read };
/// "translation", "generation", "embedding".
const char* model_use_name(ModelUse use);

struct ServedModel {
  explicit ServedModel(SentenceEncoder loaded_one) : encoder(std::move(loaded_one)) {}

  std::string name;  ///< that requests name it by
  ModelUse use = ModelUse::read;
  /// Languages that it translates from and into, if its name is a pair of them: "en-de".
  std::string source_language = {}, target_language = {};
  SentenceEncoder encoder;        ///< text: the model, whatever its use; options: of one that reads
  int32_t default_language = -1;  ///< of sources, as the folder has it
  TranslateOptions translating = {};          ///< how it translates where a request does not say
  std::unique_ptr<Scheduler> scheduler = {};  ///< of one that writes tokens
  Precision precision = {};

  LoadedModel& loaded() { return encoder.text; }
  const LoadedModel& loaded() const { return encoder.text; }
};

struct ServedModelOptions {
  Precision precision = {};
  int64_t cache_rows = 0;  ///< of the KV cache
};

using SharedModel = std::shared_ptr<ServedModel>;

/// Loads what `argument` names: a folder, or NAME=FOLDER; without a name it is the folder's (of
/// RUN/best the run's). Errors: those of loading; data for a model of images.
SharedModel load_served_model(const std::string& argument, const ServedModelOptions& options);

}  // namespace heddle::serve
