// DistilBERT: Sanh et al. 2019, "DistilBERT, a distilled version of BERT": BERT without token types
// and pooler.
#include "heddle/models/encoder.h"

namespace heddle {
namespace {

constexpr EncoderKeys kKeys = {.width = "dim",
                               .layers = "n_layers",
                               .heads = "n_heads",
                               .hidden = "hidden_dim",
                               .activation = "activation",
                               .dropout = "dropout",
                               .attention_dropout = "attention_dropout"};

// Hugging Face's keys.
struct DistilBertConfig : EncoderFields {
  double seq_classif_dropout = 0.2;

  DistilBertConfig() { layers = 6; }

  template <class V>
  void fields(V& v) {
    EncoderFields::fields(v, kKeys);
    v("seq_classif_dropout", seq_classif_dropout, "dropout before the classes of sequences",
      from_below(0, 1));
  }
  void check(const std::string& source) const { EncoderFields::check(source, kKeys); }
};

constexpr EncoderNames kNames = {.layers = "transformer.layer",
                                 .attention = "attention",
                                 .projections = {"q_lin", "k_lin", "v_lin"},
                                 .attention_out = "attention.out_lin",
                                 .attention_norm = "sa_layer_norm",
                                 .in = "ffn.lin1",
                                 .out = "ffn.lin2",
                                 .norm = "output_layer_norm"};

}  // namespace

class DistilBert final : public EncoderStack {
 public:
  using Config = DistilBertConfig;
  static HubFamily family() {
    return {.heads = {{Head::masked_token, "DistilBertForMaskedLM"},
                      {Head::none, "DistilBertModel"},
                      {Head::sequence_classes, "DistilBertForSequenceClassification"},
                      {Head::token_classes, "DistilBertForTokenClassification"}},
            .aliases = {{"hidden_size", "dim"},
                        {"num_attention_heads", "n_heads"},
                        {"num_hidden_layers", "n_layers"}},
            .passed_over = {{"is_causal", false}}};
  }

  DistilBert(const Scope& s, const Config& c, const HubConfig& hub)
      : EncoderStack(base_scope(s, "distilbert", hub), c, hub.pad_token_id.value_or(0), kNames) {
    ClassOptions classes{c.width, hub.classes(), c.initializer_range, c.dropout};
    if (hub.head == Head::masked_token) {
      predict_tokens(s / "vocab_transform", s / "vocab_layer_norm", nn::activation_of(c.activation),
                     s / "vocab_projector", s / "vocab_projector" / "bias");
    } else if (hub.head == Head::sequence_classes) {
      classes.dropout = c.seq_classif_dropout;
      heads_.sequence_classes = classes_of_pooled(s / "classifier", classes,
                                                  pooler(s / "pre_classifier", Activation::relu));
    } else if (hub.head == Head::token_classes) {
      heads_.token_classes = classes_of_tokens(s / "classifier", classes);
    }
  }

  nn::TensorNames names() const override {
    nn::TensorNames names{.base = "distilbert", .unneeded = {"embeddings.position_ids"}};
    if (!heads_.output) names.unneeded.insert(names.unneeded.end(), {"vocab_"});
    if (head() == Head::none) {
      names.unneeded.insert(names.unneeded.end(), {"classifier.", "pre_classifier."});
    }
    if (heads_.output && fields_.tie_word_embeddings) {
      names.tied = {{"vocab_projector.weight", "distilbert.embeddings.word_embeddings.weight"}};
    }
    return names;
  }
};

template std::unique_ptr<ModelConfig> new_config<DistilBert>();

}  // namespace heddle
