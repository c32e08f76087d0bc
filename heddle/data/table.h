// Rows of CSV, tab-separated and JSON-lines files, and the columns that are asked for.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "heddle/base/json/json.h"

namespace heddle {

/// The cells of one row, in the order in which columns were asked for, and where it stands.
struct TableRow {
  std::vector<std::string> cells;
  int64_t line = 0;  ///< on which it begins, from 1
};

/// True if the name of a file, ".gz" aside, ends as JSON lines (.jsonl, .ndjson) or as a table
/// (.csv, .tsv) does.
bool is_json_lines(const std::string& path);
bool is_table(const std::string& path);

/// Calls f for each line of a file of JSON lines but blank ones, with its place ("FILE: line 7")
/// and number. Errors: data, naming file and line, for broken JSON; those of LineReader.
void for_json_lines(const std::string& path,
                    const std::function<void(const Json&, const std::string&, int64_t)>& f);

/// Columns of a file by its name: .csv (RFC 4180: quoted fields may hold commas, line ends and
/// doubled quotes; semicolons in place of commas where the first line has such and no comma, as
/// Excel writes it in much of Europe), .tsv (no quoting), .jsonl (fields of an object each; numbers
/// and truth values as they are written). A table's first row names its columns; where all of
/// `columns` are numbers, they count columns from 1 and there is no such row. Blank lines are
/// passed over. `hint` stands behind the message of a missing column: how the caller's user names
/// columns. Errors: data, naming file and line, for text that is not UTF-8, a row with another
/// number of fields, an open quote, a column that is missing (the names that are there are listed),
/// or a file without rows.
std::vector<TableRow> read_columns(const std::string& path, const std::vector<std::string>& columns,
                                   const std::string& hint = "");

}  // namespace heddle
