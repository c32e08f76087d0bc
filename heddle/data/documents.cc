// Finding, reading and splitting the files of running text.
#include "heddle/data/documents.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <optional>

#include "heddle/base/error.h"
#include "heddle/base/files/files.h"
#include "heddle/base/files/lines.h"
#include "heddle/base/names.h"
#include "heddle/base/utf8.h"
#include "heddle/data/table.h"

namespace heddle {
namespace {

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
  const auto begin_of_line = [&](size_t at) {
    return at == 0 ? size_t{0} : text.rfind('\n', at - 1) + 1;
  };
  if (const auto at = first_invalid_utf8(text)) {
    const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<int64_t>(*at), '\n');
    fail(ErrorKind::data,
         "{}: line {} is not UTF-8 (byte {:#04x} at column {}); convert the file, e.g. with iconv",
         path, line, static_cast<uint8_t>(text[*at]), *at - begin_of_line(*at) + 1);
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
  split.train.insert(split.train.end(), std::make_move_iterator(documents.begin()),
                     std::make_move_iterator(middle));
  split.val.insert(split.val.end(), std::make_move_iterator(middle),
                   std::make_move_iterator(documents.end()));
}

bool has_text(const std::vector<std::string>& documents) {
  return std::ranges::any_of(documents, [](const std::string& d) { return !d.empty(); });
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

}  // namespace heddle
