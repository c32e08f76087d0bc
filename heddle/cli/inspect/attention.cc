// heddle attention: what each head looks at, as a page, as JSON, as a table.

#include "heddle/base/progress.h"
#include "heddle/cli/commands.h"
#include "heddle/cli/flags.h"
#include "heddle/inspect/attention_maps.h"
#include "heddle/inspect/images/image_attention.h"

namespace heddle::cli {
namespace {

struct Flags : InspectFlags {
  std::string page, from, to;
  std::vector<int64_t> layers, heads;
  double discard = 0;
  bool has_no_importance = false, json = false;
};

// More heads than these are not read.
constexpr size_t kTableRows = 20;

void run_image(const Flags& flags) {
  check(flags.from.empty() && flags.to.empty(), ErrorKind::usage,
        "--from and --to are words of a text; leave them out, or the image");
  check(flags.discard == 0 || flags.json || !flags.page.empty(), ErrorKind::usage,
        "--discard is of the roll-out, which the table of heads does not have; give --page or "
        "--json");
  wants_page(flags.page);
  const inspect::ImageSubject subject = open_image(flags);
  const inspect::ImageMaps maps =
      inspect::image_maps(subject, {.layers = flags.layers,
                                    .heads = flags.heads,
                                    .importance = !flags.has_no_importance,
                                    .discard = flags.discard});
  if (!flags.page.empty()) {
    write_page("attention", counted(std::ssize(maps.heads), "head"), flags.page,
               inspect::image_attention_page(subject, maps));
  }
  if (flags.json) {
    fmt::print("{}\n", inspect::image_attention_json(subject, maps).dump());
  } else if (flags.page.empty()) {
    fmt::print("{}", inspect::image_heads_table(subject, maps, kTableRows));
  }
}

void run(const Flags& flags) {
  if (!flags.image.empty()) return run_image(flags);
  check(flags.from.empty() == flags.to.empty(), ErrorKind::usage,
        "--from and --to go together: --from it --to animal");
  check(flags.discard == 0, ErrorKind::usage,
        "--discard is of the roll-out over an image; leave it out, or give an image");
  wants_page(flags.page);
  const inspect::Subject subject = open_subject(flags);
  inspect::HeadsOptions options{.layers = flags.layers,
                                .heads = flags.heads,
                                .link = {},
                                .importance = !flags.has_no_importance};
  if (!flags.from.empty()) options.link = inspect::Link{flags.from, flags.to};
  const std::vector<inspect::HeadMap> maps = inspect::attention_maps(subject, options);
  const size_t shown = flags.layers.empty() && flags.heads.empty() ? inspect::first_shown(maps) : 0;
  if (!flags.page.empty()) {
    write_page("attention", counted(std::ssize(maps), "head"), flags.page,
               inspect::attention_page(subject, maps, options.link, shown));
  }
  if (flags.json) {
    fmt::print("{}\n", inspect::attention_json(subject, maps, options.link).dump());
  } else if (flags.page.empty()) {
    fmt::print("{}", inspect::heads_table(subject, maps, options.link, kTableRows));
  }
}

}  // namespace

void add_attention(Subcommand& app) {
  auto [command, flags] = app.add_command<Flags>(
      "attention",
      "Show what each head of a model looks at in a text or an image: a page, JSON, or a table",
      run);
  add_inspect_flags(command, flags);
  add_page_flag(command, flags.page, "write a page of all heads");
  command.add_flag("--json", flags.json, "one line of JSON with tokens, weights and statistics");
  command.add_option("--from", flags.from, "rank the heads by the weight from this word ...");
  command.add_option("--to", flags.to, "... to this one, as in --from it --to animal");
  command.add_option("--layer", flags.layers, "only these layers, from 0: --layer 0,5")
      .delimiter(',');
  command.add_option("--head", flags.heads, "only these heads, from 0").delimiter(',');
  command.add_option("--discard", flags.discard,
                     "of an image: roll-out passes over this share of each layer's weights, the "
                     "least: --discard 0.9");
  command.add_flag("--no-importance", flags.has_no_importance,
                   "leave out what the loss is without each head, which takes a pass a head");
}

}  // namespace heddle::cli
