// Patches and tokens with their positions, blocks, and the heads that the kin have in common.
#include "heddle/models/families/vit_stack.h"

#include "heddle/ops/elementwise.h"
#include "heddle/ops/embedding.h"
#include "heddle/ops/shape.h"

namespace heddle {
namespace {

// A number, or two of them: height and width.
std::pair<Json, Json> both_sides(const Json& value, const std::string& what) {
  if (!value.is_array()) return {value, value};
  const Json::Array& sides = value.as_array();
  check(sides.size() == 2, ErrorKind::data, "{} has {} numbers; it must be one, or two", what,
        sides.size());
  return {sides[0], sides[1]};
}

ImageSize patches_of(const VitConfig& c, const ImageSize& image) {
  return {image.height / c.patch_size, image.width / c.patch_size};
}

Linear::Options dense(const VitConfig& c, int64_t in, int64_t out, bool bias = true) {
  return {.in = in, .out = out, .bias = bias, .init = Init::normal(c.initializer_range)};
}

// Each as [1, 1, width].
Parameter* token_rows(const Scope& s, const std::vector<std::string>& names, const VitConfig& c) {
  if (names.empty()) return nullptr;
  std::vector<nn::Part> parts;
  for (const std::string& name : names) {
    parts.push_back({.name = name, .rows = 1, .file_shape = {1, 1, c.hidden_size}});
  }
  return &s.stacked(std::move(parts), {0, c.hidden_size}, Init::normal(c.initializer_range))
              .without_decay();  // as in DeiT's code and timm's
}

Parameter& cell_table(const Scope& s, int64_t rows, const VitConfig& c) {
  return (s / "position_embeddings")
      .parameter({rows, c.hidden_size}, Init::normal(c.initializer_range), nn::Layout::as_is,
                 {1, rows, c.hidden_size});
}

Parameter& axes_table(const Scope& s, const ImageSize& grid, const VitConfig& c) {
  return s.stacked({{.name = "column_embeddings", .rows = grid.width},
                    {.name = "row_embeddings", .rows = grid.height}},
                   {0, c.hidden_size / 2}, Init::normal(c.initializer_range));
}

nn::GridPositions positions(const Scope& s, int64_t tokens, const VitConfig& c) {
  const ImageSize grid = patches_of(c, c.size());
  const bool is_of_axes = c.two_dimensional_positions;
  Parameter& table =
      is_of_axes ? axes_table(s, grid, c) : cell_table(s, tokens + grid.height * grid.width, c);
  return {table.without_decay(),
          grid,
          {.tokens = tokens,
           .is_antialiased = c.antialiased_positions,
           .of = is_of_axes ? nn::PositionsOf::axes : nn::PositionsOf::cells}};
}

nn::Block block(const Scope& s, const VitConfig& c, int64_t i) {
  const Scope attention = s / "attention" / "attention", out = s / "attention" / "output" / "dense";
  const int64_t width = c.hidden_size, hidden = c.intermediate_size;
  const auto norm = [&](const char* name) { return LayerNorm(s / name, width, c.layer_norm_eps); };
  const double rise =
      static_cast<double>(i) / static_cast<double>(std::max<int64_t>(1, c.num_hidden_layers - 1));
  return {.attention = {attention.prefix(),
                        Linear(attention, {"query", "key", "value"},
                               dense(c, width, width, c.qkv_bias)),
                        Linear(out, dense(c, width, width)),
                        {.heads = c.num_attention_heads,
                         .dropout = c.attention_probs_dropout_prob,
                         .observed = fmt::format("attentions.{}", i)}},
          .attention_norm = norm("layernorm_before"),
          .mlp = nn::FeedForward(s.prefix(),
                                 Linear(s / "intermediate" / "dense", dense(c, width, hidden)),
                                 Linear(s / "output" / "dense", dense(c, hidden, width)),
                                 {.activation = nn::activation_of(c.hidden_act)}),
          .mlp_norm = norm("layernorm_after"),
          .attention_site = out.prefix(),
          .mlp_site = (s / "output" / "dense").prefix(),
          .dropout = c.hidden_dropout_prob,
          .drop_path = c.drop_path_rate * rise};
}

}  // namespace

void VitConfig::check(const std::string& source) const {
  check_heads(hidden_size, "hidden_size", num_attention_heads, source);
  heddle::check(size().height >= patch_size && size().width >= patch_size, ErrorKind::data,
                "{}: patch_size is {}, images are of {} x {} pixels; none fits", source, patch_size,
                size().height, size().width);
  heddle::check(!two_dimensional_positions || hidden_size % 2 == 0, ErrorKind::data,
                "{}: two_dimensional_positions are of two halves, which needs an even hidden_size; "
                "it is {}",
                source, hidden_size);
}

Json VitConfig::from_hub(const Json& json, const std::string& source) {
  Json flat = Json::object();
  for (const auto& [key, value] : json.as_object(source)) {
    const std::string what = fmt::format("{}: key '{}'", source, key);
    if (key == "image_size") {
      const auto [height, width] = both_sides(value, what);
      flat[key] = height;
      if (width != height) flat["image_width"] = width;
    } else if (key == "patch_size") {
      const auto [height, width] = both_sides(value, what);
      heddle::check(height == width, ErrorKind::data,
                    "{} is {}; heddle has square patches, of one number", what, value.dump());
      flat[key] = height;
    } else {
      flat[key] = value;
    }
  }
  return flat;
}

void VitConfig::to_hub(Json& json) {
  const std::pair<const char*, Json> plain[] = {{"antialiased_positions", false},
                                                {"two_dimensional_positions", false},
                                                {"pooling", "token"},
                                                {"class_token", true},
                                                {"norm_after_pooling", false}};
  for (const auto& [key, value] : plain) {
    const Json* const found = json.find(key);  // Swin has none of them
    if (found != nullptr && *found == value) json.erase(key);
  }
  const Json width = json.at("image_width");
  json.erase("image_width");
  if (!width.is_null()) {
    Json both = Json::array();
    both.push_back(json.at("image_size")), both.push_back(width);
    json["image_size"] = both;
  }
}

VitStack::VitStack(const Parts& p, const VitConfig& c, const HubConfig& hub)
    : ImageModel({.channels = c.num_channels,
                  .image_size = c.size(),
                  .layers = c.num_hidden_layers,
                  .width = c.hidden_size,
                  .tokens = std::ssize(p.tokens),
                  .pools_grid = p.pools_mean}),
      base_(p.base),
      embeddings_((p.scope / "embeddings").prefix()),
      c_(c),
      labels_(hub.classes()),
      patches_(p.scope / "embeddings" / "patch_embeddings" / "projection",
               {.in = c.num_channels,
                .out = c.hidden_size,
                .kernel = c.patch_size,
                .stride = c.patch_size,
                .of_pixels = true,
                .init = Init::normal(c.initializer_range)}),
      tokens_(token_rows(p.scope / "embeddings", p.tokens, c)),
      positions_(positions(p.scope / "embeddings", std::ssize(p.tokens), c)),
      layers_(nn::make_layers(p.scope / "encoder" / "layer", c.num_hidden_layers,
                              [&](const Scope& at, int64_t i) { return block(at, c, i); })),
      norms_mean_(p.norms_mean) {
  if (!norms_mean_ || !hub.is_backbone) {
    norm_.emplace(p.scope / "layernorm", c.hidden_size, c.layer_norm_eps);
  }
  if (hub.head != Head::none || hub.is_backbone) return;
  if (p.pools_mean) {
    heads_.pooler = patch_mean();
  } else if (hub.has_pooler) {
    heads_.pooler = dense_pooler(p.scope / "pooler" / "dense");
  }
}

Heads::OfInput VitStack::dense_pooler(const Scope& s) const {
  const int64_t width = c_.pooler_output_size.value_or(c_.hidden_size);
  return [first = token(), linear = Linear(s, dense(c_, c_.hidden_size, width)),
          kind = nn::activation_of(c_.pooler_act)](const Tensor& h, const ModelInput& input,
                                                   const Run& run) {
    return linear(first(h, input, run), run, kind);
  };
}

Heads::OfInput VitStack::patch_mean() const {
  if (!norms_mean_) return grid_mean();
  return [this, mean = grid_mean()](const Tensor& h, const ModelInput& input, const Run& run) {
    return (*norm_)(mean(h, input, run));
  };
}

ImageSize VitStack::grid(const ImageSize& image) const {
  const ImageSize grid = patches_of(c_, image);
  check(grid.height > 0 && grid.width > 0, ErrorKind::data,
        "an image of {} x {} pixels holds no patch of {} x {}; the model was made for {} x {}",
        image.height, image.width, c_.patch_size, c_.patch_size, c_.size().height, c_.size().width);
  return grid;
}

// Of each image its tokens and patches, plus positions, dropped.
Tensor VitStack::embed(const ImageRows& images, const Segments& rows,
                       const std::shared_ptr<const RowIds>& ids, const Run& run) const {
  const LayerName layer(embeddings_);
  const std::vector<ImageSize> grids = this->grids(images);
  Tensor x = patches_(cast(images.x, run.compute), *images.sizes, run);
  if (tokens_ != nullptr) {
    const int64_t n = rows.count(), each = facts().tokens;
    std::vector<int32_t> tokens;
    for (int64_t i = 0; i < n * each; ++i) tokens.push_back(static_cast<int32_t>(i % each));
    const Tensor first = embedding(tokens_->in(run.compute), tokens, 1, {}, {}, {});
    x = join_segments(first, Segments::uniform(n, each), x, nn::image_segments(grids));
  }
  return positions_(x, grids, run.dropout(c_.hidden_dropout_prob, embeddings_, ids), run);
}

// The last hidden state that an observer sees has not gone through the norm, as in transformers.
// Blocks may be called again in the backward pass, so they own the segments.
Tensor VitStack::hidden(const ImageRows& images, const Run& run) const {
  images.check(facts().channels);
  const auto rows = std::make_shared<const Segments>(tokens(images));
  const auto ids = run.dropout.training ? nn::row_ids(images.samples, *rows) : nullptr;
  const Tensor h =
      nn::run_stack("", nn::Residual(embed(images, *rows, ids, run), true), layers_.size(), nullptr,
                    run, [this, rows, ids, run](size_t i, nn::Residual& x, auto) {
                      layers_[i](x, TokenRows{.segments = rows.get(), .rows = ids}, run);
                    });
  return norms_mean_ ? h : (*norm_)(h);
}

Heads::OfInput VitStack::classes(const Scope& s, Heads::OfInput pooler) const {
  return classes_of_pooled(s, {c_.hidden_size, labels_, c_.initializer_range}, std::move(pooler));
}

// Checkpoints of other tasks have other heads.
nn::TensorNames VitStack::names() const {
  nn::TensorNames names{.base = base_,
                        .respelled = {{"encoder.layer.", "layers."},
                                      {"attention.attention.query", "attention.q_proj"},
                                      {"attention.attention.key", "attention.k_proj"},
                                      {"attention.attention.value", "attention.v_proj"},
                                      {"attention.output.dense", "attention.o_proj"},
                                      {"intermediate.dense", "mlp.fc1"},
                                      {"output.dense", "mlp.fc2"}},
                        .unneeded = {"embeddings.mask_token", "decoder."}};
  const auto pass_over = [&](const std::string& name) { names.unneeded.push_back(name); };
  const bool has_dense_pooler = heads_.pooler && !facts().pools_grid;
  if (!has_dense_pooler) pass_over(base_ + ".pooler."), pass_over("pooler.");
  if (!norm_) pass_over("layernorm.weight"), pass_over("layernorm.bias");
  if (head() != Head::image_classes) pass_over("classifier.");
  if (head() != Head::distilled_classes) {
    pass_over("cls_classifier."), pass_over("distillation_classifier.");
  }
  return names;
}

}  // namespace heddle
