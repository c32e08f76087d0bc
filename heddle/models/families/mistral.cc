// Mistral: Jiang et al. 2023, "Mistral 7B": LLaMA whose tokens see a window of what is behind them.
#include "heddle/models/families/llama_stack.h"

namespace heddle {
namespace {

struct MistralConfig : LlamaFields {
  std::optional<int64_t> sliding_window = 4096;

  MistralConfig() {
    intermediate_size = 14336;
    num_key_value_heads = 8;
    max_position_embeddings = 4096 * 32;
  }
  template <class V>
  void fields(V& v) {
    LlamaFields::fields(v);
    v("sliding_window", sliding_window, "positions back that a token sees, its own too; none: all",
      between(1, 1 << 30));
  }
};

}  // namespace

class Mistral final : public LlamaStack {
 public:
  using Config = MistralConfig;
  // transformers 5.23 looks for files of Mistral's own: it misreads tokenizers.
  static HubFamily family() { return family_of("Mistral", true); }
  Mistral(const nn::Scope& s, const Config& c, const HubConfig& hub)
      : LlamaStack(s, c, {.window = c.sliding_window.value_or(0)}, hub) {}
};

template std::unique_ptr<ModelConfig> new_config<Mistral>();

}  // namespace heddle
