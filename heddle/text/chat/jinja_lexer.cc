// Jinja's tokens, by the rules of its own lexer: text between blocks, and what stands in them.
#include <algorithm>

#include "heddle/base/error.h"
#include "heddle/text/chat/jinja_tree.h"
#include "heddle/text/strings/strings.h"

namespace heddle {
namespace {

constexpr std::string_view kSpaces = " \t\n\r\f\v";

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool begins_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}

class JinjaLexer {
 public:
  explicit JinjaLexer(std::string_view source) : text_(plain_lines(source)) {
    if (text_.ends_with('\n')) text_.pop_back();
  }

  std::vector<JinjaToken> run() {
    while (at_ < text_.size()) read_data();
    add(JinjaTokenKind::end, "");
    return std::move(tokens_);
  }

 private:
  static std::string plain_lines(std::string_view source) {
    return replace_all(replace_all(source, "\r\n", "\n"), "\r", "\n");
  }
  template <class... Args>
  [[noreturn]] void fail_here(fmt::format_string<Args...> format, const Args&... args) {
    fail(ErrorKind::data, "line {}: {}", line_,
         fmt::vformat(format, fmt::make_format_args(args...)));
  }
  void add(JinjaTokenKind kind, std::string text) {
    tokens_.push_back({kind, std::move(text), line_});
  }
  bool sees(std::string_view what) const {
    return std::string_view(text_).substr(at_).starts_with(what);
  }
  void skip(size_t count) {
    line_ += static_cast<int>(std::count(text_.begin() + static_cast<int64_t>(at_),
                                         text_.begin() + static_cast<int64_t>(at_ + count), '\n'));
    at_ += count;
  }
  void skip_spaces() {
    const size_t end = std::min(text_.find_first_not_of(kSpaces, at_), text_.size());
    skip(end - at_);
  }

  // Text up to the next "{{", "{%" or "{#", and what stands there.
  void read_data() {
    size_t open = at_;
    while ((open = text_.find('{', open)) != std::string::npos) {
      const char next = open + 1 < text_.size() ? text_[open + 1] : ' ';
      if (next == '{' || next == '%' || next == '#') break;
      ++open;
    }
    const bool is_last = open == std::string::npos;
    if (is_last) open = text_.size();
    std::string data = text_.substr(at_, open - at_);
    const bool is_line_start = at_ == 0 || text_[at_ - 1] == '\n';
    const char kind = is_last ? ' ' : text_[open + 1],
               sign = open + 2 < text_.size() ? text_[open + 2] : ' ';
    if (!is_last) strip_end(data, kind, sign, is_line_start);
    if (!data.empty()) add(JinjaTokenKind::data, data);
    skip(open - at_);
    if (is_last) return;
    const bool has_sign = sign == '-' || sign == '+';
    if (kind == '#') return read_comment();
    skip(has_sign ? 3 : 2);
    if (kind == '%' && is_raw()) return;
    add(kind == '{' ? JinjaTokenKind::print_begin : JinjaTokenKind::block_begin, "");
    read_inside(kind == '{' ? "}}" : "%}");
  }

  static void strip_end(std::string& data, char kind, char sign, bool is_line_start) {
    if (sign == '-') {
      data.resize(data.find_last_not_of(kSpaces) + 1);
    } else if (sign != '+' && kind != '{') {
      const size_t line = data.rfind('\n') + 1;
      const bool is_own_line = line > 0 || is_line_start;
      if (is_own_line && data.find_first_not_of(kSpaces, line) == std::string::npos) {
        data.resize(line);
      }
    }
  }

  void read_comment() {
    const size_t end = text_.find("#}", at_ + 2);
    if (end == std::string::npos) fail_here("a comment has no end");
    const char sign = text_[end - 1];
    skip(end + 2 - at_);
    // "{#-}" has one sign, which is that of its beginning; Jinja takes it for both too.
    after_block(sign);
  }

  void after_block(char sign) {
    if (sign == '-') return skip_spaces();
    if (sign != '+' && sees("\n")) skip(1);
  }

  // "{% raw %}" to "{% endraw %}": text as it is.
  bool is_raw() {
    size_t name = text_.find_first_not_of(kSpaces, at_);
    if (name == std::string::npos || text_.compare(name, 3, "raw") != 0) return false;
    name = text_.find_first_not_of(kSpaces, name + 3);
    if (name == std::string::npos) return false;
    const bool strips = text_[name] == '-';
    const size_t close = name + (strips || text_[name] == '+' ? 1 : 0);
    if (text_.compare(close, 2, "%}") != 0) return false;
    const char sign = text_[name];
    skip(close + 2 - at_);
    after_block(sign);
    for (size_t open = at_; (open = text_.find("{%", open)) != std::string::npos; open += 2) {
      size_t word = open + 2;
      const char before = word < text_.size() ? text_[word] : ' ';
      if (before == '-' || before == '+') ++word;
      word = text_.find_first_not_of(kSpaces, word);
      if (word == std::string::npos || text_.compare(word, 6, "endraw") != 0) continue;
      size_t end = text_.find_first_not_of(kSpaces, word + 6);
      if (end == std::string::npos) continue;
      const char behind = text_[end];
      if (behind == '-' || behind == '+') ++end;
      if (text_.compare(end, 2, "%}") != 0) continue;
      std::string data = text_.substr(at_, open - at_);
      strip_end(data, '%', before, at_ == 0 || text_[at_ - 1] == '\n');
      if (!data.empty()) add(JinjaTokenKind::data, data);
      skip(end + 2 - at_);
      after_block(behind);
      return true;
    }
    fail_here("raw has no endraw");
  }

  void read_inside(std::string_view end) {
    std::string open;  // brackets that wait for their ends
    while (true) {
      skip_spaces();
      if (at_ >= text_.size()) fail_here("a block has no end");
      if (open.empty() && reads_end(end)) return;
      const char c = text_[at_];
      if (c == '"' || c == '\'') {
        read_string(c);
      } else if (is_digit(c)) {
        read_number();
      } else if (begins_name(c)) {
        size_t to = at_;
        while (to < text_.size() && (begins_name(text_[to]) || is_digit(text_[to]))) ++to;
        add(JinjaTokenKind::name, text_.substr(at_, to - at_));
        at_ = to;
      } else {
        read_sign(open);
      }
    }
  }

  bool reads_end(std::string_view end) {
    const bool has_sign =
        (sees("-") || (end == "%}" && sees("+"))) && text_.compare(at_ + 1, 2, end) == 0;
    if (!has_sign && !sees(end)) return false;
    const char sign = has_sign ? text_[at_] : ' ';
    skip(has_sign ? 3 : 2);
    add(end == "}}" ? JinjaTokenKind::print_end : JinjaTokenKind::block_end, "");
    if (sign == '-') {
      skip_spaces();
    } else if (end == "%}") {
      after_block(sign);
    }
    return true;
  }

  void read_string(char quote) {
    std::string value;
    size_t i = at_ + 1;
    for (; i < text_.size() && text_[i] != quote; ++i) {
      if (text_[i] != '\\' || i + 1 == text_.size()) {
        value += text_[i];
      } else {
        i = read_escape(i + 1, value);
      }
    }
    if (i >= text_.size()) fail_here("a string has no end");
    add(JinjaTokenKind::string, std::move(value));
    skip(i + 1 - at_);
  }

  // The escape whose letter stands at i. returns: where its last character is
  size_t read_escape(size_t i, std::string& value) {
    static constexpr std::string_view kLetters = "ntrfvab0\\'\"\n";
    static constexpr std::string_view kMeant("\n\t\r\f\v\a\b\0\\'\"", 11);
    const char c = text_[i];
    const size_t known = kLetters.find(c);
    if (known != std::string_view::npos) {
      if (c != '\n') value += kMeant[known];
      return i;
    }
    const size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    if (digits == 0) {
      value += '\\', value += c;
      return i;
    }
    uint32_t code = 0;
    for (size_t d = 1; d <= digits; ++d) {
      const char h = i + d < text_.size() ? text_[i + d] : ' ';
      const auto digit = std::string_view("0123456789abcdef").find(static_cast<char>(h | 0x20));
      if (digit == std::string_view::npos) fail_here("\\{} needs {} hexadecimal digits", c, digits);
      code = code * 16 + static_cast<uint32_t>(digit);
    }
    if (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) {
      fail_here("\\{} names no character", c);
    }
    append_utf8(code, value);
    return i + digits;
  }

  void read_number() {
    size_t to = at_;
    const auto digits = [&] {
      while (to < text_.size() && (is_digit(text_[to]) || text_[to] == '_')) ++to;
    };
    digits();
    bool is_real = false;
    if (to + 1 < text_.size() && text_[to] == '.' && is_digit(text_[to + 1])) {
      is_real = true, ++to, digits();
    }
    if (to < text_.size() && (text_[to] == 'e' || text_[to] == 'E')) {
      const size_t sign =
          to + 1 < text_.size() && (text_[to + 1] == '-' || text_[to + 1] == '+') ? 1 : 0;
      if (to + sign + 1 < text_.size() && is_digit(text_[to + sign + 1])) {
        is_real = true, to += sign + 1, digits();
      }
    }
    std::string number = text_.substr(at_, to - at_);
    std::erase(number, '_');
    add(is_real ? JinjaTokenKind::real : JinjaTokenKind::integer, std::move(number));
    at_ = to;
  }

  void read_sign(std::string& open) {
    static constexpr std::string_view kLong[] = {"==", "!=", ">=", "<=", "//", "**"};
    for (const std::string_view sign : kLong) {
      if (!sees(sign)) continue;
      add(JinjaTokenKind::sign, std::string(sign));
      return skip(2);
    }
    const char c = text_[at_];
    if (std::string_view("+-*/%~<>=.,:|()[]{}").find(c) == std::string_view::npos) {
      fail_here("'{}' is not expected", c);
    }
    if (c == '(' || c == '[' || c == '{') {
      open += c == '(' ? ')' : c == '[' ? ']' : '}';
    } else if (c == ')' || c == ']' || c == '}') {
      if (open.empty() || open.back() != c) fail_here("'{}' is not expected", c);
      open.pop_back();
    }
    add(JinjaTokenKind::sign, std::string(1, c));
    skip(1);
  }

  std::string text_;
  size_t at_ = 0;
  int line_ = 1;
  std::vector<JinjaToken> tokens_;
};

}  // namespace

std::vector<JinjaToken> read_jinja_tokens(std::string_view source) {
  return JinjaLexer(source).run();
}

}  // namespace heddle
