// BERT: Devlin et al. 2019, "BERT: Pre-training of Deep Bidirectional Transformers", section 3; its
// blocks are those of Vaswani et al. 2017.
#include "heddle/models/family.h"
#include "heddle/nn/attention.h"
#include "heddle/nn/mlp.h"

namespace heddle {
namespace {

using nn::FeedForward;
using nn::Init;
using nn::LayerNorm;
using nn::Linear;
using nn::Residual;
using nn::Run;
using nn::Scope;
using nn::SelfAttention;
using nn::WordRows;

// Hugging Face's keys; the defaults are BERT base.
struct BertConfig {
  int64_t vocab_size = 30522, max_position_embeddings = 512, type_vocab_size = 2;
  int64_t hidden_size = 768, num_hidden_layers = 12, num_attention_heads = 12;
  int64_t intermediate_size = 3072;
  std::string hidden_act = "gelu";
  double hidden_dropout_prob = 0.1, attention_probs_dropout_prob = 0.1;
  double layer_norm_eps = 1e-12, initializer_range = 0.02;
  std::optional<double> classifier_dropout;
  bool tie_word_embeddings = true;

  template <class V>
  void fields(V& v) {
    v("vocab_size", vocab_size, "words known to the tokenizer", at_least(1));
    v("max_position_embeddings", max_position_embeddings, "longest sequence in tokens",
      at_least(1));
    v("type_vocab_size", type_vocab_size, "token types: parts of a pair", at_least(1));
    v("hidden_size", hidden_size, "width of the residual stream", at_least(1));
    v("num_hidden_layers", num_hidden_layers, "number of blocks", at_least(1));
    v("num_attention_heads", num_attention_heads, "heads; must divide hidden_size", at_least(1));
    v("intermediate_size", intermediate_size, "width inside the feed-forward layers", at_least(1));
    v("hidden_act", hidden_act, "of the feed-forward layers", one_of(nn::activation_names()));
    v("hidden_dropout_prob", hidden_dropout_prob, "dropout of embeddings and sublayers",
      from_below(0, 1));
    v("attention_probs_dropout_prob", attention_probs_dropout_prob,
      "dropout of the attention weights", from_below(0, 1));
    v("layer_norm_eps", layer_norm_eps, "inside the root of each norm", above(0));
    v("initializer_range", initializer_range, "deviation of the weights at the start", at_least(0));
    v("classifier_dropout", classifier_dropout, "before classes; none: hidden_dropout_prob",
      from_below(0, 1));
    v("tie_word_embeddings", tie_word_embeddings, "word embeddings predict the masked words");
  }
  void check(const std::string& source) const {
    check_heads(hidden_size, "hidden_size", num_attention_heads, source);
  }
};

Linear::Options dense(const BertConfig& c, int64_t in, int64_t out) {
  return {.in = in, .out = out, .init = Init::normal(c.initializer_range)};
}

struct Layer {
  SelfAttention attention;
  LayerNorm attention_norm;
  FeedForward mlp;
  LayerNorm mlp_norm;
  std::string attention_site, mlp_site;
  double dropout;

  Layer(const Scope& s, const BertConfig& c, int64_t i)
      : attention{(s / "attention" / "self").prefix(),
                  Linear(s / "attention" / "self", {"query", "key", "value"},
                         dense(c, c.hidden_size, c.hidden_size)),
                  Linear(s / "attention" / "output" / "dense",
                         dense(c, c.hidden_size, c.hidden_size)),
                  {.heads = c.num_attention_heads,
                   .dropout = c.attention_probs_dropout_prob,
                   .observed = fmt::format("attentions.{}", i)}},
        attention_norm(s / "attention" / "output" / "LayerNorm", c.hidden_size, c.layer_norm_eps),
        mlp{s.prefix(),
            Linear(s / "intermediate" / "dense", dense(c, c.hidden_size, c.intermediate_size)),
            Linear(s / "output" / "dense", dense(c, c.intermediate_size, c.hidden_size)),
            {.activation = nn::activation_of(c.hidden_act)}},
        mlp_norm(s / "output" / "LayerNorm", c.hidden_size, c.layer_norm_eps),
        attention_site((s / "attention" / "output").prefix()),
        mlp_site((s / "output").prefix()),
        dropout(c.hidden_dropout_prob) {}

  void operator()(Residual& x, const WordRows& words, const Run& run) const {
    x.leave(attention(x.enter(attention_norm), words, run),
            run.dropout(dropout, attention_site, words.rows), attention_norm);
    x.leave(mlp(x.enter(mlp_norm), words.rows, run), run.dropout(dropout, mlp_site, words.rows),
            mlp_norm);
  }
};

// Words, positions and token types, summed and normed.
nn::Embedding embeddings(const Scope& s, const BertConfig& c, int64_t pad) {
  const auto table = [&](const char* name, int64_t count, int64_t zero_row = -1) -> nn::Parameter& {
    return (s / name / "weight")
        .parameter({count, c.hidden_size}, Init::normal(c.initializer_range, zero_row));
  };
  nn::Parameter& words = table("word_embeddings", c.vocab_size, pad);
  nn::Parameter& positions = table("position_embeddings", c.max_position_embeddings);
  nn::Parameter& types = table("token_type_embeddings", c.type_vocab_size);
  return {s.prefix(),
          words,
          nn::Positions::learned(positions),
          {.dropout = c.hidden_dropout_prob,
           .types = &types,
           .norm = LayerNorm(s / "LayerNorm", c.hidden_size, c.layer_norm_eps)}};
}

}  // namespace

class Bert final : public Model {
 public:
  using Config = BertConfig;
  static std::vector<HeadClass> heads() {
    return {{Head::none, "BertModel"},
            {Head::masked_word, "BertForMaskedLM"},
            {Head::pretraining, "BertForPreTraining"},
            {Head::sequence_classes, "BertForSequenceClassification"},
            {Head::word_classes, "BertForTokenClassification"}};
  }
  static std::vector<std::pair<std::string, std::string>> aliases() { return {}; }

  Bert(const Scope& s, const Config& c, const HubConfig& hub)
      : c_(c),
        embedding_(embeddings(base(s, hub) / "embeddings", c, hub.pad_token_id.value_or(0))),
        layers_(
            nn::make_layers<Layer>(base(s, hub) / "encoder" / "layer", c.num_hidden_layers, c)) {
    const ClassOptions classes{.width = c.hidden_size,
                               .labels = static_cast<int64_t>(hub.labels.size()),
                               .std = c.initializer_range,
                               .dropout = c.classifier_dropout.value_or(c.hidden_dropout_prob)};
    if (hub.head != Head::masked_word && hub.head != Head::word_classes) {
      heads_.pooler = pooler(base(s, hub) / "pooler" / "dense");
    }
    if (hub.head == Head::masked_word || hub.head == Head::pretraining) {
      predict_words(s / "cls" / "predictions");
    }
    if (hub.head == Head::pretraining) {
      heads_.next_sentence = classes_of_pooled(
          s / "cls" / "seq_relationship",
          {.width = c.hidden_size, .labels = 2, .std = c.initializer_range}, heads_.pooler);
    } else if (hub.head == Head::sequence_classes) {
      heads_.sequence_classes = classes_of_pooled(s / "classifier", classes, heads_.pooler);
    } else if (hub.head == Head::word_classes) {
      heads_.word_classes = classes_of_words(s / "classifier", classes);
    }
  }

  int64_t vocab_size() const override { return c_.vocab_size; }
  int64_t max_length() const override { return c_.max_position_embeddings; }
  int64_t layers() const override { return c_.num_hidden_layers; }
  int64_t width() const override { return c_.hidden_size; }

  Tensor hidden(const WordRows& words, const Run& run) const override {
    return nn::run_stack(
        "", Residual(embedding_(words, run), false), layers_.size(), nullptr, run,
        [this, words, run](size_t i, Residual& x, auto) { layers_[i](x, words, run); });
  }

  // Old checkpoints say gamma and beta; those of other tasks have other heads.
  nn::TensorNames names() const override {
    nn::TensorNames names{.base = "bert",
                          .endings = {{".gamma", ".weight"}, {".beta", ".bias"}},
                          .unneeded = {"embeddings.position_ids"}};
    const auto pass_over = [&](const char* name) { names.unneeded.emplace_back(name); };
    if (!heads_.pooler) pass_over("bert.pooler."), pass_over("pooler.");
    if (!heads_.next_sentence) pass_over("cls.seq_relationship.");
    if (!heads_.words) pass_over("cls.predictions.");
    const std::string predictions = "cls.predictions.";
    if (heads_.words && c_.tie_word_embeddings) {
      names.tied = {{predictions + "decoder.weight", "bert.embeddings.word_embeddings.weight"},
                    {predictions + "decoder.bias", predictions + "bias"}};
    } else if (heads_.words) {
      names.tied = {{predictions + "bias", predictions + "decoder.bias"}};
    }
    return names;
  }

  ModelPlan plan() const override {
    return {.stacks = {{.layers = c_.num_hidden_layers,
                        .heads = c_.num_attention_heads,
                        .width = c_.hidden_size,
                        .hidden = c_.intermediate_size,
                        .keeps_before_activation = c_.hidden_act != "relu",
                        .word_rows = c_.vocab_size,
                        .position_rows = c_.max_position_embeddings,
                        .type_rows = c_.type_vocab_size,
                        .has_embedding_norm = true}},
            .has_pooler = static_cast<bool>(heads_.pooler)};
  }

 private:
  static Scope base(const Scope& s, const HubConfig& hub) {
    return hub.head == Head::none ? s : s / "bert";
  }

  // tanh of a linear layer over the first word.
  Heads::OfWords pooler(const Scope& s) const {
    return [linear = Linear(s, dense(c_, c_.hidden_size, c_.hidden_size))](
               const Tensor& h, const WordRows& words, const Run& run) {
      return linear(first_rows(h, *words.segments), run, Activation::tanh);
    };
  }

  // activation, norm, then the table of words and a bias of its own.
  void predict_words(const Scope& s) {
    heads_.transform =
        [linear = Linear(s / "transform" / "dense", dense(c_, c_.hidden_size, c_.hidden_size)),
         norm = LayerNorm(s / "transform" / "LayerNorm", c_.hidden_size, c_.layer_norm_eps),
         kind = nn::activation_of(c_.hidden_act)](const Tensor& rows, const Run& run) {
          return norm(linear(rows, run, kind));
        };
    const Scope own = c_.tie_word_embeddings ? s : s / "decoder";
    nn::Parameter& table =
        c_.tie_word_embeddings
            ? embedding_.words()
            : (own / "weight")
                  .parameter({c_.vocab_size, c_.hidden_size}, Init::normal(c_.initializer_range));
    heads_.words.emplace(table, &(own / "bias").parameter({c_.vocab_size}, Init::zeros()));
  }

  Config c_;
  nn::Embedding embedding_;
  std::vector<Layer> layers_;
};

template std::unique_ptr<ModelConfig> new_config<Bert>();

}  // namespace heddle
