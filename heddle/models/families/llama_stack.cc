// Pre-norm blocks with RMS norm, rotary positions, gated feed-forward layers or a mixture of them.
#include "heddle/models/families/llama_stack.h"

namespace heddle {

void LlamaFields::check(const std::string& source) const {
  if (!head_dim) check_heads(hidden_size, "hidden_size", num_attention_heads, source);
  heddle::check(num_attention_heads % key_heads() == 0, ErrorKind::data,
                "{}: {} heads are not divisible by the {} of keys and values; choose a number of "
                "these that divides the other",
                source, num_attention_heads, key_heads());
  heddle::check(head_width() % 2 == 0, ErrorKind::data,
                "{}: heads are {} wide; rotary positions turn pairs, so it must be even", source,
                head_width());
  heddle::check(rope.rope_low_freq_factor < rope.rope_high_freq_factor, ErrorKind::data,
                "{}: rope's low_freq_factor {} must be below its high_freq_factor {}", source,
                rope.rope_low_freq_factor, rope.rope_high_freq_factor);
}

namespace {

Linear::Options dense(const LlamaFields& c, int64_t in, int64_t out, bool bias) {
  return {.in = in, .out = out, .bias = bias, .init = Init::normal(c.initializer_range)};
}

std::shared_ptr<const RopeTable> table_of(const LlamaFields& c) {
  const RopeConfig& r = c.rope;
  return nn::rotary_table(c.head_width(), c.max_position_embeddings,
                          {.theta = r.rope_theta,
                           .type = r.rope_type,
                           .factor = r.rope_factor,
                           .low_freq_factor = r.rope_low_freq_factor,
                           .high_freq_factor = r.rope_high_freq_factor,
                           .original_positions = r.rope_original_max_position_embeddings.value_or(
                               c.max_position_embeddings)});
}

nn::SelfAttention attention(const Scope& s, const LlamaFields& c, const LlamaKind& k, int64_t layer,
                            std::shared_ptr<const RopeTable> rope) {
  const int64_t q = c.num_attention_heads * c.head_width(), kv = c.key_heads() * c.head_width();
  const auto head_norm = [&](const char* name) -> std::optional<LayerNorm> {
    if (!k.has_head_norms) return std::nullopt;
    return LayerNorm::rms(s / name, c.head_width(), c.rms_norm_eps);
  };
  return {s.prefix(),
          Linear(s, {"q_proj", "k_proj", "v_proj"}, {q, kv, kv},
                 dense(c, c.hidden_size, 0, k.attention_bias)),
          Linear(s / "o_proj", dense(c, q, c.hidden_size, k.output_bias)),
          {.heads = c.num_attention_heads,
           .key_heads = c.key_heads(),
           .is_causal = true,
           .window = layer < k.whole_layers ? 0 : k.window,
           .dropout = c.attention_dropout,
           .query_norm = head_norm("q_norm"),
           .key_norm = head_norm("k_norm"),
           .rope = std::move(rope),
           .layer = layer,
           .observed = fmt::format("attentions.{}", layer)}};
}

nn::FeedForward feed_forward(const Scope& s, const LlamaFields& c, const LlamaKind& k) {
  return {
      s.prefix(),
      Linear(s, {"gate_proj", "up_proj"}, dense(c, c.hidden_size, c.intermediate_size, k.mlp_bias)),
      Linear(s / "down_proj", dense(c, c.intermediate_size, c.hidden_size, k.mlp_bias)),
      {.activation = nn::activation_of(c.hidden_act), .is_gated = true}};
}

}  // namespace

struct LlamaStack::Block {
  LayerNorm input_norm;
  nn::SelfAttention attn;
  LayerNorm post_attention_norm;
  std::optional<nn::FeedForward> mlp;
  std::optional<nn::SparseExperts> experts;

  Block(const Scope& s, const LlamaFields& c, const LlamaKind& k, int64_t layer,
        const std::shared_ptr<const RopeTable>& rope)
      : input_norm(LayerNorm::rms(s / "input_layernorm", c.hidden_size, c.rms_norm_eps)),
        attn(attention(s / "self_attn", c, k, layer, rope)),
        post_attention_norm(
            LayerNorm::rms(s / "post_attention_layernorm", c.hidden_size, c.rms_norm_eps)) {
    if (k.experts == 0) {
      mlp.emplace(feed_forward(s / "mlp", c, k));
    } else {
      experts.emplace(
          s / "block_sparse_moe",
          nn::SparseExperts::Options{.width = c.hidden_size,
                                     .hidden = c.intermediate_size,
                                     .experts = k.experts,
                                     .chosen = k.chosen,
                                     .activation = nn::activation_of(c.hidden_act),
                                     .init = Init::normal(c.initializer_range),
                                     .observed = fmt::format("router_logits.{}", layer)});
    }
  }

  void operator()(Residual& x, const TokenRows& tokens, const Run& run) const {
    x.leave(attn(x.enter(input_norm), tokens, run), {}, input_norm);
    const Tensor y = x.enter(post_attention_norm);
    x.leave(mlp ? (*mlp)(y, tokens.rows, run) : (*experts)(y, run), {}, post_attention_norm);
  }
};

std::vector<HeadClass> LlamaStack::heads_of(const std::string& family) {
  return {{Head::next_token, family + "ForCausalLM"},
          {Head::none, family + "Model"},
          {Head::sequence_classes, family + "ForSequenceClassification"},
          {Head::token_classes, family + "ForTokenClassification"}};
}

LlamaStack::LlamaStack(const Scope& s, const LlamaFields& c, const LlamaKind& kind,
                       const HubConfig& hub)
    : LanguageModel({c.vocab_size, c.max_position_embeddings, c.num_hidden_layers, c.hidden_size}),
      c_(c),
      kind_(kind),
      embedding_((s / "model" / "embed_tokens").prefix(),
                 (s / "model" / "embed_tokens" / "weight")
                     .parameter({c.vocab_size, c.hidden_size}, Init::normal(c.initializer_range)),
                 nn::Positions::none(), {}),
      norm_(LayerNorm::rms(s / "model" / "norm", c.hidden_size, c.rms_norm_eps)) {
  const std::shared_ptr<const RopeTable> rope = table_of(c);
  for (int64_t i = 0; i < c.num_hidden_layers; ++i) {
    blocks_.push_back(std::make_shared<const Block>(s / "model" / "layers" / i, c, kind, i, rope));
  }
  const ClassOptions classes{c.hidden_size, hub.classes(), c.initializer_range, 0.1};
  if (hub.head == Head::next_token) {
    Parameter& table = c.tie_word_embeddings ? embedding_.table()
                                             : (s / "lm_head" / "weight")
                                                   .parameter({c.vocab_size, c.hidden_size},
                                                              Init::normal(c.initializer_range));
    heads_.output.emplace(table);
  } else if (hub.head == Head::token_classes) {
    heads_.token_classes = classes_of_tokens(s / "score", classes);
  } else if (hub.head == Head::sequence_classes) {
    heads_.sequence_classes = classes_of_last_token(s / "score", classes, hub.pad_token_id);
  }
}

Tensor LlamaStack::hidden(const TokenRows& tokens, const Run& run) const {
  return nn::run_stack(
      "", Residual(embedding_(tokens, run), true), blocks_.size(), &norm_, run,
      [this, tokens, run](size_t i, Residual& x, auto) { (*blocks_[i])(x, tokens, run); });
}

// Old checkpoints hold the frequencies of the rotary positions.
nn::TensorNames LlamaStack::names() const {
  nn::TensorNames names{.base = "model", .unneeded = {".rotary_emb.inv_freq"}};
  if (c_.tie_word_embeddings) names.tied = {{"lm_head.weight", "model.embed_tokens.weight"}};
  if (head() != Head::next_token) names.unneeded.emplace_back("lm_head.");
  return names;
}

}  // namespace heddle
