// Embeddings, layers, and the heads over them that the kin have in common.
#include "heddle/models/encoder.h"

namespace heddle {

using nn::Init;
using nn::LayerNorm;
using nn::Linear;
using nn::Residual;
using nn::Run;
using nn::Scope;
using nn::WordRows;

namespace {

Linear::Options dense(const EncoderSizes& z, int64_t in, int64_t out) {
  return {.in = in, .out = out, .init = Init::normal(z.std)};
}

// Words, positions and token types, summed and normed.
nn::Embedding embeddings(const Scope& s, const EncoderSizes& z) {
  const auto table = [&](const char* name, int64_t count, int64_t zero_row = -1) -> nn::Parameter& {
    return (s / name / "weight").parameter({count, z.width}, Init::normal(z.std, zero_row));
  };
  nn::Parameter& words = table("word_embeddings", z.vocab, z.pad);
  nn::Parameter& positions = table("position_embeddings", z.positions);
  nn::Parameter* types = z.types > 0 ? &table("token_type_embeddings", z.types) : nullptr;
  return {
      s.prefix(),
      words,
      nn::Positions::learned(positions),
      {.dropout = z.dropout, .types = types, .norm = LayerNorm(s / "LayerNorm", z.width, z.eps)}};
}

}  // namespace

EncoderStack::Layer::Layer(const Scope& s, const EncoderSizes& z, const EncoderNames& names,
                           int64_t i)
    : attention{(s / names.attention).prefix(),
                Linear(s / names.attention,
                       {names.projections[0], names.projections[1], names.projections[2]},
                       dense(z, z.width, z.width)),
                Linear(s / names.attention_out, dense(z, z.width, z.width)),
                {.heads = z.heads,
                 .dropout = z.attention_dropout,
                 .observed = fmt::format("attentions.{}", i)}},
      attention_norm(s / names.attention_norm, z.width, z.eps),
      mlp{s.prefix(),
          Linear(s / names.in, dense(z, z.width, z.hidden)),
          Linear(s / names.out, dense(z, z.hidden, z.width)),
          {.activation = nn::activation_of(z.activation)}},
      norm(s / names.norm, z.width, z.eps),
      attention_site((s / names.attention_out).prefix()),
      site((s / names.out).prefix()),
      dropout(z.dropout) {}

void EncoderStack::Layer::operator()(Residual& x, const WordRows& words, const Run& run) const {
  x.leave(attention(x.enter(attention_norm), words, run),
          run.dropout(dropout, attention_site, words.rows), attention_norm);
  x.leave(mlp(x.enter(norm), words.rows, run), run.dropout(dropout, site, words.rows), norm);
}

EncoderStack::EncoderStack(const Scope& base, const EncoderSizes& sizes, const EncoderNames& names)
    : sizes_(sizes), embedding_(embeddings(base / "embeddings", sizes)) {
  for (int64_t i = 0; i < sizes.layers; ++i) {
    layers_.emplace_back(base / names.layers / i, sizes, names, i);
  }
}

// Words without places get those of their sequences as the family counts them.
Tensor EncoderStack::hidden(const WordRows& words, const Run& run) const {
  std::vector<int32_t> places;
  for (int64_t i = 0; i < words.segments->count() && words.places.empty(); ++i) {
    const auto ids = words.ids.subspan(words.segments->begin(i), words.segments->length(i));
    const std::vector<int32_t> own = positions(ids);
    places.insert(places.end(), own.begin(), own.end());
  }
  WordRows placed = words;
  if (words.places.empty()) placed.places = places;
  return nn::run_stack(
      "", Residual(embedding_(placed, run), false), layers_.size(), nullptr, run,
      [this, words, run](size_t i, Residual& x, auto) { layers_[i](x, words, run); });
}

Linear::Options EncoderStack::square() const { return dense(sizes_, sizes_.width, sizes_.width); }

Heads::OfWords EncoderStack::pooler(const Scope& s, Activation kind) const {
  return
      [linear = Linear(s, square()), kind](const Tensor& h, const WordRows& words, const Run& run) {
        return linear(first_rows(h, *words.segments), run, kind);
      };
}

void EncoderStack::predict_words(const Scope& dense_scope, const Scope& norm_scope, Activation kind,
                                 bool is_tied, const Scope& decoder, const Scope& bias) {
  heads_.transform = [linear = Linear(dense_scope, square()),
                      norm = LayerNorm(norm_scope, sizes_.width, sizes_.eps),
                      kind](const Tensor& rows, const Run& run) {
    return norm(linear(rows, run, kind));
  };
  nn::Parameter& table =
      is_tied
          ? embedding_.words()
          : (decoder / "weight").parameter({sizes_.vocab, sizes_.width}, Init::normal(sizes_.std));
  const Scope at = is_tied ? bias : decoder / "bias";
  heads_.words.emplace(table, &at.parameter({sizes_.vocab}, Init::zeros()));
}

ModelPlan EncoderStack::plan() const {
  return {.stacks = {{.layers = sizes_.layers,
                      .heads = sizes_.heads,
                      .width = sizes_.width,
                      .hidden = sizes_.hidden,
                      .keeps_before_activation = sizes_.activation != "relu",
                      .word_rows = sizes_.vocab,
                      .position_rows = sizes_.positions,
                      .type_rows = sizes_.types,
                      .has_embedding_norm = true}},
          .has_pooler = static_cast<bool>(heads_.pooler)};
}

}  // namespace heddle
