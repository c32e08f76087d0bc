// LLaMA: Touvron et al. 2023; versions 2 and 3 differ by their fields alone.
#include "heddle/models/families/llama_stack.h"

namespace heddle {
namespace {

struct LlamaConfig : LlamaFields {
  bool attention_bias = false, mlp_bias = false;

  template <class V>
  void fields(V& v) {
    LlamaFields::fields(v);
    v("attention_bias", attention_bias, "biases in the attention projections");
    v("mlp_bias", mlp_bias, "biases in the feed-forward layers");
  }
};

}  // namespace

class Llama final : public LlamaStack {
 public:
  using Config = LlamaConfig;
  static HubFamily family() { return family_of("Llama"); }
  Llama(const nn::Scope& s, const Config& c, const HubConfig& hub)
      : LlamaStack(s, c,
                   {.attention_bias = c.attention_bias,
                    .output_bias = c.attention_bias,
                    .mlp_bias = c.mlp_bias},
                   hub) {}
};

template std::unique_ptr<ModelConfig> new_config<Llama>();

}  // namespace heddle
