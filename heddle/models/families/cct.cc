// CCT, the compact convolutional transformer: Hassani et al. 2021, "Escaping the Big Data Paradigm
// with Compact Transformers" (arXiv 2104.05704): convolutions make the tokens, and what a query of
// the model's own sees of them is classified. Names of tensors are those of SHI-Labs'
// Compact-Transformers, whose block is another than ViT's: the norm between its sublayers stands
// in the residual stream.
#include "heddle/models/image_model.h"
#include "heddle/nn/block.h"
#include "heddle/nn/images/convolution.h"
#include "heddle/nn/images/grid_positions.h"
#include "heddle/nn/position.h"
#include "heddle/ops/attention.h"
#include "heddle/ops/elementwise.h"
#include "heddle/ops/embedding.h"

namespace heddle {

/// heddle's own keys; the defaults are CCT-2/3x2 for images of 32 x 32.
struct CctConfig {
  int64_t hidden_size = 128, num_hidden_layers = 2, num_attention_heads = 2;
  int64_t intermediate_size = 128;
  std::string hidden_act = "gelu", positional_embedding = "learnable";
  double hidden_dropout_prob = 0, attention_probs_dropout_prob = 0.1, drop_path_rate = 0.1;
  double initializer_range = 0.02, layer_norm_eps = 1e-5;
  int64_t image_size = 32, num_channels = 3;
  std::optional<int64_t> image_width;
  int64_t conv_layers = 2, conv_width = 64, conv_kernel = 3, conv_stride = 1, conv_padding = 1;
  int64_t pool_kernel = 3, pool_stride = 2, pool_padding = 1;

  template <class V>
  void fields(V& v) {
    v("hidden_size", hidden_size, "width of the residual stream", between(1, kMostWidth));
    v("num_hidden_layers", num_hidden_layers, "number of blocks", between(1, kMostLayers));
    v("num_attention_heads", num_attention_heads, "attention heads; must divide hidden_size",
      between(1, kMostHeads));
    v("intermediate_size", intermediate_size, "width inside the feed-forward layers",
      between(1, kMostWidth));
    v("hidden_act", hidden_act, "of the feed-forward layers", one_of(nn::activation_names()));
    v("positional_embedding", positional_embedding, "what tells the tokens apart",
      one_of({"learnable", "sine", "none"}));
    v("hidden_dropout_prob", hidden_dropout_prob, "dropout of embeddings and sublayers",
      from_below(0, 1));
    v("attention_probs_dropout_prob", attention_probs_dropout_prob,
      "dropout of the attention weights", from_below(0, 1));
    v("drop_path_rate", drop_path_rate,
      "probability that an image goes past a sublayer of the last block, rising from 0",
      from_below(0, 1));
    v("initializer_range", initializer_range, "deviation of the weights at the start", at_least(0));
    v("layer_norm_eps", layer_norm_eps, "inside the root of each norm", above(0));
    v("image_size", image_size, "height of the images, in pixels", between(1, 65535));
    v("image_width", image_width, "their width; none: image_size", between(1, 65535));
    v("num_channels", num_channels, "numbers of a pixel", between(1, 65535));
    v("conv_layers", conv_layers, "convolutions that make the tokens, a pool behind each",
      between(1, 16));
    v("conv_width", conv_width, "channels between them", between(1, kMostWidth));
    v("conv_kernel", conv_kernel, "side of their windows", between(1, 64));
    v("conv_stride", conv_stride, "pixels from one window to the next", between(1, 64));
    v("conv_padding", conv_padding, "pixels of zeros around the image", between(0, 64));
    v("pool_kernel", pool_kernel, "side of the pools' windows", between(1, 15));
    v("pool_stride", pool_stride, "pixels from one to the next", between(1, 64));
    v("pool_padding", pool_padding, "pixels around the image; less than pool_kernel",
      between(0, 14));
  }
  ImageSize size() const { return {image_size, image_width.value_or(image_size)}; }
  WindowOptions convolution() const { return {conv_kernel, conv_stride, conv_padding}; }
  WindowOptions pool() const { return {pool_kernel, pool_stride, pool_padding}; }

  // What the convolutions and pools leave of an image; 0 x 0 if that is nothing.
  ImageSize grid(ImageSize image) const {
    for (int64_t i = 0; i < conv_layers; ++i) {
      for (const WindowOptions& o : {convolution(), pool()}) {
        image = {o.windows(image.height), o.windows(image.width)};
        if (image.height <= 0 || image.width <= 0) return {};
      }
    }
    return image;
  }
  void check(const std::string& source) const {
    check_heads(hidden_size, "hidden_size", num_attention_heads, source);
    heddle::check(pool_padding < pool_kernel, ErrorKind::data,
                  "{}: pool_padding is {}; it must be less than pool_kernel, {}", source,
                  pool_padding, pool_kernel);
    heddle::check(grid(size()).height > 0, ErrorKind::data,
                  "{}: the {} convolutions leave nothing of images of {} x {} pixels", source,
                  conv_layers, size().height, size().width);
    heddle::check(positional_embedding != "sine" || hidden_size % 2 == 0, ErrorKind::data,
                  "{}: positional_embedding is sine, which needs an even hidden_size; it is {}",
                  source, hidden_size);
  }
};

namespace {

Linear dense(const Scope& s, const CctConfig& c, int64_t in, int64_t out, bool bias = true) {
  return {s, {.in = in, .out = out, .bias = bias, .init = Init::normal(c.initializer_range)}};
}

nn::Convolution convolution(const Scope& s, const CctConfig& c, int64_t i) {
  const int64_t in = i == 0 ? c.num_channels : c.conv_width;
  const auto inputs = static_cast<double>(c.conv_kernel * c.conv_kernel * in);
  return {s / 0,
          {.in = in,
           .out = i + 1 == c.conv_layers ? c.hidden_size : c.conv_width,
           .kernel = c.conv_kernel,
           .stride = c.conv_stride,
           .padding = c.conv_padding,
           .bias = false,
           .of_pixels = i == 0,
           .init = Init::normal(std::sqrt(2 / inputs))}};  // He et al. 2015
}

// x += attention(pre_norm(x)); x = norm1(x); x += mlp(x).
struct CctBlock {
  nn::SelfAttention attention;
  nn::FeedForward mlp;
  LayerNorm pre_norm, norm1;
  std::string attention_site, mlp_site;
  double dropout, drop_path;

  CctBlock(const Scope& s, const CctConfig& c, int64_t i)
      : attention((s / "self_attn").prefix(),
                  dense(s / "self_attn" / "qkv", c, c.hidden_size, 3 * c.hidden_size, false),
                  dense(s / "self_attn" / "proj", c, c.hidden_size, c.hidden_size),
                  {.heads = c.num_attention_heads,
                   .dropout = c.attention_probs_dropout_prob,
                   .observed = fmt::format("attentions.{}", i)}),
        mlp(s.prefix(), dense(s / "linear1", c, c.hidden_size, c.intermediate_size),
            dense(s / "linear2", c, c.intermediate_size, c.hidden_size),
            {.activation = nn::activation_of(c.hidden_act), .dropout = c.hidden_dropout_prob}),
        pre_norm(s / "pre_norm", c.hidden_size, c.layer_norm_eps),
        norm1(s / "norm1", c.hidden_size, c.layer_norm_eps),
        attention_site((s / "self_attn" / "proj").prefix()),
        mlp_site((s / "linear2").prefix()),
        dropout(c.hidden_dropout_prob),
        drop_path(c.drop_path_rate * static_cast<double>(i) /
                  static_cast<double>(std::max<int64_t>(1, c.num_hidden_layers - 1))) {}

  void operator()(nn::Residual& x, const TokenRows& tokens, const Run& run) const {
    const auto leave = [&](const Tensor& sub, const std::string& site) {
      x.leave(sub, run.dropout(dropout, site, tokens.rows),
              run.drop_path(drop_path, site, tokens.rows), norm1);
    };
    leave(attention(x.enter(pre_norm), tokens, run), attention_site);
    const Tensor normed = x.enter(norm1);
    x = nn::Residual(normed, true);  // what came before it is left behind
    leave(mlp(normed, tokens.rows, run), mlp_site);
  }
};

}  // namespace

class Cct final : public ImageModel {
 public:
  using Config = CctConfig;
  static HubFamily family() {
    return {
        .heads = {{Head::image_classes, "CctForImageClassification"}, {Head::none, "CctModel"}}};
  }

  Cct(const Scope& s, const Config& c, const HubConfig& hub)
      : ImageModel({.channels = c.num_channels,
                    .image_size = c.size(),
                    .layers = c.num_hidden_layers,
                    .width = c.hidden_size}),
        c_(c),
        embeddings_((s / "tokenizer").prefix()),
        convolutions_(
            nn::make_layers(s / "tokenizer" / "conv_layers", c.conv_layers,
                            [&](const Scope& at, int64_t i) { return convolution(at, c, i); })),
        blocks_(nn::make_layers(s / "classifier" / "blocks", c.num_hidden_layers,
                                [&](const Scope& at, int64_t i) { return CctBlock(at, c, i); })),
        norm_(s / "classifier" / "norm", c.hidden_size, c.layer_norm_eps) {
    const ImageSize grid = c.grid(c.size());
    const int64_t tokens = grid.height * grid.width;
    if (c.positional_embedding == "learnable") {
      Parameter& table = (s / "classifier" / "positional_emb")
                             .parameter({tokens, c.hidden_size}, Init::normal(0.2),
                                        nn::Layout::as_is, {1, tokens, c.hidden_size});
      positions_.emplace(table, grid, nn::GridPositions::Options{});
    }
    if (hub.head != Head::image_classes) return;
    Parameter& query = (s / "classifier" / "attention_pool" / "weight")
                           .parameter({1, c.hidden_size}, Init::normal(c.initializer_range));
    heads_.sequence_classes = classes_of_pooled(
        s / "classifier" / "fc", {c.hidden_size, hub.classes(), c.initializer_range}, pool(query));
  }

  const nn::GridPositions* grid_positions() const override {
    return positions_ ? &*positions_ : nullptr;
  }
  ImageSize grid(const ImageSize& image) const override {
    const ImageSize grid = c_.grid(image);
    check(grid.height > 0, ErrorKind::data,
          "the convolutions leave nothing of an image of {} x {} pixels; the model was made for "
          "{} x {}",
          image.height, image.width, c_.size().height, c_.size().width);
    return grid;
  }

  using ImageModel::hidden;
  Tensor hidden(const ImageRows& images, const Run& run) const override {
    images.check(facts().channels);
    const auto rows = std::make_shared<const Segments>(tokens(images));
    const auto ids = run.dropout.training ? nn::row_ids(images.samples, *rows) : nullptr;
    return norm_(nn::run_stack("", nn::Residual(embed(images, *rows, ids, run), true),
                               blocks_.size(), nullptr, run,
                               [this, rows, ids, run](size_t i, nn::Residual& x, auto) {
                                 blocks_[i](x, TokenRows{.segments = rows.get(), .rows = ids}, run);
                               }));
  }

  // A softmax does not see what the pool's bias adds to all its scores.
  nn::TensorNames names() const override {
    nn::TensorNames names{.unneeded = {"classifier.attention_pool.bias"}};
    if (c_.positional_embedding != "learnable") {
      names.unneeded.emplace_back("classifier.positional_emb");
    }
    if (head() == Head::image_classes) return names;
    names.unneeded.emplace_back("classifier.attention_pool.");
    names.unneeded.emplace_back("classifier.fc.");
    return names;
  }

 private:
  // Section 3.2: convolution, ReLU and pool, then positions. The largest of a window's ReLUs is the
  // ReLU of its largest, with the same gradients, of fewer numbers.
  Tensor embed(const ImageRows& images, const Segments& rows,
               const std::shared_ptr<const RowIds>& ids, const Run& run) const {
    const LayerName layer(embeddings_);
    Tensor x = cast(images.x, run.compute);
    std::vector<ImageSize> sizes = *images.sizes;
    for (const nn::Convolution& convolution : convolutions_) {
      x = convolution(x, sizes, run);
      sizes = convolution.output_sizes(sizes);
      x = activation(Activation::relu, max_pool(x, sizes, c_.pool()));
      sizes = output_sizes(sizes, c_.pool());
    }
    const DropoutSpec spec = run.dropout(c_.hidden_dropout_prob, embeddings_, ids);
    if (positions_) return (*positions_)(x, sizes, spec, run);
    if (c_.positional_embedding == "none") return heddle::dropout(x, spec);
    const Tensor table = nn::sinusoids(0, 1, rows.max_length(), c_.hidden_size);
    return add_positions(x, table, rows.positions(), spec);
  }

  // Sequence pooling, section 3.2: softmax(h w) weighs the tokens, which is attention of one query.
  Heads::OfInput pool(Parameter& query) const {
    return [this, &query](const Tensor& h, const ModelInput& input, const Run& run) {
      const Segments keys = tokens(input.as<ImageRows>());
      const std::vector<int32_t> zeros(static_cast<size_t>(keys.count()));
      const Tensor queries = embedding(query.in(run.compute), zeros, 1, {}, {}, {});
      return attention(queries, h, h, Segments::uniform(keys.count(), 1), keys, {.scale = 1});
    };
  }

  Config c_;
  std::string embeddings_;  // name
  std::vector<nn::Convolution> convolutions_;
  std::optional<nn::GridPositions> positions_;
  std::vector<CctBlock> blocks_;
  LayerNorm norm_;
};

template std::unique_ptr<ModelConfig> new_config<Cct>();

}  // namespace heddle
