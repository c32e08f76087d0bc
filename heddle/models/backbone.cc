// Which backbone stands in another model, and what its tensors are called
// there.
#include "heddle/models/backbone.h"

#include <optional>
#include <string_view>

#include "heddle/models/registry.h"
#include "heddle/models/timm/architectures.h"

namespace heddle {
namespace {

constexpr const char* kTimm = "timm_backbone";
constexpr int64_t kTimmStages =
    4;  // of its ResNets, of which those behind the last map are cut off

bool is_timm(const Json& backbone) {
  const Json* type = backbone.find("model_type");
  return type != nullptr && *type == Json(kTimm);
}

// The stage, from 1, of "stage3" or timm's "layer3".
std::optional<int64_t> number_of(const std::string& name) {
  const std::optional<int64_t> number = timm::number_behind(name, "stage");
  return number ? number : timm::number_behind(name, "layer");
}

// The last one of a list that says something.
const Json* last_of(const Json& config, const char* key, const std::string& what) {
  const Json* list = config.find(key);
  if (list == nullptr || list->is_null() || list->as_array(what).empty()) return nullptr;
  return &list->as_array().back();
}

// The map that is read, from 0: of several the last, by name or else by number, in which 0 is what
// stands before the first stage, and -1 the last one.
size_t map_of(const Json& config, int64_t stages, const std::string& source) {
  for (const char* key : {"out_features", "out_indices"}) {
    const std::string what = fmt::format("{}: key '{}'", source, key);
    const Json* const last = last_of(config, key, what);
    if (last == nullptr) continue;
    std::optional<int64_t> stage;
    if (key == std::string_view("out_features")) {
      stage = number_of(last->as_string(what));
    } else {
      stage = last->as_int(what);
      if (*stage < 0) *stage += stages + 1;
    }
    check(stage && *stage >= 1 && *stage <= stages, ErrorKind::data,
          "{} names {}; there are stage1 to stage{}", what, last->dump(), stages);
    return static_cast<size_t>(*stage - 1);
  }
  return static_cast<size_t>(stages - 1);
}

// The same network in the keys of a family that heddle has.
Json without_timm(const Json& backbone, const std::string& source) {
  const std::string& name = backbone.get_string("backbone", source);
  Json json = timm::family_config(Json::object({{"architecture", name}}), source);
  check(json.get_string("model_type") == "resnet", ErrorKind::data,
        "{}: timm's backbone '{}' is no ResNet; heddle has these alone below others", source, name);
  const Json* const stride = backbone.find("output_stride");
  check(stride == nullptr || stride->is_null() || *stride == Json(32), ErrorKind::data,
        "{}: key 'output_stride' is {}; heddle's convolutions are not dilated, so it is 32", source,
        stride == nullptr ? "" : stride->describe());
  const size_t stages = map_of(backbone, kTimmStages, source) + 1;
  for (const char* key : {"depths", "hidden_sizes"}) {
    std::vector<int64_t> all = json.at(key).as_ints();
    all.resize(stages);
    json[key] = all;
  }
  for (const char* key : {"num_labels", "num_channels"}) json.erase(key);
  if (const Json* channels = backbone.find("num_channels")) json["num_channels"] = *channels;
  return json;
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

std::string norm_name(size_t map) { return fmt::format("stage{}", map + 1); }

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
  own->hub.is_backbone = true;
  model_ = own->make(is_timm(config) ? s.renamed(timm_name) : s);
  images_ = &model_->need<ImageModel>(source);
  backbone_ = model_->as<Backbone>();
  if (backbone_ == nullptr) {
    channels_ = images_->facts().width;
    return;
  }
  const std::vector<int64_t> all = backbone_->channels();
  map_ = map_of(config, is_timm(config) ? kTimmStages : std::ssize(all), source);
  channels_ = all[map_];
  if (backbone_->has_normed_maps()) {
    norm_.emplace(s / "hidden_states_norms" / norm_name(map_), channels_, 1e-5);
  }
}

// An observer would take its states for those of another stack.
FeatureMap ChosenBackbone::features(const ImageRows& images, const nn::Run& run) const {
  nn::Run apart = run;
  apart.observer = nullptr;
  if (backbone_ == nullptr) return patches(images, apart);
  FeatureMap map = backbone_->features(images, apart)[map_];
  if (norm_) map.x = (*norm_)(map.x);
  return map;
}

// The states of the grid, without those of the tokens before it.
FeatureMap ChosenBackbone::patches(const ImageRows& images, const nn::Run& run) const {
  FeatureMap map{images_->grid_states(images_->hidden(images, run), images), {}};
  for (const ImageSize& size : *images.sizes) map.sizes.push_back(images_->grid(size));
  return map;
}

ImageSize ChosenBackbone::grid(const ImageSize& image) const {
  return backbone_ != nullptr ? backbone_->grid_of(image, map_) : images_->grid(image);
}

// transformers keeps norms of maps that only its callers read; its newer files name Swin's base.
nn::TensorNames ChosenBackbone::names() const {
  nn::TensorNames names = model_->names();
  for (size_t i = 0; norm_ && i < backbone_->channels().size(); ++i) {
    for (const char* part : {"weight", "bias"}) {
      if (i == map_) continue;
      names.unneeded.push_back(fmt::format("hidden_states_norms.{}.{}", norm_name(i), part));
    }
  }
  for (const char* part : {"embeddings", "encoder"}) {
    if (names.base != "swin") continue;
    names.respelled.emplace_back(fmt::format("backbone.model.{}.", part),
                                 fmt::format("backbone.model.swin.{}.", part));
  }
  return names;
}

}  // namespace heddle
