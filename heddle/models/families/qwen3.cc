// Qwen3: Qwen Team 2025, "Qwen3 Technical Report", section 2: Qwen2 without biases, and a norm over
// each head's queries and keys.
#include "heddle/models/families/llama_stack.h"

namespace heddle {
namespace {

struct Qwen3Config : WindowedFields {
  bool attention_bias = false;

  Qwen3Config() {
    vocab_size = 151936;
    intermediate_size = 22016;
    head_dim = 128;
    max_position_embeddings = 32768;
  }
  template <class V>
  void fields(V& v) {
    LlamaFields::fields(v);
    v("attention_bias", attention_bias, "biases in the attention projections");
    window_fields(v);
  }
};

}  // namespace

class Qwen3 final : public LlamaStack {
 public:
  using Config = Qwen3Config;
  static HubFamily family() { return family_of("Qwen3"); }
  Qwen3(const nn::Scope& s, const Config& c, const HubConfig& hub)
      : LlamaStack(s, c,
                   {.attention_bias = c.attention_bias,
                    .output_bias = c.attention_bias,
                    .has_head_norms = true,
                    .window = c.window(),
                    .whole_layers = c.max_window_layers},
                   hub) {}
};

template std::unique_ptr<ModelConfig> new_config<Qwen3>();

}  // namespace heddle
