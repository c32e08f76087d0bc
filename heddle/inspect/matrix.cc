// Matrices from text, from JSON and from tensors.
#include "heddle/inspect/matrix.h"

#include <charconv>
#include <cmath>

#include "heddle/base/error.h"
#include "heddle/base/files/files.h"
#include "heddle/base/json/json.h"

namespace heddle::inspect {
namespace {

using Lines = std::vector<std::vector<double>>;

double parse_number(const std::string& word, const std::string& flag, size_t row) {
  double value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  check(error == std::errc() && end == word.data() + word.size() && std::isfinite(value),
        ErrorKind::usage,
        "{}: '{}' in row {} is no number; give a matrix as \"1 2; 3 4\", as JSON [[1, 2], [3, 4]], "
        "or as the path of a file",
        flag, word, row);
  return value;
}

Lines parse_text(const std::string& text, const std::string& flag) {
  Lines rows(1);
  std::string word;
  const auto end_word = [&] {
    if (!word.empty()) rows.back().push_back(parse_number(word, flag, rows.size()));
    word.clear();
  };
  for (const char c : text + "\n") {
    if (c == ';' || c == '\n') {
      end_word();
      if (!rows.back().empty()) rows.emplace_back();
    } else if (c == ' ' || c == ',' || c == '\t' || c == '\r') {
      end_word();
    } else {
      word += c;
    }
  }
  rows.pop_back();  // the row that the last end began
  return rows;
}

Lines parse_json(const std::string& text, const std::string& flag) {
  Lines rows;
  try {
    const Json json = Json::parse(text, flag);
    for (const Json& row : json.as_array(flag)) {
      rows.emplace_back();
      if (row.is_number()) {  // one column
        rows.back().push_back(row.as_double());
        continue;
      }
      for (const Json& x : row.as_array(flag + ": a row")) {
        rows.back().push_back(x.as_double(flag + ": an element"));
      }
    }
  } catch (const Error& error) {
    throw Error(ErrorKind::usage, error.what());
  }
  return rows;
}

}  // namespace

Matrix parse_matrix(const std::string& text, const std::string& flag) {
  const std::string body = path_exists(text) && !is_directory(text) ? read_file(text) : text;
  const size_t first = body.find_first_not_of(" \t\r\n");
  const Lines rows = first != std::string::npos && body[first] == '[' ? parse_json(body, flag)
                                                                      : parse_text(body, flag);
  check(!rows.empty() && !rows[0].empty(), ErrorKind::usage,
        "{}: there is no number in it; give a matrix as \"1 2; 3 4\"", flag);
  Matrix m(static_cast<int64_t>(rows.size()), static_cast<int64_t>(rows[0].size()));
  for (size_t i = 0; i < rows.size(); ++i) {
    check(rows[i].size() == rows[0].size(), ErrorKind::usage,
          "{}: row {} has {} numbers, row 1 has {}; all rows must be as long", flag, i + 1,
          rows[i].size(), rows[0].size());
    for (size_t j = 0; j < rows[i].size(); ++j) {
      m.at(static_cast<int64_t>(i), static_cast<int64_t>(j)) = rows[i][j];
    }
  }
  return m;
}

double relative_change(std::span<const float> from, std::span<const float> to) {
  double difference = 0, size = 0;
  for (size_t i = 0; i < to.size(); ++i) {
    const double d = to[i] - from[i];
    difference += d * d;
    size += static_cast<double>(from[i]) * from[i];
  }
  return size > 0 ? std::sqrt(difference / size) : 0;
}

Matrix matrix_of(const Tensor& x, int64_t begin, int64_t count) {
  const std::vector<float> values = x.slice(1, begin, count).to_floats();
  Matrix m(x.size(0), count);
  m.values.assign(values.begin(), values.end());
  return m;
}

}  // namespace heddle::inspect
