// Running text for language models: documents out of plain files, JSON lines and tables.
#pragma once

#include <string>
#include <vector>

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

}  // namespace heddle
