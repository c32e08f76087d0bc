// heddle translate: standard input to standard output, a line in, a line out.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "heddle/base/lines.h"
#include "heddle/base/profile.h"
#include "heddle/cli/commands.h"
#include "heddle/cli/translate_flags.h"

namespace heddle::cli {
namespace {

struct Flags : TranslateFlags {
  bool json = false;
};

// Enough lines at a time that batches of like lengths fill up; one where somebody types.
constexpr size_t kBlockBytes = 1 << 18;

void print_line(const std::string& line) {
  if (std::fwrite(line.data(), 1, line.size(), stdout) != line.size() ||
      std::putc('\n', stdout) == EOF) {
    fail(ErrorKind::system, "standard output: cannot write");
  }
}

std::string as_json(const Translation& t, const Tokenizer& tokenizer) {
  Json json = Json::object();
  json["text"] = t.text;
  json["score"] = t.score;
  json["tokens"] = Json::array();
  for (const int32_t id : t.ids) json["tokens"].push_back(tokenizer.piece(id));
  return json.dump();
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

void run(const Flags& flags) {
  const TranslateOptions options = translate_options(flags);
  const TranslationModel model = load_translation_model(flags.model);
  const bool is_typed = isatty(STDIN_FILENO) != 0;
  LineReader input("-");
  int64_t cut = 0;
  for (;;) {
    const int64_t first_line = input.line_number() + 1;
    const std::vector<std::string> lines = read_block(input, is_typed);
    if (lines.empty()) break;
    for (const Translation& t : translate_lines(model, lines, options, first_line, &cut)) {
      print_line(flags.json ? as_json(t, *model.tokenizer) : t.text);
    }
    std::fflush(stdout);
  }
  report_cut("translate", cut, model);
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
  command->callback([flags] { run(*flags); });
}

}  // namespace heddle::cli
