// Transformer-XL: Dai et al. 2019, "Transformer-XL: Attentive Language Models Beyond a Fixed-Length
// Context"; tokens by frequency as in Baevski & Auli 2019. Names and keys are those of
// transformers' `transfo-xl`, whose logits are log probabilities.
#include "heddle/models/family.h"
#include "heddle/nn/adaptive.h"
#include "heddle/nn/relative/relative_attention.h"

namespace heddle {
namespace {

using nn::Memory;
using nn::RelativePass;

// Hugging Face's keys; the defaults are those of transfo-xl-wt103.
struct TransformerXlConfig {
  int64_t vocab_size = 267735, d_model = 1024, d_embed = 1024, n_head = 16, d_head = 64;
  int64_t d_inner = 4096, n_layer = 18, div_val = 4;
  std::vector<int64_t> cutoffs = {20000, 40000, 200000};
  bool pre_lnorm = false, same_length = true, untie_r = true, tie_word_embeddings = true;
  int64_t mem_len = 1600, clamp_len = 1000, attn_type = 0;
  bool proj_share_all_but_first = true;
  double dropout = 0.1, dropatt = 0, layer_norm_epsilon = 1e-5;
  double init_std = 0.02, proj_init_std = 0.01;

  template <class V>
  void fields(V& v) {
    v("vocab_size", vocab_size, "tokens known to the tokenizer", between(1, kMostVocabulary));
    v("cutoffs", cutoffs, "ids where rarer tokens begin: each group is a softmax of its own");
    v("d_model", d_model, "width of the residual stream; even", between(2, kMostWidth));
    v("d_embed", d_embed, "width of the vectors of the commonest tokens", between(1, kMostWidth));
    v("div_val", div_val, "each group's vectors are narrower by this factor",
      between(1, kMostWidth));
    v("n_head", n_head, "attention heads", between(1, 65536));
    v("d_head", d_head, "width of a head", between(1, 65536));
    v("d_inner", d_inner, "width inside the feed-forward layers", between(1, kMostWidth));
    v("n_layer", n_layer, "number of layers", between(1, kMostLayers));
    v("pre_lnorm", pre_lnorm, "norm before each sublayer, not after it");
    v("mem_len", mem_len, "states of tokens before a segment that its tokens see",
      between(0, 1'000'000));  // a text begins behind as many zeros
    v("same_length", same_length, "each token sees mem_len tokens, itself counted");
    v("clamp_len", clamp_len, "greater distances count as this; 0 or less: none does");
    v("attn_type", attn_type, "not supported: must be 0, relative distances");
    v("proj_share_all_but_first", proj_share_all_but_first,
      "groups but the first project in and out by one matrix");
    v("tie_word_embeddings", tie_word_embeddings, "tokens' vectors predict them too");
    v("untie_r", untie_r, "each layer has biases of content and distance of its own");
    v("dropout", dropout, "of embeddings and sublayers", from_below(0, 1));
    v("dropatt", dropatt, "of the attention weights", from_below(0, 1));
    v("layer_norm_epsilon", layer_norm_epsilon, "inside the root of each norm", above(0));
    v("init_std", init_std, "deviation of the weights at the start", at_least(0));
    v("proj_init_std", proj_init_std, "the same of projections of tokens", at_least(0));
  }
  void check(const std::string& source) const {
    heddle::check(attn_type == 0, ErrorKind::data,
                  "{}: attn_type is {}; heddle has 0, relative distances, only", source, attn_type);
    heddle::check(d_model % 2 == 0, ErrorKind::data,
                  "{}: d_model {} is odd; each distance is sines and as many cosines", source,
                  d_model);
    adaptive().check(source);
  }
  nn::AdaptiveOptions adaptive() const {
    nn::AdaptiveOptions o{.vocab = vocab_size,
                          .cutoffs = cutoffs,
                          .width = d_model,
                          .narrow = d_embed,
                          .divisor = div_val,
                          .is_tied = tie_word_embeddings,
                          .std = init_std,
                          .projection_std = proj_init_std};
    o.tied_projections.assign(o.groups(), proj_share_all_but_first);
    o.tied_projections[0] = false;
    return o;
  }
};

// transformers writes which projections are tied beside what it follows from, and goes by it.
nn::AdaptiveOptions adaptive_of(const TransformerXlConfig& c, const HubConfig& hub) {
  nn::AdaptiveOptions o = c.adaptive();
  const Json* ties = hub.others.find("tie_projs");
  if (ties == nullptr || ties->is_null()) return o;
  std::vector<bool> given;
  for (const Json& tie : ties->as_array("tie_projs")) given.push_back(tie.as_bool("tie_projs"));
  given.resize(o.groups());
  o.tied_projections = given;
  return o;
}

nn::RelativeAttention attention(const Scope& base, const Scope& s, const TransformerXlConfig& c,
                                int64_t layer) {
  const int64_t inner = c.n_head * c.d_head;
  const auto matrix = [&](const char* name, int64_t out, int64_t in) {
    return Linear(s / name,
                  {.in = in, .out = out, .bias = false, .init = Init::normal(c.init_std)});
  };
  const auto bias = [&](const char* name) {
    return &((c.untie_r ? s : base) / name)
                .parameter({inner}, Init::normal(c.init_std), nn::Layout::as_is,
                           {c.n_head, c.d_head});
  };
  return {s.prefix(),
          matrix("qkv_net", 3 * inner, c.d_model),
          matrix("r_net", inner, c.d_model),
          matrix("o_net", c.d_model, inner),
          {.heads = c.n_head,
           .dropout = c.dropatt,
           .layer = layer,
           .content = bias("r_w_bias"),
           .distance = bias("r_r_bias")}};
}

nn::RelativeLayer layer(const Scope& base, const TransformerXlConfig& c, int64_t i) {
  const Scope s = base / "layers" / i, ff = s / "pos_ff";
  const auto dense = [&](const char* name, int64_t in, int64_t out) {
    return Linear(ff / "CoreNet" / name, {.in = in, .out = out, .init = Init::normal(c.init_std)});
  };
  return {
      .attention = attention(base, s / "dec_attn", c, i),
      .attention_norm = LayerNorm(s / "dec_attn" / "layer_norm", c.d_model, c.layer_norm_epsilon),
      .ff = nn::FeedForward(ff.prefix(), dense("0", c.d_model, c.d_inner),
                            dense("3", c.d_inner, c.d_model),
                            {.activation = Activation::relu, .dropout = c.dropout}),
      .ff_norm = LayerNorm(ff / "layer_norm", c.d_model, c.layer_norm_epsilon),
      .site = s.prefix(),
      .dropout = c.dropout,
      .is_pre = c.pre_lnorm};
}

// Nobody may see anything: transformers then lets all see all, alike.
void hide_all(RelativeRows& rows) {
  for (int64_t s = 0; s < rows.queries.count(); ++s) {
    rows.hidden.resize(rows.hidden.size() + rows.queries.length(s) * rows.keys.length(s), 1);
  }
}

}  // namespace

class TransformerXl final : public LanguageModel, public WithMemory {
 public:
  using Config = TransformerXlConfig;
  static HubFamily family() {
    return {.heads = {{Head::next_token, "TransfoXLLMHeadModel"},
                      {Head::none, "TransfoXLModel"},
                      {Head::sequence_classes, "TransfoXLForSequenceClassification"}},
            .aliases = {{"n_token", "vocab_size"},
                        {"hidden_size", "d_model"},
                        {"num_attention_heads", "n_head"},
                        {"num_hidden_layers", "n_layer"}},
            .passed_over = {{"is_causal", true}},
            .dropped_in = "4.36"};
  }

  TransformerXl(const Scope& s, const Config& c, const HubConfig& hub)
      : LanguageModel({c.vocab_size, kAnyLength, c.n_layer, c.d_model}),
        c_(c),
        adaptive_(adaptive_of(c, hub)),
        embedding_(tables(s, hub).embedding()) {
    for (int64_t i = 0; i < c.n_layer; ++i) {
      layers_.push_back(layer(base_scope(s, "transformer", hub), c, i));
    }
    if (hub.head == Head::next_token) {
      const nn::AdaptiveTables adaptive = tables(s, hub);
      heads_.output.emplace(adaptive.output());
      tied_ = adaptive.tied();
    } else if (hub.head == Head::sequence_classes) {
      const ClassOptions classes{c.d_model, hub.classes(), c.init_std};
      heads_.sequence_classes = classes_of_last_token(s / "score", classes, hub.pad_token_id);
    }
  }

  int64_t memory_length() const override { return c_.mem_len; }
  int64_t memory_width() const override { return c_.d_model; }
  int64_t cache_width() const override { return 2 * c_.n_head * c_.d_head; }
  bool is_causal() const override {
    return !(c_.same_length && c_.mem_len == 0);
  }  // see hide_all()
  // Else the tokens of a pass see more of those before it than one would alone.
  bool reads_ahead() const override { return is_causal() && (c_.same_length || c_.mem_len == 0); }

  Tensor hidden(const TokenRows& tokens, const Run& run) const override {
    const auto pass = pass_of(tokens, run);
    const Tensor x =
        dropout(embedding_(tokens.ids, run), run.dropout(c_.dropout, "word_emb", tokens.rows));
    const Tensor h = nn::run_relative_stack(layers_, {x}, pass, {c_.mem_len}, run)[0];
    return keep_answers(dropout(h, run.dropout(c_.dropout, "last", tokens.rows)), tokens);
  }

  nn::TensorNames names() const override {
    nn::TensorNames names{.base = "transformer", .tied = tied_, .unneeded = {"pos_emb.inv_freq"}};
    if (head() != Head::next_token) names.unneeded.emplace_back("crit.");
    return names;
  }

 private:
  nn::AdaptiveTables tables(const Scope& s, const HubConfig& hub) const {
    return {base_scope(s, "transformer", hub) / "word_emb", s / "crit", adaptive_};
  }

  std::shared_ptr<const RelativePass> pass_of(TokenRows tokens, const Run& run) const {
    tokens.types = {};  // a tokenizer may tell parts apart; this model does not
    RelativePass pass{.tokens = tokens};
    const auto memory_of = [&](const Segments& segments, int64_t n) {
      return Memory::before(tokens.memory, segments, n, c_.n_layer, c_.d_model, run.compute);
    };
    RelativeRows rows;
    // A text begins behind a memory of zeros, as in transformers.
    if (tokens.cache != nullptr) {
      pass.memory = memory_of(Segments::uniform(1, 1), 1);
      rows = nn::rows_of_cache(*tokens.cache, c_.mem_len, pass.cache_rows);
    } else {
      pass.memory = memory_of(*tokens.segments, c_.mem_len);
      rows = nn::rows_behind(pass.memory.segments, tokens);
    }
    if (c_.same_length && c_.mem_len == 0) {
      hide_all(rows);
    } else {
      nn::see_back(rows, c_.same_length ? c_.mem_len : 0);
    }
    pass.distances = nn::distances(nn::farthest(rows), 0, c_.clamp_len, c_.d_model, run.compute);
    nn::drop(pass.distances, c_.dropout, run);
    pass.streams = {{.rows = std::move(rows), .ids = tokens.rows}};
    return std::make_shared<const RelativePass>(std::move(pass));
  }

  Config c_;
  nn::AdaptiveOptions adaptive_;
  nn::AdaptiveEmbedding embedding_;
  std::vector<nn::RelativeLayer> layers_;
  std::vector<std::pair<std::string, std::string>> tied_;  // see nn::TensorNames
};

template std::unique_ptr<ModelConfig> new_config<TransformerXl>();

}  // namespace heddle
