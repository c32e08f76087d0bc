// Expressions, by how tightly their signs bind.
#include "heddle/text/chat/jinja_expressions.h"

#include <charconv>
#include <cstdlib>

namespace heddle {

JinjaNode::Child JinjaExpressionParser::parse_tuple(bool has_conditional) {
  const auto part = [&] { return has_conditional ? parse_expression() : parse_or(); };
  Node first = part();
  if (!is_sign(",")) return first;
  Node tuple = node(Kind::tuple, std::move(first));
  while (take_sign(",")) {
    if (is(TokenKind::print_end) || is(TokenKind::block_end)) break;
    add(*tuple, part());
  }
  return tuple;
}

JinjaNode::Child JinjaExpressionParser::parse_expression() { return parse_conditional(parse_or()); }

JinjaNode::Child JinjaExpressionParser::parse_conditional(Node value) {
  while (take_name("if")) {
    const Level level(*this);
    Node condition = parse_or();
    Node otherwise = take_name("else") ? parse_expression() : nullptr;
    value = node(Kind::conditional, std::move(condition), std::move(value), std::move(otherwise));
  }
  return value;
}

JinjaNode::Child JinjaExpressionParser::parse_or() {
  const Level level(*this);
  Node left = parse_and();
  while (take_name("or")) left = node(Kind::or_else, std::move(left), parse_and());
  return left;
}

JinjaNode::Child JinjaExpressionParser::parse_and() {
  Node left = parse_not();
  while (take_name("and")) left = node(Kind::and_also, std::move(left), parse_not());
  return left;
}

JinjaNode::Child JinjaExpressionParser::parse_not() {
  if (!is_name("not")) return parse_compare();
  const Level level(*this);
  ++at_;
  return node(Kind::not_that, parse_not());
}

JinjaNode::Child JinjaExpressionParser::parse_compare() {
  Node left = parse_sum();
  Node made;
  while (true) {
    std::string sign;
    for (const char* known : {"==", "!=", "<", "<=", ">", ">="}) {
      if (take_sign(known)) sign = known;
      if (!sign.empty()) break;
    }
    if (sign.empty() && take_name("in")) sign = "in";
    if (sign.empty() && is_name("not") && next().text == "in") {
      at_ += 2;
      sign = "not in";
    }
    if (sign.empty()) return made ? std::move(made) : std::move(left);
    if (!made) made = node(Kind::compare, std::move(left));
    made->names.push_back(sign);
    add(*made, parse_sum());
  }
}

JinjaNode::Child JinjaExpressionParser::parse_sum() {
  return parse_binary({"+", "-"}, [&] { return parse_joined(); });
}

JinjaNode::Child JinjaExpressionParser::parse_joined() {
  return parse_binary({"~"}, [&] { return parse_product(); });
}

JinjaNode::Child JinjaExpressionParser::parse_product() {
  return parse_binary({"*", "/", "//", "%"}, [&] { return parse_power(); });
}

JinjaNode::Child JinjaExpressionParser::parse_power() {
  return parse_binary({"**"}, [&] { return parse_unary(true); });
}

JinjaNode::Child JinjaExpressionParser::parse_unary(bool has_filters) {
  const Level level(*this);
  Node value;
  if (take_sign("-")) {
    value = node(Kind::negative, parse_unary(false));
  } else if (take_sign("+")) {
    value = parse_unary(false);
  } else {
    value = parse_primary();
  }
  value = parse_postfix(std::move(value));
  return has_filters ? parse_filtered(std::move(value)) : std::move(value);
}

JinjaNode::Child JinjaExpressionParser::literal(JinjaValue value) {
  Node made = node(Kind::literal);
  made->value = std::move(value);
  return made;
}

JinjaNode::Child JinjaExpressionParser::parse_primary() {
  const JinjaToken& token = now();
  switch (token.kind) {
    case TokenKind::name: return parse_name();
    case TokenKind::string: {
      std::string text;
      while (is(TokenKind::string)) text += tokens_[at_++].text;
      return literal(std::move(text));
    }
    case TokenKind::integer: {
      int64_t value = 0;
      const char* end = token.text.data() + token.text.size();
      if (std::from_chars(token.text.data(), end, value).ec != std::errc()) {
        fail_here("{} is too large", token.text);
      }
      ++at_;
      return literal(value);
    }
    case TokenKind::real: {
      const double value = std::strtod(token.text.c_str(), nullptr);
      ++at_;
      return literal(value);
    }
    default: break;
  }
  if (take_sign("(")) return parse_parenthesis();
  if (take_sign("[")) {
    Node list = node(Kind::list);
    while (!take_sign("]")) {
      if (!list->children.empty()) need_sign(",");
      if (take_sign("]")) break;
      add(*list, parse_expression());
    }
    return list;
  }
  if (take_sign("{")) {
    Node dict = node(Kind::dict);
    while (!take_sign("}")) {
      if (!dict->children.empty()) need_sign(",");
      if (take_sign("}")) break;
      add(*dict, parse_expression());
      need_sign(":");
      add(*dict, parse_expression());
    }
    return dict;
  }
  fail_here("{} is not expected; a value is needed", described());
}

JinjaNode::Child JinjaExpressionParser::parse_name() {
  const std::string text = take_identifier();
  if (text == "true" || text == "True") return literal(true);
  if (text == "false" || text == "False") return literal(false);
  if (text == "none" || text == "None") return literal({});
  Node name = node(Kind::name);
  name->text = text;
  return name;
}

JinjaNode::Child JinjaExpressionParser::parse_parenthesis() {
  if (take_sign(")")) return node(Kind::tuple);
  Node first = parse_expression();
  if (take_sign(")")) return first;
  Node tuple = node(Kind::tuple, std::move(first));
  while (!take_sign(")")) {
    need_sign(",");
    if (take_sign(")")) break;
    add(*tuple, parse_expression());
  }
  return tuple;
}

JinjaNode::Child JinjaExpressionParser::parse_postfix(Node value) {
  while (true) {
    if (take_sign(".")) {
      if (is(TokenKind::integer)) {
        value = node(Kind::item, std::move(value), parse_primary());
        continue;
      }
      const std::string name = take_identifier();
      value = node(Kind::attribute, std::move(value));
      value->text = name;
    } else if (take_sign("[")) {
      value = parse_subscript(std::move(value));
    } else if (take_sign("(")) {
      value = node(Kind::call, std::move(value));
      parse_arguments(*value);
    } else {
      return value;
    }
  }
}

JinjaNode::Child JinjaExpressionParser::parse_subscript(Node value) {
  Node parts[3];
  int colons = 0;
  while (!is_sign("]")) {
    if (take_sign(":")) {
      if (++colons > 2) fail_here("a slice has at most two colons");
    } else {
      if (parts[colons]) fail_here("{} is not expected; ']' is needed", described());
      parts[colons] = parse_expression();
    }
  }
  need_sign("]");
  if (colons > 0) {
    return node(Kind::slice, std::move(value), std::move(parts[0]), std::move(parts[1]),
                std::move(parts[2]));
  }
  if (!parts[0]) fail_here("a key is needed in '[]'");
  return node(Kind::item, std::move(value), std::move(parts[0]));
}

void JinjaExpressionParser::parse_arguments(JinjaNode& made) {
  for (bool is_first = true; !take_sign(")"); is_first = false) {
    if (!is_first) need_sign(",");
    if (take_sign(")")) return;
    const bool is_named =
        is(TokenKind::name) && next().kind == TokenKind::sign && next().text == "=";
    if (is_named) {
      made.names.push_back(take_identifier());
      need_sign("=");
    } else if (!made.names.empty()) {
      fail_here("an argument without a name behind one with");
    }
    add(made, parse_expression());
  }
}

JinjaNode::Child JinjaExpressionParser::parse_filters(Node value, bool begins_with_sign) {
  for (bool needs_sign = begins_with_sign; !needs_sign || take_sign("|"); needs_sign = true) {
    const std::string name = take_identifier();
    if (!is_jinja_filter(name)) fail_here("there is no filter '{}'", name);
    Node made = node(Kind::filter, std::move(value));
    made->text = name;
    if (take_sign("(")) parse_arguments(*made);
    value = std::move(made);
  }
  return value;
}

JinjaNode::Child JinjaExpressionParser::parse_filtered(Node value) {
  while (true) {
    if (is_sign("|")) {
      value = parse_filters(std::move(value), true);
    } else if (take_name("is")) {
      value = parse_test(std::move(value));
    } else if (take_sign("(")) {
      value = node(Kind::call, std::move(value));
      parse_arguments(*value);
    } else {
      return value;
    }
  }
}

JinjaNode::Child JinjaExpressionParser::parse_test(Node value) {
  const bool is_negated = take_name("not");
  const std::string name = take_identifier();
  if (!is_jinja_test(name)) fail_here("there is no test '{}'", name);
  Node made = node(Kind::test, std::move(value));
  made->text = name, made->is_negated = is_negated;
  const bool is_value = now().kind == TokenKind::name || now().kind == TokenKind::string ||
                        now().kind == TokenKind::integer || now().kind == TokenKind::real ||
                        is_sign("[") || is_sign("{");
  const bool is_word = is_name("else") || is_name("or") || is_name("and") || is_name("is") ||
                       is_name("if") || is_name("not") || is_name("in");
  if (take_sign("(")) {
    parse_arguments(*made);
  } else if (is_value && !is_word) {
    add(*made, parse_postfix(parse_primary()));
  }
  return made;
}

}  // namespace heddle
