// timm's Swin.
#include <algorithm>
#include <array>

#include "heddle/models/timm/architectures.h"

namespace heddle::timm {
namespace {

struct SwinSize {
  const char* name;
  int64_t width;
  std::array<int64_t, 4> depths, heads;
};
// Liu et al. 2021, section 3.3.
constexpr std::array kSwinSizes = {SwinSize{"tiny", 96, {2, 2, 6, 2}, {3, 6, 12, 24}},
                                   SwinSize{"small", 96, {2, 2, 18, 2}, {3, 6, 12, 24}},
                                   SwinSize{"base", 128, {2, 2, 18, 2}, {4, 8, 16, 32}},
                                   SwinSize{"large", 192, {2, 2, 18, 2}, {6, 12, 24, 48}}};

Json swin_config(Arguments& args) {
  const std::vector<std::string> fields = fields_of(args.name());
  const bool is_whole = fields.size() == 5;
  const auto patch = is_whole ? number_behind(fields[2], "patch") : std::nullopt;
  const auto window = is_whole ? number_behind(fields[3], "window") : std::nullopt;
  const auto edge = is_whole ? number_behind(fields[4], "") : std::nullopt;
  const auto* const size = std::ranges::find_if(
      kSwinSizes, [&](const SwinSize& s) { return fields.size() > 1 && s.name == fields[1]; });
  check(patch && window && edge && size != kSwinSizes.end(), ErrorKind::data,
        "{}: architecture is '{}'; of these heddle knows swin_SIZE_patchP_windowW_PIXELS",
        args.source(), args.name());
  const auto list = [&](const char* key, const std::array<int64_t, 4>& otherwise) {
    const Json value = args.get(key);
    return value.is_null() ? std::vector<int64_t>(otherwise.begin(), otherwise.end())
                           : value.as_ints(args.what(key));
  };
  Json json = Json::object({{"model_type", "swin"},
                            {"embed_dim", args.integer("embed_dim", size->width)},
                            {"depths", list("depths", size->depths)},
                            {"num_heads", list("num_heads", size->heads)},
                            {"window_size", args.integer("window_size", *window)},
                            {"patch_size", args.integer("patch_size", *patch)},
                            {"mlp_ratio", args.number("mlp_ratio", 4)},
                            {"qkv_bias", args.flag("qkv_bias", true)},
                            {"hidden_dropout_prob", args.number("proj_drop_rate", 0)},
                            {"attention_probs_dropout_prob", args.number("attn_drop_rate", 0)},
                            {"drop_path_rate", args.number("drop_path_rate", 0.1)},
                            {"layer_norm_eps", 1e-5}});
  args.images(json, *edge);
  args.neutral("global_pool", {"avg"});
  args.neutral("norm_layer", {"layernorm"});
  args.neutral("always_partition", {false});
  for (const char* key : {"drop_rate", "weight_init", "strict_img_size", "dynamic_img_size"}) {
    (void)args.get(key);
  }
  json["architectures"] = std::vector<std::string>{"SwinForImageClassification"};
  return json;
}

// timm counts what merges neighbours to the stage behind it.
std::vector<NameRule> swin_rules(const Json& config) {
  const std::string theirs = "layers.#.blocks.#.", ours = "encoder.layers.#.blocks.#.";
  const std::string attention = ours + "attention.self.";
  std::vector<NameRule> rules = {
      {"patch_embed.proj.*", {"embeddings.patch_embeddings.projection.*"}},
      {"patch_embed.norm.*", {"embeddings.norm.*"}},
      {theirs + "norm1.*", {ours + "layernorm_before.*"}},
      {theirs + "attn.relative_position_bias_table", {attention + "relative_position_bias_table"}},
      {theirs + "attn.qkv.*", {attention + "query.*", attention + "key.*", attention + "value.*"}},
      {theirs + "attn.proj.*", {ours + "attention.output.dense.*"}},
      {theirs + "norm2.*", {ours + "layernorm_after.*"}},
      {theirs + "mlp.fc1.*", {ours + "intermediate.dense.*"}},
      {theirs + "mlp.fc2.*", {ours + "output.dense.*"}},
      {"norm.*", {"layernorm.*"}},
      {"head.fc.*", {"classifier.*"}}};
  for (size_t stage = 1; stage < config.at("depths").size(); ++stage) {
    rules.push_back({fmt::format("layers.{}.downsample.*", stage),
                     {fmt::format("encoder.layers.{}.downsample.*", stage - 1)}});
  }
  return rules;
}

Written swin_written(const Json& json, Head) {
  const Json* const absolute = json.find("use_absolute_embeddings");
  check(absolute == nullptr || *absolute == Json(false), ErrorKind::data,
        "use_absolute_embeddings is true; timm's Swins have no such positions");
  check(json.get_string("hidden_act") == "gelu", ErrorKind::data,
        "hidden_act is {}; timm's Swins have gelu alone", json.get_string("hidden_act"));
  const std::vector<int64_t> depths = json.at("depths").as_ints();
  const auto* size = std::ranges::find_if(kSwinSizes, [&](const SwinSize& s) {
    return s.width == json.get_int("embed_dim") && std::ranges::equal(s.depths, depths);
  });
  if (size == kSwinSizes.end()) size = kSwinSizes.data();
  Json args = Json::object({{"img_size", both_sides(json)}, {"in_chans", json.at("num_channels")}});
  for (const char* key : {"patch_size", "embed_dim", "depths", "num_heads", "window_size",
                          "mlp_ratio", "qkv_bias", "drop_path_rate"}) {
    args[key] = json.at(key);
  }
  args["proj_drop_rate"] = json.at("hidden_dropout_prob");
  args["attn_drop_rate"] = json.at("attention_probs_dropout_prob");
  return {Json::object({{"architecture", fmt::format("swin_{}_patch4_window7_224", size->name)},
                        {"num_features", json.get_int("embed_dim") << (depths.size() - 1)},
                        {"global_pool", "avg"},
                        {"model_args", args}}),
          ""};
}

}  // namespace

const Architectures kSwin = {swin_config, swin_rules,         swin_written, 1e-5,
                             "embed_dim", "patch_embed.proj", "head.fc"};

}  // namespace heddle::timm
