// heddle info: what a model is made of.
#include <algorithm>
#include <functional>
#include <memory>
#include <optional>

#include "heddle/base/files/files.h"
#include "heddle/base/progress.h"
#include "heddle/cli/commands.h"
#include "heddle/infer/loading/model_dir.h"
#include "heddle/infer/loading/stack_model.h"
#include "heddle/text/tokenizer_folder.h"

namespace heddle::cli {
namespace {

struct Flags {
  std::string model;
  bool json = false;
};

// What is told of a model of any kind.
struct Described {
  std::string path, type;
  std::vector<Field> fields;
  const nn::Parameters* parameters = nullptr;
  std::function<std::string(const std::string& tensor)> part_of;
  int64_t cache_token = 0;  // scalars that decoding keeps of a token
  const Tokenizer* tokenizer = nullptr;
};

std::string translator_part(const std::string& name) {
  if (name.find("embed") != std::string::npos || name.starts_with("model.shared")) {
    return "embeddings";
  }
  if (name.starts_with("model.encoder.")) return "encoder";
  if (name.starts_with("model.decoder.")) return "decoder";
  return "output";
}

Described describe(const TranslationModel& model) {
  return {.path = model.path,
          .type = model.type,
          .fields = fields_of(model.config),
          .parameters = &model.parameters,
          .part_of = translator_part,
          .cache_token = model.config.decoder_layers * 2 * model.config.d_model,
          .tokenizer = model.tokenizer ? &*model.tokenizer : nullptr};
}

// Parts are the first components of the tensors' names: wte, h, ln_f.
Described describe(const StackModel& stack, const std::optional<Tokenizer>& tokenizer) {
  const std::string base = stack.model->names().base + ".";
  const auto part_of = [base](const std::string& name) {
    const std::string own = name.starts_with(base) ? name.substr(base.size()) : name;
    return own.substr(0, own.find('.'));
  };
  const auto* language = language_model(*stack.model);
  return {.path = stack.path,
          .type = stack.type,
          .fields = stack.model->config().fields(),
          .parameters = &stack.parameters,
          .part_of = part_of,
          .cache_token = language == nullptr ? 0 : language->layers() * language->cache_width(),
          .tokenizer = tokenizer ? &*tokenizer : nullptr};
}

struct Sizes {
  std::vector<std::pair<std::string, int64_t>> parts;  // in the order of their first tensors
  int64_t total = 0, matrices = 0;                     // scalars
  // Bytes: weights as they are computed with, keys and values of one token.
  int64_t weights_f32 = 0, weights_bf16 = 0, cache_f32 = 0, cache_bf16 = 0;
};

Sizes measure(const Described& d) {
  Sizes s;
  if (is_translator_type(d.type)) {
    s.parts = {{"embeddings", 0}, {"encoder", 0}, {"decoder", 0}, {"output", 0}};
  }
  d.parameters->for_each_tensor([&](const std::string& name, const Shape& shape, const float*) {
    const int64_t n = shape.elements();
    const std::string part = d.part_of(name);
    const auto is_part = [&](const auto& known) { return known.first == part; };
    auto at = std::find_if(s.parts.begin(), s.parts.end(), is_part);
    if (at == s.parts.end()) at = s.parts.insert(at, {part, 0});
    at->second += n;
    s.total += n;
    if (shape.rank() >= 2) s.matrices += n;
  });
  s.weights_f32 = 4 * s.total;
  s.weights_bf16 = 2 * s.matrices + 4 * (s.total - s.matrices);
  s.cache_f32 = 4 * d.cache_token;
  s.cache_bf16 = 2 * d.cache_token;
  return s;
}

std::string mebibytes(int64_t bytes) {
  return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1 << 20));
}

void print_text(const Described& d, const Sizes& s) {
  fmt::print("{}  ({})\n\nfields\n", d.path, d.type);
  for (const FieldInfo& field : describe_fields(d.fields)) {
    fmt::print("  {:34} {:14} {}\n", field.key, field.default_value, field.help);
  }
  fmt::print("\nparameters\n");
  for (const auto& [part, count] : s.parts) fmt::print("  {:34} {}\n", part, format_count(count));
  fmt::print("  {:34} {}\n\nmemory\n", "total", format_count(s.total));
  fmt::print("  {:34} {} in f32, {} in bf16\n", "weights", mebibytes(s.weights_f32),
             mebibytes(s.weights_bf16));
  if (d.cache_token > 0) {
    fmt::print(
        "  {:34} {} bytes in f32, {} in bf16\n",
        is_translator_type(d.type) ? "cache of a source or target token" : "cache of a token",
        format_count(s.cache_f32), format_count(s.cache_bf16));
  }
  if (d.tokenizer == nullptr) {
    fmt::print("\ntokenizer\n  none\n");
  } else {
    fmt::print("\ntokenizer\n  {:34} {}\n  {:34} {}\n", "tokens",
               format_count(d.tokenizer->vocab_size()), "fingerprint", d.tokenizer->fingerprint());
  }
}

void print_json(const Described& d, const Sizes& s) {
  Json json = Json::object();
  json["path"] = d.path;
  json["model_type"] = d.type;
  json["config"] = write_fields(d.fields);
  for (const auto& [part, count] : s.parts) json["parameters"][part] = count;
  json["parameters"]["total"] = s.total;
  json["bytes"]["weights_f32"] = s.weights_f32;
  json["bytes"]["weights_bf16"] = s.weights_bf16;
  json["bytes"]["cache_per_token_f32"] = s.cache_f32;
  json["bytes"]["cache_per_token_bf16"] = s.cache_bf16;
  json["tokenizer"] = Json();
  if (d.tokenizer != nullptr) {
    json["tokenizer"]["tokens"] = d.tokenizer->vocab_size();
    json["tokenizer"]["fingerprint"] = d.tokenizer->fingerprint();
  }
  fmt::print("{}\n", json.dump());
}

void print(const Described& d, bool as_json) { (as_json ? print_json : print_text)(d, measure(d)); }

void run(const Flags& flags) {
  const std::string folder = find_model_dir(flags.model);
  if (!is_translator_type(model_type_of(folder))) {
    const StackModel stack = load_stack_model(folder);
    const std::optional<Tokenizer> tokenizer = find_tokenizer(folder);
    return print(describe(stack, tokenizer), flags.json);
  }
  const bool has_tokenizer = has_translation_tokenizer(folder);
  print(describe(load_translation_model(folder, {.need_tokenizer = has_tokenizer})), flags.json);
}

}  // namespace

void add_info(Subcommand& app) {
  auto flags = std::make_shared<Flags>();
  Subcommand command = app.add_subcommand("info", "Fields, parameters and memory of a model");
  command->add_option("model", flags->model, "a model directory, or a training run")->required();
  command->add_flag("--json", flags->json, "one line of JSON");
  command->callback([flags] { run(*flags); });
}

}  // namespace heddle::cli
