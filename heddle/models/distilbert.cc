// DistilBERT: Sanh et al. 2019, "DistilBERT, a distilled version of BERT": BERT without token types
// and pooler.
#include "heddle/models/encoder.h"

namespace heddle {
namespace {

// Hugging Face's keys.
struct DistilBertConfig {
  int64_t vocab_size = 30522, max_position_embeddings = 512;
  int64_t dim = 768, n_layers = 6, n_heads = 12, hidden_dim = 3072;
  std::string activation = "gelu";
  double dropout = 0.1, attention_dropout = 0.1, seq_classif_dropout = 0.2;
  double initializer_range = 0.02;
  bool tie_word_embeddings = true;

  template <class V>
  void fields(V& v) {
    v("vocab_size", vocab_size, "words known to the tokenizer", at_least(1));
    v("max_position_embeddings", max_position_embeddings, "longest sequence in tokens",
      at_least(1));
    v("dim", dim, "width of the residual stream", at_least(1));
    v("n_layers", n_layers, "number of blocks", at_least(1));
    v("n_heads", n_heads, "heads; must divide dim", at_least(1));
    v("hidden_dim", hidden_dim, "width inside the feed-forward layers", at_least(1));
    v("activation", activation, "of the feed-forward layers", one_of(nn::activation_names()));
    v("dropout", dropout, "dropout of embeddings and sublayers", from_below(0, 1));
    v("attention_dropout", attention_dropout, "dropout of the attention weights", from_below(0, 1));
    v("seq_classif_dropout", seq_classif_dropout, "dropout before the classes of sequences",
      from_below(0, 1));
    v("initializer_range", initializer_range, "deviation of the weights at the start", at_least(0));
    v("tie_word_embeddings", tie_word_embeddings, "word embeddings predict the masked words");
  }
  void check(const std::string& source) const { check_heads(dim, "dim", n_heads, source); }
  EncoderSizes sizes(int64_t pad) const {
    return {.vocab = vocab_size,
            .positions = max_position_embeddings,
            .width = dim,
            .layers = n_layers,
            .heads = n_heads,
            .hidden = hidden_dim,
            .activation = activation,
            .dropout = dropout,
            .attention_dropout = attention_dropout,
            .eps = 1e-12,
            .std = initializer_range,
            .pad = pad};
  }
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
  static std::vector<HeadClass> heads() {
    return {{Head::masked_word, "DistilBertForMaskedLM"},
            {Head::none, "DistilBertModel"},
            {Head::sequence_classes, "DistilBertForSequenceClassification"},
            {Head::word_classes, "DistilBertForTokenClassification"}};
  }
  static std::vector<std::pair<std::string, std::string>> aliases() {
    return {{"hidden_size", "dim"},
            {"num_attention_heads", "n_heads"},
            {"num_hidden_layers", "n_layers"}};
  }

  DistilBert(const nn::Scope& s, const Config& c, const HubConfig& hub)
      : EncoderStack(hub.head == Head::none ? s : s / "distilbert",
                     c.sizes(hub.pad_token_id.value_or(0)), kNames),
        is_tied_(c.tie_word_embeddings) {
    ClassOptions classes{.width = c.dim,
                         .labels = static_cast<int64_t>(hub.labels.size()),
                         .std = c.initializer_range,
                         .dropout = c.dropout};
    if (hub.head == Head::masked_word) {
      predict_words(s / "vocab_transform", s / "vocab_layer_norm", nn::activation_of(c.activation),
                    is_tied_, s / "vocab_projector", s / "vocab_projector" / "bias");
    } else if (hub.head == Head::sequence_classes) {
      classes.dropout = c.seq_classif_dropout;
      heads_.sequence_classes = classes_of_pooled(s / "classifier", classes,
                                                  pooler(s / "pre_classifier", Activation::relu));
    } else if (hub.head == Head::word_classes) {
      heads_.word_classes = classes_of_words(s / "classifier", classes);
    }
  }

  nn::TensorNames names() const override {
    nn::TensorNames names{.base = "distilbert", .unneeded = {"embeddings.position_ids"}};
    if (!heads_.words) names.unneeded.insert(names.unneeded.end(), {"vocab_"});
    if (head() == Head::none) {
      names.unneeded.insert(names.unneeded.end(), {"classifier.", "pre_classifier."});
    }
    if (heads_.words && is_tied_) {
      names.tied = {{"vocab_projector.weight", "distilbert.embeddings.word_embeddings.weight"}};
    }
    return names;
  }

 private:
  bool is_tied_;
};

template std::unique_ptr<ModelConfig> new_config<DistilBert>();

}  // namespace heddle
