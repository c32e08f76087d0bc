// Sentence vectors: the states of a text's tokens, pooled as files say.
#include "heddle/infer/embed.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "heddle/base/files/files.h"
#include "heddle/base/files/mmap.h"
#include "heddle/infer/loading/sentence_modules.h"
#include "heddle/io/tensor_file.h"
#include "heddle/text/strings/strings.h"

namespace heddle {
namespace {

/// Appends one pooling of a text's rows. h: [n, width]
void append_pooled(Pooling pooling, std::span<const float> h, int64_t width,
                   std::vector<float>& out) {
  const int64_t n = static_cast<int64_t>(h.size()) / width;
  const auto row = [&](int64_t i) { return h.subspan(static_cast<size_t>(i * width), width); };
  if (pooling == Pooling::cls || pooling == Pooling::last_token) {
    const auto one = row(pooling == Pooling::cls ? 0 : n - 1);
    out.insert(out.end(), one.begin(), one.end());
    return;
  }
  for (int64_t column = 0; column < width; ++column) {
    double sum = 0, weights = 0, most = -std::numeric_limits<double>::infinity();
    for (int64_t i = 0; i < n; ++i) {
      const double x = h[static_cast<size_t>(i * width + column)];
      const double weight = pooling == Pooling::weighted_mean ? static_cast<double>(i + 1) : 1.0;
      sum += weight * x;
      weights += weight;
      most = std::max(most, x);
    }
    const double divisor = pooling == Pooling::mean_sqrt_len ? std::sqrt(weights) : weights;
    out.push_back(static_cast<float>(pooling == Pooling::max ? most : sum / divisor));
  }
}

std::vector<float> apply(const DenseLayer& dense, const std::vector<float>& x,
                         const std::string& path) {
  check(static_cast<int64_t>(x.size()) == dense.in, ErrorKind::data,
        "{}: a vector has {} numbers, but the dense layer takes {}; its pooling is another", path,
        x.size(), dense.in);
  std::vector<float> y;
  for (int64_t o = 0; o < dense.out; ++o) {
    double sum = dense.bias.empty() ? 0 : dense.bias[static_cast<size_t>(o)];
    for (int64_t i = 0; i < dense.in; ++i) {
      sum += static_cast<double>(dense.weight[static_cast<size_t>(o * dense.in + i)]) * x[i];
    }
    y.push_back(static_cast<float>(dense.has_tanh ? std::tanh(sum) : sum));
  }
  return y;
}

void normalize(std::vector<float>& x) {
  double sum = 0;
  for (const float v : x) sum += static_cast<double>(v) * v;
  const double length = std::max(std::sqrt(sum), 1e-12);  // as torch.nn.functional.normalize
  for (float& v : x) v = static_cast<float>(v / length);
}

// A vector of each segment of the model's states. In means the first `passed_over` of a segment
// do not count.
std::vector<std::vector<float>> vectors_of(const Model& model, const ModelInput& input,
                                           const Segments& segments, const EmbedOptions& options,
                                           const Precision& precision, const std::string& path,
                                           int64_t passed_over = 0) {
  const NoGrad off;
  nn::Run run;
  run.use(precision);
  const std::vector<float> h = model.hidden(input, run).to_floats();
  const int64_t width = model.width();
  std::vector<std::vector<float>> result;
  for (int64_t i = 0; i < segments.count(); ++i) {
    const auto rows = std::span(h).subspan(static_cast<size_t>(segments.begin(i) * width),
                                           static_cast<size_t>(segments.length(i) * width));
    std::vector<float>& x = result.emplace_back();
    for (const Pooling pooling : options.pooling) {
      const bool is_of_all = pooling == Pooling::cls;
      append_pooled(pooling, is_of_all ? rows : rows.subspan(passed_over * width), width, x);
    }
    for (const DenseLayer& dense : options.dense) x = apply(dense, x, path);
    if (options.normalize) normalize(x);
    check(std::ranges::all_of(x, [](float v) { return std::isfinite(v); }), ErrorKind::data,
          "{}: the model gives a vector that is not finite", path);
  }
  return result;
}

}  // namespace

std::vector<std::vector<float>> embed(const SentenceEncoder& encoder,
                                      std::span<const std::string> texts,
                                      const Precision& precision, int64_t& cut) {
  check_mapped_files();
  const EmbedOptions& options = encoder.options;
  const TokenModel& model = encoder.text.tokens();
  std::vector<Encoding> encodings;
  for (const std::string& text : texts) {
    const std::string whole(trimmed(options.prompt + text));  // as sentence-transformers does
    encodings.push_back(
        encode_truncated(encoder.text, options.lower_case ? lower_case(whole) : whole, cut));
  }
  const PackedTexts packed(model, encodings);
  return vectors_of(model, packed.tokens(), packed.segments, options, precision, encoder.text.path);
}

std::vector<std::vector<float>> embed(const ImageReader& reader, std::span<const Image> images,
                                      const EmbedOptions& options, const Precision& precision) {
  check_mapped_files();
  const ImageBatch batch(images, reader.processor);
  const nn::ImageRows rows = batch.rows();
  const ImageFacts& facts = reader.model().facts();
  return vectors_of(reader.model(), rows, reader.model().tokens(rows), options, precision,
                    reader.loaded.path, facts.pools_grid ? facts.tokens : 0);
}

// --- the files of sentence-transformers: which modules stand behind the model, their settings ---

namespace {

struct PoolingName {
  const char *name, *flag;  // older files have a flag for each, in this order
  Pooling pooling;
};

constexpr PoolingName kPoolings[] = {
    {"cls", "pooling_mode_cls_token", Pooling::cls},
    {"max", "pooling_mode_max_tokens", Pooling::max},
    {"mean", "pooling_mode_mean_tokens", Pooling::mean},
    {"mean_sqrt_len_tokens", "pooling_mode_mean_sqrt_len_tokens", Pooling::mean_sqrt_len},
    {"weightedmean", "pooling_mode_weightedmean_tokens", Pooling::weighted_mean},
    {"lasttoken", "pooling_mode_lasttoken", Pooling::last_token}};

bool is_set(const Json& json, const char* key, const std::string& source) {
  const Json* value = json.find(key);
  return value != nullptr && !value->is_null() &&
         value->as_bool(fmt::format("{}: key '{}'", source, key));
}

Json optional_file(const std::string& path) {
  return path_exists(path) ? Json::load(path) : Json::object();
}

/// 1_Pooling/config.json.
std::vector<Pooling> read_pooling(const std::string& path) {
  const Json json = Json::load(path);
  const Json* include_prompt = json.find("include_prompt");
  check(include_prompt == nullptr || is_set(json, "include_prompt", path), ErrorKind::data,
        "{}: include_prompt is false, which heddle does not support", path);
  std::vector<Pooling> modes;
  if (const Json* mode = json.find("pooling_mode")) {
    const std::string what = path + ": key 'pooling_mode'";
    const std::vector<std::string> names =
        mode->is_string() ? std::vector<std::string>{mode->as_string()} : mode->as_strings(what);
    for (const std::string& name : names) {
      const auto known = std::ranges::find_if(kPoolings, [&](auto& p) { return name == p.name; });
      check(known != std::end(kPoolings), ErrorKind::data, "{} is '{}', which heddle does not know",
            what, name);
      modes.push_back(known->pooling);
    }
  } else {
    for (const PoolingName& known : kPoolings) {
      if (is_set(json, known.flag, path)) modes.push_back(known.pooling);
    }
  }
  check(!modes.empty(), ErrorKind::data, "{}: it names no pooling", path);
  return modes;
}

std::vector<float> read_floats(const TensorFile& file, const std::string& name,
                               const std::vector<int64_t>& shape) {
  const StoredTensor& info = file.info(name);
  check(info.shape == shape, ErrorKind::data, "{}: {} has shape {}; its config asks for {}",
        file.path(), name, Shape(info.shape).str(), Shape(shape).str());
  return info.floats();
}

/// 2_Dense: config.json and weights.
DenseLayer read_dense(const std::string& folder) {
  const std::string path = join_path(folder, "config.json");
  const Json json = Json::load(path);
  DenseLayer dense;
  dense.in = json.get_int("in_features", path);
  dense.out = json.get_int("out_features", path);
  check(dense.in >= 1 && dense.out >= 1, ErrorKind::data,
        "{}: in_features is {}, out_features {}; both must be at least 1", path, dense.in,
        dense.out);
  if (const Json* activation = json.find("activation_function")) {
    const std::string& name = activation->as_string(path + ": key 'activation_function'");
    dense.has_tanh = name.ends_with(".Tanh");
    check(dense.has_tanh || name.ends_with(".Identity"), ErrorKind::data,
          "{}: activation_function is '{}'; heddle knows Tanh and Identity", path, name);
  }
  check(!is_set(json, "use_residual", path), ErrorKind::data,
        "{}: use_residual is true, which heddle does not support", path);
  const std::unique_ptr<TensorFile> file = open_weights(folder);
  file->verify();
  dense.weight = read_floats(*file, "linear.weight", {dense.out, dense.in});
  const Json* bias = json.find("bias");
  if (bias == nullptr || bias->as_bool(path + ": key 'bias'")) {
    dense.bias = read_floats(*file, "linear.bias", {dense.out});
  }
  return dense;
}

/// sentence_bert_config.json of the model's folder.
void read_limits(const std::string& folder, SentenceEncoder& encoder) {
  const std::string path = join_path(folder, kSentenceLimitsName);
  const Json json = optional_file(path);
  encoder.options.lower_case = is_set(json, "do_lower_case", path);
  const Json* most = json.find("max_seq_length");
  if (most == nullptr || most->is_null()) return;
  const int64_t limit = most->as_int(path + ": key 'max_seq_length'");
  check(limit >= 1, ErrorKind::data, "{}: max_seq_length is {}; it must be at least 1", path,
        limit);
  encoder.text.max_length = std::min(encoder.text.max_length, limit);
}

std::string read_prompt(const std::string& folder) {
  const std::string path = join_path(folder, kSentencePromptsName);
  const Json json = optional_file(path);
  const Json* name = json.find("default_prompt_name");
  if (name == nullptr || name->is_null()) return "";
  const std::string& key = name->as_string(path + ": key 'default_prompt_name'");
  return json.at("prompts", path).get_string(key, path);
}

}  // namespace

Pooling pooling_of(const std::string& name) {
  std::vector<std::string> known;
  for (const PoolingName& each : kPoolings) {
    if (name == each.name) return each.pooling;
    known.emplace_back(each.name);
  }
  fail(ErrorKind::usage, "unknown pooling '{}'; there are {}", name, fmt::join(known, ", "));
}

SentenceEncoder load_sentence_encoder(const std::string& given) {
  const bool has_modules = path_exists(join_path(given, kModulesName));
  const std::string path = has_modules ? given : find_model_dir(given);
  if (!path_exists(join_path(path, kModulesName))) return {load_text_model(given), {}};
  const std::vector<SentenceModule> modules = read_sentence_modules(path);
  SentenceEncoder encoder{load_text_model(modules[0].folder), {}};
  read_limits(modules[0].folder, encoder);
  encoder.options.prompt = read_prompt(path);
  for (size_t i = 1; i < modules.size(); ++i) {
    const bool is_pooled = i > 1;
    if (modules[i].type == "Pooling" && !is_pooled) {
      encoder.options.pooling = read_pooling(join_path(modules[i].folder, "config.json"));
    } else if (modules[i].type == "Dense" && is_pooled && !encoder.options.normalize) {
      encoder.options.dense.push_back(read_dense(modules[i].folder));
    } else if (modules[i].type == "Normalize" && is_pooled) {
      encoder.options.normalize = true;
    } else {
      fail(ErrorKind::data,
           "{}: module {} is a {}; heddle knows a Transformer, then a Pooling, then Dense ones, "
           "then a "
           "Normalize",
           join_path(path, kModulesName), i, modules[i].type);
    }
  }
  return encoder;
}

}  // namespace heddle
