// What the commands that take texts into a model share.
#include "heddle/cli/flags/text_flags.h"

#include "heddle/base/error.h"
#include "heddle/base/json/json.h"
#include "heddle/base/log.h"
#include "heddle/base/progress.h"
#include "heddle/cli/flags/shared_flags.h"
#include "heddle/text/strings/strings.h"

namespace heddle::cli {
namespace {

constexpr BlockSize kBlock = {.lines = 64, .bytes = 64 << 10};

}  // namespace

void add_text_flags(Subcommand& command, TextFlags& flags) {
  command.add_option("model", flags.model, "a model directory, or a training run").required();
  add_compute_flags(command, flags.compute);
  command.add_flag("--json", flags.json, "one line of JSON a text");
  command.add_option("--text", flags.texts,
                     "a text, instead of lines of the standard input; may come often");
  add_page_flag(command, flags.page, "also write a page of the results");
  add_skip_flag(command, flags.lines);
}

void for_texts(const char* command, const TextFlags& flags, int64_t limit,
               const std::function<void(std::span<const std::string>, int64_t& cut)>& f) {
  int64_t cut = 0, count = 0;
  const auto work = [&](std::span<const std::string> texts) {
    int64_t cut_here = 0;
    f(texts, cut_here);
    cut += cut_here;
    count += std::ssize(texts);
  };
  const LineAnswers answers = {
      .answer =
          [&](std::span<const std::string> lines, int64_t first) {
            for (const std::string& line : lines) {
              check_text(line, fmt::format("line {}", first + (&line - lines.data())));
            }
            work(lines);
          },
      .skip =
          [&](const std::string& message) {
            print_result(flags.json ? Json::object({{"error", message}}).dump() : "");
          }};
  if (flags.texts.empty()) {
    const int64_t lines = answer_lines(command, flags.lines, kBlock, answers);
    check(lines > 0, ErrorKind::usage, "the standard input is empty; give texts, one a line");
  } else {
    std::vector<std::string> texts;
    for (const std::string& text : flags.texts) {
      check_text(text, "the text");
      warn_of_file_name(command, text);
      texts.emplace_back(without_byte_order_mark(text));
    }
    work(texts);
  }
  warn_of_cut(command, cut, count, limit);
}

void warn_of_cut(const char* command, int64_t cut, int64_t texts, int64_t limit) {
  if (cut == 0) return;
  log_warning("{}: {} of {} longer than {} and cut", command, format_count(cut),
              counted(texts, "text was", "texts were"), counted(limit, "token"));
}

}  // namespace heddle::cli
