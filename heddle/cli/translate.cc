// heddle translate: standard input to standard output, a line in, a line out.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>

#include "heddle/base/lines.h"
#include "heddle/base/profile.h"
#include "heddle/cli/alignment_flags.h"
#include "heddle/cli/commands.h"
#include "heddle/cli/page_flag.h"
#include "heddle/cli/text_flags.h"
#include "heddle/cli/translate_flags.h"
#include "heddle/infer/precision.h"
#include "heddle/inspect/decoding_steps.h"

namespace heddle::cli {
namespace {

struct Flags : TranslateFlags {
  bool json = false, sample = false, alignment = false;
  Sampling sampling;
  AlignmentOptions alignment_options;
  std::string prefix, prefix_file, page;
};

// Enough lines at a time that batches of like lengths fill up; one where somebody types.
constexpr size_t kBlockBytes = 1 << 18;

// A translation of a line, and its alignment if that was asked for.
struct Result {
  Translation translation;
  std::optional<Alignment> alignment;
};

Json as_json(const Result& r, const Tokenizer& tokenizer) {
  const Translation& t = r.translation;
  Json json = Json::object();
  json["text"] = t.text;
  json["score"] = t.score;
  json["tokens"] = Json::array();
  for (const int32_t id : t.ids) json["tokens"].push_back(tokenizer.token(id));
  if (r.alignment) json["alignment"] = to_pharaoh(*r.alignment);
  return json;
}

// The object of the best, with all of them under "n_best" if several were asked for.
void print_json(std::span<const Result> results, const Flags& flags, const Tokenizer& tokenizer) {
  Json json = as_json(results[0], tokenizer);
  if (flags.options.n_best > 1) {
    json["n_best"] = Json::array();
    for (const Result& r : results) json["n_best"].push_back(as_json(r, tokenizer));
  }
  print_result(json.dump());
}

// TEXT, or TEXT ||| ALIGNMENT. Several translations of a line are lines NUMBER ||| TEXT ||| SCORE,
// the form of Moses, where lines count from 0.
void print_text(std::span<const Result> results, const Flags& flags, int64_t number) {
  for (const Result& r : results) {
    std::string line = r.translation.text;
    if (flags.options.n_best > 1) {
      line = fmt::format("{} ||| {} ||| {:.6f}", number, line, r.translation.score);
    }
    if (r.alignment) line += " ||| " + to_pharaoh(*r.alignment);
    print_result(line);
  }
}

// All translations of all lines, those of a line together.
std::vector<Result> flatten(std::vector<Translation> translations) {
  std::vector<Result> results;
  for (Translation& t : translations) {
    std::vector<Translation> others = std::move(t.others);
    results.push_back({std::move(t), {}});
    for (Translation& o : others) results.push_back({std::move(o), {}});
  }
  return results;
}

// The next lines of the input; fewer at its end.
std::vector<std::string> read_block(LineReader& input, bool is_typed) {
  const ProfilePhase phase("read");
  std::vector<std::string> lines;
  size_t bytes = 0;
  for (std::string line; bytes < kBlockBytes && input.next(line);) {
    bytes += line.size() + 1;
    lines.push_back(std::move(line));
    if (is_typed) break;
  }
  return lines;
}

// The beginnings of translations: one for all lines, or a line of a file for each.
class Prefixes {
 public:
  Prefixes(const Flags& flags, const TranslationModel& model)
      : model_(model), path_(flags.prefix_file) {
    if (!flags.prefix.empty()) for_all_.push_back(prefix_ids(model, flags.prefix, "--prefix"));
    if (!path_.empty()) file_ = std::make_unique<LineReader>(path_);
  }

  std::vector<std::vector<int32_t>> next(size_t lines) {
    if (file_ == nullptr) return for_all_;
    std::vector<std::vector<int32_t>> prefixes;
    std::string text;
    while (prefixes.size() < lines) {
      check(file_->next(text), ErrorKind::data,
            "{}: it has {} lines, fewer than the input; line i is the prefix of line i", path_,
            file_->line_number());
      prefixes.push_back(
          prefix_ids(model_, text, fmt::format("{}: line {}", path_, file_->line_number())));
    }
    return prefixes;
  }

 private:
  const TranslationModel& model_;
  std::string path_;
  std::vector<std::vector<int32_t>> for_all_;
  std::unique_ptr<LineReader> file_;
};

TranslateOptions options_of(const Flags& flags) {
  TranslateOptions o = translate_options(flags);
  check(o.n_best >= 1 && o.n_best <= 1024, ErrorKind::usage,
        "--n-best is {}; it must be from 1 to 1024", o.n_best);
  check(flags.prefix.empty() || flags.prefix_file.empty(), ErrorKind::usage,
        "--prefix and --prefix-file exclude each other");
  if (flags.sample) {
    check_sampling(flags.sampling);
    o.sampling = flags.sampling;
  } else {
    o.beam = std::max(o.beam, o.n_best);
  }
  o.scores = flags.json || o.n_best > 1;
  return o;
}

// The page of the one line of the input; its translation goes to standard output as ever.
void run_steps(const Flags& flags, const TranslateOptions& options, const TranslationModel& model) {
  LineReader input("-");
  std::string line, more;
  check(input.next(line), ErrorKind::usage,
        "--page: there is no sentence; give one on standard input");
  check(!input.next(more), ErrorKind::usage,
        "--page shows how one sentence is translated, but the input has more lines; give one");
  const inspect::DecodingRecord record =
      inspect::record_decoding(model, line, {.translate = options});
  inspect::write_page(flags.page, inspect::decoding_page(record, model.target()));
  print_result(record.text);
  fmt::print(stderr, "translate: the steps are in {}; open it in a browser\n", flags.page);
}

// The alignments of all translations of lines; counts[i] are those of line i.
void align(std::vector<Result>& results, std::span<const std::string> lines,
           std::span<const size_t> counts, const Flags& flags, const TranslationModel& model) {
  std::vector<std::vector<int32_t>> sources, targets;
  for (size_t i = 0; i < lines.size(); ++i) {
    const auto ids = source_ids(model, lines[i], "", true, nullptr);
    sources.insert(sources.end(), counts[i], ids);
  }
  for (const Result& r : results) targets.push_back(r.translation.ids);
  AlignmentOptions options = flags.alignment_options;
  options.precision = resolve_precision(flags.compute.precision);
  auto alignments = align_pairs(model, sources, targets, options);
  for (size_t i = 0; i < results.size(); ++i) results[i].alignment = std::move(alignments[i]);
}

void print_block(std::vector<Translation> translations, std::span<const std::string> lines,
                 int64_t first_line, const Flags& flags, const TranslationModel& model) {
  std::vector<size_t> counts;
  for (const Translation& t : translations) counts.push_back(1 + t.others.size());
  std::vector<Result> results = flatten(std::move(translations));
  if (flags.alignment) align(results, lines, counts, flags, model);
  size_t at = 0;
  for (size_t i = 0; i < lines.size(); ++i) {
    const auto of_line = std::span(results).subspan(at, counts[i]);
    if (flags.json) {
      print_json(of_line, flags, model.target());
    } else {
      print_text(of_line, flags, first_line - 1 + static_cast<int64_t>(i));
    }
    at += counts[i];
  }
  std::fflush(stdout);
}

void run(const Flags& flags) {
  TranslateOptions options = options_of(flags);
  if (!flags.page.empty()) inspect::check_output(flags.page, "the page");
  const TranslationModel model = load_translation_model(flags.model);
  take_model_defaults(flags, model, options);
  check_alignment(model.config, flags.alignment_options);
  Prefixes prefixes(flags, model);
  if (!flags.page.empty()) {
    options.prefixes = prefixes.next(1);
    return run_steps(flags, options, model);
  }
  const bool is_typed = isatty(STDIN_FILENO) != 0;
  LineReader input("-");
  int64_t cut = 0;
  for (;;) {
    const int64_t first_line = input.line_number() + 1;
    const std::vector<std::string> lines = read_block(input, is_typed);
    if (lines.empty()) break;
    options.prefixes = prefixes.next(lines.size());
    print_block(translate_lines(model, lines, options, first_line, &cut), lines, first_line, flags,
                model);
  }
  report_cut("translate", cut, model);
}

void add_sampling_flags(CLI::App& command, Flags& flags) {
  CLI::Option* sample =
      command.add_flag("--sample", flags.sample, "draw each token at random, by its probability");
  Sampling& o = flags.sampling;
  const auto add = [&](const char* name, auto& value, const char* help) {
    command.add_option(name, value, help)->capture_default_str()->needs(sample);
  };
  add("--temperature", o.temperature, "divides the logits; below 1 likelier tokens gain");
  add("--top-k", o.top_k, "draw among the likeliest k tokens only; 0: all");
  add("--top-p", o.top_p, "draw among the fewest tokens that have this probability together");
  add("--min-p", o.min_p, "draw among tokens with this share of the likeliest's probability");
  add("--seed", o.seed, "of the draws: a line's are a function of seed and line number alone");
}

}  // namespace

void add_translate(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand(
      "translate", "Translate standard input to standard output, a line in, a line out");
  add_translate_flags(*command, *flags);
  command->add_flag("--json", flags->json,
                    "a JSON object a line, with text, score (log p over the length penalty) and "
                    "tokens");
  command
      ->add_option("--n-best", flags->options.n_best,
                   "translations of each line, best first, as lines LINE ||| TEXT ||| SCORE (LINE "
                   "counts from 0); widens the beam to as many; with --sample, so many draws")
      ->capture_default_str();
  add_sampling_flags(*command, *flags);
  add_alignment_flags(
      *command, flags->alignment_options,
      command->add_flag(
          "--alignment", flags->alignment,
          "add which source word each word came from, by attention: TEXT ||| 0-0 1-2, "
          "SOURCE-TARGET, words between spaces, from 0"));
  command->add_option("--prefix", flags->prefix, "text that every translation begins with");
  command->add_option("--prefix-file", flags->prefix_file,
                      "a file whose line i is the prefix of line i");
  add_page_flag(*command, flags->page,
                "write a page of how one line is translated: likely next tokens, the beam as a "
                "tree, attention");
  command->callback([flags] { run(*flags); });
}

}  // namespace heddle::cli
