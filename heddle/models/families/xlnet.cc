// XLNet: Yang et al. 2019, "XLNet: Generalized Autoregressive Pretraining for Language
// Understanding". A token is known to those after it in some order; its prediction is made in a
// second stream that does not see it.
#include "heddle/models/family.h"
#include "heddle/nn/block.h"
#include "heddle/nn/relative/relative_attention.h"
#include "heddle/ops/embedding.h"

namespace heddle {
namespace {

using nn::Memory;
using nn::RelativePass;

// Hugging Face's keys; the defaults are those of xlnet-large-cased.
struct XlnetConfig {
  int64_t vocab_size = 32000, d_model = 1024, n_layer = 24, n_head = 16, d_inner = 4096;
  std::optional<int64_t> d_head, mem_len = 512, reuse_len;
  std::string ff_activation = "gelu", attn_type = "bi";
  double initializer_range = 0.02, layer_norm_eps = 1e-12, dropout = 0.1;
  bool bi_data = false, same_length = false, untie_r = true, use_mems_eval = true;
  int64_t clamp_len = -1;
  bool tie_word_embeddings = true;
  SummaryConfig summary;

  template <class V>
  void fields(V& v) {
    v("vocab_size", vocab_size, "tokens known to the tokenizer", between(1, kMostVocabulary));
    v("d_model", d_model, "width of the residual stream; even", between(2, kMostWidth));
    v("n_layer", n_layer, "number of layers", between(1, kMostLayers));
    v("n_head", n_head, "attention heads; must divide d_model", between(1, kMostHeads));
    v("d_head", d_head, "width of a head: d_model / n_head, or none", between(1, kMostHeads));
    v("d_inner", d_inner, "width inside the feed-forward layers", between(1, kMostWidth));
    v("ff_activation", ff_activation, "of the feed-forward layers", one_of(nn::activation_names()));
    v("attn_type", attn_type, "uni: a token sees those before it; bi: all", one_of({"bi", "uni"}));
    v("initializer_range", initializer_range, "deviation of the weights at the start", at_least(0));
    v("layer_norm_eps", layer_norm_eps, "inside the root of each norm", above(0));
    v("dropout", dropout, "of embeddings, sublayers and attention weights", from_below(0, 1));
    v("mem_len", mem_len, "states kept for the next segment; 0 or none: all", between(0, 1 << 30));
    v("reuse_len", reuse_len,
      "of a segment's tokens only the first so many are kept; 0 or none: all", between(0, 1 << 30));
    v("use_mems_eval", use_mems_eval, "states are kept where nothing is trained");
    v("bi_data", bi_data, "the second half of a batch runs backwards");
    v("clamp_len", clamp_len, "greater distances count as this; 0 or less: none does");
    v("same_length", same_length, "with uni: each token sees as many tokens as there is memory");
    v("untie_r", untie_r, "each layer has biases of its own; they always have");
    summary.fields(v);
    v("tie_word_embeddings", tie_word_embeddings, "tokens' vectors predict them too");
  }
  void check(const std::string& source) const {
    check_heads(d_model, "d_model", n_head, source);
    heddle::check(!d_head || *d_head == d_model / n_head, ErrorKind::data,
                  "{}: d_head is {}; it must be d_model / n_head, {}", source, d_head.value_or(0),
                  d_model / n_head);
    heddle::check(d_model % 2 == 0, ErrorKind::data,
                  "{}: d_model {} is odd; each distance is sines and as many cosines", source,
                  d_model);
  }
};

// Of tokens and predictions alike. The checkpoint holds matrices as [width, heads, d].
nn::RelativeAttention attention(const Scope& s, const XlnetConfig& c, int64_t layer) {
  const int64_t width = c.d_model, d = width / c.n_head;
  const Init init = Init::normal(c.initializer_range);
  const std::vector<int64_t> shape = {width, c.n_head, d};
  const auto part = [&](const char* name) {
    return nn::Part{
        .name = name, .rows = width, .layout = nn::Layout::transposed, .file_shape = shape};
  };
  const auto matrix = [&](const char* name, nn::Layout layout) {
    Parameter& weight = (s / name).parameter({width, width}, init, layout, shape);
    weight.between_hidden_states();
    return Linear((s / name).prefix(), weight);
  };
  const auto bias = [&](const char* name) {
    return &(s / name).parameter({width}, init, nn::Layout::as_is, {c.n_head, d});
  };
  Parameter& qkv = s.stacked({part("q"), part("k"), part("v")}, {0, width}, init);
  qkv.between_hidden_states();
  return {
      s.prefix(),
      Linear((s / "qkv").prefix(), qkv),
      matrix("r", nn::Layout::transposed),
      matrix("o", nn::Layout::as_is),
      {.heads = c.n_head,
       .dropout = c.dropout,
       .layer = layer,
       .content = bias("r_w_bias"),
       .distance = bias("r_r_bias"),
       .type = bias("r_s_bias"),
       .types =
           &(s / "seg_embed").parameter({2, width}, init, nn::Layout::as_is, {2, c.n_head, d})}};
}

nn::RelativeLayer layer(const Scope& s, const XlnetConfig& c, int64_t i) {
  const Scope ff = s / "ff";
  const auto dense = [&](const char* name, int64_t in, int64_t out) {
    return Linear(ff / name, {.in = in, .out = out, .init = Init::normal(c.initializer_range)});
  };
  return {.attention = attention(s / "rel_attn", c, i),
          .attention_norm = LayerNorm(s / "rel_attn" / "layer_norm", c.d_model, c.layer_norm_eps),
          .ff = nn::FeedForward(
              (ff / "layer_1").prefix(), dense("layer_1", c.d_model, c.d_inner),
              dense("layer_2", c.d_inner, c.d_model),
              {.activation = nn::activation_of(c.ff_activation), .dropout = c.dropout}),
          .ff_norm = LayerNorm(ff / "layer_norm", c.d_model, c.layer_norm_eps),
          .site = s.prefix(),
          .dropout = c.dropout};
}

bool has_targets(const TokenRows& tokens) {
  return tokens.order != nullptr && tokens.order->targets.count() > 0;
}

}  // namespace

class Xlnet final : public TokenModel, public WithMemory, public WithOrder, public WithTokenTypes {
 public:
  using Config = XlnetConfig;
  static HubFamily family() {
    return {.heads = {{Head::ordered_token, "XLNetLMHeadModel"},
                      {Head::none, "XLNetModel"},
                      {Head::sequence_classes, "XLNetForSequenceClassification"},
                      {Head::token_classes, "XLNetForTokenClassification"}},
            .aliases = {{"n_token", "vocab_size"},
                        {"hidden_size", "d_model"},
                        {"num_attention_heads", "n_head"},
                        {"num_hidden_layers", "n_layer"}},
            .passed_over = {{"is_causal", Json()}}};
  }

  Xlnet(const Scope& s, const Config& c, const HubConfig& hub)
      : TokenModel({c.vocab_size, kAnyLength, c.n_layer, c.d_model}),
        c_(c),
        table_(table(base_scope(s, "transformer", hub) / "word_embedding" / "weight", c)),
        mask_((base_scope(s, "transformer", hub) / "mask_emb")
                  .parameter({1, c.d_model}, Init::normal(c.initializer_range), nn::Layout::as_is,
                             {1, 1, c.d_model})),
        embedding_("word_embedding", table_, nn::Positions::none(), {.dropout = c.dropout}) {
    layers_ = nn::make_layers(base_scope(s, "transformer", hub) / "layer", c.n_layer,
                              [&](const Scope& at, int64_t i) { return layer(at, c, i); });
    const ClassOptions classes{c.d_model, hub.classes(), c.initializer_range};
    if (hub.head == Head::ordered_token) {
      heads_.output.emplace(c.tie_word_embeddings ? table_ : table(s / "lm_loss" / "weight", c),
                            &(s / "lm_loss" / "bias").parameter({c.vocab_size}, Init::zeros()));
    } else if (hub.head == Head::sequence_classes) {
      heads_.sequence_classes =
          classes_of_summary(s / "sequence_summary", s / "logits_proj", classes, c.summary, hub);
    } else if (hub.head == Head::token_classes) {
      heads_.token_classes = classes_of_tokens(s / "classifier", classes);
    }
  }

  int64_t memory_length() const override { return c_.use_mems_eval ? kept() : 0; }
  int64_t memory_width() const override { return c_.d_model; }
  bool runs_backwards() const override { return c_.bi_data; }

  // Of predictions, if the order has some.
  Tensor hidden(const TokenRows& tokens, const Run& run) const override {
    const auto pass = pass_of(tokens, run);
    std::vector<Tensor> x = {embed(tokens, run)};
    if (has_targets(tokens)) {
      const std::vector<int32_t> masks(tokens.order->target_tokens.size());
      x.push_back(embedding(mask_.in(run.compute), masks, 1, {}, {},
                            run.dropout(c_.dropout, "mask_emb", pass->streams[1].ids)));
    }
    x = nn::run_relative_stack(layers_, x, pass, {kept(), c_.reuse_len.value_or(0)}, run);
    const nn::RelativeStream& last = pass->streams.back();
    return dropout(x.back(), run.dropout(c_.dropout, last.prefix + "last", last.ids));
  }

  nn::TensorNames names() const override {
    nn::TensorNames names{.base = "transformer"};
    for (const auto& [head_of, name] : {std::pair{Head::ordered_token, "lm_loss."},
                                        {Head::sequence_classes, "sequence_summary."},
                                        {Head::sequence_classes, "logits_proj."},
                                        {Head::token_classes, "classifier."}}) {
      if (head() != head_of) names.unneeded.emplace_back(name);
    }
    if (head() == Head::ordered_token && c_.tie_word_embeddings) {
      names.tied = {{"lm_loss.weight", "transformer.word_embedding.weight"}};
    }
    return names;
  }

 private:
  static Parameter& table(const Scope& s, const Config& c) {
    return s.parameter({c.vocab_size, c.d_model}, Init::normal(c.initializer_range));
  }
  int64_t kept() const {
    return c_.mem_len.value_or(0) > 0 ? *c_.mem_len : std::numeric_limits<int32_t>::max();
  }

  // Types are no vectors here: they are in the scores.
  Tensor embed(TokenRows tokens, const Run& run) const {
    tokens.types = {};
    return embedding_(tokens, run);
  }

  std::shared_ptr<const RelativePass> pass_of(const TokenRows& tokens, const Run& run) const {
    RelativePass pass{.tokens = tokens};
    const Segments& segments = *tokens.segments;
    pass.memory = Memory::before(tokens.memory, segments, 0, c_.n_layer, c_.d_model, run.compute);
    RelativeRows rows = nn::rows_behind(pass.memory.segments, tokens);
    if (c_.bi_data) {
      check(segments.count() % 2 == 0, ErrorKind::data,
            "bi_data is true: half of a batch runs backwards, so it cannot be of {} sequences",
            segments.count());
      nn::run_backwards(rows, segments.count() / 2);
    }
    if (tokens.order != nullptr) tokens.order->check(segments);
    const bool is_causal = c_.attn_type == "uni";
    check(!is_causal || tokens.order == nullptr || tokens.order->steps.empty(), ErrorKind::data,
          "attn_type is uni: tokens are in the order of the text; steps need bi");
    const int32_t most = nn::farthest(rows);
    const int32_t least = is_causal && !c_.bi_data ? std::min(0, most) : nn::nearest(rows);
    pass.distances = nn::distances(most, least, c_.clamp_len, c_.d_model, run.compute);
    nn::drop(pass.distances, c_.dropout, run);
    nn::OrderRule rule{
        .order = tokens.order, .is_causal = is_causal, .is_windowed = c_.same_length};
    if (has_targets(tokens)) {
      nn::RelativeStream targets{.rows = nn::rows_of_targets(rows, *tokens.order),
                                 .prefix = "target_"};
      if (tokens.rows != nullptr) targets.ids = tokens.rows->of(tokens.order->target_tokens);
      rule.is_of_targets = true;
      nn::see_in_order(targets.rows, segments, rule);
      pass.streams.push_back(std::move(targets));
      rule.is_of_targets = false;
    }
    nn::see_in_order(rows, segments, rule);
    pass.streams.insert(pass.streams.begin(), {.rows = std::move(rows), .ids = tokens.rows});
    return std::make_shared<const RelativePass>(std::move(pass));
  }

  Config c_;
  Parameter &table_, &mask_;
  nn::Embedding embedding_;
  std::vector<nn::RelativeLayer> layers_;
};

template std::unique_ptr<ModelConfig> new_config<Xlnet>();

}  // namespace heddle
