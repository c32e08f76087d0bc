// GPT-2: Radford et al. 2019, "Language Models are Unsupervised Multitask Learners".
#pragma once

#include <memory>
#include <optional>

#include "heddle/models/model.h"
#include "heddle/nn/mlp.h"

namespace heddle {

/// Hugging Face's keys; the defaults are GPT-2 124M.
struct Gpt2Config {
  int64_t vocab_size = 50257, n_positions = 1024, n_embd = 768, n_layer = 12, n_head = 12;
  std::optional<int64_t> n_inner;
  std::string activation_function = "gelu_new";
  double embd_pdrop = 0.1, attn_pdrop = 0.1, resid_pdrop = 0.1;
  double layer_norm_epsilon = 1e-5, initializer_range = 0.02;
  bool scale_attn_weights = true, scale_attn_by_inverse_layer_idx = false;
  bool tie_word_embeddings = true, add_cross_attention = false;

  template <class V>
  void fields(V& v) {
    v("vocab_size", vocab_size, "words known to the tokenizer", at_least(1));
    v("n_positions", n_positions, "longest sequence in tokens", at_least(1));
    v("n_embd", n_embd, "width of the residual stream", at_least(1));
    v("n_layer", n_layer, "number of blocks", at_least(1));
    v("n_head", n_head, "attention heads; must divide n_embd", at_least(1));
    v("n_inner", n_inner, "width inside the feed-forward layers; none: 4 * n_embd", at_least(1));
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
    v("tie_word_embeddings", tie_word_embeddings, "word embeddings are the output projection");
    v("add_cross_attention", add_cross_attention, "not supported: must be false");
  }
  /// Errors: data, naming `source`, for fields that do not fit together.
  void check(const std::string& source) const;
};

class Gpt2 : public LanguageModel {
 public:
  using Config = Gpt2Config;
  /// Makes or finds the parameters under `s`. Errors: data if the config does not fit together.
  Gpt2(const nn::Scope& s, const Config& config);
  ~Gpt2() override;

  const Config& config() const;
  std::vector<Field> fields() const override { return fields_of(config()); }
  nn::TensorNames names() const override;
  int64_t vocab_size() const override { return config().vocab_size; }
  int64_t max_length() const override { return config().n_positions; }
  int64_t layers() const override { return config().n_layer; }
  int64_t width() const override { return config().n_embd; }
  Tensor hidden(const nn::WordRows& words, const nn::Run& run) const override;
  const nn::WordOutput& output() const override;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace heddle
