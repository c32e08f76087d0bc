// What DETR is made of: its config, and the layers of its encoder and its decoder.
#pragma once

#include <span>

#include "heddle/models/detector.h"
#include "heddle/nn/block.h"
#include "heddle/nn/positioned_attention.h"

namespace heddle {

/// Hugging Face's keys and defaults; normalize_before, which is RT-DETR's; and heddle's own, at
/// whose defaults a model is what it is without them.
struct DetrConfig {
  Json backbone_config;  ///< an object with a model_type, or timm's name of it
  int64_t num_channels = 3, num_queries = 100, d_model = 256;
  int64_t encoder_layers = 6, encoder_attention_heads = 8, encoder_ffn_dim = 2048;
  int64_t decoder_layers = 6, decoder_attention_heads = 8, decoder_ffn_dim = 2048;
  std::string activation_function = "relu", position_embedding_type = "sine";
  double dropout = 0.1, attention_dropout = 0, activation_dropout = 0;
  double init_std = 0.02, init_xavier_std = 1;
  bool normalize_before = false, auxiliary_loss = false, dilation = false;
  bool conditional_queries = false, norm_between_layers = false;
  SetLossWeights loss;
  DenoisingWeights denoising;

  template <class V>
  void fields(V& v) {
    v("backbone_config", backbone_config,
      "config.json of the model whose last map of features is read");
    v("num_channels", num_channels, "numbers of a pixel", between(1, kMostWidth));
    v("num_queries", num_queries, "objects that can be found in an image", between(1, kMostWidth));
    v("d_model", d_model, "width of encoder and decoder", between(1, kMostWidth));
    v("encoder_layers", encoder_layers, "number of encoder layers", between(0, kMostLayers));
    v("encoder_attention_heads", encoder_attention_heads, "must divide d_model", at_least(1));
    v("encoder_ffn_dim", encoder_ffn_dim, "width inside the encoder's feed-forward layers",
      between(1, kMostWidth));
    v("decoder_layers", decoder_layers, "number of decoder layers", between(1, kMostLayers));
    v("decoder_attention_heads", decoder_attention_heads, "must divide d_model", at_least(1));
    v("decoder_ffn_dim", decoder_ffn_dim, "width inside the decoder's feed-forward layers",
      between(1, kMostWidth));
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
    v("conditional_queries", conditional_queries,
      "each query has a point of the image around which it looks, and from which its box is "
      "counted");
    v("norm_between_layers", norm_between_layers,
      "the decoder's norm stands behind each of its layers, and once more behind the last, as in "
      "transformers where its auxiliary_loss is true");
  }
  void check(const std::string& source) const;
  static Json from_hub(const Json& json, const std::string& source);
  static void to_hub(Json& json);
};

/// How DETR's linear layers begin.
inline Init init_of(const DetrConfig& c) { return Init::xavier_uniform(c.init_xavier_std); }
inline LayerNorm norm_of(const Scope& s, const DetrConfig& c) { return {s, c.d_model, 1e-5}; }

/// The norm of a sublayer, whose name is the site of its dropout.
struct DetrSublayer {
  std::string site;
  double dropout;
  LayerNorm norm;

  DetrSublayer(const Scope& s, const DetrConfig& c)
      : site(s.prefix()), dropout(c.dropout), norm(norm_of(s, c)) {}
  Tensor enter(nn::Residual& x) const { return x.enter(norm); }
  void leave(nn::Residual& x, const Tensor& sub, const std::shared_ptr<const RowIds>& rows,
             const Run& run) const {
    x.leave(sub, run.dropout(dropout, site, rows), norm);
  }
};

/// NAME and NAME_layer_norm.
struct DetrAttention {
  nn::PositionedAttention attention;
  DetrSublayer around;

  struct Options {
    int64_t heads = 1;
    bool is_cross = false, has_spatial_scores = false;
    std::string observed = {};
  };
  DetrAttention(const Scope& s, const char* name, const DetrConfig& c, const Options& o);
};

/// fc1, fc2 and final_layer_norm.
struct DetrFeedForward {
  nn::FeedForward layers;
  DetrSublayer around;

  DetrFeedForward(const Scope& s, const DetrConfig& c, int64_t hidden);
  void operator()(nn::Residual& x, const std::shared_ptr<const RowIds>& rows,
                  const Run& run) const {
    around.leave(x, layers(around.enter(x), rows, run), rows, run);
  }
};

/// Two layers with ReLU between them: layers.0 and layers.1, which may be a head.
nn::FeedForward two_layers(const Scope& s, const DetrConfig& c, int64_t out, bool is_head);

/// The cells of the map: rows, and their positions, which queries and keys get.
struct DetrCells {
  Segments segments;
  std::shared_ptr<const RowIds> rows;  ///< for dropout
  Tensor positions;                    ///< [cells, d_model]
};

struct DetrEncoderLayer {
  DetrAttention self;
  DetrFeedForward mlp;

  DetrEncoderLayer(const Scope& s, const DetrConfig& c, int64_t i);
  /// positions: those of the cells, with their place on the tape.
  void operator()(nn::Residual& x, const DetrCells& cells, const Tensor& positions,
                  const Run& run) const;
};

/// What the queries of a pass are: those of each image, their positions, and what they look at.
struct DetrQueries {
  Segments segments;
  std::vector<int32_t> ids;                      ///< of each row in the table of positions
  std::shared_ptr<const RowIds> rows = nullptr;  ///< for dropout
  std::shared_ptr<const Visibility> visibility = nullptr;  ///< of noised ones; null: all see all
  std::vector<int32_t> learned = {}, noised = {};          ///< rows, where some are noised
};

/// Of conditional queries: Meng et al. 2021, "Conditional DETR for Fast Training Convergence"
/// (arXiv 2108.06152), section 3.3. Cross-attention compares states with states, and the sines of
/// each query's point, number by number times what two layers make of its state, with the cells'
/// positions.
struct DetrDecoderLayer {
  DetrAttention self, cross;
  DetrFeedForward mlp;
  bool is_conditional = false;
  /// Of conditional queries, in layers behind the first: [rows, d_model] of states.
  std::optional<nn::FeedForward> point_scale = {};

  /// s: the decoder's, whose layers share point_scale.
  DetrDecoderLayer(const Scope& s, const DetrConfig& c, int64_t i);
  /// outside: the encoder's states with their positions, and without; twice the queries' positions;
  /// of conditional queries the sines of their points, and once more the encoder's states.
  void operator()(nn::Residual& x, const DetrQueries& queries, const DetrCells& cells,
                  std::span<const Tensor> outside, const Run& run) const;

 private:
  /// What cross-attention reads; state: that of the stream before the layer, state_now: behind
  /// self-attention.
  nn::PositionedAttention::Inputs inputs(const Tensor& state, const Tensor& state_now,
                                         const DetrQueries& queries, const DetrCells& cells,
                                         std::span<const Tensor> outside, const Run& run) const;
};

}  // namespace heddle
