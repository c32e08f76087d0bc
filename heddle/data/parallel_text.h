// Parallel text: two files whose line i says the same in two languages.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "heddle/base/files/lines.h"

namespace heddle {

/// The two files of a split.
struct ParallelFiles {
  std::string source;  ///< path
  std::string target;  ///< path
};

/// Finds DIR/SPLIT.SRC and DIR/SPLIT.TGT, as they are or with ".gz" behind (as in train.en,
/// train.de.gz); the plain file where both exist.
/// Errors: data if DIR is missing, or one side is, with the two names that were tried.
ParallelFiles find_parallel(const std::string& dir, std::string_view split, std::string_view src,
                            std::string_view tgt);

/// What was read of a corpus and what of it is used.
struct CorpusReport {
  int64_t lines = 0;           ///< in each of the two files
  int64_t pairs = 0;           ///< used for training: lines - empty - too_long
  int64_t empty = 0;           ///< left out: nothing, or only white space, on a side
  int64_t too_long = 0;        ///< left out: more tokens than allowed on a side
  int64_t first_empty = 0;     ///< number of the first such line, 0 if there is none
  int64_t first_too_long = 0;  ///< number of the first such line, 0 if there is none
  int64_t source_tokens = 0;   ///< of the pairs used, without special tokens
  int64_t target_tokens = 0;
  int64_t unknown_source = 0;  ///< of source_tokens, those that are the unknown token
  int64_t unknown_target = 0;

  /// One line, as in "29000 pairs of 29014 lines; left out: 12 empty (the first at line 7), 2 too
  /// long (the first at line 9); tokens: 398112 source, 412233 target; unknown tokens: none".
  std::string str() const;
  friend bool operator==(const CorpusReport&, const CorpusReport&) = default;
};

/// True if the line has nothing but white space (Unicode's, U+200B and the byte order mark). `line`
/// must be valid UTF-8.
bool is_blank(std::string_view line);

/// Reads two files in step.
class ParallelReader {
 public:
  /// Errors: those of LineReader.
  explicit ParallelReader(const ParallelFiles& files)
      : source_(files.source), target_(files.target) {}

  /// The next pair of lines, blank ones included; false at the end of both files.
  /// Errors: data if a line is not UTF-8 (file, line, byte), or one file ends before the other (the
  /// line counts of both); and those of LineReader.
  bool next(std::string& source, std::string& target);

  /// The number of the pair that next() gave last, from 1; 0 before the first.
  int64_t line_number() const { return source_.line_number(); }

 private:
  LineReader source_, target_;
};

}  // namespace heddle
