// What the commands that take texts into a model share.
#include "heddle/cli/text_flags.h"

#include <CLI/CLI.hpp>
#include <cstdio>

#include "heddle/base/error.h"
#include "heddle/base/lines.h"
#include "heddle/base/log.h"
#include "heddle/base/parallel.h"
#include "heddle/infer/precision.h"
#include "heddle/text/utf8.h"

namespace heddle::cli {
namespace {

constexpr size_t kBatchTexts = 64;
constexpr size_t kBatchBytes = 64 << 10;

void check_utf8(const std::string& text, const std::string& where) {
  const auto at = first_invalid_utf8(text);
  check(!at, ErrorKind::data, "{}: not UTF-8: byte 0x{:02x} at offset {}", where,
        static_cast<unsigned char>(text[at.value_or(0)]), at.value_or(0));
}

}  // namespace

void add_text_flags(CLI::App& command, TextFlags& flags) {
  command.add_option("model", flags.model, "a model directory, or a training run")->required();
  command.add_option("--precision", flags.precision, "f32, bf16, int8 or auto")
      ->capture_default_str();
  command.add_option("--threads", flags.threads, "threads; 0: one a core")->capture_default_str();
  command.add_flag("--json", flags.json, "one line of JSON a text");
}

Precision apply_text_flags(const TextFlags& flags) {
  check(flags.threads >= 0, ErrorKind::usage, "--threads is {}; it must be at least 1, or 0",
        flags.threads);
  if (flags.threads > 0) set_num_threads(flags.threads);
  return resolve_precision(flags.precision);
}

void for_texts(const TextFlags& flags, const std::function<void(std::span<const std::string>)>& f) {
  for (const std::string& text : flags.texts) check_utf8(text, "the text");
  if (!flags.texts.empty()) return f(flags.texts);
  LineReader input("-");
  std::vector<std::string> batch;
  size_t bytes = 0;
  for (std::string line; input.next(line); line.clear()) {
    check_utf8(line, fmt::format("line {}", input.line_number()));
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

void print_result(const std::string& line) {
  if (std::fwrite(line.data(), 1, line.size(), stdout) != line.size() ||
      std::putc('\n', stdout) == EOF) {
    fail(ErrorKind::system, "standard output: cannot write");
  }
}

void warn_of_cut(const char* command, int64_t cut, int64_t texts, int64_t limit) {
  if (cut == 0) return;
  log_warning("{}: {} of {} texts were longer than {} tokens and were cut", command, cut, texts,
              limit);
}

}  // namespace heddle::cli
