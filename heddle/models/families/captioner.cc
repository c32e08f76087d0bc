// Show, attend and tell: Xu et al. 2015. A network's grid over an image is what a recurrent decoder
// asks before each word.
#include "heddle/models/captioner.h"

#include "heddle/models/backbone.h"
#include "heddle/models/family.h"
#include "heddle/nn/images/cell_positions.h"
#include "heddle/nn/recurrent/memory_decoder.h"
#include "heddle/ops/elementwise.h"
#include "heddle/ops/embedding.h"
#include "heddle/ops/reduce.h"
#include "heddle/ops/shape.h"

namespace heddle {
namespace {

// A grid of 8 x 8 over 64 x 64 pixels, whose cells see 24 x 24 of them: where cells see all of an
// image, nothing is learned about where to look.
const Json& default_backbone() {
  static const Json config = Json::parse(R"({
      "model_type": "resnet", "stem": "cifar", "downsample": "pool", "layer_type": "plain",
      "norm": "group", "embedding_size": 32, "hidden_sizes": [64, 128, 128],
      "depths": [0, 0, 0]})");
  return config;
}

/// Heddle's own keys.
struct CaptionerConfig {
  Json backbone_config = default_backbone();
  int64_t num_channels = 3, image_size = 64;
  std::string position_embedding_type = "sine";
  int64_t memory_size = 128;
  int64_t vocab_size = 1000, embedding_size = 128, hidden_size = 256, decoder_layers = 1;
  std::string cell = "lstm", attention_scoring = "additive", initial_state = "zeros";
  int64_t attention_size = 0;
  bool attention_gate = true;
  double dropout = 0.1, embedding_dropout = 0.1;
  bool tie_word_embeddings = true, output_bias = true;
  int64_t pad_token_id = 0, bos_token_id = 2, eos_token_id = 3, decoder_start_token_id = 2;

  template <class V>
  void fields(V& v) {
    v("backbone_config", backbone_config,
      "config.json of the model whose last map of features, or whose states of patches, are read");
    v("num_channels", num_channels, "numbers of a pixel", at_least(1));
    v("image_size", image_size, "height and width of the images, in pixels", between(1, 65535));
    v("position_embedding_type", position_embedding_type,
      "positions of the grid's cells, added to what is read: without, no word can say where",
      one_of({"sine", "learned", "none"}));
    v("memory_size", memory_size, "width that features are projected to", at_least(1));
    v("vocab_size", vocab_size, "tokens of captions", at_least(1));
    v("embedding_size", embedding_size, "width of the tokens' embeddings", at_least(1));
    v("hidden_size", hidden_size, "width of the decoder's states", at_least(1));
    v("decoder_layers", decoder_layers, "recurrent layers of the decoder", at_least(1));
    v("cell", cell, "how a state follows from the one before", one_of(nn::cell_names()));
    v("attention_scoring", attention_scoring,
      "of the decoder's state and each cell of the grid: v tanh(W q + U k), products, one linear "
      "layer over [q; k]; none: one fixed context, the grid's mean",
      one_of({"additive", "scaled_dot", "dot", "linear", nn::MemoryDecoder::kFixed}));
    v("attention_size", attention_size,
      "width that states are projected to before they are compared; 0: hidden_size", at_least(0));
    v("attention_gate", attention_gate,
      "the state says how much of what was looked at counts: not every word needs the image");
    v("initial_state", initial_state,
      "what the decoder knows of the image before it has looked: nothing, or its mean",
      one_of({"zeros", "mean"}));
    v("dropout", dropout, "between recurrent layers, and before the output", from_below(0, 1));
    v("embedding_dropout", embedding_dropout, "of the embeddings", from_below(0, 1));
    v("tie_word_embeddings", tie_word_embeddings, "embeddings are the output projection");
    v("output_bias", output_bias, "a bias on the logits");
    v("pad_token_id", pad_token_id, "the padding token", at_least(0));
    v("bos_token_id", bos_token_id, "the token of a beginning", at_least(0));
    v("eos_token_id", eos_token_id, "the token that ends a caption", at_least(0));
    v("decoder_start_token_id", decoder_start_token_id, "the first token given to the decoder",
      at_least(0));
  }
  void check(const std::string& source) const;

  bool attends() const { return attention_scoring != nn::MemoryDecoder::kFixed; }
  bool has_bridge() const { return initial_state == "mean"; }
};

EncoderDecoderFacts facts_of(const CaptionerConfig& c) {
  const int64_t h = c.hidden_size, gates = gates_of(nn::cell_of(c.cell));
  return {.target_vocab_size = c.vocab_size,
          .pad_token_id = c.pad_token_id,
          .bos_token_id = c.bos_token_id,
          .eos_token_id = c.eos_token_id,
          .decoder_start_token_id = c.decoder_start_token_id,
          .decoder_layers = c.decoder_layers,
          .cross_attention_layers = c.attends() ? 1 : 0,
          .decoder_attention_heads = 1,
          .positions = {.kind = "none"},
          .cache_width = (c.cell == "lstm" ? 2 : 1) * h,
          .multiplied = c.vocab_size * c.embedding_size +
                        gates * h * (c.embedding_size + c.memory_size + h) +
                        (c.decoder_layers - 1) * gates * h * 2 * h};
}

void CaptionerConfig::check(const std::string& source) const {
  heddle::check(position_embedding_type == "none" || memory_size % 4 == 0, ErrorKind::data,
                "{}: memory_size is {}; positions of rows and columns need one that 4 divides",
                source, memory_size);
  heddle::check(attends() || attention_size == 0, ErrorKind::data,
                "{}: attention_size is {}, but there is no attention (attention_scoring none)",
                source, attention_size);
  check_token_ids(facts_of(*this), source);
}

nn::Embedding embedding(const Scope& s, const CaptionerConfig& c) {
  const Init init =
      Init::normal(std::pow(static_cast<double>(c.embedding_size), -0.5), c.pad_token_id);
  return {s.prefix(),
          (s / "weight").parameter({c.vocab_size, c.embedding_size}, init),
          nn::Positions::none(),
          {.dropout = c.embedding_dropout}};
}

nn::MemoryDecoder::Options decoder_options(const CaptionerConfig& c) {
  return {.cell = nn::cell_of(c.cell),
          .in = c.embedding_size,
          .width = c.hidden_size,
          .memory_width = c.memory_size,
          .scoring = c.attention_scoring,
          .attention_width = c.attention_size,
          .is_gated = c.attends() && c.attention_gate,
          .layers = c.decoder_layers,
          .dropout = c.dropout,
          .has_bridge = c.has_bridge()};
}

}  // namespace

class ImageCaptioner final : public Captioner {
 public:
  using Config = CaptionerConfig;
  static HubFamily family() {
    return {.heads = {{Head::caption, "Captioner"}}, .is_own_format = true};
  }

  ImageCaptioner(const Scope& s, const Config& c, const HubConfig&)
      : Captioner(facts_of(c),
                  {.channels = c.num_channels,
                   .image_size = {c.image_size, c.image_size},
                   .width = c.memory_size},
                  c.memory_size),
        c_(c),
        backbone_(s / "model" / "backbone", c.backbone_config, c.num_channels,
                  "config: key 'backbone_config'"),
        projection_(s / "model" / "input_projection",
                    {.in = backbone_.channels(), .out = c.memory_size}),
        tokens_(embedding(s / "model" / "decoder" / "embed_tokens", c)),
        decoder_(s / "model" / "decoder", decoder_options(c)) {
    if (c.position_embedding_type == "learned") {
      positions_.emplace(s / "model" / "position_embedding", c.memory_size, Init::normal(0.5));
    }
    Parameter& weight = c.tie_word_embeddings ? tokens_.table()
                                              : (s / "lm_head" / "weight")
                                                    .parameter({c.vocab_size, c.embedding_size},
                                                               Init::xavier_uniform());
    Parameter* const bias = c.output_bias
                                ? &(s / "lm_head" / "bias").parameter({c.vocab_size}, Init::zeros())
                                : nullptr;
    heads_.output.emplace(weight, bias);
  }

  nn::TensorNames names() const override { return {.unneeded = backbone_.names().unneeded}; }
  ImageSize grid(const ImageSize& image) const override { return backbone_.grid(image); }

  Tensor encode(const ModelInput& source, const Run& run) const override {
    const FeatureMap map = backbone_.features(source.as<ImageRows>(), run);
    const Tensor x = projection_(map.x, run);
    if (c_.position_embedding_type == "none") return x;
    return x + (positions_ ? (*positions_)(map.sizes, x.dtype())
                           : cast(nn::sine_positions(map.sizes, c_.memory_size), x.dtype()));
  }

  Attended decode_attending(const TokenRows& tokens, const Tensor& memory, const Segments& source,
                            const Run& run) const override {
    const Tensor mean = decoder_.reads_summary() ? segment_mean(memory, source) : Tensor();
    const nn::MemoryDecoder::Result y = decoder_(
        tokens_(tokens, run), tokens, nn::AttentiveDecoder::Source{&memory, &source}, mean, run);
    return {y.x, y.weights};
  }

  void add_sources(std::span<nn::RowCache> layers, const Tensor& memory, const Segments&,
                   std::span<const int32_t> rows, const Run& run) const override {
    layers[0].put(decoder_.kept(memory, run), rows);
  }

  Tensor step(const TokenRows& tokens, std::span<const nn::RowCache> layers,
              const nn::CachedKeys& sources, const Run& run) const override {
    Tensor mean;  // of the source of each sequence
    if (decoder_.reads_summary()) {
      const Tensor memory = gather_rows(decoder_.memory_of(layers[0].rows()), sources.key_rows);
      mean = gather_rows(segment_mean(memory, *sources.keys),
                         nn::sources_of(*tokens.segments, *sources.queries));
    }
    return decoder_(tokens_(tokens, run), tokens,
                    nn::AttentiveDecoder::CachedSource{&layers[0], &sources}, mean, run);
  }

 private:
  Config c_;
  ChosenBackbone backbone_;
  Linear projection_;
  std::optional<nn::RowColumnPositions> positions_;
  nn::Embedding tokens_;
  nn::MemoryDecoder decoder_;
};

template std::unique_ptr<ModelConfig> new_config<ImageCaptioner>();

}  // namespace heddle
