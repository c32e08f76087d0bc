// Sums over the steps of dry passes, the rules for what no pass shows, and the page of all that;
// the table of kinds of layers, by its formulas.
#include "heddle/inspect/analysis.h"

#include <algorithm>
#include <cmath>

#include "heddle/base/files/files.h"
#include "heddle/inspect/pages/page.h"
#include "heddle/inspect/run_history.h"
#include "heddle/models/captioner.h"
#include "heddle/train/ranks/gradient_layout.h"

namespace heddle::inspect {
namespace {

// Tokens of all sequences: ids and positions of so many are made.
constexpr int64_t kMostTokens = int64_t{1} << 24;
constexpr int64_t kCaption = 16;  // tokens

Bytes bytes_of(int64_t scalars) { return {4 * scalars, 2 * scalars}; }

int64_t sum_flops(const std::vector<Step>& steps) {
  int64_t sum = 0;
  for (const Step& step : steps) sum += step.flops;
  return sum;
}

class Analyzer {
 public:
  Analyzer(const ModelConfig& config, const std::string& name, const Workload& w)
      : made_(config.make(nn::Scope(parameters_))),
        images_(made_->as<ImageModel>()),
        both_(made_->as<EncoderDecoder>()),
        captioner_(made_->as<Captioner>()) {
    if (images_ == nullptr && both_ == nullptr) made_->need<TokenModel>(name);
    const auto* const language = made_->as<LanguageModel>();
    if (language != nullptr && language->is_causal()) cache_width_ = language->cache_width();
    if (both_ != nullptr) cache_width_ = both_->facts().cache_width;
    a_.name = name;
    a_.type = config.type;
    a_.width = made_->width();
    a_.has_source = both_ != nullptr;
    a_.has_image = images_ != nullptr || captioner_ != nullptr;
    a_.workload = w;
    a_.parameters = parameters_.elements();
    const train::GradientLayout layout(parameters_, 1);
    for (const auto& bucket : layout.buckets()) a_.gradient_buckets.push_back(bucket.size);
    for (const auto& p : parameters_.all()) {
      a_.matrix_parameters += p->shape().rank() > 1 && !p->is_buffer() ? p->elements() : 0;
    }
  }

  Analysis run() {
    fill_workload();
    DryPass f32 = pass(a_.workload, {});
    a_.steps = std::move(f32.steps);
    a_.kept = {f32.kept, pass(a_.workload, {.compute = DType::bf16}).kept};
    a_.recomputed = {pass(a_.workload, {.recompute = true}).kept,
                     pass(a_.workload, {.compute = DType::bf16, .recompute = true}).kept};
    add_flops();
    add_memory();
    add_caches();
    return std::move(a_);
  }

 private:
  DryPass pass(const Workload& w, const nn::Run& run) {
    return dry_pass(*made_, parameters_, w, run);
  }

  void fill_workload() {
    Workload& w = a_.workload;
    check(w.batch >= 1, ErrorKind::usage, "`batch` is {}; it must be at least 1", w.batch);
    check(w.source >= 0, ErrorKind::usage, "`length` is {}; it must be at least 1", w.source);
    check(w.target >= 0, ErrorKind::usage, "`target_length` is {}; it must be at least 1",
          w.target);
    check(w.window >= 0, ErrorKind::usage, "`window` is {}; it must be at least 1, or 0 for none",
          w.window);
    if (a_.has_image) return fill_image();
    check(both_ != nullptr || w.target == 0, ErrorKind::usage,
          "`target_length` is of encoder-decoders; {} reads one sequence", a_.name);
    const auto* const ordered = made_->as<WithOrder>();
    const int64_t least = ordered != nullptr && ordered->runs_backwards() ? 2 : 1;
    const bool is_learned =
        pass({.batch = least, .source = 1, .target = 1}, {}).has_learned_positions;
    const int64_t longest = both_ != nullptr ? both_->facts().longest_source
                                             : made_->need<TokenModel>(a_.name).max_length();
    if (w.source == 0) w.source = is_learned ? longest : 512;
    if (w.target == 0) w.target = w.source;
    const int64_t length = both_ != nullptr ? std::max(w.source, w.target) : w.source;
    check_countable(length);
    if (is_learned) check_learned(length, longest);
  }

  void check_learned(int64_t length, int64_t longest) const {
    check(length <= longest, ErrorKind::data,
          "{}: {} tokens are more than its {} learned positions; ask for a shorter `length`, or "
          "for more positions with `set`",
          a_.name, length, longest);
  }

  void fill_image() {
    Workload& w = a_.workload;
    const bool writes = captioner_ != nullptr;
    check(w.source == 0 && w.window == 0, ErrorKind::usage,
          "{} reads images; `length` and `window` are of texts, `image` is its size", a_.name);
    check(w.target == 0 || writes, ErrorKind::usage,
          "{} reads images and writes nothing; leave `target_length` out", a_.name);
    const ImageFacts& facts = writes ? captioner_->images() : images_->facts();
    if (w.image.height == 0) w.image = facts.image_size;
    check(w.image.height > 0 && w.image.width > 0, ErrorKind::usage,
          "{} was made for images of no one size; give one as `image`", a_.name);
    check_countable(w.image.height * w.image.width);
    const ImageSize grid = writes ? captioner_->grid(w.image) : images_->grid(w.image);
    w.source = facts.tokens + grid.height * grid.width;
    if (!writes) w.target = w.source;
    if (w.target == 0) w.target = kCaption;
    if (writes) check_learned(w.target, captioner_->facts().longest_target);
    check_countable(w.target);
  }

  // All sums are whole numbers of 64 bits: FLOPs of training, the largest of them, must fit.
  void check_countable(int64_t length) const {
    const auto tokens = static_cast<double>(a_.workload.batch) * static_cast<double>(length);
    const double pairs = 8 * static_cast<double>(length) * static_cast<double>(a_.width) *
                         static_cast<double>(made_->layers());
    check(16 * tokens * (static_cast<double>(a_.parameters) + pairs) < 9e18, ErrorKind::data,
          "{}: with batch {} and length {} the sums do not fit into 64 bits; ask for less", a_.name,
          a_.workload.batch, length);
    check(tokens <= kMostTokens, ErrorKind::data,
          "{}: {} sequences of length {} are more than {} tokens; ask for less", a_.name,
          a_.workload.batch, length, kMostTokens);
  }

  void add_flops() {
    a_.forward_flops = sum_flops(a_.steps);
    int64_t hidden = 0;
    for (const Step& step : a_.steps) {
      a_.attention_flops += step.attention_flops;
      hidden += step.hidden_flops;
      a_.attention.has_flash = a_.attention.has_flash && step.has_flash;
    }
    // Backward, each product has two: by either factor. Flash attention's five are scores again,
    // and the gradients of values, weights, queries and keys. Scores of other kinds have none.
    a_.training_flops = 3 * a_.forward_flops;
    a_.training_flash_flops =
        a_.training_flops + (a_.attention.has_flash ? a_.attention_flops / 2 : 0);
    if (cache_width_ == 0) return;
    // Over caches each token is computed once, and sees what a causal pass lets it see.
    a_.decoding_flops = a_.forward_flops - hidden;
    if (a_.workload.window == 0) a_.uncached_decoding_flops = all_passes_flops();
  }

  // Passes over 1, 2, .. tokens in all: a pass over t tokens takes c0 + c1 t + c2 t^2.
  double all_passes_flops() {
    Workload w = a_.workload;
    int64_t& length = both_ != nullptr ? w.target : w.source;
    const auto n = static_cast<double>(length);
    const int64_t measured = std::min<int64_t>(3, length);
    double f[3] = {};
    for (int64_t i = 0; i < measured; ++i) {
      length = i + 1;
      f[i] = static_cast<double>(sum_flops(pass(w, {}).steps));
    }
    if (measured < 3) return f[0] + f[1];
    const double c2 = (f[2] - 2 * f[1] + f[0]) / 2, c1 = f[1] - f[0] - 3 * c2;
    const double c0 = f[0] - c1 - c2;
    return c0 * n + c1 * n * (n + 1) / 2 + c2 * n * (n + 1) * (2 * n + 1) / 6;
  }

  void add_memory() {
    const int64_t vectors = a_.parameters - a_.matrix_parameters;
    a_.weights = {4 * a_.parameters, 2 * a_.matrix_parameters + 4 * vectors};
    // f32: gradients and two moments. bf16: the f32 masters of matrices too.
    a_.optimizer = {12 * a_.parameters, 12 * a_.parameters + 4 * a_.matrix_parameters};
    int64_t all = 0, rows = 0, dearest = 0, widest = 0;
    for (const Step& step : a_.steps) {
      const AttentionMatrices& m = step.attention;
      a_.attention.entries = std::max(a_.attention.entries, m.rows * m.columns);
      a_.attention.matrices += step.layers * m.matrices;
      all += step.layers * m.entries();
      rows += step.layers * m.matrices * m.rows;
      dearest = std::max(dearest, m.entries());
      if (m.matrices > 0) continue;
      int64_t in = 1, out = 1;
      for (const int64_t n : step.in) in *= n;
      for (const int64_t n : step.out) out *= n;
      widest = std::max(widest, in + out);
    }
    a_.at_once = bytes_of(widest);
    a_.attention.head = bytes_of(a_.attention.entries);
    a_.attention.all = bytes_of(all);
    a_.attention.one_layer = bytes_of(dearest);
    a_.attention.flash = a_.attention.has_flash ? Bytes{4 * rows, 4 * rows} : a_.attention.all;
  }

  void add_caches() {
    const int64_t each = made_->layers() * cache_width_;  // 0: it writes nothing
    const Workload& w = a_.workload;
    a_.cache_token = bytes_of(each);
    if (both_ != nullptr) a_.cache_source = bytes_of(each);
    a_.cache = bytes_of(each * w.batch * (both_ != nullptr ? w.source + w.target : w.source));
  }

  nn::Parameters parameters_ = nn::Parameters::shapes_alone();
  std::unique_ptr<Model> made_;
  const ImageModel* images_;
  const EncoderDecoder* both_;
  const Captioner* captioner_;
  int64_t cache_width_ = 0;  // of a model that writes token by token
  Analysis a_;
};

Json to_json(const Bytes& bytes) {
  return Json::object({{"f32", bytes.f32}, {"bf16", bytes.bf16}});
}

Json to_json(const Step& step) {
  Json json = Json::object({{"part", step.part},
                            {"name", step.name},
                            {"in", step.in},
                            {"out", step.out},
                            {"layers", step.layers},
                            {"parameters", step.parameters},
                            {"flops", step.flops}});
  const AttentionMatrices& m = step.attention;
  if (m.matrices > 0) json["matrices"] = std::vector<int64_t>{m.matrices, m.rows, m.columns};
  return json;
}

Json to_json(const AttentionMemory& m) {
  return Json::object({{"entries", m.entries},
                       {"matrices", m.matrices},
                       {"head", to_json(m.head)},
                       {"all", to_json(m.all)},
                       {"one_layer", to_json(m.one_layer)},
                       {"flash", to_json(m.flash)},
                       {"has_flash", m.has_flash}});
}

}  // namespace

Analysis analyze(const ModelConfig& config, const std::string& name, const Workload& workload) {
  return Analyzer(config, name, workload).run();
}

Json to_json(const Analysis& a) {
  Json json = Json::object({{"name", a.name},
                            {"model_type", a.type},
                            {"batch", a.workload.batch},
                            {"length", a.workload.source}});
  if (a.has_source) json["target_length"] = a.workload.target;
  if (a.has_image) {
    json["image"] = std::vector<int64_t>{a.workload.image.height, a.workload.image.width};
  }
  json["window"] = a.workload.window;
  json["parameters"] = a.parameters;
  json["matrix_parameters"] = a.matrix_parameters;
  json["flops"] = Json::object({{"forward", a.forward_flops},
                                {"attention", a.attention_flops},
                                {"training", a.training_flops},
                                {"training_flash", a.training_flash_flops},
                                {"decoding", a.decoding_flops},
                                {"decoding_uncached", a.uncached_decoding_flops}});
  json["bytes"] = Json::object({{"weights", to_json(a.weights)},
                                {"optimizer", to_json(a.optimizer)},
                                {"kept", to_json(a.kept)},
                                {"recomputed", to_json(a.recomputed)},
                                {"at_once", to_json(a.at_once)},
                                {"cache", to_json(a.cache)},
                                {"cache_token", to_json(a.cache_token)},
                                {"cache_source", to_json(a.cache_source)}});
  json["attention"] = to_json(a.attention);
  json["steps"] = json_list(a.steps, [](const Step& step) { return to_json(step); });
  return json;
}

Page analysis_page(const std::string& name, const Analysis& analysis, const Json& layers,
                   const Json& sizes, const Json& ranks) {
  const std::string model = name.ends_with("/config.json") ? parent_path(name) : name;
  Page page{.title = "What " + short_names({model})[0] + " costs", .scripts = {"analyze.js"}};
  page.data = to_json(analysis);
  page.data["layers"] = layers;
  page.data["sizes"] = sizes;
  page.data["prediction"] = ranks;
  return page;
}

std::vector<LayerCost> layer_costs(const LayerSizes& s) {
  check(s.n >= 1 && s.d >= 1, ErrorKind::usage,
        "a layer over {} positions of width {}: both must be at least 1", s.n, s.d);
  check(s.kernel >= 2, ErrorKind::usage, "`kernel` is {}; a convolution sees at least 2 positions",
        s.kernel);
  check(s.reach >= 1, ErrorKind::usage, "`reach` is {}; it must be at least 1", s.reach);
  const auto n = static_cast<double>(s.n), d = static_cast<double>(s.d);
  const double k = std::min(static_cast<double>(s.kernel), std::max(2.0, n));
  const double r = std::min(static_cast<double>(s.reach), n);
  const double dilated = std::max(1.0, std::ceil(std::log(n) / std::log(k) - 1e-9));
  return {{"recurrent", "n d^2", n * d * d, "n", n, "n", n},
          {"convolutional", "k n d^2", k * n * d * d, "1", 1, "log_k n", dilated},
          {"self-attention", "n^2 d", n * n * d, "1", 1, "1", 1},
          {"restricted self-attention", "r n d", r * n * d, "1", 1, "n / r", std::ceil(n / r)}};
}

}  // namespace heddle::inspect
