// Parallel text: finding the files, reading in step, the report.
#include "heddle/data/parallel_text.h"

#include <fmt/format.h>

#include "heddle/base/error.h"
#include "heddle/base/files/files.h"
#include "heddle/base/progress.h"
#include "heddle/base/utf8.h"
#include "heddle/text/strings/strings.h"

namespace heddle {

namespace {

std::string find_side(const std::string& dir, std::string_view split, std::string_view language) {
  const std::string plain = join_path(dir, fmt::format("{}.{}", split, language)),
                    compressed = plain + ".gz";
  if (path_exists(plain)) return plain;
  check(path_exists(compressed), ErrorKind::data,
        "{}: no text for split '{}' in language '{}': neither {} nor {} exists; put one of them "
        "there or name another language",
        dir, split, language, plain, compressed);
  return compressed;
}

int64_t count_rest(LineReader& reader) {
  for (std::string line; reader.next(line);) {
  }
  return reader.line_number();
}

std::string left_out(int64_t count, const char* what, int64_t first) {
  if (count == 0) return fmt::format("0 {}", what);
  return fmt::format("{} {} (the first at line {})", count, what, first);
}

}  // namespace

ParallelFiles find_parallel(const std::string& dir, std::string_view split, std::string_view src,
                            std::string_view tgt) {
  check(is_directory(dir), ErrorKind::data,
        "{}: is no folder; a folder with {}.{} and {}.{} is needed", dir, split, src, split, tgt);
  return {find_side(dir, split, src), find_side(dir, split, tgt)};
}

std::string CorpusReport::str() const {
  std::string text = fmt::format(
      "{} of {}; left out: {}, {}; tokens: {} source, {} target; unknown tokens: ",
      counted(pairs, "pair"), counted(lines, "line"), left_out(empty, "empty", first_empty),
      left_out(too_long, "too long", first_too_long), format_count(source_tokens),
      format_count(target_tokens));
  if (unknown_source + unknown_target == 0) return text + "none";
  const auto percent = [](int64_t part, int64_t all) {
    return all == 0 ? 0.0 : 100.0 * static_cast<double>(part) / static_cast<double>(all);
  };
  return text + fmt::format("{} source ({:.2f} %), {} target ({:.2f} %)",
                            format_count(unknown_source), percent(unknown_source, source_tokens),
                            format_count(unknown_target), percent(unknown_target, target_tokens));
}

bool is_blank(std::string_view line) {
  for (size_t at = 0; at < line.size();) {
    const char32_t c = next_code_point(line, at);
    if (!is_white_space(c) && c != 0x200B && c != 0xFEFF) return false;
  }
  return true;
}

bool ParallelReader::next(std::string& source, std::string& target) {
  const bool has_source = source_.next(source);
  const bool has_target = target_.next(target);
  if (has_source != has_target) {
    const int64_t source_lines = has_source ? count_rest(source_) : source_.line_number();
    const int64_t target_lines = has_target ? count_rest(target_) : target_.line_number();
    fail(ErrorKind::data,
         "parallel text: {} has {} lines but {} has {}; line i of both must be a translation pair",
         source_.path(), source_lines, target_.path(), target_lines);
  }
  if (!has_source) return false;
  source_.check_utf8(source);
  target_.check_utf8(target);
  return true;
}

}  // namespace heddle
