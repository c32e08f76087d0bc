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
                      {Head::token_classes, "BertForTokenClassification"}}};
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

  // Old checkpoints say gamma and beta; those of other tasks have other heads.
  nn::TensorNames names() const override {
    nn::TensorNames names{.base = "bert",
                          .endings = {{".gamma", ".weight"}, {".beta", ".bias"}},
                          .unneeded = {"embeddings.position_ids"}};
    const auto pass_over = [&](const char* name) { names.unneeded.emplace_back(name); };
    if (!heads_.pooler) pass_over("bert.pooler."), pass_over("pooler.");
    if (!heads_.next_sentence) pass_over("cls.seq_relationship.");
    if (!heads_.output) pass_over("cls.predictions.");
    if (head() == Head::none) pass_over("classifier.");
    const std::string predictions = "cls.predictions.";
    if (heads_.output && fields_.tie_word_embeddings) {
      names.tied = {{predictions + "decoder.weight", "bert.embeddings.word_embeddings.weight"},
                    {predictions + "decoder.bias", predictions + "bias"}};
    } else if (heads_.output) {
      names.tied = {{predictions + "bias", predictions + "decoder.bias"}};
    }
    return names;
  }
};

template std::unique_ptr<ModelConfig> new_config<Bert>();

}  // namespace heddle
