// Python's str(), repr(), json.dumps() and comparisons, of the values that templates have.
#include "heddle/text/chat/jinja_value.h"

#include <algorithm>
#include <cmath>

#include "heddle/base/error.h"
#include "heddle/base/utf8.h"

namespace heddle {

void JinjaBudget::run_out() {
  fail(ErrorKind::data, "the template takes too many steps, or makes too much text");
}

JinjaValue::JinjaValue(JinjaCallable value)
    : value_(std::make_shared<const JinjaCallable>(std::move(value))) {}

JinjaValue JinjaValue::list(std::vector<JinjaValue> items, bool is_tuple) {
  int depth = 0;
  bool holds_namespace = false;
  for (const JinjaValue& item : items) {
    depth = std::max(depth, item.depth());
    holds_namespace = holds_namespace || item.holds_namespace();
  }
  check(depth < kDeepest, ErrorKind::data, "the template makes values of more than {} levels",
        kDeepest);
  JinjaValue value;
  value.value_ = std::make_shared<const JinjaSequence>(
      JinjaSequence{std::move(items), is_tuple, depth + 1, holds_namespace});
  return value;
}

JinjaValue JinjaValue::dict(std::vector<std::pair<JinjaValue, JinjaValue>> members) {
  int depth = 0;
  bool holds_namespace = false;
  for (const auto& [key, item] : members) {
    depth = std::max({depth, key.depth(), item.depth()});
    holds_namespace = holds_namespace || item.holds_namespace();
  }
  check(depth < kDeepest, ErrorKind::data, "the template makes values of more than {} levels",
        kDeepest);
  JinjaValue value;
  value.value_ =
      std::make_shared<const JinjaDict>(JinjaDict{std::move(members), depth + 1, holds_namespace});
  return value;
}

JinjaValue JinjaValue::of_json(const Json& json) {
  if (json.is_null()) return {};
  if (json.is_bool()) return json.as_bool();
  if (json.is_int()) return json.as_int();
  if (json.is_number()) return json.as_double();
  if (json.is_string()) return json.as_string();
  if (json.is_array()) {
    std::vector<JinjaValue> items;
    for (const Json& item : json.as_array()) items.push_back(of_json(item));
    return list(std::move(items));
  }
  std::vector<std::pair<JinjaValue, JinjaValue>> members;
  for (const auto& [key, item] : json.as_object()) members.emplace_back(key, of_json(item));
  return dict(std::move(members));
}

int64_t JinjaValue::integer(std::string_view what) const {
  if (is_bool()) return std::get<bool>(value_) ? 1 : 0;
  check(is_int(), ErrorKind::data, "{} is a value of type {}; an integer is needed", what, type());
  return std::get<int64_t>(value_);
}

double JinjaValue::number(std::string_view what) const {
  return is_float() ? std::get<double>(value_) : static_cast<double>(integer(what));
}

const char* JinjaValue::type() const {
  static constexpr const char* names[] = {"None", "undefined", "bool", "int",       "float",
                                          "str",  "list",      "dict", "namespace", "function"};
  return names[value_.index()];
}

bool JinjaValue::is_true() const {
  if (is_none() || is_undefined()) return false;
  if (is_bool()) return std::get<bool>(value_);
  if (is_int()) return std::get<int64_t>(value_) != 0;
  if (is_float()) return std::get<double>(value_) != 0;
  if (is_string()) return !string().empty();
  if (is_sequence()) return !sequence().items.empty();
  if (is_dict()) return !dict().members.empty();
  return true;
}

int JinjaValue::depth() const {
  if (is_sequence()) return sequence().depth;
  if (is_callable()) return callable().self != nullptr ? callable().self->depth() : 0;
  return is_dict() ? dict().depth : 0;
}

bool JinjaValue::holds_namespace() const {
  if (is_namespace()) return true;
  if (is_callable()) return callable().self != nullptr && callable().self->holds_namespace();
  if (is_sequence()) return sequence().holds_namespace;
  return is_dict() && dict().holds_namespace;
}

const JinjaValue* JinjaValue::find(const JinjaValue& key, JinjaBudget& budget) const {
  for (const auto& [name, value] : dict().members) {
    budget.spend();
    const bool is_it = key.is_string() && name.is_string() ? key.string() == name.string()
                                                           : jinja_equal(name, key, budget);
    if (is_it) return &value;
  }
  return nullptr;
}

namespace {

std::string float_text(double value, bool is_json) {
  if (std::isnan(value)) return is_json ? "NaN" : "nan";
  if (std::isinf(value)) {
    const std::string name = is_json ? "Infinity" : "inf";
    return value < 0 ? "-" + name : name;
  }
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

// repr() of a text: with ' around it, or " where it holds ' alone.
void append_repr(const std::string& text, std::string& out) {
  const bool has_single = text.find('\'') != std::string::npos;
  const char quote = has_single && text.find('"') == std::string::npos ? '"' : '\'';
  out += quote;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == quote || c == '\\') {
      out += '\\', out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\r') {
      out += "\\r";
    } else if (c == '\t') {
      out += "\\t";
    } else if (byte < 0x20 || byte == 0x7f) {
      out += fmt::format("\\x{:02x}", byte);
    } else {
      out += c;
    }
  }
  out += quote;
}

// "\u00e9": of code points beyond 16 bits two halves.
void append_escaped(char32_t c, std::string& out) {
  if (c >= 0x10000) {
    append_escaped(0xD800 + ((c - 0x10000) >> 10), out);
    c = 0xDC00 + ((c - 0x10000) & 0x3FF);
  }
  out += fmt::format("\\u{:04x}", static_cast<uint32_t>(c));
}

void append_json_string(const std::string& text, bool is_ascii, std::string& out) {
  out += '"';
  for (size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (is_ascii && static_cast<unsigned char>(c) >= 0x7F) {
      append_escaped(next_code_point(text, at), out);
      continue;
    }
    ++at;
    switch (c) {
      case '"': out += "\\\""; break;
      case '\\': out += "\\\\"; break;
      case '\n': out += "\\n"; break;
      case '\r': out += "\\r"; break;
      case '\t': out += "\\t"; break;
      case '\b': out += "\\b"; break;
      case '\f': out += "\\f"; break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          append_escaped(static_cast<unsigned char>(c), out);
        } else {
          out += c;
        }
    }
  }
  out += '"';
}

// Writes values as Python prints them, or as JSON.
class ValueWriter {
 public:
  ValueWriter(bool is_json, const JinjaJsonForm& form, JinjaBudget& budget)
      : is_json_(is_json), form_(form), budget_(budget) {}

  void write(const JinjaValue& value) {
    budget_.spend();
    if (value.is_none()) {
      out += is_json_ ? "null" : "None";
    } else if (value.is_bool()) {
      out += is_json_ ? (value.is_true() ? "true" : "false") : (value.is_true() ? "True" : "False");
    } else if (value.is_int()) {
      out += fmt::format("{}", value.integer("value"));
    } else if (value.is_float()) {
      out += float_text(value.number("value"), is_json_);
    } else if (value.is_string()) {
      budget_.spend_bytes(value.string().size());
      is_json_ ? append_json_string(value.string(), form_.is_ascii, out)
               : append_repr(value.string(), out);
    } else if (value.is_sequence()) {
      write_sequence(value.sequence());
    } else if (value.is_dict()) {
      write_dict(value.dict());
    } else {
      check(!is_json_, ErrorKind::data, "tojson: a value of type {} is not JSON", value.type());
      out += value.is_undefined() ? "Undefined" : fmt::format("<{}>", value.type());
    }
  }

  std::string out;

 private:
  void write_sequence(const JinjaSequence& sequence) {
    const bool is_tuple = sequence.is_tuple && !is_json_;
    out += is_tuple ? '(' : '[';
    ++level_;
    for (size_t i = 0; i < sequence.items.size(); ++i) {
      separate(i);
      write(sequence.items[i]);
    }
    close(sequence.items.empty());
    if (is_tuple && sequence.items.size() == 1) out += ',';
    out += is_tuple ? ')' : ']';
  }

  void write_dict(const JinjaDict& dict) {
    out += '{';
    ++level_;
    std::vector<const std::pair<JinjaValue, JinjaValue>*> members;
    for (const auto& member : dict.members) members.push_back(&member);
    if (form_.sorts_keys) {
      std::ranges::stable_sort(members, [&](const auto* a, const auto* b) {
        return jinja_less(a->first, b->first, budget_);
      });
    }
    for (size_t i = 0; i < members.size(); ++i) {
      separate(i);
      write_key(members[i]->first);
      budget_.spend_bytes(form_.behind_keys.size());
      out += form_.behind_keys;
      write(members[i]->second);
    }
    close(dict.members.empty());
    out += '}';
  }

  void write_key(const JinjaValue& key) {
    if (!is_json_ || key.is_string()) return write(key);
    check(key.is_none() || key.is_number(), ErrorKind::data, "tojson: a key of type {} is not JSON",
          key.type());
    out += '"';
    write(key);
    out += '"';
  }

  void new_line() {
    out += '\n';
    budget_.spend(level_);
    for (int64_t i = 0; i < level_; ++i) out += *form_.indent;
  }
  void separate(size_t i) {
    if (i > 0) {
      budget_.spend_bytes(form_.between_items.size());
      out += form_.between_items;
    }
    if (form_.indent) new_line();
  }
  void close(bool is_empty) {
    --level_;
    if (form_.indent && !is_empty) new_line();
  }

  const bool is_json_;
  const JinjaJsonForm& form_;
  JinjaBudget& budget_;
  int64_t level_ = 0;
};

}  // namespace

std::string jinja_text(const JinjaValue& value, JinjaBudget& budget) {
  if (value.is_undefined()) return "";
  if (value.is_string()) {
    budget.spend_bytes(value.string().size());
    return value.string();
  }
  const JinjaJsonForm form;
  ValueWriter writer(false, form, budget);
  writer.write(value);
  return std::move(writer.out);
}

std::string jinja_json(const JinjaValue& value, const JinjaJsonForm& form, JinjaBudget& budget) {
  ValueWriter writer(true, form, budget);
  writer.write(value);
  return std::move(writer.out);
}

bool jinja_equal(const JinjaValue& a, const JinjaValue& b, JinjaBudget& budget) {
  budget.spend();
  if (a.is_number() && b.is_number()) {
    if (a.is_float() || b.is_float()) return a.number("value") == b.number("value");
    return a.integer("value") == b.integer("value");
  }
  if (a.is_string() && b.is_string()) {
    budget.spend_bytes(std::min(a.string().size(), b.string().size()));
    return a.string() == b.string();
  }
  if (a.is_sequence() && b.is_sequence()) {
    const auto &x = a.sequence(), &y = b.sequence();
    if (x.is_tuple != y.is_tuple || x.items.size() != y.items.size()) return false;
    for (size_t i = 0; i < x.items.size(); ++i) {
      if (!jinja_equal(x.items[i], y.items[i], budget)) return false;
    }
    return true;
  }
  if (a.is_dict() && b.is_dict()) {
    if (a.dict().members.size() != b.dict().members.size()) return false;
    for (const auto& [key, value] : a.dict().members) {
      const JinjaValue* other = b.find(key, budget);
      if (other == nullptr || !jinja_equal(value, *other, budget)) return false;
    }
    return true;
  }
  if (a.is_namespace() && b.is_namespace()) return &a.name_space() == &b.name_space();
  return (a.is_none() && b.is_none()) || (a.is_undefined() && b.is_undefined());
}

bool jinja_less(const JinjaValue& a, const JinjaValue& b, JinjaBudget& budget) {
  budget.spend();
  if (a.is_number() && b.is_number()) {
    if (a.is_float() || b.is_float()) return a.number("value") < b.number("value");
    return a.integer("value") < b.integer("value");
  }
  if (a.is_string() && b.is_string()) {
    budget.spend_bytes(std::min(a.string().size(), b.string().size()));
    return a.string() < b.string();
  }
  if (a.is_sequence() && b.is_sequence()) {
    const auto &x = a.sequence().items, &y = b.sequence().items;
    for (size_t i = 0; i < std::min(x.size(), y.size()); ++i) {
      if (!jinja_equal(x[i], y[i], budget)) return jinja_less(x[i], y[i], budget);
    }
    return x.size() < y.size();
  }
  fail(ErrorKind::data, "values of types {} and {} have no order", a.type(), b.type());
}

}  // namespace heddle
