// timm's ViT and DeiT.
#include <algorithm>
#include <array>

#include "heddle/models/timm/architectures.h"

namespace heddle::timm {
namespace {

struct VitSize {
  const char* name;
  int64_t width, layers, heads, hidden, patch;
};
// Dosovitskiy et al. 2021, table 1; Touvron et al. 2021, table 1; Zhai et al. 2022, table 2. The
// patches are those of an architecture that timm has.
constexpr std::array kVitSizes = {
    VitSize{"tiny", 192, 12, 3, 768, 16},       VitSize{"small", 384, 12, 6, 1536, 16},
    VitSize{"base", 768, 12, 12, 3072, 16},     VitSize{"large", 1024, 24, 16, 4096, 16},
    VitSize{"huge", 1280, 32, 16, 5120, 14},    VitSize{"giant", 1408, 40, 16, 6144, 14},
    VitSize{"gigantic", 1664, 48, 16, 8192, 14}};

Json vit_config(Arguments& args) {
  std::vector<std::string> fields = fields_of(args.name());
  const bool is_distilled = fields.size() == 5 && fields[0] == "deit" && fields[2] == "distilled";
  if (is_distilled) fields.erase(fields.begin() + 2);
  const auto patch = fields.size() == 4 ? number_behind(fields[2], "patch") : std::nullopt;
  const auto edge = fields.size() == 4 ? number_behind(fields[3], "") : std::nullopt;
  const auto* const size = std::ranges::find_if(
      kVitSizes, [&](const VitSize& s) { return fields.size() > 1 && s.name == fields[1]; });
  check(patch && edge && size != kVitSizes.end(), ErrorKind::data,
        "{}: architecture is '{}'; of these heddle knows vit_SIZE_patchP_PIXELS, deit_.. and "
        "deit_SIZE_distilled_..",
        args.source(), args.name());
  const int64_t width = args.integer("embed_dim", size->width);
  const double ratio = args.number(
      "mlp_ratio", static_cast<double>(size->hidden) / static_cast<double>(size->width));
  Json json = Json::object({{"model_type", is_distilled ? "deit" : "vit"},
                            {"hidden_size", width},
                            {"num_hidden_layers", args.integer("depth", size->layers)},
                            {"num_attention_heads", args.integer("num_heads", size->heads)},
                            {"intermediate_size", args.hidden_width(width, ratio)},
                            {"hidden_act", args.activation()},
                            {"layer_norm_eps", 1e-6},
                            {"patch_size", args.integer("patch_size", *patch)},
                            {"qkv_bias", args.flag("qkv_bias", true)},
                            {"hidden_dropout_prob", args.number("proj_drop_rate", 0)},
                            {"attention_probs_dropout_prob", args.number("attn_drop_rate", 0)},
                            {"drop_path_rate", args.number("drop_path_rate", 0)},
                            {"antialiased_positions", true}});
  args.images(json, *edge);
  args.neutral("global_pool", {"token"});
  args.neutral("class_token", {true});
  args.neutral("pos_embed", {"learn"});
  args.neutral("final_norm", {true});
  args.neutral("proj_bias", {true});
  args.neutral("reg_tokens", {0});
  for (const char* key : {"qk_norm", "scale_attn_norm", "scale_mlp_norm", "no_embed_class",
                          "pre_norm", "fc_norm", "dynamic_img_pad", "pool_include_prefix"}) {
    args.neutral(key, {false});
  }
  for (const char* key : {"drop_rate", "pos_drop_rate", "patch_drop_rate", "dynamic_img_size",
                          "strict_img_size", "weight_init", "fix_init"}) {
    (void)args.get(key);  // of training, or of what timm accepts
  }
  const std::string name = is_distilled ? "DeiT" : "ViT";
  json["architectures"] = std::vector<std::string>{
      name + (is_distilled ? "ForImageClassificationWithTeacher" : "ForImageClassification")};
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
      {"norm.*", {"layernorm.*"}},
      {"head.*", {is_distilled ? "cls_classifier.*" : "classifier.*"}}};
  if (is_distilled) rules.push_back({"head_dist.*", {"distillation_classifier.*"}});
  return rules;
}

Json vit_arguments(const Json& json) {
  const int64_t width = json.get_int("hidden_size");
  return Json::object({{"img_size", both_sides(json)},
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
                       {"global_pool", "token"}});
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
  return {Json::object({{"architecture", vit_name(json, is_deit)},
                        {"global_pool", "token"},
                        {"model_args", vit_arguments(json)}}),
          ""};
}

}  // namespace

const Architectures kVit = {vit_config,    vit_rules,          vit_written, 1e-6,
                            "hidden_size", "patch_embed.proj", "head"};

}  // namespace heddle::timm
