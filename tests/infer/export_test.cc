// Exported models: heddle's translators as Marian give the same logits and tokens; others keep
// theirs.
#include "heddle/infer/export.h"

#include <gtest/gtest.h>

#include <cmath>

#include "heddle/base/files/files.h"
#include "heddle/base/json/json.h"
#include "heddle/infer/decoding/translate.h"
#include "heddle/infer/loading/loaded_model.h"
#include "heddle/io/safetensors.h"
#include "heddle/tensor/convert.h"
#include "heddle/text/training/tokenizer_trainer.h"
#include "tests/base/temporary.h"
#include "tests/infer/small_models.h"

namespace heddle {
namespace {

using testing::config_of;
using testing::random_sentences;
using testing::shared_tokenizer;
using testing::small_config;
using testing::SmallModel;
using testing::write_small_model;

// The logits of all tokens of some pairs.
std::vector<float> logits_of(const EncoderDecoder& model, int64_t tokens) {
  const auto sources = random_sentences(5, 7, tokens, 1),
             targets = random_sentences(5, 6, tokens, 2);
  std::vector<int32_t> source, target;
  std::vector<int64_t> source_lengths, target_lengths;
  for (size_t i = 0; i < sources.size(); ++i) {
    source.insert(source.end(), sources[i].begin(), sources[i].end());
    target.insert(target.end(), targets[i].begin(), targets[i].end());
    source_lengths.push_back(static_cast<int64_t>(sources[i].size()));
    target_lengths.push_back(static_cast<int64_t>(targets[i].size()));
  }
  const Segments from = Segments::from_lengths(source_lengths),
                 to = Segments::from_lengths(target_lengths);
  const NoGrad off;
  const nn::Run run;
  const Tensor memory = model.encode(nn::TokenRows{source, &from, nullptr}, run);
  return model.output()(model.decode({target, &to, nullptr}, memory, from, run), run).to_floats();
}

// Of the largest magnitude.
double worst_error(const std::vector<float>& a, const std::vector<float>& b) {
  double error = 0, largest = 0;
  if (a.size() != b.size()) return 1;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!std::isfinite(a[i] - b[i])) return 1;
    error = std::max<double>(error, std::abs(a[i] - b[i]));
    largest = std::max<double>(largest, std::abs(a[i]));
  }
  return error / largest;
}

struct Case {
  const char* name;
  void (*change)(TransformerConfig&);
};

class MarianExport : public ::testing::TestWithParam<Case> {};

// Sums over the width have their terms in another order: 2e-6, as in f32's parity tests.
TEST_P(MarianExport, has_the_logits_of_the_model_that_it_was) {
  const TemporaryFolder folder;
  TransformerConfig config = small_config();
  GetParam().change(config);
  SmallModel m(config);
  for (auto& p : m.parameters.all()) {  // no bias or gain trivial
    for (int64_t i = 0; p->value().rank() < 2 && i < p->elements(); ++i) {
      p->value().data<float>()[i] += 0.1f * std::sin(static_cast<float>(i + p->elements()));
    }
    p->changed(true);
  }
  save_model(folder / "ours", *m.made, m.parameters);
  const Exported exported = export_model(folder / "ours", folder / "marian", {});
  EXPECT_EQ(exported.type, "marian");
  const LoadedModel marian = load_model(folder / "marian");
  EXPECT_EQ(marian.type, "marian");
  EXPECT_EQ(config_of(marian).sinusoidal_layout, "halves");
  const int64_t tokens = std::min(config.vocab_size, config.target_vocab_size());
  EXPECT_LT(worst_error(logits_of(m.model, tokens), logits_of(marian.translator(), tokens)), 2e-6);
}

INSTANTIATE_TEST_SUITE_P(
    Switches, MarianExport,
    ::testing::Values(Case{"interleaved", [](TransformerConfig&) {}},
                      Case{"halves", [](TransformerConfig& c) { c.sinusoidal_layout = "halves"; }},
                      Case{"untied", [](TransformerConfig& c) { c.tie_word_embeddings = false; }},
                      Case{"no_projection_bias",
                           [](TransformerConfig& c) { c.projection_bias = false; }},
                      Case{"output_bias_unscaled",
                           [](TransformerConfig& c) {
                             c.output_bias = true;
                             c.scale_embedding = false;
                             c.activation_function = "gelu";
                           }},
                      Case{"own_tokens",
                           [](TransformerConfig& c) {
                             c.share_encoder_decoder_embeddings = false;
                             c.decoder_vocab_size = 43;
                           }}),
    [](const auto& c) { return c.param.name; });

TEST(Export, marian_translates_the_same_sentences) {
  const TemporaryFolder folder;
  write_small_model(folder / "ours");
  export_model(folder / "ours", folder / "marian", {.format = "marian"});
  const LoadedModel ours = load_translation_model(folder / "ours"),
                    marian = load_translation_model(folder / "marian");
  const std::vector<std::string> lines = {"the old man reads", "a small dog", "der alte Mann liest",
                                          "two books! nothing"};
  for (const std::string& line : lines) {
    EXPECT_EQ(source_ids(marian, line, "", false, nullptr),
              source_ids(ours, line, "", false, nullptr));
  }
  TranslateOptions options = default_options(marian);
  EXPECT_EQ(options.search.beam.value_or(1), 1);
  options.longest_without_end = 20;
  const auto expected = translate_lines(ours, lines, {.longest_without_end = 20});
  const auto actual = translate_lines(marian, lines, options);
  for (size_t i = 0; i < lines.size(); ++i) EXPECT_EQ(actual[i].ids, expected[i].ids) << lines[i];
}

TEST(Export, exported_marian_is_exported_as_it_is) {
  const TemporaryFolder folder;
  write_small_model(folder / "ours");
  export_model(folder / "ours", folder / "1", {});
  export_model(folder / "1", folder / "2", {});
  for (const char* name : {"model.safetensors", "vocab.json", "source.spm", "target.spm",
                           "tokenizer_config.json", "generation_config.json", "config.json"}) {
    EXPECT_EQ(read_file(folder / "1" + "/" + name), read_file(folder / "2" + "/" + name)) << name;
  }
}

TEST(Export, switches_that_marian_lacks_are_refused_by_name) {
  const auto refuse = [](const char* key, const auto& change) {
    const TemporaryFolder folder;
    TransformerConfig config = small_config();
    change(config);
    const SmallModel m(config);
    save_model(folder / "ours", *m.made, m.parameters);
    expect_error(ErrorKind::data, {"config.json", key, "a marian has"},
                 [&] { export_model(folder / "ours", folder / "marian", {}); });
    EXPECT_FALSE(path_exists(folder / "marian"));
  };
  refuse("'normalize_before' is true", [](auto& c) { c.normalize_before = true; });
  refuse("'normalize_embedding' is true", [](auto& c) { c.normalize_embedding = true; });
  refuse("'position_embedding_type' is learned",
         [](auto& c) { c.position_embedding_type = "learned"; });
  refuse("'position_embedding_type' is rotary",
         [](auto& c) { c.position_embedding_type = "rotary"; });
  refuse("'sinusoidal_frequencies' is tensor2tensor",
         [](auto& c) { c.sinusoidal_frequencies = "tensor2tensor"; });
  refuse("'normalization' is rms_norm", [](auto& c) { c.normalization = "rms_norm"; });
  refuse("'attention_scoring' is dot", [](auto& c) { c.attention_scoring = "dot"; });
  refuse("'layer_norm_eps' is 0.001", [](auto& c) { c.layer_norm_eps = 1e-3; });
  refuse("'activation_function' is swiglu", [](auto& c) { c.activation_function = "swiglu"; });
}

TEST(Export, weights_are_rounded_to_the_dtype_asked_for) {
  const TemporaryFolder folder;
  write_small_model(folder / "ours");
  export_model(folder / "ours", folder / "f32", {});
  const auto exact = SafetensorsFile::open(folder / "f32" + "/model.safetensors");
  for (const auto& [dtype, name] : {std::pair{DType::bf16, "bfloat16"}, {DType::f16, "float16"}}) {
    export_model(folder / "ours", folder / name, {.dtype = dtype});
    EXPECT_EQ(Json::load(folder / name + "/config.json").get_string("torch_dtype"), name);
    const auto file = SafetensorsFile::open(folder / name + "/model.safetensors");
    for (const std::string& tensor : exact.names()) {
      EXPECT_EQ(file.info(tensor).dtype, dtype) << tensor;
      std::vector<float> values(file.info(tensor).elements()), all(values.size());
      convert_to_floats(file.info(tensor).bytes.data(), dtype, values);
      convert_to_floats(exact.info(tensor).bytes.data(), DType::f32, all);
      // Half of the last place: 8 bits of bf16, 11 of f16 with steps of 2^-24 near zero.
      const double rounding = dtype == DType::bf16 ? 0x1p-8 : 0x1p-11;
      for (size_t i = 0; i < all.size(); ++i) {
        EXPECT_NEAR(values[i], all[i], std::abs(all[i]) * rounding + 0x1p-25);
      }
    }
    EXPECT_NO_THROW(load_translation_model(folder / name));
  }
}

// A GPT-2, or a Mistral, with a tokenizer's files as runs of before have them.
Exported export_small(const TemporaryFolder& folder, const std::string& type,
                      const std::vector<std::pair<const char*, std::string>>& files) {
  nn::Parameters parameters(5);
  Json config = Json::parse(
      type == "gpt2" ? R"({"vocab_size": 312, "n_positions": 9, "n_embd": 8, "n_layer": 1,
                           "n_head": 2})"
                     : R"({"vocab_size": 312, "hidden_size": 8, "num_hidden_layers": 1,
                           "num_attention_heads": 2, "num_key_value_heads": 2,
                           "intermediate_size": 8})");
  config["model_type"] = type;
  const auto model = make_model(nn::Scope(parameters), config);
  remove_path(folder / "ours");
  remove_path(folder / "theirs");
  save_model(folder / "ours", *model, parameters);
  for (const auto& [name, bytes] : files) folder.write(std::string("ours/") + name, bytes);
  return export_model(folder / "ours", folder / "theirs", {});
}

TEST(Export, a_tokenizer_of_ours_gets_what_transformers_needs) {
  const TemporaryFolder folder;
  const Tokenizer& bpe = shared_tokenizer();
  const std::string old = R"({"tokenizer_class": "SentencePiece"})";
  const auto class_of = [&] {
    return Json::load(folder / "theirs/tokenizer_config.json").get_string("tokenizer_class");
  };
  for (const bool has_config : {false, true}) {
    std::vector<std::pair<const char*, std::string>> files = {
        {"tokenizer.model", bpe.model_bytes()}};
    if (has_config) files.emplace_back("tokenizer_config.json", old);
    EXPECT_EQ(export_small(folder, "gpt2", files).note, "");
    EXPECT_EQ(class_of(), "PreTrainedTokenizerFast");
    const std::string text = "  the old  man";
    EXPECT_EQ(Tokenizer::load(folder / "theirs/tokenizer.json").encode(text), bpe.encode(text));
    EXPECT_EQ(Tokenizer::load(folder / "theirs").fingerprint(), bpe.fingerprint());
  }
  const std::string vocabulary = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n##b\n";
  EXPECT_EQ(export_small(folder, "gpt2", {{"vocab.txt", vocabulary}}).note, "");
  EXPECT_EQ(class_of(), "BertTokenizer");
}

TEST(Export, a_tokenizer_that_heddle_cannot_read_is_copied_and_that_is_said) {
  const TemporaryFolder folder;
  const std::string note = export_small(folder, "gpt2", {{"vocab.txt", "a\nb\n"}}).note;
  EXPECT_NE(note.find("copied as it is"), note.npos) << note;
  EXPECT_NE(note.find("unk_token '[UNK]'"), note.npos) << note;
  EXPECT_EQ(read_file(folder / "theirs/vocab.txt"), "a\nb\n");
}

TEST(Export, a_tokenizer_that_transformers_cannot_read_is_named) {
  const TemporaryFolder folder;
  const std::vector<std::string> words = {"un", "deux"};
  const std::string list = word_list_tokenizer(words).model_bytes();
  const std::string note = export_small(folder, "gpt2", {{"tokenizer.model", list}}).note;
  EXPECT_NE(note.find("transformers cannot read the tokenizer"), note.npos) << note;
  const std::string vocabulary = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n##b\n";
  const std::string other = export_small(folder, "mistral", {{"vocab.txt", vocabulary}}).note;
  EXPECT_NE(other.find("by the class, BertTokenizer"), other.npos) << other;
}

TEST(Export, settings_that_transformers_has_not_are_named) {
  const TemporaryFolder folder;
  const auto note_of = [&](const std::string& config) {
    nn::Parameters parameters(5);
    const auto model = make_model(nn::Scope(parameters), Json::parse(config));
    remove_path(folder / "ours");
    remove_path(folder / "theirs");
    save_model(folder / "ours", *model, parameters);
    return export_model(folder / "ours", folder / "theirs", {}).note;
  };
  const std::string resnet =
      R"({"model_type": "resnet", "embedding_size": 8, "hidden_sizes": [8], "depths": [1],
          "layer_type": "basic")";
  EXPECT_EQ(note_of(resnet + "}"), "");
  const std::string note = note_of(resnet + R"(, "stem": "cifar", "attention_stages": [0]})");
  EXPECT_NE(note.find("stem cifar, attention_stages [0]"), note.npos) << note;
  const std::string acts = note_of(resnet + R"(, "hidden_act": "silu", "layer_act": "silu"})");
  EXPECT_NE(acts.find("layer_act silu"), acts.npos) << acts;
  EXPECT_EQ(note_of(resnet + R"(, "hidden_act": "silu"})"), "");
  const std::string detr =
      R"({"model_type": "detr", "d_model": 8, "num_queries": 2, "encoder_layers": 1,
          "decoder_layers": 1, "encoder_attention_heads": 2, "decoder_attention_heads": 2,
          "encoder_ffn_dim": 8, "decoder_ffn_dim": 8, "backbone_config": )" +
      resnet + "}";
  EXPECT_EQ(note_of(detr + R"(, "auxiliary_loss": true})"), "");
  EXPECT_EQ(Json::load(folder / "theirs/config.json").at("auxiliary_loss"), Json(true));
  const std::string losses = note_of(detr + R"(, "layer_losses": true})");
  EXPECT_NE(losses.find("auxiliary_loss false"), losses.npos) << losses;
  EXPECT_EQ(Json::load(folder / "theirs/config.json").at("auxiliary_loss"), Json(false));
}

TEST(Export, what_cannot_be_is_a_usage_error) {
  const TemporaryFolder folder;
  write_small_model(folder / "ours");
  expect_error(ErrorKind::usage, {"format is 'onnx'", "transformers, timm or marian"},
               [&] { export_model(folder / "ours", folder / "x", {.format = "onnx"}); });
  std::filesystem::create_directory_symlink(folder / "ours", folder / "link");
  for (const char* same : {"ours", "./ours/", "ours/../ours", "link"}) {
    expect_error(ErrorKind::usage, {"the model itself is there"},
                 [&] { export_model(folder / "ours", folder / same, {}); });
  }
}

TEST(Export, folder_that_holds_something_is_left_alone) {
  const TemporaryFolder folder;
  write_small_model(folder / "ours");
  make_directories(folder / "there");
  folder.write("there/config.json", "mine");
  expect_error(ErrorKind::usage, {folder / "there", "not empty", "overwrite"},
               [&] { export_model(folder / "ours", folder / "there", {}); });
  folder.write("there/thesis.tex", "mine");
  expect_error(ErrorKind::usage, {folder / "there", "thesis.tex"},
               [&] { export_model(folder / "ours", folder / "there", {.overwrite = true}); });
  EXPECT_EQ(read_file(folder / "there/config.json"), "mine");
  EXPECT_EQ(list_directory(folder / "there").size(), 2u);
}

TEST(Export, replaced_model_leaves_no_file_of_its_own) {
  const TemporaryFolder folder;
  write_small_model(folder / "ours");
  make_directories(folder / "there");
  for (const char* name : {"config.json", "vocab.txt", "model-00001-of-00002.safetensors"}) {
    folder.write(std::string("there/") + name, "old");
  }
  folder.write("there/config.json.tmp-0123456789abcdef", "left by a kill");
  export_model(folder / "ours", folder / "there", {.overwrite = true});
  export_model(folder / "ours", folder / "fresh", {});
  EXPECT_EQ(list_directory(folder / "there"), list_directory(folder / "fresh"));
}

TEST(Export, failed_export_leaves_no_folder) {
  const TemporaryFolder folder;
  TransformerConfig config = small_config();
  config.normalize_before = true;  // which a marian is not
  SmallModel m(config);
  save_model(folder / "ours", *m.made, m.parameters);
  EXPECT_ANY_THROW(export_model(folder / "ours", folder / "marian", {}));
  EXPECT_FALSE(path_exists(folder / "marian"));
}

}  // namespace
}  // namespace heddle
