// Reading config.json of either generation of keys, judging those that no model knows, writing it.
#include "heddle/models/config.h"

#include <algorithm>

#include "heddle/base/log.h"
#include "heddle/io/tensor_file.h"

namespace heddle {
namespace {

// Keys that Hugging Face writes beside the models' fields and that change no result here: what the
// tokens are called, other names of sizes, how tasks are trained, what its own code returns or how
// it stores; and fingerprints of tokenizers, which heddle writes.
constexpr std::string_view kHarmless =
    "_attn_implementation_autoset _flash_attn_2_enabled _name_or_path adaptive add_bias_logits "
    "auto_map backbone_kwargs bos_token_id chunk_size_feed_forward classif_dropout "
    "classifier_dropout "
    "cls_token_id decoder_layerdrop decoder_start_token_id dice_loss_coefficient "
    "directionality dtype "
    "encoder_layerdrop encoder_stride end_n_top eos_token_id ext_len extra_pos_embeddings "
    "finetuning_task "
    "gradient_checkpointing hidden_size init init_range is_encoder_decoder label2id "
    "mask_loss_coefficient mask_token_id model_type n_ctx n_positions num_attention_heads "
    "num_hidden_layers out_features out_indices output_attentions output_hidden_states output_past "
    "output_router_logits pooler_fc_size "
    "pooler_num_attention_heads pooler_num_fc_layers pooler_size_per_head pooler_type "
    "predict_special_tokens pretrained_cfg pretraining_tp problem_type qa_dropout "
    "reorder_and_upcast_attn "
    "return_dict router_jitter_noise sample_softmax scale_decoder_outputs sep_token_id "
    "sinusoidal_pos_embds stage_names start_n_top static_position_embeddings summary_activation "
    "summary_first_dropout summary_proj_to_labels summary_type summary_use_proj target_tokenizer "
    "task_specific_params tgt_len tie_projs tie_word_embeddings tokenizer tokenizer_class "
    "torch_dtype torchscript trainer_compatible transformers_version unk_token_id use_bfloat16 "
    "use_cache use_mems_train use_pretrained_backbone";

// Keys that change numbers, of which a model without a field of that name has one value only: what
// does nothing; null always is.
const Json& one_values() {
  static const Json all = Json::parse(R"({
      "add_cross_attention": [false], "alibi": [false], "attention_bias": [false],
      "attention_chunk_size": [], "attn_logit_softcapping": [], "clip_qkv": [],
      "cross_attention_hidden_size": [], "final_logit_softcapping": [], "is_decoder": [false],
      "layer_types": [], "logit_softcapping": [], "mlp_bias": [false],
      "partial_rotary_factor": [1, 1.0], "position_embedding_type": ["absolute"],
      "pruned_heads": [{}], "qk_layernorm": [false], "rope_scaling": [],
      "sliding_window": [], "tie_encoder_decoder": [false], "use_qk_norm": [false],
      "use_sliding_window": [false]})");
  return all;
}

// Errors: data, naming `source` and key, if the value is neither null nor one of those.
void check_among(const std::string& key, const Json& value, const Json::Array& values,
                 const std::string& type, const std::string& source) {
  std::vector<std::string> texts;
  for (const Json& x : values) texts.push_back(x.dump());
  texts.emplace_back("null");
  check(value.is_null() || std::find(values.begin(), values.end(), value) != values.end(),
        ErrorKind::data, "{}: key '{}' is {}; in a model of type {} heddle supports only {}",
        source, key, value.describe(), type, fmt::join(texts, " or "));
}

// transformers turns the attention of most families by this key, in which it takes null for false;
// `same`: the value, if there is one, that leaves them as they are without it; null: any. Errors:
// data, naming `source`, for another.
void check_causal(const Json& value, const Json* same, const std::string& type,
                  const std::string& source) {
  const bool is_same =
      same != nullptr && (same->is_null() || *same == (value.is_null() ? Json(false) : value));
  check(is_same, ErrorKind::data,
        "{}: key 'is_causal' is {}; heddle has the attention of a model of type {} only as it is "
        "{}: remove the key if the model was trained so",
        source, value.describe(), type,
        same == nullptr ? "without it" : fmt::format("with {} or without it", same->dump()));
}

// Weights of few bits as another program rounds them are none that heddle can read.
void check_quantization(const Json& value, const std::string& source) {
  const std::string what = fmt::format("{}: key '{}'", source, kQuantizationKey);
  const std::string method = value.get_string("quant_method", what);
  check(
      method == kQuantizationMethod, ErrorKind::data,
      "{} has quant_method '{}'; heddle reads weights that it has quantized itself ('{}') or that "
      "are not quantized: take the model that this one was made of, and heddle quantize",
      what, method, kQuantizationMethod);
}

// The names of id2label in the order of their numbers.
std::vector<std::string> read_labels(const Json& json, const std::string& source) {
  const auto& members = json.as_object(source + ": key 'id2label'");
  std::vector<std::string> labels(members.size());
  for (const auto& [id, label] : members) {
    const bool is_number =
        !id.empty() && id.size() <= 9 &&
        std::all_of(id.begin(), id.end(), [](char c) { return c >= '0' && c <= '9'; });
    const size_t i = is_number ? std::stoul(id) : members.size();
    check(i < labels.size(), ErrorKind::data,
          "{}: key 'id2label' has a label for '{}'; its {} labels must be those of 0 to {}", source,
          id, labels.size(), labels.size() - 1);
    labels[i] = label.as_string(source + ": key 'id2label'");
  }
  return labels;
}

std::vector<std::string> numbered_labels(int64_t count, const std::string& source) {
  check(count >= 1 && count <= 1'000'000, ErrorKind::data,
        "{}: num_labels is {}; it must be at least 1 and at most a million", source, count);
  std::vector<std::string> labels;
  for (int64_t i = 0; i < count; ++i) labels.push_back(fmt::format("LABEL_{}", i));
  return labels;
}

constexpr const char* kEnd = "eos_token_id";  // or several

// What tie_word_embeddings makes one tensor, in any family whose files may hold both: what predicts
// tokens, and where else it may stand.
constexpr std::pair<const char*, const char*> kTied[] = {
    {"lm_head.weight", "transformer.wte.weight"},
    {"lm_head.weight", "wte.weight"},
    {"lm_head.weight", "model.embed_tokens.weight"},
    {"lm_head.weight", "model.shared.weight"},
    {"lm_head.weight", "model.decoder.embed_tokens.weight"},
    {"lm_head.decoder.weight", "roberta.embeddings.word_embeddings.weight"},
    {"lm_head.decoder.bias", "lm_head.bias"},
    {"cls.predictions.decoder.weight", "bert.embeddings.word_embeddings.weight"},
    {"cls.predictions.decoder.bias", "cls.predictions.bias"},
    {"vocab_projector.weight", "distilbert.embeddings.word_embeddings.weight"},
    {"lm_loss.weight", "transformer.word_embedding.weight"}};

bool are_equal(const StoredTensor& a, const StoredTensor& b) {
  if (a.dtype != b.dtype || a.shape != b.shape) return false;
  return a.bytes.data() == b.bytes.data() || std::ranges::equal(a.bytes, b.bytes);
}

// The tensor that predicts tokens and equals none of those that it is to be one with; "" if there
// is none.
std::string own_output(const TensorFile& weights) {
  for (const auto& [output, tied] : kTied) {
    const StoredTensor* own = weights.find(output);
    bool has_other = false, is_one = own == nullptr;
    for (const auto& [name, other] : kTied) {
      const StoredTensor* found = std::string_view(name) == output ? weights.find(other) : nullptr;
      if (is_one || found == nullptr) continue;
      has_other = true;
      is_one = are_equal(*own, *found);
    }
    if (has_other && !is_one) return output;
  }
  return "";
}

bool predicts_tokens(Head head) {
  return head >= Head::next_token && head <= Head::pretraining && head != Head::next_sentence;
}

bool has_field(const std::vector<Field>& fields, const std::string& key) {
  return std::any_of(fields.begin(), fields.end(), [&](const Field& f) { return f.key == key; });
}

}  // namespace

bool is_listed(std::string_view key, std::string_view keys) {
  const std::string all = fmt::format(" {} ", keys);
  return key.find(' ') == key.npos && all.find(fmt::format(" {} ", key)) != all.npos;
}

bool check_one_value(const std::string& key, const Json& value, const std::string& type,
                     const std::string& source) {
  const Json* one = one_values().find(key);
  if (one != nullptr) check_among(key, value, one->as_array(), type, source);
  return one != nullptr;
}

bool is_generation_key(const std::string& key) {
  return is_listed(
      key,
      "bad_words_ids decoder_start_token_id diversity_penalty do_sample early_stopping "
      "encoder_no_repeat_ngram_size encoder_repetition_penalty exponential_decay_length_penalty "
      "forced_bos_token_id forced_eos_token_id length_penalty max_length max_new_tokens "
      "min_length min_new_tokens min_p no_repeat_ngram_size num_beam_groups num_beams "
      "num_return_sequences output_scores remove_invalid_values renormalize_logits "
      "repetition_penalty "
      "return_dict_in_generate suppress_tokens begin_suppress_tokens temperature top_k top_p "
      "typical_p");
}

// Fields are read at last, when aliases have become their names.
void ModelConfig::read(const Json& given, const std::string& source) {
  const std::vector<Field> own = fields();
  hub = HubConfig();
  const HubFamily known = family();
  const auto first = [](const auto& pair) -> const std::string& { return pair.first; };
  hub.head = known.heads[0].head;
  Json flat = Json::object();
  const Json json = from_hub(given, source);
  for (const auto& [key, value] : json.as_object(source)) {
    const auto alias = std::ranges::find(known.aliases, key, first);
    if (alias != known.aliases.end()) {
      const Json* const own_name = json.find(alias->second);
      heddle::check(own_name == nullptr || *own_name == value, ErrorKind::data,
                    "{}: key '{}' is {}, but '{}', which is the same, is {}; remove the wrong one",
                    source, key, value.describe(), alias->second,
                    own_name == nullptr ? "" : own_name->describe());
      flat[alias->second] = value;
    } else if (key == "architectures") {
      read_head(value, source);
    } else if (key == "id2label") {
      if (!value.is_null()) hub.labels = read_labels(value, source);
    } else if (key == "num_labels" || key == "_num_labels") {
      const std::string what = fmt::format("{}: key '{}'", source, key);
      const Json* const names = json.find("id2label");
      const bool has_names = names != nullptr && !names->is_null();
      if (!has_names && !value.is_null()) {
        hub.labels = numbered_labels(value.as_int(what), source);
      }
    } else if (key == kQuantizationKey && !value.is_null()) {
      check_quantization(value, source);
      hub.others[key] = value;
    } else if (value.is_null() && key.ends_with("_token_id") && has_field(own, key)) {
      continue;  // transformers 5 writes what is not set
    } else if (key == kEnd && has_field(own, key) && value.is_array() && value.size() > 0 &&
               !known.is_own_format) {
      flat[key] = value.as_array()[0];  // the others end what is searched for, see read_search()
      hub.others[key] = value;
    } else if (key == "pad_token_id" && !has_field(own, key)) {
      if (!value.is_null()) hub.pad_token_id = value.as_int(source + ": key 'pad_token_id'");
    } else {
      flat[key] = value;
    }
  }
  std::vector<std::string> strange;
  for (const std::string& key : from_json(own, flat, source)) {
    const Json& value = flat.at(key);
    const auto one = std::ranges::find(known.passed_over, key, first);
    const Json* const passed = one == known.passed_over.end() ? nullptr : &one->second;
    if (key == "is_causal" && !known.is_own_format) {
      check_causal(value, passed, type, source);
    } else if (passed != nullptr) {
      if (!passed->is_null()) check_among(key, value, {*passed}, type, source);
    } else if (!check_one_value(key, value, type, source) && !is_listed(key, kHarmless) &&
               !is_generation_key(key)) {
      strange.push_back(key);
    }
    hub.others[key] = value;
  }
  heddle::check(!has_labels(hub.head) || !hub.labels.empty(), ErrorKind::data,
                "{}: key 'id2label' names no class; a model of classes needs one", source);
  if (!strange.empty()) report_unknown(strange, source);
  check(source);
}

void ModelConfig::report_unknown(const std::vector<std::string>& keys,
                                 const std::string& source) const {
  if (!is_own_format()) {
    log_warning("{}: heddle does not know and passes over {}", source, fmt::join(keys, ", "));
    return;
  }
  std::vector<std::string> known;
  for (const Field& field : fields()) known.push_back(field.key);
  fail(ErrorKind::data,
       "{}: unknown key '{}'{}; remove it, or use the version of heddle that wrote it", source,
       keys[0], did_you_mean(keys[0], known));
}

void ModelConfig::fit(const TensorFile& weights) {
  hub.has_pooler = std::ranges::any_of(weights.names(), [](const std::string& name) {
    return name.find("pooler.") != std::string::npos;
  });
  for (const Field& field : fields()) {
    if (field.key != "tie_word_embeddings" || !predicts_tokens(hub.head)) continue;
    bool& is_tied = *std::get<bool*>(field.member);
    const std::string own = is_tied ? own_output(weights) : "";
    if (own.empty()) continue;
    log_warning(
        "{}: '{}' is another table than the embeddings, so it is used, as transformers 5 does, "
        "though config.json ties the two (tie_word_embeddings)",
        weights.path(), own);
    is_tied = false;
  }
  fit_own(weights);
}

void ModelConfig::read_head(const Json& architectures, const std::string& source) {
  if (architectures.is_null()) return;
  const auto names = architectures.as_strings(source + ": key 'architectures'");
  std::vector<std::string> known;
  for (const HeadClass& c : heads()) {
    known.push_back(c.name);
    if (std::find(names.begin(), names.end(), c.name) == names.end()) continue;
    hub.head = c.head;
    return;
  }
  heddle::check(names.empty(), ErrorKind::data,
                "{}: key 'architectures' is {}; of type {} heddle has {}", source,
                fmt::join(names, ", "), type, fmt::join(known, ", "));
}

Json ModelConfig::json() const {
  Json out = Json::object();
  out["model_type"] = type;
  for (const HeadClass& c : heads()) {
    if (c.head != hub.head) continue;
    out["architectures"] = std::vector<std::string>{c.name};
    break;
  }
  if (has_target(hub.head)) out["is_encoder_decoder"] = true;
  const Json own = to_json(fields());
  for (const auto& [key, value] : own.as_object()) out[key] = value;
  to_hub(out);
  if (has_labels(hub.head)) {
    for (size_t i = 0; i < hub.labels.size(); ++i) {
      out["id2label"][std::to_string(i)] = hub.labels[i];
      out["label2id"][hub.labels[i]] = i;
    }
  }
  if (hub.pad_token_id) out["pad_token_id"] = *hub.pad_token_id;
  for (const auto& [key, value] : hub.others.as_object()) {
    const Json* const there = out.find(key);
    const bool is_more = there != nullptr && key == kEnd && value.is_array();
    if (there == nullptr || (is_more && value.as_array()[0] == *there)) out[key] = value;
  }
  for (const char* key : {"dtype", "_name_or_path", "transformers_version"}) out.erase(key);
  out["torch_dtype"] = "float32";  // of what is written
  return out;
}

bool ModelConfig::reads_images() const {
  return std::ranges::any_of(heads(),
                             [](const HeadClass& c) { return heddle::reads_images(c.head); });
}

}  // namespace heddle
