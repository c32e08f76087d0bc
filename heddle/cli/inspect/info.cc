// heddle info: what a model is made of.
#include <algorithm>
#include <map>

#include "heddle/base/progress.h"
#include "heddle/cli/commands.h"
#include "heddle/cli/flags.h"
#include "heddle/infer/loading/loaded_model.h"

namespace heddle::cli {
namespace {

struct Flags {
  std::string model;
  bool json = false;
};

// Parts are those of a translator, else the first components of the tensors' names: wte, h, ln_f.
std::string part_of(const LoadedModel& model, const std::string& name) {
  if (model.model->as<EncoderDecoder>() == nullptr) {
    const std::string base = model.model->names().base + ".";
    const std::string own = name.starts_with(base) ? name.substr(base.size()) : name;
    return own.substr(0, own.find('.'));
  }
  const auto holds = [&](const char* text) { return name.find(text) != std::string::npos; };
  if (holds("embed") || holds("shared.")) return "embeddings";
  return holds("decoder.") ? "decoder" : holds("encoder.") ? "encoder" : "output";
}

// Scalars that decoding keeps of a token.
int64_t cache_of_token(const Model& model) {
  const auto* language = model.as<LanguageModel>();
  const auto* translator = model.as<EncoderDecoder>();
  return model.layers() * (language     ? language->cache_width()
                           : translator ? translator->facts().cache_width
                                        : 0);
}

struct Sizes {
  std::vector<std::pair<std::string, int64_t>> parts;  // in the order of their first tensors
  int64_t total = 0, matrices = 0;                     // scalars
  int64_t statistics = 0;  // scalars that are kept beside the parameters, and not trained
  int64_t quantized = 0;   // bytes of all weights of a quantized model, as they are held; else 0
  // Bytes: weights as they are computed with, keys and values of one token.
  int64_t weights_f32 = 0, weights_bf16 = 0, cache_f32 = 0, cache_bf16 = 0;
};

void add_to_part(Sizes& s, const std::string& part, int64_t n) {
  const auto is_part = [&](const auto& known) { return known.first == part; };
  auto at = std::find_if(s.parts.begin(), s.parts.end(), is_part);
  if (at == s.parts.end()) at = s.parts.insert(at, {part, 0});
  at->second += n;
  s.total += n;
}

// "4 bits in groups of 32: 1,024 weights, 8 bits .."
std::string formats_text(const nn::Parameters& parameters) {
  std::map<std::string, int64_t> formats;
  for (const auto& p : parameters.all()) {
    if (p->quantized() != nullptr) formats[p->quantized()->format()] += p->elements();
  }
  std::vector<std::string> texts;
  for (const auto& [format, count] : formats) {
    texts.push_back(fmt::format("{} weights of {}", format_count(count), format));
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

Sizes measure(const LoadedModel& m) {
  Sizes s;
  if (m.model->as<EncoderDecoder>() != nullptr) {
    s.parts = {{"embeddings", 0}, {"encoder", 0}, {"decoder", 0}, {"output", 0}};
  }
  int64_t rounded = 0, others = 0;  // bytes
  for (const auto& p : m.parameters.all()) {
    if (!p->is_saved()) continue;
    // A batch norm's mean and variance are no parameters.
    if (p->kind() == nn::ParameterKind::buffer) s.statistics += p->elements();
    if (p->kind() != nn::ParameterKind::trained) continue;
    const bool is_matrix = p->shape().rank() >= 2;
    if (p->quantized() != nullptr) rounded += p->quantized()->rows().bytes();
    if (p->quantized() == nullptr) others += (is_matrix ? 2 : 4) * p->elements();
    if (is_matrix) s.matrices += p->elements();
    for (const nn::Part& piece : p->parts()) {
      const int64_t n = piece.rows * (p->elements() / std::max<int64_t>(1, p->shape()[0]));
      add_to_part(s, part_of(m, piece.name), n);
    }
  }
  if (rounded > 0) s.quantized = rounded + others;
  const int64_t all = s.total + s.statistics;
  s.weights_f32 = 4 * all;
  s.weights_bf16 = 2 * s.matrices + 4 * (all - s.matrices);
  s.cache_f32 = 4 * cache_of_token(*m.model);
  s.cache_bf16 = 2 * cache_of_token(*m.model);
  return s;
}

std::string mebibytes(int64_t bytes) {
  return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1 << 20));
}

void print_text(const LoadedModel& m, const Sizes& s) {
  fmt::print("{}  ({})\n\nfields\n", m.path, m.type);
  for (const FieldInfo& field : list_fields(m.model->config().fields())) {
    fmt::print("  {:34} {:14} {}\n", field.key, field.default_value, field.help);
  }
  fmt::print("\nparameters\n");
  for (const auto& [part, count] : s.parts) fmt::print("  {:34} {}\n", part, format_count(count));
  fmt::print("  {:34} {}\n", "total", format_count(s.total));
  if (s.statistics > 0) fmt::print("  {:34} {}\n", "statistics", format_count(s.statistics));
  fmt::print("\nmemory\n");
  if (s.quantized > 0) {
    fmt::print("  {:34} {}, quantized: {}\n", "weights", mebibytes(s.quantized),
               formats_text(m.parameters));
  } else {
    fmt::print("  {:34} {} in f32, {} in bf16\n", "weights", mebibytes(s.weights_f32),
               mebibytes(s.weights_bf16));
  }
  if (s.cache_f32 > 0) {
    fmt::print("  {:34} {} bytes in f32, {} in bf16\n",
               m.model->as<EncoderDecoder>() != nullptr ? "cache of a source or target token"
                                                        : "cache of a token",
               format_count(s.cache_f32), format_count(s.cache_bf16));
  }
  if (!m.tokenizer) {
    fmt::print("\ntokenizer\n  none\n");
  } else {
    fmt::print("\ntokenizer\n  {:34} {}\n  {:34} {}\n", "tokens",
               format_count(m.tokenizer->vocab_size()), "fingerprint", m.tokenizer->fingerprint());
  }
}

void print_json(const LoadedModel& m, const Sizes& s) {
  Json json = Json::object();
  json["path"] = m.path;
  json["model_type"] = m.type;
  json["config"] = to_json(m.model->config().fields());
  for (const auto& [part, count] : s.parts) json["parameters"][part] = count;
  json["parameters"]["total"] = s.total;
  if (s.statistics > 0) json["statistics"] = s.statistics;
  if (s.quantized > 0) {
    json["quantization_config"] = m.model->config().hub.others.at(kQuantizationKey);
    json["bytes"]["weights"] = s.quantized;
  }
  json["bytes"]["weights_f32"] = s.weights_f32;
  json["bytes"]["weights_bf16"] = s.weights_bf16;
  json["bytes"]["cache_per_token_f32"] = s.cache_f32;
  json["bytes"]["cache_per_token_bf16"] = s.cache_bf16;
  json["tokenizer"] = Json();
  if (m.tokenizer) {
    json["tokenizer"]["tokens"] = m.tokenizer->vocab_size();
    json["tokenizer"]["fingerprint"] = m.tokenizer->fingerprint();
  }
  fmt::print("{}\n", json.dump());
}

void run(const Flags& flags) {
  const LoadedModel model =
      load_model(flags.model, {.tokenizers = LoadOptions::Tokenizers::if_there});
  (flags.json ? print_json : print_text)(model, measure(model));
}

}  // namespace

void add_info(Subcommand& app) {
  auto [command, flags] =
      app.add_command<Flags>("info", "Fields, parameters and memory of a model", run);
  add_model_argument(command, flags.model);
  command.add_flag("--json", flags.json, "one line of JSON");
}

}  // namespace heddle::cli
