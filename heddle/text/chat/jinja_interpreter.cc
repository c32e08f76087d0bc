// A walk over the tree: statements write, expressions give values.
#include "heddle/text/chat/jinja_interpreter.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "heddle/base/error.h"
#include "heddle/text/chat/jinja_functions.h"

namespace heddle {
namespace {

using Kind = JinjaKind;

constexpr int kDeepestCall = 600;  // of evaluation: a few hundred bytes of the stack each

class JinjaInterpreter {
 public:
  explicit JinjaInterpreter(const JinjaInput& input) : now_(input.now), budget_(input.steps) {
    for (const auto& [name, value] : input.variables) globals_.emplace_back(name, value);
    scopes_.push_back({&globals_, 0, 0});
  }

  std::string run(const JinjaNode& tree) {
    try {
      execute(tree);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::data) throw;
      fail(ErrorKind::data, "line {}: {}", line_, error.what());
    }
    return std::move(*out_);
  }

 private:
  using Variables = std::vector<std::pair<std::string, JinjaValue>>;
  struct Scope {
    Variables* variables;
    int64_t number;  // of all that there were
    size_t outer;    // where it looks on
  };
  enum class Flow : uint8_t { on, breaks, continues };

  struct Level {
    explicit Level(JinjaInterpreter& interpreter) : depth(interpreter.depth_) {
      check(++depth <= kDeepestCall, ErrorKind::data, "the template nests too deep");
      interpreter.budget_.spend();
    }
    ~Level() { --depth; }
    int& depth;
  };
  // A scope of its own.
  class Inner {
   public:
    explicit Inner(JinjaInterpreter& interpreter)
        : Inner(interpreter, interpreter.scopes_.size() - 1) {}
    Inner(JinjaInterpreter& interpreter, size_t outer) : scopes_(interpreter.scopes_) {
      scopes_.push_back({&variables, ++interpreter.last_scope_, outer});
    }
    ~Inner() { scopes_.pop_back(); }
    Inner(const Inner&) = delete;
    Inner& operator=(const Inner&) = delete;
    Variables variables;

   private:
    std::vector<Scope>& scopes_;
  };

  // --- names -------------------------------------------------------------------------------------

  JinjaValue* find(Variables& variables, const std::string& name) {
    for (auto& [known, value] : variables) {
      budget_.spend();
      if (known == name) return &value;
    }
    return nullptr;
  }
  JinjaValue look_up(const std::string& name) {
    for (size_t i = scopes_.size() - 1;; i = scopes_[i].outer) {
      if (const JinjaValue* value = find(*scopes_[i].variables, name)) return *value;
      if (i == 0) break;
    }
    if (is_jinja_function(name)) return JinjaCallable{.name = name};
    return JinjaUndefined{name};
  }
  void assign(Variables& variables, const std::string& name, JinjaValue value) {
    if (JinjaValue* known = find(variables, name)) {
      *known = std::move(value);
    } else {
      variables.emplace_back(name, std::move(value));
    }
  }
  void assign(const std::vector<std::string>& names, const JinjaValue& value,
              Variables& variables) {
    if (names.size() == 1) return assign(variables, names[0], value);
    const std::vector<JinjaValue> items = jinja_items(value, budget_);
    check(items.size() == names.size(), ErrorKind::data, "{} values for {} names", items.size(),
          names.size());
    for (size_t i = 0; i < names.size(); ++i) assign(variables, names[i], items[i]);
  }

  // --- statements --------------------------------------------------------------------------------

  void write(std::string_view text) {
    budget_.spend_bytes(text.size());
    *out_ += text;
  }
  // What a body writes, caught; where a loop is left, or goes on, nobody writes it.
  Flow catch_text(const JinjaNode& body, std::string& text) {
    std::string* const before = std::exchange(out_, &text);
    try {
      const Flow flow = execute(body);
      out_ = before;
      return flow;
    } catch (...) {
      out_ = before;
      throw;
    }
  }

  Flow execute(const JinjaNode& node) {
    const Level level(*this);
    line_ = node.line;
    switch (node.kind) {
      case Kind::body:
        for (const auto& child : node.children) {
          if (const Flow flow = execute(*child); flow != Flow::on) return flow;
        }
        return Flow::on;
      case Kind::data: write(node.text); return Flow::on;
      case Kind::print: {
        const JinjaValue value = evaluate(*node.children[0]);
        if (value.is_string()) {
          write(value.string());
        } else {
          write(jinja_text(value, budget_));
        }
        return Flow::on;
      }
      case Kind::if_else: return execute_if(node);
      case Kind::for_loop: return execute_for(node);
      case Kind::set: execute_set(node); return Flow::on;
      case Kind::set_body: return execute_set_body(node);
      case Kind::macro:
        assign(*scopes_.back().variables, node.text,
               JinjaCallable{.name = node.text, .macro = &node, .scope = scopes_.back().number});
        return Flow::on;
      case Kind::filter_body: return execute_filter_body(node);
      case Kind::break_loop: return Flow::breaks;
      case Kind::continue_loop: return Flow::continues;
      default: fail(ErrorKind::internal, "a statement that is an expression");
    }
  }

  Flow execute_if(const JinjaNode& node) {
    size_t i = 0;
    for (; i + 1 < node.children.size(); i += 2) {
      if (evaluate(*node.children[i]).is_true()) return execute(*node.children[i + 1]);
    }
    return i < node.children.size() ? execute(*node.children[i]) : Flow::on;
  }

  Flow execute_for(const JinjaNode& node) {
    std::vector<JinjaValue> items = jinja_items(evaluate(*node.children[0]), budget_);
    if (node.children[1]) {
      std::erase_if(items, [&](const JinjaValue& item) {
        Inner inner(*this);
        assign(node.names, item, inner.variables);
        return !evaluate(*node.children[1]).is_true();
      });
    }
    for (size_t i = 0; i < items.size(); ++i) {
      Inner inner(*this);
      inner.variables.emplace_back("loop", loop_of(items, i));
      assign(node.names, items[i], inner.variables);
      if (execute(*node.children[2]) == Flow::breaks) break;
    }
    if (!items.empty() || !node.children[3]) return Flow::on;
    const Inner inner(*this);
    return execute(*node.children[3]);
  }

  JinjaValue loop_of(const std::vector<JinjaValue>& items, size_t at) {
    const auto i = static_cast<int64_t>(at), n = static_cast<int64_t>(items.size());
    budget_.spend(12);
    std::vector<std::pair<JinjaValue, JinjaValue>> members = {
        {"index", i + 1},
        {"index0", i},
        {"revindex", n - i},
        {"revindex0", n - i - 1},
        {"first", i == 0},
        {"last", i + 1 == n},
        {"length", n},
        {"depth", int64_t{1}},
        {"depth0", int64_t{0}},
        {"cycle", JinjaCallable{.name = "loop.cycle", .self = std::make_shared<JinjaValue>(i)}}};
    const auto neighbour = [&](const char* name, bool is_there, size_t place) {
      members.emplace_back(name, is_there && items[place].depth() + 1 < JinjaValue::kDeepest
                                     ? items[place]
                                     : JinjaUndefined{name});
    };
    neighbour("previtem", i > 0, at - 1);
    neighbour("nextitem", i + 1 < n, at + 1);
    return JinjaValue::dict(std::move(members));
  }

  void execute_set(const JinjaNode& node) {
    JinjaValue value = evaluate(*node.children[0]);
    if (node.text.empty()) return assign(node.names, value, *scopes_.back().variables);
    const JinjaValue name = look_up(node.text);
    check(name.is_namespace(), ErrorKind::data, "'{}' is no namespace, so nothing in it can be set",
          node.text);
    check(!value.holds_namespace(), ErrorKind::data, "a namespace cannot hold a namespace");
    assign(name.name_space().members, node.names[0], std::move(value));
  }

  Flow execute_set_body(const JinjaNode& node) {
    std::string text;
    {
      const Inner inner(*this);
      if (const Flow flow = catch_text(*node.children[0], text); flow != Flow::on) return flow;
    }
    assign(*scopes_.back().variables, node.names[0], std::move(text));
    return Flow::on;
  }

  Flow execute_filter_body(const JinjaNode& node) {
    const Inner inner(*this);
    std::string written;
    if (const Flow flow = catch_text(*node.children[1], written); flow != Flow::on) return flow;
    JinjaValue text = std::move(written);
    std::vector<const JinjaNode*> filters;  // the last one first
    for (const JinjaNode* f = node.children[0].get(); f != nullptr; f = f->children[0].get()) {
      filters.push_back(f);
    }
    for (size_t i = filters.size(); i-- > 0;) {
      text = apply_jinja_filter(filters[i]->text, text, arguments_of(*filters[i]), budget_);
    }
    write(jinja_text(text, budget_));
    return Flow::on;
  }

  // --- expressions -------------------------------------------------------------------------------

  JinjaValue evaluate(const JinjaNode& node) {
    const Level level(*this);
    line_ = node.line;
    const auto& part = node.children;
    switch (node.kind) {
      case Kind::literal: return node.value;
      case Kind::name: return look_up(node.text);
      case Kind::list:
      case Kind::tuple: {
        std::vector<JinjaValue> items;
        for (const auto& child : part) items.push_back(evaluate(*child));
        return JinjaValue::list(std::move(items), node.kind == Kind::tuple);
      }
      case Kind::dict: return dict_of(node);
      case Kind::attribute: return jinja_attribute(evaluate(*part[0]), node.text, budget_);
      case Kind::item: return jinja_item(evaluate(*part[0]), evaluate(*part[1]), budget_);
      case Kind::slice: {
        const JinjaValue value = evaluate(*part[0]);
        JinjaValue bounds[3];
        for (size_t i = 0; i < 3; ++i) {
          if (part[i + 1]) bounds[i] = evaluate(*part[i + 1]);
        }
        return jinja_slice(value, bounds, budget_);
      }
      case Kind::call: return call(evaluate(*part[0]), arguments_of(node));
      case Kind::filter:
        return apply_jinja_filter(node.text, evaluate(*part[0]), arguments_of(node), budget_);
      case Kind::test:
        return apply_jinja_test(node.text, evaluate(*part[0]), arguments_of(node), budget_) !=
               node.is_negated;
      case Kind::negative: {
        const JinjaValue value = evaluate(*part[0]);
        if (value.is_float()) return -value.number("-");
        return binary("-", int64_t{0}, value);
      }
      case Kind::binary: {
        const JinjaValue left = evaluate(*part[0]);
        return binary(node.text, left, evaluate(*part[1]));
      }
      case Kind::compare: return compare(node);
      case Kind::and_also: {
        const JinjaValue left = evaluate(*part[0]);
        return left.is_true() ? evaluate(*part[1]) : left;
      }
      case Kind::or_else: {
        const JinjaValue left = evaluate(*part[0]);
        return left.is_true() ? left : evaluate(*part[1]);
      }
      case Kind::not_that: return !evaluate(*part[0]).is_true();
      case Kind::conditional:
        if (evaluate(*part[0]).is_true()) return evaluate(*part[1]);
        return part[2] ? evaluate(*part[2]) : JinjaValue(JinjaUndefined{"the value"});
      default: fail(ErrorKind::internal, "an expression that is a statement");
    }
  }

  JinjaValue dict_of(const JinjaNode& node) {
    std::vector<std::pair<JinjaValue, JinjaValue>> members;
    for (size_t i = 0; i < node.children.size(); i += 2) {
      JinjaValue key = evaluate(*node.children[i]), value = evaluate(*node.children[i + 1]);
      const auto known = std::ranges::find_if(
          members, [&](const auto& member) { return jinja_equal(member.first, key, budget_); });
      if (known != members.end()) {
        known->second = std::move(value);
      } else {
        members.emplace_back(std::move(key), std::move(value));
      }
    }
    return JinjaValue::dict(std::move(members));
  }

  JinjaArguments arguments_of(const JinjaNode& node) {
    JinjaArguments arguments;
    const size_t named = node.children.size() - node.names.size();
    for (size_t i = 1; i < node.children.size(); ++i) {
      JinjaValue value = evaluate(*node.children[i]);
      if (i < named) {
        arguments.positional.push_back(std::move(value));
      } else {
        arguments.named.emplace_back(node.names[i - named], std::move(value));
      }
    }
    return arguments;
  }

  JinjaValue call(const JinjaValue& callee, const JinjaArguments& arguments) {
    check(!callee.is_undefined(), ErrorKind::data, "'{}' is undefined", callee.undefined_name());
    check(callee.is_callable(), ErrorKind::data, "a value of type {} cannot be called",
          callee.type());
    const JinjaCallable& function = callee.callable();
    if (function.macro != nullptr) return call_macro(*function.macro, function.scope, arguments);
    if (function.self) return call_jinja_method(function, arguments, budget_);
    return call_jinja_function(function.name, arguments, now_, budget_);
  }

  JinjaValue call_macro(const JinjaNode& macro, int64_t scope, const JinjaArguments& arguments) {
    const auto outer = std::ranges::lower_bound(scopes_, scope, {}, &Scope::number);
    check(outer != scopes_.end() && outer->number == scope, ErrorKind::data,
          "macro {} is called where the loop or block that it stands in is over", macro.text);
    const size_t count = macro.names.size(), defaults = macro.children.size() - 1;
    check(arguments.positional.size() <= count, ErrorKind::data,
          "macro {} takes {} arguments, not {}", macro.text, count, arguments.positional.size());
    for (const auto& [name, value] : arguments.named) {
      check(std::ranges::find(macro.names, name) != macro.names.end(), ErrorKind::data,
            "macro {} has no parameter '{}'", macro.text, name);
    }
    Inner inner(*this, static_cast<size_t>(outer - scopes_.begin()));
    for (size_t i = 0; i < count; ++i) {
      const JinjaValue* given = arguments.find(i, macro.names[i]);
      JinjaValue value = JinjaUndefined{macro.names[i]};
      if (given != nullptr) {
        value = *given;
      } else if (i + defaults >= count) {
        value = evaluate(*macro.children[1 + i + defaults - count]);
      }
      inner.variables.emplace_back(macro.names[i], std::move(value));
    }
    std::string text;
    catch_text(*macro.children[0], text);
    return text;
  }

  JinjaValue compare(const JinjaNode& node) {
    JinjaValue left = evaluate(*node.children[0]);
    for (size_t i = 0; i < node.names.size(); ++i) {
      JinjaValue right = evaluate(*node.children[i + 1]);
      const std::string& sign = node.names[i];
      bool holds = false;
      if (sign == "==" || sign == "!=") {
        holds = jinja_equal(left, right, budget_) == (sign == "==");
      } else if (sign == "in" || sign == "not in") {
        holds = jinja_contains(right, left, budget_) == (sign == "in");
      } else if (sign == "<") {
        holds = jinja_less(left, right, budget_);
      } else if (sign == ">") {
        holds = jinja_less(right, left, budget_);
      } else if (sign == "<=") {
        holds = jinja_less(left, right, budget_) || jinja_equal(left, right, budget_);
      } else {
        holds = jinja_less(right, left, budget_) || jinja_equal(left, right, budget_);
      }
      if (!holds) return false;
      left = std::move(right);
    }
    return true;
  }

  // --- arithmetic --------------------------------------------------------------------------------

  JinjaValue binary(const std::string& sign, const JinjaValue& a, const JinjaValue& b) {
    for (const JinjaValue* value : {&a, &b}) {
      check(!value->is_undefined() || sign == "~", ErrorKind::data, "'{}' is undefined",
            value->undefined_name());
    }
    if (sign == "~") return joined(jinja_text(a, budget_), jinja_text(b, budget_));
    if (a.is_number() && b.is_number()) {
      const bool is_real = a.is_float() || b.is_float() || sign == "/";
      return is_real ? JinjaValue(of_reals(sign, a.number(sign), b.number(sign)))
                     : of_integers(sign, a.integer(sign), b.integer(sign));
    }
    if (sign == "+" && a.is_string() && b.is_string()) return joined(a.string(), b.string());
    if (sign == "+" && a.is_sequence() && b.is_sequence()) {
      std::vector<JinjaValue> items = a.sequence().items;
      items.insert(items.end(), b.sequence().items.begin(), b.sequence().items.end());
      budget_.spend(static_cast<int64_t>(items.size()));
      return JinjaValue::list(std::move(items), a.sequence().is_tuple);
    }
    if (sign == "*" && a.is_string() && (b.is_int() || b.is_bool())) return repeated(a.string(), b);
    if (sign == "*" && b.is_string() && (a.is_int() || a.is_bool())) return repeated(b.string(), a);
    if (sign == "%" && a.is_string()) {
      const bool is_tuple = b.is_sequence() && b.sequence().is_tuple;
      return jinja_format(a.string(), is_tuple ? b.sequence().items : std::vector{b}, budget_);
    }
    fail(ErrorKind::data, "{} between values of types {} and {}", sign, a.type(), b.type());
  }

  JinjaValue joined(const std::string& a, const std::string& b) {
    budget_.spend_bytes(a.size() + b.size());
    return a + b;
  }
  JinjaValue repeated(const std::string& text, const JinjaValue& count) {
    const int64_t times = std::max<int64_t>(0, count.integer("*"));
    check(times <= 1'000'000, ErrorKind::data, "a text {} times is too much", times);
    budget_.spend_bytes(text.size() * static_cast<size_t>(times));
    std::string all;
    for (int64_t i = 0; i < times; ++i) all += text;
    return all;
  }

  static double of_reals(const std::string& sign, double a, double b) {
    if (sign == "+") return a + b;
    if (sign == "-") return a - b;
    if (sign == "*") return a * b;
    if (sign == "**") return std::pow(a, b);
    check(b != 0, ErrorKind::data, "a division by zero");
    if (sign == "/") return a / b;
    const double floor = std::floor(a / b);
    return sign == "//" ? floor : a - floor * b;
  }

  static JinjaValue of_integers(const std::string& sign, int64_t a, int64_t b) {
    int64_t value = 0;
    bool overflows = false;
    if (sign == "+") {
      overflows = __builtin_add_overflow(a, b, &value);
    } else if (sign == "-") {
      overflows = __builtin_sub_overflow(a, b, &value);
    } else if (sign == "*") {
      overflows = __builtin_mul_overflow(a, b, &value);
    } else if (sign == "**") {
      if (b < 0) return of_reals(sign, static_cast<double>(a), static_cast<double>(b));
      value = 1;
      const bool is_small = a >= -1 && a <= 1;  // its powers repeat
      for (int64_t i = 0; i < (is_small ? b % 2 + (b > 1 ? 2 : 0) : b) && !overflows; ++i) {
        overflows = __builtin_mul_overflow(value, a, &value);
      }
    } else {
      check(b != 0, ErrorKind::data, "a division by zero");
      if (b == -1) {
        overflows = sign == "//" && __builtin_sub_overflow(int64_t{0}, a, &value);
      } else {
        const int64_t rest = a % b, fits = rest != 0 && (rest < 0) != (b < 0) ? 1 : 0;
        value = sign == "//" ? a / b - fits : rest + fits * b;
      }
    }
    check(!overflows, ErrorKind::data, "a number beyond 64 bits");
    return value;
  }

  const std::time_t now_;
  JinjaBudget budget_;
  Variables globals_;
  std::vector<Scope> scopes_;
  int64_t last_scope_ = 0;  // number of the one that was opened last
  std::string written_;
  std::string* out_ = &written_;
  int depth_ = 0, line_ = 1;
};

}  // namespace

std::string render_jinja(const JinjaNode& tree, const JinjaInput& input) {
  return JinjaInterpreter(input).run(tree);
}

}  // namespace heddle
