// heddle align: which word goes with which in given pairs, by attention, and how wrong that is.
#include <cstdio>

#include "heddle/base/files/files.h"
#include "heddle/base/files/lines.h"
#include "heddle/base/progress.h"
#include "heddle/cli/commands.h"
#include "heddle/cli/flags.h"
#include "heddle/cli/lines.h"
#include "heddle/infer/decoding/translate.h"
#include "heddle/inspect/pages/page.h"
#include "heddle/train/metrics/metrics.h"

namespace heddle::cli {
namespace {

struct Flags {
  std::string model, source, target, pairs, gold, output;
  ComputeFlags compute;
  AlignmentOptions options;
  int gold_base = 0;
  bool is_reversed = false, each = false, json = false;
  LineFlags lines;
};

constexpr BlockSize kBlock = {.lines = 1 << 12, .bytes = 1 << 18};
constexpr std::string_view kBar = " ||| ";

struct Texts {
  std::vector<std::string> source, target;
  std::string source_name, target_name;  // for messages
};

Texts split_pairs(std::span<const std::string> lines, int64_t first, const std::string& path) {
  Texts texts{{}, {}, path, path};
  for (const std::string& line : lines) {
    const size_t at = line.find(kBar);
    check(at != std::string::npos, ErrorKind::data,
          "{}: line {}: there is no ' ||| '; a line is SOURCE ||| TARGET", path,
          first + (&line - lines.data()));
    texts.source.push_back(line.substr(0, at));
    texts.target.push_back(line.substr(at + kBar.size()));
  }
  return texts;
}

Texts read_texts(const Flags& flags) {
  if (!flags.pairs.empty()) {
    check(flags.source.empty() && flags.target.empty(), ErrorKind::usage,
          "align: --pairs holds both sides; leave out --src and --tgt");
    return split_pairs(read_lines(flags.pairs, "align"), 1, flags.pairs);
  }
  check(!flags.source.empty() && !flags.target.empty(), ErrorKind::usage,
        "align needs --src FILE and --tgt FILE, or --pairs FILE");
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
                         int64_t first, const Texts& names) {
    const auto alignments =
        align_pairs(model,
                    line_ids(model, source_ids, source,
                             {.where = names.source_name + ": line", .first_line = first}),
                    line_ids(model, target_ids, target,
                             {.where = names.target_name + ": line", .first_line = first}),
                    options);
    for (const Alignment& a : alignments) print_result(to_pharaoh(a));
  };
  LineAnswers answers = {.answer = {}, .skip = [](const std::string&) { print_result(""); }};
  if (!flags.pairs.empty() && flags.source.empty() && flags.target.empty()) {
    answers.answer = [&](std::span<const std::string> lines, int64_t first) {
      const Texts texts = split_pairs(lines, first, flags.pairs);
      print(texts.source, texts.target, first, texts);
    };
    const int64_t lines =
        answer_lines("align", {flags.pairs, flags.lines.skip_bad}, kBlock, answers);
    check(lines > 0, ErrorKind::data, "{}: the file is empty; align needs at least one line",
          flags.pairs);
    return;
  }
  const Texts texts = read_texts(flags);
  answers.answer = [&](std::span<const std::string> lines, int64_t first) {
    const auto target =
        std::span(texts.target).subspan(static_cast<size_t>(first - 1), lines.size());
    print(lines, target, first, texts);
  };
  answer_all("align", {flags.source, flags.lines.skip_bad}, texts.source, answers);
}

void check_flags(const Flags& flags) {
  check(flags.gold_base == 0 || flags.gold_base == 1, ErrorKind::usage,
        "--gold-base is {}; words count from 0 or 1", flags.gold_base);
  check(!flags.each || !flags.gold.empty(), ErrorKind::usage,
        "--each-head compares heads by their error rate; it needs --gold FILE");
}

void run(const Flags& flags) {
  check_flags(flags);
  if (!flags.output.empty()) inspect::check_output(flags.output, "the alignments");
  AlignmentOptions options = flags.options;
  options.precision = apply_compute_flags(flags.compute);
  if (flags.gold.empty() && flags.output.empty()) {
    const LoadedModel model = load_translation_model(flags.model);
    check_alignment(model.translator().facts(), options);
    return print_each(flags, model, options);
  }
  const Texts texts = read_texts(flags);
  Problem p;
  if (!flags.gold.empty()) p.gold = read_gold(flags, texts.source.size());
  const LoadedModel model = load_translation_model(flags.model);
  check_alignment(model.translator().facts(), options);
  p.source = line_ids(model, source_ids, texts.source, {.where = texts.source_name + ": line"});
  p.target = line_ids(model, target_ids, texts.target, {.where = texts.target_name + ": line"});
  const auto alignments = align_pairs(model, p.source, p.target, options);
  std::string lines;
  for (const Alignment& a : alignments) lines += to_pharaoh(a) + "\n";
  if (!flags.output.empty()) write_file_atomic(flags.output, lines);
  if (flags.gold.empty()) return;
  const train::AlignmentScore score = score_of(model, p, alignments);
  std::vector<HeadScore> heads;
  if (flags.each) heads = score_each_head(model, p, options);
  (flags.json ? print_json : print_text)(score, alignments.size(), heads);
  if (score.out_of_range > 0) {
    fmt::print(stderr, "align: {} to words that are not there left out\n",
               counted(score.out_of_range, "gold link"));
  }
}

}  // namespace

void add_align(Subcommand& app) {
  auto [command, flags] = app.add_command<Flags>(
      "align",
      "Word alignment of given translations by attention, as lines of SOURCE-TARGET (words between "
      "spaces, from 0); with --gold its error rate",
      run);
  command.add_option("model", flags.model, "a model directory, or a training run (then RUN/best)")
      .required();
  command.add_option("--src", flags.source, "sentences, one a line (plain or gzip)");
  command.add_option("--tgt", flags.target, "their translations, one a line");
  command.add_option("--pairs", flags.pairs, "both in one file: SOURCE ||| TARGET");
  command.add_option("--gold", flags.gold,
                     "hand-made links, a line a pair: 0-0 is sure, 1p2 possible");
  command.add_setting("--gold-base", flags.gold_base, "number of the first word in it: 0 or 1");
  command.add_flag("--gold-reversed", flags.is_reversed, "its links are TARGET-SOURCE");
  command.add_flag("--each-head", flags.each, "also the error rate of each head by itself");
  command.add_option("-o,--output", flags.output, "a file for the alignments").type_name("FILE");
  add_skip_flag(command, flags.lines);
  add_alignment_flags(command, flags.options, {});
  add_compute_flags(command, flags.compute);
  command.add_flag("--json", flags.json, "the error rate as one line of JSON");
}

}  // namespace heddle::cli
