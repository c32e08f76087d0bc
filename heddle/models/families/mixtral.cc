// Mixtral: Jiang et al. 2024, "Mixtral of Experts".
#include "heddle/models/families/llama_stack.h"
#include "heddle/ops/elementwise.h"
#include "heddle/ops/moe.h"

namespace heddle {
namespace {

struct MixtralConfig : LlamaFields {
  std::optional<int64_t> sliding_window;
  int64_t num_local_experts = 8, num_experts_per_tok = 2;
  double router_aux_loss_coef = 0.001;

  MixtralConfig() {
    intermediate_size = 14336;
    num_key_value_heads = 8;
    max_position_embeddings = 4096 * 32;
    rms_norm_eps = 1e-5;
    rope.theta = 1e6;
  }
  template <class V>
  void fields(V& v) {
    LlamaFields::fields(v);
    v("sliding_window", sliding_window, "positions back that a token sees, its own too; none: all",
      between(1, 1 << 30));
    v("num_local_experts", num_local_experts, "feed-forward layers in each block",
      between(1, kMostHeads));
    v("num_experts_per_tok", num_experts_per_tok, "of which each token goes through",
      between(1, kMostHeads));
    v("router_aux_loss_coef", router_aux_loss_coef, "factor of the loss that balances the experts",
      at_least(0));
  }
  void check(const std::string& source) const {
    LlamaFields::check(source);
    heddle::check(num_experts_per_tok <= num_local_experts, ErrorKind::data,
                  "{}: num_experts_per_tok is {} of {} experts; it must be at most as many", source,
                  num_experts_per_tok, num_local_experts);
  }
};

}  // namespace

class Mixtral final : public LlamaStack, public WithExperts {
 public:
  using Config = MixtralConfig;
  // transformers 5.23 looks for files of Mistral's own: it misreads tokenizers.
  static HubFamily family() {
    HubFamily family = family_of("Mixtral", true);
    family.aliases = {{"num_experts", "num_local_experts"}};
    return family;
  }
  Mixtral(const nn::Scope& s, const Config& c, const HubConfig& hub)
      : LlamaStack(s, c,
                   {.window = c.sliding_window.value_or(0),
                    .experts = c.num_local_experts,
                    .chosen = c.num_experts_per_tok},
                   hub),
        chosen_(c.num_experts_per_tok),
        balance_(static_cast<float>(c.router_aux_loss_coef)) {}

  int64_t chosen_experts() const override { return chosen_; }
  Tensor router_loss(const std::vector<Tensor>& router_logits) const override {
    return balance_ == 0 ? Tensor() : scale(balance_loss(router_logits, chosen_), balance_);
  }

 private:
  int64_t chosen_;
  float balance_;
};

template std::unique_ptr<ModelConfig> new_config<Mixtral>();

}  // namespace heddle
