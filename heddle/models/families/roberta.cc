// RoBERTa: Liu et al. 2019, "RoBERTa: A Robustly Optimized BERT Pretraining Approach": BERT with
// other heads, whose positions count the tokens that are not padding, from pad_token_id + 1 on.
#include "heddle/models/encoder.h"

namespace heddle {

class Roberta final : public EncoderStack, public WithTokenTypes {
 public:
  using Config = BertConfig;
  static HubFamily family() {
    return {.heads = {{Head::masked_token, "RobertaForMaskedLM"},
                      {Head::none, "RobertaModel"},
                      {Head::sequence_classes, "RobertaForSequenceClassification"},
                      {Head::token_classes, "RobertaForTokenClassification"}},
            .passed_over = {{"is_causal", false}}};
  }

  Roberta(const Scope& s, const Config& c, const HubConfig& hub)
      : EncoderStack(base_scope(s, "roberta", hub), c, hub.pad_token_id.value_or(1)),
        pad_(hub.pad_token_id.value_or(1)) {
    check(pad_ >= 0 && pad_ < c.max_position_embeddings - 1, ErrorKind::data,
          "config: key 'pad_token_id' is {}; positions begin behind it, and there are {}", pad_,
          c.max_position_embeddings);
    sizes_.max_length = c.max_position_embeddings - pad_ - 1;
    const ClassOptions classes = c.classes(hub);
    if (hub.head == Head::none && hub.has_pooler) {
      heads_.pooler = pooler(s / "pooler" / "dense", Activation::tanh);
    } else if (hub.head == Head::masked_token) {
      const Scope p = s / "lm_head";
      predict_tokens(p / "dense", p / "layer_norm", Activation::gelu, p / "decoder", p / "bias");
    } else if (hub.head == Head::sequence_classes) {
      heads_.sequence_classes =
          classes_of_pooled(s / "classifier" / "out_proj", classes,
                            dropped_pooler(s / "classifier" / "dense", classes));
    } else if (hub.head == Head::token_classes) {
      heads_.token_classes = classes_of_tokens(s / "classifier", classes);
    }
  }

  std::vector<int32_t> positions(std::span<const int32_t> ids) const override {
    std::vector<int32_t> positions;
    auto last = static_cast<int32_t>(pad_);
    for (const int32_t id : ids)
      positions.push_back(id == pad_ ? static_cast<int32_t>(pad_) : ++last);
    return positions;
  }

  nn::TensorNames names() const override { return names_of("roberta", "lm_head."); }

 private:
  // tanh of a linear layer over the first token, with dropout before it.
  Heads::OfInput dropped_pooler(const Scope& s, const ClassOptions& o) const {
    return [linear = Linear(s, square()), p = o.dropout, site = s.prefix()](
               const Tensor& h, const ModelInput& input, const Run& run) {
      const DropoutSpec spec = run.dropout(p, site, first_rows(input));
      return linear(dropout(first_rows(h, input.segments), spec), run, Activation::tanh);
    };
  }

  int64_t pad_;
};

template std::unique_ptr<ModelConfig> new_config<Roberta>();

}  // namespace heddle
