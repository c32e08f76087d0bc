// Models with weights of few bits: what is rounded, files and back, bad files, bits of results.
#include "heddle/infer/quantize.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>

#include "heddle/base/files/files.h"
#include "heddle/base/parallel.h"
#include "heddle/infer/export.h"
#include "heddle/infer/perplexity.h"
#include "heddle/io/safetensors.h"
#include "tests/base/temporary.h"

namespace heddle {
namespace {

constexpr const char* kGpt2 = R"({"model_type": "gpt2", "vocab_size": 100, "n_positions": 40,
    "n_embd": 64, "n_layer": 2, "n_head": 4, "initializer_range": 0.2})";
constexpr const char* kLlama = R"({"model_type": "llama", "vocab_size": 100, "hidden_size": 64,
    "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 40, "initializer_range": 0.2})";

// A folder with a model, and the folder that it is quantized into.
struct Folders {
  TemporaryFolder root;
  std::string model = root / "model", made = root / "made";

  explicit Folders(const char* config = kGpt2) {
    nn::Parameters parameters(5);
    save_model(model, *make_model(nn::Scope(parameters), Json::parse(config)), parameters);
  }
  QuantizedModel quantize(const QuantizedFormat& format) const {
    return quantize_model(model, made, {.format = format, .overwrite = true});
  }
};

std::vector<int32_t> some_ids(int64_t n) {
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < n; ++i) ids.push_back(static_cast<int32_t>(i * 37 % 100));
  return ids;
}

double nll_of(const LoadedModel& m) {
  return likelihood_of_text(m.model->need<LanguageModel>(m.path), some_ids(120), {}).nll / 119;
}

TEST(Quantize, eight_bits_predict_as_before_and_four_about_so) {
  for (const char* config : {kGpt2, kLlama}) {
    const Folders folders(config);
    const double before = nll_of(load_model(folders.model));
    for (const int64_t group : {32, 64}) {
      folders.quantize({8, group});
      EXPECT_NEAR(nll_of(load_model(folders.made)), before, 0.02 * before) << config;
      folders.quantize({4, group});
      EXPECT_NEAR(nll_of(load_model(folders.made)), before, 0.15 * before) << config;
    }
  }
}

TEST(Quantize, what_is_evaluated_is_the_model_of_the_folder_that_was_written) {
  for (const char* config : {kGpt2, kLlama}) {
    const Folders folders(config);
    double written = 0;
    quantize_model(
        folders.model, folders.made,
        {.format = {4, 32}, .after = [&](const LoadedModel& m) { written = nll_of(m); }});
    const LoadedModel loaded = load_model(folders.made);
    EXPECT_TRUE(loaded.parameters.is_quantized());
    EXPECT_EQ(nll_of(loaded), written);  // tables that are not rounded lie in the file as bf16
  }
}

// Rounded, a NaN is a number that nobody looks for any more.
TEST(Quantize, weight_that_is_not_finite_is_a_data_error_that_names_it) {
  for (const char* name : {"transformer.h.1.mlp.c_fc.weight", "transformer.ln_f.weight"}) {
    const Folders folders;
    LoadedModel m = load_model(folders.model);
    for (auto& p : m.parameters.all()) {
      if (p->name() != name) continue;
      p->value().data<float>()[3] = std::numeric_limits<float>::infinity();
      p->changed(true);
    }
    expect_error(ErrorKind::data, {"source: ", name, "not finite"}, [&] {
      quantize_weights(*m.model, m.parameters, {8, 32}, "source");
    });
  }
}

TEST(Quantize, layers_and_output_are_rounded_and_counted) {
  const Folders folders;
  const QuantizedModel made = folders.quantize({4, 32});
  EXPECT_EQ(made.counts.layers, 2 * 12 * 64 * 64);
  EXPECT_EQ(made.counts.output, 100 * 64);
  EXPECT_TRUE(made.counts.whole.empty());
  const SafetensorsFile file = SafetensorsFile::open(folders.made + "/model.safetensors");
  const StoredTensor& values = file.info("transformer.h.0.mlp.c_fc.weight");
  EXPECT_EQ(values.dtype, DType::u8);
  EXPECT_EQ(values.shape, (std::vector<int64_t>{8, 2, 512}));  // 256 rows, 64 inner, 32 x 16 bytes
  EXPECT_EQ(reinterpret_cast<uintptr_t>(values.bytes.data()) % 64, 0u);
  const StoredTensor& scales = file.info("transformer.h.0.mlp.c_fc.weight_scale");
  EXPECT_EQ(scales.dtype, DType::bf16);
  EXPECT_EQ(scales.shape, (std::vector<int64_t>{8, 2, 32}));
  EXPECT_EQ(file.info("transformer.wte.weight").dtype, DType::i8);
  EXPECT_EQ(file.info("transformer.wpe.weight").dtype, DType::bf16);
  EXPECT_EQ(file.info("transformer.h.0.ln_1.weight").dtype, DType::f32);
  const Json config = Json::load(folders.made + "/config.json").at("quantization_config");
  EXPECT_EQ(config.get_string("quant_method"), "heddle");
  EXPECT_EQ(config.get_int("bits"), 4);
  EXPECT_EQ(config.get_int("group_size"), 32);
}

TEST(Quantize, parts_of_one_product_lie_in_the_file_each_and_are_used_in_place) {
  const Folders folders(kLlama);
  folders.quantize({4, 32});
  const LoadedModel m = load_model(folders.made);
  int found = 0;
  for (const auto& p : m.parameters.all()) {
    if (!p->name().ends_with("q_proj.weight")) continue;
    ++found;
    ASSERT_NE(p->quantized(), nullptr);
    EXPECT_EQ(p->quantized()->rows().rows, 64 + 32 + 32);
  }
  EXPECT_GT(found, 0);
  const SafetensorsFile file = SafetensorsFile::open(folders.made + "/model.safetensors");
  EXPECT_EQ(file.info("model.layers.0.self_attn.k_proj.weight").shape[0], 1);
}

TEST(Quantize, a_sequence_has_the_same_bits_for_any_number_of_threads) {
  const Folders folders;
  folders.quantize({4, 32});
  const LoadedModel m = load_model(folders.made);
  const int before = num_threads();
  set_num_threads(1);
  const double one = nll_of(m);
  set_num_threads(4);
  EXPECT_EQ(nll_of(m), one);
  set_num_threads(before);
}

TEST(Quantize, matrices_that_panels_do_not_fit_stay_whole) {
  const Folders folders(R"({"model_type": "llama", "vocab_size": 100, "hidden_size": 40,
      "intermediate_size": 48, "num_hidden_layers": 1, "num_attention_heads": 2,
      "num_key_value_heads": 1, "max_position_embeddings": 40})");
  const QuantizedModel made = folders.quantize({8, 32});
  // parts of 40, 20 and 48 rows
  const std::string layer = "model.layers.0.";
  EXPECT_EQ(made.counts.whole,
            (std::vector<std::string>{
                layer + "self_attn.q_proj.weight", layer + "self_attn.k_proj.weight",
                layer + "self_attn.v_proj.weight", layer + "mlp.gate_proj.weight",
                layer + "mlp.up_proj.weight"}));
  EXPECT_TRUE(std::isfinite(nll_of(load_model(folders.made))));
}

TEST(Quantize, exported_weights_are_the_rounded_ones) {
  const Folders folders;
  folders.quantize({4, 32});
  const std::string out = folders.root / "out";
  const Exported exported = export_model(folders.made, out, {});
  EXPECT_NE(exported.note.find("quantizing"), std::string::npos) << exported.note;
  EXPECT_FALSE(Json::load(out + "/config.json").contains("quantization_config"));
  const LoadedModel rounded = load_model(folders.made), plain = load_model(out);
  EXPECT_FALSE(plain.parameters.is_quantized());
  // The same weights; activations are rounded to 8 bits with the former.
  EXPECT_NEAR(nll_of(plain), nll_of(rounded), 0.02 * nll_of(rounded));
}

TEST(Quantize, quantizing_twice_is_refused) {
  const Folders folders;
  folders.quantize({4, 32});
  const std::string again = folders.root / "again";
  expect_error(ErrorKind::data, {"quantized already"},
               [&] { quantize_model(folders.made, again, {}); });
  EXPECT_FALSE(path_exists(again));
}

TEST(Quantize, formats_of_others_are_refused) {
  const Folders folders;
  for (const QuantizedFormat& format : {QuantizedFormat{3, 32}, {4, 48}}) {
    EXPECT_THROW(folders.quantize(format), Error);
  }
  Json config = Json::load(folders.model + "/config.json");
  config["quantization_config"] = Json::parse(R"({"quant_method": "gptq", "bits": 4})");
  write_file_atomic(folders.model + "/config.json", config.dump());
  expect_error(ErrorKind::data, {"'gptq'"}, [&] { load_model(folders.model); });
}

TEST(Quantize, config_and_weights_of_two_models_are_refused) {
  const Folders folders;
  folders.quantize({4, 32});
  std::filesystem::copy_file(folders.model + "/config.json", folders.made + "/config.json",
                             std::filesystem::copy_options::overwrite_existing);
  expect_error(ErrorKind::data, {"two models"}, [&] { load_model(folders.made); });
}

// Writes the file anew with one tensor changed.
void alter(const std::string& folder, const std::string& name,
           const std::function<void(NamedTensorView&)>& change) {
  const std::string path = folder + "/model.safetensors";
  const SafetensorsFile file = SafetensorsFile::open(path);
  std::vector<NamedTensorView> views;
  for (const std::string& other : file.names()) {
    const StoredTensor& t = file.info(other);
    views.push_back({other, t.dtype, t.shape, t.bytes});
    if (other == name) change(views.back());
  }
  write_safetensors(path + ".new", views);
  std::filesystem::rename(path + ".new", path);
}

TEST(Quantize, scales_and_values_of_a_wrong_shape_are_data_errors_that_name_the_tensor) {
  const std::string name = "transformer.h.1.mlp.c_fc.weight";
  const auto expect_refused = [&](const std::string& altered, const auto& change) {
    const Folders folders;
    folders.quantize({4, 32});
    alter(folders.made, altered, change);
    expect_error(ErrorKind::data, {name}, [&] { load_model(folders.made); });
  };
  expect_refused(name + "_scale", [](NamedTensorView& t) { std::swap(t.shape[1], t.shape[2]); });
  expect_refused(name + "_scale", [](NamedTensorView& t) { t.name = "transformer.other"; });
  expect_refused(name, [](NamedTensorView& t) { t.dtype = DType::i8; });  // 8 bits, groups of 16
  expect_refused(name, [](NamedTensorView& t) { std::swap(t.shape[0], t.shape[1]); });
}

TEST(Quantize, a_file_that_was_cut_or_altered_is_a_data_error) {
  const Folders folders;
  folders.quantize({8, 32});
  const std::string path = folders.made + "/model.safetensors";
  std::string bytes = read_file(path);
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  write_file_atomic(path, bytes);
  expect_error(ErrorKind::data, {"checksum"}, [&] { load_model(folders.made); });
  write_file_atomic(path, bytes.substr(0, bytes.size() / 2));
  EXPECT_THROW(load_model(folders.made), Error);
}

}  // namespace
}  // namespace heddle
