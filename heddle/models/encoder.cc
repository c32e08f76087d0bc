// Embeddings, layers, and the heads over them that the kin have in common.
#include "heddle/models/encoder.h"

namespace heddle {

namespace {

Linear::Options dense(const EncoderFields& c, int64_t in, int64_t out) {
  return {.in = in, .out = out, .init = Init::normal(c.initializer_range)};
}

// Tokens, positions and token types, summed and normed.
nn::Embedding embeddings(const Scope& s, const EncoderFields& c, int64_t pad) {
  const auto table = [&](const char* name, int64_t count, int64_t zero_row = -1) -> Parameter& {
    return (s / name / "weight")
        .parameter({count, c.width}, Init::normal(c.initializer_range, zero_row));
  };
  Parameter& tokens = table("word_embeddings", c.vocab_size, pad);
  Parameter& positions = table("position_embeddings", c.max_position_embeddings);
  Parameter* types =
      c.type_vocab_size > 0 ? &table("token_type_embeddings", c.type_vocab_size) : nullptr;
  return {s.prefix(),
          tokens,
          nn::Positions::learned(positions),
          {.dropout = c.dropout,
           .types = types,
           .norm = LayerNorm(s / "LayerNorm", c.width, c.layer_norm_eps)}};
}

nn::Block block(const Scope& s, const EncoderFields& c, const EncoderNames& names, int64_t i) {
  const Scope attention = s / names.attention, attention_out = s / names.attention_out;
  return {.attention = {attention.prefix(),
                        Linear(attention, {names.projections.begin(), names.projections.end()},
                               dense(c, c.width, c.width)),
                        Linear(attention_out, dense(c, c.width, c.width)),
                        {.heads = c.heads,
                         .dropout = c.attention_dropout,
                         .observed = fmt::format("attentions.{}", i)}},
          .attention_norm = LayerNorm(s / names.attention_norm, c.width, c.layer_norm_eps),
          .mlp = nn::FeedForward(s.prefix(), Linear(s / names.in, dense(c, c.width, c.hidden)),
                                 Linear(s / names.out, dense(c, c.hidden, c.width)),
                                 {.activation = nn::activation_of(c.activation)}),
          .mlp_norm = LayerNorm(s / names.norm, c.width, c.layer_norm_eps),
          .attention_site = attention_out.prefix(),
          .mlp_site = (s / names.out).prefix(),
          .dropout = c.dropout};
}

}  // namespace

EncoderStack::EncoderStack(const Scope& base, const EncoderFields& fields, int64_t pad,
                           const EncoderNames& names)
    : TokenModel({fields.vocab_size, fields.max_position_embeddings, fields.layers, fields.width}),
      fields_(fields),
      embedding_(embeddings(base / "embeddings", fields, pad)),
      layers_(nn::make_layers(base / names.layers, fields.layers, [&](const Scope& s, int64_t i) {
        return block(s, fields, names, i);
      })) {}

// Tokens without positions get those of their sequences as the family counts them.
Tensor EncoderStack::hidden(const TokenRows& tokens, const Run& run) const {
  std::vector<int32_t> position_ids;
  for (int64_t i = 0; i < tokens.segments->count() && tokens.position_ids.empty(); ++i) {
    const auto ids = tokens.ids.subspan(tokens.segments->begin(i), tokens.segments->length(i));
    const std::vector<int32_t> own = positions(ids);
    position_ids.insert(position_ids.end(), own.begin(), own.end());
  }
  TokenRows placed = tokens;
  if (tokens.position_ids.empty()) placed.position_ids = position_ids;
  return nn::run_blocks("", nn::Residual(embedding_(placed, run), false), layers_, nullptr, tokens,
                        run);
}

nn::TensorNames EncoderStack::names_of(const std::string& base,
                                       const std::string& predictions) const {
  nn::TensorNames names{.base = base,
                        .endings = {{".gamma", ".weight"}, {".beta", ".bias"}},
                        .unneeded = {"embeddings.position_ids"}};
  const auto pass_over = [&](const std::string& name) { names.unneeded.push_back(name); };
  if (!heads_.pooler) pass_over(base + ".pooler."), pass_over("pooler.");
  if (!heads_.output) pass_over(predictions);
  if (head() == Head::none) pass_over("classifier.");
  const std::string weight = predictions + "decoder.weight", own = predictions + "decoder.bias";
  if (heads_.output && fields_.tie_word_embeddings) {
    names.tied = {{weight, base + ".embeddings.word_embeddings.weight"},
                  {own, predictions + "bias"}};
  } else if (heads_.output) {
    names.tied = {{predictions + "bias", own}};
  }
  return names;
}

Linear::Options EncoderStack::square() const {
  return dense(fields_, fields_.width, fields_.width);
}

Heads::OfInput EncoderStack::pooler(const Scope& s, Activation kind) const {
  return [linear = Linear(s, square()), kind](const Tensor& h, const ModelInput& input,
                                              const Run& run) {
    return linear(first_rows(h, input.segments), run, kind);
  };
}

void EncoderStack::predict_tokens(const Scope& dense_scope, const Scope& norm_scope,
                                  Activation kind, const Scope& decoder, const Scope& bias) {
  heads_.transform = [linear = Linear(dense_scope, square()),
                      norm = LayerNorm(norm_scope, fields_.width, fields_.layer_norm_eps),
                      kind](const Tensor& rows, const Run& run) {
    return norm(linear(rows, run, kind));
  };
  const bool is_tied = fields_.tie_word_embeddings;
  Parameter& table = is_tied ? embedding_.table()
                             : (decoder / "weight")
                                   .parameter({fields_.vocab_size, fields_.width},
                                              Init::normal(fields_.initializer_range));
  const Scope at = is_tied ? bias : decoder / "bias";
  heads_.output.emplace(table, &at.parameter({fields_.vocab_size}, Init::zeros()));
}

}  // namespace heddle
