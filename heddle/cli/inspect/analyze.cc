// heddle analyze: what a model costs, from its sizes alone.
#include <memory>

#include "heddle/base/parallel.h"
#include "heddle/base/progress.h"
#include "heddle/bench/layer_curve.h"
#include "heddle/cli/commands.h"
#include "heddle/cli/flags/page_flag.h"
#include "heddle/cli/inspect/analyze_text.h"
#include "heddle/inspect/analysis.h"
#include "heddle/inspect/model_sizes.h"
#include "heddle/inspect/pages/page.h"

namespace heddle::cli {
namespace {

struct Flags {
  std::string name;
  std::vector<std::string> settings;
  inspect::Workload workload;
  int64_t image = 0, patch = 1;
  inspect::LayerSizes sizes{.n = 0, .d = 0};
  bool measure = false, json = false;
  double seconds = 8;
  int threads = 0;
  std::string page;
};

// An image as a sequence: a position a patch, windows of so many patches in either direction.
void use_image(Flags& f) {
  if (f.image == 0) return;
  check(f.image >= 1 && f.patch >= 1 && f.image % f.patch == 0 && f.image <= 1 << 14,
        ErrorKind::usage,
        "--image {} cannot be cut into patches of {}: a size up to 16384 that the patch divides is "
        "needed",
        f.image, f.patch);
  check(f.workload.source == 0, ErrorKind::usage,
        "--image {} and --length {} both say how long a sequence is; give one", f.image,
        f.workload.source);
  const int64_t side = f.image / f.patch;
  f.workload.source = side * side;
  const int64_t window = f.workload.window;
  check(window <= side, ErrorKind::usage, "--window {} is larger than the {} x {} patches", window,
        side, side);
  f.workload.window = window * window;
}

void run(Flags f) {
  use_image(f);
  if (!f.page.empty()) inspect::check_output(f.page, "the page");
  if (f.threads > 0) set_num_threads(f.threads);
  const inspect::Analysis analysis =
      inspect::analyze(*inspect::find_size(f.name, f.settings), f.name, f.workload);
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
  if (!f.page.empty()) inspect::write_analysis_page(f.page, f.name, analysis, layers);
  if (f.json) {
    Json json = inspect::to_json(analysis);
    json["layers"] = layers;
    fmt::print("{}\n", json.dump());
  } else if (f.page.empty()) {
    fmt::print("{}{}", analysis_text(analysis), layers_text(sizes, costs, curve));
  }
}

}  // namespace

void add_analyze(Subcommand& app) {
  auto flags = std::make_shared<Flags>();
  Subcommand command = app.add_subcommand(
      "analyze", "Shapes, parameters, FLOPs and bytes of a model, from its sizes alone");
  command
      ->add_option(
          "model", flags->name,
          fmt::format("a model directory, run, config.json or settings file, or a size: {}",
                      fmt::join(inspect::size_names(), ", ")))
      ->required();
  command->add_option("--set", flags->settings, "FIELD=VALUE: another value of a field; repeatable")
      ->type_name("FIELD=VALUE");
  inspect::Workload& w = flags->workload;
  command->add_option("--batch", w.batch, "sequences at once")->capture_default_str();
  command
      ->add_option("--length", w.source, "tokens of a sequence or source; 0: its longest, or 512")
      ->capture_default_str();
  command->add_option("--target-length", w.target, "tokens of a translation; 0: as --length")
      ->capture_default_str();
  command->add_option("--image", flags->image, "a sequence is an image of so many pixels squared");
  command->add_option("--patch", flags->patch, "cut into patches of so many pixels squared")
      ->capture_default_str();
  command->add_option("--window", w.window,
                      "self-attention within blocks of so many positions (of an image: squared)");
  command->add_option("--n", flags->sizes.n, "positions in the table of layers [the length]");
  command->add_option("--d", flags->sizes.d, "width in the table of layers [the model's]");
  command->add_option("--kernel", flags->sizes.kernel, "positions that its convolution sees")
      ->capture_default_str();
  command->add_option("--reach", flags->sizes.reach, "positions that its restricted attention sees")
      ->capture_default_str();
  command->add_flag("--measure", flags->measure, "time such layers on this machine");
  command->add_option("--seconds", flags->seconds, "for --measure, roughly")->capture_default_str();
  command->add_option("-t,--threads", flags->threads, "threads of --measure; 0: one a core");
  command->add_flag("--json", flags->json, "one line of JSON");
  add_page_flag(*command, flags->page, "write a page instead of printing the tables");
  command->callback([flags] { run(*flags); });
}

}  // namespace heddle::cli
