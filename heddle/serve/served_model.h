// Models as they are served: loaded once, known by name.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "heddle/infer/decoding/caption.h"
#include "heddle/infer/detect.h"
#include "heddle/infer/embed.h"
#include "heddle/serve/scheduler.h"
#include "heddle/text/chat/chat_template.h"

namespace heddle::serve {

/// What a model is asked for.
enum class ModelUse : uint8_t {
  translate,
  generate,
  embed,
  classify,
  classify_images,
  detect,
  caption
};
/// "translation", "generation", "embedding", "classification", "image-classification",
/// "object-detection", "image-captioning".
const char* model_use_name(ModelUse use);

/// Whether it is two or three small letters: "en".
bool is_language_code(const std::string& code);

struct ServedModel {
  explicit ServedModel(SentenceEncoder of_texts) : model(std::move(of_texts)) {}
  explicit ServedModel(ImageReader of_images) : model(std::move(of_images)) {}
  explicit ServedModel(CaptionReader of_captions) : model(std::move(of_captions)) {}

  std::string name;  ///< that requests name it by
  ModelUse use = ModelUse::embed;
  /// Languages that it translates from and into, if its name is a pair of them: "en-de".
  std::string source_language = {}, target_language = {};
  /// Else those that its tokenizers mark, of which a request names one of each; none of most.
  std::vector<std::string> source_languages = {}, target_languages = {};
  /// SentenceEncoder::text: the model, whatever its use; options: of one that reads texts.
  std::variant<SentenceEncoder, ImageReader, CaptionReader> model;
  int32_t default_language = -1;              ///< of sources, as the folder has it
  TranslateOptions translating = {};          ///< or writes captions, if a request does not say
  std::optional<ChatTemplate> chat = {};      ///< of one that generates, if its folder has it
  std::string chat_fault = {};                ///< why there is none, though the folder has one
  std::unique_ptr<Scheduler> scheduler = {};  ///< of one that writes tokens
  Precision precision = {};

  const SentenceEncoder& encoder() const { return std::get<SentenceEncoder>(model); }
  const ImageReader& images() const { return std::get<ImageReader>(model); }
  const CaptionReader& captioner() const { return std::get<CaptionReader>(model); }
  const LoadedModel& loaded() const {
    if (const auto* reader = std::get_if<CaptionReader>(&model)) return reader->loaded;
    return reads_images() ? images().loaded : encoder().text;
  }
  LoadedModel& loaded() { return const_cast<LoadedModel&>(std::as_const(*this).loaded()); }
  /// Whether it reads images, not texts.
  bool reads_images() const { return !std::holds_alternative<SentenceEncoder>(model); }
  /// Whether it reads texts and writes none.
  bool reads_texts() const { return use == ModelUse::embed || use == ModelUse::classify; }
  /// What users are told that it is for.
  const char* purpose() const { return model_use_name(use); }
};

struct ServedModelOptions {
  Precision precision = {};
  int64_t cache_rows = 0;  ///< of the KV cache
};

using SharedModel = std::shared_ptr<ServedModel>;

/// Loads what `argument` names: a folder, or NAME=FOLDER; without a name it is the folder's (of
/// RUN/best the run's). Messages about it say its name from then on, not the folder, which is no
/// client's business. Errors: those of loading; data for a model of images that gives neither
/// classes nor objects.
SharedModel load_served_model(const std::string& argument, const ServedModelOptions& options);

}  // namespace heddle::serve
