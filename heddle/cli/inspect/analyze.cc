// heddle analyze: what a model costs, from its sizes alone.
#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <set>

#include "heddle/base/parallel.h"
#include "heddle/base/progress.h"
#include "heddle/bench/layer_curve.h"
#include "heddle/cli/commands.h"
#include "heddle/cli/flags.h"
#include "heddle/cli/inspect/analyze_ranks.h"
#include "heddle/inspect/analysis.h"
#include "heddle/inspect/model_sizes.h"

namespace heddle::cli {
namespace {

struct Flags {
  std::string name;
  std::vector<std::string> settings;
  inspect::Workload workload;
  std::vector<int64_t> images;
  int64_t patch = 1;
  inspect::LayerSizes sizes{.n = 0, .d = 0};  // 0: those of the model
  bool measure = false, json = false;
  double seconds = 8;
  int threads = 0;
  std::string page;
  RanksFlags ranks;
};

// An image as a sequence: a position a patch, windows of so many patches in either direction.
void use_image(Flags& f) {
  check(!f.images.empty() || f.patch == 1, ErrorKind::usage,
        "--patch cuts an image into patches, and there is none; give --image");
  if (f.images.empty()) return;
  check(f.images.size() == 1, ErrorKind::usage,
        "--image has {} sizes; {} reads no images, and takes one sequence", f.images.size(),
        f.name);
  const int64_t image = f.images[0];
  check(image >= 1 && f.patch >= 1 && image % f.patch == 0 && image <= 1 << 14, ErrorKind::usage,
        "--image {} cannot be cut into patches of {}: a size up to 16384 that the patch divides is "
        "needed",
        image, f.patch);
  check(f.workload.source == 0, ErrorKind::usage,
        "--image {} and --length {} both say how long a sequence is; give one", image,
        f.workload.source);
  const int64_t side = image / f.patch;
  f.workload.source = side * side;
  const int64_t window = f.workload.window;
  check(window >= 0 && window <= side, ErrorKind::usage,
        "--window is {}; it must be from 0 to the {} x {} patches", window, side, side);
  f.workload.window = window * window;
}

// --- numbers as a person reads them --------------------------------------------------------------

using inspect::Analysis;
using inspect::Bytes;
using inspect::Step;

// Four digits: "112.5 MiB".
std::string binary(int64_t bytes) {
  constexpr std::array kUnits = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB"};
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  for (; value >= 1024 && unit + 1 < kUnits.size(); ++unit) value /= 1024;
  return fmt::format("{:.{}f} {}", value,
                     unit == 0 || value >= 1000 ? 0
                     : value >= 100             ? 1
                                                : 2,
                     kUnits[unit]);
}

std::string decimal(double value) {
  constexpr std::array kUnits = {"", " k", " M", " G", " T", " P", " E", " Z"};
  size_t unit = 0;
  for (; value >= 1000 && unit + 1 < kUnits.size(); ++unit) value /= 1000;
  return fmt::format("{:.4g}{}", value, kUnits[unit]);
}

std::string shape(const std::vector<int64_t>& sizes) {
  return fmt::format("{}", fmt::join(sizes, " x "));
}

// The sum over the layers of a part, or that of one where all are alike: each step is of as many.
std::string of_layers(int64_t sum, const std::set<int64_t>& layers) {
  const int64_t count = layers.size() == 1 ? *layers.begin() : 1;
  if (count == 1 || sum % count != 0) return format_count(sum);
  return fmt::format("{} x {} = {}", format_count(sum / count), count, format_count(sum));
}

std::string steps_text(const Analysis& a) {
  std::string text = fmt::format("{:42}{:48}{:>8}{:>14}{:>10}\n", "step", "shape", "layers",
                                 "parameters", "FLOPs");
  std::string part;
  for (const Step& step : a.steps) {
    if (step.part != part) text += step.part + "\n";
    part = step.part;
    const auto& [matrices, rows, columns] = step.attention;
    const std::string by =
        matrices > 0 ? fmt::format(" ({} x {} x {} weights)", matrices, rows, columns) : "";
    const std::string flops =
        step.flops > 0 ? decimal(static_cast<double>(step.flops / step.layers)) : "";
    text += fmt::format("  {:38}  {:48}{:>8}{:>14}{:>10}\n", step.name,
                        step.out.empty() ? "" : shape(step.in) + " -> " + shape(step.out) + by,
                        step.layers, format_count(step.parameters / step.layers), flops);
  }
  return text + "FLOPs and parameters are those of one layer; rows are the tokens of the batch.\n";
}

std::string parameters_text(const Analysis& a) {
  std::string text = "\nparameters\n";
  for (size_t i = 0; i < a.steps.size();) {
    const std::string& part = a.steps[i].part;
    int64_t sum = 0;
    std::set<int64_t> layers;
    for (; i < a.steps.size() && a.steps[i].part == part; ++i) {
      sum += a.steps[i].parameters;
      if (a.steps[i].parameters > 0) layers.insert(a.steps[i].layers);
    }
    if (sum > 0) text += fmt::format("  {:38}  {}\n", part, of_layers(sum, layers));
  }
  return text + fmt::format("  {:38}  {}\n", "total", format_count(a.parameters));
}

std::string flops_text(const Analysis& a) {
  const auto line = [](const char* name, double flops, const std::string& note = "") {
    return fmt::format("  {:28}{:>16}{}{}\n", name, decimal(flops), note.empty() ? "" : "  ", note);
  };
  const auto forward = static_cast<double>(a.forward_flops);
  const auto attention = static_cast<double>(a.attention_flops);
  std::string text = "\nFLOPs of the batch (products: a multiplication and an addition each)\n";
  text += line("forward", forward);
  text += line("  of which attention", attention,
               fmt::format("{:.1f} %{}", 100 * attention / std::max(1.0, forward),
                           a.has_image ? "" : ": it grows with the square of the length"));
  text += line("training, plain attention", static_cast<double>(a.training_flops),
               "the backward pass has two products for each");
  if (a.attention.has_flash) {
    text += line("training, flash attention", static_cast<double>(a.training_flash_flops),
                 "which computes the scores again");
  }
  if (a.decoding_flops > 0) {
    text += line("token by token over caches", static_cast<double>(a.decoding_flops));
  }
  if (a.uncached_decoding_flops > 0) {
    text += line("token by token without", a.uncached_decoding_flops,
                 fmt::format("{:.0f} times as many", a.uncached_decoding_flops / forward));
  }
  return text;
}

std::string bytes_line(const std::string& name, const Bytes& b, const std::string& note = "") {
  return fmt::format("  {:38}{:>12}{:>12}{}{}\n", name, binary(b.f32), binary(b.bf16),
                     note.empty() ? "" : "  ", note);
}

std::string memory_text(const Analysis& a) {
  std::string text = fmt::format("\n{:40}{:>12}{:>12}\n", "bytes", "f32", "bf16");
  text += bytes_line("weights", a.weights);
  text += bytes_line("gradients, Adam, masters (training)", a.optimizer);
  text += bytes_line("activations kept (training)", a.kept, "attention matrices aside");
  text += bytes_line("  with --recompute", a.recomputed, "what enters each layer");
  text += bytes_line("activations at once (inference)", a.at_once);
  if (a.decoding_flops > 0) {
    text += bytes_line("cache of keys and values", a.cache);
    text += bytes_line("  of a written token", a.cache_token);
    if (a.cache_source.f32 > 0) text += bytes_line("  of a source token", a.cache_source);
  }
  const inspect::AttentionMemory& m = a.attention;
  text += fmt::format("attention: {} matrices of up to {} entries\n", format_count(m.matrices),
                      format_count(m.entries));
  text += bytes_line("one matrix (a head, a sequence)", m.head);
  text += bytes_line("plain attention, training", m.all, "all of them");
  text += bytes_line("plain attention, inference", m.one_layer, "a layer's");
  if (!m.has_flash) return text + "  (flash attention is of dot products only)\n";
  text += bytes_line("flash attention, training", m.flash, "a sum a row");
  text += bytes_line("flash attention, inference", {});
  return text;
}

std::string milliseconds(double ms) { return ms < 0 ? "-" : fmt::format("{:.3f}", ms); }

// Steps, parameters, FLOPs and bytes.
std::string analysis_text(const Analysis& a) {
  const inspect::Workload& w = a.workload;
  if (a.has_image) {
    const std::string written =
        a.has_source ? fmt::format(", {} of a caption", counted(w.target, "token")) : "";
    return fmt::format("{}  ({}): {} parameters; {} of {} x {} pixels, {} states each{}\n\n",
                       a.name, a.type, format_count(a.parameters), counted(w.batch, "image"),
                       w.image.height, w.image.width, format_count(w.source), written) +
           steps_text(a) + parameters_text(a) + flops_text(a) + memory_text(a);
  }
  const std::string target = a.has_source ? fmt::format(" in, {} out", format_count(w.target)) : "";
  const std::string window =
      w.window > 0 ? fmt::format(", self-attention in blocks of {}", w.window) : "";
  return fmt::format("{}  ({}): {} parameters; {} sequence{} of {} positions{}{}\n\n", a.name,
                     a.type, format_count(a.parameters), w.batch, w.batch == 1 ? "" : "s",
                     format_count(w.source), target, window) +
         steps_text(a) + parameters_text(a) + flops_text(a) + memory_text(a);
}

// --- images of several sizes ---------------------------------------------------------------------

// The model made for images of a size.
Analysis analyze_image(const Flags& f, const inspect::Workload& workload) {
  std::vector<std::string> settings = f.settings;
  if (workload.image.height > 0) {
    const auto fields = inspect::find_size(f.name)->fields();
    if (std::ranges::find(fields, "image_size", &Field::key) != fields.end()) {
      settings.push_back(fmt::format("image_size={}", workload.image.height));
    }
  }
  return inspect::analyze(*inspect::find_size(f.name, settings), f.name, workload);
}

// One for each size, or one for that which the model was made for.
std::vector<Analysis> analyze_images(const Flags& f) {
  check(f.patch == 1, ErrorKind::usage,
        "{} has patches of its own; leave --patch out, or set its "
        "with --set",
        f.name);
  std::vector<Analysis> all;
  inspect::Workload workload = f.workload;
  for (const int64_t size : f.images) {
    check(size >= 1 && size <= 1 << 14, ErrorKind::usage,
          "--image {}: a size from 1 to 16384 is needed", size);
    workload.image = {size, size};
    all.push_back(analyze_image(f, workload));
  }
  if (all.empty()) all.push_back(analyze_image(f, workload));
  return all;
}

double per_pixel(const Analysis& a, int64_t flops) {
  const ImageSize size = a.workload.image;
  return static_cast<double>(flops) /
         static_cast<double>(a.workload.batch * size.height * size.width);
}

std::string sizes_text(const std::vector<Analysis>& all) {
  if (all.size() < 2) return "";
  std::string text =
      fmt::format("\n{:14}{:>10}{:>12}{:>14}{:>18}{:>12}{:>25}\n", "image", "states", "forward",
                  "a pixel", "of it attention", "a pixel", "kept in training, bf16");
  for (const Analysis& a : all) {
    const ImageSize size = a.workload.image;
    text += fmt::format(
        "{:14}{:>10}{:>12}{:>14}{:>18}{:>12}{:>25}\n",
        fmt::format("{} x {}", size.height, size.width), format_count(a.workload.source),
        decimal(static_cast<double>(a.forward_flops)), decimal(per_pixel(a, a.forward_flops)),
        decimal(static_cast<double>(a.attention_flops)), decimal(per_pixel(a, a.attention_flops)),
        binary(a.kept.bf16));
  }
  return text +
         "FLOPs of the batch; a pixel: what does not grow along this column is linear in the "
         "image's area.\n";
}

Json sizes_json(const std::vector<Analysis>& all) {
  return inspect::json_list(all, [](const Analysis& a) {
    return Json::object(
        {{"image", std::vector<int64_t>{a.workload.image.height, a.workload.image.width}},
         {"states", a.workload.source},
         {"forward", a.forward_flops},
         {"attention", a.attention_flops},
         {"kept_bf16", a.kept.bf16},
         {"kept_f32", a.kept.f32}});
  });
}

// From where self-attention takes longer than a kind of layer whose price is linear in n: by the
// formulas, and on this machine.
struct Crossing {
  std::string layer;
  int64_t n = 0;
  std::optional<double> measured = {};
};

std::vector<Crossing> crossings(const inspect::LayerSizes& s,
                                const std::vector<inspect::LayerCost>& costs,
                                const std::vector<bench::LayerTimes>& curve) {
  constexpr size_t kRecurrent = 0, kConvolutional = 1, kAttention = 2;
  return {{costs[kRecurrent].layer, s.d, bench::crossing(curve, kAttention, kRecurrent)},
          {costs[kConvolutional].layer, s.kernel * s.d,
           bench::crossing(curve, kAttention, kConvolutional)}};
}

// The table of layers and, where there is one, the measured curve.
std::string layers_text(const inspect::LayerSizes& s, const std::vector<inspect::LayerCost>& costs,
                        const std::vector<bench::LayerTimes>& curve) {
  std::string text = fmt::format(
      "\none layer over n = {} positions of width d = {} (convolution of k = {}, reach r = {})\n",
      format_count(s.n), s.d, s.kernel, s.reach);
  text += fmt::format("  {:28}{:>20}{:>22}{:>20}\n", "kind", "operations", "one after the other",
                      "longest path");
  for (const inspect::LayerCost& c : costs) {
    const auto cell = [](const std::string& formula, double value) {
      return formula == "1" ? std::string("1") : formula + " = " + decimal(value);
    };
    text +=
        fmt::format("  {:28}{:>20}{:>22}{:>20}\n", c.layer, cell(c.operations, c.operation_count),
                    cell(c.sequential, c.sequential_count), cell(c.path, c.path_count));
  }
  if (curve.empty()) return text;
  text += "\nmilliseconds of such a layer on this machine, f32 (what the table counts, no more)\n";
  text += fmt::format("  {:>10}", "n");
  for (const inspect::LayerCost& c : costs) text += fmt::format("{:>28}", c.layer);
  text += "\n";
  for (const bench::LayerTimes& times : curve) {
    text += fmt::format("  {:>10}", format_count(times.n));
    for (const double ms : times.milliseconds) text += fmt::format("{:>28}", milliseconds(ms));
    text += "\n";
  }
  text += fmt::format("\n  {:28}{:>20}{:>22}\n", "self-attention is slower than", "by formulas",
                      "measured");
  for (const Crossing& c : crossings(s, costs, curve)) {
    text += fmt::format(
        "  {:28}{:>20}{:>22}\n", c.layer, "n > " + format_count(c.n),
        c.measured ? "n > " + format_count(std::llround(*c.measured)) : "at no length timed");
  }
  return text;
}

// The same for programs.
Json layers_json(const inspect::LayerSizes& s, const std::vector<inspect::LayerCost>& costs,
                 const std::vector<bench::LayerTimes>& curve) {
  Json json = Json::object(
      {{"n", s.n}, {"d", s.d}, {"kernel", s.kernel}, {"reach", s.reach}, {"kinds", Json::array()}});
  for (size_t i = 0; i < costs.size(); ++i) {
    const inspect::LayerCost& c = costs[i];
    Json kind = Json::object({{"layer", c.layer},
                              {"operations", c.operations},
                              {"operation_count", c.operation_count},
                              {"sequential", c.sequential},
                              {"sequential_count", c.sequential_count},
                              {"path", c.path},
                              {"path_count", c.path_count}});
    for (const bench::LayerTimes& times : curve) {
      if (times.milliseconds[i] < 0) continue;
      kind["measured"].push_back(
          Json::object({{"n", times.n}, {"milliseconds", times.milliseconds[i]}}));
    }
    json["kinds"].push_back(kind);
  }
  if (curve.empty()) return json;
  for (const Crossing& c : crossings(s, costs, curve)) {
    json["crossings"].push_back(
        Json::object({{"layer", c.layer}, {"n", c.n}, {"measured", c.measured}}));
  }
  return json;
}

// -------------------------------------------------------------------------------------------------

void run(Flags f) {
  wants_page(f.page);
  apply_threads(f.threads);
  const auto config = inspect::find_size(f.name, f.settings);
  std::vector<Analysis> images;
  if (config->reads_images()) {
    images = analyze_images(f);
  } else {
    use_image(f);
  }
  const Analysis analysis =
      images.empty() ? inspect::analyze(*config, f.name, f.workload) : images.front();
  inspect::LayerSizes& sizes = f.sizes;
  if (sizes.n == 0) sizes.n = analysis.workload.source;
  if (sizes.d == 0) sizes.d = analysis.width;
  const auto costs = inspect::layer_costs(sizes);
  std::vector<bench::LayerTimes> curve;
  if (f.measure) {
    check(f.seconds > 0 && f.seconds <= 3600, ErrorKind::usage,
          "--seconds is {}; it must be above 0 and at most 3600", f.seconds);
    check(sizes.n <= (int64_t{1} << 28) / sizes.d, ErrorKind::usage,
          "--measure: {} positions of width {} are too large to be timed; ask for less with --n",
          sizes.n, sizes.d);
    curve = bench::layer_times(sizes, f.seconds);
  }
  const Json layers = layers_json(sizes, costs, curve);
  const std::optional<RanksCost> ranks = ranks_cost(f.ranks, analysis);
  if (!f.page.empty()) {
    write_page("analyze", "the costs", f.page,
               inspect::analysis_page(f.name, analysis, layers, sizes_json(images),
                                      ranks ? page_json(*ranks) : Json()));
  }
  if (f.json) {
    Json json = inspect::to_json(analysis);
    json["layers"] = layers;
    if (!images.empty()) json["sizes"] = sizes_json(images);
    if (ranks) json["ranks"] = to_json(*ranks);
    fmt::print("{}\n", json.dump());
  } else if (f.page.empty()) {
    fmt::print("{}{}{}{}", analysis_text(analysis), sizes_text(images),
               layers_text(sizes, costs, curve), ranks ? to_text(*ranks) : "");
  }
}

}  // namespace

void add_analyze(Subcommand& app) {
  auto [command, flags] = app.add_command<Flags>(
      "analyze", "Shapes, parameters, FLOPs and bytes of a model, from its sizes alone", run);
  command
      .add_option("model", flags.name,
                  fmt::format("a model directory, run, config.json or settings file, or a size: {}",
                              fmt::join(inspect::size_names(), ", ")))
      .required();
  command.add_option("--set", flags.settings, "FIELD=VALUE: another value of a field; repeatable")
      .type_name("FIELD=VALUE");
  inspect::Workload& w = flags.workload;
  command.add_setting("--batch", w.batch, "sequences at once");
  command.add_setting("--length", w.source,
                      "tokens of a sequence or source; 0: its longest, or 512");
  command.add_setting("--target-length", w.target,
                      "tokens of a translation or caption; 0: as --length, of captions 16");
  command
      .add_option("--image", flags.images,
                  "pixels of an image's side; several sizes of a model that reads images: 224,448; "
                  "of others a sequence is such an image")
      .delimiter(',');
  command.add_setting("--patch", flags.patch, "that is cut into patches of so many pixels squared");
  command.add_option("--window", w.window,
                     "self-attention within blocks of so many positions (of an image: squared)");
  command.add_option("--n", flags.sizes.n, "positions in the table of layers [the length]")
      .positive();
  command.add_option("--d", flags.sizes.d, "width in the table of layers [the model's]").positive();
  command.add_setting("--kernel", flags.sizes.kernel, "positions that its convolution sees");
  command.add_setting("--reach", flags.sizes.reach, "positions that its restricted attention sees");
  const Option measure =
      command.add_flag("--measure", flags.measure, "time such layers on this machine");
  command.add_setting("--seconds", flags.seconds, "for --measure, roughly").needs(measure);
  add_threads_flag(command, flags.threads, "; of --measure");
  add_ranks_flags(command, flags.ranks);
  command.add_flag("--json", flags.json, "one line of JSON");
  add_page_flag(command, flags.page, "write a page instead of printing the tables");
}

}  // namespace heddle::cli
