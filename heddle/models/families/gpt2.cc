// GPT-2: Radford et al. 2019, "Language Models are Unsupervised Multitask Learners", section 2.3.
#include <cmath>

#include "heddle/models/family.h"
#include "heddle/nn/block.h"

namespace heddle {
namespace {

// Hugging Face's keys; the defaults are GPT-2 124M.
struct Gpt2Config {
  int64_t vocab_size = 50257, n_positions = 1024, n_embd = 768, n_layer = 12, n_head = 12;
  std::optional<int64_t> n_inner;
  std::string activation_function = "gelu_new";
  double embd_pdrop = 0.1, attn_pdrop = 0.1, resid_pdrop = 0.1;
  double layer_norm_epsilon = 1e-5, initializer_range = 0.02;
  bool scale_attn_weights = true, scale_attn_by_inverse_layer_idx = false;
  bool tie_word_embeddings = true;
  double classifier_dropout = 0.1;

  template <class V>
  void fields(V& v) {
    v("vocab_size", vocab_size, "tokens known to the tokenizer", between(1, kMostVocabulary));
    v("n_positions", n_positions, "longest sequence in tokens", between(1, 1 << 24));
    v("n_embd", n_embd, "width of the residual stream", between(1, kMostWidth));
    v("n_layer", n_layer, "number of blocks", between(1, kMostLayers));
    v("n_head", n_head, "attention heads; must divide n_embd", between(1, kMostHeads));
    v("n_inner", n_inner, "width inside the feed-forward layers; none: 4 * n_embd",
      between(1, kMostWidth));
    v("activation_function", activation_function, "of the feed-forward layers",
      one_of(nn::activation_names()));
    v("embd_pdrop", embd_pdrop, "dropout of the embeddings", from_below(0, 1));
    v("attn_pdrop", attn_pdrop, "dropout of the attention weights", from_below(0, 1));
    v("resid_pdrop", resid_pdrop, "dropout of each sublayer's output", from_below(0, 1));
    v("layer_norm_epsilon", layer_norm_epsilon, "inside the root of each norm", above(0));
    v("initializer_range", initializer_range, "deviation of the weights at the start", at_least(0));
    v("scale_attn_weights", scale_attn_weights, "divide scores by the root of the head's width");
    v("scale_attn_by_inverse_layer_idx", scale_attn_by_inverse_layer_idx,
      "divide the scores of block i by i + 1");
    v("tie_word_embeddings", tie_word_embeddings, "token embeddings are the output projection");
    v("classifier_dropout", classifier_dropout, "dropout before the classes of tokens",
      from_below(0, 1));
  }
  void check(const std::string& source) const { check_heads(n_embd, "n_embd", n_head, source); }
};

// Hugging Face's Conv1D: the checkpoint holds [in, out].
Linear conv1d(const Scope& s, int64_t in, int64_t out, double std) {
  return Linear(
      s, {.in = in, .out = out, .init = Init::normal(std), .layout = nn::Layout::transposed});
}

// What enters the residual stream begins smaller by 1 / sqrt(number of residual layers).
double residual_std(const Gpt2Config& c) {
  return c.initializer_range / std::sqrt(2.0 * static_cast<double>(c.n_layer));
}

float score_scale(const Gpt2Config& c, int64_t layer) {
  double scale = 1;
  if (c.scale_attn_weights) scale /= std::sqrt(static_cast<double>(c.n_embd / c.n_head));
  if (c.scale_attn_by_inverse_layer_idx) scale /= static_cast<double>(layer + 1);
  return static_cast<float>(scale);
}

nn::Block block(const Scope& s, const Gpt2Config& c, int64_t i) {
  const int64_t inner = c.n_inner.value_or(4 * c.n_embd);
  const LayerNorm ln_1(s / "ln_1", c.n_embd, c.layer_norm_epsilon),
      ln_2(s / "ln_2", c.n_embd, c.layer_norm_epsilon);
  const Scope attn = s / "attn", mlp = s / "mlp";
  return {.attention = {attn.prefix(),
                        conv1d(attn / "c_attn", c.n_embd, 3 * c.n_embd, c.initializer_range),
                        conv1d(attn / "c_proj", c.n_embd, c.n_embd, residual_std(c)),
                        {.heads = c.n_head,
                         .is_causal = true,
                         .dropout = c.attn_pdrop,
                         .scale = score_scale(c, i),
                         .layer = i,
                         .observed = fmt::format("attentions.{}", i)}},
          .attention_norm = ln_1,
          .mlp = nn::FeedForward(mlp.prefix(),
                                 conv1d(mlp / "c_fc", c.n_embd, inner, c.initializer_range),
                                 conv1d(mlp / "c_proj", inner, c.n_embd, residual_std(c)),
                                 {.activation = nn::activation_of(c.activation_function)}),
          .mlp_norm = ln_2,
          .attention_site = (attn / "c_proj").prefix(),
          .mlp_site = (mlp / "c_proj").prefix(),
          .dropout = c.resid_pdrop};
}

nn::Embedding embeddings(const Scope& s, const Gpt2Config& c) {
  const Init init = Init::normal(c.initializer_range);
  Parameter& table = (s / "wte" / "weight").parameter({c.vocab_size, c.n_embd}, init);
  Parameter& positions = (s / "wpe" / "weight").parameter({c.n_positions, c.n_embd}, init);
  return {
      (s / "wte").prefix(), table, nn::Positions::learned(positions), {.dropout = c.embd_pdrop}};
}

Parameter& output_table(const Scope& s, const Gpt2Config& c, Parameter& table) {
  if (c.tie_word_embeddings) return table;
  return (s / "lm_head" / "weight")
      .parameter({c.vocab_size, c.n_embd}, Init::normal(c.initializer_range));
}

}  // namespace

class Gpt2 final : public LanguageModel {
 public:
  using Config = Gpt2Config;
  static HubFamily family() {
    return {.heads = {{Head::next_token, "GPT2LMHeadModel"},
                      {Head::none, "GPT2Model"},
                      {Head::sequence_classes, "GPT2ForSequenceClassification"},
                      {Head::token_classes, "GPT2ForTokenClassification"}},
            .aliases = {{"hidden_size", "n_embd"},
                        {"max_position_embeddings", "n_positions"},
                        {"num_attention_heads", "n_head"},
                        {"num_hidden_layers", "n_layer"}},
            .passed_over = {{"is_causal", true}}};
  }

  Gpt2(const Scope& s, const Config& c, const HubConfig& hub)
      : LanguageModel({c.vocab_size, c.n_positions, c.n_layer, c.n_embd}),
        c_(c),
        embedding_(embeddings(s / "transformer", c)),
        h_(nn::make_layers(s / "transformer" / "h", c.n_layer,
                           [&](const Scope& at, int64_t i) { return block(at, c, i); })),
        ln_f_(s / "transformer" / "ln_f", c.n_embd, c.layer_norm_epsilon) {
    const ClassOptions classes{c.n_embd, hub.classes(), c.initializer_range, c.classifier_dropout};
    if (hub.head == Head::next_token) {
      heads_.output.emplace(output_table(s, c, embedding_.table()));
    } else if (hub.head == Head::sequence_classes) {
      heads_.sequence_classes = classes_of_last_token(s / "score", classes, hub.pad_token_id);
    } else if (hub.head == Head::token_classes) {
      heads_.token_classes = classes_of_tokens(s / "classifier", classes);
    }
  }

  Tensor hidden(const TokenRows& tokens, const Run& run) const override {
    return nn::run_blocks("", nn::Residual(embedding_(tokens, run), true), h_, &ln_f_, tokens, run);
  }

  // Old checkpoints hold the causal mask of each block.
  nn::TensorNames names() const override {
    nn::TensorNames names{.base = "transformer", .unneeded = {".attn.bias", ".attn.masked_bias"}};
    if (c_.tie_word_embeddings) names.tied = {{"lm_head.weight", "transformer.wte.weight"}};
    if (head() != Head::next_token) names.unneeded.emplace_back("lm_head.");
    return names;
  }

 private:
  Config c_;
  nn::Embedding embedding_;
  std::vector<nn::Block> h_;
  LayerNorm ln_f_;
};

template std::unique_ptr<ModelConfig> new_config<Gpt2>();

}  // namespace heddle
