// Explanations as text for a terminal and as a page.
#include <algorithm>
#include <cmath>

#include "heddle/base/utf8.h"
#include "heddle/inspect/explanation.h"

namespace heddle::inspect {
namespace {

constexpr int64_t kRows = 12, kCols = 8;

// The label in so many columns of a terminal.
std::string padded(std::string label, size_t width, bool is_left) {
  if (first_invalid_utf8(label)) label = "?";
  label.resize(end_of_characters(label, static_cast<int64_t>(width)));
  const std::string space(width - count_characters(label), ' ');
  return is_left ? label + space : space + label;
}

std::string number_text(double x, bool is_large) {
  if (std::isinf(x)) return x < 0 ? "-inf" : "inf";
  return is_large ? fmt::format("{:.4g}", x) : fmt::format("{:.4f}", x);
}

std::string label_of(const std::vector<std::string>& labels, int64_t i) {
  return labels.empty() ? std::to_string(i) : labels[i];
}

std::string matrix_text(const ExplainedStep& step, size_t label_width) {
  const Matrix& m = step.result;
  double high = 0;
  for (const double x : m.values) {
    if (std::isfinite(x)) high = std::max(high, std::abs(x));
  }
  const int64_t rows = std::min(m.rows, kRows), cols = std::min(m.cols, kCols);
  std::string text = std::string(label_width, ' ');
  for (int64_t j = 0; j < cols; ++j) text += " " + padded(label_of(step.cols, j), 10, false);
  text += m.cols > cols ? "  ...\n" : "\n";
  for (int64_t i = 0; i < rows; ++i) {
    text += padded(label_of(step.rows, i), label_width, true);
    for (int64_t j = 0; j < cols; ++j) {
      text += " " + padded(number_text(m.at(i, j), high >= 1e5), 10, false);
    }
    text += m.cols > cols ? "  ...\n" : "\n";
  }
  return m.rows > rows ? text + "...\n" : text;
}

// 7 digits; -inf is null.
Json matrix_json(const Matrix& m) {
  return rows_json(m.values, m.rows, m.cols, [](double x) {
    return std::isfinite(x) ? Json(rounded_to_digits(x, 7)) : Json();
  });
}

}  // namespace

std::string explanation_text(const Explanation& e) {
  std::string text = e.title + "\n" + (e.note.empty() ? "" : e.note + "\n");
  for (size_t i = 0; i < e.steps.size(); ++i) {
    const ExplainedStep& s = e.steps[i];
    text += fmt::format("\n{}. {}: {}   [{} x {}]\n   {}\n", i + 1, s.name, s.formula,
                        s.result.rows, s.result.cols, s.text);
    text += matrix_text(s, e.label_width);
  }
  return text;
}

Page explanation_page(const Explanation& e) {
  Page page{.title = e.title, .data = {}, .scripts = {"explain.js"}};
  page.data["note"] = e.note;
  page.data["queries"] = e.queries;
  page.data["keys"] = e.keys;
  page.data["divisor"] = e.divisor;
  page.data["is_causal"] = e.is_causal;
  if (e.grid) {
    page.data["grid"] = Json::object({{"tokens", e.grid->tokens},
                                      {"rows", e.grid->size.height},
                                      {"columns", e.grid->size.width}});
  }
  page.data["steps"] = json_list(e.steps, [](const ExplainedStep& s) {
    return Json::object({{"key", s.key},
                         {"name", s.name},
                         {"formula", s.formula},
                         {"text", s.text},
                         {"rows", s.rows},
                         {"cols", s.cols},
                         {"values", matrix_json(s.result)}});
  });
  return page;
}

}  // namespace heddle::inspect
