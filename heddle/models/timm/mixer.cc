// timm's MLP-Mixer.
#include <algorithm>
#include <array>

#include "heddle/models/timm/architectures.h"

namespace heddle::timm {
namespace {

struct MixerSize {
  const char* name;
  int64_t width, layers, patch;
};
// Tolstikhin et al. 2021, table 1.
constexpr std::array kMixerSizes = {MixerSize{"s32", 512, 8, 32},   MixerSize{"s16", 512, 8, 16},
                                    MixerSize{"b32", 768, 12, 32},  MixerSize{"b16", 768, 12, 16},
                                    MixerSize{"l32", 1024, 24, 32}, MixerSize{"l16", 1024, 24, 16}};

Json mixer_config(Arguments& args) {
  const std::vector<std::string> fields = fields_of(args.name());
  const auto edge = fields.size() == 3 ? number_behind(fields[2], "") : std::nullopt;
  const auto* const size = std::ranges::find_if(
      kMixerSizes, [&](const MixerSize& s) { return fields.size() > 1 && s.name == fields[1]; });
  check(edge && size != kMixerSizes.end(), ErrorKind::data,
        "{}: architecture is '{}'; of these heddle knows mixer_SIZE_PIXELS, SIZE one of s32, s16, "
        "b32, b16, l32 and l16",
        args.source(), args.name());
  const int64_t width = args.integer("embed_dim", size->width);
  std::array<double, 2> ratios = {0.5, 4};
  if (const Json given = args.get("mlp_ratio"); given.is_array()) {
    const Json::Array& both = given.as_array();
    check(both.size() == 2, ErrorKind::data, "{} must be two numbers, of tokens and of channels",
          args.what("mlp_ratio"));
    for (size_t i = 0; i < 2; ++i) ratios[i] = both[i].as_double(args.what("mlp_ratio"));
  } else if (!given.is_null()) {
    ratios.fill(given.as_double(args.what("mlp_ratio")));
  }
  Json json = Json::object({{"model_type", "mlp_mixer"},
                            {"hidden_size", width},
                            {"num_hidden_layers", args.integer("num_blocks", size->layers)},
                            {"tokens_mlp_dim", args.hidden_width(width, ratios[0])},
                            {"channels_mlp_dim", args.hidden_width(width, ratios[1])},
                            {"hidden_act", args.activation()},
                            {"layer_norm_eps", 1e-6},
                            {"patch_size", args.integer("patch_size", size->patch)},
                            {"hidden_dropout_prob", args.number("proj_drop_rate", 0)},
                            {"drop_path_rate", args.number("drop_path_rate", 0)}});
  args.images(json, *edge);
  if (json.at("image_size").is_array()) {
    const Json sides = json.at("image_size");
    json["image_size"] = sides.as_array()[0];
    json["image_width"] = sides.as_array()[1];
  }
  args.neutral("global_pool", {"avg"});
  args.neutral("stem_norm", {false});
  (void)args.get("nlhb"), (void)args.get("drop_rate");
  json["architectures"] = std::vector<std::string>{"MlpMixerForImageClassification"};
  return json;
}

Written mixer_written(const Json& json, Head) {
  const int64_t width = json.get_int("hidden_size");
  const auto hidden = [&](const char* key, int64_t otherwise) {
    return json.at(key).is_null() ? otherwise : json.get_int(key);
  };
  Json args =
      Json::object({{"img_size", both_sides(json)},
                    {"in_chans", json.at("num_channels")},
                    {"mlp_ratio",
                     std::vector<double>{
                         ratio_of(hidden("tokens_mlp_dim", std::max<int64_t>(1, width / 2)), width),
                         ratio_of(hidden("channels_mlp_dim", 4 * width), width)}},
                    {"act_layer", activation_there(json)},
                    {"proj_drop_rate", json.at("hidden_dropout_prob")},
                    {"drop_path_rate", json.at("drop_path_rate")}});
  const MixerSize mine{"", width, json.get_int("num_hidden_layers"), json.get_int("patch_size")};
  const auto is_mine = [&](const MixerSize& s) {
    return s.width == mine.width && s.layers == mine.layers && s.patch == mine.patch;
  };
  const auto* const size = std::ranges::find_if(kMixerSizes, is_mine);
  const bool is_published = size != kMixerSizes.end();
  const std::string name = fmt::format("mixer_{}_224", is_published ? size->name : "b16");
  const auto written = [&](const char* note) -> Written {
    return {Json::object({{"architecture", name}, {"global_pool", "avg"}, {"model_args", args}}),
            note};
  };
  if (is_published) return written("");
  args["patch_size"] = mine.patch, args["num_blocks"] = mine.layers, args["embed_dim"] = width;
  return written(
      "timm's create_model makes Mixers of published sizes only; make this one by "
      "timm.models.mlp_mixer.MlpMixer(num_classes=.., **model_args)");
}

std::vector<NameRule> mixer_rules(const Json&) { return {{"*", {"*"}}}; }

}  // namespace

const Architectures kMixer = {mixer_config,  mixer_rules, mixer_written, 1e-6,
                              "hidden_size", "stem.proj", "head"};

}  // namespace heddle::timm
