// heddle score: BLEU and chrF of a file of translations against one or more files of references.
#include <fmt/format.h>

#include "heddle/base/error.h"
#include "heddle/base/files/lines.h"
#include "heddle/base/utf8.h"
#include "heddle/cli/commands.h"
#include "heddle/cli/measure/eval.h"

namespace heddle::cli {
namespace {

struct ScoreFlags {
  std::string hypothesis;
  std::vector<std::string> references;
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

std::vector<std::vector<std::string>> read_references(const ScoreFlags& flags, size_t lines) {
  std::vector<std::vector<std::string>> references;
  for (const std::string& path : flags.references) {
    references.push_back(read_sentences(path));
    check(references.back().size() == lines, ErrorKind::data,
          "{} has {} lines but {} has {}; line i of the one must be the translation that line i of "
          "the other is scored against",
          flags.hypothesis, lines, path, references.back().size());
  }
  return references;
}

void run_score(const ScoreFlags& flags) {
  const train::BleuOptions options = {.lowercase = flags.lowercase,
                                      .tokenizer = train::bleu_tokenizer(flags.tokenize)};
  const auto hypotheses = read_sentences(flags.hypothesis);
  const auto references = read_references(flags, hypotheses.size());
  const auto bleu = train::corpus_bleu(hypotheses, references, options);
  const auto chrf = train::corpus_chrf(hypotheses, references, {.lowercase = flags.lowercase});
  Json report = scores_json(bleu, chrf);
  report["hyp_len"] = bleu.hypothesis_length;
  report["ref_len"] = bleu.reference_length;
  fmt::print("{}\n", flags.json ? report.dump() : scores_text(bleu, chrf));
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
  command.add_flag("--json", flags.json, "one line of JSON instead of two of text");
}

}  // namespace heddle::cli
