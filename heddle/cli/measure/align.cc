// heddle align: which word goes with which in given pairs, by attention or by statistics of the
// pairs alone, and how wrong that is.
#include <cstdio>

#include "heddle/base/files/files.h"
#include "heddle/base/files/lines.h"
#include "heddle/base/progress.h"
#include "heddle/cli/commands.h"
#include "heddle/cli/flags.h"
#include "heddle/cli/lines.h"
#include "heddle/infer/decoding/translate.h"
#include "heddle/inspect/pages/page.h"
#include "heddle/text/strings/strings.h"
#include "heddle/train/alignment/statistical_aligner.h"
#include "heddle/train/metrics/metrics.h"

namespace heddle::cli {
namespace {

struct Flags {
  std::string model, source, target, pairs, gold, output;
  std::string source_language, target_language;
  ComputeFlags compute;
  AlignmentOptions options;
  int gold_base = 0;
  bool is_reversed = false, each = false, json = false;
  LineFlags lines;
  bool is_statistical = false;
  std::string train_source, train_target, symmetrize = "grow-diag-final-and";
  train::AlignerOptions aligner;
};

constexpr BlockSize kBlock = {.lines = 1 << 12, .bytes = 1 << 18};
constexpr std::string_view kBar = " ||| ";
constexpr const char* kStatistical = "By statistics";

struct Texts {
  std::vector<std::string> source, target;
  std::string source_name, target_name;  // for messages
};

// Both sides of a line, SOURCE ||| TARGET.
std::pair<std::string, std::string> split_pair(const std::string& line, const std::string& path,
                                               int64_t number) {
  const size_t at = line.find(kBar);
  check(at != std::string::npos, ErrorKind::data,
        "{}: line {}: there is no ' ||| '; a line is SOURCE ||| TARGET", path, number);
  return {line.substr(0, at), line.substr(at + kBar.size())};
}

Texts split_pairs(std::span<const std::string> lines, int64_t first, const std::string& path) {
  Texts texts{{}, {}, path, path};
  for (const std::string& line : lines) {
    auto [source, target] = split_pair(line, path, first + (&line - lines.data()));
    texts.source.push_back(std::move(source));
    texts.target.push_back(std::move(target));
  }
  return texts;
}

void check_texts(const Flags& flags) {
  const bool has_files = !flags.source.empty() && !flags.target.empty();
  check(flags.pairs.empty() || (flags.source.empty() && flags.target.empty()), ErrorKind::usage,
        "align: --pairs holds both sides; leave out --src and --tgt");
  check(!flags.pairs.empty() || has_files, ErrorKind::usage,
        "align needs --src FILE and --tgt FILE, or --pairs FILE");
}

Texts read_texts(const Flags& flags) {
  check_texts(flags);
  if (!flags.pairs.empty()) return split_pairs(read_lines(flags.pairs, "align"), 1, flags.pairs);
  auto [source, target] = read_pairs(flags.source, flags.target, "align");
  return {std::move(source), std::move(target), flags.source, flags.target};
}

std::vector<train::GoldAlignment> read_gold(const Flags& flags, size_t pairs) {
  std::vector<train::GoldAlignment> gold;
  LineReader reader(flags.gold);
  for (std::string line; reader.next(line);) {
    gold.push_back(train::parse_gold(line, flags.gold_base, flags.is_reversed,
                                     fmt::format("{}: line {}", flags.gold, reader.line_number())));
  }
  check(gold.size() == pairs, ErrorKind::data,
        "{} has {} lines, but there are {} pairs; line i holds the links of pair i", flags.gold,
        gold.size(), pairs);
  return gold;
}

Json rates_json(const train::AlignmentScore& s) {
  return Json::object(
      {{"aer", s.error_rate()}, {"precision", s.precision()}, {"recall", s.recall()}});
}

std::string rates_text(const train::AlignmentScore& s) {
  return fmt::format("AER {:.4f}  precision {:.4f}  recall {:.4f}", s.error_rate(), s.precision(),
                     s.recall());
}

// A head of the decoder by itself.
struct HeadScore {
  int64_t layer, head;
  train::AlignmentScore score;
};

void print_json(const train::AlignmentScore& s, size_t pairs, const std::vector<HeadScore>& heads) {
  Json report = rates_json(s);
  report["pairs"] = static_cast<int64_t>(pairs);
  report["links"] = s.found;
  report["sure"] = s.sure;
  report["out_of_range"] = s.out_of_range;
  for (const HeadScore& each : heads) {
    Json rates = rates_json(each.score);
    rates["layer"] = each.layer;
    rates["head"] = each.head;
    report["heads"].push_back(std::move(rates));
  }
  fmt::print("{}\n", report.dump());
}

void print_text(const train::AlignmentScore& s, size_t pairs, const std::vector<HeadScore>& heads) {
  for (const HeadScore& each : heads) {
    fmt::print("layer {}, head {}  {}\n", each.layer, each.head, rates_text(each.score));
  }
  fmt::print("{}  ({}, {}, {} sure)\n", rates_text(s), counted(static_cast<int64_t>(pairs), "pair"),
             counted(s.found, "link"), format_count(s.sure));
}

// Pairs as ids, and the links between them that people drew.
struct Problem {
  std::vector<std::vector<int32_t>> source, target;
  std::vector<train::GoldAlignment> gold;
};

train::AlignmentScore score_of(const LoadedModel& model, const Problem& p,
                               const std::vector<Alignment>& found) {
  train::AlignmentScore score;
  for (size_t i = 0; i < found.size(); ++i) {
    train::add_pair(score, found[i], p.gold[i], split_words(*model.tokenizer, p.source[i]).size(),
                    split_words(model.target(), p.target[i]).size());
  }
  return score;
}

std::vector<HeadScore> score_each_head(const LoadedModel& model, const Problem& p,
                                       AlignmentOptions options) {
  std::vector<HeadScore> scores;
  for (int64_t layer = 0; layer < model.translator().facts().cross_attention_layers; ++layer) {
    for (int64_t head = 0; head < model.translator().facts().decoder_attention_heads; ++head) {
      options.layers = {layer};
      options.heads = {head};
      scores.push_back(
          {layer, head, score_of(model, p, align_pairs(model, p.source, p.target, options))});
    }
  }
  return scores;
}

// The alignments of pairs, a line each; bad pairs come after those before them.
void print_each(const Flags& flags, const LoadedModel& model, const AlignmentOptions& options) {
  const auto print = [&](std::span<const std::string> source, std::span<const std::string> target,
                         int64_t first, const Texts& names, Results out) {
    const auto alignments =
        align_pairs(model,
                    line_ids(model, source_ids, source,
                             {.where = names.source_name + ": line", .first_line = first}),
                    line_ids(model, target_ids, target,
                             {.where = names.target_name + ": line", .first_line = first}),
                    options);
    for (const Alignment& a : alignments) out.print(to_pharaoh(a));
  };
  LineAnswers answers = {.answer = {},
                         .skip = [](const std::string&, Results out) { out.print(""); }};
  if (!flags.pairs.empty() && flags.source.empty() && flags.target.empty()) {
    answers.answer = [&](std::span<const std::string> lines, int64_t first, Results out) {
      const Texts texts = split_pairs(lines, first, flags.pairs);
      print(texts.source, texts.target, first, texts, out);
    };
    const int64_t lines =
        answer_lines("align", {flags.pairs, flags.lines.skip_bad}, kBlock, answers);
    check(lines > 0, ErrorKind::data, "{}: the file is empty; align needs at least one line",
          flags.pairs);
    return;
  }
  const Texts texts = read_texts(flags);
  answers.answer = [&](std::span<const std::string> lines, int64_t first, Results out) {
    const auto target =
        std::span(texts.target).subspan(static_cast<size_t>(first - 1), lines.size());
    print(lines, target, first, texts, out);
  };
  answer_all("align", {flags.source, flags.lines.skip_bad}, texts.source, answers);
}

// A line of links for each pair: to the file, or where nothing else is asked for, here.
void write_links(const Flags& flags, const std::vector<Alignment>& alignments) {
  std::string lines;
  for (const Alignment& a : alignments) lines += to_pharaoh(a) + "\n";
  if (!flags.output.empty()) write_file_atomic(flags.output, lines);
  if (flags.output.empty() && flags.gold.empty()) fmt::print("{}", lines);
}

void report(const Flags& flags, const train::AlignmentScore& score, size_t pairs,
            const std::vector<HeadScore>& heads) {
  (flags.json ? print_json : print_text)(score, pairs, heads);
  if (score.out_of_range > 0) {
    fmt::print(stderr, "align: {} to words that are not there left out\n",
               counted(score.out_of_range, "gold link"));
  }
}

// Texts as numbers of words: a line is forgotten once it is read.
struct PairWords {
  train::WordLines source, target;
};

// Adds the pairs of two files. Errors: those of read_pairs(); data for a line that is not UTF-8.
void add_files(const std::string& source, const std::string& target, PairWords& sides) {
  LineReader sources(source), targets(target);
  bool has_source = true, has_target = true;
  for (std::string a, b; has_source || has_target;) {
    has_source = sources.next(a);
    has_target = targets.next(b);
    if (!has_source || !has_target) continue;
    sources.check_utf8(a);
    targets.check_utf8(b);
    sides.source.add(split_at_spaces(a));
    sides.target.add(split_at_spaces(b));
  }
  for (const LineReader* reader : {&sources, &targets}) {
    check(reader->line_number() > 0, ErrorKind::data,
          "{}: the file is empty; align needs at least one line", reader->path());
  }
  check(sources.line_number() == targets.line_number(), ErrorKind::data,
        "{} has {} lines but {} has {}; line i of the one must be the translation of line i of the "
        "other",
        source, sources.line_number(), target, targets.line_number());
}

// The same of one file, SOURCE ||| TARGET.
void add_pairs(const std::string& path, PairWords& sides) {
  LineReader reader(path);
  for (std::string line; reader.next(line);) {
    reader.check_utf8(line);
    const auto [source, target] = split_pair(line, path, reader.line_number());
    sides.source.add(split_at_spaces(source));
    sides.target.add(split_at_spaces(target));
  }
  check(reader.line_number() > 0, ErrorKind::data,
        "{}: the file is empty; align needs at least one line", path);
}

// Sets its languages. Targets are given as texts.
PairMarks told_marks(const Flags& flags, LoadedModel& model) {
  TranslateOptions options = default_options(model);
  set_languages(model, flags.source_language, flags.target_language, options);
  return text_marks(model, options);
}

void check_statistical(const Flags& flags) {
  check(flags.model.empty(), ErrorKind::usage,
        "align: --statistical learns from the pairs alone; leave out the model {}", flags.model);
  const AlignmentOptions& o = flags.options;
  check(!flags.each && o.layers.empty() && o.heads.empty() && !o.shifted, ErrorKind::usage,
        "align: --statistical has no heads; leave out --each-head, --align-layers, --align-heads "
        "and --align-shift");
  check(flags.source_language.empty() && flags.target_language.empty(), ErrorKind::usage,
        "align: --statistical asks for no languages; leave out --source-language and "
        "--target-language");
  check(!flags.lines.skip_bad, ErrorKind::usage,
        "align: --statistical learns from all lines; leave out --skip-bad");
  check(flags.train_source.empty() == flags.train_target.empty(), ErrorKind::usage,
        "align: --train-src and --train-tgt go together, line by line");
  check_texts(flags);
}

void run_statistical(const Flags& flags) {
  check_statistical(flags);
  apply_compute_flags(flags.compute);
  PairWords sides;
  flags.pairs.empty() ? add_files(flags.source, flags.target, sides)
                      : add_pairs(flags.pairs, sides);
  const int64_t count = sides.source.lines();
  std::vector<train::GoldAlignment> gold;
  if (!flags.gold.empty()) gold = read_gold(flags, static_cast<size_t>(count));
  if (!flags.train_source.empty()) add_files(flags.train_source, flags.train_target, sides);
  const auto alignments =
      train::align_lines(sides.source, sides.target, count, flags.symmetrize, flags.aligner);
  write_links(flags, alignments);
  if (flags.gold.empty()) return;
  train::AlignmentScore score;
  for (int64_t i = 0; i < count; ++i) {
    const auto at = static_cast<size_t>(i);
    train::add_pair(score, alignments[at], gold[at], sides.source.line(i).size(),
                    sides.target.line(i).size());
  }
  report(flags, score, gold.size(), {});
}

void check_flags(const Flags& flags) {
  check(flags.gold_base == 0 || flags.gold_base == 1, ErrorKind::usage,
        "--gold-base is {}; words count from 0 or 1", flags.gold_base);
  check(!flags.each || !flags.gold.empty(), ErrorKind::usage,
        "--each-head compares heads by their error rate; it needs --gold FILE");
  check(!flags.json || !flags.gold.empty(), ErrorKind::usage,
        "--json is of the error rate; it needs --gold FILE");
  const bool is_printed = flags.is_statistical || (flags.gold.empty() && flags.output.empty());
  check(!flags.lines.skip_bad || is_printed, ErrorKind::usage,
        "--skip-bad is of alignments on the standard output; leave it out, or --output and --gold");
}

void run(const Flags& flags) {
  check_flags(flags);
  if (!flags.output.empty()) inspect::check_output(flags.output, "the alignments");
  if (flags.is_statistical) return run_statistical(flags);
  check(!flags.model.empty(), ErrorKind::usage,
        "align needs a model, whose attention aligns, or --statistical");
  AlignmentOptions options = flags.options;
  options.precision = apply_compute_flags(flags.compute);
  if (flags.gold.empty() && flags.output.empty()) {
    LoadedModel model = load_translation_model(flags.model);
    check_alignment(model.translator().facts(), options);
    options.marks = told_marks(flags, model);
    return print_each(flags, model, options);
  }
  const Texts texts = read_texts(flags);
  Problem p;
  if (!flags.gold.empty()) p.gold = read_gold(flags, texts.source.size());
  LoadedModel model = load_translation_model(flags.model);
  check_alignment(model.translator().facts(), options);
  options.marks = told_marks(flags, model);
  p.source = line_ids(model, source_ids, texts.source, {.where = texts.source_name + ": line"});
  p.target = line_ids(model, target_ids, texts.target, {.where = texts.target_name + ": line"});
  const auto alignments = align_pairs(model, p.source, p.target, options);
  write_links(flags, alignments);
  if (flags.gold.empty()) return;
  const train::AlignmentScore score = score_of(model, p, alignments);
  std::vector<HeadScore> heads;
  if (flags.each) heads = score_each_head(model, p, options);
  report(flags, score, alignments.size(), heads);
}

}  // namespace

void add_align(Subcommand& app) {
  auto [command, flags] = app.add_command<Flags>(
      "align",
      "Word alignment of given translations, by a translator's attention or by statistics of the "
      "pairs, as lines of SOURCE-TARGET (words between spaces, from 0); with --gold its error rate",
      run);
  add_model_argument(command, flags.model).required(false);
  command.add_option("--src", flags.source, "sentences, one a line (plain or gzip)");
  command.add_option("--tgt", flags.target, "their translations, one a line");
  command.add_option("--pairs", flags.pairs, "both in one file: SOURCE ||| TARGET");
  const Option gold = command.add_option(
      "--gold", flags.gold, "hand-made links, a line a pair: 0-0 is sure, 1p2 possible");
  command.add_setting("--gold-base", flags.gold_base, "number of the first word in it: 0 or 1")
      .needs(gold);
  command.add_flag("--gold-reversed", flags.is_reversed, "its links are TARGET-SOURCE").needs(gold);
  command.add_flag("--each-head", flags.each, "also the error rate of each head by itself");
  command.add_option("-o,--output", flags.output, "a file for the alignments")
      .type_name("FILE")
      .writes_file();
  add_language_flags(command, flags.source_language, flags.target_language);
  add_skip_flag(command, flags.lines, false);
  add_alignment_flags(command, flags.options, {});
  add_compute_flags(command, flags.compute);
  command.add_flag("--json", flags.json, "the error rate as one line of JSON");
  const Option statistical =
      command.add_flag("--statistical", flags.is_statistical,
                       "without a model: IBM's model 1, then 2, learned from the pairs themselves");
  statistical.group(kStatistical);
  command.get_option("--precision").excludes(statistical);
  for (const Option& option :
       {command.add_option("--train-src", flags.train_source,
                           "more sentences to learn from, with --train-tgt"),
        command.add_option("--train-tgt", flags.train_target, "their translations"),
        command.add_setting("--ibm-model", flags.aligner.model, "1 or 2"),
        command
            .add_setting("--symmetrize", flags.symmetrize,
                         "links of both directions: none (a source word for each target word), "
                         "intersection, union or grow-diag-final-and")
            .one_of({"none", "intersection", "union", "grow-diag-final-and"})}) {
    option.needs(statistical).group(kStatistical);
  }
}

}  // namespace heddle::cli
