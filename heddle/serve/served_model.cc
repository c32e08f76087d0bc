// Which use a folder's model is of, and the name that it goes by.
#include "heddle/serve/served_model.h"

#include <algorithm>
#include <filesystem>

#include "heddle/base/error.h"
#include "heddle/base/log.h"
#include "heddle/infer/loading/text_model.h"
#include "heddle/tensor/storage.h"
#include "heddle/text/strings/strings.h"

namespace heddle::serve {
namespace {

std::string name_of(const std::string& folder) {
  std::filesystem::path path = std::filesystem::absolute(folder).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  const std::string last = path.filename();
  const bool is_of_run = last == "best" || last == "last";
  return is_of_run ? path.parent_path().filename().string() : last;
}

std::vector<std::string> language_names(const Tokenizer& tokenizer) {
  std::vector<std::string> names;
  for (auto& [name, token] : tokenizer.languages()) names.push_back(std::move(name));
  return names;
}

void take_languages(ServedModel& model) {
  const size_t dash = std::min(model.name.find('-'), model.name.size());
  const std::string from = model.name.substr(0, dash);
  const std::string to = model.name.substr(std::min(dash + 1, model.name.size()));
  if (is_language_code(from) && is_language_code(to)) {
    model.source_language = from, model.target_language = to;
    return;
  }
  if (!model.loaded().tokenizer) return;
  model.source_languages = language_names(*model.loaded().tokenizer);
  model.target_languages = language_names(model.loaded().target());
}

// Whether it predicts the next token: by its head, or, of a bare stack, by one that it may have.
bool generates(const ModelConfig& config) {
  const auto is_of_text = [](Head head) {
    return head == Head::next_token || head == Head::ordered_token;
  };
  if (config.hub.head != Head::none) return is_of_text(config.hub.head);
  return std::ranges::any_of(config.heads(), is_of_text, &HeadClass::head);
}

ModelUse use_of(const ImageReader& reader) {
  if (reader.loaded.model->as<Detector>() != nullptr) {
    check_sees_all(reader.processor, reader.loaded.path);
    return ModelUse::detect;
  }
  check(reader.loaded.model->heads().sequence_classes != nullptr, ErrorKind::data,
        "{}: a model of images that gives neither classes nor objects; serve has no use for it",
        reader.loaded.path);
  return ModelUse::classify_images;
}

ModelUse use_of(const std::string& folder) {
  if (is_translator(folder)) return ModelUse::translate;
  return generates(*load_model_config(folder)) ? ModelUse::generate : ModelUse::embed;
}

SentenceEncoder load(const std::string& folder, ModelUse use) {
  if (use == ModelUse::embed) return load_sentence_encoder(folder);
  return {use == ModelUse::translate ? load_translation_model(folder) : load_prompt_model(folder),
          {}};
}

// A template that is broken takes nothing else from the model.
void take_chat_template(ServedModel& model) {
  try {
    model.chat = ChatTemplate::find(
        model.loaded().path, model.loaded().tokenizer ? &*model.loaded().tokenizer : nullptr);
  } catch (const Error& error) {
    log_warning("serve: {}: no chat: {}", model.name, error.what());
    model.chat_fault = replace_all(error.what(), model.loaded().path, model.name);
  }
}

// What a model leaves to the allocator goes back to the system: the one that took its place has
// memory of its own.
template <class Model>
SharedModel new_model(Model model) {
  return {new ServedModel(std::move(model)), [](ServedModel* served) {
            delete served;
            release_cached_memory();
          }};
}

SharedModel load_of_images(const std::string& folder, const ServedModelOptions& options) {
  if (!writes_captions(folder)) {
    auto model = new_model(load_image_reader(folder));
    model->use = use_of(model->images());
    return model;
  }
  auto model = new_model(load_captioner(folder));
  model->use = ModelUse::caption;
  model->translating = caption_options(model->loaded());
  model->translating.precision = options.precision;
  return model;
}

SharedModel load_of_texts(const std::string& folder, const std::string& name,
                          const ServedModelOptions& options) {
  const ModelUse use = use_of(folder);
  auto model = new_model(load(folder, use));
  model->name = name, model->use = use;
  if (use == ModelUse::translate) {
    model->translating = default_options(model->loaded());
    model->translating.precision = options.precision;
    model->default_language = model->loaded().source_language;
    take_languages(*model);
  }
  if (use == ModelUse::generate) take_chat_template(*model);
  const bool has_classes = model->loaded().model->heads().sequence_classes != nullptr;
  if (use == ModelUse::embed && has_classes) model->use = ModelUse::classify;
  return model;
}

}  // namespace

bool is_language_code(const std::string& code) {
  return (code.size() == 2 || code.size() == 3) &&
         std::ranges::all_of(code, [](char c) { return c >= 'a' && c <= 'z'; });
}

const char* model_use_name(ModelUse use) {
  static constexpr const char* names[] = {
      "translation",          "generation",       "embedding",       "classification",
      "image-classification", "object-detection", "image-captioning"};
  return names[static_cast<size_t>(use)];
}

SharedModel load_served_model(const std::string& argument, const ServedModelOptions& options) {
  const size_t equals = argument.find('=');
  const bool has_name = equals != std::string::npos && !std::filesystem::exists(argument);
  const std::string folder = has_name ? argument.substr(equals + 1) : argument;
  const std::string name = has_name ? argument.substr(0, equals) : name_of(folder);
  check(!name.empty(), ErrorKind::usage, "'{}': the name before the = is missing", argument);
  SharedModel model =
      reads_images(folder) ? load_of_images(folder, options) : load_of_texts(folder, name, options);
  model->name = name, model->precision = options.precision;
  const LoadedModel& loaded = model->loaded();
  const bool reads_sources = model->use == ModelUse::translate || model->use == ModelUse::caption;
  if (reads_sources || model->use == ModelUse::generate) {
    const Engines engines = reads_sources
                                ? Engines{num_threads(), least_rows_of_engine(loaded.translator())}
                                : Engines();
    model->scheduler =
        std::make_unique<Scheduler>(*loaded.model, options.precision, options.cache_rows, engines);
  }
  model->loaded().path = name;
  return model;
}

}  // namespace heddle::serve
