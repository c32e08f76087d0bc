// Members and methods of texts, lists and dicts as Python has them; the functions of the language.
#include <algorithm>
#include <map>
#include <optional>

#include "heddle/base/error.h"
#include "heddle/base/utf8.h"
#include "heddle/text/chat/jinja_functions.h"
#include "heddle/text/chat/jinja_texts.h"

namespace heddle {
namespace {

using Values = std::vector<JinjaValue>;

constexpr int64_t kLongestRange = 100'000;  // as Jinja's sandbox has it

// Each with what it takes.
using Parameters = std::map<std::string, JinjaParameters, std::less<>>;

const Parameters kTextMethods = {{"capitalize", {}},
                                 {"count", {"", "", ""}},
                                 {"endswith", {"", "", ""}},
                                 {"find", {"", "", ""}},
                                 {"format", {"*", "**"}},
                                 {"index", {"", "", ""}},
                                 {"isalnum", {}},
                                 {"isalpha", {}},
                                 {"isdigit", {}},
                                 {"islower", {}},
                                 {"isspace", {}},
                                 {"isupper", {}},
                                 {"join", {""}},
                                 {"lower", {}},
                                 {"lstrip", {""}},
                                 {"removeprefix", {""}},
                                 {"removesuffix", {""}},
                                 {"replace", {"", "", "count"}},
                                 {"rfind", {"", "", ""}},
                                 {"rsplit", {"sep", "maxsplit"}},
                                 {"rstrip", {""}},
                                 {"split", {"sep", "maxsplit"}},
                                 {"splitlines", {"keepends"}},
                                 {"startswith", {"", "", ""}},
                                 {"strip", {""}},
                                 {"title", {}},
                                 {"upper", {}},
                                 {"zfill", {""}}};
const Parameters kDictMethods = {{"get", {"", ""}}, {"items", {}}, {"keys", {}}, {"values", {}}};
const Parameters kListMethods = {{"count", {""}}, {"index", {""}}};

const Parameters& methods_of(const JinjaValue& value) {
  return value.is_string() ? kTextMethods : value.is_dict() ? kDictMethods : kListMethods;
}

// Functions, and what they take.
const Parameters kFunctions = {{"dict", {"", "**"}},
                               {"namespace", {"", "**"}},
                               {"raise_exception", {"message"}},
                               {"range", {"", "", ""}},
                               {"strftime_now", {"format"}}};

// Counts code points from the end where it is negative, as Python does.
int64_t placed(int64_t i, int64_t n) { return i < 0 ? i + n : i; }

Values as_values(std::vector<std::string> texts) {
  return {std::make_move_iterator(texts.begin()), std::make_move_iterator(texts.end())};
}

// What the second and the third argument bound, as slices do.
struct Stretch {
  std::string_view text;
  int64_t begin = 0;  // in characters
};

// Nothing where it begins behind its end.
std::optional<Stretch> stretch_of(std::string_view text, const JinjaArguments& a) {
  if (a.positional.size() < 2) return Stretch{text};
  const int64_t n = count_characters(text);
  const int64_t begin = std::max<int64_t>(0, placed(a.integer(1, "start", 0), n)),
                end = std::clamp<int64_t>(placed(a.integer(2, "end", n), n), 0, n);
  if (begin > end) return {};
  text = text.substr(0, end_of_characters(text, end));
  return Stretch{text.substr(end_of_characters(text, begin)), begin};
}

bool begins_or_ends(std::string_view text, const JinjaArguments& a, bool begins) {
  check(!a.positional.empty(), ErrorKind::data, "startswith and endswith need a text");
  const JinjaValue& what = a.positional[0];
  const auto fits = [&](const JinjaValue& one) {
    check(one.is_string(), ErrorKind::data, "startswith and endswith need a text, not a {}",
          one.type());
    return begins ? text.starts_with(one.string()) : text.ends_with(one.string());
  };
  if (!what.is_sequence()) return fits(what);
  return std::ranges::any_of(what.sequence().items, fits);
}

int64_t found_at(const Stretch& in, const std::string& part, bool from_end) {
  const size_t at = from_end ? jinja_find_last(in.text, part) : jinja_find(in.text, part);
  if (at == std::string::npos) return -1;
  return in.begin + count_characters(in.text.substr(0, at));
}

int64_t times_in(std::string_view text, const std::string& part) {
  if (part.empty()) return count_characters(text) + 1;
  int64_t count = 0;
  for (size_t at = 0; (at = jinja_find(text, part, at)) != text.npos; at += part.size()) ++count;
  return count;
}

// Of a text's methods those that look for another one; nothing of the others.
std::optional<JinjaValue> looked_for(const std::string& name, const std::string& text,
                                     const JinjaArguments& a) {
  const bool begins = name == "startswith";
  if (begins || name == "endswith") {
    const auto in = stretch_of(text, a);
    return begins_or_ends(in ? in->text : "", a, begins) && in;
  }
  const bool from_end = name == "rfind", counts = name == "count", must_be = name == "index";
  if (!from_end && !counts && !must_be && name != "find") return {};
  const std::string& part = a.text(0, "", name.c_str());
  const auto in = stretch_of(text, a);
  if (counts) return in ? times_in(in->text, part) : int64_t{0};
  const int64_t at = in ? found_at(*in, part, from_end) : -1;
  check(at >= 0 || !must_be, ErrorKind::data, "index: the text does not hold it");
  return at;
}

JinjaValue text_method(const std::string& name, const std::string& text, const JinjaArguments& a,
                       JinjaBudget& budget) {
  const std::string nothing;
  const auto part = [&](size_t i) -> const std::string& { return a.text(i, "", name.c_str()); };
  if (const auto found = looked_for(name, text, a)) return *found;
  if (name == "strip" || name == "lstrip" || name == "rstrip") {
    return jinja_stripped(text, a.text(0, "chars", "strip", &nothing), name != "rstrip",
                          name != "lstrip");
  }
  if (name == "split" || name == "rsplit") {
    const int64_t most = a.integer(1, "maxsplit", -1);
    const JinjaValue* sign = a.find(0, "sep");
    const bool is_at_spaces = sign == nullptr || sign->is_none();
    return JinjaValue::list(as_values(jinja_split(
        text, is_at_spaces ? nothing : a.text(0, "sep", "split"), most, name == "rsplit", budget)));
  }
  if (name == "splitlines") {
    return JinjaValue::list(as_values(jinja_lines(text, a.flag(0, "keepends", false), budget)));
  }
  if (name == "replace") {
    return jinja_replaced(text, part(0), part(1), a.integer(2, "count", -1), budget);
  }
  if (name == "removeprefix") {
    return text.starts_with(part(0)) ? text.substr(part(0).size()) : text;
  }
  if (name == "removesuffix") {
    return text.ends_with(part(0)) ? text.substr(0, text.size() - part(0).size()) : text;
  }
  if (name == "join") {
    check(!a.positional.empty(), ErrorKind::data, "join needs a list");
    std::string all;
    const Values items = jinja_items(a.positional[0], budget);
    for (size_t i = 0; i < items.size(); ++i) {
      check(items[i].is_string(), ErrorKind::data, "join: a {} is no text", items[i].type());
      budget.spend_bytes(text.size() + items[i].string().size());
      if (i > 0) all += text;
      all += items[i].string();
    }
    return all;
  }
  if (name == "zfill") {
    const int64_t width = a.integer(0, "width", 0);
    check(width <= 10'000, ErrorKind::data, "zfill: {} is too wide", width);
    const int64_t missing = std::max<int64_t>(0, width - count_characters(text));
    const size_t sign = text.starts_with('-') || text.starts_with('+') ? 1 : 0;
    return text.substr(0, sign) + std::string(static_cast<size_t>(missing), '0') +
           text.substr(sign);
  }
  if (name == "format") return jinja_braced(text, a.positional, a.named, budget);
  if (name.starts_with("is")) return jinja_is(name, text);
  return jinja_cased(name, text);
}

JinjaValue list_method(const std::string& name, const Values& items, const JinjaArguments& a,
                       JinjaBudget& budget) {
  check(!a.positional.empty(), ErrorKind::data, "{} needs a value", name);
  int64_t count = 0;
  for (size_t i = 0; i < items.size(); ++i) {
    if (!jinja_equal(items[i], a.positional[0], budget)) continue;
    if (name == "index") return static_cast<int64_t>(i);
    ++count;
  }
  check(name == "count", ErrorKind::data, "index: the list does not hold it");
  return count;
}

JinjaValue dict_method(const std::string& name, const JinjaValue& self, const JinjaArguments& a,
                       JinjaBudget& budget) {
  if (name == "get") {
    check(!a.positional.empty(), ErrorKind::data, "get needs a key");
    if (const JinjaValue* found = self.find(a.positional[0], budget)) return *found;
    return a.positional.size() > 1 ? a.positional[1] : JinjaValue();
  }
  Values all;
  for (const auto& [key, value] : self.dict().members) {
    budget.spend(2);
    if (name == "keys") {
      all.push_back(key);
    } else if (name == "values") {
      all.push_back(value);
    } else {
      all.push_back(JinjaValue::list({key, value}, true));
    }
  }
  return JinjaValue::list(std::move(all));
}

JinjaValue dict_of(const JinjaArguments& a, JinjaBudget& budget) {
  std::vector<std::pair<JinjaValue, JinjaValue>> members;
  if (!a.positional.empty()) {
    check(a.positional[0].is_dict(), ErrorKind::data, "dict takes a dict, not a {}",
          a.positional[0].type());
    members = a.positional[0].dict().members;
  }
  budget.spend(static_cast<int64_t>(members.size()));
  for (const auto& argument : a.named) {
    const auto& [name, value] = argument;
    const auto known = std::ranges::find_if(members, [&](const auto& member) {
      return member.first.is_string() && member.first.string() == argument.first;
    });
    if (known != members.end()) {
      known->second = value;
    } else {
      members.emplace_back(name, value);
    }
  }
  return JinjaValue::dict(std::move(members));
}

JinjaValue namespace_of(const JinjaArguments& a, JinjaBudget& budget) {
  const auto made = std::make_shared<JinjaNamespace>();
  const JinjaValue members = dict_of(a, budget);
  check(!members.holds_namespace(), ErrorKind::data, "a namespace cannot hold a namespace");
  for (const auto& [name, value] : members.dict().members) {
    made->members.emplace_back(jinja_text(name, budget), value);
  }
  return made;
}

JinjaValue range_of(const JinjaArguments& a, JinjaBudget& budget) {
  check(!a.positional.empty(), ErrorKind::data, "range takes one to three integers");
  const int64_t first = a.positional[0].integer("range");
  const bool has_begin = a.positional.size() > 1;
  const int64_t begin = has_begin ? first : 0,
                end = has_begin ? a.positional[1].integer("range") : first,
                step = a.positional.size() > 2 ? a.positional[2].integer("range") : 1;
  check(step != 0, ErrorKind::data, "range: the step is 0");
  Values all;
  for (int64_t i = begin; step > 0 ? i < end : i > end;) {
    check(std::ssize(all) < kLongestRange, ErrorKind::data, "range: more than {} numbers",
          kLongestRange);
    budget.spend();
    all.push_back(i);
    if (__builtin_add_overflow(i, step, &i)) break;
  }
  return JinjaValue::list(std::move(all));
}

std::string time_as(const std::string& form, std::time_t now) {
  check(form.size() <= 256, ErrorKind::data, "strftime_now: the format is too long");
  std::tm parts = {};
  ::localtime_r(&now, &parts);
  char text[4096];
  // A character in front, as an empty result looks like one that did not fit.
  const size_t size = std::strftime(text, sizeof(text), ("." + form).c_str(), &parts);
  return size == 0 ? "" : std::string(text + 1, size - 1);
}

}  // namespace

Values jinja_items(const JinjaValue& value, JinjaBudget& budget) {
  Values items;
  if (value.is_undefined()) return items;
  if (value.is_sequence()) {
    items = value.sequence().items;
  } else if (value.is_dict()) {
    for (const auto& member : value.dict().members) items.push_back(member.first);
  } else {
    check(value.is_string(), ErrorKind::data, "a value of type {} cannot be walked over",
          value.type());
    const std::string& text = value.string();
    for (size_t at = 0; at < text.size();) {
      const size_t begin = at;
      next_code_point(text, at);
      budget.spend();
      items.emplace_back(text.substr(begin, at - begin));
    }
  }
  budget.spend(std::ssize(items));
  return items;
}

int64_t jinja_length(const JinjaValue& value, JinjaBudget& budget) {
  if (value.is_undefined()) return 0;
  if (value.is_string()) {
    budget.spend_bytes(value.string().size());
    return count_characters(value.string());
  }
  if (value.is_sequence()) return std::ssize(value.sequence().items);
  check(value.is_dict(), ErrorKind::data, "a value of type {} has no length", value.type());
  return std::ssize(value.dict().members);
}

JinjaValue jinja_own_attribute(const JinjaValue& value, const std::string& name,
                               JinjaBudget& budget) {
  check(!value.is_undefined(), ErrorKind::data, "'{}' is undefined, so it has no '{}'",
        value.undefined_name(), name);
  if (value.is_namespace()) {
    for (const auto& [known, member] : value.name_space().members) {
      budget.spend();
      if (known == name) return member;
    }
    return JinjaUndefined{name};
  }
  const bool has_methods = value.is_string() || value.is_dict() || value.is_sequence();
  if (has_methods && methods_of(value).contains(name)) {
    return JinjaCallable{.name = name, .self = std::make_shared<const JinjaValue>(value)};
  }
  return JinjaUndefined{name};
}

JinjaValue jinja_attribute(const JinjaValue& value, const std::string& name, JinjaBudget& budget) {
  JinjaValue own = jinja_own_attribute(value, name, budget);
  if (!value.is_dict() || !own.is_undefined()) return own;
  const JinjaValue* found = value.find(name, budget);
  return found == nullptr ? own : *found;
}

JinjaValue jinja_item(const JinjaValue& value, const JinjaValue& key, JinjaBudget& budget) {
  check(!value.is_undefined(), ErrorKind::data, "'{}' is undefined, so nothing is in it",
        value.undefined_name());
  if (value.is_dict()) {
    if (const JinjaValue* found = value.find(key, budget)) return *found;
  }
  const bool has_places = value.is_sequence() || value.is_string();
  if (has_places && (key.is_int() || key.is_bool())) {
    const int64_t n = jinja_length(value, budget), i = placed(key.integer("key"), n);
    if (i < 0 || i >= n) return JinjaUndefined{"the element"};
    if (value.is_sequence()) return value.sequence().items[static_cast<size_t>(i)];
    const std::string_view text = value.string();
    const size_t begin = end_of_characters(text, i);
    return std::string(text.substr(begin, utf8_length(text.substr(begin))));
  }
  if (key.is_string()) return jinja_attribute(value, key.string(), budget);
  return JinjaUndefined{"the element"};
}

JinjaValue jinja_slice(const JinjaValue& value, const JinjaValue (&bounds)[3],
                       JinjaBudget& budget) {
  check(value.is_sequence() || value.is_string(), ErrorKind::data,
        "a value of type {} cannot be sliced", value.type());
  const Values items = jinja_items(value, budget);
  const int64_t n = std::ssize(items), step = bounds[2].is_none() ? 1 : bounds[2].integer("slice");
  check(step != 0, ErrorKind::data, "a slice's step is 0");
  const int64_t low = step > 0 ? 0 : -1, high = step > 0 ? n : n - 1;
  const auto bound = [&](const JinjaValue& given, int64_t otherwise) {
    return given.is_none() ? otherwise : std::clamp(placed(given.integer("slice"), n), low, high);
  };
  const int64_t begin = bound(bounds[0], step > 0 ? low : high),
                end = bound(bounds[1], step > 0 ? high : low);
  Values some;
  for (int64_t i = begin; step > 0 ? i < end : i > end;) {
    some.push_back(items[static_cast<size_t>(i)]);
    if (__builtin_add_overflow(i, step, &i)) break;
  }
  if (value.is_sequence()) return JinjaValue::list(std::move(some), value.sequence().is_tuple);
  std::string text;
  for (const JinjaValue& character : some) text += character.string();
  return text;
}

bool jinja_contains(const JinjaValue& value, const JinjaValue& part, JinjaBudget& budget) {
  if (value.is_string()) {
    check(part.is_string(), ErrorKind::data, "a {} cannot be in a text", part.type());
    budget.spend_bytes(value.string().size() + part.string().size());
    return jinja_find(value.string(), part.string()) != std::string::npos;
  }
  if (value.is_dict()) return value.find(part, budget) != nullptr;
  return std::ranges::any_of(jinja_items(value, budget), [&](const JinjaValue& item) {
    return jinja_equal(item, part, budget);
  });
}

JinjaValue call_jinja_method(const JinjaCallable& method, const JinjaArguments& arguments,
                             JinjaBudget& budget) {
  const JinjaValue& self = *method.self;
  if (method.name == "loop.cycle") {
    arguments.check_fits("cycle", {"*"});
    const size_t count = arguments.positional.size();
    check(count > 0, ErrorKind::data, "cycle needs values");
    return arguments.positional[static_cast<size_t>(self.integer("loop")) % count];
  }
  arguments.check_fits(method.name, methods_of(self).find(method.name)->second);
  if (self.is_string()) {
    budget.spend_bytes(2 * self.string().size());
    return text_method(method.name, self.string(), arguments, budget);
  }
  if (self.is_dict()) return dict_method(method.name, self, arguments, budget);
  return list_method(method.name, self.sequence().items, arguments, budget);
}

bool is_jinja_function(std::string_view name) { return kFunctions.contains(name); }

JinjaValue call_jinja_function(const std::string& name, const JinjaArguments& arguments,
                               std::time_t now, JinjaBudget& budget) {
  arguments.check_fits(name, kFunctions.find(name)->second);
  if (name == "range") return range_of(arguments, budget);
  if (name == "dict") return dict_of(arguments, budget);
  if (name == "namespace") return namespace_of(arguments, budget);
  if (name == "strftime_now") return time_as(arguments.text(0, "format", "strftime_now"), now);
  const JinjaValue* message = arguments.find(0, "message");
  check(message != nullptr, ErrorKind::data, "the template refuses these messages");
  fail(ErrorKind::data, "the template refuses these messages: {}", jinja_text(*message, budget));
}

}  // namespace heddle
