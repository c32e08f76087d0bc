// heddle score: BLEU and chrF of a file of translations against one or more files of references,
// by length of the source, how it spreads over samples of the lines, and beside other systems'.
#include <fmt/format.h>

#include <array>
#include <limits>
#include <optional>

#include "heddle/base/error.h"
#include "heddle/base/files/lines.h"
#include "heddle/base/progress.h"
#include "heddle/base/utf8.h"
#include "heddle/cli/commands.h"
#include "heddle/cli/measure/eval.h"
#include "heddle/cli/shared_command.h"
#include "heddle/text/strings/strings.h"
#include "heddle/train/metrics/significance.h"

namespace heddle::cli {
namespace {

struct ScoreFlags {
  std::string hypothesis, source;
  std::vector<std::string> references, against;
  std::optional<int64_t> samples;
  bool lowercase = false, confidence = false;
  std::string tokenize = "13a";
  bool json = false;
  Subcommand command;
  dist::GroupOptions ranks;
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

std::string as_text(const train::ResampledScore& s) {
  return fmt::format("{:.2f} ({:.2f} ± {:.2f})", s.score, s.mean, s.half_width);
}

// What the bootstrap says of the hypotheses and of each system that they are against.
struct Bootstrap {
  int64_t samples = 0;
  uint32_t seed = 0;
  train::PairedScores bleu = {}, chrf = {};
};

Bootstrap resample(const ScoreFlags& flags, const Lines& hypotheses,
                   const std::vector<Lines>& references, const Metrics& m) {
  train::BootstrapOptions options;
  options.samples = flags.samples.value_or(options.samples);
  std::vector<Lines> systems;
  for (const std::string& path : flags.against) {
    systems.push_back(read_beside(path, flags, hypotheses.size()));
  }
  return {.samples = options.samples,
          .seed = options.seed,
          .bleu = train::paired_bleu(hypotheses, systems, references, m.bleu, options),
          .chrf = train::paired_chrf(hypotheses, systems, references, m.chrf, options)};
}

// As sacreBLEU's has it, behind "nrefs:1|".
void add_bootstrap(std::string& signature, const Bootstrap& b) {
  signature.insert(signature.find('|') + 1, fmt::format("bs:{}|seed:{}|", b.samples, b.seed));
}

Json as_json(const Bootstrap& b, const std::vector<std::string>& against) {
  Json json = Json::object({{"samples", b.samples},
                            {"seed", b.seed},
                            {"bleu", as_json(b.bleu.baseline)},
                            {"chrf", as_json(b.chrf.baseline)}});
  if (against.empty()) return json;
  Json systems = Json::array();
  for (size_t i = 0; i < against.size(); ++i) {
    Json one = Json::object({{"file", against[i]}});
    const auto add = [&](const char* metric, const train::PairedScore& s) {
      one[metric] = as_json(s.system);
      one[metric]["p"] = s.p;
    };
    add("bleu", b.bleu.systems[i]);
    add("chrf", b.chrf.systems[i]);
    systems.push_back(one);
  }
  json["against"] = systems;
  return json;
}

// A line for each system; p is of its difference from the first, the hypotheses.
std::string as_text(const Bootstrap& b, const ScoreFlags& flags) {
  const bool is_alone = flags.against.empty();
  size_t width = flags.hypothesis.size();
  for (const std::string& path : flags.against) width = std::max(width, path.size());
  // Differences are in every other cell.
  const auto line_of = [&](const std::string& name, const std::array<std::string, 4>& cells) {
    std::string line = fmt::format("{:{}}", name, width);
    for (size_t i = 0; i < cells.size(); i += is_alone ? 2 : 1) {
      line += fmt::format("  {:22}", cells[i]);
    }
    return line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  };
  const auto difference = [](const train::PairedScore& s, const train::ResampledScore& from) {
    return fmt::format("{:+.2f}, p = {:.4f}", s.system.score - from.score, s.p);
  };
  const train::ResampledScore &bleu = b.bleu.baseline, &chrf = b.chrf.baseline;
  std::string text = fmt::format(
      "{} of the lines{}; 95 % of them lie within ±{}\n", counted(b.samples, "sample"),
      is_alone ? "" : " (paired bootstrap)", is_alone ? "" : "; differences are from the first");
  text += line_of("", {"BLEU", "", "chrF2", ""});
  text += line_of(flags.hypothesis, {as_text(bleu), "", as_text(chrf), ""});
  for (size_t i = 0; i < flags.against.size(); ++i) {
    const train::PairedScore &by_bleu = b.bleu.systems[i], &by_chrf = b.chrf.systems[i];
    text += line_of(flags.against[i], {as_text(by_bleu.system), difference(by_bleu, bleu),
                                       as_text(by_chrf.system), difference(by_chrf, chrf)});
  }
  return text;
}

void measure(const ScoreFlags& flags) {
  const Metrics metrics{
      .bleu = {.lowercase = flags.lowercase, .tokenizer = train::bleu_tokenizer(flags.tokenize)},
      .chrf = {.lowercase = flags.lowercase}};
  const bool is_resampled = flags.confidence || !flags.against.empty();
  check(is_resampled || !flags.samples, ErrorKind::usage,
        "score: --samples are of the bootstrap; give --confidence, or --against FILE");
  const int64_t samples = flags.samples.value_or(1);
  check(samples >= 1 && samples <= 1000000, ErrorKind::usage,
        "--samples is {}; it must be from 1 to 1,000,000", samples);
  const Lines hypotheses = read_sentences(flags.hypothesis);
  std::vector<Lines> references;
  for (const std::string& path : flags.references) {
    references.push_back(read_beside(path, flags, hypotheses.size()));
  }
  auto bleu = train::corpus_bleu(hypotheses, references, metrics.bleu);
  auto chrf = train::corpus_chrf(hypotheses, references, metrics.chrf);
  std::optional<Bootstrap> bootstrap;
  if (is_resampled) {
    bootstrap = resample(flags, hypotheses, references, metrics);
    for (std::string* signature : {&bleu.signature, &chrf.signature}) {
      add_bootstrap(*signature, *bootstrap);
    }
  }
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
  if (bootstrap) {
    report["bootstrap"] = as_json(*bootstrap, flags.against);
    text += "\n" + as_text(*bootstrap, flags);
  }
  write_results(flags.json ? report.dump() + "\n" : text);
}

// It takes less than a second a system: rank 0 does it alone.
void run_score(const ScoreFlags& flags) {
  run_shared(
      flags.command, flags.ranks, [&](dist::Group&) { measure(flags); }, false);
}

}  // namespace

void add_score(Subcommand& app) {
  auto [command, flags] = app.add_command<ScoreFlags>(
      "score", "BLEU and chrF of translations, equal to sacreBLEU's (plain or gzip files)",
      run_score);
  flags.command = command;
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
  command.add_flag("--confidence", flags.confidence,
                   "how far the scores spread over samples of the lines: their mean, and the "
                   "interval of 95 % of them (sacreBLEU's)");
  command
      .add_option("--against", flags.against,
                  "another system's translations: is the difference more than chance? give "
                  "--against again for several systems")
      .allow_extra_args(false);
  command.add_option("--samples", flags.samples,
                     "of the bootstrap, with --confidence or --against [1000]");
  command.add_flag("--json", flags.json, "one line of JSON instead of text");
  add_group_flags(command, flags.ranks);
}

}  // namespace heddle::cli
