// heddle info: what a model is made of.
#include <CLI/CLI.hpp>
#include <memory>

#include "heddle/base/files.h"
#include "heddle/cli/commands.h"
#include "heddle/infer/model_dir.h"

namespace heddle::cli {
namespace {

struct Flags {
  std::string model;
  bool json = false;
};

std::string part_of(const std::string& name) {
  if (name.find("embed") != std::string::npos || name.starts_with("model.shared")) {
    return "embeddings";
  }
  if (name.starts_with("model.encoder.")) return "encoder";
  if (name.starts_with("model.decoder.")) return "decoder";
  return "output";
}

struct Sizes {
  std::vector<std::pair<std::string, int64_t>> parts = {
      {"embeddings", 0}, {"encoder", 0}, {"decoder", 0}, {"output", 0}};
  int64_t total = 0, matrices = 0;  // scalars
  // Bytes: weights as they are computed with, keys and values of one word.
  int64_t weights_f32 = 0, weights_bf16 = 0, cache_f32 = 0, cache_bf16 = 0;
};

Sizes measure(const TranslationModel& model) {
  Sizes s;
  model.parameters.for_each_tensor([&](const std::string& name, const Shape& shape, const float*) {
    const int64_t n = shape.elements();
    for (auto& [part, count] : s.parts) {
      if (part == part_of(name)) count += n;
    }
    s.total += n;
    if (shape.rank() >= 2) s.matrices += n;
  });
  s.weights_f32 = 4 * s.total;
  s.weights_bf16 = 2 * s.matrices + 4 * (s.total - s.matrices);
  const int64_t word = model.config.decoder_layers * 2 * model.config.d_model;
  s.cache_f32 = 4 * word;
  s.cache_bf16 = 2 * word;
  return s;
}

std::string mebibytes(int64_t bytes) {
  return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1 << 20));
}

void print_text(const TranslationModel& model, const Sizes& s, const Tokenizer* tokenizer) {
  fmt::print("{}  ({})\n\nfields\n", model.path, kTransformerType);
  for (const FieldInfo& field : list_fields(model.config)) {
    fmt::print("  {:34} {:14} {}\n", field.key, field.default_value, field.help);
  }
  fmt::print("\nparameters\n");
  for (const auto& [part, count] : s.parts) fmt::print("  {:34} {}\n", part, count);
  fmt::print("  {:34} {}\n\nmemory\n", "total", s.total);
  fmt::print("  {:34} {} in f32, {} in bf16\n", "weights", mebibytes(s.weights_f32),
             mebibytes(s.weights_bf16));
  fmt::print("  {:34} {} bytes in f32, {} in bf16\n", "cache of a source or target token",
             s.cache_f32, s.cache_bf16);
  if (tokenizer == nullptr) {
    fmt::print("\ntokenizer\n  none\n");
  } else {
    fmt::print("\ntokenizer\n  {:34} {}\n  {:34} {}\n", "pieces", tokenizer->vocab_size(),
               "fingerprint", tokenizer->fingerprint());
  }
}

void print_json(const TranslationModel& model, const Sizes& s, const Tokenizer* tokenizer) {
  Json json = Json::object();
  json["path"] = model.path;
  json["model_type"] = kTransformerType;
  json["config"] = to_json(model.config);
  for (const auto& [part, count] : s.parts) json["parameters"][part] = count;
  json["parameters"]["total"] = s.total;
  json["bytes"]["weights_f32"] = s.weights_f32;
  json["bytes"]["weights_bf16"] = s.weights_bf16;
  json["bytes"]["cache_per_token_f32"] = s.cache_f32;
  json["bytes"]["cache_per_token_bf16"] = s.cache_bf16;
  json["tokenizer"] = Json();
  if (tokenizer != nullptr) {
    json["tokenizer"]["pieces"] = tokenizer->vocab_size();
    json["tokenizer"]["fingerprint"] = tokenizer->fingerprint();
  }
  fmt::print("{}\n", json.dump());
}

void run(const Flags& flags) {
  const std::string folder = find_model_dir(flags.model);
  const bool has_tokenizer = path_exists(join_path(folder, kTokenizerName));
  const TranslationModel model = load_translation_model(folder, {.need_tokenizer = has_tokenizer});
  const Tokenizer* tokenizer = model.tokenizer ? &*model.tokenizer : nullptr;
  (flags.json ? print_json : print_text)(model, measure(model), tokenizer);
}

}  // namespace

void add_info(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand("info", "Fields, parameters and memory of a model");
  command->add_option("model", flags->model, "a model directory, or a training run")->required();
  command->add_flag("--json", flags->json, "one line of JSON");
  command->callback([flags] { run(*flags); });
}

}  // namespace heddle::cli
