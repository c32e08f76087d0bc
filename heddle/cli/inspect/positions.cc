// heddle positions: the table of positions as numbers and as a page.

#include "heddle/inspect/positions.h"
#include "heddle/base/error.h"
#include "heddle/base/progress.h"
#include "heddle/cli/commands.h"
#include "heddle/cli/flags.h"
#include "heddle/inspect/run_history.h"

namespace heddle::cli {
namespace {

struct Flags {
  std::string model, stack, page;
  inspect::PositionOptions options{.positions = 0, .width = 0};
  bool json = false;
  Option layout, frequencies, base;
};

// What says nothing of such positions is no flag of theirs.
void check_flags(const Flags& f) {
  check(f.stack.empty() || !f.model.empty(), ErrorKind::usage,
        "--stack is of a model; give one, or leave it out");
  const auto refuse = [&](const Option& option, const char* kind) {
    check(option.count() == 0 || f.options.kind == kind, ErrorKind::usage,
          "{} is of {} positions; leave it out, or ask for --kind {}", option.name(), kind, kind);
  };
  refuse(f.layout, "sinusoidal");
  refuse(f.frequencies, "sinusoidal");
  refuse(f.base, "rotary");
}

// As many as are easily read, or make a good picture.
inspect::PositionTable make_table(const Flags& f) {
  const bool is_page = !f.page.empty();
  if (!f.model.empty()) {
    const int64_t positions = f.options.positions == 0 && !is_page ? 10 : f.options.positions;
    return inspect::model_positions(f.model, f.stack, positions);
  }
  inspect::PositionOptions o = f.options;
  if (o.positions == 0) o.positions = is_page ? 128 : 10;
  if (o.width == 0) o.width = is_page ? 128 : 8;
  return inspect::position_table(o);
}

void print_text(const inspect::PositionTable& t) {
  const bool is_window = t.window > 0;
  const int wide = is_window ? 7 : 5;
  fmt::print("{} positions: {}\n\n{:>{}}", t.kind, t.about, is_window ? "to key" : "pos", wide);
  for (const std::string& name : t.names) fmt::print(" {:>9}", name);
  fmt::print("\n");
  for (int64_t pos = 0; pos < t.positions; ++pos) {
    fmt::print("{:>{}}", is_window ? t.row_names[pos] : std::to_string(pos), wide);
    for (int64_t i = 0; i < t.columns; ++i) fmt::print(" {:>9.4f}", t.values[pos * t.columns + i]);
    fmt::print("\n");
  }
}

void run(const Flags& f) {
  check(f.options.positions >= 0 && f.options.width >= 0, ErrorKind::usage,
        "--positions is {} and --width {}; they must be at least 1", f.options.positions,
        f.options.width);
  check_flags(f);
  wants_page(f.page);
  const inspect::PositionTable table = make_table(f);
  if (!f.page.empty()) {
    const std::string of = f.model.empty() ? "" : " of " + inspect::short_names({f.model})[0];
    write_page("positions", counted(table.positions, "position"), f.page,
               inspect::positions_page(table, of));
  }
  if (f.json) {
    fmt::print("{}\n", inspect::to_json(table).dump());
  } else if (f.page.empty()) {
    print_text(table);
  }
}

}  // namespace

void add_positions(Subcommand& app) {
  auto [command, flags] = app.add_command<Flags>(
      "positions", "The table that tells positions apart, as numbers or as a heat map", run);
  inspect::PositionOptions& o = flags.options;
  Option model =
      command.add_option("model", flags.model, "a model directory or run, for its own positions");
  command.add_setting("--kind", o.kind, "what tells positions apart, without a model")
      .one_of({"sinusoidal", "rotary", "none"})
      .excludes(model);
  command.add_option("--positions", o.positions,
                     "rows; 0: 10, on a page 128 or all that the model has");
  command.add_option("--width", o.width, "width of the vectors; 0: 8, on a page 128")
      .excludes(model);
  flags.layout = command
                     .add_setting("--layout", o.sinusoidal.layout,
                                  "sines and cosines in turn, or in two halves")
                     .one_of({"interleaved", "halves"})
                     .excludes(model);
  flags.frequencies =
      command
          .add_setting("--frequencies", o.sinusoidal.frequencies, "exponents 2i/d, or i/(d/2 - 1)")
          .one_of({"paper", "tensor2tensor"})
          .excludes(model);
  flags.base =
      command.add_setting("--base", o.base, "of rotary positions: pair i turns by base^(-2i/d)")
          .excludes(model);
  command.add_option("--stack", flags.stack, "whose positions, of a model with both [encoder]")
      .one_of({"encoder", "decoder"});
  command.add_flag("--json", flags.json, "one line of JSON");
  add_page_flag(command, flags.page, "write a page instead of printing the table");
}

}  // namespace heddle::cli
