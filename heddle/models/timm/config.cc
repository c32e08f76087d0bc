// config.json of timm's, into that of a family and back.
#include <algorithm>
#include <array>

#include "heddle/models/timm/architectures.h"

namespace heddle::timm {
namespace {

struct Entry {
  const char* type;       // here
  const char* beginning;  // of the architecture's name
  const Architectures* family;
};
constexpr std::array kFamilies = {
    Entry{"vit", "vit", &kVit},          Entry{"vit", "deit", &kVit},
    Entry{"deit", "deit", &kVit},        Entry{"mlp_mixer", "mixer", &kMixer},
    Entry{"resnet", "resnet", &kResnet}, Entry{"swin", "swin", &kSwin}};

const Architectures& family_of_type(const std::string& type) {
  const auto* const found =
      std::ranges::find_if(kFamilies, [&](const Entry& entry) { return entry.type == type; });
  check(found != kFamilies.end(), ErrorKind::usage, "`format` is timm, which has no {}", type);
  return *found->family;
}

// The letters before the first number or underscore are those of a family.
const Architectures& family_of_name(const std::string& name, const std::string& source) {
  const std::string beginning = name.substr(0, name.find_first_of("_0123456789"));
  const auto* const found = std::ranges::find_if(
      kFamilies, [&](const Entry& entry) { return entry.beginning == beginning; });
  std::vector<std::string> known;
  for (const Entry& entry : kFamilies) known.emplace_back(entry.beginning);
  known.erase(std::unique(known.begin(), known.end()), known.end());
  check(found != kFamilies.end(), ErrorKind::data,
        "{}: architecture is '{}'; of timm's heddle reads those of {}", source, name,
        fmt::join(known, ", "));
  return *found->family;
}

// Classes by name where the checkpoint names them.
void add_labels(const Json& config, const Json& given, const std::string& source, Json& json) {
  const Json* const cfg = config.find("pretrained_cfg");
  const auto find = [&](const char* key) -> const Json* {
    for (const Json* from : {&config, cfg}) {
      const Json* found = from == nullptr ? nullptr : from->find(key);
      if (found != nullptr && !found->is_null()) return found;
    }
    return nullptr;
  };
  const Json* const count = given.is_null() ? find("num_classes") : &given;
  const int64_t classes = count == nullptr ? 1000 : count->as_int(source + ": key 'num_classes'");
  if (classes == 0) {
    const std::string& name = json.at("architectures").as_array()[0].as_string();
    json["architectures"] = std::vector<std::string>{name.substr(0, name.find("For")) + "Model"};
    return;
  }
  const Json* const names = find("label_names");
  if (names == nullptr || !names->is_array() || std::ssize(names->as_array()) != classes) {
    json["num_labels"] = classes;
    return;
  }
  const std::vector<std::string> labels = names->as_strings(source + ": key 'label_names'");
  for (size_t i = 0; i < labels.size(); ++i) json["id2label"][std::to_string(i)] = labels[i];
}

}  // namespace

bool is_config(const Json& config) {
  const Json* const type = config.find("model_type");
  const bool is_wrapper = type != nullptr && type->is_string() && *type == Json("timm_wrapper");
  return config.contains("architecture") && (type == nullptr || type->is_null() || is_wrapper);
}

Json family_config(const Json& config, const std::string& source) {
  Arguments args(config, source);
  const Json classes = args.get("num_classes");  // those of the checkpoint's own arguments win
  Json json = family_of_name(args.name(), source).config(args);
  args.finish();
  add_labels(config, classes, source, json);
  if (const Json* cfg = config.find("pretrained_cfg")) json["pretrained_cfg"] = *cfg;
  return json;
}

std::vector<NameRule> name_rules(const Json& config) {
  return family_of_type(config.get_string("model_type")).rules(config);
}

Written written_config(const ModelConfig& config) {
  const Architectures& family = family_of_type(config.type);
  const Json json = config.json();
  Written written = family.written(json, config.hub.head);
  const Json* const eps = json.find("layer_norm_eps");
  if (eps != nullptr && eps->as_double() != family.eps) {
    written.note += fmt::format(
        "{}the norms of timm's models add {}, those of this one {}; results differ a little",
        written.note.empty() ? "" : "; ", family.eps, eps->as_double());
  }
  const int64_t classes = config.hub.head == Head::none ? 0 : config.hub.classes();
  const Json& width = json.at(family.num_features);
  if (!written.config.contains("num_features")) {
    written.config["num_features"] = width.is_array() ? width.as_array().back() : width;
  }
  written.config["num_classes"] = classes;
  if (classes > 0) written.config["label_names"] = config.hub.labels;
  Json layers = Json(family.classifier);
  if (config.hub.head == Head::distilled_classes) {
    layers = std::vector<std::string>{family.classifier, std::string(family.classifier) + "_dist"};
  }
  written.config["pretrained_cfg"] = Json::object(
      {{"num_classes", classes}, {"first_conv", family.first_conv}, {"classifier", layers}});
  if (!family.has_img_size) written.config["pretrained_cfg"]["fixed_input_size"] = false;
  return written;
}

}  // namespace heddle::timm
