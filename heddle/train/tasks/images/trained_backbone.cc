// Names of a model's tensors, as another model has them inside.
#include "heddle/train/tasks/images/trained_backbone.h"

#include <algorithm>
#include <map>

namespace heddle::train {

// Norms of maps: those who read a map have them, not the model that gives it.
constexpr const char* kMapNorms = "hidden_states_norms.";

Json TrainedBackbone::config() const {
  Json json = reader_.loaded.model->config().json();
  for (const char* key : {"id2label", "label2id", "architectures", "torch_dtype"}) json.erase(key);
  const Json* norm = json.find("norm");
  if (norm != nullptr && *norm == Json("batch")) json["norm"] = "frozen_batch";
  return json;
}

void TrainedBackbone::copy_weights(nn::Parameters& parameters, const std::string& prefix) const {
  const std::string base = reader_.loaded.model->names().base + ".";
  std::map<std::string, const nn::Parameter*> known;
  for (const auto& p : reader_.loaded.parameters.all()) {
    const std::string& name = p->name();
    known[name.starts_with(base) ? name.substr(base.size()) : name] = p.get();
  }
  for (auto& p : parameters.all()) {
    if (!p->name().starts_with(prefix)) continue;
    const std::string name = p->name().substr(prefix.size());
    const auto found = known.find(name);
    if (found == known.end() && name.starts_with(kMapNorms)) continue;
    check(found != known.end() && found->second->shape() == p->shape(), ErrorKind::data,
          "{}: it has no weight for '{}', {}", path_, p->name(), p->shape().str());
    const std::vector<float> values = found->second->value().to_floats();
    std::ranges::copy(values, p->value().data<float>());
    p->changed(true);
  }
}

void check_backbone(const std::string& path, const RunPaths& paths) {
  if (path.empty()) return;
  check(paths.from.empty(), ErrorKind::usage,
        "train: `from` {} is a model with a backbone of its own, and `backbone` {} another; give "
        "one of them",
        paths.from, path);
  static_cast<void>(find_model_dir(path));
}

}  // namespace heddle::train
