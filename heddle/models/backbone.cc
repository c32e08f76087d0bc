// Which backbone stands in another model, and what its tensors are called
// there.
#include "heddle/models/backbone.h"

#include <array>

#include "heddle/models/registry.h"

namespace heddle {
namespace {

constexpr const char* kTimm = "timm_backbone";

struct TimmResNet {
  const char* name;
  const char* json;
};
constexpr std::array kTimmResNets = {
    TimmResNet{"resnet18", R"({"layer_type": "basic", "depths": [2, 2, 2, 2],
                               "hidden_sizes": [64, 128, 256, 512]})"},
    TimmResNet{"resnet34", R"({"layer_type": "basic", "depths": [3, 4, 6, 3],
                               "hidden_sizes": [64, 128, 256, 512]})"},
    TimmResNet{"resnet50",
               R"({"layer_type": "bottleneck", "depths": [3, 4, 6, 3],
                               "hidden_sizes": [256, 512, 1024, 2048]})"},
    TimmResNet{"resnet101",
               R"({"layer_type": "bottleneck", "depths": [3, 4, 23, 3],
                                "hidden_sizes": [256, 512, 1024, 2048]})"},
};

bool is_timm(const Json& backbone) {
  const Json* type = backbone.find("model_type");
  return type != nullptr && *type == Json(kTimm);
}

// The same network in the keys of a family that heddle has.
Json without_timm(const Json& backbone, const std::string& source) {
  const std::string& name = backbone.get_string("backbone", source);
  for (const TimmResNet& known : kTimmResNets) {
    if (name != known.name) continue;
    Json json = Json::parse(known.json);
    json["model_type"] = "resnet";
    json["embedding_size"] = 64;
    if (const Json* channels = backbone.find("num_channels")) json["num_channels"] = *channels;
    return json;
  }
  fail(ErrorKind::data, "{}: timm's backbone '{}' is not known; heddle has resnet18 to resnet101",
       source, name);
}

// The config in the keys of a family that heddle has, without those that say
// what is read of it.
Json own_config(const Json& given, int64_t channels, const std::string& source) {
  check(given.is_object(), ErrorKind::data,
        "{} is {}; the config of a model with a model_type is needed", source, given.describe());
  Json json = is_timm(given) ? without_timm(given, source) : given;
  for (const char* key : {"out_features", "out_indices", "stage_names", "architectures"}) {
    json.erase(key);
  }
  if (!json.contains("num_channels")) json["num_channels"] = channels;
  const Json* type = json.find("model_type");
  if (type != nullptr && *type == Json("resnet") && !json.contains("norm")) {
    json["norm"] = "frozen_batch";
  }
  return json;
}

// The number of the map of "stage3", from 0; of several names the last counts;
// -1: none is named.
int64_t named_map(const Json& config, const std::string& source) {
  const Json* maps = config.find("out_features");
  if (maps == nullptr || maps->is_null()) return -1;
  const std::vector<std::string> names = maps->as_strings(source + ": key 'out_features'");
  if (names.empty() || !names.back().starts_with("stage")) return -1;
  return std::atoll(names.back().c_str() + 5) - 1;
}

std::string replaced(std::string name, const std::string& from, const std::string& to) {
  if (const size_t at = name.find(from); at != name.npos) name.replace(at, from.size(), to);
  return name;
}

// timm's name of what transformers' ResNet calls `name`, both under the same
// base.
std::string timm_name(std::string name) {
  name = replaced(name, "embedder.embedder.convolution", "conv1");
  name = replaced(name, "embedder.embedder.normalization", "bn1");
  name = replaced(name, "shortcut.convolution", "downsample.0");
  name = replaced(name, "shortcut.normalization", "downsample.1");
  for (int64_t i = 0; i < 4; ++i) {
    name =
        replaced(name, fmt::format("encoder.stages.{}.layers", i), fmt::format("layer{}", i + 1));
    name = replaced(name, fmt::format(".layer.{}.convolution", i), fmt::format(".conv{}", i + 1));
    name = replaced(name, fmt::format(".layer.{}.normalization", i), fmt::format(".bn{}", i + 1));
  }
  return name;
}

}  // namespace

ChosenBackbone::ChosenBackbone(const nn::Scope& s, const Json& config, int64_t channels,
                               const std::string& source) {
  const std::unique_ptr<ModelConfig> own =
      read_model_config(own_config(config, channels, source), source);
  own->hub.head = Head::none;
  own->hub.has_pooler = false;
  model_ = own->make(is_timm(config) ? s.renamed(timm_name) : s);
  backbone_ = &model_->need<Backbone>(source);
  const std::vector<int64_t> all = backbone_->channels();
  const int64_t named = named_map(config, source);
  check(named < std::ssize(all), ErrorKind::data, "{}: 'out_features' names stage {}; there are {}",
        source, named + 1, all.size());
  map_ = named < 0 ? all.size() - 1 : static_cast<size_t>(named);
  channels_ = all[map_];
}

// An observer would take its states for those of another stack.
FeatureMap ChosenBackbone::features(const ImageRows& images, const nn::Run& run) const {
  nn::Run apart = run;
  apart.observer = nullptr;
  return backbone_->features(images, apart)[map_];
}

}  // namespace heddle
