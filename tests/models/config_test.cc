// config.json of either generation of keys, what it refuses by name, and what it writes.
#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

#include "heddle/models/encoder_decoder.h"
#include "heddle/models/registry.h"
#include "heddle/models/timm/timm.h"
#include "tests/base/temporary.h"

namespace heddle::testing {
namespace {

// The fields of a config, as they would be written, by key.
Json fields_of_config(const std::string& text) {
  return to_json(read_model_config(Json::parse(text), "config.json")->fields());
}

TEST(ModelConfig, both_generations_of_rotary_keys_and_aliases_read_alike) {
  const Json old = fields_of_config(
      R"({"model_type": "llama", "rope_theta": 500000.0, "torch_dtype": "bfloat16",
          "rope_scaling": {"type": "llama3", "factor": 8, "low_freq_factor": 1,
                           "high_freq_factor": 4, "original_max_position_embeddings": 8192}})");
  EXPECT_EQ(old.get_double("rope_theta"), 500000);
  EXPECT_EQ(old.get_string("rope_type"), "llama3");
  EXPECT_EQ(old.get_int("rope_original_max_position_embeddings"), 8192);
  EXPECT_EQ(fields_of_config(
                R"({"model_type": "llama", "dtype": "bfloat16",
                    "rope_parameters": {"rope_type": "llama3", "rope_theta": 500000.0, "factor": 8,
                                        "low_freq_factor": 1, "high_freq_factor": 4,
                                        "original_max_position_embeddings": 8192}})"),
            old);
  EXPECT_EQ(
      fields_of_config(R"({"model_type": "gpt2", "hidden_size": 24, "num_hidden_layers": 2})"),
      fields_of_config(R"({"model_type": "gpt2", "n_embd": 24, "n_layer": 2})"));
}

// As transformers takes them: what an object says before what stands beside it, rope_scaling before
// rope_parameters.
TEST(ModelConfig, rotary_keys_of_both_generations_have_an_order) {
  const Json inside = fields_of_config(R"({"model_type": "llama", "rope_theta": 10000.0,
      "rope_parameters": {"rope_type": "default", "rope_theta": 77.0}})");
  EXPECT_EQ(inside.get_double("rope_theta"), 77);
  const Json both = fields_of_config(R"({"model_type": "llama", "rope_theta": 50.0,
      "rope_parameters": {"rope_type": "linear", "factor": 3.0, "rope_theta": 77.0},
      "rope_scaling": {"type": "linear", "factor": 2.0}})");
  EXPECT_EQ(both.get_double("rope_theta"), 50);
  EXPECT_EQ(both.get_double("rope_factor"), 2);
  const Json beside = fields_of_config(R"({"model_type": "llama",
      "original_max_position_embeddings": 24, "rope_scaling": {"rope_type": "llama3",
      "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}})");
  EXPECT_EQ(beside.get_int("rope_original_max_position_embeddings"), 24);
  const Json twice = fields_of_config(R"({"model_type": "llama",
      "original_max_position_embeddings": 24, "rope_scaling": {"rope_type": "llama3",
      "type": "linear", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
      "original_max_position_embeddings": 16}})");
  EXPECT_EQ(twice.get_int("rope_original_max_position_embeddings"), 24);
  EXPECT_EQ(twice.get_string("rope_type"), "llama3");
  EXPECT_EQ(fields_of_config(R"({"model_type": "llama", "rope_theta": null, "rope_scaling": null})")
                .get_double("rope_theta"),
            10000);
}

TEST(ModelConfig, types_of_layers_go_before_max_window_layers_wherever_they_stand) {
  const std::string types = R"("layer_types": ["sliding_attention", "sliding_attention"])",
                    most = R"("max_window_layers": 2)",
                    rest = R"({"model_type": "qwen2", "num_hidden_layers": 2, )";
  for (const std::string& text :
       {rest + types + ", " + most + "}", rest + most + ", " + types + "}"}) {
    EXPECT_EQ(fields_of_config(text).get_int("max_window_layers"), 0) << text;
  }
  EXPECT_EQ(
      fields_of_config(rest + R"("layer_types": null, )" + most + "}").get_int("max_window_layers"),
      2);
}

TEST(ModelConfig, what_is_written_reads_back) {
  const char* texts[] = {
      R"({"model_type": "llama", "rope_parameters": {"rope_type": "linear", "rope_theta": 7.5,
          "factor": 2.5}, "architectures": ["LlamaForSequenceClassification"], "pad_token_id": 99,
          "id2label": {"1": "b", "0": "a", "2": "c"}, "bos_token_id": 70000})",
      R"({"model_type": "qwen3", "use_sliding_window": true, "sliding_window": 8,
          "layer_types": ["full_attention", "sliding_attention"]})",
      R"({"model_type": "mixtral", "sliding_window": 3, "num_experts": 4})",
      R"({"model_type": "bart", "eos_token_id": [3, 5]})",
      R"({"model_type": "llama", "eos_token_id": [3, 5]})",
      R"({"model_type": "distilbert", "architectures": ["DistilBertModel"]})"};
  for (const char* text : texts) {
    const auto config = read_model_config(Json::parse(text), "config.json");
    const auto again = read_model_config(config->json(), "again");
    EXPECT_EQ(to_json(again->fields()), to_json(config->fields())) << text;
    EXPECT_EQ(again->hub.head, config->hub.head);
    EXPECT_EQ(again->hub.labels, config->hub.labels);
    EXPECT_EQ(again->hub.pad_token_id, config->hub.pad_token_id);
    EXPECT_EQ(again->json(), config->json());
  }
}

// transformers writes null for what is not set.
TEST(ModelConfig, classes_without_names_are_numbered) {
  const auto labels = [](const std::string& rest) {
    const std::string text =
        R"({"model_type": "bert", "architectures": ["BertForSequenceClassification"], )";
    return read_model_config(Json::parse(text + rest), "config.json")->hub.labels;
  };
  const std::vector<std::string> numbered = {"LABEL_0", "LABEL_1", "LABEL_2"};
  EXPECT_EQ(labels(R"("id2label": null, "num_labels": 3})"), numbered);
  EXPECT_EQ(labels(R"("num_labels": 3, "id2label": null})"), numbered);
  EXPECT_EQ(labels(R"("num_labels": null, "id2label": {"0": "a"}})"),
            std::vector<std::string>{"a"});
}

// Of what timm's folder says twice the arguments of the checkpoint's own model win.
TEST(ModelConfig, classes_of_timm_are_those_of_its_arguments) {
  const auto classes = [](const std::string& rest) {
    const std::string text = R"({"architecture": "vit_tiny_patch16_224", )";
    const Json json = timm::family_config(Json::parse(text + rest), "config.json");
    return read_model_config(json, "config.json")->hub.labels.size();
  };
  EXPECT_EQ(classes(R"("num_classes": 7})"), 7U);
  EXPECT_EQ(classes(R"("num_classes": 7, "model_args": {"num_classes": 5}})"), 5U);
  EXPECT_EQ(classes(R"("pretrained_cfg": {"num_classes": 6}})"), 6U);
}

// Sizes are multiplied before any memory is asked for.
TEST(ModelConfig, sizes_whose_products_overflow_are_refused_by_name) {
  const std::vector<std::pair<const char*, std::vector<const char*>>> sizes = {
      {"rnn_seq2seq",
       {"vocab_size", "decoder_vocab_size", "embedding_size", "hidden_size", "encoder_hidden_size",
        "encoder_layers", "decoder_layers", "attention_size"}},
      {"rnn_lm", {"vocab_size", "embedding_size", "hidden_size", "num_layers"}},
      {"captioner",
       {"vocab_size", "embedding_size", "hidden_size", "memory_size", "decoder_layers",
        "attention_size"}},
      {"heddle_transformer",
       {"vocab_size", "decoder_vocab_size", "d_model", "encoder_layers", "decoder_layers",
        "encoder_attention_heads", "decoder_attention_heads", "encoder_ffn_dim",
        "decoder_ffn_dim"}},
      {"t5",
       {"vocab_size", "d_model", "d_kv", "d_ff", "num_layers", "num_decoder_layers", "num_heads",
        "relative_attention_num_buckets"}}};
  for (const auto& [type, keys] : sizes) {
    for (const char* key : keys) {
      SCOPED_TRACE(type);
      const Json config = Json::object({{"model_type", type}, {key, int64_t{1} << 61}});
      auto unmade = nn::Parameters::shapes_alone();
      expect_error(ErrorKind::data, {key}, [&] { make_model(nn::Scope(unmade), config); });
    }
  }
}

TEST(ModelConfig, the_greatest_sizes_have_products) {
  for (const char* type : {"rnn_seq2seq", "captioner"}) {
    Json config = Json::object(
        {{"model_type", type}, {"vocab_size", kMostVocabulary}, {"decoder_layers", kMostLayers}});
    for (const char* key : {"embedding_size", "hidden_size"}) config[key] = kMostWidth;
    auto unmade = nn::Parameters::shapes_alone();
    const auto model = make_model(nn::Scope(unmade), config);
    // The layers above the lowest alone.
    EXPECT_GT(model->as<EncoderDecoder>()->facts().multiplied,
              (kMostLayers - 1) * 8 * kMostWidth * kMostWidth);
  }
}

TEST(ModelConfig, keys_that_change_numbers_and_are_not_supported_are_refused_by_name) {
  const auto refuses = [](const std::string& text, const std::vector<std::string>& words) {
    expect_error(ErrorKind::data, words,
                 [&] { read_model_config(Json::parse(text), "config.json"); });
  };
  refuses(R"({"model_type": "bert", "position_embedding_type": "relative_key"})",
          {"config.json", "position_embedding_type", "relative_key", "absolute"});
  refuses(R"({"model_type": "mistral", "attention_bias": true})", {"attention_bias", "mistral"});
  refuses(R"({"model_type": "qwen2", "layer_types": ["full_attention", "chunked_attention"]})",
          {"layer_types", "layer 1", "chunked_attention"});
  refuses(R"({"model_type": "qwen2", "layer_types": ["sliding_attention", "full_attention"]})",
          {"layer_types", "layer 1", "sees all"});
  refuses(R"({"model_type": "llama", "sliding_window": 16})", {"sliding_window", "llama"});
  refuses(R"({"model_type": "llama", "final_logit_softcapping": 30.0})",
          {"final_logit_softcapping"});
  refuses(R"({"model_type": "llama", "rope_scaling": {"rope_type": "yarn", "factor": 2}})",
          {"rope_type", "yarn", "default, linear, llama3"});
  refuses(R"({"model_type": "llama", "rope_parameters": {"mrope_section": [1]}})",
          {"rope_parameters", "mrope_section"});
  refuses(R"({"model_type": "llama", "rope_scaling": {"type": "linear"}})",
          {"rope_scaling", "linear", "no 'factor'"});
  refuses(R"({"model_type": "llama", "rope_parameters": {"rope_type": "llama3", "factor": 8,
              "high_freq_factor": 4}})",
          {"rope_parameters", "llama3", "no 'low_freq_factor'"});
  refuses(R"({"model_type": "qwen2", "num_hidden_layers": 3, "layer_types": ["full_attention"]})",
          {"layer_types", "1 layers", "num_hidden_layers is 3"});
  refuses(R"({"model_type": "llama", "hidden_act": "xielu"})", {"hidden_act", "xielu"});
  refuses(R"({"model_type": "llama", "num_key_value_heads": 5})", {"32 heads", "5"});
  refuses(R"({"model_type": "mixtral", "num_experts_per_tok": 9})", {"num_experts_per_tok", "8"});
  refuses(R"({"model_type": "bert", "architectures": ["BertForQuestionAnswering"]})",
          {"architectures", "BertForQuestionAnswering", "BertForMaskedLM"});
  refuses(R"({"model_type": "bert", "id2label": {"0": "a", "2": "c"}})", {"id2label", "'2'"});
  refuses(R"({"model_type": "llama", "rope_parameters": {"partial_rotary_factor": 0.5}})",
          {"rope_parameters", "partial_rotary_factor", "type llama"});
  refuses(R"({"model_type": "mistral", "layer_types": ["full_attention", "sliding_attention"]})",
          {"layer_types", "mistral"});
  refuses(R"({"model_type": "qwen2", "use_sliding_window": true, "sliding_window": 0})",
          {"sliding_window", "at least 1"});
  refuses(R"({"model_type": "marian", "activation_function": "swiglu"})",
          {"activation_function", "gelu_fast, silu"});
}

// Those of which transformers 5.24 gives other numbers than without the key.
TEST(ModelConfig, is_causal_is_refused_where_it_changes_the_attention) {
  const auto reads = [](const std::string& type, const std::string& value) {
    const std::string text = R"({"model_type": ")" + type + R"(", "is_causal": )" + value + "}";
    read_model_config(Json::parse(text), "config.json");
  };
  const std::vector<std::pair<std::vector<const char*>, std::vector<const char*>>> taken = {
      {{"gpt2", "llama", "mistral", "mixtral", "qwen2", "qwen3"}, {"true"}},
      {{"bert", "roberta", "distilbert", "vit", "deit"}, {"false", "null"}},
      {{"bart", "mbart", "m2m_100", "marian", "t5"}, {}},
      {{"xlnet", "swin", "resnet"}, {"true", "false", "null"}}};
  for (const auto& [types, values] : taken) {
    for (const std::string type : types) {
      for (const std::string value : {"true", "false", "null"}) {
        SCOPED_TRACE(type + " " + value);
        if (std::ranges::count(values, value) > 0) {
          EXPECT_NO_THROW(reads(type, value));
        } else {
          expect_error(ErrorKind::data, {"config.json", "'is_causal' is " + value, type},
                       [&] { reads(type, value); });
        }
      }
    }
  }
}

// By transformers 5.24: logits and what is generated are the same.
TEST(ModelConfig, what_changes_no_number_is_passed_over) {
  const std::tuple<const char*, const char*, const char*> all[] = {
      {"llama", "", R"(, "layer_types": ["full_attention", "full_attention"])"},
      {"mistral", "", R"(, "layer_types": ["full_attention"])"},
      {"mixtral", "", R"(, "layer_types": ["full_attention"])"},
      {"qwen2", R"(, "sliding_window": null)", R"(, "sliding_window": 0)"},
      {"qwen3", R"(, "sliding_window": null)",
       R"(, "sliding_window": 0, "use_sliding_window": false)"},
      {"qwen2", "", R"(, "attention_bias": true)"},
      {"bart", R"(, "eos_token_id": 3)", R"(, "eos_token_id": [3])"},
      {"t5", R"(, "eos_token_id": 3)", R"(, "eos_token_id": [3, 5])"}};
  for (const auto& [type, plain, more] : all) {
    const std::string start = fmt::format(R"({{"model_type": "{}")", type);
    EXPECT_EQ(fields_of_config(start + more + "}"), fields_of_config(start + plain + "}")) << more;
  }
}

TEST(ModelConfig, all_ends_are_written_again) {
  for (const std::string type : {"bart", "llama", "t5"}) {
    Json config = Json::object({{"model_type", type}});
    config["eos_token_id"] = std::vector<int64_t>{3, 5};
    EXPECT_EQ(read_model_config(config, "config.json")->json().at("eos_token_id"),
              config.at("eos_token_id"));
  }
}

TEST(ModelConfig, two_names_of_one_field_that_contradict_each_other_are_refused) {
  const auto refuses = [](const std::string& text, const std::vector<std::string>& words) {
    expect_error(ErrorKind::data, words,
                 [&] { read_model_config(Json::parse(text), "config.json"); });
  };
  for (const std::string type : {"bart", "mbart", "m2m_100", "marian"}) {
    const std::string start = R"({"model_type": ")" + type + R"(", )";
    refuses(start + R"("num_hidden_layers": 3, "encoder_layers": 2})",
            {"'num_hidden_layers' is the number 3", "'encoder_layers'", "number 2"});
    refuses(start + R"("encoder_layers": 2, "num_hidden_layers": 3})", {"'num_hidden_layers'"});
    for (const char* keys :
         {R"("num_hidden_layers": 2})", R"("num_hidden_layers": 2, "encoder_layers": 2})"}) {
      EXPECT_EQ(fields_of_config(start + keys).get_int("encoder_layers"), 2) << type << keys;
    }
  }
  refuses(R"({"model_type": "gpt2", "n_head": 4, "num_attention_heads": 2})", {"'n_head'"});
}

// transformers 5.24 computes with dense_act_fn and is_gated_act.
TEST(ModelConfig, what_t5_says_twice_of_its_feed_forward_layers_must_agree) {
  const auto read = [](const std::string& rest) {
    fields_of_config(R"({"model_type": "t5", )" + rest + "}");
  };
  const auto refuses = [&](const std::string& rest, const std::vector<std::string>& words) {
    expect_error(ErrorKind::data, words, [&] { read(rest); });
  };
  refuses(R"("dense_act_fn": "silu")", {"dense_act_fn", "\"silu\"", "relu"});
  refuses(R"("is_gated_act": true)", {"is_gated_act", "relu", "false"});
  refuses(R"("feed_forward_proj": "gated-gelu", "is_gated_act": false)", {"is_gated_act", "true"});
  refuses(R"("dense_act_fn": "gelu", "feed_forward_proj": "gated-gelu")",
          {"dense_act_fn", "gated-gelu", "gelu_new"});
  read(R"("feed_forward_proj": "gated-gelu", "is_gated_act": true, "dense_act_fn": "gelu_new")");
  read(R"("is_gated_act": false, "dense_act_fn": "relu")");
  read(R"("feed_forward_proj": "gated-silu", "is_gated_act": true, "dense_act_fn": "silu")");
}

}  // namespace
}  // namespace heddle::testing
