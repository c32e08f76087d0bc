// ResNet: He et al. 2016, "Deep Residual Learning for Image Recognition" (arXiv 1512.03385), with
// the stride of a bottleneck in its 3x3 (v1.5); stems and pools of small images as in Page 2018
// ("How to Train Your ResNet"); stochastic depth of Huang et al. 2016; attention among pixels.
#include <numeric>

#include "heddle/models/backbone.h"
#include "heddle/nn/images/normed_convolution.h"
#include "heddle/nn/images/pixel_attention.h"
#include "heddle/nn/mlp.h"
#include "heddle/ops/elementwise.h"

namespace heddle {
namespace {

constexpr int64_t kReduction = 4;  // of a bottleneck
constexpr WindowOptions kStemPool{3, 2, 1}, kStagePool{2, 2, 0};

/// Hugging Face's keys, and behind num_channels heddle's own; the defaults are ResNet-50.
struct ResnetConfig {
  int64_t embedding_size = 64;
  std::vector<int64_t> hidden_sizes = {256, 512, 1024, 2048}, depths = {3, 4, 6, 3};
  std::string layer_type = "bottleneck", hidden_act = "relu", layer_act = "relu";
  bool downsample_in_first_stage = false, downsample_in_bottleneck = false;
  int64_t num_channels = 3, image_size = 224, norm_groups = 8;
  std::vector<int64_t> attention_stages = {};
  int64_t attention_head_width = 32, attention_window = 4;
  std::string stem = "imagenet", downsample = "stride", norm = "batch";
  double drop_path_rate = 0;

  template <class V>
  void fields(V& v) {
    v("embedding_size", embedding_size, "channels behind the stem", between(1, kMostWidth));
    v("hidden_sizes", hidden_sizes, "channels of each stage", between(1, kMostWidth));
    v("depths", depths, "layers of each stage", between(0, kMostLayers));
    v("layer_type", layer_type,
      "basic: two 3x3 and a shortcut; bottleneck: 1x1, 3x3, 1x1; plain: a 3x3 without shortcut; "
      "attention: a bottleneck with attention in windows where its 3x3 has no stride",
      one_of({"basic", "bottleneck", "plain", "attention"}));
    v("hidden_act", hidden_act, "of the stem and behind each sum", one_of(nn::activation_names()));
    v("downsample_in_first_stage", downsample_in_first_stage, "the first stage halves the sides");
    v("downsample_in_bottleneck", downsample_in_bottleneck,
      "by the first 1x1 of a bottleneck, not its 3x3");
    v("num_channels", num_channels, "numbers of a pixel", between(1, kMostWidth));
    v("image_size", image_size, "height and width of the images, in pixels", between(1, 65535));
    v("layer_act", layer_act, "inside of layers; timm's ResNets have hidden_act there",
      one_of(nn::activation_names()));
    v("stem", stem, "imagenet: 7x7 by 2 and a pool by 2; cifar: 3x3",
      one_of({"imagenet", "cifar"}));
    v("downsample", downsample,
      "stride: of a stage's first layer; pool: each stage begins with a 3x3 and a 2x2 max pool",
      one_of({"stride", "pool"}));
    v("norm", norm, "over the batch, over it as it was (frozen), or over groups of an image",
      one_of({"batch", "frozen_batch", "group"}));
    v("norm_groups", norm_groups, "groups of channels of a group norm", at_least(1));
    v("attention_stages", attention_stages,
      "stages, from 0, behind which each pixel attends to all of its image: added, from zero on",
      at_least(0));
    v("attention_head_width", attention_head_width, "of the heads of all attention", at_least(1));
    v("attention_window", attention_window, "side of the windows of layers of attention",
      between(1, 64));
    v("drop_path_rate", drop_path_rate,
      "probability that an image goes past the last layer, rising from 0", from_below(0, 1));
  }
  void check(const std::string& source) const;
  bool pools() const { return downsample == "pool"; }
  bool has_attention_layers() const { return layer_type == "attention"; }
  bool is_bottleneck() const { return layer_type == "bottleneck" || has_attention_layers(); }
  bool attends_behind(int64_t stage) const {
    return std::ranges::count(attention_stages, stage) > 0;
  }
  int64_t heads(int64_t width) const { return std::max<int64_t>(1, width / attention_head_width); }
  nn::NormKind norm_kind() const {
    using Over = nn::NormKind::Over;
    return {norm == "group"   ? Over::group
            : norm == "batch" ? Over::batch
                              : Over::frozen_batch,
            norm_groups};
  }
};

void ResnetConfig::check(const std::string& source) const {
  const auto check = [&](bool holds, const std::string& what) {
    heddle::check(holds, ErrorKind::data, "{}: {}", source, what);
  };
  check(!hidden_sizes.empty() && hidden_sizes.size() == depths.size(),
        fmt::format("there are {} hidden_sizes and {} depths; each stage has one of both",
                    hidden_sizes.size(), depths.size()));
  check(pools() || std::ranges::count(depths, 0) == 0,
        "a stage of depth 0 needs the downsample 'pool'");
  check(layer_type != "plain" || drop_path_rate == 0,
        "layers without shortcut cannot be gone past; drop_path_rate must be 0");
  std::vector<int64_t> widths = hidden_sizes;
  for (const int64_t width : hidden_sizes) {
    check(!is_bottleneck() || width % kReduction == 0,
          fmt::format("a bottleneck of {} channels is no quarter of them wide", width));
    if (is_bottleneck()) widths.push_back(width / kReduction);
  }
  for (const int64_t stage : attention_stages) {
    check(stage < std::ssize(depths),
          fmt::format("attention_stages has {}, and there are stages 0 to {}", stage,
                      std::ssize(depths) - 1));
  }
  for (int64_t i = 0; i < std::ssize(hidden_sizes); ++i) {
    const int64_t width = hidden_sizes[static_cast<size_t>(i)];
    const int64_t narrow = width / kReduction;
    check((!has_attention_layers() || narrow % heads(narrow) == 0) &&
              (!attends_behind(i) || width % heads(width) == 0),
          fmt::format("attention_head_width {} makes no whole heads of {} channels",
                      attention_head_width, width));
  }
  widths.push_back(embedding_size);
  for (const int64_t width : widths) {
    check(norm != "group" || width % norm_groups == 0,
          fmt::format("norm_groups {} does not divide {} channels", norm_groups, width));
  }
}

/// Pixels of all images at one scale.
struct Map {
  Tensor x;
  std::vector<ImageSize> sizes;
};

std::vector<ImageSize> by_windows(std::vector<ImageSize> sizes, const WindowOptions& o) {
  for (ImageSize& size : sizes) size = {o.windows(size.height), o.windows(size.width)};
  return sizes;
}

nn::NormedConvolution convolution(const Scope& s, const ResnetConfig& c, int64_t in, int64_t out,
                                  int64_t kernel, int64_t stride) {
  return {s / "convolution",
          s / "normalization",
          {.in = in,
           .out = out,
           .kernel = kernel,
           .stride = stride,
           .padding = kernel / 2,
           .of_pixels = in == c.num_channels,
           .init = Init::kaiming(kernel, out)},
          c.norm_kind()};
}

/// A stage's layer at `s`: convolutions one behind the other and the way past them.
class ResnetLayer {
 public:
  struct Place {
    int64_t index = 0;  ///< in its stage
    double drop_path = 0;
  };
  ResnetLayer(const Scope& s, const ResnetConfig& c, int64_t in, int64_t out, int64_t stride,
              const Place& place)
      : name_(s.prefix()),
        kind_(nn::activation_of(c.hidden_act)),
        inner_(nn::activation_of(c.layer_act)),
        has_shortcut_(c.layer_type != "plain"),
        drop_path_(place.drop_path) {
    const auto add = [&](int64_t from, int64_t to, int64_t kernel, int64_t by) {
      const auto k = std::ssize(convolutions_);
      convolutions_.push_back(convolution(s / "layer" / k, c, from, to, kernel, by));
    };
    if (c.is_bottleneck()) {
      const int64_t narrow = out / kReduction;
      add(in, narrow, 1, c.downsample_in_bottleneck ? stride : 1);
      const int64_t by = c.downsample_in_bottleneck ? 1 : stride;
      if (!c.has_attention_layers() || by != 1) {
        add(narrow, narrow, 3, by);
      } else {
        attention_.emplace(s / "attention",
                           nn::PixelAttention::Options{.width = narrow,
                                                       .heads = c.heads(narrow),
                                                       .window = c.attention_window,
                                                       .is_shifted = place.index % 2 == 1});
      }
      add(narrow, out, 1, 1);
    } else {
      add(in, out, 3, stride);
      if (has_shortcut_) add(out, out, 3, 1);
    }
    if (has_shortcut_ && (in != out || stride != 1)) {
      shortcut_.emplace(convolution(s / "shortcut", c, in, out, 1, stride));
    }
  }

  std::vector<ImageSize> output_sizes(std::vector<ImageSize> sizes) const {
    for (const nn::NormedConvolution& c : convolutions_) sizes = c.output_sizes(sizes);
    return sizes;
  }
  Map operator()(Map in, const std::vector<uint32_t>* samples, const Run& run) const {
    Map y = in;
    for (size_t k = 0; k + 1 < convolutions_.size(); ++k) {
      y.x = convolutions_[k](y.x, y.sizes, {.activation = inner_}, run);
      y.sizes = convolutions_[k].output_sizes(y.sizes);
    }
    if (attention_) y.x = (*attention_)(y.x, y.sizes, run);
    const nn::NormedConvolution& last = convolutions_.back();
    const std::vector<ImageSize> sizes = last.output_sizes(y.sizes);
    if (!has_shortcut_) return {last(y.x, y.sizes, {.activation = kind_}, run), sizes};
    const Tensor past = shortcut_ ? (*shortcut_)(in.x, in.sizes, {}, run) : std::move(in.x);
    if (drop_path_ == 0 || !run.dropout.training) {
      const bool is_free = past.is_only_view();
      return {last(y.x, y.sizes,
                   {.added = past, .activation = kind_, .may_overwrite_added = is_free}, run),
              sizes};
    }
    const auto ids = nn::row_ids(samples, nn::image_segments(sizes));
    const Tensor branch = last(y.x, y.sizes, {}, run);
    const Tensor sum = dropout_add(past, branch, run.drop_path(drop_path_, name_, ids));
    return {kind_ == Activation::none ? sum : activation(kind_, sum), sizes};
  }

 private:
  std::string name_;
  Activation kind_, inner_;  // behind the sum; between the convolutions, in transformers ReLU
  bool has_shortcut_;
  double drop_path_;
  std::vector<nn::NormedConvolution> convolutions_;
  std::optional<nn::PixelAttention> attention_;  // before the last of them
  std::optional<nn::NormedConvolution> shortcut_;
};

/// Where a pool halves the sides: before the norm, which then has a quarter of the pixels.
struct Transition {
  nn::NormedConvolution convolution;
  Activation kind;

  Map operator()(const Map& in, const Run& run) const {
    const std::vector<ImageSize> sizes = convolution.output_sizes(in.sizes);
    const Tensor pooled = max_pool(convolution.convolve(in.x, in.sizes, run), sizes, kStagePool);
    std::vector<ImageSize> halved = output_sizes(sizes, kStagePool);
    return {convolution.normalize(pooled, halved, {.activation = kind}, run), halved};
  }
};

struct Stage {
  std::optional<Transition> transition;
  std::vector<ResnetLayer> layers;
  std::optional<nn::PixelAttention> attention = {};  // behind them, over whole images

  Map operator()(Map map, const std::vector<uint32_t>* samples, const Run& run) const {
    if (transition) map = (*transition)(map, run);
    for (const ResnetLayer& layer : layers) {
      if (!run.recompute || !is_recording()) {
        map = layer(std::move(map), samples, run);
        continue;
      }
      const auto again = [&layer, samples, run, in = map.sizes](std::span<const Tensor> x) {
        return std::vector<Tensor>{layer({x[0], in}, samples, run).x};
      };
      const std::vector<ImageSize> sizes = layer.output_sizes(map.sizes);
      map = {recompute(std::array{map.x}, again)[0], sizes};
    }
    if (attention) map.x = add(map.x, (*attention)(map.x, map.sizes, run));
    return map;
  }
};

}  // namespace

class Resnet final : public Backbone {
 public:
  using Config = ResnetConfig;
  static HubFamily family() {
    return {.heads = {{Head::image_classes, "ResNetForImageClassification"},
                      {Head::none, "ResNetModel"},
                      {Head::none, "ResNetBackbone"}},
            .passed_over = {{"is_causal", Json()}}};
  }

  Resnet(const Scope& s, const Config& c, const HubConfig& hub)
      : Backbone({.channels = c.num_channels,
                  .image_size = {c.image_size, c.image_size},
                  .layers = std::accumulate(c.depths.begin(), c.depths.end(), int64_t{0}),
                  .width = c.hidden_sizes.back()}),
        c_(c),
        kind_(nn::activation_of(c.hidden_act)),
        stem_(stem(base_scope(s, "resnet", hub) / "embedder" / "embedder", c)) {
    add_stages(base_scope(s, "resnet", hub) / "encoder" / "stages");
    if (hub.head == Head::none) heads_.pooler = grid_mean();
    if (hub.head != Head::image_classes) return;
    heads_.sequence_classes =
        classes_of_pooled(s / "classifier" / "1",
                          {.width = c.hidden_sizes.back(), .labels = hub.classes()}, grid_mean());
  }

  ImageSize grid_of(const ImageSize& image, size_t map) const override;
  std::optional<ImageSize> stem_grid(const ImageSize& image) const override;
  using ImageModel::hidden;
  Tensor hidden(const ImageRows& images, const Run& run) const override {
    return features(images, run).back().x;
  }
  std::vector<int64_t> channels() const override { return c_.hidden_sizes; }
  std::vector<FeatureMap> features(const ImageRows& images, const Run& run) const override;
  nn::TensorNames names() const override {
    nn::TensorNames names{.base = "resnet"};
    if (head() != Head::image_classes) names.unneeded.emplace_back("classifier.");
    return names;
  }

 private:
  static nn::NormedConvolution stem(const Scope& s, const Config& c) {
    const bool is_small = c.stem == "cifar";
    return convolution(s, c, c.num_channels, c.embedding_size, is_small ? 3 : 7, is_small ? 1 : 2);
  }
  void add_stages(const Scope& s);
  Map embed(const ImageRows& images, const Run& run) const;

  ResnetConfig c_;
  Activation kind_;
  nn::NormedConvolution stem_;
  std::vector<Stage> stages_;
};

void Resnet::add_stages(const Scope& s) {
  int64_t in = c_.embedding_size, index = 0;
  const double most = static_cast<double>(std::max<int64_t>(1, layers() - 1));
  for (size_t i = 0; i < c_.depths.size(); ++i) {
    const Scope at = s / static_cast<int64_t>(i);
    const int64_t out = c_.hidden_sizes[i];
    Stage stage;
    int64_t stride = i > 0 || c_.downsample_in_first_stage ? 2 : 1;
    if (c_.pools()) {
      stage.transition.emplace(
          Transition{convolution(at / "transition", c_, in, out, 3, 1), kind_});
      in = out, stride = 1;
    }
    for (int64_t l = 0; l < c_.depths[i]; ++l, ++index) {
      const double drop = c_.drop_path_rate * static_cast<double>(index) / most;
      stage.layers.emplace_back(at / "layers" / l, c_, l == 0 ? in : out, out, l == 0 ? stride : 1,
                                ResnetLayer::Place{l, drop});
    }
    if (c_.attends_behind(static_cast<int64_t>(i))) {
      // Pages show what lies over the last map.
      const bool is_last = i + 1 == c_.depths.size();
      stage.attention.emplace(
          at / "attention", nn::PixelAttention::Options{.width = out,
                                                        .heads = c_.heads(out),
                                                        .output = Init::zeros(),
                                                        .observed = is_last ? "attentions.0" : ""});
    }
    in = out;
    stages_.push_back(std::move(stage));
  }
}

Map Resnet::embed(const ImageRows& images, const Run& run) const {
  images.check(facts().channels);
  const std::vector<ImageSize>& sizes = *images.sizes;
  for (const ImageSize& size : sizes) static_cast<void>(grid(size));
  Map map{stem_(cast(images.x, run.compute), sizes, {.activation = kind_}, run),
          stem_.output_sizes(sizes)};
  if (c_.stem == "cifar") return map;
  return {max_pool(map.x, map.sizes, kStemPool), output_sizes(map.sizes, kStemPool)};
}

std::vector<FeatureMap> Resnet::features(const ImageRows& images, const Run& run) const {
  const auto observe = [&](size_t i, const Tensor& x) {
    if (run.observer == nullptr || !run.observer->hidden) return;
    run.observer->hidden(fmt::format("hidden_states.{}", i), x);
  };
  Map map = embed(images, run);
  observe(0, map.x);
  std::vector<FeatureMap> maps;
  for (const Stage& stage : stages_) {
    map = stage(map, images.samples, run);
    maps.push_back({map.x, map.sizes});
    observe(maps.size(), map.x);
  }
  return maps;
}

std::optional<ImageSize> Resnet::stem_grid(const ImageSize& image) const {
  if (c_.stem == "cifar") return image;
  return by_windows(by_windows({image}, {7, 2, 3}), kStemPool)[0];
}

ImageSize Resnet::grid_of(const ImageSize& image, size_t map) const {
  std::vector<ImageSize> at = {*stem_grid(image)};
  for (size_t i = 0; i <= map; ++i) {
    if (c_.pools()) {
      at = by_windows(at, kStagePool);
    } else if (i > 0 || c_.downsample_in_first_stage) {
      at = by_windows(at, {1, 2, 0});
    }
  }
  check(at[0].height > 0 && at[0].width > 0, ErrorKind::data,
        "an image of {} x {} pixels is too small for the {} stages of the model", image.height,
        image.width, map + 1);
  return at[0];
}

template std::unique_ptr<ModelConfig> new_config<Resnet>();

}  // namespace heddle
