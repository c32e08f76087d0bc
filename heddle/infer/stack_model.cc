// Config and weights of a model of the registry, checked against each other.
#include "heddle/infer/stack_model.h"

#include <algorithm>
#include <array>

#include "heddle/base/files.h"
#include "heddle/base/log.h"
#include "heddle/base/profile.h"
#include "heddle/infer/model_dir.h"
#include "heddle/io/weights.h"

namespace heddle {
namespace {

// Keys that Hugging Face writes beside the models' fields and that change no result here: what the
// tokens are called, how tasks are labelled, what its own code returns or how it stores.
constexpr std::array kHarmless = {"_name_or_path",
                                  "_num_labels",
                                  "architectures",
                                  "auto_map",
                                  "bos_token_id",
                                  "chunk_size_feed_forward",
                                  "classifier_dropout",
                                  "directionality",
                                  "dtype",
                                  "eos_token_id",
                                  "gradient_checkpointing",
                                  "id2label",
                                  "is_encoder_decoder",
                                  "label2id",
                                  "model_type",
                                  "n_ctx",
                                  "output_attentions",
                                  "output_hidden_states",
                                  "output_past",
                                  "pad_token_id",
                                  "problem_type",
                                  "reorder_and_upcast_attn",
                                  "return_dict",
                                  "summary_activation",
                                  "summary_first_dropout",
                                  "summary_proj_to_labels",
                                  "summary_type",
                                  "summary_use_proj",
                                  "task_specific_params",
                                  "tie_word_embeddings",
                                  "torch_dtype",
                                  "transformers_version",
                                  "use_cache"};

Json read_config(const std::string& folder, std::string& type) {
  const std::string path = join_path(folder, kConfigName);
  Json json = Json::load(path);
  const Json* found = json.find("model_type");
  const auto known = [] { return fmt::format("{}", fmt::join(model_types(), ", ")); };
  check(found != nullptr, ErrorKind::data, "{}: it has no 'model_type'; heddle knows {}, {}", path,
        known(), kTransformerType);
  type = found->as_string(path + ": key 'model_type'");
  check(type == kTransformerType || is_model_type(type), ErrorKind::data,
        "{}: model_type is '{}'; heddle knows {}, {}", path, type, known(), kTransformerType);
  return json;
}

void warn_of_unknown(const std::string& path, std::vector<std::string> keys) {
  std::erase_if(keys, [](const std::string& key) {
    return std::find(kHarmless.begin(), kHarmless.end(), key) != kHarmless.end();
  });
  if (keys.empty()) return;
  log_warning("{}: heddle does not know and passes over {}", path, fmt::join(keys, ", "));
}

}  // namespace

std::string model_type_of(const std::string& path) {
  std::string type;
  read_config(find_model_dir(path), type);
  return type;
}

StackModel load_stack_model(const std::string& path) {
  const ProfilePhase phase("load model");
  const std::string folder = find_model_dir(path);
  std::string type;
  const Json json = read_config(folder, type);
  const std::unique_ptr<TensorFile> file = open_weights(folder);
  file->verify();
  nn::Parameters parameters = nn::Parameters::to_be_loaded(file->elements(), file->path());
  std::vector<std::string> unknown;
  const std::string source = join_path(folder, kConfigName);
  std::unique_ptr<Model> model = make_model(type, nn::Scope(parameters), json, source, unknown);
  warn_of_unknown(source, std::move(unknown));
  parameters.load(*file, model->names());
  return {folder, type, std::move(parameters), std::move(model)};
}

void save_stack_model(const std::string& path, const std::string& type, const Model& model,
                      const nn::Parameters& parameters) {
  make_directories(path);
  Json json = Json::object();
  json["model_type"] = type;
  const Json fields = write_fields(model.fields());
  for (const auto& [key, value] : fields.as_object()) json[key] = value;
  write_file_atomic(join_path(path, kConfigName), json.dump(2) + "\n");
  parameters.save(join_path(path, kWeightsName));
}

}  // namespace heddle
