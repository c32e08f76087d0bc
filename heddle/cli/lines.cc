// Blocks of lines as they come, bad lines among good ones; a warning at the first text that gives
// cause, one at the end.
#include "heddle/cli/lines.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <vector>

#include "heddle/base/error.h"
#include "heddle/base/files/files.h"
#include "heddle/base/log.h"
#include "heddle/base/profile.h"
#include "heddle/base/progress.h"
#include "heddle/base/utf8.h"
#include "heddle/cli/command_line.h"
#include "heddle/data/parallel_text.h"

namespace heddle::cli {
namespace {

constexpr int64_t kSkippedSaid = 5;

}  // namespace

void add_skip_flag(Subcommand& command, LineFlags& flags, bool has_json, AnswersOf answers) {
  const char* const line = "a line that is not UTF-8 or that the model cannot take";
  const char* const image = "a file that is no image";
  const bool has_lines = answers != AnswersOf::images, has_images = answers != AnswersOf::lines;
  command.add_flag(
      "--skip-bad", flags.skip_bad,
      fmt::format("go on after {}{}{}: its answer is an empty line{}; they are counted at the end, "
                  "and the exit code is 0 unless all {}were bad",
                  has_lines ? line : "", has_lines && has_images ? ", or " : "",
                  has_images ? image : "", has_json ? " (--json: an object with \"error\")" : "",
                  has_images ? "" : "lines "));
}

LineBlocks::LineBlocks(const char* command, const std::string& path, BlockSize size)
    : reader_(path), size_(size) {
  if (path == "-" && isatty(STDIN_FILENO) != 0) {
    fmt::print(stderr, "{}: reading lines from the terminal; Ctrl-D ends\n", command);
  }
}

std::vector<std::string> LineBlocks::next() {
  const ProfilePhase phase("read");
  if (failure_) std::rethrow_exception(failure_);
  first_line_ = reader_.line_number() + 1;
  std::vector<std::string> block;
  size_t bytes = 0;
  try {
    for (std::string line; reader_.next(line);) {
      bytes += line.size() + 1;
      block.push_back(std::move(line));
      if (block.size() >= size_.lines || bytes >= size_.bytes || !reader_.has_waiting()) break;
    }
  } catch (const Error&) {
    if (block.empty()) throw;
    failure_ = std::current_exception();
  }
  return block;
}

std::string skip_line(const LineFlags& flags, Skipped& skipped, const std::string& line,
                      int64_t number, const std::exception& error) {
  const std::string where = fmt::format("line {}", number);
  if (!first_invalid_utf8(line) && is_blank(line)) return where + " is blank";
  std::string message = error.what();
  const std::string file = flags.path + ": ";
  if (message.starts_with(file)) message.erase(0, file.size());
  if (!message.starts_with(where + ":") && !message.starts_with(where + " ")) {
    message = where + ": " + message;
  }
  if (flags.path != "-") message = file + message;
  if (!flags.skip_bad) throw Error(ErrorKind::data, message);
  skipped.note(message);
  return message;
}

void Skipped::note(const std::string& message) {
  if (kept_ != nullptr) return kept_->push_back(message);
  if (++count_ <= kSkippedSaid) log_warning("{}: {}", command_, message);
}

void Skipped::report(int64_t all) const {
  if (count_ == 0) return;
  check(count_ < all, ErrorKind::data, "{}: none of the {} could be {}", command_,
        counted(all, words_.one), words_.answered);
  log_warning("{}: {} of {} {} {}", command_, count_, counted(all, words_.one),
              count_ == 1 ? "was" : "were", words_.left_out);
}

// Halves of lines among which one is bad are answered each by itself, so that the good ones are
// still answered together. Lines are checked before a model sees them, so this costs little.
void answer_block(std::span<const std::string> lines, int64_t first, const LineAnswers& answers,
                  const LineOutput& output) {
  try {
    for (size_t i = 0; i < lines.size(); ++i) {
      check_utf8(lines[i], fmt::format("line {}", first + static_cast<int64_t>(i)));
    }
    return answers.answer(lines, first, output.results);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::data) throw;
    if (lines.size() == 1) {
      const std::string why = skip_line(output.flags, output.skipped, lines[0], first, error);
      return answers.skip(why, output.results);
    }
  }
  const size_t half = lines.size() / 2;
  answer_block(lines.first(half), first, answers, output);
  answer_block(lines.subspan(half), first + static_cast<int64_t>(half), answers, output);
}

int64_t answer_lines(const char* command, const LineFlags& flags, BlockSize size,
                     const LineAnswers& answers) {
  LineBlocks blocks(command, flags.path, size);
  Skipped skipped(command, {});
  for (std::vector<std::string> block; !(block = blocks.next()).empty();) {
    answer_block(block, blocks.first_line(), answers, {flags, skipped});
    flush_results();
  }
  skipped.report(blocks.lines());
  return blocks.lines();
}

void answer_all(const char* command, const LineFlags& flags, std::span<const std::string> lines,
                const LineAnswers& answers) {
  Skipped skipped(command, {});
  answer_block(lines, 1, answers, {flags, skipped});
  skipped.report(std::ssize(lines));
}

PairLines read_pairs(const std::string& source, const std::string& target, const char* command) {
  PairLines pairs{read_lines(source, command), read_lines(target, command)};
  check(pairs.source.size() == pairs.target.size(), ErrorKind::data,
        "{} has {} lines but {} has {}; line i of the one must be the translation of line i of the "
        "other",
        source, pairs.source.size(), target, pairs.target.size());
  return pairs;
}

PrefixLines::PrefixLines(std::string path) : path_(std::move(path)) {
  if (path_.empty()) return;
  LineReader file(path_);
  for (std::string line; file.next(line);) lines_.push_back(line);
}

std::span<const std::string> PrefixLines::of(int64_t first, size_t lines) const {
  const auto begin = static_cast<size_t>(first - 1);
  check(begin + lines <= lines_.size(), ErrorKind::data,
        "{}: it has {} lines, fewer than the input; line i is the prefix of line i", path_,
        lines_.size());
  return std::span(lines_).subspan(begin, lines);
}

void PrefixLines::check_all_used(int64_t lines) const {
  check(std::ssize(lines_) <= lines, ErrorKind::data,
        "{}: it has {} lines, more than the input; line i is the prefix of line i", path_,
        lines_.size());
}

void warn_of_file_name(const char* command, const std::string& text) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(text, error)) return;
  log_warning("{}: '{}' is taken as a text, but it is also a file; its lines are read by < {}",
              command, text, text);
}

void fail_results(int error) {
  if (error == 0) fail(ErrorKind::system, "standard output: cannot write");
  fail_errno("cannot write", "standard output", error);
}

void Results::write(std::string_view text) const {
  if (text_ != nullptr) {
    *text_ += text;
  } else if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) {
    fail_results(errno);
  }
}

void Results::flush() const {
  if (text_ == nullptr && std::fflush(stdout) != 0) fail_results(errno);
}

namespace {

constexpr size_t kExamples = 5;

std::string shown(const std::vector<std::string>& words) {
  std::vector<std::string> quoted;
  for (size_t i = 0; i < std::min(words.size(), kExamples); ++i) {
    quoted.push_back("'" + words[i] + "'");
  }
  if (words.size() > kExamples) quoted.push_back("..");
  return fmt::format("{}", fmt::join(quoted, ", "));
}

}  // namespace

void warn_of_dropped(const DroppedCharacters& dropped, const std::string& path,
                     const char* result) {
  if (dropped.count() == 0) return;
  log_warning("{}: the vocabulary lacks {}, which the model does not see; {}: {}", path,
              dropped.counted_characters(), result, dropped.examples());
}

void warn_of_dropped_input(const char* command, const DroppedCharacters& dropped) {
  if (dropped.count() == 0) return;
  log_warning("{}: left out: {} of the input that the vocabulary lacks: {}", command,
              dropped.counted_characters(), dropped.examples());
}

void DroppedWarning::look_at(const std::string& text, const std::string& where) {
  const int64_t before = dropped_.count();
  const std::string rest = dropped_.without(text);
  if (dropped_.count() == before) return;
  if (before == 0 && !rest.empty()) {
    said_ = dropped_.count();
    log_warning("{}: {}: the vocabulary lacks {}, which the model does not see: {}", command_,
                where, dropped_.counted_characters(), dropped_.examples());
  }
  check(!rest.empty(), ErrorKind::data,
        "{}: the vocabulary has none of its characters, so nothing is left of it: {}", where,
        dropped_.examples());
}

void DroppedWarning::report() const {
  if (dropped_.count() == said_) return;
  log_warning("{}: in all, the vocabulary lacks {} of the input: {}", command_,
              dropped_.counted_characters(), dropped_.examples());
}

void UnknownWords::look_at(std::span<const std::string> lines) {
  if (!known_) return;
  std::vector<std::string> new_ones;  // in the order of the text
  for (const std::string& line : lines) {
    for (const std::string& word : known_->unknown_words(line)) {
      if (words_.insert(word).second) new_ones.push_back(word);
    }
  }
  if (new_ones.empty() || said_ > 0) return;
  said_ = new_ones.size();
  log_warning(
      "{}: {} not seen in training, which had {} different words, so the translation of {} is a "
      "guess",
      command_, said_ == 1 ? shown(new_ones) + " was" : shown(new_ones) + " were",
      format_count(static_cast<int64_t>(known_->size())), said_ == 1 ? "its line" : "their lines");
}

void UnknownWords::report() const {
  if (words_.size() == said_) return;
  log_warning("{}: {} different words of the input were not seen in training", command_,
              format_count(static_cast<int64_t>(words_.size())));
}

}  // namespace heddle::cli
