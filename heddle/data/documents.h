// Running text for language models: documents out of plain files, JSON lines and tables; and the
// columns that are asked for of the rows of both.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "heddle/base/json/json.h"

namespace heddle {

/// The documents of a training run.
struct DocumentSplit {
  std::vector<std::string> train, val;
};

struct DocumentFiles {
  std::string train = {};         ///< file or folder
  std::string val = {};           ///< file; empty: see split_documents()
  double val_share = 0.1;         ///< of what is cut off
  std::string text_key = "text";  ///< field of a JSON line
};

/// What DocumentFiles name, found.
struct TextFiles {
  std::vector<std::string> train;
  std::string val;  ///< empty: cut off those
};

/// `train` may be a folder that holds train.* and val.* (or valid.*, validation.*, dev.*, test.*,
/// the first that is there); a folder without train.* gives all its text files, by name. Text are
/// .txt, .md, .text, .conll, and what read_columns() reads: train.bin of tokens is passed over.
/// Errors: data if something is missing, or a split has two such files.
TextFiles find_text_files(const DocumentFiles& files);

/// The documents of a file, by its name (".gz" aside): JSON lines and tables have one a row, in the
/// column `text_key`, see read_columns(); any other file is one document, as it stands but for
/// "\r\n", which becomes "\n". Gzip is decompressed.
/// Errors: data, naming file and line, for text that is not UTF-8, those of read_columns(), or a
/// file without text.
std::vector<std::string> read_documents(const std::string& path, const std::string& text_key);

/// Training and held-out documents. Where find_text_files() gives no `val`, the end of the text is
/// held out: `val_share` of the characters of each plain file, or of the rows.
/// Errors: those of read_documents(); data if nothing is left to train or to validate on.
DocumentSplit split_documents(const DocumentFiles& files);

/// The cells of one row, in the order in which columns were asked for, and where it stands.
struct TableRow {
  std::vector<std::string> cells;
  int64_t line = 0;  ///< on which it begins, from 1
};

/// True if the name of a file, ".gz" aside, ends as JSON lines do (.jsonl, .ndjson).
bool is_json_lines(const std::string& path);

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
