// The decoder of LLaMA and its kin: Touvron et al. 2023, "LLaMA: Open and Efficient Foundation
// Language Models", section 2.2; grouped heads of Ainslie et al. 2023. Pre-norm blocks with RMS
// norm, rotary positions, gated feed-forward layers or a mixture of them.
#pragma once

#include <algorithm>

#include "heddle/models/family.h"
#include "heddle/models/rotary.h"
#include "heddle/nn/block.h"

namespace heddle {

/// Fields that the kin share, under Hugging Face's keys.
struct LlamaFields {
  int64_t vocab_size = 32000, hidden_size = 4096, intermediate_size = 11008;
  int64_t num_hidden_layers = 32, num_attention_heads = 32;
  std::optional<int64_t> num_key_value_heads, head_dim;
  int64_t max_position_embeddings = 2048;
  std::string hidden_act = "silu";
  double rms_norm_eps = 1e-6, initializer_range = 0.02, attention_dropout = 0;
  bool tie_word_embeddings = false;
  RotaryOptions rope;

  template <class V>
  void fields(V& v) {
    v("vocab_size", vocab_size, "tokens known to the tokenizer", between(1, kMostVocabulary));
    v("hidden_size", hidden_size, "width of the residual stream", between(1, kMostWidth));
    v("intermediate_size", intermediate_size, "width inside the feed-forward layers",
      between(1, kMostWidth));
    v("num_hidden_layers", num_hidden_layers, "number of blocks", between(1, kMostLayers));
    v("num_attention_heads", num_attention_heads, "attention heads", between(1, kMostHeads));
    v("num_key_value_heads", num_key_value_heads, "heads of keys and values; none: as many",
      between(1, kMostHeads));
    v("head_dim", head_dim, "width of a head, even; none: hidden_size / num_attention_heads",
      between(2, 65536));
    v("max_position_embeddings", max_position_embeddings, "longest sequence in tokens",
      between(1, 1 << 30));
    v("hidden_act", hidden_act, "of the gate in the feed-forward layers",
      one_of(nn::activation_names()));
    v("rms_norm_eps", rms_norm_eps, "inside the root of each norm", above(0));
    v("initializer_range", initializer_range, "deviation of the weights at the start", at_least(0));
    v("attention_dropout", attention_dropout, "dropout of the attention weights", from_below(0, 1));
    v("tie_word_embeddings", tie_word_embeddings, "token embeddings are the output projection");
    rope.fields(v);
  }
  int64_t head_width() const { return head_dim.value_or(hidden_size / num_attention_heads); }
  int64_t key_heads() const { return num_key_value_heads.value_or(num_attention_heads); }
  /// Errors: data, naming `source`, for fields that do not fit together.
  void check(const std::string& source) const {
    if (!head_dim) check_heads(hidden_size, "hidden_size", num_attention_heads, source);
    heddle::check(num_attention_heads % key_heads() == 0, ErrorKind::data,
                  "{}: {} heads are not divisible by the {} of keys and values; choose a number of "
                  "these that divides the other",
                  source, num_attention_heads, key_heads());
    heddle::check(head_width() % 2 == 0, ErrorKind::data,
                  "{}: heads are {} wide; rotary positions turn pairs, so it must be even", source,
                  head_width());
    heddle::check(rope.low_freq_factor < rope.high_freq_factor, ErrorKind::data,
                  "{}: rope's low_freq_factor {} must be below its high_freq_factor {}", source,
                  rope.low_freq_factor, rope.high_freq_factor);
  }

  /// The keys of rotary positions, each on its own: {"rope_theta", ..}, {"rope_type", ..}, .. As in
  /// transformers, rope_scaling of older files takes the place of rope_parameters, and what either
  /// says goes before the same key beside it, but for original_max_position_embeddings. Without
  /// layer_types where each is what it is without them. Errors: data for a key that is missing or
  /// not supported.
  static Json from_hub(const Json& json, const std::string& file) {
    constexpr const char* kOriginal = "original_max_position_embeddings";
    constexpr std::string_view kScaling =
        "factor low_freq_factor high_freq_factor original_max_position_embeddings";
    Json flat = Json::object();
    for (const auto& [key, value] : json.as_object(file)) {
      if (key == kOriginal || is_listed(key, "rope_scaling rope_parameters rope_theta")) continue;
      if (key == "layer_types" && see_all(value, file)) continue;
      flat[key] = value;
    }
    const auto is_there = [&](const char* key) {
      const Json* value = json.find(key);
      return value != nullptr && !value->is_null() && !(value->is_object() && value->size() == 0);
    };
    if (is_there("rope_theta")) flat["rope_theta"] = json.at("rope_theta");
    const char* const key_of_all = is_there("rope_scaling") ? "rope_scaling" : "rope_parameters";
    if (!is_there(key_of_all)) return flat;
    const std::string source = fmt::format("{}: key '{}'", file, key_of_all);
    const Json& said = json.at(key_of_all);
    for (const auto& [key, value] : said.as_object(source)) {
      if (key == "rope_theta" || is_listed(key, kScaling)) {
        flat[key == "rope_theta" ? key : "rope_" + key] = value;
      } else if (key == "rope_type" || (key == "type" && !said.contains("rope_type"))) {
        flat["rope_type"] = value;
      } else if (key != "type") {
        heddle::check(check_one_value(key, value, json.get_string("model_type", file), source),
                      ErrorKind::data, "{}: key '{}' of the rotary positions is not supported",
                      source, key);
      }
    }
    if (is_there(kOriginal)) flat["rope_original_max_position_embeddings"] = json.at(kOriginal);
    check_scaling(flat, source);
    return flat;
  }
  static bool see_all(const Json& layer_types, const std::string& source) {
    if (layer_types.is_null()) return false;
    const auto types = layer_types.as_strings(source + ": key 'layer_types'");
    return std::ranges::count(types, "full_attention") == std::ssize(types);
  }
  /// Checks that what stretches the positions says how far: transformers has no defaults.
  static void check_scaling(const Json& flat, const std::string& source) {
    const Json* type = flat.find("rope_type");
    std::vector<std::string> needed;
    if (type != nullptr && *type == Json("linear")) needed = {"factor"};
    if (type != nullptr && *type == Json("llama3")) {
      needed = {"factor", "low_freq_factor", "high_freq_factor"};
    }
    for (const std::string& key : needed) {
      heddle::check(flat.contains("rope_" + key), ErrorKind::data,
                    "{} has rope_type {}, but no '{}'; add that of the model's training", source,
                    type->dump(), key);
    }
  }
  static void to_hub(Json& json) {
    Json scaling;  // as an object of either generation
    const std::string type = json.get_string("rope_type");
    if (type != "default") {
      scaling = Json::object({{"rope_type", type}, {"factor", json.at("rope_factor")}});
    }
    if (type == "llama3") {
      scaling["low_freq_factor"] = json.at("rope_low_freq_factor");
      scaling["high_freq_factor"] = json.at("rope_high_freq_factor");
      const Json& original = json.at("rope_original_max_position_embeddings");
      scaling["original_max_position_embeddings"] =
          original.is_null() ? json.at("max_position_embeddings") : original;
    }
    for (const char* key : {"type", "factor", "low_freq_factor", "high_freq_factor",
                            "original_max_position_embeddings"}) {
      json.erase(std::string("rope_") + key);
    }
    json["rope_scaling"] = scaling;
    // transformers' Qwen divides by a null, and takes what is not there from the other sizes.
    if (json.at("head_dim").is_null()) json.erase("head_dim");
  }
};

/// The same with a window that the later layers see alone (Qwen).
struct WindowedFields : LlamaFields {
  bool use_sliding_window = false;
  std::optional<int64_t> sliding_window = 4096;
  int64_t max_window_layers = 28;

  template <class V>
  void window_fields(V& v) {
    v("use_sliding_window", use_sliding_window, "the later layers see a window alone");
    v("sliding_window", sliding_window, "positions back that a token sees there, its own too",
      between(1, 1 << 30));
    v("max_window_layers", max_window_layers, "layers, from the first, that see all",
      between(0, 1 << 30));
  }
  int64_t window() const { return use_sliding_window ? sliding_window.value_or(0) : 0; }

  /// `layer_types` of newer files says layer by layer what max_window_layers says of all, and goes
  /// before it. A window that no layer has may be of any width.
  static Json from_hub(const Json& json, const std::string& source) {
    Json flat = json;
    const Json* types = json.find("layer_types");
    if (types != nullptr && !types->is_null()) {
      const std::string where = source + ": key 'layer_types'";
      flat["max_window_layers"] = whole_layers(*types, where);
      const Json* layers = json.find("num_hidden_layers");
      const auto count = static_cast<int64_t>(types->size());
      heddle::check(layers == nullptr || *layers == Json(count), ErrorKind::data,
                    "{} has {} layers, but num_hidden_layers is {}; one is needed for each", where,
                    count, layers == nullptr ? "" : layers->dump());
    }
    flat.erase("layer_types");
    const Json *uses = json.find("use_sliding_window"), *window = json.find("sliding_window");
    const bool is_used = uses != nullptr && *uses == Json(true);
    if (!is_used && window != nullptr && window->is_number() && window->as_double() < 1) {
      flat["sliding_window"] = Json();
    }
    return LlamaFields::from_hub(flat, source);
  }
  /// Layers that see all, which are the first ones.
  static int64_t whole_layers(const Json& types, const std::string& where) {
    int64_t whole = 0, layer = 0;
    for (const std::string& type : types.as_strings(where)) {
      const bool is_whole = type == "full_attention";
      heddle::check(is_whole || type == "sliding_attention", ErrorKind::data,
                    "{}: layer {} is of {}; heddle has full_attention and sliding_attention", where,
                    layer, type);
      heddle::check(!is_whole || whole == layer, ErrorKind::data,
                    "{}: layer {} sees all behind one that sees a window; that is not supported",
                    where, layer);
      whole += is_whole ? 1 : 0;
      ++layer;
    }
    return whole;
  }
};

/// What tells the kin apart.
struct LlamaKind {
  bool attention_bias = false;  ///< of queries, keys and values
  bool output_bias = false;     ///< of attention's output
  bool mlp_bias = false;
  bool has_head_norms = false;      ///< see nn::SelfAttention::Options
  int64_t window = 0;               ///< see nn::SelfAttention::Options
  int64_t whole_layers = 0;         ///< layers, from the first, without the window
  int64_t experts = 0, chosen = 0;  ///< a mixture in place of the feed-forward layers; 0: none
};

/// The model of a family, named by its prefix: "Llama".
class LlamaStack : public LanguageModel, public WithRotary {
 public:
  static HubFamily family_of(const std::string& family, bool misreads_tokenizers = false) {
    return {.heads = {{Head::next_token, family + "ForCausalLM"},
                      {Head::none, family + "Model"},
                      {Head::sequence_classes, family + "ForSequenceClassification"},
                      {Head::token_classes, family + "ForTokenClassification"}},
            .passed_over = {{"is_causal", true}},
            .misreads_tokenizers = misreads_tokenizers};
  }

  LlamaStack(const Scope& s, const LlamaFields& c, const LlamaKind& kind, const HubConfig& hub)
      : LanguageModel(
            {c.vocab_size, c.max_position_embeddings, c.num_hidden_layers, c.hidden_size}),
        c_(c),
        embedding_((s / "model" / "embed_tokens").prefix(),
                   table(s / "model" / "embed_tokens" / "weight"), nn::Positions::none(), {}),
        norm_(rms_norm(s / "model" / "norm")) {
    const auto rope = rotary_table(c.head_width(), c.max_position_embeddings, c.rope);
    blocks_ = nn::make_layers(s / "model" / "layers", c.num_hidden_layers,
                              [&](const Scope& at, int64_t i) { return block(at, kind, i, rope); });
    const ClassOptions classes{c.hidden_size, hub.classes(), c.initializer_range, 0.1};
    if (hub.head == Head::next_token) {
      heads_.output.emplace(c.tie_word_embeddings ? embedding_.table()
                                                  : table(s / "lm_head" / "weight"));
    } else if (hub.head == Head::token_classes) {
      heads_.token_classes = classes_of_tokens(s / "score", classes);
    } else if (hub.head == Head::sequence_classes) {
      heads_.sequence_classes = classes_of_last_token(s / "score", classes, hub.pad_token_id);
    }
  }

  Facts rotary() const override { return {c_.head_width(), c_.max_position_embeddings, c_.rope}; }
  int64_t cache_width() const override { return 2 * c_.key_heads() * c_.head_width(); }

  Tensor hidden(const TokenRows& tokens, const Run& run) const override {
    return nn::run_blocks("", nn::Residual(embedding_(tokens, run), true), blocks_, &norm_, tokens,
                          run);
  }

  // Old checkpoints hold the frequencies of the rotary positions.
  nn::TensorNames names() const override {
    nn::TensorNames names{.base = "model", .unneeded = {".rotary_emb.inv_freq"}};
    if (c_.tie_word_embeddings) names.tied = {{"lm_head.weight", "model.embed_tokens.weight"}};
    if (head() != Head::next_token) names.unneeded.emplace_back("lm_head.");
    return names;
  }

 private:
  Init init() const { return Init::normal(c_.initializer_range); }
  Parameter& table(const Scope& s) const {
    return s.parameter({c_.vocab_size, c_.hidden_size}, init());
  }
  LayerNorm rms_norm(const Scope& s) const {
    return LayerNorm::rms(s, c_.hidden_size, c_.rms_norm_eps);
  }

  nn::Block block(const Scope& s, const LlamaKind& k, int64_t i,
                  const std::shared_ptr<const RopeTable>& rope) const {
    const LayerNorm input_norm = rms_norm(s / "input_layernorm");
    nn::SelfAttention self_attn = attention(s / "self_attn", k, i, rope);
    const LayerNorm norm = rms_norm(s / "post_attention_layernorm");
    return {.attention = std::move(self_attn),
            .attention_norm = input_norm,
            .mlp = feed_forward(s, k, i),
            .mlp_norm = norm};
  }

  nn::SelfAttention attention(const Scope& s, const LlamaKind& k, int64_t i,
                              const std::shared_ptr<const RopeTable>& rope) const {
    const int64_t d = c_.head_width(), q = c_.num_attention_heads * d, kv = c_.key_heads() * d;
    const auto head_norm = [&](const char* name) -> std::optional<LayerNorm> {
      if (!k.has_head_norms) return std::nullopt;
      return LayerNorm::rms(s / name, d, c_.rms_norm_eps);
    };
    return {s.prefix(),
            Linear(s, {"q_proj", "k_proj", "v_proj"}, {q, kv, kv},
                   {.in = c_.hidden_size, .bias = k.attention_bias, .init = init()}),
            Linear(s / "o_proj",
                   {.in = q, .out = c_.hidden_size, .bias = k.output_bias, .init = init()}),
            {.heads = c_.num_attention_heads,
             .key_heads = c_.key_heads(),
             .is_causal = true,
             .window = i < k.whole_layers ? 0 : k.window,
             .dropout = c_.attention_dropout,
             .query_norm = head_norm("q_norm"),
             .key_norm = head_norm("k_norm"),
             .rope = rope,
             .layer = i,
             .observed = fmt::format("attentions.{}", i)}};
  }

  std::variant<nn::FeedForward, nn::SparseExperts> feed_forward(const Scope& s, const LlamaKind& k,
                                                                int64_t i) const {
    const Activation kind = nn::activation_of(c_.hidden_act);
    const int64_t width = c_.hidden_size, hidden = c_.intermediate_size;
    if (k.experts > 0) {
      return nn::SparseExperts(s / "block_sparse_moe",
                               {.width = width,
                                .hidden = hidden,
                                .experts = k.experts,
                                .chosen = k.chosen,
                                .activation = kind,
                                .init = init(),
                                .observed = fmt::format("router_logits.{}", i)});
    }
    const Scope mlp = s / "mlp";
    return nn::FeedForward(
        mlp.prefix(),
        Linear(mlp, {"gate_proj", "up_proj"},
               {.in = width, .out = hidden, .bias = k.mlp_bias, .init = init()}),
        Linear(mlp / "down_proj", {.in = hidden, .out = width, .bias = k.mlp_bias, .init = init()}),
        {.activation = kind, .is_gated = true});
  }

  LlamaFields c_;
  nn::Embedding embedding_;
  LayerNorm norm_;
  std::vector<nn::Block> blocks_;
};

}  // namespace heddle
