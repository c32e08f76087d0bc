// heddle shortlist: which tokens a translation may consist of, by those of its source.
#include <filesystem>
#include <system_error>

#include "heddle/base/progress.h"
#include "heddle/cli/commands.h"
#include "heddle/cli/flags.h"
#include "heddle/data/parallel_text.h"
#include "heddle/train/alignment/pairs_shortlist.h"

namespace heddle::cli {
namespace {

struct Flags {
  std::string model, source, target, output;
  train::PairsShortlistOptions options;
  int threads = 0;
};

// Pairs as numbers of tokens; those with a side without any are left out.
struct TokenPairs {
  train::WordLines source, target;
};

TokenPairs read_tokens(const Flags& flags, const LoadedModel& model) {
  TokenPairs pairs;
  ParallelReader reader({flags.source, flags.target});
  const auto where = [&](const std::string& path) {
    return fmt::format("{}: line {}", path, reader.line_number());
  };
  for (std::string a, b; reader.next(a, b);) {
    const std::vector<int32_t> source = source_ids(model, a, where(flags.source), true, nullptr);
    const std::vector<int32_t> target = target_ids(model, b, where(flags.target), true, nullptr);
    if (source.empty() || target.empty()) continue;
    pairs.source.add_tokens(source);
    pairs.target.add_tokens(target);
  }
  check(pairs.source.lines() > 0, ErrorKind::data,
        "{}: there is no pair of lines that are not blank; shortlist learns from such pairs",
        flags.source);
  return pairs;
}

std::vector<int32_t> ids_of_line(const train::WordLines& lines, int64_t line) {
  std::vector<int32_t> ids;
  for (const int32_t number : lines.line(line)) ids.push_back(number - 1);
  return ids;
}

void report(const Flags& flags, const TokenPairs& pairs, int64_t vocab) {
  const Shortlist made(flags.output);
  train::ShortlistCounts counts;
  for (int64_t i = 0; i < pairs.source.lines(); ++i) {
    counts.add(made, ids_of_line(pairs.source, i), ids_of_line(pairs.target, i));
  }
  fmt::print(
      "{}: a source has {:.0f} of {} tokens as candidates (mean of {}; {} always), among "
      "them {:.2f} % of its translation's\n",
      flags.output, static_cast<double>(counts.candidates) / static_cast<double>(counts.pairs),
      format_count(vocab), counted(counts.pairs, "pair"), made.always().size(),
      100 * static_cast<double>(counts.found) / static_cast<double>(counts.target_tokens));
}

void run(const Flags& flags) {
  apply_threads(flags.threads);
  inspect::check_output(flags.output, "the shortlist");
  const LoadedModel model = load_translation_model(flags.model);
  const EncoderDecoderFacts& facts = model.translator().facts();
  train::PairsShortlistOptions options = flags.options;
  options.shares_tokens = !facts.has_two_vocabularies;
  const TokenPairs pairs = read_tokens(flags, model);
  write_shortlist(flags.output,
                  train::pairs_shortlist(pairs.source, pairs.target, facts.source_vocab_size,
                                         facts.target_vocab_size, options),
                  *model.tokenizer, model.target());
  std::error_code error;  // a pipe or /dev/stdout cannot be read again
  if (std::filesystem::is_regular_file(flags.output, error)) {
    report(flags, pairs, facts.target_vocab_size);
  }
}

}  // namespace

void add_shortlist(Subcommand& app) {
  auto [command, flags] = app.add_command<Flags>(
      "shortlist",
      "Learn from pairs which tokens may stand in a translation, by the tokens of its source, for "
      "translate --shortlist",
      run);
  add_model_argument(command, flags.model);
  command.add_option("--src", flags.source, "sentences, one a line (plain or gzip)").required();
  command.add_option("--tgt", flags.target, "their translations, one a line").required();
  command.add_option("-o,--output", flags.output, "the file to write")
      .required()
      .type_name("FILE")
      .writes_file();
  command.add_setting("--candidates", flags.options.each,
                      "likeliest target tokens of each source token");
  command.add_setting("--frequent", flags.options.frequent,
                      "most frequent target tokens, which may always come");
  add_threads_flag(command, flags.threads);
}

}  // namespace heddle::cli
