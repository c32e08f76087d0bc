// The post-norm encoder of BERT and its kin: Vaswani et al. 2017 with learned positions.
#pragma once

#include <array>

#include "heddle/models/family.h"
#include "heddle/nn/attention.h"
#include "heddle/nn/mlp.h"

namespace heddle {

/// Sizes and rates, by whatever keys a family has them.
struct EncoderSizes {
  int64_t vocab = 0, positions = 0;
  int64_t types = 0;  ///< token types; 0: none
  int64_t width = 0, layers = 0, heads = 0, hidden = 0;
  std::string activation = "gelu";
  double dropout = 0, attention_dropout = 0, eps = 1e-12, std = 0.02;
  int64_t pad = -1;  ///< this word begins as zero
};

/// Names of parameters under the scope of a layer; the defaults are BERT's.
struct EncoderNames {
  const char* layers = "encoder.layer";  ///< under the base: scopes 0, 1, .. of the layers
  const char* attention = "attention.self";
  std::array<const char*, 3> projections = {"query", "key", "value"};
  const char* attention_out = "attention.output.dense";
  const char* attention_norm = "attention.output.LayerNorm";
  const char* in = "intermediate.dense";
  const char* out = "output.dense";
  const char* norm = "output.LayerNorm";
};

class EncoderStack : public Model {
 public:
  /// `base`: where embeddings and layers are.
  EncoderStack(const nn::Scope& base, const EncoderSizes& sizes, const EncoderNames& names = {});

  int64_t vocab_size() const override { return sizes_.vocab; }
  int64_t max_length() const override { return sizes_.positions; }
  int64_t layers() const override { return sizes_.layers; }
  int64_t width() const override { return sizes_.width; }
  Tensor hidden(const nn::WordRows& words, const nn::Run& run) const override;
  ModelPlan plan() const override;

 protected:
  struct Layer {
    nn::SelfAttention attention;
    nn::LayerNorm attention_norm;
    nn::FeedForward mlp;
    nn::LayerNorm norm;
    std::string attention_site, site;
    double dropout;

    Layer(const nn::Scope& s, const EncoderSizes& z, const EncoderNames& names, int64_t i);
    void operator()(nn::Residual& x, const nn::WordRows& words, const nn::Run& run) const;
  };

  nn::Linear::Options square() const;
  /// Activation of a linear layer over the first word.
  Heads::OfWords pooler(const nn::Scope& s, Activation kind) const;
  /// heads_.words over norm(activation(dense)): weight of the table of words and bias at `bias` if
  /// `is_tied`, else both at `decoder`.
  void predict_words(const nn::Scope& dense, const nn::Scope& norm, Activation kind, bool is_tied,
                     const nn::Scope& decoder, const nn::Scope& bias);

  EncoderSizes sizes_;
  nn::Embedding embedding_;
  std::vector<Layer> layers_;
};

}  // namespace heddle
