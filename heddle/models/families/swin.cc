// Swin: Liu et al. 2021, "Swin Transformer: Hierarchical Vision Transformer using Shifted Windows"
// (arXiv 2103.14030): stages of blocks whose attention runs inside windows, shifted in every other
// block; between stages four neighbours become one token.
#include <numeric>

#include "heddle/models/backbone.h"
#include "heddle/models/families/vit_stack.h"
#include "heddle/models/windows.h"
#include "heddle/ops/images/windows.h"
#include "heddle/ops/shape.h"

namespace heddle {

/// Hugging Face's keys; the defaults are Swin-T.
struct SwinConfig {
  int64_t image_size = 224, patch_size = 4, num_channels = 3, embed_dim = 96, window_size = 7;
  std::optional<int64_t> image_width;
  std::vector<int64_t> depths = {2, 2, 6, 2}, num_heads = {3, 6, 12, 24};
  double mlp_ratio = 4;
  bool qkv_bias = true, use_absolute_embeddings = false;
  double hidden_dropout_prob = 0, attention_probs_dropout_prob = 0, drop_path_rate = 0.1;
  std::string hidden_act = "gelu";
  double initializer_range = 0.02, layer_norm_eps = 1e-5;

  template <class V>
  void fields(V& v) {
    v("image_size", image_size, "height of the images, in pixels", between(1, 65535));
    v("image_width", image_width, "their width; none: image_size", between(1, 65535));
    v("patch_size", patch_size, "side of a patch, in pixels", between(1, 65535));
    v("num_channels", num_channels, "numbers of a pixel", between(1, 65535));
    v("embed_dim", embed_dim, "width of the first stage; each next one is twice as wide",
      between(1, 1 << 20));
    v("depths", depths, "number of blocks of each stage", between(1, 1000));
    v("num_heads", num_heads, "attention heads of each stage; must divide its width",
      between(1, kMostHeads));
    v("window_size", window_size, "side of a window, in tokens", between(1, 64));
    v("mlp_ratio", mlp_ratio, "width inside the feed-forward layers over that of the stage",
      above(0));
    v("qkv_bias", qkv_bias, "biases of queries, keys and values");
    v("use_absolute_embeddings", use_absolute_embeddings, "learned positions of patches too");
    v("hidden_dropout_prob", hidden_dropout_prob, "dropout of embeddings and sublayers",
      from_below(0, 1));
    v("attention_probs_dropout_prob", attention_probs_dropout_prob,
      "dropout of the attention weights", from_below(0, 1));
    v("drop_path_rate", drop_path_rate,
      "probability that an image goes past a sublayer of the last block, rising from 0",
      from_below(0, 1));
    v("hidden_act", hidden_act, "of the feed-forward layers", one_of(nn::activation_names()));
    v("initializer_range", initializer_range, "deviation of the weights at the start", at_least(0));
    v("layer_norm_eps", layer_norm_eps,
      "inside the root of the norms of blocks and of the last one", above(0));
  }

  int64_t stages() const { return std::ssize(depths); }
  int64_t blocks() const { return std::accumulate(depths.begin(), depths.end(), int64_t{0}); }
  int64_t width(int64_t stage) const { return embed_dim << stage; }
  ImageSize size() const { return {image_size, image_width.value_or(image_size)}; }
  /// Errors: data, naming `source`, for fields that do not fit together.
  void check(const std::string& source) const;
  static Json from_hub(const Json& json, const std::string& source);
  static void to_hub(Json& json);
};

namespace {

// That of the embedding and of merging is the same in all configs.
constexpr double kEps = 1e-5;

ImageSize patches_of(const SwinConfig& c, const ImageSize& image) {
  return {(image.height + c.patch_size - 1) / c.patch_size,
          (image.width + c.patch_size - 1) / c.patch_size};
}

// The tokens of a pass at a stage, in both kinds of windows. Blocks may be called again in the
// backward pass, so they own it.
struct Tokens {
  struct Windows : GridWindows {
    std::shared_ptr<const RowIds> ids;
  };
  std::vector<ImageSize> grids;
  Segments segments;                  // of the images
  std::shared_ptr<const RowIds> ids;  // null: nothing is dropped
  Windows windows[2];                 // as they are, shifted

  Tokens(std::vector<ImageSize> g, const std::vector<uint32_t>* samples, int64_t side, bool clamps)
      : grids(std::move(g)),
        segments(nn::image_segments(grids)),
        ids(nn::row_ids(samples, segments)) {
    for (int64_t shifted : {0, 1}) {
      Windows& w = windows[shifted];
      static_cast<GridWindows&>(w) =
          windows_of(grids, {.side = side, .shift = shifted * (side / 2), .clamps = clamps});
      if (ids) w.ids = ids->of(w.order->from);
    }
  }
};

// Section 3.2 of the paper.
struct SwinBlock {
  nn::SelfAttention attention;
  LayerNorm norm, mlp_norm;
  nn::FeedForward mlp;
  std::string name, attention_site, mlp_site;
  double dropout = 0, drop_path = 0;
  bool is_shifted = false;

  void operator()(nn::Residual& x, const Tokens& tokens, const Run& run) const {
    const auto leave = [&](const Tensor& sub, const std::string& site, const LayerNorm& of) {
      x.leave(sub, run.dropout(dropout, site, tokens.ids),
              run.drop_path(drop_path, site, tokens.ids), of);
    };
    leave(in_windows(x.enter(norm), tokens.windows[is_shifted], run), attention_site, norm);
    leave(mlp(x.enter(mlp_norm), tokens.ids, run), mlp_site, mlp_norm);
  }

 private:
  Tensor in_windows(const Tensor& x, const Tokens::Windows& w, const Run& run) const {
    const LayerName layer(name);
    const TokenRows rows{.segments = &w.segments, .rows = w.ids, .visibility = w.visibility};
    return restore(attention(reorder(x, w.order), rows, run), w.order);
  }
};

Linear::Options dense(const SwinConfig& c, int64_t in, int64_t out, bool bias = true) {
  return {.in = in, .out = out, .bias = bias, .init = Init::normal(c.initializer_range)};
}

// A row for each (dy, dx) from a key to a query, -side + 1 .. side - 1 both.
std::shared_ptr<const nn::BiasTable> biases(const Scope& s, const SwinConfig& c, int64_t heads) {
  const auto side = static_cast<int32_t>(c.window_size);
  const int32_t line = 2 * side - 1;
  std::vector<int32_t> buckets(static_cast<size_t>(line * line)), codes;
  std::iota(buckets.rbegin(), buckets.rend(), 0);
  for (int32_t i = 0; i < side * side; ++i) codes.push_back(i / side * line + i % side);
  Parameter& table =
      s.parameter({line * line, heads}, Init::normal(c.initializer_range)).without_decay();
  return std::make_shared<const nn::BiasTable>(
      nn::BiasTable{&table, std::make_shared<const std::vector<int32_t>>(std::move(buckets)),
                    std::make_shared<const std::vector<int32_t>>(std::move(codes))});
}

SwinBlock block(const Scope& s, const SwinConfig& c, int64_t stage, int64_t i) {
  const Scope attention = s / "attention" / "self", out = s / "attention" / "output" / "dense";
  const int64_t width = c.width(stage), heads = c.num_heads[static_cast<size_t>(stage)];
  const auto hidden = static_cast<int64_t>(c.mlp_ratio * static_cast<double>(width));
  const int64_t number = std::accumulate(c.depths.begin(), c.depths.begin() + stage, i);
  const auto norm = [&](const char* name) { return LayerNorm(s / name, width, c.layer_norm_eps); };
  const double rise =
      static_cast<double>(number) / static_cast<double>(std::max<int64_t>(1, c.blocks() - 1));
  return {.attention = {attention.prefix(),
                        Linear(attention, {"query", "key", "value"},
                               dense(c, width, width, c.qkv_bias)),
                        Linear(out, dense(c, width, width)),
                        {.heads = heads,
                         .dropout = c.attention_probs_dropout_prob,
                         .bias = biases(attention / "relative_position_bias_table", c, heads),
                         .observed = fmt::format("attentions.{}", number)}},
          .norm = norm("layernorm_before"),
          .mlp_norm = norm("layernorm_after"),
          .mlp = nn::FeedForward(s.prefix(),
                                 Linear(s / "intermediate" / "dense", dense(c, width, hidden)),
                                 Linear(s / "output" / "dense", dense(c, hidden, width)),
                                 {.activation = nn::activation_of(c.hidden_act)}),
          .name = s.prefix(),
          .attention_site = out.prefix(),
          .mlp_site = (s / "output" / "dense").prefix(),
          .dropout = c.hidden_dropout_prob,
          .drop_path = c.drop_path_rate * rise,
          .is_shifted = i % 2 == 1};
}

// Section 3.1, patch merging: a norm and a linear layer over four neighbours side by side.
struct Merging {
  std::string name;
  LayerNorm norm;
  Linear reduction;

  Merging(const Scope& s, const SwinConfig& c, int64_t width)
      : name(s.prefix()),
        norm(s / "norm", 4 * width, kEps),
        reduction(s / "reduction", dense(c, 4 * width, 2 * width, false)) {}
  Tensor operator()(const Tensor& x, std::span<const ImageSize> grids, const Run& run) const {
    const LayerName layer(name);
    const Tensor all = reorder(x, neighbours_of(grids));
    return reduction(norm(reshape(all, {all.size(0) / 4, 4 * all.size(1)})), run);
  }
};

struct SwinStage {
  std::vector<SwinBlock> blocks;
  std::optional<Merging> merging;  // into the next one

  SwinStage(const Scope& s, const SwinConfig& c, int64_t i)
      : blocks(nn::make_layers(s / "blocks", c.depths[static_cast<size_t>(i)],
                               [&](const Scope& at, int64_t j) { return block(at, c, i, j); })) {
    if (i + 1 < c.stages()) merging.emplace(s / "downsample", c, c.width(i));
  }
  // `tokens` outlive the backward pass if blocks are computed again in it.
  Tensor operator()(const Tensor& x, const std::shared_ptr<const Tokens>& tokens,
                    const Run& run) const {
    nn::Residual stream(x, true);
    for (const SwinBlock& each : blocks) {
      const auto layer = [&each, tokens, run](nn::Residual& y, std::span<const Tensor>) {
        each(y, *tokens, run);
      };
      if (run.recompute && is_recording()) {
        stream.pass_recomputed(layer, {}, run.router_logits);
      } else {
        layer(stream, {});
      }
    }
    return stream.value();
  }
};

std::optional<nn::GridPositions> positions(const Scope& s, const SwinConfig& c) {
  if (!c.use_absolute_embeddings) return {};
  const ImageSize grid = patches_of(c, c.size());
  const int64_t rows = grid.height * grid.width;
  Parameter& table = s.parameter({rows, c.embed_dim}, Init::normal(c.initializer_range),
                                 nn::Layout::as_is, {1, rows, c.embed_dim})
                         .without_decay();
  return nn::GridPositions(table, grid, {});
}

}  // namespace

class Swin final : public Backbone, public WithWindows {
 public:
  using Config = SwinConfig;
  static HubFamily family() {
    return {
        .heads = {{Head::image_classes, "SwinForImageClassification"}, {Head::none, "SwinModel"}},
        .passed_over = {{"is_causal", Json()}}};
  }
  Swin(const Scope& s, const Config& c, const HubConfig& hub)
      : Swin(base_scope(s, "swin", hub), s, c, hub) {}

  ImageSize grid_of(const ImageSize& image, size_t map) const override;
  const nn::GridPositions* grid_positions() const override {
    return positions_ ? &*positions_ : nullptr;
  }
  using ImageModel::hidden;
  Tensor hidden(const ImageRows& images, const Run& run) const override;
  std::vector<int64_t> channels() const override;
  std::vector<FeatureMap> features(const ImageRows& images, const Run& run) const override;
  bool has_normed_maps() const override { return true; }
  ImageWindows windows(int64_t layer, const ImageSize& image) const override;
  nn::TensorNames names() const override;

 private:
  Swin(const Scope& base, const Scope& s, const Config& c, const HubConfig& hub);
  Tensor embed(const ImageRows& images, std::vector<ImageSize>& grids, const Run& run) const;

  std::string embeddings_;  // the name
  Config c_;
  nn::Convolution patches_;
  LayerNorm patch_norm_;
  std::optional<nn::GridPositions> positions_;
  std::vector<SwinStage> stages_;
  std::optional<LayerNorm> norm_;  // none below another model
};

void SwinConfig::check(const std::string& source) const {
  heddle::check(!depths.empty() && depths.size() == num_heads.size() && depths.size() <= 16,
                ErrorKind::data,
                "{}: depths is of {} stages, num_heads of {}; both must be of as many, 1 to 16",
                source, depths.size(), num_heads.size());
  for (int64_t i = 0; i < stages(); ++i) {
    check_heads(width(i), fmt::format("stage {}'s width", i + 1), num_heads[static_cast<size_t>(i)],
                source);
  }
  const auto times = [&](int64_t of_stage) { return mlp_ratio * static_cast<double>(of_stage); };
  heddle::check(times(embed_dim) >= 1 && times(width(stages() - 1)) <= kMostWidth, ErrorKind::data,
                "{}: mlp_ratio is {}; times the stages' widths, from {}, it must be from 1 to {}",
                source, mlp_ratio, embed_dim, kMostWidth);
}

// What transformers writes beside the fields says nothing more.
Json SwinConfig::from_hub(const Json& json, const std::string& source) {
  Json flat = VitConfig::from_hub(json, source);
  for (const char* key :
       {"path_norm", "num_layers", "stage_names", "out_features", "out_indices"}) {
    flat.erase(key);
  }
  return flat;
}

void SwinConfig::to_hub(Json& json) {
  VitConfig::to_hub(json);
  json["hidden_size"] = json.at("embed_dim").as_int("embed_dim")
                        << (json.at("depths").as_array().size() - 1);
}

Swin::Swin(const Scope& base, const Scope& s, const Config& c, const HubConfig& hub)
    : Backbone({.channels = c.num_channels,
                .image_size = c.size(),
                .layers = c.blocks(),
                .width = c.width(c.stages() - 1),
                .tokens = 0}),
      embeddings_((base / "embeddings").prefix()),
      c_(c),
      patches_(base / "embeddings" / "patch_embeddings" / "projection",
               {.in = c.num_channels,
                .out = c.embed_dim,
                .kernel = c.patch_size,
                .stride = c.patch_size,
                .of_pixels = true,
                .init = Init::normal(c.initializer_range)}),
      patch_norm_(base / "embeddings" / "norm", c.embed_dim, kEps),
      positions_(positions(base / "embeddings" / "position_embeddings", c)),
      stages_(nn::make_layers(base / "encoder" / "layers", c.stages(),
                              [&](const Scope& at, int64_t i) { return SwinStage(at, c, i); })) {
  if (!hub.is_backbone) norm_.emplace(base / "layernorm", facts().width, c.layer_norm_eps);
  if (hub.head == Head::none) heads_.pooler = grid_mean();
  if (hub.head != Head::image_classes) return;
  heads_.sequence_classes = classes_of_pooled(
      s / "classifier", {facts().width, hub.classes(), c.initializer_range}, grid_mean());
}

// That of a stage.
ImageSize Swin::grid_of(const ImageSize& image, size_t map) const {
  check(image.height > 0 && image.width > 0, ErrorKind::data,
        "an image of {} x {} pixels has nothing to be seen", image.height, image.width);
  std::vector<ImageSize> grids = {patches_of(c_, image)};
  for (size_t i = 0; i < map; ++i) grids = merged_sizes(grids);
  return grids[0];
}

// Of each image its patches; those that reach beyond it are filled with zeros.
Tensor Swin::embed(const ImageRows& images, std::vector<ImageSize>& grids, const Run& run) const {
  images.check(facts().channels);
  const LayerName layer(embeddings_);
  for (const ImageSize& size : *images.sizes) grids.push_back(grid_of(size, 0));
  const PaddedGrids padded = padded_to(*images.sizes, c_.patch_size);
  Tensor x = cast(images.x, run.compute);
  if (padded.order) x = reorder(x, padded.order);
  x = patch_norm_(patches_(x, padded.sizes, run));
  const auto ids =
      run.dropout.training ? nn::row_ids(images.samples, nn::image_segments(grids)) : nullptr;
  const DropoutSpec spec = run.dropout(c_.hidden_dropout_prob, embeddings_, ids);
  return positions_ ? (*positions_)(x, grids, spec, run) : dropout(x, spec);
}

// The last state that an observer sees has not gone through the norm, as in transformers.
Tensor Swin::hidden(const ImageRows& images, const Run& run) const {
  std::vector<ImageSize> grids;
  Tensor x = embed(images, grids, run);
  const auto show = [&](size_t i) {
    nn::Residual state(x, false);
    nn::observe(run, fmt::format("hidden_states.{}", i), state);
  };
  for (size_t i = 0; i < stages_.size(); ++i) {
    show(i);
    const auto* const samples = run.dropout.training ? images.samples : nullptr;
    x = stages_[i](x, std::make_shared<const Tokens>(grids, samples, c_.window_size, true), run);
    if (!stages_[i].merging) continue;
    x = (*stages_[i].merging)(x, grids, run);
    grids = merged_sizes(grids);
  }
  show(stages_.size());
  return norm_ ? (*norm_)(x) : x;
}

std::vector<int64_t> Swin::channels() const {
  std::vector<int64_t> widths;
  for (int64_t i = 0; i < c_.stages(); ++i) widths.push_back(c_.width(i));
  return widths;
}

// As transformers' SwinBackbone: windows reach beyond grids that are smaller, and are shifted all
// the same.
std::vector<FeatureMap> Swin::features(const ImageRows& images, const Run& run) const {
  std::vector<FeatureMap> maps;
  std::vector<ImageSize> grids;
  Tensor x = embed(images, grids, run);
  for (const SwinStage& stage : stages_) {
    const auto* const samples = run.dropout.training ? images.samples : nullptr;
    x = stage(x, std::make_shared<const Tokens>(grids, samples, c_.window_size, false), run);
    maps.push_back({x, grids});
    if (!stage.merging) continue;
    x = (*stage.merging)(x, grids, run);
    grids = merged_sizes(grids);
  }
  return maps;
}

ImageWindows Swin::windows(int64_t layer, const ImageSize& image) const {
  check(layer >= 0 && layer < c_.blocks(), ErrorKind::internal, "there is no block {}", layer);
  int64_t stage = 0;
  for (; layer >= c_.depths[static_cast<size_t>(stage)]; ++stage) {
    layer -= c_.depths[static_cast<size_t>(stage)];
  }
  const ImageSize grid = grid_of(image, stage);
  const int64_t side = c_.window_size;
  const bool is_shifted = layer % 2 == 1 && std::min(grid.height, grid.width) > side;
  const int64_t shift = is_shifted ? side / 2 : 0;
  const GridWindows all = windows_of(std::vector<ImageSize>{grid}, {.side = side, .shift = shift});
  return {.grid = grid,
          .side = side,
          .windows = {(grid.height + side - 1) / side, (grid.width + side - 1) / side},
          .shift = shift,
          .tokens = all.order->from,
          .regions = all.regions};
}

nn::TensorNames Swin::names() const {
  nn::TensorNames names{
      .base = "swin",
      .respelled = {{"attention.self.relative_position_bias_table",
                     "attention.relative_position_bias.relative_position_bias_table"},
                    {"attention.self.query", "attention.q_proj"},
                    {"attention.self.key", "attention.k_proj"},
                    {"attention.self.value", "attention.v_proj"},
                    {"attention.output.dense", "attention.o_proj"},
                    {"intermediate.dense", "mlp.fc1"},
                    {"output.dense", "mlp.fc2"}},
      .unneeded = {"embeddings.mask_token", "decoder.", "relative_position_index", "attn_mask",
                   "swin.layernorm.weight", "swin.layernorm.bias"}};
  if (head() != Head::image_classes) names.unneeded.emplace_back("classifier.");
  return names;
}

template std::unique_ptr<ModelConfig> new_config<Swin>();

}  // namespace heddle
