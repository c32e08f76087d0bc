// timm's ViT and DeiT.
#include <algorithm>
#include <array>
#include <span>

#include "heddle/models/timm/architectures.h"

namespace heddle::timm {
namespace {

struct VitSize {
  const char* name;
  int64_t width, layers, heads, hidden, patch;
  bool has_layer_scale = false;  // and no biases of queries, keys and values
};
// Dosovitskiy et al. 2021, table 1; Touvron et al. 2021, table 1; Zhai et al. 2022, table 2. The
// patches are those of an architecture that timm has.
constexpr std::array kVitSizes = {
    VitSize{"tiny", 192, 12, 3, 768, 16},       VitSize{"small", 384, 12, 6, 1536, 16},
    VitSize{"base", 768, 12, 12, 3072, 16},     VitSize{"large", 1024, 24, 16, 4096, 16},
    VitSize{"huge", 1280, 32, 16, 5120, 14},    VitSize{"giant", 1408, 40, 16, 6144, 14},
    VitSize{"gigantic", 1664, 48, 16, 8192, 14}};
// Those without a class token, vit_SIZE_patchP_gap_PIXELS: timm's own, and of Assran et al. 2023.
constexpr std::array kGapSizes = {
    VitSize{"medium", 512, 12, 8, 2048, 16, true}, VitSize{"betwixt", 640, 12, 10, 2560, 16, true},
    VitSize{"base", 768, 12, 16, 3072, 16}, VitSize{"huge", 1280, 32, 16, 5120, 14},
    VitSize{"giant", 1408, 40, 16, 6144, 16}};

// What an architecture's name says.
struct VitName {
  VitSize size = {};
  int64_t patch = 0, edge = 0;
  bool is_distilled = false, is_gap = false;
};

// Takes one of five parts out of a name, if it is there.
bool take(std::vector<std::string>& fields, size_t at, const char* part) {
  if (fields.size() != 5 || fields[at] != part) return false;
  fields.erase(fields.begin() + static_cast<int64_t>(at));
  return true;
}

VitName parsed_name(const Arguments& args) {
  std::vector<std::string> fields = fields_of(args.name());
  VitName name;
  name.is_distilled = fields[0] == "deit" && take(fields, 2, "distilled");
  name.is_gap = fields[0] == "vit" && take(fields, 3, "gap");
  const bool has_parts = fields.size() == 4 && (fields[0] == "vit" || fields[0] == "deit");
  const auto patch = has_parts ? number_behind(fields[2], "patch") : std::nullopt;
  const auto edge = has_parts ? number_behind(fields[3], "") : std::nullopt;
  const std::span<const VitSize> sizes =
      name.is_gap ? std::span<const VitSize>(kGapSizes) : std::span<const VitSize>(kVitSizes);
  const auto size = std::ranges::find_if(
      sizes, [&](const VitSize& s) { return has_parts && s.name == fields[1]; });
  check(patch && edge && size != sizes.end(), ErrorKind::data,
        "{}: architecture is '{}'; of these heddle knows vit_SIZE_patchP_PIXELS, "
        "vit_SIZE_patchP_gap_PIXELS, deit_.. and deit_SIZE_distilled_.., plain ViTs all; those of "
        "other names (clip, reg4, rpn, siglip, ..) have norms, tokens or blocks that it has not",
        args.source(), args.name());
  name.size = *size, name.patch = *patch, name.edge = *edge;
  return name;
}

// What is classified, and where the last norm stands. Where there is no token before the patches
// nothing is said of its position, or of its part in a mean.
void add_pooling(Arguments& args, const VitName& name, Json& json) {
  const bool has_token = args.flag("class_token", !name.is_gap);
  const std::string pool =
      name.is_gap ? args.text("global_pool", "avg") : args.global_pool("token");
  check(pool == "token" || pool == "avg", ErrorKind::data,
        "{}: 'global_pool' is '{}'; heddle has no {} of that kind", args.source(), pool,
        args.name());
  check(has_token || pool == "avg", ErrorKind::data,
        "{} is false and 'global_pool' {}; without a class token it must be avg",
        args.what("class_token"), pool);
  const bool goes_by_pool = !name.is_gap || args.is_given("fc_norm");  // as null
  const bool is_behind = args.flag("fc_norm", goes_by_pool && pool == "avg");
  check(pool == "avg" || !is_behind, ErrorKind::data,
        "{} is true and 'global_pool' token; heddle has that norm behind a mean alone",
        args.what("fc_norm"));
  for (const char* key : {"no_embed_class", "pool_include_prefix"}) {
    if (has_token) {
      args.neutral(key, {false});
    } else {
      (void)args.get(key);
    }
  }
  json["pooling"] = pool == "avg" ? "mean" : "token";
  json["class_token"] = has_token;
  json["norm_after_pooling"] = is_behind;
}

// Arguments that say nothing, or what heddle does.
void check_neutral(Arguments& args) {
  args.neutral("pos_embed", {"learn"});
  args.neutral("final_norm", {true});
  args.neutral("proj_bias", {true});
  args.neutral("reg_tokens", {0});
  args.neutral("init_values", {});
  for (const char* key :
       {"qk_norm", "scale_attn_norm", "scale_mlp_norm", "pre_norm", "dynamic_img_pad"}) {
    args.neutral(key, {false});
  }
  for (const char* key : {"drop_rate", "pos_drop_rate", "patch_drop_rate", "dynamic_img_size",
                          "strict_img_size", "weight_init", "fix_init"}) {
    (void)args.get(key);  // of training, or of what timm accepts
  }
}

Json vit_config(Arguments& args) {
  const VitName name = parsed_name(args);
  const VitSize* const size = &name.size;
  check(!size->has_layer_scale || args.is_given("init_values"), ErrorKind::data,
        "{}: architecture is '{}', whose blocks scale what they add (layer scale, 'init_values'); "
        "heddle's do not",
        args.source(), args.name());
  const int64_t width = args.integer("embed_dim", size->width);
  const double ratio = args.number(
      "mlp_ratio", static_cast<double>(size->hidden) / static_cast<double>(size->width));
  Json json = Json::object({{"model_type", name.is_distilled ? "deit" : "vit"},
                            {"hidden_size", width},
                            {"num_hidden_layers", args.integer("depth", size->layers)},
                            {"num_attention_heads", args.integer("num_heads", size->heads)},
                            {"intermediate_size", args.hidden_width(width, ratio)},
                            {"hidden_act", args.activation()},
                            {"layer_norm_eps", 1e-6},
                            {"patch_size", args.integer("patch_size", name.patch)},
                            {"qkv_bias", args.flag("qkv_bias", !size->has_layer_scale)},
                            {"hidden_dropout_prob", args.number("proj_drop_rate", 0)},
                            {"attention_probs_dropout_prob", args.number("attn_drop_rate", 0)},
                            {"drop_path_rate", args.number("drop_path_rate", 0)},
                            {"antialiased_positions", true}});
  args.images(json, name.edge);
  if (name.is_distilled) {
    args.neutral("global_pool", {"token"});
    args.neutral("class_token", {true});
    for (const char* key : {"fc_norm", "no_embed_class", "pool_include_prefix"}) {
      args.neutral(key, {false});
    }
  } else {
    add_pooling(args, name, json);
  }
  check_neutral(args);
  const std::string kin = name.is_distilled ? "DeiT" : "ViT";
  json["architectures"] = std::vector<std::string>{
      kin + (name.is_distilled ? "ForImageClassificationWithTeacher" : "ForImageClassification")};
  return json;
}

std::vector<NameRule> vit_rules(const Json& config) {
  const bool is_distilled = config.get_string("model_type") == "deit";
  const std::string attention = "encoder.layer.#.attention.attention.";
  std::vector<NameRule> rules = {
      {"cls_token", {"embeddings.cls_token"}},
      {"dist_token", {"embeddings.distillation_token"}},
      {"pos_embed", {"embeddings.position_embeddings"}},
      {"patch_embed.proj.*", {"embeddings.patch_embeddings.projection.*"}},
      {"blocks.#.norm1.*", {"encoder.layer.#.layernorm_before.*"}},
      {"blocks.#.attn.qkv.*", {attention + "query.*", attention + "key.*", attention + "value.*"}},
      {"blocks.#.attn.proj.*", {"encoder.layer.#.attention.output.dense.*"}},
      {"blocks.#.norm2.*", {"encoder.layer.#.layernorm_after.*"}},
      {"blocks.#.mlp.fc1.*", {"encoder.layer.#.intermediate.dense.*"}},
      {"blocks.#.mlp.fc2.*", {"encoder.layer.#.output.dense.*"}},
      {flag_of(config, "norm_after_pooling", false) ? "fc_norm.*" : "norm.*", {"layernorm.*"}},
      {"head.*", {is_distilled ? "cls_classifier.*" : "classifier.*"}}};
  if (is_distilled) rules.push_back({"head_dist.*", {"distillation_classifier.*"}});
  return rules;
}

std::string pool_there(const Json& json) {
  const Json* const pooling = json.find("pooling");
  return pooling != nullptr && *pooling == Json("mean") ? "avg" : "token";
}

Json vit_arguments(const Json& json) {
  const int64_t width = json.get_int("hidden_size");
  Json args = Json::object({{"img_size", both_sides(json)},
                            {"patch_size", json.at("patch_size")},
                            {"in_chans", json.at("num_channels")},
                            {"embed_dim", width},
                            {"depth", json.at("num_hidden_layers")},
                            {"num_heads", json.at("num_attention_heads")},
                            {"mlp_ratio", ratio_of(json.get_int("intermediate_size"), width)},
                            {"qkv_bias", json.at("qkv_bias")},
                            {"act_layer", activation_there(json)},
                            {"proj_drop_rate", json.at("hidden_dropout_prob")},
                            {"attn_drop_rate", json.at("attention_probs_dropout_prob")},
                            {"drop_path_rate", json.at("drop_path_rate")},
                            {"global_pool", pool_there(json)}});
  if (pool_there(json) == "token") return args;
  args["class_token"] = flag_of(json, "class_token", true);
  args["fc_norm"] = flag_of(json, "norm_after_pooling", false);
  return args;
}

std::string vit_name(const Json& json, bool is_distilled) {
  const VitSize* size = std::ranges::find(kVitSizes, json.get_int("hidden_size"), &VitSize::width);
  const VitSize* const base = &kVitSizes[2];
  if (size == kVitSizes.end() || (is_distilled && size > base)) size = base;
  return fmt::format("{}_{}_{}patch{}_224", is_distilled ? "deit" : "vit", size->name,
                     is_distilled ? "distilled_" : "", size->patch);
}

Written vit_written(const Json& json, Head head) {
  const bool is_deit = json.get_string("model_type") == "deit";
  check(!is_deit || head == Head::distilled_classes, ErrorKind::data,
        "the model has a distillation token without a head of its own; timm has no such model");
  check(!flag_of(json, "two_dimensional_positions", false), ErrorKind::data,
        "the model has learned positions of columns and rows (two_dimensional_positions); timm has "
        "no such model");
  return {Json::object({{"architecture", vit_name(json, is_deit)},
                        {"global_pool", pool_there(json)},
                        {"model_args", vit_arguments(json)}}),
          ""};
}

}  // namespace

const Architectures kVit = {vit_config,    vit_rules,          vit_written, 1e-6,
                            "hidden_size", "patch_embed.proj", "head"};

}  // namespace heddle::timm
