// The encoder-decoder of Vaswani et al. 2017, "Attention Is All You Need".
#pragma once

#include <memory>

#include "heddle/models/encoder_decoder.h"
#include "heddle/models/transformer_config.h"

namespace heddle {

class Transformer : public EncoderDecoder {
 public:
  /// Makes or finds the parameters under `s`. Errors: data if the sizes do not fit together.
  Transformer(const nn::Scope& s, const TransformerConfig& config, const HubConfig& hub = {});
  ~Transformer() override;

  /// Of a family over it, that of the heddle_transformer that computes the same.
  const TransformerConfig& transformer_config() const;
  Tensor encode(const nn::TokenRows& source, const nn::Run& run) const override;
  Tensor decode(const nn::TokenRows& target, const Tensor& memory, const Segments& source,
                const nn::Run& run) const override;
  void add_sources(DecoderCache& cache, const Tensor& memory, std::span<const int32_t> rows,
                   const nn::Run& run) const override;
  Tensor step(DecoderCache& cache, const DecoderStep& step, const nn::Run& run) const override;

  nn::TensorNames names() const override { return {}; }

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

/// The family of heddle's own format: what a config says, and no other name.
class HeddleTransformer final : public Transformer, public WithHubModel {
 public:
  using Config = TransformerConfig;
  static constexpr bool kIsOwnFormat = true;
  static std::vector<HeadClass> heads() { return {{Head::target_token, "HeddleTransformer"}}; }
  using Transformer::Transformer;

  /// A marian, see families/marian.cc.
  HubModel hub_model(const nn::Parameters& parameters, const std::string& source) const override;
};

/// A config of that family.
std::unique_ptr<ModelConfig> model_config(const TransformerConfig& config);

}  // namespace heddle
