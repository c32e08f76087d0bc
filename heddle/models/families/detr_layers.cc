// The config's checks and its form in Hugging Face's files; the layers.
#include "heddle/models/families/detr_layers.h"

#include <cmath>

#include "heddle/ops/embedding.h"

namespace heddle {

void DetrConfig::check(const std::string& source) const {
  check_heads(d_model, "d_model", encoder_attention_heads, source);
  check_heads(d_model, "d_model", decoder_attention_heads, source);
  heddle::check(d_model % 4 == 0, ErrorKind::data,
                "{}: d_model is {}; positions of two coordinates need a multiple of 4", source,
                d_model);
  heddle::check(!dilation, ErrorKind::data,
                "{}: key 'dilation' is true; heddle's convolutions are not dilated", source);
}

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
      flat["backbone_config"] = Json::object({{"model_type", "timm_backbone"},
                                              {"backbone", text("backbone", "resnet50")},
                                              {"out_indices", Json::Array{1, 2, 3, 4}}});
    } else {
      flat["backbone_config"] =
          Json::object({{"model_type", "resnet"}, {"out_features", Json::Array{"stage4"}}});
    }
  }
  for (const char* key : {"use_timm_backbone", "backbone", "scale_embedding"}) flat.erase(key);
  return flat;
}

// Releases before 5 take another default beside.
void DetrConfig::to_hub(Json& json) {
  json["use_timm_backbone"] = false;
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

DetrDecoderLayer::DetrDecoderLayer(const Scope& s, const DetrConfig& c, int64_t i)
    : self(s, "self_attn", c,
           {.heads = c.decoder_attention_heads,
            .observed = fmt::format("decoder_attentions.{}", i)}),
      cross(s, "encoder_attn", c,
            {.heads = c.decoder_attention_heads,
             .is_cross = true,
             .observed = fmt::format("cross_attentions.{}", i)}),
      mlp(s, c, c.decoder_ffn_dim) {}

void DetrDecoderLayer::operator()(nn::Residual& x, const DetrQueries& queries,
                                  const DetrCells& cells, std::span<const Tensor> outside,
                                  const Run& run) const {
  const auto positioned = [&](const Tensor& y, size_t positions) {
    return add_positions(y, outside[positions], queries.ids, {});
  };
  const auto& rows = queries.rows;
  const Tensor y = self.around.enter(x);
  self.around.leave(
      x,
      self.attention({.queries = positioned(y, 3), .values = y},
                     {&queries.segments, &queries.segments, rows}, run, queries.visibility),
      rows, run);
  const Tensor z = cross.around.enter(x);
  cross.around.leave(
      x,
      cross.attention({.queries = positioned(z, 2), .keys = outside[0], .values = outside[1]},
                      {&queries.segments, &cells.segments, rows}, run),
      rows, run);
  mlp(x, rows, run);
}

}  // namespace heddle
