// Jinja's filters, by name.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>

#include "heddle/base/error.h"
#include "heddle/base/utf8.h"
#include "heddle/text/chat/jinja_functions.h"
#include "heddle/text/chat/jinja_texts.h"
#include "heddle/text/chat/jinja_tree.h"
#include "heddle/text/strings/strings.h"

namespace heddle {

namespace {

using Value = JinjaValue;
using Values = std::vector<JinjaValue>;

struct FilterCall {
  const Value& value;
  const JinjaArguments& arguments;
  JinjaBudget& budget;

  std::string text() const { return jinja_text(value, budget); }
  Values items() const { return jinja_items(value, budget); }
};

// "a.b.0" of a value.
Value attribute_of(const Value& value, const Value& path, JinjaBudget& budget,
                   const Value* otherwise = nullptr) {
  const auto found_or = [&](Value found) {
    return found.is_undefined() && otherwise != nullptr ? *otherwise : found;
  };
  if (!path.is_string()) return found_or(jinja_item(value, path, budget));
  Value found = value;
  for (const std::string& part : jinja_split(path.string(), ".", -1, false, budget)) {
    int64_t number = 0;
    const char* end = part.data() + part.size();
    const auto [rest, error] = std::from_chars(part.data(), end, number);
    const bool is_number = error == std::errc() && rest == end;
    found = found_or(jinja_item(found, is_number ? Value(number) : Value(part), budget));
  }
  return found;
}

// What elements are compared by: small letters unless the case counts.
Values keys_of(const Values& items, const FilterCall& call, const Value* path, bool has_case) {
  Values keys;
  for (const Value& item : items) {
    Value key = path == nullptr || path->is_none() ? item : attribute_of(item, *path, call.budget);
    if (!has_case && key.is_string()) {
      call.budget.spend_bytes(key.string().size());
      key = jinja_cased("lower", key.string());
    }
    keys.push_back(std::move(key));
  }
  return keys;
}

// Items by their keys; equal ones stay as they stand.
Value in_order(const Values& items, const Values& keys, bool is_reversed, JinjaBudget& budget) {
  std::vector<size_t> order(items.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::stable_sort(order, [&](size_t a, size_t b) {
    return is_reversed ? jinja_less(keys[b], keys[a], budget)
                       : jinja_less(keys[a], keys[b], budget);
  });
  Values all;
  for (const size_t i : order) all.push_back(items[i]);
  return Value::list(std::move(all));
}

Value sorted(const FilterCall& call) {
  const Values items = call.items();
  const Values keys = keys_of(items, call, call.arguments.find(2, "attribute"),
                              call.arguments.flag(1, "case_sensitive", false));
  return in_order(items, keys, call.arguments.flag(0, "reverse", false), call.budget);
}

Value dict_sorted(const FilterCall& call) {
  check(call.value.is_dict(), ErrorKind::data, "dictsort needs a dict, not a {}",
        call.value.type());
  const std::string usual = "key";
  const std::string& by = call.arguments.text(1, "by", "dictsort", &usual);
  check(by == "key" || by == "value", ErrorKind::data,
        "dictsort is by '{}'; key and value are there", by);
  Values items, looked_at;
  for (const auto& [key, value] : call.value.dict().members) {
    items.push_back(Value::list({key, value}, true));
    looked_at.push_back(by == "key" ? key : value);
  }
  const Values keys =
      keys_of(looked_at, call, nullptr, call.arguments.flag(0, "case_sensitive", false));
  return in_order(items, keys, call.arguments.flag(2, "reverse", false), call.budget);
}

Value extreme(const FilterCall& call, bool is_least) {
  const Values items = call.items();
  if (items.empty()) return JinjaUndefined{"the extreme of nothing"};
  const Values keys = keys_of(items, call, call.arguments.find(1, "attribute"),
                              call.arguments.flag(0, "case_sensitive", false));
  size_t best = 0;
  for (size_t i = 1; i < keys.size(); ++i) {
    const bool is_better = is_least ? jinja_less(keys[i], keys[best], call.budget)
                                    : jinja_less(keys[best], keys[i], call.budget);
    if (is_better) best = i;
  }
  return items[best];
}

Value unique(const FilterCall& call) {
  const Values items = call.items();
  const Values keys = keys_of(items, call, call.arguments.find(1, "attribute"),
                              call.arguments.flag(0, "case_sensitive", false));
  Values all, seen;
  for (size_t i = 0; i < items.size(); ++i) {
    const bool is_known = std::ranges::any_of(
        seen, [&](const Value& key) { return jinja_equal(key, keys[i], call.budget); });
    if (is_known) continue;
    seen.push_back(keys[i]);
    all.push_back(items[i]);
  }
  return Value::list(std::move(all));
}

// select, reject, selectattr and rejectattr.
Value chosen(const FilterCall& call, bool keeps, bool has_attribute) {
  const JinjaArguments& a = call.arguments;
  const size_t at = has_attribute ? 1 : 0;
  check(!has_attribute || !a.positional.empty(), ErrorKind::data, "an attribute's name is needed");
  const bool has_test = a.positional.size() > at;
  const std::string test = has_test ? a.text(at, "", "select") : "";
  check(!has_test || is_jinja_test(test), ErrorKind::data, "there is no test '{}'", test);
  const JinjaArguments rest = a.behind(at + 1);
  if (!has_test) {
    const std::string name = keeps ? "select" : "reject";
    rest.check_fits(has_attribute ? name + "attr" : name, {});
  }
  Values all;
  for (const Value& item : call.items()) {
    const Value looked_at = has_attribute ? attribute_of(item, a.positional[0], call.budget) : item;
    const bool holds =
        has_test ? apply_jinja_test(test, looked_at, rest, call.budget) : looked_at.is_true();
    if (holds == keeps) all.push_back(item);
  }
  return Value::list(std::move(all));
}

Value mapped(const FilterCall& call) {
  const JinjaArguments& a = call.arguments;
  Values all;
  if (a.positional.empty()) {
    a.check_fits("map", {"attribute", "default"});
    const Value* path = a.find(1, "attribute");
    check(path != nullptr, ErrorKind::data, "map needs a filter, or attribute=");
    const Value* otherwise = a.find(1, "default");
    for (const Value& item : call.items()) {
      all.push_back(attribute_of(item, *path, call.budget, otherwise));
    }
    return Value::list(std::move(all));
  }
  const std::string& filter = a.text(0, "", "map");
  check(is_jinja_filter(filter), ErrorKind::data, "there is no filter '{}'", filter);
  const JinjaArguments rest = a.behind(1);
  for (const Value& item : call.items()) {
    all.push_back(apply_jinja_filter(filter, item, rest, call.budget));
  }
  return Value::list(std::move(all));
}

Value joined(const FilterCall& call) {
  const Value* given = call.arguments.find(0, "d");
  const std::string between = given == nullptr ? "" : jinja_text(*given, call.budget);
  const Value* path = call.arguments.find(1, "attribute");
  std::string all;
  bool is_first = true;
  for (const Value& item : call.items()) {
    if (!std::exchange(is_first, false)) all += between;
    all += jinja_text(path == nullptr ? item : attribute_of(item, *path, call.budget), call.budget);
    call.budget.spend_bytes(between.size());
  }
  return all;
}

Value summed(const FilterCall& call) {
  const Value* path = call.arguments.find(0, "attribute");
  double total = 0;
  bool is_real = false;
  int64_t whole = call.arguments.integer(1, "start", 0);
  for (const Value& item : call.items()) {
    const Value value = path == nullptr ? item : attribute_of(item, *path, call.budget);
    is_real = is_real || value.is_float();
    if (value.is_float()) total += value.number("sum");
    if (!value.is_float()) {
      check(!__builtin_add_overflow(whole, value.integer("sum"), &whole), ErrorKind::data,
            "a number beyond 64 bits");
    }
  }
  return is_real ? Value(total + static_cast<double>(whole)) : Value(whole);
}

Value indented(const FilterCall& call) {
  const Value* width = call.arguments.find(0, "width");
  std::string pad = "    ";
  if (width != nullptr && width->is_string()) pad = width->string();
  if (width != nullptr && !width->is_string()) {
    const int64_t spaces = width->integer("indent");
    check(spaces >= 0 && spaces <= 1000, ErrorKind::data, "indent: {} spaces", spaces);
    pad = std::string(static_cast<size_t>(spaces), ' ');
  }
  const bool has_first = call.arguments.flag(1, "first", false),
             has_blank = call.arguments.flag(2, "blank", false);
  std::string all;
  bool is_first = true;
  for (const std::string& line : jinja_split(call.text(), "\n", -1, false, call.budget)) {
    if (!is_first) all += "\n";
    const bool is_padded = is_first ? has_first : has_blank || !line.empty();
    call.budget.spend_bytes(pad.size());
    all += (is_padded ? pad : "") + line;
    is_first = false;
  }
  return all;
}

Value rounded(const FilterCall& call) {
  const std::string common = "common";
  const double value = call.value.number("round");
  const int64_t digits = call.arguments.integer(0, "precision", 0);
  const std::string& method = call.arguments.text(1, "method", "round", &common);
  check(digits >= -15 && digits <= 15, ErrorKind::data, "round: {} digits", digits);
  const double scale = std::pow(10.0, static_cast<double>(digits));
  if (method == "ceil") return std::ceil(value * scale) / scale;
  if (method == "floor") return std::floor(value * scale) / scale;
  return std::nearbyint(value * scale) / scale;
}

// A text's number, if it is one.
Value number_of(const FilterCall& call, bool is_real) {
  const Value* given = call.arguments.find(0, "default");
  const Value otherwise = given != nullptr ? *given : is_real ? Value(0.0) : Value(int64_t{0});
  double value = 0;
  if (call.value.is_int() && !is_real) return call.value;
  if (call.value.is_number()) {
    value = call.value.number("number");
  } else {
    if (!call.value.is_string()) return otherwise;
    const std::string_view text = trimmed(call.value.string());
    const char* end = text.data() + text.size();
    if (int64_t whole = 0; !is_real) {  // a double has no more than 53 bits
      const auto [rest, error] = std::from_chars(text.data(), end, whole);
      if (error == std::errc() && rest == end) return whole;
    }
    const auto [rest, error] = std::from_chars(text.data(), end, value);
    if (error != std::errc() || rest != end) return otherwise;
  }
  if (is_real) return value;
  if (!(std::abs(value) < 9e18)) return otherwise;
  return static_cast<int64_t>(value);
}

Value escaped(const FilterCall& call) { return html_escaped(call.text()); }

Value reversed(const FilterCall& call) {
  Values items = call.items();
  std::ranges::reverse(items);
  if (!call.value.is_string()) return Value::list(std::move(items));
  std::string text;
  for (const Value& item : items) text += item.string();
  return text;
}

Value first_or_last(const FilterCall& call, bool is_first) {
  const Values items = call.items();
  if (items.empty()) return JinjaUndefined{"an element of nothing"};
  return is_first ? items.front() : items.back();
}

Value by_default(const FilterCall& call) {
  const bool is_taken = call.value.is_undefined() ||
                        (call.arguments.flag(1, "boolean", false) && !call.value.is_true());
  if (!is_taken) return call.value;
  const Value* otherwise = call.arguments.find(0, "default_value");
  return otherwise == nullptr ? Value("") : *otherwise;
}

Value members_of(const FilterCall& call) {
  if (call.value.is_undefined()) return Value::list({});
  check(call.value.is_dict(), ErrorKind::data, "items needs a dict, not a {}", call.value.type());
  const JinjaCallable items{.name = "items", .self = std::make_shared<const Value>(call.value)};
  return call_jinja_method(items, {}, call.budget);
}

Value attribute_alone(const FilterCall& call) {
  const std::string& name = call.arguments.text(0, "name", "attr");
  // Of a loop, which is a dict here, all that it has is an attribute in Jinja.
  const Value* cycle = call.value.is_dict() ? call.value.find("cycle", call.budget) : nullptr;
  const bool is_loop =
      cycle != nullptr && cycle->is_callable() && cycle->callable().name == "loop.cycle";
  return is_loop ? jinja_attribute(call.value, name, call.budget)
                 : jinja_own_attribute(call.value, name, call.budget);
}

// transformers' own: json.dumps with its arguments.
Value as_json(const FilterCall& call) {
  const JinjaArguments& a = call.arguments;
  JinjaJsonForm form{.is_ascii = a.flag(0, "ensure_ascii", false),
                     .sorts_keys = a.flag(3, "sort_keys", false)};
  const Value *indent = a.find(1, "indent"), *separators = a.find(2, "separators");
  if (indent != nullptr && !indent->is_none()) {
    const int64_t spaces = indent->is_string() ? 0 : indent->integer("indent");
    check(spaces <= 64 && (!indent->is_string() || indent->string().size() <= 64), ErrorKind::data,
          "tojson: an indent of more than 64 characters");
    form.indent = indent->is_string()
                      ? indent->string()
                      : std::string(static_cast<size_t>(std::max<int64_t>(0, spaces)), ' ');
    form.between_items = ",";
  }
  if (separators != nullptr && !separators->is_none()) {
    const Values two = jinja_items(*separators, call.budget);
    check(two.size() == 2 && two[0].is_string() && two[1].is_string(), ErrorKind::data,
          "tojson: 'separators' are two texts, between items and behind keys");
    form.between_items = two[0].string(), form.behind_keys = two[1].string();
  }
  return jinja_json(call.value, form, call.budget);
}

using Filter = Value (*)(const FilterCall&);

const std::map<std::string, Filter, std::less<>>& filters() {
  static const Filter length = [](const FilterCall& c) -> Value {
    return jinja_length(c.value, c.budget);
  };
  static const Filter otherwise = by_default;
  static const std::map<std::string, Filter, std::less<>> all = {
      {"abs",
       [](const FilterCall& c) -> Value {
         if (c.value.is_float()) return std::abs(c.value.number("abs"));
         const int64_t n = c.value.integer("abs");
         check(n != std::numeric_limits<int64_t>::min(), ErrorKind::data,
               "a number beyond 64 bits");
         return n < 0 ? -n : n;
       }},
      {"attr", attribute_alone},
      {"capitalize",
       [](const FilterCall& c) -> Value { return jinja_cased("capitalize", c.text()); }},
      {"count", length},
      {"d", otherwise},
      {"default", otherwise},
      {"dictsort", dict_sorted},
      {"e", escaped},
      {"escape", escaped},
      {"first", [](const FilterCall& c) -> Value { return first_or_last(c, true); }},
      {"float", [](const FilterCall& c) -> Value { return number_of(c, true); }},
      {"format",
       [](const FilterCall& c) -> Value {
         return jinja_format(c.text(), c.arguments.positional, c.budget);
       }},
      {"indent", indented},
      {"int", [](const FilterCall& c) -> Value { return number_of(c, false); }},
      {"items", members_of},
      {"join", joined},
      {"last", [](const FilterCall& c) -> Value { return first_or_last(c, false); }},
      {"length", length},
      {"list", [](const FilterCall& c) -> Value { return Value::list(c.items()); }},
      {"lower", [](const FilterCall& c) -> Value { return jinja_cased("lower", c.text()); }},
      {"map", mapped},
      {"max", [](const FilterCall& c) -> Value { return extreme(c, false); }},
      {"min", [](const FilterCall& c) -> Value { return extreme(c, true); }},
      {"reject", [](const FilterCall& c) -> Value { return chosen(c, false, false); }},
      {"rejectattr", [](const FilterCall& c) -> Value { return chosen(c, false, true); }},
      {"replace",
       [](const FilterCall& c) -> Value {
         return jinja_replaced(c.text(), c.arguments.text(0, "old", "replace"),
                               c.arguments.text(1, "new", "replace"),
                               c.arguments.integer(2, "count", -1), c.budget);
       }},
      {"reverse", reversed},
      {"round", rounded},
      {"safe", [](const FilterCall& c) -> Value { return c.text(); }},
      {"select", [](const FilterCall& c) -> Value { return chosen(c, true, false); }},
      {"selectattr", [](const FilterCall& c) -> Value { return chosen(c, true, true); }},
      {"sort", sorted},
      {"string", [](const FilterCall& c) -> Value { return c.text(); }},
      {"sum", summed},
      {"title", [](const FilterCall& c) -> Value { return jinja_title(c.text()); }},
      {"tojson", as_json},
      {"trim",
       [](const FilterCall& c) -> Value {
         const std::string nothing;
         return jinja_stripped(c.text(), c.arguments.text(0, "chars", "trim", &nothing), true,
                               true);
       }},
      {"unique", unique},
      {"upper", [](const FilterCall& c) -> Value { return jinja_cased("upper", c.text()); }},
      {"wordcount", [](const FilterCall& c) -> Value {
         return std::ssize(jinja_split(c.text(), "", -1, false, c.budget));
       }}};
  return all;
}

// Of filters that take something.
const std::map<std::string, JinjaParameters, std::less<>>& parameters() {
  static const std::map<std::string, JinjaParameters, std::less<>> all = {
      {"attr", {"name"}},
      {"d", {"default_value", "boolean"}},
      {"default", {"default_value", "boolean"}},
      {"dictsort", {"case_sensitive", "by", "reverse"}},
      {"float", {"default"}},
      {"format", {"*"}},
      {"indent", {"width", "first", "blank"}},
      {"int", {"default"}},
      {"join", {"d", "attribute"}},
      {"map", {"*", "**"}},
      {"max", {"case_sensitive", "attribute"}},
      {"min", {"case_sensitive", "attribute"}},
      {"reject", {"*", "**"}},
      {"rejectattr", {"*", "**"}},
      {"replace", {"old", "new", "count"}},
      {"round", {"precision", "method"}},
      {"select", {"*", "**"}},
      {"selectattr", {"*", "**"}},
      {"sort", {"reverse", "case_sensitive", "attribute"}},
      {"sum", {"attribute", "start"}},
      {"tojson", {"ensure_ascii", "indent", "separators", "sort_keys"}},
      {"trim", {"chars"}},
      {"unique", {"case_sensitive", "attribute"}}};
  return all;
}

}  // namespace

bool is_jinja_filter(std::string_view name) { return filters().contains(name); }

JinjaValue apply_jinja_filter(const std::string& name, const JinjaValue& value,
                              const JinjaArguments& arguments, JinjaBudget& budget) {
  budget.spend();
  const auto taken = parameters().find(name);
  arguments.check_fits(name, taken == parameters().end() ? JinjaParameters{} : taken->second);
  return filters().find(name)->second({value, arguments, budget});
}

}  // namespace heddle
