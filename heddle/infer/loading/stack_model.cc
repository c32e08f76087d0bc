// Config and weights of a model of the registry, checked against each other.
#include "heddle/infer/loading/stack_model.h"

#include <algorithm>

#include "heddle/base/files/files.h"
#include "heddle/base/profile.h"
#include "heddle/infer/loading/adapter.h"
#include "heddle/infer/loading/model_dir.h"
#include "heddle/io/weights.h"

namespace heddle {
namespace {

Json read_config(const std::string& folder, std::string& type) {
  const std::string path = join_path(folder, kConfigName);
  Json json = Json::load(path);
  const Json* found = json.find("model_type");
  const auto known = [] { return fmt::format("{}", fmt::join(model_types(), ", ")); };
  check(found != nullptr, ErrorKind::data, "{}: it has no 'model_type'; heddle knows {}", path,
        known());
  type = found->as_string(path + ": key 'model_type'");
  check(is_model_type(type), ErrorKind::data, "{}: model_type is '{}'; heddle knows {}", path, type,
        known());
  return json;
}

bool has_head(const ModelConfig& config, Head head) {
  const std::vector<HeadClass> heads = config.heads();
  return std::any_of(heads.begin(), heads.end(),
                     [&](const HeadClass& h) { return h.head == head; });
}

}  // namespace

std::string model_type_of(const std::string& path) {
  std::string type;
  read_config(find_model_dir(path), type);
  return type;
}

namespace {

// The config of a folder, with `head` where it has none and the family has that.
std::unique_ptr<ModelConfig> config_of(const std::string& folder, const Json& json, Head head) {
  auto config = read_model_config(json, join_path(folder, kConfigName));
  if (config->hub.head == Head::none && has_head(*config, head)) config->hub.head = head;
  return config;
}

// The base's weights in a model of the adapter's config, then the adapter on them.
StackModel load_adapted(const std::string& folder, const Json& json, const std::string& type,
                        Head head) {
  const StackModel base = load_stack_model(adapter_base(folder), head);
  nn::Parameters parameters(0);
  const std::unique_ptr<ModelConfig> config = config_of(folder, json, head);
  config->hub.has_pooler = base.model->config().hub.has_pooler;
  std::unique_ptr<Model> model = config->make(nn::Scope(parameters));
  const std::vector<std::string> missing =
      copy_weights(base.parameters, base.model->names(), parameters, model->names());
  merge_adapter(folder, parameters, missing);
  return {folder, type, std::move(parameters), std::move(model)};
}

}  // namespace

StackModel load_stack_model(const std::string& path, Head head) {
  const ProfilePhase phase("load model");
  const std::string folder = find_model_dir(path);
  std::string type;
  const Json json = read_config(folder, type);
  check(!is_translator_type(type), ErrorKind::data,
        "{}: it is a translator ({}), which heddle translate, align and eval --src take; a model "
        "of another type is needed here",
        path, type);
  if (is_adapter_alone(folder)) return load_adapted(folder, json, type, head);
  const std::unique_ptr<TensorFile> file = open_weights(folder);
  file->verify();
  nn::Parameters parameters = nn::Parameters::to_be_loaded(file->elements(), file->path());
  const std::unique_ptr<ModelConfig> config = config_of(folder, json, head);
  config->fit(*file);
  std::unique_ptr<Model> model = config->make(nn::Scope(parameters));
  parameters.load(*file, model->names());
  return {folder, type, std::move(parameters), std::move(model)};
}

void save_stack_config(const std::string& path, const Model& model, DType dtype) {
  make_directories(path);
  Json config = model.config().json();
  config["torch_dtype"] = torch_dtype_name(dtype);
  write_file_atomic(join_path(path, kConfigName), config.dump(2) + "\n");
}

void save_stack_model(const std::string& path, const Model& model, const nn::Parameters& parameters,
                      DType dtype) {
  save_stack_config(path, model, dtype);
  parameters.save(join_path(path, kWeightsName), dtype);
}

const char* torch_dtype_name(DType dtype) {
  return dtype == DType::f32 ? "float32" : dtype == DType::bf16 ? "bfloat16" : "float16";
}

}  // namespace heddle
