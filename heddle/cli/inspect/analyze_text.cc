// Numbers of an analysis as a person reads them.
#include "heddle/cli/inspect/analyze_text.h"

#include <array>

#include "heddle/base/progress.h"

namespace heddle::cli {
namespace {

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

// The sum over layers, or that of one where all are alike.
std::string of_layers(int64_t sum, int64_t layers) {
  if (layers == 1 || sum % layers != 0) return format_count(sum);
  return fmt::format("{} x {} = {}", format_count(sum / layers), layers, format_count(sum));
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
    text += fmt::format("  {:40}{:48}{:>8}{:>14}{:>10}\n", step.name,
                        step.out.empty() ? "" : shape(step.in) + " -> " + shape(step.out) + by,
                        step.layers, format_count(step.parameters / step.layers), flops);
  }
  return text + "FLOPs and parameters are those of one layer; rows are the tokens of the batch.\n";
}

std::string parameters_text(const Analysis& a) {
  std::string text = "\nparameters\n";
  for (size_t i = 0; i < a.steps.size();) {
    const std::string& part = a.steps[i].part;
    int64_t sum = 0, layers = 1;
    for (; i < a.steps.size() && a.steps[i].part == part; ++i) {
      sum += a.steps[i].parameters;
      layers = std::max(layers, a.steps[i].layers);
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
               fmt::format("{:.1f} %: it grows with the square of the length",
                           100 * attention / std::max(1.0, forward)));
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

}  // namespace

std::string analysis_text(const Analysis& a) {
  const inspect::Workload& w = a.workload;
  const std::string target = a.has_source ? fmt::format(" in, {} out", format_count(w.target)) : "";
  const std::string window =
      w.window > 0 ? fmt::format(", self-attention in blocks of {}", w.window) : "";
  return fmt::format("{}  ({}): {} parameters; {} sequence{} of {} positions{}{}\n\n", a.name,
                     a.type, format_count(a.parameters), w.batch, w.batch == 1 ? "" : "s",
                     format_count(w.source), target, window) +
         steps_text(a) + parameters_text(a) + flops_text(a) + memory_text(a);
}

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
  return text;
}

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
  return json;
}

}  // namespace heddle::cli
