// The encoder of ViT and its kin: Dosovitskiy et al. 2021, "Transformers for Image Recognition at
// Scale" (arXiv 2010.11929), section 3.1: patches, tokens before them, learned positions (appendix
// D.4: those of columns and rows too), pre-norm blocks; with stochastic depth of Huang et al. 2016.
#pragma once

#include "heddle/models/image_model.h"
#include "heddle/nn/block.h"
#include "heddle/nn/images/convolution.h"
#include "heddle/nn/images/grid_positions.h"

namespace heddle {

/// Hugging Face's keys; the defaults are ViT-Base/16.
struct VitConfig {
  int64_t hidden_size = 768, num_hidden_layers = 12, num_attention_heads = 12;
  int64_t intermediate_size = 3072;
  std::string hidden_act = "gelu", pooler_act = "tanh";
  double hidden_dropout_prob = 0, attention_probs_dropout_prob = 0;
  double initializer_range = 0.02, layer_norm_eps = 1e-12;
  int64_t image_size = 224, patch_size = 16, num_channels = 3;
  std::optional<int64_t> image_width, pooler_output_size;
  bool qkv_bias = true, antialiased_positions = false, two_dimensional_positions = false;
  double drop_path_rate = 0;

  template <class V>
  void fields(V& v) {
    v("hidden_size", hidden_size, "width of the residual stream", between(1, kMostWidth));
    v("num_hidden_layers", num_hidden_layers, "number of blocks", between(1, kMostLayers));
    v("num_attention_heads", num_attention_heads, "attention heads; must divide hidden_size",
      between(1, kMostHeads));
    v("intermediate_size", intermediate_size, "width inside the feed-forward layers",
      between(1, kMostWidth));
    v("hidden_act", hidden_act, "of the feed-forward layers", one_of(nn::activation_names()));
    v("hidden_dropout_prob", hidden_dropout_prob, "dropout of embeddings and sublayers",
      from_below(0, 1));
    v("attention_probs_dropout_prob", attention_probs_dropout_prob,
      "dropout of the attention weights", from_below(0, 1));
    v("initializer_range", initializer_range, "deviation of the weights at the start", at_least(0));
    v("layer_norm_eps", layer_norm_eps, "inside the root of each norm", above(0));
    v("image_size", image_size, "height of the images, in pixels", between(1, 65535));
    v("image_width", image_width, "their width; none: image_size", between(1, 65535));
    v("patch_size", patch_size, "side of a patch, in pixels", between(1, 65535));
    v("num_channels", num_channels, "numbers of a pixel", between(1, 65535));
    v("qkv_bias", qkv_bias, "biases of queries, keys and values");
    v("pooler_output_size", pooler_output_size, "width of the pooler; none: hidden_size",
      between(1, kMostWidth));
    v("pooler_act", pooler_act, "of the pooler", one_of(nn::activation_names()));
    v("drop_path_rate", drop_path_rate,
      "probability that an image goes past a sublayer of the last block, rising from 0",
      from_below(0, 1));
    v("antialiased_positions", antialiased_positions,
      "of images of other sizes positions are interpolated as timm does, not as transformers");
    v("two_dimensional_positions", two_dimensional_positions,
      "positions are learned of columns and of rows, and a patch has both, half of its width each");
  }
  ImageSize size() const { return {image_size, image_width.value_or(image_size)}; }
  /// Errors: data, naming `source`, for fields that do not fit together.
  void check(const std::string& source) const;

  /// image_size and patch_size may be [height, width].
  static Json from_hub(const Json& json, const std::string& source);
  /// Keys of heddle's own, those of Vit too, are written where they say something.
  static void to_hub(Json& json);
};

class VitStack : public ImageModel {
 public:
  struct Parts {
    Scope scope;                      ///< where everything but classes stands
    std::string base;                 ///< what checkpoints call that
    std::vector<std::string> tokens;  ///< the names of those before the patches
    bool pools_mean = false;          ///< the mean of the patches is classified, and no token
    bool norms_mean = false;          ///< the last norm stands behind it
  };
  VitStack(const Parts& parts, const VitConfig& c, const HubConfig& hub);

  ImageSize grid(const ImageSize& image) const override;
  const nn::GridPositions* grid_positions() const override { return &positions_; }
  using ImageModel::hidden;
  Tensor hidden(const ImageRows& images, const Run& run) const override;
  nn::TensorNames names() const override;

 protected:
  /// Classes by what a pooler gives.
  Heads::OfInput classes(const Scope& s, Heads::OfInput pooler) const;
  /// The mean of the patches' states, normed.
  Heads::OfInput patch_mean() const;

 private:
  Tensor embed(const ImageRows& images, const Segments& rows,
               const std::shared_ptr<const RowIds>& ids, const Run& run) const;
  Heads::OfInput dense_pooler(const Scope& s) const;

  std::string base_, embeddings_;  // names
  VitConfig c_;
  int64_t labels_;
  nn::Convolution patches_;
  Parameter* tokens_;  // null where there are none
  nn::GridPositions positions_;
  std::vector<nn::Block> layers_;
  std::optional<LayerNorm> norm_;  // none below another model that reads states before a mean
  bool norms_mean_;
};

}  // namespace heddle
