// M2M-100: Fan et al. 2021, "Beyond English-Centric Multilingual Machine Translation", and the
// dense models of NLLB (Costa-jussa et al. 2022): pre-norm, with sines and cosines for positions
// that count the tokens that are not padding.
#include "heddle/models/families/bart_stack.h"

namespace heddle {
namespace {

struct M2M100Config : BartFields {
  M2M100Config() {
    vocab_size = 128112;
    activation_function = "relu";
    attention_dropout = 0.1;
    sinusoidal_layout = "halves", sinusoidal_frequencies = "tensor2tensor";
    normalize_before = scale_embedding = true;
  }
};

// The first position stands behind that of padding. Errors: data for a token that is none.
M2M100Config counted(M2M100Config c) {
  check(c.pad_token_id < c.vocab_size, ErrorKind::data,
        "config: key 'pad_token_id' is {}; the vocabulary has {} tokens", c.pad_token_id,
        c.vocab_size);
  c.position_offset = c.pad_token_id + 1;
  return c;
}

}  // namespace

class M2M100 final : public BartStack {
 public:
  using Config = M2M100Config;
  static HubFamily family() { return family_of("M2M100", Config()); }
  M2M100(const Scope& s, const Config& c, const HubConfig& hub) : BartStack(s, counted(c), hub) {}

  // Padding is at -1, whose vector is zero.
  std::vector<int32_t> positions(std::span<const int32_t> ids) const override {
    std::vector<int32_t> positions;
    int32_t next = 0;
    for (const int32_t id : ids) positions.push_back(id == facts().pad_token_id ? -1 : next++);
    return positions;
  }

  // generate() has padding there too, if a decoder writes it.
  Tensor step(const TokenRows& target, std::span<const nn::RowCache> layers,
              const nn::CachedKeys& sources, const Run& run) const override {
    std::vector<int32_t> positions = target.positions();
    for (size_t i = 0; i < positions.size(); ++i) {
      if (target.ids[i] == facts().pad_token_id) positions[i] = -1;
    }
    TokenRows counted = target;
    counted.position_ids = positions;
    return BartStack::step(counted, layers, sources, run);
  }
};

template std::unique_ptr<ModelConfig> new_config<M2M100>();

}  // namespace heddle
