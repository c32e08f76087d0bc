// BERT's encoder and pooler: Devlin et al. 2019, section 3; the blocks are Vaswani et al. 2017's.
#include "heddle/models/bert.h"

#include "heddle/nn/attention.h"
#include "heddle/ops/embedding.h"

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
nn::Embedding embeddings(const Scope& s, const BertConfig& c) {
  const auto table = [&](const char* name, int64_t count, int64_t zero_row = -1) -> nn::Parameter& {
    return (s / name / "weight")
        .parameter({count, c.hidden_size}, Init::normal(c.initializer_range, zero_row));
  };
  nn::Parameter& words = table("word_embeddings", c.vocab_size, c.pad_token_id);
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

void BertConfig::check(const std::string& source) const {
  heddle::check(hidden_size % num_attention_heads == 0, ErrorKind::data,
                "{}: hidden_size {} is not divisible by {} heads; choose a number of heads that "
                "divides it",
                source, hidden_size, num_attention_heads);
  heddle::check(!is_decoder && !add_cross_attention, ErrorKind::data,
                "{}: is_decoder or add_cross_attention is true; heddle has BERT as an encoder only",
                source);
}

struct Bert::Parts {
  Config config;
  nn::Embedding embedding;
  std::vector<Layer> layers;
  Linear pooler;

  Parts(const Scope& s, const Config& c)
      : config(c),
        embedding(embeddings(s / "embeddings", c)),
        layers(nn::make_layers<Layer>(s / "encoder" / "layer", c.num_hidden_layers, c)),
        pooler(s / "pooler" / "dense", dense(c, c.hidden_size, c.hidden_size)) {}
};

Bert::Bert(const Scope& s, const Config& config) {
  config.check("config");
  parts_ = std::make_unique<Parts>(s, config);
}
Bert::~Bert() = default;

const BertConfig& Bert::config() const { return parts_->config; }

Tensor Bert::encode(const WordRows& words, const Run& run) const {
  const Parts& p = *parts_;
  return nn::run_stack(
      "", Residual(p.embedding(words, run), false), p.layers.size(), nullptr, run,
      [&p, words, run](size_t i, Residual& x, auto) { p.layers[i](x, words, run); });
}

Tensor Bert::pool(const Tensor& h, const Segments& segments, const Run& run) const {
  std::vector<int32_t> first;
  for (int64_t i = 0; i < segments.count(); ++i) {
    heddle::check(segments.length(i) > 0, ErrorKind::shape, "pooling: sequence {} is empty", i);
    first.push_back(static_cast<int32_t>(segments.begin(i)));
  }
  return parts_->pooler(gather_rows(h, first), run, Activation::tanh);
}

std::vector<ModelOutput> Bert::forward(const WordRows& words, const Run& run) const {
  const Tensor h = encode(words, run);
  return {{"last_hidden_state", h}, {"pooler_output", pool(h, *words.segments, run), true}};
}

// Old checkpoints say gamma and beta; those of tasks have a head beside the encoder.
nn::TensorNames Bert::names() const {
  return {.base = "bert",
          .endings = {{".gamma", ".weight"}, {".beta", ".bias"}},
          .unneeded = {"cls.", "embeddings.position_ids"}};
}

}  // namespace heddle
