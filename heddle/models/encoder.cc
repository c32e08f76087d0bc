// Embeddings, layers, and the heads over them that the kin have in common.
#include "heddle/models/encoder.h"

namespace heddle {

namespace {

Linear::Options dense(const EncoderFields& c, int64_t in, int64_t out) {
  return {.in = in, .out = out, .init = Init::normal(c.initializer_range)};
}

// Words, positions and token types, summed and normed.
nn::Embedding embeddings(const Scope& s, const EncoderFields& c, int64_t pad) {
  const auto table = [&](const char* name, int64_t count, int64_t zero_row = -1) -> Parameter& {
    return (s / name / "weight")
        .parameter({count, c.width}, Init::normal(c.initializer_range, zero_row));
  };
  Parameter& words = table("word_embeddings", c.vocab_size, pad);
  Parameter& positions = table("position_embeddings", c.max_position_embeddings);
  Parameter* types =
      c.type_vocab_size > 0 ? &table("token_type_embeddings", c.type_vocab_size) : nullptr;
  return {s.prefix(),
          words,
          nn::Positions::learned(positions),
          {.dropout = c.dropout,
           .types = types,
           .norm = LayerNorm(s / "LayerNorm", c.width, c.layer_norm_eps)}};
}

}  // namespace

EncoderStack::Layer::Layer(const Scope& s, const EncoderFields& c, const EncoderNames& names,
                           int64_t i)
    : attention{(s / names.attention).prefix(),
                Linear(s / names.attention,
                       {names.projections[0], names.projections[1], names.projections[2]},
                       dense(c, c.width, c.width)),
                Linear(s / names.attention_out, dense(c, c.width, c.width)),
                {.heads = c.heads,
                 .dropout = c.attention_dropout,
                 .observed = fmt::format("attentions.{}", i)}},
      attention_norm(s / names.attention_norm, c.width, c.layer_norm_eps),
      mlp{s.prefix(),
          Linear(s / names.in, dense(c, c.width, c.hidden)),
          Linear(s / names.out, dense(c, c.hidden, c.width)),
          {.activation = nn::activation_of(c.activation)}},
      norm(s / names.norm, c.width, c.layer_norm_eps),
      attention_site((s / names.attention_out).prefix()),
      site((s / names.out).prefix()),
      dropout(c.dropout) {}

void EncoderStack::Layer::operator()(Residual& x, const WordRows& words, const Run& run) const {
  x.leave(attention(x.enter(attention_norm), words, run),
          run.dropout(dropout, attention_site, words.rows), attention_norm);
  x.leave(mlp(x.enter(norm), words.rows, run), run.dropout(dropout, site, words.rows), norm);
}

EncoderStack::EncoderStack(const Scope& base, const EncoderFields& fields, int64_t pad,
                           const EncoderNames& names)
    : fields_(fields), embedding_(embeddings(base / "embeddings", fields, pad)) {
  for (int64_t i = 0; i < fields.layers; ++i) {
    layers_.emplace_back(base / names.layers / i, fields, names, i);
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

Linear::Options EncoderStack::square() const {
  return dense(fields_, fields_.width, fields_.width);
}

Heads::OfWords EncoderStack::pooler(const Scope& s, Activation kind) const {
  return
      [linear = Linear(s, square()), kind](const Tensor& h, const WordRows& words, const Run& run) {
        return linear(first_rows(h, *words.segments), run, kind);
      };
}

void EncoderStack::predict_words(const Scope& dense_scope, const Scope& norm_scope, Activation kind,
                                 const Scope& decoder, const Scope& bias) {
  heads_.transform = [linear = Linear(dense_scope, square()),
                      norm = LayerNorm(norm_scope, fields_.width, fields_.layer_norm_eps),
                      kind](const Tensor& rows, const Run& run) {
    return norm(linear(rows, run, kind));
  };
  const bool is_tied = fields_.tie_word_embeddings;
  Parameter& table = is_tied ? embedding_.words()
                             : (decoder / "weight")
                                   .parameter({fields_.vocab_size, fields_.width},
                                              Init::normal(fields_.initializer_range));
  const Scope at = is_tied ? bias : decoder / "bias";
  heads_.words.emplace(table, &at.parameter({fields_.vocab_size}, Init::zeros()));
}

ModelPlan EncoderStack::plan() const {
  return {.stacks = {{.layers = fields_.layers,
                      .heads = fields_.heads,
                      .width = fields_.width,
                      .hidden = fields_.hidden,
                      .keeps_before_activation = fields_.activation != "relu",
                      .word_rows = fields_.vocab_size,
                      .position_rows = fields_.max_position_embeddings,
                      .type_rows = fields_.type_vocab_size,
                      .has_embedding_norm = true}},
          .has_pooler = static_cast<bool>(heads_.pooler)};
}

}  // namespace heddle
