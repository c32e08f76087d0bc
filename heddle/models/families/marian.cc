// Marian's translators (OPUS-MT) as Hugging Face keeps them: a Transformer under other names, there
// and back. Source: Junczys-Dowmunt et al. 2018, "Marian: Fast Neural Machine Translation in C++";
// transformers 5.23, models/marian.
#include <algorithm>
#include <map>

#include "heddle/models/families/bart_stack.h"
#include "heddle/models/registry.h"

namespace heddle {
namespace {

// Keys that both have, under one name and with one meaning.
constexpr std::string_view kShared =
    "vocab_size d_model encoder_layers decoder_layers encoder_attention_heads "
    "decoder_attention_heads encoder_ffn_dim decoder_ffn_dim activation_function dropout "
    "attention_dropout activation_dropout max_position_embeddings scale_embedding "
    "share_encoder_decoder_embeddings tie_word_embeddings init_std pad_token_id bos_token_id "
    "eos_token_id decoder_start_token_id";

constexpr double kEps = 1e-5;  // PyTorch's, which the config cannot change

// Its fields; they leave open what Marian has one way of.
struct MarianConfig : BartFields {
  std::optional<int64_t> target_vocab;

  MarianConfig() {
    vocab_size = 58101;
    pad_token_id = decoder_start_token_id = 58100;
    eos_token_id = bos_token_id = 0;
    sinusoidal_layout = "halves";
    layer_norm_eps = kEps;
  }

  template <class V>
  void fields(V& v) {
    const auto shared = [&](std::string_view key, auto& member, const char* help,
                            FieldRule rule = {}) {
      if (!is_listed(key, kShared)) return;
      if (key == "activation_function") rule = one_of(nn::activation_names());
      v(key.data(), member, help, std::move(rule));
    };
    TransformerConfig::fields(shared);
    v("decoder_vocab_size", target_vocab, "tokens of the target; none: vocab_size",
      between(1, kMostVocabulary));
  }

  // Special ids may be beyond the vocabulary.
  void check(const std::string& source) const {
    const int64_t target = target_vocab.value_or(vocab_size);
    heddle::check(
        target == vocab_size || !share_encoder_decoder_embeddings, ErrorKind::data,
        "{}: decoder_vocab_size is {} but vocab_size {}, and share_encoder_decoder_embeddings "
        "makes them one table",
        source, target, vocab_size);
    transformer().check_sizes(source);
  }

  // The heddle_transformer that computes the same.
  TransformerConfig transformer() const {
    TransformerConfig c = *this;
    c.embedding_dropout = dropout;
    const int64_t target = target_vocab.value_or(vocab_size);
    c.decoder_vocab_size = target == vocab_size ? 0 : target;
    return c;
  }
};

}  // namespace

class Marian final : public Transformer {
 public:
  using Config = MarianConfig;
  static HubFamily family() {
    return {.heads = {{Head::target_token, "MarianMTModel"}, {Head::target_token, "MarianModel"}},
            .aliases = bart_aliases(),
            .passed_over = {{"normalize_before", false},
                            {"normalize_embedding", false},
                            {"add_final_layer_norm", false}}};
  }
  Marian(const Scope& s, const Config& c, const HubConfig& hub)
      : Transformer(s, c.transformer(), hub) {}

  nn::TensorNames names() const override {
    return names_of_tables(transformer_config(), "embed_positions.weight");
  }
};

template std::unique_ptr<ModelConfig> new_config<Marian>();

namespace {

// Errors: data, by name, for what Marian cannot be.
void check_exportable(const TransformerConfig& c, const std::string& source) {
  const auto need = [&](const char* key, const auto& value, const auto& needed) {
    check(value == needed, ErrorKind::data,
          "{}: '{}' is {}; a marian has {} only, so transformers has no model that computes the "
          "same",
          source, key, value, needed);
  };
  need("normalize_before", c.normalize_before, false);
  need("normalize_embedding", c.normalize_embedding, false);
  need("normalization", c.normalization, std::string("layer_norm"));
  need("attention_scoring", c.attention_scoring, std::string("scaled_dot"));
  need("position_embedding_type", c.position_embedding_type, std::string("sinusoidal"));
  need("sinusoidal_frequencies", c.sinusoidal_frequencies, std::string("paper"));
  need("layer_norm_eps", c.layer_norm_eps, kEps);
  check(c.activation_function != "swiglu", ErrorKind::data,
        "{}: 'activation_function' is swiglu; a marian has plain feed-forward layers only, so "
        "transformers has no model that computes the same",
        source);
}

// Old column of each new one: the even ones, then the odd ones.
std::vector<int64_t> columns_of_halves(const TransformerConfig& c) {
  std::vector<int64_t> from;
  if (c.sinusoidal_layout == "halves") return from;
  for (const int64_t first : {0, 1}) {
    for (int64_t i = first; i < c.d_model; i += 2) from.push_back(i);
  }
  return from;
}

// Which axis of a tensor is the residual stream: what reads from it has it last, what adds to it
// (and its bias) first. -1: none.
int stream_axis(const std::string& name, int rank) {
  const auto is_in = [&](const char* part) { return name.find(part) != name.npos; };
  if (name == "final_logits_bias") return -1;
  if (is_in("out_proj.") || is_in("fc2.")) return 0;
  if (rank == 2) return 1;
  return is_in("layer_norm.") ? 0 : -1;  // biases of q, k, v and fc1 are inside a layer
}

// to = from with the rows (axis 0) or columns (1) that `order` names; as they are, where axis is
// -1.
void copy_in_order(const float* from, const Shape& shape, int axis,
                   const std::vector<int64_t>& order, float* to) {
  const int64_t rows = shape[0], width = shape.elements() / rows;
  for (int64_t r = 0; r < rows; ++r) {
    const float* const row = from + (axis == 0 ? order[r] : r) * width;
    for (int64_t i = 0; i < width; ++i) *to++ = row[axis == 1 ? order[i] : i];
  }
}

Json marian_config_json(const TransformerConfig& c, const std::string& source) {
  check_exportable(c, source);
  Json json = Json::object();
  json["model_type"] = "marian";
  json["architectures"] = std::vector<std::string>{"MarianMTModel"};
  json["is_encoder_decoder"] = true;
  const Json fields = to_json(c);
  for (const auto& [key, value] : fields.as_object()) {
    if (is_listed(key, kShared)) json[key] = value;
  }
  json["decoder_vocab_size"] = c.target_vocab_size();
  json["num_hidden_layers"] = c.encoder_layers;
  json["static_position_embeddings"] = true;
  json["normalize_before"] = false;
  json["normalize_embedding"] = false;
  json["forced_eos_token_id"] = c.eos_token_id;
  return json;
}

}  // namespace

// Marian has sines in the first half of the width and cosines in the second; where they take turns,
// all columns of the residual stream change positions in all tensors, which changes no logit but by
// rounding: each product, sum and norm over the width has the same terms in another order.
std::unique_ptr<Model> HeddleTransformer::hub_model(const nn::Parameters& own,
                                                    nn::Parameters& theirs,
                                                    const std::string& source) const {
  const TransformerConfig& c = transformer_config();
  auto marian = read_model_config(marian_config_json(c, source), source)->make(Scope(theirs));
  std::map<std::string, float*> places;  // of all tensors; a Marian always has biases: zeros
  for (const auto& p : theirs.all()) {
    p->take(Tensor::zeros(p->shape(), DType::f32));
    const int64_t width = p->elements() / p->shape()[0];
    for (const nn::Part& part : p->parts()) {
      places[part.name] = p->value().data<float>() + part.begin * width;
    }
  }
  const std::vector<int64_t> columns = columns_of_halves(c);
  own.for_each_tensor([&](const std::string& name, const Shape& shape, const float* values) {
    const int axis = columns.empty() ? -1 : stream_axis(name, shape.rank());
    copy_in_order(values, shape, axis, columns, places.at(name));
  });
  return marian;
}

}  // namespace heddle
