// heddle score: BLEU and chrF of a file of translations against one or more files of references,
// by length of the source, and beside another system's.
#include <fmt/format.h>

#include <limits>

#include "heddle/base/error.h"
#include "heddle/base/files/lines.h"
#include "heddle/base/progress.h"
#include "heddle/base/utf8.h"
#include "heddle/cli/commands.h"
#include "heddle/cli/measure/eval.h"
#include "heddle/text/strings/strings.h"
#include "heddle/train/metrics/significance.h"

namespace heddle::cli {
namespace {

struct ScoreFlags {
  std::string hypothesis, against, source;
  std::vector<std::string> references;
  int64_t samples = train::BootstrapOptions{}.samples;
  bool lowercase = false;
  std::string tokenize = "13a";
  bool json = false;
};

std::vector<std::string> read_sentences(const std::string& path) {
  std::vector<std::string> lines = read_lines(path, "score");
  for (size_t i = 0; i < lines.size(); ++i) {
    check(!first_invalid_utf8(lines[i]), ErrorKind::data,
          "{}: line {} is not UTF-8; convert the file, for example with iconv", path, i + 1);
  }
  return lines;
}

using Lines = std::vector<std::string>;

// Lines beside those of the hypotheses, which are `lines`.
Lines read_beside(const std::string& path, const ScoreFlags& flags, size_t lines) {
  Lines read = read_sentences(path);
  check(read.size() == lines, ErrorKind::data,
        "{} has {} lines but {} has {}; line i of the one must go with line i of the other",
        flags.hypothesis, lines, path, read.size());
  return read;
}

struct Metrics {
  train::BleuOptions bleu;
  train::ChrfOptions chrf;
};

// Sentences whose source has from `least` to `most` words.
struct LengthClass {
  int64_t least = 0, most = 0, lines = 0;
  double bleu = 0, chrf = 0;

  std::string name() const {
    if (least == 0) return fmt::format("up to {}", most);
    if (most == std::numeric_limits<int64_t>::max()) return fmt::format("{} or more", least);
    return fmt::format("{} to {}", least, most);
  }
};

std::vector<LengthClass> scores_by_length(const Lines& source, const Lines& hypotheses,
                                          const std::vector<Lines>& references, const Metrics& m) {
  std::vector<LengthClass> classes = {{.least = 0, .most = 10},
                                      {.least = 11, .most = 15},
                                      {.least = 16, .most = 20},
                                      {.least = 21, .most = std::numeric_limits<int64_t>::max()}};
  for (LengthClass& c : classes) {
    Lines chosen;
    std::vector<Lines> theirs(references.size());
    for (size_t i = 0; i < source.size(); ++i) {
      const int64_t words = std::ssize(split_at_spaces(source[i]));
      if (words < c.least || words > c.most) continue;
      chosen.push_back(hypotheses[i]);
      for (size_t k = 0; k < references.size(); ++k) theirs[k].push_back(references[k][i]);
    }
    c.lines = std::ssize(chosen);
    if (chosen.empty()) continue;
    c.bleu = train::corpus_bleu(chosen, theirs, m.bleu).score;
    c.chrf = train::corpus_chrf(chosen, theirs, m.chrf).score;
  }
  return classes;
}

Json as_json(const std::vector<LengthClass>& classes) {
  Json json = Json::array();
  for (const LengthClass& c : classes) {
    Json one = Json::object({{"words", c.name()}, {"lines", c.lines}});
    one["bleu"] = c.lines > 0 ? Json(c.bleu) : Json();
    one["chrf"] = c.lines > 0 ? Json(c.chrf) : Json();
    json.push_back(one);
  }
  return json;
}

std::string as_text(const std::vector<LengthClass>& classes) {
  std::string text = "words of the source   lines    BLEU   chrF2\n";
  for (const LengthClass& c : classes) {
    text += c.lines == 0
                ? fmt::format("{:19}{:>8}\n", c.name(), 0)
                : fmt::format("{:19}{:>8}{:>8.2f}{:>8.2f}\n", c.name(), c.lines, c.bleu, c.chrf);
  }
  return text;
}

Json as_json(const train::ResampledScore& s) {
  return Json::object({{"score", s.score}, {"mean", s.mean}, {"half_width", s.half_width}});
}

Json as_json(const train::PairedScores& s) {
  return Json::object(
      {{"system", as_json(s.system)}, {"baseline", as_json(s.baseline)}, {"p", s.p}});
}

std::string as_text(const char* metric, const train::PairedScores& s) {
  return fmt::format(
      "{:6}{:.2f} ({:.2f} ± {:.2f}) against {:.2f} ({:.2f} ± {:.2f}): {:+.2f}, p = {:.4f}\n",
      metric, s.system.score, s.system.mean, s.system.half_width, s.baseline.score, s.baseline.mean,
      s.baseline.half_width, s.system.score - s.baseline.score, s.p);
}

void run_score(const ScoreFlags& flags) {
  const Metrics metrics{
      .bleu = {.lowercase = flags.lowercase, .tokenizer = train::bleu_tokenizer(flags.tokenize)},
      .chrf = {.lowercase = flags.lowercase}};
  check(flags.samples >= 1 && flags.samples <= 1000000, ErrorKind::usage,
        "--samples is {}; it must be from 1 to 1,000,000", flags.samples);
  const Lines hypotheses = read_sentences(flags.hypothesis);
  std::vector<Lines> references;
  for (const std::string& path : flags.references) {
    references.push_back(read_beside(path, flags, hypotheses.size()));
  }
  const auto bleu = train::corpus_bleu(hypotheses, references, metrics.bleu);
  const auto chrf = train::corpus_chrf(hypotheses, references, metrics.chrf);
  Json report = scores_json(bleu, chrf);
  report["hyp_len"] = bleu.hypothesis_length;
  report["ref_len"] = bleu.reference_length;
  std::string text = scores_text(bleu, chrf) + "\n";
  if (!flags.source.empty()) {
    const auto classes = scores_by_length(read_beside(flags.source, flags, hypotheses.size()),
                                          hypotheses, references, metrics);
    report["by_length"] = as_json(classes);
    text += "\n" + as_text(classes);
  }
  if (!flags.against.empty()) {
    const Lines baseline = read_beside(flags.against, flags, hypotheses.size());
    const train::BootstrapOptions bootstrap{.samples = flags.samples};
    const auto by_bleu =
        train::paired_bleu(hypotheses, baseline, references, metrics.bleu, bootstrap);
    const auto by_chrf =
        train::paired_chrf(hypotheses, baseline, references, metrics.chrf, bootstrap);
    report["against"] = Json::object({{"samples", flags.samples},
                                      {"seed", bootstrap.seed},
                                      {"bleu", as_json(by_bleu)},
                                      {"chrf", as_json(by_chrf)}});
    text += fmt::format("\n{} samples of the lines (paired bootstrap; 95 % of them lie within ±)\n",
                        format_count(flags.samples)) +
            as_text("BLEU", by_bleu) + as_text("chrF2", by_chrf);
  }
  fmt::print("{}", flags.json ? report.dump() + "\n" : text);
}

}  // namespace

void add_score(Subcommand& app) {
  auto [command, flags] = app.add_command<ScoreFlags>(
      "score", "BLEU and chrF of translations, equal to sacreBLEU's (plain or gzip files)",
      run_score);
  command.add_option("--hyp", flags.hypothesis, "translations, one a line; - is standard input")
      .required();
  command
      .add_option("--ref", flags.references,
                  "references, one a line; give --ref again for several references")
      .required()
      .allow_extra_args(false);
  command.add_flag("--lowercase", flags.lowercase,
                   "lower-case both sides first, for BLEU and for chrF");
  command.add_setting("--tokenize", flags.tokenize, "words of BLEU: 13a or none")
      .one_of({"13a", "none"});
  command.add_option("--src", flags.source,
                     "the sentences that were translated: scores by their number of words");
  const Option against =
      command.add_option("--against", flags.against,
                         "another system's translations: is the difference more than chance?");
  command.add_setting("--samples", flags.samples, "of the paired bootstrap").needs(against);
  command.add_flag("--json", flags.json, "one line of JSON instead of text");
}

}  // namespace heddle::cli
