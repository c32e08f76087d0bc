// GPT-2's blocks: Radford et al. 2019, section 2.3.
#include "heddle/models/gpt2.h"

#include <cmath>

#include "heddle/nn/attention.h"

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

// Hugging Face's Conv1D: the checkpoint holds [in, out].
Linear conv1d(const Scope& s, int64_t in, int64_t out, double std) {
  return Linear(
      s, {.in = in, .out = out, .init = Init::normal(std), .layout = nn::Layout::transposed});
}

// What enters the residual stream begins smaller by 1 / sqrt(number of residual layers).
double residual_std(const Gpt2Config& c) {
  return c.initializer_range / std::sqrt(2.0 * static_cast<double>(c.n_layer));
}

float score_scale(const Gpt2Config& c, int64_t layer) {
  double scale = 1;
  if (c.scale_attn_weights) scale /= std::sqrt(static_cast<double>(c.n_embd / c.n_head));
  if (c.scale_attn_by_inverse_layer_idx) scale /= static_cast<double>(layer + 1);
  return static_cast<float>(scale);
}

struct Block {
  LayerNorm ln_1, ln_2;
  SelfAttention attn;
  FeedForward mlp;
  std::string attn_site, mlp_site;
  double dropout;

  Block(const Scope& s, const Gpt2Config& c, int64_t i)
      : ln_1(s / "ln_1", c.n_embd, c.layer_norm_epsilon),
        ln_2(s / "ln_2", c.n_embd, c.layer_norm_epsilon),
        attn{(s / "attn").prefix(),
             conv1d(s / "attn" / "c_attn", c.n_embd, 3 * c.n_embd, c.initializer_range),
             conv1d(s / "attn" / "c_proj", c.n_embd, c.n_embd, residual_std(c)),
             {.heads = c.n_head,
              .is_causal = true,
              .dropout = c.attn_pdrop,
              .scale = score_scale(c, i),
              .layer = i,
              .observed = fmt::format("attentions.{}", i)}},
        mlp{(s / "mlp").prefix(),
            conv1d(s / "mlp" / "c_fc", c.n_embd, inner(c), c.initializer_range),
            conv1d(s / "mlp" / "c_proj", inner(c), c.n_embd, residual_std(c)),
            {.activation = nn::activation_of(c.activation_function)}},
        attn_site((s / "attn" / "c_proj").prefix()),
        mlp_site((s / "mlp" / "c_proj").prefix()),
        dropout(c.resid_pdrop) {}

  static int64_t inner(const Gpt2Config& c) { return c.n_inner.value_or(4 * c.n_embd); }

  void operator()(Residual& x, const WordRows& words, const Run& run) const {
    x.leave(attn(x.enter(ln_1), words, run), run.dropout(dropout, attn_site, words.rows), ln_1);
    x.leave(mlp(x.enter(ln_2), words.rows, run), run.dropout(dropout, mlp_site, words.rows), ln_2);
  }
};

nn::Embedding embeddings(const Scope& s, const Gpt2Config& c) {
  const Init init = Init::normal(c.initializer_range);
  nn::Parameter& words = (s / "wte" / "weight").parameter({c.vocab_size, c.n_embd}, init);
  nn::Parameter& positions = (s / "wpe" / "weight").parameter({c.n_positions, c.n_embd}, init);
  return {
      (s / "wte").prefix(), words, nn::Positions::learned(positions), {.dropout = c.embd_pdrop}};
}

nn::Parameter& output_table(const Scope& s, const Gpt2Config& c, nn::Parameter& words) {
  if (c.tie_word_embeddings) return words;
  return (s / "lm_head" / "weight")
      .parameter({c.vocab_size, c.n_embd}, Init::normal(c.initializer_range));
}

}  // namespace

void Gpt2Config::check(const std::string& source) const {
  heddle::check(n_embd % n_head == 0, ErrorKind::data,
                "{}: n_embd {} is not divisible by {} heads; choose a number of heads that "
                "divides it",
                source, n_embd, n_head);
  heddle::check(!add_cross_attention, ErrorKind::data,
                "{}: add_cross_attention is true; heddle has GPT-2 without cross-attention only",
                source);
}

struct Gpt2::Parts {
  Config config;
  nn::Embedding embedding;
  std::vector<Block> h;
  LayerNorm ln_f;
  nn::WordOutput output;

  Parts(const Scope& s, const Config& c)
      : config(c),
        embedding(embeddings(s / "transformer", c)),
        h(nn::make_layers<Block>(s / "transformer" / "h", c.n_layer, c)),
        ln_f(s / "transformer" / "ln_f", c.n_embd, c.layer_norm_epsilon),
        output(output_table(s, c, embedding.words())) {}
};

Gpt2::Gpt2(const Scope& s, const Config& config) {
  config.check("config");
  parts_ = std::make_unique<Parts>(s, config);
}
Gpt2::~Gpt2() = default;

const Gpt2Config& Gpt2::config() const { return parts_->config; }
const nn::WordOutput& Gpt2::output() const { return parts_->output; }

Tensor Gpt2::hidden(const WordRows& words, const Run& run) const {
  const Parts& p = *parts_;
  return nn::run_stack("", Residual(p.embedding(words, run), true), p.h.size(), &p.ln_f, run,
                       [&p, words, run](size_t i, Residual& x, auto) { p.h[i](x, words, run); });
}

// Old checkpoints hold the causal mask of each block.
nn::TensorNames Gpt2::names() const {
  nn::TensorNames names{.base = "transformer", .unneeded = {".attn.bias", ".attn.masked_bias"}};
  if (config().tie_word_embeddings) names.tied = {{"lm_head.weight", "transformer.wte.weight"}};
  return names;
}

}  // namespace heddle
