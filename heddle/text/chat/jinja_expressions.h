// The part of Jinja's grammar that gives values, with what reading tokens takes.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/base/error.h"
#include "heddle/text/chat/jinja_tree.h"

namespace heddle {

class JinjaExpressionParser {
 protected:
  using Kind = JinjaKind;
  using TokenKind = JinjaTokenKind;
  using Node = JinjaNode::Child;

  explicit JinjaExpressionParser(std::string_view source) : tokens_(read_jinja_tokens(source)) {}

  // Counts levels, of a call that may come again within itself.
  struct Level {
    explicit Level(JinjaExpressionParser& parser) : depth(parser.depth_) {
      if (++depth > kDeepestJinja) parser.fail_here("more than {} levels", kDeepestJinja);
    }
    ~Level() { --depth; }
    int& depth;
  };

  const JinjaToken& now() const { return tokens_[at_]; }
  const JinjaToken& next() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  template <class... Args>
  [[noreturn]] void fail_here(fmt::format_string<Args...> format, const Args&... args) const {
    fail(ErrorKind::data, "line {}: {}", now().line,
         fmt::vformat(format, fmt::make_format_args(args...)));
  }
  std::string described() const {
    if (now().kind == TokenKind::end) return "the end";
    return now().text.empty() ? "the end of the block" : "'" + now().text + "'";
  }
  bool is(TokenKind kind, std::string_view text = "") const {
    return now().kind == kind && (text.empty() || now().text == text);
  }
  bool is_sign(std::string_view text) const { return is(TokenKind::sign, text); }
  bool is_name(std::string_view text) const { return is(TokenKind::name, text); }
  bool take(TokenKind kind, std::string_view text = "") {
    if (!is(kind, text)) return false;
    ++at_;
    return true;
  }
  bool take_sign(std::string_view text) { return take(TokenKind::sign, text); }
  bool take_name(std::string_view text) { return take(TokenKind::name, text); }
  void need(TokenKind kind, std::string_view text, std::string_view what) {
    if (!take(kind, text)) fail_here("{} is not expected; {} is needed", described(), what);
  }
  void need_sign(std::string_view text) {
    need(TokenKind::sign, text, "'" + std::string(text) + "'");
  }
  void end_block() { need(TokenKind::block_end, "", "the end of the block"); }
  std::string take_identifier() {
    if (now().kind != TokenKind::name)
      fail_here("{} is not expected; a name is needed", described());
    return tokens_[at_++].text;
  }

  template <class... Children>
  Node node(Kind kind, Children... children) {
    auto made = std::make_unique<JinjaNode>();
    made->kind = kind, made->line = now().line;
    (add(*made, std::move(children)), ...);
    return made;
  }
  void add(JinjaNode& parent, Node child) {
    if (child) parent.depth = std::max(parent.depth, child->depth + 1);
    if (parent.depth > 2 * kDeepestJinja) fail_here("more than {} levels", 2 * kDeepestJinja);
    parent.children.push_back(std::move(child));
  }

  // Values between commas are a tuple. Behind "if" and "in" no value is conditional, as in Jinja.
  Node parse_tuple(bool has_conditional = true);
  Node parse_expression();
  Node parse_conditional(Node value);
  Node parse_or();
  Node parse_and();
  Node parse_not();
  Node parse_compare();
  template <class Operand>
  Node parse_binary(std::initializer_list<const char*> signs, const Operand& operand) {
    Node left = operand();
    while (true) {
      const char* found = nullptr;
      for (const char* sign : signs) {
        if (found == nullptr && is_sign(sign)) found = sign;
      }
      if (found == nullptr) return left;
      ++at_;
      left = node(Kind::binary, std::move(left), operand());
      left->text = found;
    }
  }
  Node parse_sum();
  Node parse_joined();
  Node parse_product();
  Node parse_power();
  Node parse_unary(bool has_filters);
  Node literal(JinjaValue value);
  Node parse_primary();
  Node parse_name();
  Node parse_parenthesis();
  Node parse_postfix(Node value);
  Node parse_subscript(Node value);
  // Behind the "(": positional, then named ones.
  void parse_arguments(JinjaNode& made);
  // "| a | b(1)" behind a value, or, in blocks, behind none.
  Node parse_filters(Node value, bool begins_with_sign);
  Node parse_filtered(Node value);
  Node parse_test(Node value);

  std::vector<JinjaToken> tokens_;
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace heddle
