// What a chat template's source says, as a tree; and how it comes to be one.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/text/chat/jinja_value.h"

namespace heddle {

enum class JinjaKind : uint8_t {
  // Statements.
  body,         ///< children in order
  data,         ///< text: as it is
  print,        ///< children: [expression]
  if_else,      ///< children: condition, body, condition, body, .. and, if odd, what else
  for_loop,     ///< names: targets; children: [sequence, condition or null, body, else or null]
  set,          ///< names: targets, or text: a namespace's name, names: [attribute]; [expression]
  set_body,     ///< names: [target]; children: [body]
  macro,        ///< text: its name; names: parameters; children: [body, defaults of the last ones]
  filter_body,  ///< children: [filter without a value, body]
  break_loop,
  continue_loop,
  // Expressions.
  literal,    ///< value
  name,       ///< text
  list,       ///< children
  tuple,      ///< children
  dict,       ///< children: key, value, ..
  attribute,  ///< children: [object]; text
  item,       ///< children: [object, key]
  slice,      ///< children: [object, begin, end, step], each but the first may be null
  call,       ///< children: [callee, positional .., named ..]; names: of the named ones
  filter,     ///< the same; children[0] is what is filtered; text: its name
  test,       ///< the same; is_negated
  negative,   ///< children: [number]
  binary,     ///< text: "+", "-", "*", "/", "//", "%", "**" or "~"; children: [left, right]
  compare,    ///< names: operators; children: one more
  and_also,
  or_else,
  not_that,
  conditional  ///< children: [condition, then, else or null]
};

struct JinjaNode {
  using Child = std::unique_ptr<JinjaNode>;
  JinjaKind kind = JinjaKind::body;
  int line = 1;
  std::string text = {};
  JinjaValue value = {};
  std::vector<std::string> names = {};
  std::vector<Child> children = {};
  bool is_negated = false;
  int depth = 1;  ///< levels of nodes, its own with them
};

enum class JinjaTokenKind : uint8_t {
  data,
  print_begin,
  print_end,
  block_begin,
  block_end,
  name,
  string,
  integer,
  real,
  sign,
  end
};

struct JinjaToken {
  JinjaTokenKind kind = JinjaTokenKind::end;
  std::string text = {};  ///< of a string: what it stands for
  int line = 1;
};

/// The tokens of a template, white space taken away as its signs say, and as transformers sets
/// trim_blocks and lstrip_blocks: a line end behind a block, and spaces before one on its line.
/// Errors: data, with the line, for what is no template.
std::vector<JinjaToken> read_jinja_tokens(std::string_view source);

/// The whole template. Errors: data, with the line, for a statement, filter or test that is not
/// known, or nesting beyond kDeepestJinja.
JinjaNode::Child parse_jinja(std::string_view source);
inline constexpr int kDeepestJinja = 200;

/// Whether there is such a filter, such a test.
bool is_jinja_filter(std::string_view name);
bool is_jinja_test(std::string_view name);

}  // namespace heddle
