// What the commands that take texts into a model share.
#include "heddle/cli/text_flags.h"

#include <CLI/CLI.hpp>
#include <cstdio>

#include "heddle/base/error.h"
#include "heddle/base/lines.h"
#include "heddle/base/log.h"
#include "heddle/base/progress.h"
#include "heddle/cli/page_flag.h"
#include "heddle/text/check_text.h"

namespace heddle::cli {
namespace {

constexpr size_t kBatchTexts = 64;
constexpr size_t kBatchBytes = 64 << 10;

}  // namespace

void add_text_flags(CLI::App& command, TextFlags& flags) {
  command.add_option("model", flags.model, "a model directory, or a training run")->required();
  add_compute_flags(command, flags.compute);
  command.add_flag("--json", flags.json, "one line of JSON a text");
  command.add_option("--text", flags.texts,
                     "a text, instead of lines of the standard input; may come often");
  add_page_flag(command, flags.page, "also write a page of the results");
}

void for_texts(const TextFlags& flags, const std::function<void(std::span<const std::string>)>& f) {
  for (const std::string& text : flags.texts) check_text(text, "the text");
  if (!flags.texts.empty()) return f(flags.texts);
  LineReader input("-");
  std::vector<std::string> batch;
  size_t bytes = 0;
  for (std::string line; input.next(line); line.clear()) {
    check_text(line, fmt::format("line {}", input.line_number()));
    bytes += line.size();
    batch.push_back(std::move(line));
    if (batch.size() < kBatchTexts && bytes < kBatchBytes) continue;
    f(batch);
    batch.clear();
    bytes = 0;
  }
  if (!batch.empty()) f(batch);
  check(input.line_number() > 0, ErrorKind::usage,
        "the standard input is empty; give texts, one a line");
}

void write_text_page(const char* command, const TextFlags& flags, const inspect::Page& page,
                     int64_t texts) {
  inspect::write_page(flags.page, page);
  fmt::print(stderr, "{}: {} in {}; open it in a browser\n", command, counted(texts, "text"),
             flags.page);
}

void print_result(const std::string& line) {
  if (std::fwrite(line.data(), 1, line.size(), stdout) != line.size() ||
      std::putc('\n', stdout) == EOF) {
    fail(ErrorKind::system, "standard output: cannot write");
  }
}

void warn_of_cut(const char* command, int64_t cut, int64_t texts, int64_t limit) {
  if (cut == 0) return;
  log_warning("{}: {} of {} longer than {} and cut", command, format_count(cut),
              counted(texts, "text was", "texts were"), counted(limit, "token"));
}

}  // namespace heddle::cli
