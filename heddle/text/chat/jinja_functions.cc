// Arguments of calls; Jinja's tests, by name.
#include "heddle/text/chat/jinja_functions.h"

#include <algorithm>
#include <map>

#include "heddle/base/error.h"
#include "heddle/text/chat/jinja_texts.h"
#include "heddle/text/chat/jinja_tree.h"

namespace heddle {

const JinjaValue* JinjaArguments::find(size_t i, std::string_view name) const {
  if (i < positional.size()) return &positional[i];
  for (const auto& [known, value] : named) {
    if (known == name) return &value;
  }
  return nullptr;
}

int64_t JinjaArguments::integer(size_t i, std::string_view name, int64_t otherwise) const {
  const JinjaValue* value = find(i, name);
  return value == nullptr || value->is_none() ? otherwise : value->integer(name);
}

bool JinjaArguments::flag(size_t i, std::string_view name, bool otherwise) const {
  const JinjaValue* value = find(i, name);
  return value == nullptr ? otherwise : value->is_true();
}

const std::string& JinjaArguments::text(size_t i, std::string_view name, const char* of,
                                        const std::string* otherwise) const {
  const JinjaValue* value = find(i, name);
  if ((value == nullptr || value->is_none()) && otherwise != nullptr) return *otherwise;
  check(value != nullptr, ErrorKind::data, "{} needs a text", of);
  check(value->is_string(), ErrorKind::data, "{} needs a text, not a {}", of, value->type());
  return value->string();
}

void JinjaArguments::check_fits(std::string_view function,
                                const JinjaParameters& parameters) const {
  const auto place_of = [&](std::string_view name) {
    return static_cast<size_t>(std::ranges::find(parameters, name) - parameters.begin());
  };
  const size_t count = parameters.size();
  const size_t most = std::min(count, place_of("**"));
  check(positional.size() <= most || place_of("*") < count, ErrorKind::data,
        "{} takes at most {} arguments, not {}", function, most, positional.size());
  for (const auto& [name, value] : named) {
    const size_t place = place_of(name);
    check(place < count || place_of("**") < count, ErrorKind::data, "{} takes no argument '{}'",
          function, name);
    const auto times = std::ranges::count_if(
        named, [&, &sought = name](const auto& one) { return one.first == sought; });
    check(times == 1 && (place >= positional.size() || place == count), ErrorKind::data,
          "{} is given '{}' twice", function, name);
  }
}

JinjaArguments JinjaArguments::behind(size_t count) const {
  JinjaArguments rest = *this;
  rest.positional.erase(
      rest.positional.begin(),
      rest.positional.begin() + static_cast<int64_t>(std::min(count, rest.positional.size())));
  return rest;
}

namespace {

struct TestCall {
  const std::string& name;
  const JinjaValue& value;
  const JinjaArguments& arguments;
  JinjaBudget& budget;
};

// Of tests that compare with something: what it is called.
const std::map<std::string, std::string_view, std::less<>>& others() {
  static const std::map<std::string, std::string_view, std::less<>> all = {{"!=", ""},
                                                                           {"<", ""},
                                                                           {"<=", ""},
                                                                           {"==", ""},
                                                                           {">", ""},
                                                                           {">=", ""},
                                                                           {"eq", ""},
                                                                           {"equalto", ""},
                                                                           {"ge", ""},
                                                                           {"greaterthan", ""},
                                                                           {"gt", ""},
                                                                           {"le", ""},
                                                                           {"lessthan", ""},
                                                                           {"lt", ""},
                                                                           {"ne", ""},
                                                                           {"in", "seq"},
                                                                           {"divisibleby", "num"},
                                                                           {"sameas", "other"}};
  return all;
}

const JinjaValue& other(const TestCall& call) {
  const JinjaValue* value = call.arguments.find(0, others().find(call.name)->second);
  check(value != nullptr, ErrorKind::data, "the test '{}' needs a value", call.name);
  return *value;
}

bool has_case(const TestCall& call, const char* which) {
  return jinja_is(which, jinja_text(call.value, call.budget));
}

using Test = bool (*)(const TestCall&);

const std::map<std::string, Test, std::less<>>& tests() {
  static const Test equal = [](const TestCall& c) {
    return jinja_equal(c.value, other(c), c.budget);
  };
  static const Test unequal = [](const TestCall& c) {
    return !jinja_equal(c.value, other(c), c.budget);
  };
  static const Test less = [](const TestCall& c) {
    return jinja_less(c.value, other(c), c.budget);
  };
  static const Test greater = [](const TestCall& c) {
    return jinja_less(other(c), c.value, c.budget);
  };
  static const Test at_most = [](const TestCall& c) {
    return !jinja_less(other(c), c.value, c.budget);
  };
  static const Test at_least = [](const TestCall& c) {
    return !jinja_less(c.value, other(c), c.budget);
  };
  static const std::map<std::string, Test, std::less<>> all = {
      {"!=", unequal},
      {"<", less},
      {"<=", at_most},
      {"==", equal},
      {">", greater},
      {">=", at_least},
      {"boolean", [](const TestCall& c) { return c.value.is_bool(); }},
      {"callable", [](const TestCall& c) { return c.value.is_callable(); }},
      {"defined", [](const TestCall& c) { return !c.value.is_undefined(); }},
      {"divisibleby",
       [](const TestCall& c) {
         const int64_t by = other(c).integer("divisibleby");
         check(by != 0, ErrorKind::data, "a division by zero");
         return by == -1 || c.value.integer("divisibleby") % by == 0;
       }},
      {"eq", equal},
      {"equalto", equal},
      {"even", [](const TestCall& c) { return c.value.integer("even") % 2 == 0; }},
      {"false", [](const TestCall& c) { return c.value.is_bool() && !c.value.is_true(); }},
      {"float", [](const TestCall& c) { return c.value.is_float(); }},
      {"ge", at_least},
      {"greaterthan", greater},
      {"gt", greater},
      {"in", [](const TestCall& c) { return jinja_contains(other(c), c.value, c.budget); }},
      {"integer", [](const TestCall& c) { return c.value.is_int(); }},
      {"iterable",
       [](const TestCall& c) {
         return c.value.is_sequence() || c.value.is_dict() || c.value.is_string() ||
                c.value.is_undefined();
       }},
      {"le", at_most},
      {"lessthan", less},
      {"lower", [](const TestCall& c) { return has_case(c, "islower"); }},
      {"lt", less},
      {"mapping", [](const TestCall& c) { return c.value.is_dict(); }},
      {"ne", unequal},
      {"none", [](const TestCall& c) { return c.value.is_none(); }},
      {"number", [](const TestCall& c) { return c.value.is_number(); }},
      {"odd", [](const TestCall& c) { return c.value.integer("odd") % 2 != 0; }},
      {"sameas",
       [](const TestCall& c) {
         return std::string_view(c.value.type()) == other(c).type() &&
                jinja_equal(c.value, other(c), c.budget);
       }},
      {"sequence",
       [](const TestCall& c) {
         return c.value.is_sequence() || c.value.is_dict() || c.value.is_string() ||
                c.value.is_undefined();
       }},
      {"string", [](const TestCall& c) { return c.value.is_string(); }},
      {"true", [](const TestCall& c) { return c.value.is_bool() && c.value.is_true(); }},
      {"undefined", [](const TestCall& c) { return c.value.is_undefined(); }},
      {"upper", [](const TestCall& c) { return has_case(c, "isupper"); }}};
  return all;
}

}  // namespace

bool is_jinja_test(std::string_view name) { return tests().contains(name); }

bool apply_jinja_test(const std::string& name, const JinjaValue& value,
                      const JinjaArguments& arguments, JinjaBudget& budget) {
  budget.spend();
  const auto other = others().find(name);
  arguments.check_fits("the test " + name, other == others().end()
                                               ? JinjaParameters{}
                                               : JinjaParameters{other->second});
  return tests().find(name)->second({name, value, arguments, budget});
}

}  // namespace heddle
