// MLP-Mixer: Tolstikhin et al. 2021, "MLP-Mixer: An all-MLP Architecture for Vision" (arXiv
// 2105.01601): two feed-forward layers a block, one over the tokens of each channel, one over the
// channels of each token. Names of tensors are timm's.
#include "heddle/models/image_model.h"
#include "heddle/nn/block.h"
#include "heddle/nn/images/convolution.h"
#include "heddle/ops/images/channel_rows.h"

namespace heddle {

/// heddle's own keys; the defaults are Mixer-B/16 (table 1).
struct MixerConfig {
  int64_t hidden_size = 768, num_hidden_layers = 12;
  std::optional<int64_t> tokens_mlp_dim, channels_mlp_dim;
  std::string hidden_act = "gelu";
  double hidden_dropout_prob = 0, drop_path_rate = 0;
  double layer_norm_eps = 1e-6;
  int64_t image_size = 224, patch_size = 16, num_channels = 3;
  std::optional<int64_t> image_width;

  template <class V>
  void fields(V& v) {
    v("hidden_size", hidden_size, "width of the residual stream: channels of a token",
      between(1, kMostWidth));
    v("num_hidden_layers", num_hidden_layers, "number of blocks", between(1, kMostLayers));
    v("tokens_mlp_dim", tokens_mlp_dim,
      "width inside the layers that mix tokens; none: half of hidden_size", between(1, kMostWidth));
    v("channels_mlp_dim", channels_mlp_dim,
      "width inside the layers that mix channels; none: 4 times hidden_size",
      between(1, kMostWidth));
    v("hidden_act", hidden_act, "of the feed-forward layers", one_of(nn::activation_names()));
    v("hidden_dropout_prob", hidden_dropout_prob, "dropout of sublayers", from_below(0, 1));
    v("drop_path_rate", drop_path_rate, "probability that an image goes past a sublayer",
      from_below(0, 1));
    v("layer_norm_eps", layer_norm_eps, "inside the root of each norm", above(0));
    v("image_size", image_size, "height of the images, in pixels", between(1, 65535));
    v("image_width", image_width, "their width; none: image_size", between(1, 65535));
    v("patch_size", patch_size, "side of a patch, in pixels", between(1, 65535));
    v("num_channels", num_channels, "numbers of a pixel", between(1, 65535));
  }
  ImageSize size() const { return {image_size, image_width.value_or(image_size)}; }
  ImageSize grid() const { return {size().height / patch_size, size().width / patch_size}; }
  int64_t tokens() const { return grid().height * grid().width; }
  int64_t tokens_hidden() const {
    return tokens_mlp_dim.value_or(std::max<int64_t>(1, hidden_size / 2));
  }
  int64_t channels_hidden() const { return channels_mlp_dim.value_or(4 * hidden_size); }

  void check(const std::string& source) const {
    heddle::check(tokens() > 0, ErrorKind::data,
                  "{}: patch_size is {}, images are of {} x {} pixels; none fits", source,
                  patch_size, size().height, size().width);
  }
};

namespace {

// Both layers of a feed-forward sublayer over rows of `width`.
nn::FeedForward mlp(const Scope& s, const MixerConfig& c, int64_t width, int64_t hidden) {
  return {s.prefix(),
          Linear(s / "fc1", {.in = width, .out = hidden}),
          Linear(s / "fc2", {.in = hidden, .out = width}),
          {.activation = nn::activation_of(c.hidden_act)}};
}

// Eq. (1), of the images' tokens; the layer over the tokens sees a channel a row.
struct MixerBlock {
  LayerNorm norm1, norm2;
  nn::FeedForward mlp_tokens, mlp_channels;
  std::string tokens_site, channels_site;
  double dropout, drop_path;
  int64_t tokens, width;

  MixerBlock(const Scope& s, const MixerConfig& c)
      : norm1(s / "norm1", c.hidden_size, c.layer_norm_eps),
        norm2(s / "norm2", c.hidden_size, c.layer_norm_eps),
        mlp_tokens(mlp(s / "mlp_tokens", c, c.tokens(), c.tokens_hidden())),
        mlp_channels(mlp(s / "mlp_channels", c, c.hidden_size, c.channels_hidden())),
        tokens_site((s / "mlp_tokens").prefix()),
        channels_site((s / "mlp_channels").prefix()),
        dropout(c.hidden_dropout_prob),
        drop_path(c.drop_path_rate),
        tokens(c.tokens()),
        width(c.hidden_size) {}

  void operator()(nn::Residual& x, const std::shared_ptr<const RowIds>& rows,
                  const Run& run) const {
    const auto leave = [&](const Tensor& sub, const std::string& site, const LayerNorm& norm) {
      x.leave(sub, run.dropout(dropout, site, rows), run.drop_path(drop_path, site, rows), norm);
    };
    const Tensor of_channels = channel_rows(x.enter(norm1), tokens);  // [images * width, tokens]
    leave(channel_rows(mlp_tokens(of_channels, nullptr, run), width), tokens_site, norm1);
    leave(mlp_channels(x.enter(norm2), rows, run), channels_site, norm2);
  }
};

}  // namespace

class MlpMixer final : public ImageModel {
 public:
  using Config = MixerConfig;
  static HubFamily family() {
    return {.heads = {{Head::image_classes, "MlpMixerForImageClassification"},
                      {Head::none, "MlpMixerModel"}}};
  }

  MlpMixer(const Scope& s, const Config& c, const HubConfig& hub)
      : ImageModel({.channels = c.num_channels,
                    .image_size = c.size(),
                    .layers = c.num_hidden_layers,
                    .width = c.hidden_size}),
        c_(c),
        stem_(s / "stem" / "proj", {.in = c.num_channels,
                                    .out = c.hidden_size,
                                    .kernel = c.patch_size,
                                    .stride = c.patch_size,
                                    .of_pixels = true}),
        blocks_(nn::make_layers(s / "blocks", c.num_hidden_layers,
                                [&](const Scope& at, int64_t) { return MixerBlock(at, c); })),
        norm_(s / "norm", c.hidden_size, c.layer_norm_eps) {
    if (hub.head != Head::image_classes) return;
    heads_.sequence_classes =
        classes_of_pooled(s / "head", {c.hidden_size, hub.classes(), 0.02}, grid_mean());
  }

  ImageSize grid(const ImageSize& image) const override {
    check(image == c_.size(), ErrorKind::data,
          "an image has {} x {} pixels; this model mixes the patches of {} x {} pixels and takes "
          "no other size",
          image.height, image.width, c_.size().height, c_.size().width);
    return c_.grid();
  }

  using ImageModel::hidden;
  Tensor hidden(const ImageRows& images, const Run& run) const override {
    images.check(facts().channels);
    const Segments rows = tokens(images);
    const auto ids = run.dropout.training ? nn::row_ids(images.samples, rows) : nullptr;
    const Tensor patches = stem_(cast(images.x, run.compute), *images.sizes, run);
    return norm_(nn::run_stack(
        "", nn::Residual(patches, true), blocks_.size(), nullptr, run,
        [this, ids, run](size_t i, nn::Residual& x, auto) { blocks_[i](x, ids, run); }));
  }

  nn::TensorNames names() const override {
    if (head() == Head::image_classes) return {};
    return {.unneeded = {"head."}};
  }

 private:
  Config c_;
  nn::Convolution stem_;
  std::vector<MixerBlock> blocks_;
  LayerNorm norm_;
};

template std::unique_ptr<ModelConfig> new_config<MlpMixer>();

}  // namespace heddle
