// Lines in, answers out: what the commands that read texts share, and what they say of characters
// that a tokenizer has no token for, and of words that were not in a translator's training.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/base/files/lines.h"
#include "heddle/cli/command_line.h"
#include "heddle/infer/loading/loaded_model.h"
#include "heddle/text/dropped_characters.h"
#include "heddle/text/known_words.h"

namespace heddle::cli {

struct LineFlags {
  std::string path = "-";  ///< "-" is the standard input
  bool skip_bad = false;
};

/// What a command answers.
enum class AnswersOf : uint8_t { lines, images, lines_or_images };

/// Adds --skip-bad. has_json: whether the command's answers may be lines of JSON
void add_skip_flag(Subcommand& command, LineFlags& flags, bool has_json = true,
                   AnswersOf answers = AnswersOf::lines);

/// How much is answered together at most.
struct BlockSize {
  size_t lines, bytes;
};

/// A file in blocks of lines. A block is full where lines are plenty; else it holds those that
/// wait, so that whoever writes a line and waits for the answer gets it. Says on a terminal, once,
/// that lines are read and how to end.
class LineBlocks {
 public:
  /// Errors: those of LineReader.
  LineBlocks(const char* command, const std::string& path, BlockSize size);

  /// The next lines, none at the end. Errors: those of LineReader, once the lines before were
  /// given.
  std::vector<std::string> next();

  /// The number of the first line that next() gave last, from 1.
  int64_t first_line() const { return first_line_; }
  /// Lines that were given.
  int64_t lines() const { return reader_.line_number(); }

 private:
  LineReader reader_;
  BlockSize size_;
  int64_t first_line_ = 1;
  std::exception_ptr failure_;
};

/// What could not be answered, or measured: the first few are said as they come, all are counted
/// at the end.
class Skipped {
 public:
  /// "none of the 3 LINES could be ANSWERED", "2 of 3 lines were LEFT OUT".
  struct Words {
    const char* one = "line";
    const char* answered = "answered";
    const char* left_out = "skipped (--skip-bad)";
  };
  /// kept: gets the messages, which are then neither said nor counted here; may be null.
  Skipped(const char* command, Words words, std::vector<std::string>* kept = nullptr)
      : command_(command), words_(words), kept_(kept) {}

  /// Counts one, with the message on it.
  void note(const std::string& message);
  int64_t count() const { return count_; }
  /// Says how many of so many were left out, if any. Errors: data if all were.
  void report(int64_t all) const;

 private:
  const char* command_;
  Words words_;
  std::vector<std::string>* kept_;
  int64_t count_ = 0;
};

/// Counts a bad line, unless it is blank. Errors: `error` itself, its line named, unless the line
/// is blank or bad lines are skipped.    returns: the reason
std::string skip_line(const LineFlags& flags, Skipped& skipped, const std::string& line,
                      int64_t number, const std::exception& error);

/// Where the results of a command go: the standard output, or a text.
class Results {
 public:
  Results() = default;
  explicit Results(std::string& text) : text_(&text) {}

  /// Errors: system, those of fail_results().
  void write(std::string_view text) const;
  /// One line.
  void print(const std::string& line) const { write(line + "\n"); }
  /// Hands on what was written so far.
  void flush() const;

 private:
  std::string* text_ = nullptr;
};

/// What a command does with lines.
struct LineAnswers {
  /// Answers lines, of which the first has this number. A line that is bad throws a data error
  /// before anything is written.
  std::function<void(std::span<const std::string> lines, int64_t first, Results out)> answer;
  /// Writes what stands in the place of the answer of a bad line, so that line i of the output
  /// stays the answer of line i.
  std::function<void(const std::string& message, Results out)> skip;
};

/// Has all lines of the input answered in order, each block on the standard output before the next
/// is read. A line that is not UTF-8 or cannot be answered ends the command, after the answers of
/// the lines before it; with --skip-bad it is counted and left out. A blank line that cannot be
/// answered is always left out, and is not bad.
/// returns: the number of lines    Errors: data, naming the line; those of LineReader and `answer`
int64_t answer_lines(const char* command, const LineFlags& flags, BlockSize size,
                     const LineAnswers& answers);

/// What becomes of lines that cannot be answered, and of the answers.
struct LineOutput {
  const LineFlags& flags;
  Skipped& skipped;
  Results results = {};
};

/// Of one block.
void answer_block(std::span<const std::string> lines, int64_t first, const LineAnswers& answers,
                  const LineOutput& output);

/// The same of lines that were read; `flags.path` is the file that they are of.
void answer_all(const char* command, const LineFlags& flags, std::span<const std::string> lines,
                const LineAnswers& answers);

/// Lines of two files, each the translation of the other's.
struct PairLines {
  std::vector<std::string> source, target;
};
/// Errors: those of read_lines(); data if one has more lines.
PairLines read_pairs(const std::string& source, const std::string& target, const char* command);

/// Lines of a file, line i of which is the beginning of the translation of line i.
class PrefixLines {
 public:
  /// path: "" for none. Errors: those of LineReader.
  explicit PrefixLines(std::string path);
  bool are_given() const { return !path_.empty(); }
  /// Those of so many lines, of which the first has this number. Errors: data if there are fewer.
  std::span<const std::string> of(int64_t first, size_t lines) const;
  /// To be called once all lines are translated. Errors: data if there are more than these.
  void check_all_used(int64_t lines) const;

 private:
  std::string path_;
  std::vector<std::string> lines_;
};

/// Warns if a text that was given as an argument is the name of a file: it is taken as a text.
void warn_of_file_name(const char* command, const std::string& text);

/// Results() by itself is the standard output.
inline void write_results(std::string_view text) { Results().write(text); }
inline void print_result(const std::string& line) { Results().print(line); }
inline void flush_results() { Results().flush(); }
/// Fails with what is said wherever the standard output cannot be written to. error: errno, 0 if it
/// is not known
[[noreturn]] void fail_results(int error);

/// Warns of characters of a file, if any were dropped: what was done of them is in `result`.
void warn_of_dropped(const DroppedCharacters& dropped, const std::string& path,
                     const char* result = "all figures are of the rest");

/// The same at the end of a command's input.
void warn_of_dropped_input(const char* command, const DroppedCharacters& dropped);

/// Looks at texts before they are encoded.
class DroppedWarning {
 public:
  DroppedWarning(const char* command, const Tokenizer& tokenizer)
      : command_(command), dropped_(tokenizer) {}

  /// Names the characters of the text, UTF-8, that are dropped, the first time that there are any.
  /// `where` ("line 3") opens messages.
  /// Errors: data, naming them, if the text has no others.
  void look_at(const std::string& text, const std::string& where);
  /// Says how many there were in all, if more came.
  void report() const;

 private:
  const char* command_;
  DroppedCharacters dropped_;
  int64_t said_ = 0;
};

/// Looks at lines that are translated: nobody should take an invented translation for a known one.
class UnknownWords {
 public:
  UnknownWords(const char* command, const LoadedModel& model)
      : command_(command), known_(KnownWords::find(model.path)) {}

  /// Says which words of the lines, UTF-8, were not seen in training, the first time that there are
  /// any.
  void look_at(std::span<const std::string> lines);
  /// Those that were found.
  std::vector<std::string> words() const { return {words_.begin(), words_.end()}; }
  /// Those that another process has found.
  void add(std::span<const std::string> words) { words_.insert(words.begin(), words.end()); }
  /// Says how many there were in all, if more came.
  void report() const;

 private:
  const char* command_;
  std::optional<KnownWords> known_;
  std::set<std::string> words_;
  size_t said_ = 0;
};

}  // namespace heddle::cli
