// The config's checks and its form in Hugging Face's files; the layers.
#include "heddle/models/families/detr_layers.h"

#include <cmath>

#include "heddle/ops/elementwise.h"
#include "heddle/ops/embedding.h"

namespace heddle {

void DetrConfig::check(const std::string& source) const {
  check_heads(d_model, "d_model", encoder_attention_heads, source);
  check_heads(d_model, "d_model", decoder_attention_heads, source);
  heddle::check(d_model % 4 == 0, ErrorKind::data,
                "{}: d_model is {}; positions of two coordinates need a multiple of 4", source,
                d_model);
  heddle::check(!conditional_queries || position_embedding_type == "sine", ErrorKind::data,
                "{}: conditional_queries is true and position_embedding_type is {}; the sines of a "
                "query's point are compared with those of cells",
                source, position_embedding_type);
  heddle::check(!dilation, ErrorKind::data,
                "{}: key 'dilation' is true; heddle's convolutions are not dilated", source);
}

namespace {

// The key of the loss of each layer in files. Their auxiliary_loss is transformers', which says too
// what a model computes: with it the decoder's norm changes the stream (norm_between_layers), where
// facebookresearch/detr, and heddle, look at copies of it.
constexpr const char* kLayerLosses = "layer_losses";

// Files that heddle wrote before it had that key mean copies.
void split_auxiliary_loss(const Json& json, const std::string& source, Json& flat) {
  const auto flag = [&](const char* key, bool otherwise) {
    const Json* found = json.find(key);
    return found == nullptr || found->is_null()
               ? otherwise
               : found->as_bool(fmt::format("{}: key '{}'", source, key));
  };
  const bool theirs = flag("auxiliary_loss", false);
  const bool is_old = !json.contains(kLayerLosses) && json.contains("normalize_before") &&
                      !json.contains("transformers_version");
  flat["auxiliary_loss"] = flag(kLayerLosses, theirs);
  flat["norm_between_layers"] = flag("norm_between_layers", theirs && !is_old);
  flat.erase(kLayerLosses);
}

Json timm_backbone(const std::string& name, const Json& json, const std::string& source) {
  Json config = Json::object({{"model_type", "timm_backbone"},
                              {"backbone", name},
                              {"out_indices", Json::Array{1, 2, 3, 4}}});
  const Json* const arguments = json.find("backbone_kwargs");
  if (arguments == nullptr || arguments->is_null()) return config;
  const std::string what = source + ": key 'backbone_kwargs'";
  for (const auto& [key, value] : arguments->as_object(what)) config[key] = value;
  return config;
}

}  // namespace

// Older files name timm's network beside, or leave out which it is.
Json DetrConfig::from_hub(const Json& json, const std::string& source) {
  Json flat = json;
  const Json* backbone = json.find("backbone_config");
  const auto text = [&](const char* key, const char* otherwise) {
    const Json* found = json.find(key);
    return found == nullptr || found->is_null() ? otherwise : found->as_string(source);
  };
  if (backbone == nullptr || backbone->is_null()) {
    const Json* uses_timm = json.find("use_timm_backbone");
    if (uses_timm == nullptr || uses_timm->is_null() || uses_timm->as_bool(source)) {
      flat["backbone_config"] = timm_backbone(text("backbone", "resnet50"), json, source);
      flat.erase("backbone_kwargs");
    } else {
      flat["backbone_config"] =
          Json::object({{"model_type", "resnet"}, {"out_features", Json::Array{"stage4"}}});
    }
  }
  for (const char* key : {"use_timm_backbone", "backbone", "scale_embedding"}) flat.erase(key);
  split_auxiliary_loss(json, source, flat);
  return flat;
}

// Releases before 5 take another default beside.
void DetrConfig::to_hub(Json& json) {
  if (json.at("conditional_queries") == Json(false)) json.erase("conditional_queries");
  if (json.at("class_loss") == Json("cross_entropy")) json.erase("class_loss");
  json["use_timm_backbone"] = false;
  const Json losses = json.at("auxiliary_loss"), normed = json.at("norm_between_layers");
  json.erase("norm_between_layers");
  json["auxiliary_loss"] = normed;
  if (losses == Json(true) || normed == Json(true)) json[kLayerLosses] = losses;
  for (const char* key : {"class_cost", "bbox_cost", "giou_cost", "bbox_loss_coefficient",
                          "giou_loss_coefficient"}) {  // transformers 5 takes integers alone
    const double x = json.at(key).as_double();
    if (x == std::floor(x)) json[key] = static_cast<int64_t>(x);
  }
}

DetrAttention::DetrAttention(const Scope& s, const char* name, const DetrConfig& c,
                             const Options& o)
    : attention(s / name, {.width = c.d_model,
                           .heads = o.heads,
                           .is_cross = o.is_cross,
                           .has_spatial_scores = o.has_spatial_scores,
                           .dropout = c.attention_dropout,
                           .init = init_of(c),
                           .observed = o.observed}),
      around(s / fmt::format("{}_layer_norm", name), c) {}

DetrFeedForward::DetrFeedForward(const Scope& s, const DetrConfig& c, int64_t hidden)
    : layers{s.prefix(),
             Linear(s / "fc1", {.in = c.d_model, .out = hidden, .init = init_of(c)}),
             Linear(s / "fc2", {.in = hidden, .out = c.d_model, .init = init_of(c)}),
             {.activation = nn::activation_of(c.activation_function),
              .dropout = c.activation_dropout}},
      around(s / "final_layer_norm", c) {}

DetrEncoderLayer::DetrEncoderLayer(const Scope& s, const DetrConfig& c, int64_t i)
    : self(s, "self_attn", c,
           {.heads = c.encoder_attention_heads,
            .observed = fmt::format("encoder_attentions.{}", i)}),
      mlp(s, c, c.encoder_ffn_dim) {}

void DetrEncoderLayer::operator()(nn::Residual& x, const DetrCells& cells, const Tensor& positions,
                                  const Run& run) const {
  const Tensor y = self.around.enter(x);
  const nn::PositionedAttention::Sides sides{&cells.segments, &cells.segments, cells.rows};
  self.around.leave(x, self.attention({.queries = y + positions, .values = y}, sides, run),
                    cells.rows, run);
  mlp(x, cells.rows, run);
}

nn::FeedForward two_layers(const Scope& s, const DetrConfig& c, int64_t out, bool is_head) {
  const Scope layers = s / "layers";
  return {s.prefix(),
          Linear(layers / 0, {.in = c.d_model, .out = c.d_model, .init = init_of(c)}),
          Linear(layers / 1, {.in = c.d_model, .out = out, .init = init_of(c), .is_head = is_head}),
          {}};
}

DetrDecoderLayer::DetrDecoderLayer(const Scope& s, const DetrConfig& c, int64_t i)
    : self(s / "layers" / i, "self_attn", c,
           {.heads = c.decoder_attention_heads,
            .observed = fmt::format("decoder_attentions.{}", i)}),
      cross(s / "layers" / i, "encoder_attn", c,
            {.heads = c.decoder_attention_heads,
             .is_cross = true,
             .has_spatial_scores = c.conditional_queries,
             .observed = fmt::format("cross_attentions.{}", i)}),
      mlp(s / "layers" / i, c, c.decoder_ffn_dim),
      is_conditional(c.conditional_queries) {
  if (is_conditional && i > 0) {
    point_scale.emplace(two_layers(s / "point_scale", c, c.d_model, false));
  }
}

void DetrDecoderLayer::operator()(nn::Residual& x, const DetrQueries& queries,
                                  const DetrCells& cells, std::span<const Tensor> outside,
                                  const Run& run) const {
  const auto& rows = queries.rows;
  const Tensor y = self.around.enter(x);
  const Tensor positioned = add_positions(y, outside[3], queries.ids, {});
  self.around.leave(
      x,
      self.attention({.queries = positioned, .values = y},
                     {&queries.segments, &queries.segments, rows}, run, queries.visibility),
      rows, run);
  const Tensor z = cross.around.enter(x);
  cross.around.leave(x,
                     cross.attention(inputs(y, z, queries, cells, outside, run),
                                     {&queries.segments, &cells.segments, rows}, run),
                     rows, run);
  mlp(x, rows, run);
}

nn::PositionedAttention::Inputs DetrDecoderLayer::inputs(
    const Tensor& state, const Tensor& state_now, const DetrQueries& queries,
    const DetrCells& cells, std::span<const Tensor> outside, const Run& run) const {
  if (point_scale) {
    return {.queries = state_now,
            .keys = outside[5],
            .values = outside[1],
            .spatial_queries = mul(outside[4], (*point_scale)(state, queries.rows, run)),
            .spatial_keys = cells.positions};
  }
  // In the first layer, whose states say nothing yet, they are as DETR's, and points as they are:
  // as in the authors' code.
  nn::PositionedAttention::Inputs in{
      .queries = add_positions(state_now, outside[2], queries.ids, {}),
      .keys = outside[0],
      .values = outside[1]};
  if (is_conditional) in.spatial_queries = outside[4], in.spatial_keys = cells.positions;
  return in;
}

}  // namespace heddle
