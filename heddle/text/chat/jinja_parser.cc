// Statements of Jinja, over its expressions.
#include <utility>

#include "heddle/text/chat/jinja_expressions.h"

namespace heddle {
namespace {

class JinjaParser : private JinjaExpressionParser {
 public:
  explicit JinjaParser(std::string_view source) : JinjaExpressionParser(source) {}

  Node run() {
    Node body = parse_body({});
    if (now().kind != TokenKind::end) fail_here("{} is not expected", described());
    return body;
  }

 private:
  // Up to one of these statements, or the end.
  Node parse_body(std::initializer_list<std::string_view> ends) {
    const Level level(*this);
    Node body = node(Kind::body);
    while (now().kind != TokenKind::end) {
      if (is(TokenKind::data)) {
        Node data = node(Kind::data);
        data->text = tokens_[at_++].text;
        add(*body, std::move(data));
      } else if (take(TokenKind::print_begin)) {
        add(*body, node(Kind::print, parse_tuple()));
        need(TokenKind::print_end, "", "'}}'");
      } else {
        for (const std::string_view end : ends) {
          if (is(TokenKind::block_begin) && next().text == end) return body;
        }
        need(TokenKind::block_begin, "", "a block");
        add(*body, parse_statement());
      }
    }
    return body;
  }

  // The word of a block that ends, or goes on with, a statement.
  void need_word(std::string_view word) {
    need(TokenKind::block_begin, "", "{% " + std::string(word) + " %}");
    need(TokenKind::name, word, "{% " + std::string(word) + " %}");
  }

  Node parse_statement() {
    const std::string word = take_identifier();
    if (word == "if") return parse_if();
    if (word == "for") return parse_for();
    if (word == "set") return parse_set();
    if (word == "macro") return parse_macro();
    if (word == "filter") return parse_filter_body();
    if (word == "generation") {  // transformers': what the assistant says
      end_block();
      Node body = parse_body({"endgeneration"});
      need_word("endgeneration");
      end_block();
      return body;
    }
    if (word == "break" || word == "continue") {
      if (loops_ == 0) fail_here("{} outside of a loop", word);
      end_block();
      return node(word == "break" ? Kind::break_loop : Kind::continue_loop);
    }
    fail_here(
        "'{}' is no statement of chat templates; if, for, set, macro, filter, generation, break, "
        "continue and raw are",
        word);
  }

  Node parse_if() {
    Node made = node(Kind::if_else);
    add(*made, parse_tuple(false));
    end_block();
    add(*made, parse_body({"elif", "else", "endif"}));
    while (true) {
      need(TokenKind::block_begin, "", "{% endif %}");
      if (take_name("elif")) {
        add(*made, parse_tuple(false));
        end_block();
        add(*made, parse_body({"elif", "else", "endif"}));
      } else if (take_name("else")) {
        end_block();
        add(*made, parse_body({"endif"}));
      } else {
        need(TokenKind::name, "endif", "{% endif %}");
        end_block();
        return made;
      }
    }
  }

  std::vector<std::string> parse_targets() {
    std::vector<std::string> names;
    const bool has_bracket = take_sign("(");
    do {
      names.push_back(take_identifier());
    } while (take_sign(","));
    if (has_bracket) need_sign(")");
    return names;
  }

  Node parse_for() {
    Node made = node(Kind::for_loop);
    made->names = parse_targets();
    need(TokenKind::name, "in", "'in'");
    add(*made, parse_tuple(false));
    add(*made, take_name("if") ? parse_expression() : nullptr);
    if (is_name("recursive")) fail_here("recursive loops are not there");
    end_block();
    ++loops_;
    add(*made, parse_body({"endfor", "else"}));
    --loops_;
    need(TokenKind::block_begin, "", "{% endfor %}");
    if (take_name("else")) {
      end_block();
      add(*made, parse_body({"endfor"}));
      need(TokenKind::block_begin, "", "{% endfor %}");
    } else {
      made->children.push_back(nullptr);
    }
    need(TokenKind::name, "endfor", "{% endfor %}");
    end_block();
    return made;
  }

  Node parse_set() {
    Node made = node(Kind::set);
    if (next().kind == TokenKind::sign && next().text == ".") {
      made->text = take_identifier();
      need_sign(".");
      made->names = {take_identifier()};
    } else {
      made->names = parse_targets();
    }
    if (take_sign("=")) {
      add(*made, parse_tuple());
      end_block();
      return made;
    }
    made->kind = Kind::set_body;
    if (made->names.size() != 1 || !made->text.empty()) fail_here("set needs '='");
    Node filter = is_sign("|") ? parse_filters(nullptr, true) : nullptr;
    end_block();
    Node body = parse_body({"endset"});
    need_word("endset");
    end_block();
    if (filter) body = node(Kind::filter_body, std::move(filter), std::move(body));
    add(*made, std::move(body));
    return made;
  }

  Node parse_macro() {
    Node made = node(Kind::macro);
    made->text = take_identifier();
    std::vector<Node> defaults;
    need_sign("(");
    while (!take_sign(")")) {
      if (!made->names.empty()) need_sign(",");
      made->names.push_back(take_identifier());
      if (take_sign("=")) {
        defaults.push_back(parse_expression());
      } else if (!defaults.empty()) {
        fail_here("a parameter without a default behind one that has one");
      }
    }
    end_block();
    const int loops = std::exchange(loops_, 0);
    add(*made, parse_body({"endmacro"}));
    loops_ = loops;
    need_word("endmacro");
    end_block();
    for (Node& one : defaults) add(*made, std::move(one));
    return made;
  }

  Node parse_filter_body() {
    Node filter = parse_filters(nullptr, false);
    end_block();
    Node body = parse_body({"endfilter"});
    need_word("endfilter");
    end_block();
    return node(Kind::filter_body, std::move(filter), std::move(body));
  }

  int loops_ = 0;
};

}  // namespace

JinjaNode::Child parse_jinja(std::string_view source) { return JinjaParser(source).run(); }

}  // namespace heddle
