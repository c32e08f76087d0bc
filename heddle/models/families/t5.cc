// T5: Raffel et al. 2020, "Exploring the Limits of Transfer Learning with a Unified Text-to-Text
// Transformer": no means, biases and scale of scores, which gain a bias by how far the key stands;
// version 1.1 with gates and an output projection of its own.
#include <algorithm>
#include <cmath>

#include "heddle/io/tensor_file.h"
#include "heddle/models/family.h"
#include "heddle/models/transformer.h"
#include "heddle/nn/mlp.h"

namespace heddle {
namespace {
constexpr std::string_view kGated = "gated-";

std::string activation_of_proj(const std::string& feed_forward_proj) {
  if (feed_forward_proj == "gated-gelu") return "gelu_new";
  return feed_forward_proj.substr(feed_forward_proj.starts_with(kGated) ? kGated.size() : 0);
}

std::vector<std::string> feed_forward_names() {
  std::vector<std::string> names = nn::activation_names();
  for (size_t i = names.size(); i-- > 0;) names.push_back(std::string(kGated) + names[i]);
  return names;
}

struct T5Config : TransformerConfig {
  std::optional<int64_t> num_decoder_layers;
  std::string feed_forward_proj = "relu";
  std::optional<bool> has_own_output;  // as the tensors say

  T5Config() {
    vocab_size = 32128;
    set_sizes(6, 512, 2048, 8);
    head_width = 64;
    relative_buckets = 32, relative_distance = 128;
    normalization = "rms_norm", layer_norm_eps = 1e-6;
    attention_scoring = "dot", position_embedding_type = "none";
    normalize_before = true;
    projection_bias = mlp_bias = scale_embedding = false;
    max_position_embeddings = kAnyLength;
    init_std = 1;
    pad_token_id = decoder_start_token_id = 0, eos_token_id = 1;
  }

  template <class V>
  void fields(V& v) {
    v("vocab_size", vocab_size, "tokens of the vocabulary", between(1, kMostVocabulary));
    v("d_model", d_model, "width of the residual stream", between(1, kMostWidth));
    v("d_kv", head_width, "width of a head", between(1, kMostHeads));
    v("d_ff", encoder_ffn_dim, "width inside the feed-forward layers", between(1, kMostWidth));
    v("num_layers", encoder_layers, "blocks of the encoder", between(1, kMostLayers));
    v("num_decoder_layers", num_decoder_layers, "of the decoder; none: as many",
      between(1, kMostLayers));
    v("num_heads", encoder_attention_heads, "attention heads", between(1, kMostHeads));
    v("relative_attention_num_buckets", relative_buckets, "biases of a head",
      between(4, kMostHeads));
    v("relative_attention_max_distance", relative_distance,
      "from here on all distances share a bias", between(2, 1 << 20));
    v("feed_forward_proj", feed_forward_proj, "activation of the feed-forward layers, or of gates",
      one_of(feed_forward_names()));
    v("dropout_rate", dropout, "of all that may be dropped", from_below(0, 1));
    v("layer_norm_epsilon", layer_norm_eps, "inside the root of each norm", above(0));
    v("initializer_factor", init_std, "deviation of the embeddings at the start", at_least(0));
    v("tie_word_embeddings", tie_word_embeddings,
      "the embeddings are the output projection, over states times d_model^-0.5");
    v("pad_token_id", pad_token_id, "the padding token", at_least(0));
    v("eos_token_id", eos_token_id, "the token that ends a sequence", at_least(0));
    v("decoder_start_token_id", decoder_start_token_id, "the decoder's first token", at_least(0));
  }

  void check(const std::string& source) const {
    heddle::check(relative_distance > relative_buckets / 2, ErrorKind::data,
                  "{}: relative_attention_max_distance {} must be above half of "
                  "relative_attention_num_buckets {}",
                  source, relative_distance, relative_buckets);
  }

  // What its files say twice; transformers lets the two go before feed_forward_proj.
  static Json from_hub(const Json& json, const std::string& source) {
    Json flat = json;
    const Json* said = json.find("feed_forward_proj");
    const std::string proj = said == nullptr
                                 ? T5Config().feed_forward_proj
                                 : said->as_string(source + ": key 'feed_forward_proj'");
    const std::pair<const char*, Json> same[] = {{"dense_act_fn", activation_of_proj(proj)},
                                                 {"is_gated_act", proj.starts_with(kGated)}};
    for (const auto& [key, wanted] : same) {
      const Json* value = json.find(key);
      heddle::check(value == nullptr || *value == wanted, ErrorKind::data,
                    "{}: key '{}' is {}, but feed_forward_proj {} makes it {}; correct one of them",
                    source, key, value == nullptr ? "" : value->describe(), proj, wanted.dump());
      flat.erase(key);
    }
    return flat;
  }

  // transformers 5 ties what the file holds once, whatever the config says.
  void fit(const TensorFile& weights) {
    const StoredTensor* output = weights.find("lm_head.weight");
    const StoredTensor* shared = weights.find("shared.weight");
    has_own_output = output != nullptr &&
                     (shared == nullptr || !std::ranges::equal(output->bytes, shared->bytes));
  }

  TransformerConfig stack(const HubConfig& hub) const {
    TransformerConfig c = *this;
    c.set_sizes(encoder_layers, d_model, encoder_ffn_dim, encoder_attention_heads);
    c.decoder_layers = num_decoder_layers.value_or(encoder_layers);
    c.is_gated = feed_forward_proj.starts_with(kGated);
    c.activation_function = activation_of_proj(feed_forward_proj);
    c.embedding_dropout = c.attention_dropout = c.activation_dropout = dropout;
    c.tie_word_embeddings = !has_own_output.value_or(!tie_word_embeddings);
    const Json* scales = hub.others.find("scale_decoder_outputs");  // as transformers 5 writes it
    const bool says = scales != nullptr && !scales->is_null();
    if (says ? scales->as_bool("key 'scale_decoder_outputs'") : tie_word_embeddings)
      c.output_scale = std::pow(static_cast<double>(d_model), -0.5);
    c.bos_token_id = pad_token_id;
    return c;
  }
};

// The checkpoint's name of a Transformer's tensor.
std::string checkpoint_name(std::string name) {
  const std::string mlp = name.find("decoder") == name.npos ? ".layer.1." : ".layer.2.";
  const std::string dense = mlp + "DenseReluDense.";
  const std::pair<std::string_view, std::string> changes[] = {
      {"model.", ""},
      {".layers.", ".block."},
      {".self_attn.", ".layer.0.SelfAttention."},
      {".self_attn_layer_norm.", ".layer.0.layer_norm."},
      {".encoder_attn.", ".layer.1.EncDecAttention."},
      {".encoder_attn_layer_norm.", ".layer.1.layer_norm."},
      {".final_layer_norm.", mlp + "layer_norm."},
      {"coder.layer_norm.", "coder.final_layer_norm."},
      {"_proj.weight", ".weight"},
      {".out.weight", ".o.weight"},
      {".fc1.", dense + "wi."},
      {".gate.", dense + "wi_0."},
      {".up.", dense + "wi_1."},
      {".fc2.", dense + "wo."},
      {".down.", dense + "wo."}};
  for (const auto& [from, to] : changes) {
    if (const size_t at = name.find(from); at != name.npos) name.replace(at, from.size(), to);
  }
  return name;
}

}  // namespace

class T5 final : public Transformer {
 public:
  using Config = T5Config;
  static HubFamily family() {
    return {.heads = {{Head::target_token, "T5ForConditionalGeneration"},
                      {Head::target_token, "T5Model"}},
            .aliases = {{"hidden_size", "d_model"}, {"num_hidden_layers", "num_layers"}}};
  }
  T5(const Scope& s, const Config& c, const HubConfig& hub)
      : Transformer(s.renamed(checkpoint_name), c.stack(hub), hub) {}

  nn::TensorNames names() const override {
    const std::string shared = "shared.weight";
    nn::TensorNames names{
        .tied = {{"encoder.embed_tokens.weight", shared}, {"decoder.embed_tokens.weight", shared}},
        .unneeded = {"EncDecAttention.relative_attention_bias.weight"}};
    if (transformer_config().tie_word_embeddings) names.tied.emplace_back("lm_head.weight", shared);
    return names;
  }
};

template std::unique_ptr<ModelConfig> new_config<T5>();

}  // namespace heddle
