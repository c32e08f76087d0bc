// BERT: Devlin et al. 2019, "BERT: Pre-training of Deep Bidirectional Transformers", section 3; its
// blocks are those of Vaswani et al. 2017.
#include "heddle/models/encoder.h"

namespace heddle {

class Bert final : public EncoderStack, public WithTokenTypes {
 public:
  using Config = BertConfig;
  static HubFamily family() {
    return {.heads = {{Head::none, "BertModel"},
                      {Head::masked_token, "BertForMaskedLM"},
                      {Head::next_sentence, "BertForNextSentencePrediction"},
                      {Head::pretraining, "BertForPreTraining"},
                      {Head::sequence_classes, "BertForSequenceClassification"},
                      {Head::token_classes, "BertForTokenClassification"}},
            .passed_over = {{"is_causal", false}}};
  }

  Bert(const Scope& s, const Config& c, const HubConfig& hub)
      : EncoderStack(base_scope(s, "bert", hub), c, hub.pad_token_id.value_or(0)) {
    const bool tells_next = hub.head == Head::next_sentence || hub.head == Head::pretraining;
    const bool has_pooler =
        hub.head == Head::none ? hub.has_pooler : tells_next || hub.head == Head::sequence_classes;
    if (has_pooler) {
      heads_.pooler = pooler(base_scope(s, "bert", hub) / "pooler" / "dense", Activation::tanh);
    }
    if (hub.head == Head::masked_token || hub.head == Head::pretraining) {
      const Scope p = s / "cls" / "predictions";
      predict_tokens(p / "transform" / "dense", p / "transform" / "LayerNorm",
                     nn::activation_of(c.activation), p / "decoder", p / "bias");
    }
    if (tells_next) {
      heads_.next_sentence = classes_of_pooled(s / "cls" / "seq_relationship",
                                               {c.width, 2, c.initializer_range}, heads_.pooler);
    } else if (hub.head == Head::sequence_classes) {
      heads_.sequence_classes = classes_of_pooled(s / "classifier", c.classes(hub), heads_.pooler);
    } else if (hub.head == Head::token_classes) {
      heads_.token_classes = classes_of_tokens(s / "classifier", c.classes(hub));
    }
  }

  // Checkpoints of other tasks have other heads.
  nn::TensorNames names() const override {
    nn::TensorNames names = names_of("bert", "cls.predictions.");
    if (!heads_.next_sentence) names.unneeded.emplace_back("cls.seq_relationship.");
    return names;
  }
};

template std::unique_ptr<ModelConfig> new_config<Bert>();

}  // namespace heddle
