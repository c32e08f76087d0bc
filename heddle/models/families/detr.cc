// DETR: Carion et al. 2020, "End-to-End Object Detection with Transformers": a
// backbone's map, an encoder over its cells, and a decoder whose queries become
// classes and boxes.
#include <algorithm>
#include <array>
#include <cmath>

#include "heddle/models/backbone.h"
#include "heddle/models/detector.h"
#include "heddle/models/registry.h"
#include "heddle/nn/block.h"
#include "heddle/nn/images/cell_positions.h"
#include "heddle/nn/images/convolution.h"
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
  DenoisingWeights denoising;

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
      "norms before the sublayers, and one behind the encoder; transformers "
      "has them behind");
    v("position_embedding_type", position_embedding_type, "positions of the map's cells",
      one_of({"sine", "learned"}));
    v("auxiliary_loss", auxiliary_loss, "each layer of the decoder is trained to see the objects");
    v("dilation", dilation, "a map twice as fine by dilated convolutions; only false");
    loss.fields(v);
    denoising.fields(v);
  }
  void check(const std::string& source) const;
  static Json from_hub(const Json& json, const std::string& source);
  static void to_hub(Json& json);
};

namespace {

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

// What the queries of a pass are: those of each image, their positions, and
// what they look at.
struct Queries {
  Segments segments;
  std::vector<int32_t> ids;                                // of each row in the table of positions
  std::shared_ptr<const RowIds> rows = nullptr;            // for dropout
  std::shared_ptr<const Visibility> visibility = nullptr;  // of noised ones; null: all see all
  std::vector<int32_t> learned = {}, noised = {};          // rows, where some are noised
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

  // outside: the encoder's states with their positions, and without; twice the queries' positions
  void operator()(nn::Residual& x, const Queries& queries, const Cells& cells,
                  std::span<const Tensor> outside, const Run& run) const {
    const auto positioned = [&](const Tensor& y, size_t positions) {
      return add_positions(y, outside[positions], queries.ids, {});
    };
    const auto& rows = queries.rows;
    const Tensor y = around_self.enter(x);
    around_self.leave(x,
                      self({.queries = positioned(y, 3), .values = y},
                           {&queries.segments, &queries.segments, rows}, run, queries.visibility),
                      rows, run);
    const Tensor z = around_cross.enter(x);
    around_cross.leave(
        x,
        cross({.queries = positioned(z, 2), .keys = outside[0], .values = outside[1]},
              {&queries.segments, &cells.segments, rows}, run),
        rows, run);
    around_mlp.leave(x, mlp(around_mlp.enter(x), rows, run), rows, run);
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

class Detr final : public Detector {
 public:
  using Config = DetrConfig;
  static HubFamily family() {
    return {.heads = {{Head::objects, "DetrForObjectDetection"}, {Head::none, "DetrModel"}},
            .passed_over = {{"max_position_embeddings", 1024}}};
  }

  Detr(const Scope& s, const Config& c, const HubConfig& hub);

  ImageSize grid(const ImageSize& image) const override { return backbone_.grid(image); }
  using Detector::hidden;
  Tensor hidden(const ImageRows& images, const Run& run) const override {
    return states(images, false, nullptr, run);
  }
  ObjectPredictions predict(const ImageRows& images, bool all, const Run& run,
                            NoisedObjects* noised) const override;
  nn::TensorNames names() const override;

 private:
  static Scope base(const Scope& s, const HubConfig& hub) { return base_scope(s, "model", hub); }
  void add_heads(const Scope& s, int64_t labels);
  void add_denoising(const Scope& s, int64_t labels);
  // The decoder's states after its norm: of the last layer, or layer after layer, of each those of
  // the learned queries, then the noised ones.
  Tensor states(const ImageRows& images, bool all, const NoisedObjects* noised,
                const Run& run) const;
  Queries queries(const ImageRows& images, const NoisedObjects* noised) const;
  Tensor read(const ImageRows& images, Cells& cells, const Run& run) const;
  Tensor encode(const Tensor& x, const std::shared_ptr<const Cells>& cells, const Run& run) const;
  // Of queries: what they begin as, and their positions.
  struct Begun {
    Tensor states, positions;
  };
  Begun begin(const Queries& queries, const NoisedObjects* noised, const Run& run) const;
  Tensor decode(const Begun& begun, const Tensor& memory, const std::shared_ptr<const Cells>& cells,
                const std::shared_ptr<const Queries>& queries, bool all, const Run& run) const;

  DetrConfig c_;
  ChosenBackbone backbone_;
  nn::Convolution projection_;
  std::optional<nn::RowColumnPositions> learned_;
  Parameter& queries_;
  Parameter* noised_labels_ = nullptr;  // [labels, d_model]
  std::optional<Linear> noised_boxes_;
  std::vector<EncoderLayer> encoder_;
  std::optional<LayerNorm> encoder_norm_;
  std::vector<DecoderLayer> decoder_;
  LayerNorm decoder_norm_;
};

template std::unique_ptr<ModelConfig> new_config<Detr>();

Detr::Detr(const Scope& s, const Config& c, const HubConfig& hub)
    : Detector({.channels = c.num_channels,
                .image_size = {},
                .layers = c.decoder_layers,
                .width = c.d_model},
               {.queries = c.num_queries,
                .layers = c.decoder_layers,
                .loss = c.loss,
                .denoising = c.denoising}),
      c_(c),
      backbone_(base(s, hub) / "backbone" / "conv_encoder" / "model", c.backbone_config,
                c.num_channels, "config: key 'backbone_config'"),
      projection_(base(s, hub) / "input_projection",
                  {.in = backbone_.channels(), .out = c.d_model}),
      queries_((base(s, hub) / "query_position_embeddings" / "weight")
                   .parameter({c.num_queries, c.d_model}, Init::normal(c.init_std))),
      encoder_(nn::make_layers(base(s, hub) / "encoder" / "layers", c.encoder_layers,
                               [&](const Scope& at, int64_t i) { return EncoderLayer(at, c, i); })),
      decoder_(nn::make_layers(base(s, hub) / "decoder" / "layers", c.decoder_layers,
                               [&](const Scope& at, int64_t i) { return DecoderLayer(at, c, i); })),
      decoder_norm_(norm(base(s, hub) / "decoder" / "layernorm", c)) {
  if (c.position_embedding_type == "learned") {
    learned_.emplace(base(s, hub) / "position_embedding", c.d_model, Init::normal(c.init_std));
  }
  if (c.normalize_before) encoder_norm_.emplace(norm(base(s, hub) / "encoder" / "layernorm", c));
  if (hub.head != Head::objects) return;
  add_heads(s, hub.classes());
  if (c.denoising.groups > 0) add_denoising(base(s, hub) / "denoising", hub.classes());
}

// In f32: a pixel of 500 is less than bf16 tells apart.
void Detr::add_heads(const Scope& s, int64_t labels) {
  const auto linear = [&](const Scope& at, int64_t out) {
    return Linear(at, {.in = c_.d_model, .out = out, .init = init_of(c_)});
  };
  const auto exact = [](Run run) { return run.compute = DType::f32, run.int8 = false, run; };
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

void Detr::add_denoising(const Scope& s, int64_t labels) {
  noised_labels_ =
      &(s / "labels" / "weight").parameter({labels, c_.d_model}, Init::normal(c_.init_std));
  noised_boxes_.emplace(
      s / "boxes", Linear::Options{.in = 2 * c_.d_model, .out = c_.d_model, .init = init_of(c_)});
}

ObjectPredictions Detr::predict(const ImageRows& images, bool all, const Run& run,
                                NoisedObjects* noised) const {
  const Tensor h = states(images, all, noised, run);
  const auto heads = [&](const Tensor& x) {
    return ObjectPredictions{heads_.object_classes(x, run), heads_.boxes(x, run)};
  };
  if (noised == nullptr || noised->labels.empty()) return heads(h);
  const int64_t layers = all ? c_.decoder_layers : 1, rows = h.size(0) / layers;
  const int64_t learned = std::ssize(*images.sizes) * c_.num_queries;
  std::vector<Tensor> own, theirs;
  for (int64_t l = 0; l < layers; ++l) {
    own.push_back(slice(h, 0, l * rows, learned));
    theirs.push_back(slice(h, 0, l * rows + learned, rows - learned));
  }
  noised->restored = heads(concat(theirs, 0));
  return heads(concat(own, 0));
}

// Of an image the learned ones, then its noised ones; each group of these sees itself alone.
Queries Detr::queries(const ImageRows& images, const NoisedObjects* noised) const {
  Queries q;
  const bool is_noised = noised != nullptr && !noised->labels.empty();
  std::vector<int64_t> lengths;
  Visibility sight;
  auto next = static_cast<int32_t>(c_.num_queries);  // in the table of positions
  int32_t row = 0;
  const auto add = [&](int32_t id, int32_t group, std::vector<int32_t>& kind) {
    q.ids.push_back(id), kind.push_back(row++);
    sight.first.push_back(group), sight.limit.push_back(group + 1), sight.order.push_back(group);
  };
  for (size_t i = 0; i < images.sizes->size(); ++i) {
    for (int32_t k = 0; k < c_.num_queries; ++k) add(k, 0, q.learned);
    const int64_t each = is_noised ? noised->counts[i] : 0;
    for (int64_t k = 0; is_noised && k < each * noised->groups; ++k) {
      add(next++, static_cast<int32_t>(1 + k / each), q.noised);
    }
    lengths.push_back(c_.num_queries + (is_noised ? each * noised->groups : 0));
  }
  q.segments = Segments::from_lengths(lengths);
  if (is_noised) q.visibility = std::make_shared<const Visibility>(std::move(sight));
  return q;
}

// Learned queries begin as zeros: what they look for are their positions. Noised ones begin as
// their labels, at their boxes. The gradients of gathered rows are f32.
Detr::Begun Detr::begin(const Queries& q, const NoisedObjects* noised, const Run& run) const {
  const Tensor zeros = Tensor::zeros({q.segments.rows(), c_.d_model}, run.compute);
  if (q.visibility == nullptr) return {zeros, queries_.in(run.compute)};
  const Run exact{.compute = DType::f32, .dropout = run.dropout};
  const Tensor at_boxes = (*noised_boxes_)(nn::box_sines(noised->boxes, c_.d_model), exact);
  const Tensor labels = embedding(noised_labels_->in(run.compute), noised->labels, 1, {}, {}, {});
  std::vector<int32_t> at(static_cast<size_t>(q.segments.rows()));  // 0: zeros
  for (size_t i = 0; i < q.noised.size(); ++i) {
    at[static_cast<size_t>(q.noised[i])] = static_cast<int32_t>(i + 1);
  }
  const Tensor all = concat({Tensor::zeros({1, c_.d_model}, run.compute), labels}, 0);
  return {gather_rows(all, at), cast(concat({queries_.in(DType::f32), at_boxes}, 0), run.compute)};
}

Tensor Detr::states(const ImageRows& images, bool all, const NoisedObjects* noised,
                    const Run& run) const {
  images.check(facts().channels);
  const auto cells = std::make_shared<Cells>();
  const Tensor x = read(images, *cells, run);
  const auto asked = std::make_shared<Queries>(queries(images, noised));
  if (run.dropout.training) {
    cells->rows = nn::row_ids(images.samples, cells->segments);
    asked->rows = nn::row_ids(images.samples, asked->segments);
  }
  return decode(begin(*asked, noised, run), encode(x, cells, run), cells, asked, all, run);
}

Tensor Detr::read(const ImageRows& images, Cells& cells, const Run& run) const {
  const FeatureMap map = backbone_.features(images, run);
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

Tensor Detr::decode(const Begun& begun, const Tensor& memory,
                    const std::shared_ptr<const Cells>& cells,
                    const std::shared_ptr<const Queries>& queries, bool all, const Run& run) const {
  const Tensor& positions = begun.positions;  // gradients of both uses in the order of a plain pass
  const std::array outside = {memory + cells->positions, memory, positions, positions};
  nn::Residual x(begun.states, c_.normalize_before);
  std::vector<Tensor> seen;
  // What goes on is a tensor of its own: layers that are computed again sum their gradients first.
  const auto see = [&] {
    const Tensor y = x.value();
    x = nn::Residual(reshape(y, y.shape()), c_.normalize_before);
    if (queries->visibility == nullptr) return seen.push_back(y);
    for (const auto& rows : {queries->learned, queries->noised}) {  // with gradients in f32
      seen.push_back(cast(gather_rows(cast(y, DType::f32), rows), y.dtype()));
    }
  };
  for (size_t i = 0; i < decoder_.size(); ++i) {
    nn::observe(run, fmt::format("decoder_hidden_states.{}", i), x);
    const auto layer = [this, i, cells, queries, run](nn::Residual& y,
                                                      std::span<const Tensor> others) {
      decoder_[i](y, *queries, *cells, others, run);
    };
    if (run.recompute && is_recording()) {
      x.pass_recomputed(layer, outside, run.router_logits);
    } else {
      layer(x, outside);
    }
    if (all || i + 1 == decoder_.size()) see();
  }
  const Tensor last = decoder_norm_(seen.size() > 1 ? concat(seen, 0) : seen[0]);
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
                        .unneeded = backbone_.names().unneeded};
  names.unneeded.emplace_back(".num_batches_tracked");  // of norms that are frozen
  if (c_.denoising.groups == 0) names.unneeded.emplace_back("model.denoising.");
  if (head() != Head::objects) {
    names.unneeded.insert(names.unneeded.end(), {"class_labels_classifier.", "bbox_predictor."});
  }
  return names;
}

}  // namespace heddle
