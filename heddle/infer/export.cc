// Models in a form that Hugging Face's transformers loads: their own, or one that computes the
// same.
#include "heddle/infer/export.h"

#include <algorithm>
#include <array>

#include "heddle/base/error.h"
#include "heddle/base/files/files.h"
#include "heddle/infer/loading/loaded_model.h"
#include "heddle/infer/loading/model_folder.h"
#include "heddle/io/tensor_file.h"
#include "heddle/models/image_model.h"
#include "heddle/models/timm/timm.h"
#include "heddle/text/sentencepiece/sentencepiece_tokenizer.h"
#include "heddle/text/strings/pattern.h"
#include "heddle/text/tokenizer.h"
#include "heddle/vision/image_processor.h"

namespace heddle {
namespace {

void write_json(const std::string& folder, const char* name, const Json& json) {
  write_file_atomic(join_path(folder, name), json.dump(2) + "\n");
}

// --- translators of heddle's own -----------------------------------------------------------------

// The folder's search, else greedy, as `heddle translate` does without flags, and the tokens that
// it never takes.
Json generation_json(const LoadedModel& model) {
  const EncoderDecoderFacts& c = model.translator().facts();
  Json json = Json::object();
  json["pad_token_id"] = c.pad_token_id;
  json["bos_token_id"] = c.bos_token_id;
  json["eos_token_id"] = c.eos_token_id;
  json["decoder_start_token_id"] = c.decoder_start_token_id;
  json["forced_eos_token_id"] = c.eos_token_id;
  json["max_length"] = c.longest_source;
  json["num_beams"] = model.generation ? model.generation->beam.value_or(1) : 1;
  std::vector<int64_t> banned = {c.pad_token_id, c.bos_token_id, c.decoder_start_token_id};
  if (model.tokenizer && model.target().unk_id() >= 0) banned.push_back(model.target().unk_id());
  std::sort(banned.begin(), banned.end());
  banned.erase(std::unique(banned.begin(), banned.end()), banned.end());
  std::erase(banned, c.eos_token_id);
  json["bad_words_ids"] = Json::array();
  for (const int64_t id : banned) json["bad_words_ids"].push_back(std::vector<int64_t>{id});
  return json;
}

// As `theirs`, a model of transformers in its parameters.
Exported export_translator(LoadedModel& model, const Model& theirs,
                           const nn::Parameters& parameters, const std::string& out, DType dtype) {
  load_tokenizers(model, false);
  make_directories(out);
  write_json(out, kGenerationName, generation_json(model));
  if (model.tokenizer) {
    const Tokenizer* target = model.target_tokenizer ? &*model.target_tokenizer : nullptr;
    for (const TokenizerFile& file : marian_tokenizer_files(
             *model.tokenizer, target, model.translator().facts().longest_source)) {
      write_file_atomic(join_path(out, file.name), file.bytes);
    }
  }
  save_model(out, theirs, parameters, {.dtype = dtype});
  return {theirs.config().type,
          model.tokenizer ? "" : "the model has no tokenizer, so none was written"};
}

// --- other models --------------------------------------------------------------------------------

// Puts beside a tokenizer of heddle's own what transformers needs to read it, which runs of before
// lack. Returns what transformers cannot read, "" if nothing. Errors: those of find_tokenizer().
std::string complete_tokenizer(const LoadedModel& model, const std::string& out) {
  const std::string path = join_path(model.path, "tokenizer_config.json");
  const Json config = path_exists(path) ? Json::load(path) : Json::object();
  const std::string name = string_or(config, "tokenizer_class", "SentencePiece", path);
  if (name != "SentencePiece") return "";
  const std::optional<Tokenizer> tokenizer = find_tokenizer(model.path);
  if (!tokenizer) return "";
  tokenizer->save_folder(out);
  const bool has_class = tokenizer->files().size() > 1;  // of a family, which stands beside it
  if (tokenizer->kind() == "SentencePiece" && !has_class &&
      !path_exists(join_path(out, "tokenizer.json"))) {
    return "transformers cannot read the tokenizer, whose SentencePiece model has what "
           "tokenizer.json cannot say; give it ids";
  }
  return "";
}

// What is to be said of the tokenizer's files; those that heddle cannot read are copied all the
// same: transformers may know them.
std::string tokenizer_note(const LoadedModel& model, const std::string& out) {
  const auto has = [&](const char* name) { return path_exists(join_path(out, name)); };
  std::string note;
  try {
    note = complete_tokenizer(model, out);
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::data) throw;
    return fmt::format("the tokenizer is copied as it is, since heddle cannot read it: {}",
                       e.what());
  }
  const bool is_misread = model.model->config().family().misreads_tokenizers;
  if (note.empty() && is_misread && has("tokenizer_config.json") && !has("tokenizer.json")) {
    const std::string path = join_path(out, "tokenizer_config.json");
    note = fmt::format(
        "transformers' AutoTokenizer misreads a {} without tokenizer.json; open its "
        "tokenizer by the class, {}",
        model.type, string_or(Json::load(path), "tokenizer_class", "none", path));
  }
  return note;
}

// What transformers' code of the family does; heddle's own keys with any other value say something
// that it passes over.
struct TheirValues {
  std::string_view family, key, values;
};
constexpr auto kTheirValues = std::to_array<TheirValues>({
    {"resnet", "stem", "imagenet"},
    {"resnet", "layer_act", "relu"},
    {"resnet", "downsample", "stride"},
    {"resnet", "norm", "batch frozen_batch"},
    {"resnet", "layer_type", "basic bottleneck"},
    {"resnet", "attention_stages", "[]"},
    {"vit", "two_dimensional_positions", "false"},
    {"vit", "pooling", "token"},
    {"vit", "class_token", "true"},
    {"vit", "norm_after_pooling", "false"},
    {"deit", "two_dimensional_positions", "false"},
    {"detr", "normalize_before", "false"},
    {"detr", "conditional_queries", "false"},
    {"detr", "class_loss", "cross_entropy"},
});

// "stem cifar, norm group": settings of heddle's own in a config, and in that of its backbone.
std::string own_settings(const Json& config) {
  const std::string family = string_or(config, "model_type", "", kConfigName);
  std::vector<std::string> own;
  for (const TheirValues& theirs : kTheirValues) {
    const Json* const value = config.find(std::string(theirs.key));
    if (family != theirs.family || value == nullptr) continue;
    const std::string text = value->is_string() ? value->as_string() : value->dump();
    if (!is_listed(text, theirs.values)) own.push_back(fmt::format("{} {}", theirs.key, text));
  }
  const Json* const backbone = config.find("backbone_config");
  const std::string below =
      backbone != nullptr && backbone->is_object() ? own_settings(*backbone) : "";
  if (!below.empty()) own.push_back("a backbone of " + below);
  return fmt::format("{}", fmt::join(own, ", "));
}

// What keeps transformers from computing the same, "" if nothing.
std::string difference_note(const LoadedModel& model) {
  if (model.type == "cct" || model.model->config().is_own_format()) {
    return fmt::format("transformers has no {}; heddle alone loads it", model.type);
  }
  const std::string own = own_settings(model.model->config().json());
  if (own.empty()) return "";
  return fmt::format("transformers' {} has no {}; it cannot load the model as it is", model.type,
                     own);
}

// Their auxiliary_loss says what a model computes too; see DetrConfig.
std::string losses_note(const LoadedModel& model) {
  const Json json = model.model->config().json();
  const Json* const losses = json.find("layer_losses");
  if (losses == nullptr || *losses == json.at("auxiliary_loss")) return "";
  return fmt::format(
      "config.json says auxiliary_loss {}, though the model was trained with {}: transformers' "
      "computes something else with it",
      json.at("auxiliary_loss").dump(), losses->dump());
}

Exported export_known(const LoadedModel& model, const std::string& out, DType dtype) {
  save_model(out, *model.model, model.parameters, {.dtype = dtype});
  copy_files_beside_weights(model.path, out);
  const auto* const images = model.model->as<ImageModel>();
  const bool is_of_timm = model.model->config().hub.others.contains("pretrained_cfg");
  const bool has_processor = path_exists(join_path(out, kPreprocessorName));
  if (images != nullptr && images->facts().channels == 3 && is_of_timm && !has_processor) {
    write_json(out, kPreprocessorName, ImageProcessor::of_folder(model.path).to_json());
  }
  Exported result{model.type, tokenizer_note(model, out)};
  const auto add_note = [&](const std::string& note) {
    if (!note.empty()) result.note += (result.note.empty() ? "" : "; ") + note;
  };
  add_note(difference_note(model));
  add_note(losses_note(model));
  if (const char* version = model.model->config().family().dropped_in) {
    add_note(fmt::format("transformers has no {} since {}; older releases load it", model.type,
                         version));
  }
  return result;
}

// --- for timm ------------------------------------------------------------------------------------

Exported export_for_timm(const LoadedModel& model, const std::string& out, DType dtype) {
  timm::Written written = timm::written_config(model.model->config());
  const ImageSize size = model.model->need<ImageModel>(model.path).facts().image_size;
  // What timm wrote stays, unless something else was written beside it.
  const Json* const theirs = model.model->config().hub.others.find("pretrained_cfg");
  const bool is_theirs =
      theirs != nullptr && !path_exists(join_path(model.path, kPreprocessorName));
  Json prepared = is_theirs ? *theirs : ImageProcessor::of_folder(model.path).to_timm(size);
  const Json own = written.config.at("pretrained_cfg");
  for (const auto& [key, value] : own.as_object()) prepared[key] = value;
  written.config["pretrained_cfg"] = prepared;
  timm::save_weights(join_path(out, kWeightsName), model.parameters, model.model->config(), dtype);
  write_json(out, kConfigName, written.config);
  return {written.config.get_string("architecture"), written.note};
}

}  // namespace

Exported export_model(const std::string& path, const std::string& out,
                      const ExportOptions& options) {
  const std::string folder = find_model_dir(path);
  NewModelFolder target(out, folder, options.overwrite);
  LoadedModel model = load_model(folder);
  const bool was_quantized = model.parameters.is_quantized();
  model.parameters.dequantize();
  auto parameters = nn::Parameters::shapes_alone();
  std::unique_ptr<Model> theirs;
  if (const auto* own = model.model->as<WithHubModel>()) {
    theirs = own->hub_model(model.parameters, parameters, join_path(folder, kConfigName));
  }
  const std::string type = theirs ? theirs->config().type : model.type;
  // Transformers reads timm's folders; some types it has no other way.
  const bool is_for_timm =
      options.format == "timm" || (options.format == "transformers" && type == "mlp_mixer");
  check(is_for_timm || options.format == "transformers" || options.format == type, ErrorKind::usage,
        "`format` is '{}'; it must be transformers, timm or {}", options.format, type);
  Exported exported;
  target.write([&](const std::string& made) {
    exported = is_for_timm ? export_for_timm(model, made, options.dtype)
               : theirs    ? export_translator(model, *theirs, parameters, made, options.dtype)
                           : export_known(model, made, options.dtype);
  });
  if (was_quantized) {
    exported.note += fmt::format("{}the weights are those that quantizing has left, as {}",
                                 exported.note.empty() ? "" : "; ", dtype_name(options.dtype));
  }
  return exported;
}

}  // namespace heddle
