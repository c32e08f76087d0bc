// Writing JSON: numbers that read back to the same bits, strings that are always UTF-8.
#include <cmath>
#include <iterator>

#include "heddle/base/error.h"
#include "heddle/base/json/json.h"
#include "heddle/base/utf8.h"

namespace heddle {

namespace {

void write_string(std::string& out, std::string_view text) {
  out += '"';
  for (size_t i = 0; i < text.size();) {
    const char c = text[i];
    const size_t length = utf8_length(text.substr(i));
    if (length == 0) {
      out += kUnknownCharacter;
      ++i;
      continue;
    }
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (c == '\r') {
      out += "\\r";
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<unsigned>(c));
    } else {
      out.append(text, i, length);
    }
    i += length;
  }
  out += '"';
}

void write_double(std::string& out, double value) {
  check(std::isfinite(value), ErrorKind::data, "JSON has no way to write the number {}", value);
  const std::string text = fmt::format("{}", value);  // shortest that reads back
  out += text;
  if (text.find_first_of(".e") == std::string::npos) out += ".0";
}

void new_line(std::string& out, int indent, int level) {
  if (indent < 0) return;
  out += '\n';
  out.append(static_cast<size_t>(indent) * static_cast<size_t>(level), ' ');
}

void write(std::string& out, const Json& value, int indent, int level);

void write_array(std::string& out, const Json::Array& values, int indent, int level) {
  out += '[';
  for (size_t i = 0; i < values.size(); ++i) {
    if (i > 0) out += indent < 0 ? ", " : ",";
    new_line(out, indent, level + 1);
    write(out, values[i], indent, level + 1);
  }
  if (!values.empty()) new_line(out, indent, level);
  out += ']';
}

void write_object(std::string& out, const Json& value, int indent, int level) {
  out += '{';
  bool is_first = true;
  for (const auto& [key, member] : value.as_object()) {
    if (!is_first) out += indent < 0 ? ", " : ",";
    is_first = false;
    new_line(out, indent, level + 1);
    write_string(out, key);
    out += ": ";
    write(out, member, indent, level + 1);
  }
  if (!is_first) new_line(out, indent, level);
  out += '}';
}

void write(std::string& out, const Json& value, int indent, int level) {
  if (value.is_null()) {
    out += "null";
  } else if (value.is_bool()) {
    out += value.as_bool() ? "true" : "false";
  } else if (value.is_int()) {
    fmt::format_to(std::back_inserter(out), "{}", value.as_int());
  } else if (value.is_number()) {
    write_double(out, value.as_double());
  } else if (value.is_string()) {
    write_string(out, value.as_string());
  } else if (value.is_array()) {
    write_array(out, value.as_array(), indent, level);
  } else {
    write_object(out, value, indent, level);
  }
}

}  // namespace

std::string Json::dump(int indent) const {
  std::string out;
  write(out, *this, indent, 0);
  return out;
}

}  // namespace heddle
