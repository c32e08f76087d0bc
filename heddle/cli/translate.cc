// heddle translate: standard input to standard output, a line in, a line out.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>

#include "heddle/base/lines.h"
#include "heddle/base/profile.h"
#include "heddle/cli/commands.h"
#include "heddle/cli/translate_flags.h"
#include "heddle/inspect/decoding_steps.h"

namespace heddle::cli {
namespace {

struct Flags : TranslateFlags {
  bool json = false, sample = false;
  Sampling sampling;
  std::string prefix, prefix_file, steps;
};

// Enough lines at a time that batches of like lengths fill up; one where somebody types.
constexpr size_t kBlockBytes = 1 << 18;

void print_line(const std::string& line) {
  if (std::fwrite(line.data(), 1, line.size(), stdout) != line.size() ||
      std::putc('\n', stdout) == EOF) {
    fail(ErrorKind::system, "standard output: cannot write");
  }
}

Json as_json(const Translation& t, const Tokenizer& tokenizer) {
  Json json = Json::object();
  json["text"] = t.text;
  json["score"] = t.score;
  json["tokens"] = Json::array();
  for (const int32_t id : t.ids) json["tokens"].push_back(tokenizer.piece(id));
  return json;
}

// The object of the best, with all of them under "n_best" if several were asked for.
void print_json(const Translation& t, const Flags& flags, const Tokenizer& tokenizer) {
  Json json = as_json(t, tokenizer);
  if (flags.options.n_best > 1) {
    json["n_best"] = Json::array();
    json["n_best"].push_back(as_json(t, tokenizer));
    for (const Translation& o : t.others) json["n_best"].push_back(as_json(o, tokenizer));
  }
  print_line(json.dump());
}

// Several translations of a line are lines "NUMBER ||| TEXT ||| SCORE", the form of Moses; a source
// line's number is counted from 0 there.
void print_text(const Translation& t, const Flags& flags, int64_t number) {
  if (flags.options.n_best == 1) return print_line(t.text);
  const auto print = [&](const Translation& each) {
    print_line(fmt::format("{} ||| {} ||| {:.6f}", number, each.text, each.score));
  };
  print(t);
  for (const Translation& o : t.others) print(o);
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
        "--steps: there is no sentence; give one on standard input");
  check(!input.next(more), ErrorKind::usage,
        "--steps shows how one sentence is translated, but the input has more lines; give one");
  const inspect::DecodingRecord record =
      inspect::record_decoding(model, line, {.translate = options});
  inspect::write_page(flags.steps, inspect::decoding_page(record, *model.tokenizer));
  print_line(record.text);
  fmt::print(stderr, "translate: the steps are in {}; open it in a browser\n", flags.steps);
}

void run(const Flags& flags) {
  TranslateOptions options = options_of(flags);
  if (!flags.steps.empty()) inspect::check_output(flags.steps, "the page");
  const TranslationModel model = load_translation_model(flags.model);
  Prefixes prefixes(flags, model);
  if (!flags.steps.empty()) {
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
    int64_t number = first_line - 1;
    for (const Translation& t : translate_lines(model, lines, options, first_line, &cut)) {
      if (flags.json) {
        print_json(t, flags, *model.tokenizer);
      } else {
        print_text(t, flags, number++);
      }
    }
    std::fflush(stdout);
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
  command->add_option("--prefix", flags->prefix, "text that every translation begins with");
  command->add_option("--prefix-file", flags->prefix_file,
                      "a file whose line i is the prefix of line i");
  command
      ->add_option("--steps", flags->steps,
                   "write a page of how one line is translated: likely next words, the beam as "
                   "a tree, attention")
      ->type_name("FILE.html");
  command->callback([flags] { run(*flags); });
}

}  // namespace heddle::cli
