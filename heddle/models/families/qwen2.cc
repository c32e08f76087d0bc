// Qwen2: Qwen Team 2024, "Qwen2 Technical Report", section 2.2: LLaMA with biases of queries, keys
// and values, whose later layers may see a window alone.
#include "heddle/models/families/llama_stack.h"

namespace heddle {
namespace {

struct Qwen2Config : WindowedFields {
  Qwen2Config() {
    vocab_size = 151936;
    intermediate_size = 22016;
    max_position_embeddings = 32768;
  }
  template <class V>
  void fields(V& v) {
    LlamaFields::fields(v);
    window_fields(v);
  }
};

}  // namespace

class Qwen2 final : public LlamaStack {
 public:
  using Config = Qwen2Config;
  static HubFamily family() {
    HubFamily family = family_of("Qwen2");
    family.passed_over.emplace_back("attention_bias", Json());
    return family;
  }
  Qwen2(const nn::Scope& s, const Config& c, const HubConfig& hub)
      : LlamaStack(
            s, c,
            {.attention_bias = true, .window = c.window(), .whole_layers = c.max_window_layers},
            hub) {}
};

template std::unique_ptr<ModelConfig> new_config<Qwen2>();

}  // namespace heddle
