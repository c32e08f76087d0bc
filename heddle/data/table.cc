// Reading tables.
#include "heddle/data/table.h"

#include <algorithm>
#include <utility>

#include "heddle/base/error.h"
#include "heddle/base/files/lines.h"
#include "heddle/base/utf8.h"

namespace heddle {
namespace {

bool has_ending(std::string path, std::initializer_list<const char*> endings) {
  if (path.ends_with(".gz")) path.resize(path.size() - 3);
  return std::any_of(endings.begin(), endings.end(),
                     [&](const char* ending) { return path.ends_with(ending); });
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
    separator_ == '\t' ? split_plain(line, row) : split_quoted(line, row);
    return true;
  }

 private:
  bool next_line(std::string& line) {
    if (!reader_.next(line)) return false;
    const auto bad = first_invalid_utf8(line);
    check(!bad, ErrorKind::data,
          "{}: line {} is not UTF-8 (column {}); convert the file, e.g. with iconv", reader_.path(),
          reader_.line_number(), bad.value_or(0) + 1);
    return true;
  }

  void split_plain(const std::string& line, TableRow& row) const {
    for (const char c : line) {
      c == separator_ ? void(row.cells.emplace_back()) : row.cells.back().push_back(c);
    }
  }

  void split_quoted(std::string line, TableRow& row) {
    bool is_quoted = false;
    for (size_t i = 0;; ++i) {
      if (i == line.size()) {
        if (!is_quoted) return;
        check(next_line(line), ErrorKind::data,
              "{}: the quote that opens in the row of line {} is never closed", reader_.path(),
              row.line);
        row.cells.back() += '\n';
        i = static_cast<size_t>(-1);
      } else if (line[i] == '"' && is_quoted && i + 1 < line.size() && line[i + 1] == '"') {
        row.cells.back() += line[i++];
      } else if (line[i] == '"' && (is_quoted || row.cells.back().empty())) {
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
      check(cell.is_string() || cell.is_number() || cell.is_bool(), ErrorKind::data,
            "{}: '{}' is {}; a string or a number is needed", where, column, cell.describe());
      row.cells.push_back(cell.is_string() ? cell.as_string() : cell.dump());
    }
  });
  return rows;
}

}  // namespace

bool is_json_lines(const std::string& path) { return has_ending(path, {".jsonl", ".ndjson"}); }
bool is_table(const std::string& path) { return has_ending(path, {".csv", ".tsv"}); }

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
