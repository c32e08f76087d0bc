// DETR: Carion et al. 2020, "End-to-End Object Detection with Transformers": a backbone's map, an
// encoder over its cells, and a decoder whose queries become classes and boxes.
#include <algorithm>
#include <array>

#include "heddle/models/backbone.h"
#include "heddle/models/detector.h"
#include "heddle/models/registry.h"
#include "heddle/nn/block.h"
#include "heddle/nn/images/convolution.h"
#include "heddle/nn/images/sine_positions.h"
#include "heddle/nn/positioned_attention.h"
#include "heddle/ops/elementwise.h"
#include "heddle/ops/embedding.h"
#include "heddle/ops/shape.h"

namespace heddle {

/// Hugging Face's keys and defaults, and normalize_before, which is RT-DETR's.
struct DetrConfig {
  Json backbone_config;  ///< an object with a model_type, or timm's name of it
  int64_t num_channels = 3, num_queries = 100, d_model = 256;
  int64_t encoder_layers = 6, encoder_attention_heads = 8, encoder_ffn_dim = 2048;
  int64_t decoder_layers = 6, decoder_attention_heads = 8, decoder_ffn_dim = 2048;
  std::string activation_function = "relu", position_embedding_type = "sine";
  double dropout = 0.1, attention_dropout = 0, activation_dropout = 0;
  double init_std = 0.02, init_xavier_std = 1;
  bool normalize_before = false, auxiliary_loss = false, dilation = false;
  SetLossWeights loss;

  template <class V>
  void fields(V& v) {
    v("backbone_config", backbone_config,
      "config.json of the model whose last map of features is read");
    v("num_channels", num_channels, "numbers of a pixel", at_least(1));
    v("num_queries", num_queries, "objects that can be found in an image", at_least(1));
    v("d_model", d_model, "width of encoder and decoder", at_least(1));
    v("encoder_layers", encoder_layers, "number of encoder layers", at_least(0));
    v("encoder_attention_heads", encoder_attention_heads, "must divide d_model", at_least(1));
    v("encoder_ffn_dim", encoder_ffn_dim, "width inside the encoder's feed-forward layers",
      at_least(1));
    v("decoder_layers", decoder_layers, "number of decoder layers", at_least(1));
    v("decoder_attention_heads", decoder_attention_heads, "must divide d_model", at_least(1));
    v("decoder_ffn_dim", decoder_ffn_dim, "width inside the decoder's feed-forward layers",
      at_least(1));
    v("activation_function", activation_function, "of the feed-forward layers",
      one_of(nn::activation_names()));
    v("dropout", dropout, "dropout of sublayers", from_below(0, 1));
    v("attention_dropout", attention_dropout, "dropout of the attention weights", from_below(0, 1));
    v("activation_dropout", activation_dropout, "dropout inside the feed-forward layers",
      from_below(0, 1));
    v("init_std", init_std, "deviation of the queries at the start", at_least(0));
    v("init_xavier_std", init_xavier_std, "factor of the uniform weights at the start",
      at_least(0));
    v("normalize_before", normalize_before,
      "norms before the sublayers, and one behind the encoder; transformers has them behind");
    v("position_embedding_type", position_embedding_type, "positions of the map's cells",
      one_of({"sine", "learned"}));
    v("auxiliary_loss", auxiliary_loss, "each layer of the decoder is trained to see the objects");
    v("dilation", dilation, "a map twice as fine by dilated convolutions; only false");
    v("class_cost", loss.class_cost, "of a class in the matching", at_least(0));
    v("bbox_cost", loss.bbox_cost, "of the distance of a box in the matching", at_least(0));
    v("giou_cost", loss.giou_cost, "of the generalized IoU in the matching", at_least(0));
    v("bbox_loss_coefficient", loss.bbox_loss_coefficient, "of the distance in the loss",
      at_least(0));
    v("giou_loss_coefficient", loss.giou_loss_coefficient, "of the generalized IoU in the loss",
      at_least(0));
    v("eos_coefficient", loss.eos_coefficient, "weight of a query that is to see no object",
      above(0));
  }
  void check(const std::string& source) const;
  static Json from_hub(const Json& json, const std::string& source);
  static void to_hub(Json& json);
};

namespace {

// --- the backbone's config and names ---

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
    TimmResNet{"resnet50", R"({"layer_type": "bottleneck", "depths": [3, 4, 6, 3],
                               "hidden_sizes": [256, 512, 1024, 2048]})"},
    TimmResNet{"resnet101", R"({"layer_type": "bottleneck", "depths": [3, 4, 23, 3],
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

// The backbone's own config, and which of its maps is read: one that is named, or the last.
struct BackboneChoice {
  std::unique_ptr<ModelConfig> config;
  int64_t map = -1;  // -1: the last
};
BackboneChoice choose_backbone(const Json& given, int64_t channels, const std::string& source) {
  const std::string at = source + ": key 'backbone_config'";
  heddle::check(given.is_object(), ErrorKind::data,
                "{} is {}; the config of a model with a model_type is needed", at,
                given.describe());
  Json json = is_timm(given) ? without_timm(given, at) : given;
  BackboneChoice choice;
  if (const Json* maps = json.find("out_features"); maps && !maps->is_null()) {
    const std::vector<std::string> names = maps->as_strings(at);
    const std::string last = names.empty() ? "" : names.back();
    if (last.starts_with("stage")) choice.map = std::atoll(last.c_str() + 5) - 1;
  }
  for (const char* key : {"out_features", "out_indices", "stage_names", "architectures"}) {
    json.erase(key);
  }
  if (!json.contains("num_channels")) json["num_channels"] = channels;
  const Json* type = json.find("model_type");
  if (type != nullptr && *type == Json("resnet") && !json.contains("norm")) {
    json["norm"] = "frozen_batch";
  }
  choice.config = read_model_config(json, at);
  choice.config->hub.head = Head::none;
  choice.config->hub.has_pooler = false;
  return choice;
}

std::string replaced(std::string name, const std::string& from, const std::string& to) {
  if (const size_t at = name.find(from); at != name.npos) name.replace(at, from.size(), to);
  return name;
}

// timm's name of what transformers' ResNet calls `name`, both under the same base.
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

// --- layers ---

Init init_of(const DetrConfig& c) { return Init::xavier_uniform(c.init_xavier_std); }

nn::FeedForward feed_forward(const Scope& s, const DetrConfig& c, int64_t hidden) {
  const auto linear = [&](const char* name, int64_t in, int64_t out) {
    return Linear(s / name, {.in = in, .out = out, .init = init_of(c)});
  };
  return {
      s.prefix(),
      linear("fc1", c.d_model, hidden),
      linear("fc2", hidden, c.d_model),
      {.activation = nn::activation_of(c.activation_function), .dropout = c.activation_dropout}};
}

nn::PositionedAttention attention(const Scope& s, const DetrConfig& c, int64_t heads, bool is_cross,
                                  const std::string& observed) {
  return {s,
          {.width = c.d_model,
           .heads = heads,
           .is_cross = is_cross,
           .dropout = c.attention_dropout,
           .init = init_of(c),
           .observed = observed}};
}

LayerNorm norm(const Scope& s, const DetrConfig& c) { return {s, c.d_model, 1e-5}; }

// A sublayer's name is the site of its dropout.
struct Sublayer {
  std::string site;
  double dropout;
  LayerNorm norm;
  Tensor enter(nn::Residual& x) const { return x.enter(norm); }
  void leave(nn::Residual& x, const Tensor& sub, const std::shared_ptr<const RowIds>& rows,
             const Run& run) const {
    x.leave(sub, run.dropout(dropout, site, rows), norm);
  }
};
Sublayer sublayer(const Scope& s, const char* name, const DetrConfig& c) {
  return {(s / name).prefix(), c.dropout, norm(s / name, c)};
}

// The cells of the map: rows, and their positions, which queries and keys get.
struct Cells {
  std::vector<ImageSize> grids;
  Segments segments;
  std::shared_ptr<const RowIds> rows;  // for dropout
  Tensor positions;                    // [cells, d_model]
};

struct EncoderLayer {
  nn::PositionedAttention self;
  Sublayer around_self;
  nn::FeedForward mlp;
  Sublayer around_mlp;

  EncoderLayer(const Scope& s, const DetrConfig& c, int64_t i)
      : self(attention(s / "self_attn", c, c.encoder_attention_heads, false,
                       fmt::format("encoder_attentions.{}", i))),
        around_self(sublayer(s, "self_attn_layer_norm", c)),
        mlp(feed_forward(s, c, c.encoder_ffn_dim)),
        around_mlp(sublayer(s, "final_layer_norm", c)) {}

  void operator()(nn::Residual& x, const Cells& cells, const Tensor& positions,
                  const Run& run) const {
    const Tensor y = around_self.enter(x);
    const nn::PositionedAttention::Sides sides{&cells.segments, &cells.segments, cells.rows};
    around_self.leave(x, self({.queries = y + positions, .values = y}, sides, run), cells.rows,
                      run);
    around_mlp.leave(x, mlp(around_mlp.enter(x), cells.rows, run), cells.rows, run);
  }
};

// What the queries of a pass are: those of each image, their positions, and what they look at.
struct Queries {
  Segments segments;
  std::vector<int32_t> ids;            // of each row in the table of positions
  std::shared_ptr<const RowIds> rows;  // for dropout
};

struct DecoderLayer {
  nn::PositionedAttention self;
  Sublayer around_self;
  nn::PositionedAttention cross;
  Sublayer around_cross;
  nn::FeedForward mlp;
  Sublayer around_mlp;

  DecoderLayer(const Scope& s, const DetrConfig& c, int64_t i)
      : self(attention(s / "self_attn", c, c.decoder_attention_heads, false,
                       fmt::format("decoder_attentions.{}", i))),
        around_self(sublayer(s, "self_attn_layer_norm", c)),
        cross(attention(s / "encoder_attn", c, c.decoder_attention_heads, true,
                        fmt::format("cross_attentions.{}", i))),
        around_cross(sublayer(s, "encoder_attn_layer_norm", c)),
        mlp(feed_forward(s, c, c.decoder_ffn_dim)),
        around_mlp(sublayer(s, "final_layer_norm", c)) {}

  // outside: the encoder's states with their positions, and without
  void operator()(nn::Residual& x, const Queries& queries, Parameter& table, const Cells& cells,
                  std::span<const Tensor> outside, const Run& run) const {
    const auto positioned = [&](const Tensor& y) {
      return add_positions(y, table.in(run.compute), queries.ids, {});
    };
    const auto& rows = queries.rows;
    const Tensor y = around_self.enter(x);
    around_self.leave(x,
                      self({.queries = positioned(y), .values = y},
                           {&queries.segments, &queries.segments, rows}, run),
                      rows, run);
    const Tensor z = around_cross.enter(x);
    around_cross.leave(x,
                       cross({.queries = positioned(z), .keys = outside[0], .values = outside[1]},
                             {&queries.segments, &cells.segments, rows}, run),
                       rows, run);
    around_mlp.leave(x, mlp(around_mlp.enter(x), rows, run), rows, run);
  }
};

// Learned positions of rows and columns, of so many cells at most.
struct LearnedPositions {
  static constexpr int64_t kMost = 50;
  Parameter *rows, *columns;  // [kMost, d_model / 2]

  LearnedPositions(const Scope& s, const DetrConfig& c)
      : rows(&(s / "row_embeddings" / "weight")
                  .parameter({kMost, c.d_model / 2}, Init::normal(c.init_std))),
        columns(&(s / "column_embeddings" / "weight")
                     .parameter({kMost, c.d_model / 2}, Init::normal(c.init_std))) {}

  Tensor operator()(std::span<const ImageSize> grids, DType compute) const {
    std::vector<int32_t> x, y;
    for (const ImageSize& grid : grids) {
      check(grid.height <= kMost && grid.width <= kMost, ErrorKind::data,
            "an image has a map of {} x {} cells; learned positions are of {} at most", grid.height,
            grid.width, kMost);
      for (int64_t i = 0; i < grid.height * grid.width; ++i) {
        x.push_back(static_cast<int32_t>(i % grid.width));
        y.push_back(static_cast<int32_t>(i / grid.width));
      }
    }
    return concat({embedding(columns->in(compute), x, 1, {}, {}, {}),
                   embedding(rows->in(compute), y, 1, {}, {}, {})},
                  1);
  }
};

// 1 / (1 + e^-x), by the tangent.
Tensor sigmoid(const Tensor& x) {
  return add(scale(activation(Activation::tanh, scale(x, 0.5f)), 0.5f),
             Tensor::full(x.shape(), 0.5f));
}

}  // namespace

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
      flat["backbone_config"] = Json::object({{"model_type", kTimm},
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
void DetrConfig::to_hub(Json& json) { json["use_timm_backbone"] = false; }

class Detr final : public Detector {
 public:
  using Config = DetrConfig;
  static HubFamily family() {
    return {.heads = {{Head::objects, "DetrForObjectDetection"}, {Head::none, "DetrModel"}},
            .passed_over = {{"max_position_embeddings", 1024}}};
  }

  Detr(const Scope& s, const Config& c, const HubConfig& hub);

  ImageSize grid(const ImageSize& image) const override { return backbone_->grid(image); }
  using Detector::hidden;
  Tensor hidden(const ImageRows& images, const Run& run) const override {
    return states(images, false, run);
  }
  ObjectPredictions predict(const ImageRows& images, bool all, const Run& run) const override {
    const Tensor h = states(images, all, run);
    return {heads_.object_classes(h, run), heads_.boxes(h, run)};
  }
  nn::TensorNames names() const override;

 private:
  static Scope base(const Scope& s, const HubConfig& hub) { return base_scope(s, "model", hub); }
  void add_heads(const Scope& s, int64_t labels);
  // The decoder's states after its norm: of the last layer, or layer after layer.
  Tensor states(const ImageRows& images, bool all, const Run& run) const;
  // The map's cells as the encoder is given them.
  Tensor read(const ImageRows& images, Cells& cells, const Run& run) const;
  Tensor encode(const Tensor& x, const std::shared_ptr<const Cells>& cells, const Run& run) const;
  Tensor decode(const Tensor& memory, const std::shared_ptr<const Cells>& cells,
                const std::shared_ptr<const Queries>& queries, bool all, const Run& run) const;

  DetrConfig c_;
  std::unique_ptr<Model> model_;  // of the backbone
  const Backbone* backbone_;
  int64_t map_;
  nn::Convolution projection_;
  std::optional<LearnedPositions> learned_;
  Parameter& queries_;
  std::vector<EncoderLayer> encoder_;
  std::optional<LayerNorm> encoder_norm_;
  std::vector<DecoderLayer> decoder_;
  LayerNorm decoder_norm_;
};

template std::unique_ptr<ModelConfig> new_config<Detr>();

namespace {

// It stands on no scope of its own: transformers keeps its parts right here.
std::unique_ptr<Model> make_backbone(const Scope& s, const DetrConfig& c) {
  const Scope at = s / "backbone" / "conv_encoder" / "model";
  return choose_backbone(c.backbone_config, c.num_channels, "config")
      .config->make(is_timm(c.backbone_config) ? at.renamed(timm_name) : at);
}

ImageFacts facts_of(const DetrConfig& c) {
  return {
      .channels = c.num_channels, .image_size = {}, .layers = c.decoder_layers, .width = c.d_model};
}

int64_t channels_of(const Backbone& backbone, int64_t map) {
  const std::vector<int64_t> all = backbone.channels();
  check(map < std::ssize(all), ErrorKind::data,
        "backbone_config: 'out_features' names stage {}; there are {}", map + 1, all.size());
  return map < 0 ? all.back() : all[static_cast<size_t>(map)];
}

}  // namespace

Detr::Detr(const Scope& s, const Config& c, const HubConfig& hub)
    : Detector(facts_of(c), {.queries = c.num_queries, .layers = c.decoder_layers, .loss = c.loss}),
      c_(c),
      model_(make_backbone(base(s, hub), c)),
      backbone_(&model_->need<Backbone>("backbone_config")),
      map_(choose_backbone(c.backbone_config, c.num_channels, "config").map),
      projection_(base(s, hub) / "input_projection",
                  {.in = channels_of(*backbone_, map_), .out = c.d_model}),
      queries_((base(s, hub) / "query_position_embeddings" / "weight")
                   .parameter({c.num_queries, c.d_model}, Init::normal(c.init_std))),
      encoder_(nn::make_layers(base(s, hub) / "encoder" / "layers", c.encoder_layers,
                               [&](const Scope& at, int64_t i) { return EncoderLayer(at, c, i); })),
      decoder_(nn::make_layers(base(s, hub) / "decoder" / "layers", c.decoder_layers,
                               [&](const Scope& at, int64_t i) { return DecoderLayer(at, c, i); })),
      decoder_norm_(norm(base(s, hub) / "decoder" / "layernorm", c)) {
  if (c.position_embedding_type == "learned") {
    learned_.emplace(base(s, hub) / "position_embedding", c);
  }
  if (c.normalize_before) encoder_norm_.emplace(norm(base(s, hub) / "encoder" / "layernorm", c));
  if (hub.head == Head::objects) add_heads(s, hub.classes());
}

// In f32: a pixel of 500 is less than bf16 tells apart.
void Detr::add_heads(const Scope& s, int64_t labels) {
  const auto linear = [&](const Scope& at, int64_t out) {
    return Linear(at, {.in = c_.d_model, .out = out, .init = init_of(c_)});
  };
  const auto exact = [](Run run) {
    run.compute = DType::f32, run.int8 = false;
    return run;
  };
  heads_.object_classes = [exact, classes = linear(s / "class_labels_classifier", labels + 1)](
                              const Tensor& h, const Run& run) {
    return classes(cast(h, DType::f32), exact(run));
  };
  const Scope boxes = s / "bbox_predictor" / "layers";
  heads_.boxes = [exact, first = linear(boxes / 0, c_.d_model),
                  second = linear(boxes / 1, c_.d_model),
                  third = linear(boxes / 2, 4)](const Tensor& h, const Run& given) {
    const Run run = exact(given);
    const Tensor x = first(cast(h, DType::f32), run, Activation::relu);
    return sigmoid(third(second(x, run, Activation::relu), run));
  };
}

Tensor Detr::states(const ImageRows& images, bool all, const Run& run) const {
  images.check(facts().channels);
  const auto cells = std::make_shared<Cells>();
  const Tensor x = read(images, *cells, run);
  const auto queries = std::make_shared<Queries>();
  queries->segments = tokens(images);
  for (int64_t i = 0; i < queries->segments.rows(); ++i) {
    queries->ids.push_back(static_cast<int32_t>(i % c_.num_queries));
  }
  if (run.dropout.training) {
    cells->rows = nn::row_ids(images.samples, cells->segments);
    queries->rows = nn::row_ids(images.samples, queries->segments);
  }
  return decode(encode(x, cells, run), cells, queries, all, run);
}

Tensor Detr::read(const ImageRows& images, Cells& cells, const Run& run) const {
  Run apart = run;  // an observer would take its states for those of another stack
  apart.observer = nullptr;
  const std::vector<FeatureMap> maps = backbone_->features(images, apart);
  const FeatureMap& map = map_ < 0 ? maps.back() : maps[static_cast<size_t>(map_)];
  cells.grids = map.sizes;
  cells.segments = nn::image_segments(map.sizes);
  cells.positions = learned_ ? (*learned_)(map.sizes, run.compute)
                             : cast(nn::sine_positions(map.sizes, c_.d_model), run.compute);
  return projection_(map.x, map.sizes, run);
}

// Layers may be called again in the backward pass, so they own the cells.
Tensor Detr::encode(const Tensor& x, const std::shared_ptr<const Cells>& cells,
                    const Run& run) const {
  return nn::run_stack(
      "encoder_", nn::Residual(x, c_.normalize_before), encoder_.size(),
      encoder_norm_ ? &*encoder_norm_ : nullptr, run,
      [this, cells, run](size_t i, nn::Residual& y, std::span<const Tensor> outside) {
        encoder_[i](y, *cells, outside[0], run);
      },
      std::array{cells->positions});
}

// Queries begin as zeros: what they look for are their positions.
Tensor Detr::decode(const Tensor& memory, const std::shared_ptr<const Cells>& cells,
                    const std::shared_ptr<const Queries>& queries, bool all, const Run& run) const {
  const std::array outside = {memory + cells->positions, memory};
  nn::Residual x(Tensor::zeros({queries->segments.rows(), c_.d_model}, run.compute),
                 c_.normalize_before);
  std::vector<Tensor> seen;
  for (size_t i = 0; i < decoder_.size(); ++i) {
    nn::observe(run, fmt::format("decoder_hidden_states.{}", i), x);
    const auto layer = [this, i, cells, queries, run](nn::Residual& y,
                                                      std::span<const Tensor> others) {
      decoder_[i](y, *queries, queries_, *cells, others, run);
    };
    if (run.recompute && is_recording()) {
      x.pass_recomputed(layer, outside, run.router_logits);
    } else {
      layer(x, outside);
    }
    if (all) seen.push_back(x.value());
  }
  const Tensor last = decoder_norm_(seen.size() > 1 ? concat(seen, 0) : x.value());
  nn::Residual shown(last, false);
  if (!all) nn::observe(run, fmt::format("decoder_hidden_states.{}", decoder_.size()), shown);
  return last;
}

// A file of segmentation has another head, and its detector below "detr.".
nn::TensorNames Detr::names() const {
  nn::TensorNames names{.base = "model",
                        .respelled = {{"backbone.conv_encoder", "backbone"},
                                      {"out_proj", "o_proj"},
                                      {".fc1.", ".mlp.fc1."},
                                      {".fc2.", ".mlp.fc2."}},
                        .unneeded = model_->names().unneeded};
  names.unneeded.emplace_back(".num_batches_tracked");  // of norms that are frozen
  if (head() != Head::objects) {
    names.unneeded.insert(names.unneeded.end(), {"class_labels_classifier.", "bbox_predictor."});
  }
  return names;
}

}  // namespace heddle
