// heddle explain: one attention call step by step, of a model or of matrices from the command line.

#include "heddle/base/progress.h"
#include "heddle/cli/commands.h"
#include "heddle/cli/flags.h"
#include "heddle/inspect/explanation.h"
#include "heddle/text/strings/strings.h"

namespace heddle::cli {
namespace {

struct Flags : InspectFlags {
  Subcommand command;
  std::string page;
  inspect::ExplainedHead head;
  std::string q, k, v, scores, score = "dot", tokens;
  double divisor = 0;
  std::vector<int64_t> cell;
  int64_t query = 0;
  Option has_divisor, has_layer, has_query;
  bool is_causal = false;

  bool has_matrices() const { return !q.empty() || !k.empty() || !scores.empty(); }
};

inspect::Explanation explain_given(const Flags& flags) {
  check(flags.score == "dot" || flags.score == "gaussian", ErrorKind::usage,
        "--score is '{}'; dot or gaussian is needed", flags.score);
  check(flags.q.empty() == flags.k.empty(), ErrorKind::usage,
        "--q and --k go together; give both, or --scores");
  check(flags.scores.empty() || flags.command.get_option("--score").count() == 0, ErrorKind::usage,
        "--score says how --q and --k give scores, and --scores are given; leave one of them out");
  inspect::ExplainedMatrices given;
  given.score = flags.score == "dot" ? inspect::Score::dot : inspect::Score::gaussian;
  if (!flags.q.empty()) given.q = inspect::parse_matrix(flags.q, "--q");
  if (!flags.k.empty()) given.k = inspect::parse_matrix(flags.k, "--k");
  if (!flags.v.empty()) given.v = inspect::parse_matrix(flags.v, "--v");
  if (!flags.scores.empty()) given.scores = inspect::parse_matrix(flags.scores, "--scores");
  if (flags.has_divisor.count() > 0) given.divisor = flags.divisor;
  given.is_causal = flags.is_causal;
  given.tokens = split_at_spaces(flags.tokens);
  return inspect::explain_matrices(given);
}

inspect::Explanation explain_image(const Flags& flags) {
  inspect::ExplainedCell which{.kind = flags.head.kind, .head = flags.head.head};
  if (flags.has_layer.count() > 0) which.layer = flags.head.layer;
  if (flags.has_query.count() > 0) which.query = flags.query;
  if (!flags.cell.empty()) {
    check(flags.cell.size() == 2, ErrorKind::usage, "--cell is a row and a column: --cell 3,4");
    which.cell = {flags.cell[0], flags.cell[1]};
  }
  return inspect::explain_cell(open_image(flags), which);
}

// Of what is explained, a model or matrices.
void check_flags(const Flags& flags) {
  check(flags.model.empty() || !flags.has_matrices(), ErrorKind::usage,
        "a model and matrices were given; explain one of them");
  const auto refuse = [&](std::initializer_list<const char*> names, const char* whose) {
    for (const char* name : names) {
      check(flags.command.get_option(name).count() == 0, ErrorKind::usage, "{} is of {}", name,
            whose);
    }
  };
  if (flags.model.empty()) {
    refuse({"--text", "--target", "--source-language", "--target-language", "--ids", "--truncate",
            "--precision", "--kind", "--layer", "--head"},
           "a model; give one, or leave it out");
  } else {
    refuse({"--v", "--score", "--divide", "--causal", "--tokens"},
           "matrices, --q and --k or --scores; leave it out, or the model");
  }
}

void run(const Flags& flags) {
  wants_page(flags.page);
  check_flags(flags);
  check(flags.cell.empty() || !flags.image.empty(), ErrorKind::usage,
        "--cell is of an image; give the image behind the model");
  check(flags.has_query.count() == 0 || !flags.image.empty(), ErrorKind::usage,
        "--query is of a detector over an image; give the image behind the model");
  const inspect::Explanation e = flags.model.empty() ? explain_given(flags)
                                 : !flags.image.empty()
                                     ? explain_image(flags)
                                     : inspect::explain_head(open_subject(flags), flags.head);
  if (flags.page.empty()) {
    fmt::print("{}", inspect::explanation_text(e));
    return;
  }
  write_page("explain", counted(std::ssize(e.steps), "step"), flags.page,
             inspect::explanation_page(e));
}

}  // namespace

void add_explain(Subcommand& app) {
  auto [command, flags] = app.add_command<Flags>(
      "explain", "Follow one attention call step by step, with its numbers", run);
  flags.command = command;
  add_inspect_flags(command, flags, false);
  add_page_flag(command, flags.page, "write a page instead of printing the steps");
  command.add_option("--kind", flags.head.kind,
                     "encoder, decoder, cross or self; default the last");
  flags.has_layer =
      command.add_setting("--layer", flags.head.layer, "from 0; of an image the last");
  command.add_setting("--head", flags.head.head, "from 0");
  command
      .add_option("--cell", flags.cell,
                  "row and column of the patch of an image that is followed, from 0: --cell 3,4; "
                  "without it the class token, or the middle; of a detector's encoder alone")
      .delimiter(',');
  flags.has_query = command.add_option(
      "--query", flags.query,
      "a detector's query that is followed, from 0; without it the surest of its object");
  command.add_option("--q", flags.q,
                     "queries, without a model: \"1 2; 3 4\", JSON, or a file with either");
  command.add_option("--k", flags.k, "keys, a row each");
  command.add_option("--v", flags.v, "values, a row for each key");
  command.add_option("--scores", flags.scores, "scores, in place of --q and --k");
  command.add_setting("--score", flags.score, "dot: q·k, or gaussian: -|q - k|²/2");
  flags.has_divisor = command.add_option(
      "--divide", flags.divisor, "what scores are divided by; default sqrt of the width of q");
  command.add_flag("--causal", flags.is_causal, "no query sees a key that comes after it");
  command.add_option("--tokens", flags.tokens, "names of queries and keys: \"I am a student\"");
}

}  // namespace heddle::cli
