// timm's ResNet.
#include <algorithm>
#include <array>

#include "heddle/models/timm/architectures.h"

namespace heddle::timm {
namespace {

struct ResnetSize {
  const char* name;
  const char* layer;
  std::array<int64_t, 4> depths;
};
// He et al. 2016, table 1, and others of timm's of the same stem.
constexpr std::array kResnetSizes = {ResnetSize{"resnet18", "basic", {2, 2, 2, 2}},
                                     ResnetSize{"resnet34", "basic", {3, 4, 6, 3}},
                                     ResnetSize{"resnet26", "bottleneck", {2, 2, 2, 2}},
                                     ResnetSize{"resnet50", "bottleneck", {3, 4, 6, 3}},
                                     ResnetSize{"resnet101", "bottleneck", {3, 4, 23, 3}},
                                     ResnetSize{"resnet152", "bottleneck", {3, 8, 36, 3}},
                                     ResnetSize{"resnet200", "bottleneck", {3, 24, 36, 3}}};
constexpr int64_t kReduction = 4;  // of a bottleneck

Json resnet_config(Arguments& args) {
  const auto* const size = std::ranges::find_if(
      kResnetSizes, [&](const ResnetSize& s) { return s.name == args.name(); });
  std::vector<std::string> known;
  for (const ResnetSize& s : kResnetSizes) known.emplace_back(s.name);
  check(size != kResnetSizes.end(), ErrorKind::data,
        "{}: architecture is '{}'; of ResNets heddle knows {}", args.source(), args.name(),
        fmt::join(known, ", "));
  const Json layers = args.get("layers"), channels = args.get("channels");
  std::vector<int64_t> depths(size->depths.begin(), size->depths.end());
  if (!layers.is_null()) depths = layers.as_ints(args.what("layers"));
  std::vector<int64_t> widths = {64, 128, 256, 512};
  if (!channels.is_null()) widths = channels.as_ints(args.what("channels"));
  const bool is_bottleneck = size->layer == std::string("bottleneck");
  for (int64_t& width : widths) width *= is_bottleneck ? kReduction : 1;
  const std::string act = args.get("act_layer").is_null() ? "relu" : args.activation();
  Json json = Json::object({{"model_type", "resnet"},
                            {"embedding_size", 64},
                            {"hidden_sizes", widths},
                            {"depths", depths},
                            {"layer_type", size->layer},
                            {"hidden_act", act},
                            {"layer_act", act},
                            {"drop_path_rate", args.number("drop_path_rate", 0)}});
  // A ResNet takes any size: that of the preparation is what it is made for.
  args.images(json, 224);
  if (json.at("image_size").is_array()) {
    const std::vector<int64_t> sides = json.at("image_size").as_ints();
    check(sides[0] == sides[1], ErrorKind::data,
          "{}: images are {} x {}; heddle's ResNets are made for squares", args.source(), sides[0],
          sides[1]);
    json["image_size"] = sides[0];
  }
  args.neutral("global_pool", {"avg"});
  args.neutral("output_stride", {32});
  args.neutral("cardinality", {1});
  args.neutral("base_width", {64});
  args.neutral("stem_width", {64});
  args.neutral("stem_type", {""});
  args.neutral("block_reduce_first", {1});
  args.neutral("down_kernel_size", {1});
  args.neutral("norm_layer", {"batchnorm2d", "batchnorm"});
  for (const char* key : {"replace_stem_pool", "avg_down"}) args.neutral(key, {false});
  for (const char* key : {"drop_rate", "drop_block_rate", "zero_init_last"}) (void)args.get(key);
  json["architectures"] = std::vector<std::string>{"ResNetForImageClassification"};
  return json;
}

// timm counts stages and convolutions from 1.
std::vector<NameRule> resnet_rules(const Json& config) {
  std::vector<NameRule> rules = {{"conv1.*", {"embedder.embedder.convolution.*"}},
                                 {"bn1.*", {"embedder.embedder.normalization.*"}},
                                 {"fc.*", {"classifier.1.*"}}};
  for (size_t stage = 0; stage < config.at("depths").size(); ++stage) {
    const std::string theirs = fmt::format("layer{}.#.", stage + 1);
    const std::string ours = fmt::format("encoder.stages.{}.layers.#.", stage);
    for (int i = 0; i < 3; ++i) {
      const std::string layer = fmt::format("{}layer.{}.", ours, i);
      rules.push_back({fmt::format("{}conv{}.*", theirs, i + 1), {layer + "convolution.*"}});
      rules.push_back({fmt::format("{}bn{}.*", theirs, i + 1), {layer + "normalization.*"}});
    }
    rules.push_back({theirs + "downsample.0.*", {ours + "shortcut.convolution.*"}});
    rules.push_back({theirs + "downsample.1.*", {ours + "shortcut.normalization.*"}});
  }
  return rules;
}

Written resnet_written(const Json& json, Head) {
  const auto is = [&](const char* key, const Json& value) {
    const Json* const found = json.find(key);
    check(found == nullptr || *found == value, ErrorKind::data,
          "{} is {}; timm's ResNets have {} alone", key, found == nullptr ? "" : found->describe(),
          value.describe());
  };
  is("embedding_size", 64), is("stem", "imagenet"), is("downsample", "stride"), is("norm", "batch");
  check(json.at("layer_act") == json.at("hidden_act"), ErrorKind::data,
        "hidden_act is {} and layer_act {}; timm's ResNets have one for both",
        json.at("hidden_act").describe(), json.at("layer_act").describe());
  is("downsample_in_first_stage", false), is("downsample_in_bottleneck", false);
  const std::string layer = json.get_string("layer_type");
  check(layer != "plain" && json.at("depths").size() == 4, ErrorKind::data,
        "timm's ResNets have four stages of basic or bottleneck layers");
  const std::vector<int64_t> depths = json.at("depths").as_ints();
  std::vector<int64_t> channels = json.at("hidden_sizes").as_ints();
  for (int64_t& width : channels) width /= layer == "bottleneck" ? kReduction : 1;
  const auto* size = std::ranges::find_if(kResnetSizes, [&](const ResnetSize& s) {
    return s.layer == layer && std::ranges::equal(s.depths, depths);
  });
  if (size == kResnetSizes.end()) size = &kResnetSizes[layer == "bottleneck" ? 3 : 0];
  return {Json::object({{"architecture", size->name},
                        {"global_pool", "avg"},
                        {"model_args", Json::object({{"layers", depths},
                                                     {"channels", channels},
                                                     {"in_chans", json.at("num_channels")},
                                                     {"act_layer", activation_there(json)}})}}),
          ""};
}

}  // namespace

const Architectures kResnet = {resnet_config,  resnet_rules, resnet_written, 0,
                               "hidden_sizes", "conv1",      "fc",           false};

}  // namespace heddle::timm
