// The decoder of LLaMA and its kin: Touvron et al. 2023, "LLaMA: Open and Efficient Foundation
// Language Models", section 2.2; grouped heads of Ainslie et al. 2023.
#pragma once

#include "heddle/models/family.h"
#include "heddle/nn/attention.h"
#include "heddle/nn/mlp.h"

namespace heddle {

/// Fields that the kin share, under Hugging Face's keys.
struct LlamaFields {
  int64_t vocab_size = 32000, hidden_size = 4096, intermediate_size = 11008;
  int64_t num_hidden_layers = 32, num_attention_heads = 32;
  std::optional<int64_t> num_key_value_heads, head_dim;
  int64_t max_position_embeddings = 2048;
  std::string hidden_act = "silu";
  double rms_norm_eps = 1e-6, initializer_range = 0.02, attention_dropout = 0;
  bool tie_word_embeddings = false;
  RopeConfig rope;

  template <class V>
  void fields(V& v) {
    v("vocab_size", vocab_size, "tokens known to the tokenizer", at_least(1));
    v("hidden_size", hidden_size, "width of the residual stream", at_least(1));
    v("intermediate_size", intermediate_size, "width inside the feed-forward layers", at_least(1));
    v("num_hidden_layers", num_hidden_layers, "number of blocks", at_least(1));
    v("num_attention_heads", num_attention_heads, "attention heads", at_least(1));
    v("num_key_value_heads", num_key_value_heads, "heads of keys and values; none: as many",
      at_least(1));
    v("head_dim", head_dim, "width of a head, even; none: hidden_size / num_attention_heads",
      between(2, 65536));
    v("max_position_embeddings", max_position_embeddings, "longest sequence in tokens",
      at_least(1));
    v("hidden_act", hidden_act, "of the gate in the feed-forward layers",
      one_of(nn::activation_names()));
    v("rms_norm_eps", rms_norm_eps, "inside the root of each norm", above(0));
    v("initializer_range", initializer_range, "deviation of the weights at the start", at_least(0));
    v("attention_dropout", attention_dropout, "dropout of the attention weights", from_below(0, 1));
    v("tie_word_embeddings", tie_word_embeddings, "token embeddings are the output projection");
    rope.fields(v);
  }
  int64_t head_width() const { return head_dim.value_or(hidden_size / num_attention_heads); }
  int64_t key_heads() const { return num_key_value_heads.value_or(num_attention_heads); }
  /// Errors: data, naming `source`, for fields that do not fit together.
  void check(const std::string& source) const;
};

/// A window that the later layers see alone (Qwen).
struct WindowFields {
  bool use_sliding_window = false;
  std::optional<int64_t> sliding_window = 4096;
  int64_t max_window_layers = 28;

  template <class V>
  void fields(V& v) {
    v("use_sliding_window", use_sliding_window, "the later layers see a window alone");
    v("sliding_window", sliding_window, "positions back that a token sees there, its own too",
      at_least(1));
    v("max_window_layers", max_window_layers, "layers, from the first, that see all", at_least(0));
  }
  int64_t width() const { return use_sliding_window ? sliding_window.value_or(0) : 0; }
};

/// What tells the kin apart.
struct LlamaKind {
  bool attention_bias = false;  ///< of queries, keys and values
  bool output_bias = false;     ///< of attention's output
  bool mlp_bias = false;
  bool has_head_norms = false;      ///< see nn::SelfAttention::Options
  int64_t window = 0;               ///< see nn::SelfAttention::Options
  int64_t whole_layers = 0;         ///< layers, from the first, without the window
  int64_t experts = 0, chosen = 0;  ///< a mixture in place of the feed-forward layers; 0: none
};

/// The model of a family, named by its prefix: "Llama".
class LlamaStack : public LanguageModel {
 public:
  static std::vector<HeadClass> heads_of(const std::string& family);

  LlamaStack(const Scope& s, const LlamaFields& c, const LlamaKind& kind, const HubConfig& hub);

  int64_t cache_width() const override { return 2 * c_.key_heads() * c_.head_width(); }
  Tensor hidden(const TokenRows& tokens, const Run& run) const override;
  nn::TensorNames names() const override;

 private:
  struct Block;

  LlamaFields c_;
  LlamaKind kind_;
  nn::Embedding embedding_;
  std::vector<std::shared_ptr<const Block>> blocks_;
  LayerNorm norm_;
};

}  // namespace heddle
