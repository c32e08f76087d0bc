// DETR: Carion et al. 2020, "End-to-End Object Detection with Transformers": a
// backbone's map, an encoder over its cells, and a decoder whose queries become
// classes and boxes.
#include <algorithm>
#include <array>
#include <cmath>

#include "heddle/models/backbone.h"
#include "heddle/models/families/detr_layers.h"
#include "heddle/models/registry.h"
#include "heddle/nn/images/cell_positions.h"
#include "heddle/nn/images/convolution.h"
#include "heddle/ops/elementwise.h"
#include "heddle/ops/embedding.h"
#include "heddle/ops/images/sines.h"
#include "heddle/ops/shape.h"

namespace heddle {
namespace {

// At the start a sigmoid says .01 of each class: most queries see nothing. Source: Lin et al. 2017,
// "Focal Loss for Dense Object Detection", section 4.1.
constexpr double kRareClass = -4.59511985013459;                   // log(.01 / .99)
constexpr double kBoxTemperature = 20, kPointTemperature = 10000;  // of sines; as of cells

// 1 / (1 + e^-x), by the tangent.
Tensor sigmoid(const Tensor& x) {
  return add(scale(activation(Activation::tanh, scale(x, 0.5f)), 0.5f),
             Tensor::full(x.shape(), 0.5f));
}

// Its inverse, to within the thousandth of either end, as in the code of DN-DETR.
float logit(float p) {
  constexpr double kLeast = 1e-3;
  const double x = std::clamp(static_cast<double>(p), kLeast, 1 - kLeast);
  return static_cast<float>(std::log(x / (1 - x)));
}

Tensor sines_of_boxes(std::span<const std::array<float, 4>> boxes, int64_t width) {
  std::vector<float> numbers;
  for (const auto& box : boxes) numbers.insert(numbers.end(), box.begin(), box.end());
  return sines(Tensor::from(numbers, {std::ssize(boxes), 4}), width / 2, kBoxTemperature);
}

// The heads compute in f32: a pixel of 500 is less than bf16 tells apart.
Run in_f32(Run run) { return run.compute = DType::f32, run.int8 = false, run; }

struct DetrBoxes {
  Linear first, second, third;

  // points: [rows, 2], where x and y are counted from; undefined: from the middle of the image.
  Tensor operator()(const Tensor& h, const Tensor& points, const Run& given) const {
    const Run run = in_f32(given);
    const Tensor x = first(cast(h, DType::f32), run, Activation::relu);
    const Tensor y = third(second(x, run, Activation::relu), run);
    if (!points.defined()) return sigmoid(y);
    return sigmoid(y + concat({points, Tensor::zeros(points.shape(), DType::f32)}, 1));
  }
};

}  // namespace

class Detr final : public Detector {
 public:
  using Config = DetrConfig;
  static HubFamily family() {
    return {.heads = {{Head::objects, "DetrForObjectDetection"}, {Head::none, "DetrModel"}},
            .aliases = {{"hidden_size", "d_model"},
                        {"num_attention_heads", "encoder_attention_heads"},
                        {"num_hidden_layers", "encoder_layers"}},
            .passed_over = {{"is_causal", false}, {"max_position_embeddings", 1024}}};
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
  DetrQueries queries(const ImageRows& images, const NoisedObjects* noised) const;
  Tensor read(const ImageRows& images, DetrCells& cells, const Run& run) const;
  Tensor encode(const Tensor& x, const std::shared_ptr<const DetrCells>& cells,
                const Run& run) const;
  // Of queries: what they begin as, their positions, and the sines of their points, if any.
  struct Begun {
    Tensor states, positions, sines;
  };
  // Points are x and y as they are before the sigmoid. Of rows of learned queries, image by image:
  // [rows, 2]; undefined where queries have none.
  Tensor learned_points(int64_t rows, const Run& run) const;
  static Tensor noised_points(const NoisedObjects& noised, int64_t layers);
  Tensor sines_of_points(const DetrQueries& queries, const NoisedObjects* noised,
                         const Run& run) const;
  Begun begin(const DetrQueries& queries, const NoisedObjects* noised, const Run& run) const;
  Tensor decode(const Begun& begun, const Tensor& memory,
                const std::shared_ptr<const DetrCells>& cells,
                const std::shared_ptr<const DetrQueries>& queries, bool all, const Run& run) const;

  DetrConfig c_;
  ChosenBackbone backbone_;
  nn::Convolution projection_;
  std::optional<nn::RowColumnPositions> learned_;
  Parameter& queries_;
  Parameter* noised_labels_ = nullptr;  // [labels, d_model]
  std::optional<Linear> noised_boxes_;
  std::optional<nn::FeedForward> points_;  // of the learned queries' positions
  std::optional<DetrBoxes> boxes_;
  std::vector<DetrEncoderLayer> encoder_;
  std::optional<LayerNorm> encoder_norm_;
  std::vector<DetrDecoderLayer> decoder_;
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
      encoder_(
          nn::make_layers(base(s, hub) / "encoder" / "layers", c.encoder_layers,
                          [&](const Scope& at, int64_t i) { return DetrEncoderLayer(at, c, i); })),
      decoder_(nn::make_layers(base(s, hub) / "decoder" / "layers", c.decoder_layers,
                               [&](const Scope&, int64_t i) {
                                 return DetrDecoderLayer(base(s, hub) / "decoder", c, i);
                               })),
      decoder_norm_(norm_of(base(s, hub) / "decoder" / "layernorm", c)) {
  if (c.position_embedding_type == "learned") {
    learned_.emplace(base(s, hub) / "position_embedding", c.d_model, Init::normal(c.init_std));
  }
  if (c.normalize_before) encoder_norm_.emplace(norm_of(base(s, hub) / "encoder" / "layernorm", c));
  if (c.conditional_queries) {
    points_.emplace(two_layers(base(s, hub) / "decoder" / "points", c, 2, true));
  }
  if (hub.head != Head::objects) return;
  add_heads(s, hub.classes());
  if (c.denoising.groups > 0) add_denoising(base(s, hub) / "denoising", hub.classes());
}

void Detr::add_heads(const Scope& s, int64_t labels) {
  enum class Gives : uint8_t { hidden, numbers, classes };
  const auto linear = [&](const Scope& at, int64_t out, Gives what,
                          const Init& bias = Init::zeros()) {
    return Linear(at, {.in = c_.d_model,
                       .out = out,
                       .init = init_of(c_),
                       .bias_init = bias,
                       .is_head = what != Gives::hidden,
                       .gives_classes = what == Gives::classes});
  };
  const bool has_sigmoids = c_.loss.has_sigmoids();
  const int64_t classes = labels + (has_sigmoids ? 0 : 1);
  const Init bias = has_sigmoids ? Init::constant(kRareClass) : Init::zeros();
  heads_.object_classes =
      [layer = linear(s / "class_labels_classifier", classes, Gives::classes, bias)](
          const Tensor& h, const Run& run) { return layer(cast(h, DType::f32), in_f32(run)); };
  const Scope boxes = s / "bbox_predictor" / "layers";
  boxes_.emplace(DetrBoxes{linear(boxes / 0, c_.d_model, Gives::hidden),
                           linear(boxes / 1, c_.d_model, Gives::hidden),
                           linear(boxes / 2, 4, Gives::numbers)});
  heads_.boxes = [this](const Tensor& h, const Run& run) {
    return (*boxes_)(h, learned_points(h.size(0), run), run);
  };
}

void Detr::add_denoising(const Scope& s, int64_t labels) {
  noised_labels_ = &(s / "labels" / "weight")
                        .parameter({labels, c_.d_model}, Init::normal(c_.init_std))
                        .of_classes();
  noised_boxes_.emplace(
      s / "boxes", Linear::Options{.in = 2 * c_.d_model, .out = c_.d_model, .init = init_of(c_)});
}

ObjectPredictions Detr::predict(const ImageRows& images, bool all, const Run& run,
                                NoisedObjects* noised) const {
  const Tensor h = states(images, all, noised, run);
  const auto heads = [&](const Tensor& x, const Tensor& points) {
    return ObjectPredictions{heads_.object_classes(x, run), (*boxes_)(x, points, run),
                             c_.loss.has_sigmoids()};
  };
  if (noised == nullptr || noised->labels.empty()) return heads(h, learned_points(h.size(0), run));
  const int64_t layers = all ? c_.decoder_layers : 1, rows = h.size(0) / layers;
  const int64_t learned = std::ssize(*images.sizes) * c_.num_queries;
  std::vector<Tensor> own, theirs;
  for (int64_t l = 0; l < layers; ++l) {
    own.push_back(slice(h, 0, l * rows, learned));
    theirs.push_back(slice(h, 0, l * rows + learned, rows - learned));
  }
  noised->restored = heads(concat(theirs, 0), points_ ? noised_points(*noised, layers) : Tensor());
  return heads(concat(own, 0), learned_points(layers * learned, run));
}

// Of an image the learned ones, then its noised ones; each group of these sees itself alone.
DetrQueries Detr::queries(const ImageRows& images, const NoisedObjects* noised) const {
  DetrQueries q;
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
Detr::Begun Detr::begin(const DetrQueries& q, const NoisedObjects* noised, const Run& run) const {
  const Tensor zeros = Tensor::zeros({q.segments.rows(), c_.d_model}, run.compute);
  const Tensor points = points_ ? sines_of_points(q, noised, run) : Tensor();
  if (q.visibility == nullptr) return {zeros, queries_.in(run.compute), points};
  const Run exact{.compute = DType::f32, .dropout = run.dropout};
  const Tensor at_boxes = (*noised_boxes_)(sines_of_boxes(noised->boxes, c_.d_model), exact);
  const Tensor labels = embedding(noised_labels_->in(run.compute), noised->labels, 1, {}, {}, {});
  std::vector<int32_t> at(static_cast<size_t>(q.segments.rows()));  // 0: zeros
  for (size_t i = 0; i < q.noised.size(); ++i) {
    at[static_cast<size_t>(q.noised[i])] = static_cast<int32_t>(i + 1);
  }
  const Tensor all = concat({Tensor::zeros({1, c_.d_model}, run.compute), labels}, 0);
  return {gather_rows(all, at), cast(concat({queries_.in(DType::f32), at_boxes}, 0), run.compute),
          points};
}

Tensor Detr::learned_points(int64_t rows, const Run& run) const {
  if (!points_) return {};
  std::vector<int32_t> ids;
  for (int64_t r = 0; r < rows; ++r) ids.push_back(static_cast<int32_t>(r % c_.num_queries));
  return gather_rows((*points_)(queries_.in(DType::f32), nullptr, in_f32(run)), ids);
}

Tensor Detr::noised_points(const NoisedObjects& noised, int64_t layers) {
  std::vector<float> points;
  for (int64_t l = 0; l < layers; ++l) {
    for (const auto& box : noised.boxes) {
      points.insert(points.end(), {logit(box[0]), logit(box[1])});
    }
  }
  return Tensor::from(points, {layers * std::ssize(noised.boxes), 2});
}

// Of each row: y before x, as of the cells. Gathered in f32, as gradients of gathered rows are.
Tensor Detr::sines_of_points(const DetrQueries& q, const NoisedObjects* noised,
                             const Run& run) const {
  std::vector<Tensor> parts = {learned_points(c_.num_queries, run)};
  if (q.visibility != nullptr) parts.push_back(noised_points(*noised, 1));
  const Tensor points = sigmoid(concat(parts, 0));
  const Tensor turned = concat({slice(points, 1, 1, 1), slice(points, 1, 0, 1)}, 1);
  return cast(gather_rows(sines(turned, c_.d_model / 2, kPointTemperature), q.ids), run.compute);
}

Tensor Detr::states(const ImageRows& images, bool all, const NoisedObjects* noised,
                    const Run& run) const {
  images.check(facts().channels);
  const auto cells = std::make_shared<DetrCells>();
  const Tensor x = read(images, *cells, run);
  const auto asked = std::make_shared<DetrQueries>(queries(images, noised));
  if (run.dropout.training) {
    cells->rows = nn::row_ids(images.samples, cells->segments);
    asked->rows = nn::row_ids(images.samples, asked->segments);
  }
  return decode(begin(*asked, noised, run), encode(x, cells, run), cells, asked, all, run);
}

Tensor Detr::read(const ImageRows& images, DetrCells& cells, const Run& run) const {
  const FeatureMap map = backbone_.features(images, run);
  cells.segments = nn::image_segments(map.sizes);
  cells.positions = learned_ ? (*learned_)(map.sizes, run.compute)
                             : cast(nn::sine_positions(map.sizes, c_.d_model), run.compute);
  return projection_(map.x, map.sizes, run);
}

// Layers may be called again in the backward pass, so they own the cells.
Tensor Detr::encode(const Tensor& x, const std::shared_ptr<const DetrCells>& cells,
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
                    const std::shared_ptr<const DetrCells>& cells,
                    const std::shared_ptr<const DetrQueries>& queries, bool all,
                    const Run& run) const {
  const Tensor& positions = begun.positions;  // gradients of both uses in the order of a plain pass
  std::vector<Tensor> outside = {memory + cells->positions, memory, positions, positions};
  if (begun.sines.defined()) outside.insert(outside.end(), {begun.sines, memory});
  nn::Residual x(begun.states, c_.normalize_before);
  std::vector<Tensor> seen;
  // What goes on is a tensor of its own: layers that are computed again sum their gradients first.
  const auto see = [&](bool is_last) {
    Tensor y = x.value();
    x = nn::Residual(reshape(y, y.shape()), c_.normalize_before);
    if (c_.norm_between_layers && is_last) y = decoder_norm_(y);
    if (queries->visibility == nullptr) return seen.push_back(y);
    for (const auto& rows : {queries->learned, queries->noised}) {
      seen.push_back(gather_rows(y, rows));
    }
  };
  nn::observe(run, "decoder_hidden_states.0", x);
  for (size_t i = 0; i < decoder_.size(); ++i) {
    const auto layer = [this, i, cells, queries, run](nn::Residual& y,
                                                      std::span<const Tensor> others) {
      decoder_[i](y, *queries, *cells, others, run);
    };
    if (run.recompute && is_recording()) {
      x.pass_recomputed(layer, outside, run.router_logits);
    } else {
      layer(x, outside);
    }
    const bool is_last = i + 1 == decoder_.size();
    if (!is_last) nn::observe(run, fmt::format("decoder_hidden_states.{}", i + 1), x);
    if (c_.norm_between_layers) x = nn::Residual(decoder_norm_(x.value()), c_.normalize_before);
    if (all || is_last) see(is_last);
  }
  const Tensor joined = seen.size() > 1 ? concat(seen, 0) : seen[0];
  const Tensor last = c_.norm_between_layers ? joined : decoder_norm_(joined);
  nn::Residual shown(last, false);
  if (!all) nn::observe(run, fmt::format("decoder_hidden_states.{}", decoder_.size()), shown);
  return last;
}

// A file of segmentation has another head, and its detector below "detr.".
nn::TensorNames Detr::names() const {
  const nn::TensorNames below = backbone_.names();
  nn::TensorNames names{.base = "model",
                        .respelled = {{"backbone.conv_encoder", "backbone"},
                                      // As transformers 4 has learned positions.
                                      {"backbone.position_embedding", "position_embedding"},
                                      {"out_proj", "o_proj"},
                                      {".fc1.", ".mlp.fc1."},
                                      {".fc2.", ".mlp.fc2."}},
                        .unneeded = below.unneeded};
  names.respelled.insert(names.respelled.end(), below.respelled.begin(), below.respelled.end());
  names.unneeded.emplace_back(".num_batches_tracked");  // of norms that are frozen
  if (c_.denoising.groups == 0) names.unneeded.emplace_back("model.denoising.");
  if (head() != Head::objects) {
    names.unneeded.insert(names.unneeded.end(), {"class_labels_classifier.", "bbox_predictor."});
  }
  return names;
}

}  // namespace heddle
