// Finding, reading and splitting the files of running text; reading rows of tables and JSON lines.
#include "heddle/data/documents.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <optional>
#include <utility>

#include "heddle/base/error.h"
#include "heddle/base/files/files.h"
#include "heddle/base/files/lines.h"
#include "heddle/base/names.h"
#include "heddle/base/utf8.h"

namespace heddle {
namespace {

bool has_ending(std::string path, std::initializer_list<const char*> endings) {
  if (path.ends_with(".gz")) path.resize(path.size() - 3);
  return std::any_of(endings.begin(), endings.end(),
                     [&](const char* ending) { return path.ends_with(ending); });
}

bool is_table(const std::string& path) { return has_ending(path, {".csv", ".tsv"}); }

bool is_text(const std::string& path) {
  return is_json_lines(path) || is_table(path) ||
         std::ranges::any_of(std::array{".txt", ".txt.gz", ".md", ".text", ".conll"},
                             [&](const char* ending) { return path.ends_with(ending); });
}

// One document a row.
std::vector<std::string> read_rows(const std::string& path, const std::string& key) {
  std::vector<std::string> documents;
  const std::string hint = name_fields(
      "Name it by `text_key`; of a file without such a row, by its number (`text_key` 1)");
  for (TableRow& row : read_columns(path, {key}, hint)) {
    documents.push_back(std::move(row.cells[0]));
  }
  return documents;
}

std::string read_plain(const std::string& path) {
  std::string text = LineReader(path).rest();
  if (const auto at = first_invalid_utf8(text)) {
    const size_t begin = text.rfind('\n', *at) + 1;  // of its line
    const std::string_view before = std::string_view(text).substr(0, begin);
    check_line_utf8(text.substr(begin), path, 1 + std::ranges::count(before, '\n'));
  }
  // In one pass: to erase each '\r' by itself would move the rest of the text every time.
  size_t end = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    const bool is_dropped = text[at] == '\r' && at + 1 < text.size() && text[at + 1] == '\n';
    if (!is_dropped) text[end++] = text[at];
  }
  text.resize(end);
  return text;
}

// The file of a split in a folder: NAME.* that is text; the first of these names that is there.
std::optional<std::string> find_split(const std::string& folder,
                                      std::initializer_list<const char*> names) {
  const std::vector<std::string> all = list_directory(folder);
  for (const char* name : names) {
    std::vector<std::string> found;
    for (const std::string& file : all) {
      if (file.starts_with(std::string(name) + ".") && is_text(file)) found.push_back(file);
    }
    check(found.size() < 2, ErrorKind::data,
          "{}: {} are all there, and only one can be the text of '{}'; keep one of them, or name "
          "the file itself",
          folder, fmt::join(found, ", "), name);
    if (!found.empty()) return join_path(folder, found[0]);
  }
  return std::nullopt;
}

void cut(std::vector<std::string> documents, double val_share, DocumentSplit& split) {
  if (documents.size() == 1) {
    const auto characters = static_cast<double>(count_characters(documents[0]));
    const auto kept = static_cast<int64_t>((1 - val_share) * characters);
    const size_t at = end_of_characters(documents[0], kept);
    split.val.push_back(documents[0].substr(at));
    documents[0].resize(at);
    split.train.push_back(std::move(documents[0]));
    return;
  }
  const auto held_out =
      static_cast<int64_t>(std::ceil(val_share * static_cast<double>(documents.size())));
  const auto middle = documents.end() - held_out;
  std::move(documents.begin(), middle, std::back_inserter(split.train));
  std::move(middle, documents.end(), std::back_inserter(split.val));
}

// Before hours are spent on it: running text is held whole, and its ids beside it.
void check_fits_memory(const TextFiles& files, const std::string& name) {
  int64_t bytes = 0;
  const auto add = [&](const std::string& path) {
    std::error_code unknown;  // of a pipe
    if (std::filesystem::is_regular_file(path, unknown)) bytes += file_size(path);
  };
  std::ranges::for_each(files.train, add);
  if (!files.val.empty()) add(files.val);
  const int64_t memory = sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGE_SIZE);
  check(bytes < memory, ErrorKind::system,
        "{}: {:.1f} GB of running text, which is held in memory, and this machine has {:.1f} GB; "
        "take a part of it (sentence pairs and images are read from a cache on the disk)",
        name, static_cast<double>(bytes) / 1e9, static_cast<double>(memory) / 1e9);
}

bool has_text(const std::vector<std::string>& documents) {
  return std::ranges::any_of(documents, [](const std::string& d) { return !d.empty(); });
}

bool is_number(const std::string& text) {
  return !text.empty() && text.size() < 6 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

/// Reads rows of fields; a quoted field may go on over lines.
class RowReader {
 public:
  /// may_have_semicolons: of a .csv whose first line has semicolons and no comma they separate.
  RowReader(const std::string& path, bool may_have_semicolons)
      : reader_(path),
        separator_(has_ending(path, {".csv"}) ? ',' : '\t'),
        may_have_semicolons_(may_have_semicolons && separator_ == ',') {}

  /// The next row that is not blank, false at the end.
  bool next(TableRow& row) {
    std::string line;
    do {
      if (!next_line(line)) return false;
    } while (line.empty());
    if (std::exchange(may_have_semicolons_, false) && line.find(',') == line.npos &&
        line.find(';') != line.npos) {
      separator_ = ';';
    }
    row.line = reader_.line_number();
    row.cells.assign(1, "");
    split(line, row);
    return true;
  }

 private:
  bool next_line(std::string& line) {
    if (!reader_.next(line)) return false;
    reader_.check_utf8(line);
    return true;
  }

  void split(std::string line, TableRow& row) {
    bool is_quoted = false;
    const auto is_quote = [&](size_t at) {
      return separator_ != '\t' && at < line.size() && line[at] == '"';
    };
    for (size_t i = 0;; ++i) {
      if (i == line.size()) {
        if (!is_quoted) return;
        check(next_line(line), ErrorKind::data,
              "{}: the quote that opens in the row of line {} is never closed", reader_.path(),
              row.line);
        row.cells.back() += '\n';
        i = static_cast<size_t>(-1);
      } else if (is_quoted && is_quote(i) && is_quote(i + 1)) {
        row.cells.back() += line[i++];
      } else if (is_quote(i) && (is_quoted || row.cells.back().empty())) {
        is_quoted = !is_quoted;
      } else if (line[i] == separator_ && !is_quoted) {
        row.cells.emplace_back();
      } else {
        row.cells.back() += line[i];
      }
    }
  }

  LineReader reader_;
  char separator_;
  bool may_have_semicolons_;
};

std::vector<TableRow> read_table(const std::string& path, const std::vector<std::string>& columns,
                                 const std::string& hint) {
  // The first column alone may be all that a line has, whatever stands in it.
  RowReader reader(path, columns != std::vector<std::string>{"1"});
  std::vector<size_t> places;
  size_t width = 0;
  TableRow row;
  if (std::all_of(columns.begin(), columns.end(), is_number)) {
    for (const std::string& column : columns) {
      check(column != "0", ErrorKind::data, "{}: columns are counted from 1", path);
      places.push_back(std::stoul(column) - 1);
    }
  } else if (reader.next(row)) {
    width = row.cells.size();
    for (const std::string& column : columns) {
      const auto at = std::find(row.cells.begin(), row.cells.end(), column);
      check(at != row.cells.end(), ErrorKind::data, "{}: there is no column '{}'; there are: {}{}",
            path, column, fmt::join(row.cells, ", "), hint.empty() ? "" : ". " + hint);
      places.push_back(static_cast<size_t>(at - row.cells.begin()));
    }
  }
  std::vector<TableRow> rows;
  while (reader.next(row)) {
    if (width == 0) width = row.cells.size();
    check(row.cells.size() == width, ErrorKind::data,
          "{}: the row of line {} has {} fields, not {}", path, row.line, row.cells.size(), width);
    TableRow& kept = rows.emplace_back();
    kept.line = row.line;
    for (const size_t place : places) {
      check(place < width, ErrorKind::data, "{}: there is no column {}; line {} has {}", path,
            place + 1, row.line, width);
      kept.cells.push_back(row.cells[place]);
    }
  }
  return rows;
}

std::vector<TableRow> read_json_lines(const std::string& path,
                                      const std::vector<std::string>& columns) {
  std::vector<TableRow> rows;
  for_json_lines(path, [&](const Json& json, const std::string& where, int64_t number) {
    TableRow& row = rows.emplace_back();
    row.line = number;
    for (const std::string& column : columns) {
      const Json& cell = json.at(column, where);
      if (cell.is_null()) {  // as an empty field of CSV
        row.cells.emplace_back();
        continue;
      }
      check(cell.is_string() || cell.is_number() || cell.is_bool(), ErrorKind::data,
            "{}: '{}' is {}; a string or a number is needed", where, column, cell.describe());
      row.cells.push_back(cell.is_string() ? cell.as_string() : cell.dump());
    }
  });
  return rows;
}

}  // namespace

TextFiles find_text_files(const DocumentFiles& files) {
  check(path_exists(files.train), ErrorKind::data, "{}: there is no such file or folder",
        files.train);
  check(files.val.empty() || path_exists(files.val), ErrorKind::data, "{}: there is no such file",
        files.val);
  TextFiles found{{files.train}, files.val};
  if (!is_directory(files.train)) return found;
  if (const auto train = find_split(files.train, {"train"})) {
    found.train = {*train};
    if (!found.val.empty()) return found;
    if (const auto val = find_split(files.train, {"val", "valid", "validation", "dev", "test"})) {
      found.val = *val;
    }
    return found;
  }
  found.train.clear();
  for (const std::string& name : list_directory(files.train)) {
    if (is_text(name) && name != "README.md") found.train.push_back(join_path(files.train, name));
  }
  check(!found.train.empty(), ErrorKind::data,
        "{}: the folder has neither train.* nor any other file of text (.txt, .md, .text, .conll, "
        ".jsonl, .ndjson, .csv or .tsv)",
        files.train);
  return found;
}

std::vector<std::string> read_documents(const std::string& path, const std::string& text_key) {
  std::vector<std::string> documents = is_json_lines(path) || is_table(path)
                                           ? read_rows(path, text_key)
                                           : std::vector{read_plain(path)};
  check(has_text(documents), ErrorKind::data, "{}: the file has no text", path);
  return documents;
}

DocumentSplit split_documents(const DocumentFiles& files) {
  const TextFiles sources = find_text_files(files);
  check_fits_memory(sources, files.train);
  DocumentSplit split;
  for (const std::string& path : sources.train) {
    std::vector<std::string> documents = read_documents(path, files.text_key);
    if (sources.val.empty()) {
      cut(std::move(documents), files.val_share, split);
    } else {
      std::move(documents.begin(), documents.end(), std::back_inserter(split.train));
    }
  }
  if (!sources.val.empty()) split.val = read_documents(sources.val, files.text_key);
  check(has_text(split.train), ErrorKind::data, "{}: no text is left to train on", files.train);
  check(has_text(split.val), ErrorKind::data, "{}: no text is left to validate on",
        sources.val.empty() ? files.train : sources.val);
  return split;
}

bool is_json_lines(const std::string& path) { return has_ending(path, {".jsonl", ".ndjson"}); }

void for_json_lines(const std::string& path,
                    const std::function<void(const Json&, const std::string&, int64_t)>& f) {
  LineReader reader(path);
  for (std::string line; reader.next(line);) {
    if (line.find_first_not_of(" \t") == std::string::npos) continue;
    const std::string where = fmt::format("{}: line {}", path, reader.line_number());
    f(Json::parse(line, where), where, reader.line_number());
  }
}

std::vector<TableRow> read_columns(const std::string& path, const std::vector<std::string>& columns,
                                   const std::string& hint) {
  check(is_json_lines(path) || is_table(path), ErrorKind::data,
        "{}: rows are read from .csv, .tsv or .jsonl files (also with .gz)", path);
  std::vector<TableRow> rows =
      is_table(path) ? read_table(path, columns, hint) : read_json_lines(path, columns);
  check(!rows.empty(), ErrorKind::data, "{}: the file has no rows", path);
  return rows;
}

}  // namespace heddle
