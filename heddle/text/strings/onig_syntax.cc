// One pass over a pattern, which copies what both libraries read alike.
#include "heddle/text/strings/onig_syntax.h"

#include <algorithm>
#include <vector>

#include "heddle/base/error.h"
#include "heddle/base/utf8.h"
#include "heddle/text/strings/strings.h"

namespace heddle {
namespace {

/// What \w is to `onig`. ICU's holds the joiners. The small figures of Latin-1 belong to it too,
/// but not inside brackets: there `onig` has another table.
std::string word_set(bool is_negated, bool is_in_brackets) {
  return fmt::format("[{}\\p{{Alphabetic}}\\p{{M}}\\p{{Nd}}\\p{{Pc}}{}]", is_negated ? "^" : "",
                     is_in_brackets ? "" : "\\u00B2\\u00B3\\u00B9\\u00BC-\\u00BE");
}

std::string hexadecimal_set(bool is_negated) { return is_negated ? "[^0-9A-Fa-f]" : "[0-9A-Fa-f]"; }

/// [:punct:]: the signs of ASCII are all among it, $+<=>^`|~ too.
std::string punctuation_set(bool is_negated) {
  return fmt::format("[{}\\p{{P}}\\u0024\\u002B\\u003C-\\u003E\\u005E\\u0060\\u007C\\u007E]",
                     is_negated ? "^" : "");
}

/// Between a character of a word and one of none (\b), or not (\B).
std::string word_boundary(bool is_negated) {
  const std::string word = word_set(false, false), is_word = "(?=" + word + ")",
                    is_none = "(?!" + word + ")";
  return "(?:(?<=" + word + ")" + (is_negated ? is_word : is_none) + "|(?<!" + word + ")" +
         (is_negated ? is_none : is_word) + ")";
}

/// A \p{name}, \P{name}, \p{^name}, [:name:] or [:^name:] at the front of a pattern.
struct NamedClass {
  size_t bytes = 0;  // 0: there is none
  std::string name = {};
  bool is_negated = false, is_posix = false;
};

NamedClass named_class(std::string_view pattern, bool is_in_brackets) {
  const bool is_posix = is_in_brackets && pattern.starts_with("[:");
  const bool is_property = pattern.starts_with("\\p{") || pattern.starts_with("\\P{");
  if (!is_posix && !is_property) return {};
  const std::string_view end = is_posix ? ":]" : "}";
  const size_t begin = is_posix ? 2 : 3, close = pattern.find(end, begin);
  if (close == pattern.npos) return {};
  std::string name = lower_case(pattern.substr(begin, close - begin));
  const bool is_negated = name.starts_with('^') != pattern.starts_with("\\P");
  std::erase_if(name, [](char c) { return c == '^' || c == ' ' || c == '_' || c == '-'; });
  return {close + end.size(), name, is_negated, is_posix};
}

/// The set that `onig` means, "" where ICU means the same.
std::string set_of(const NamedClass& c, bool is_in_brackets) {
  if (c.name == "word") return word_set(c.is_negated, is_in_brackets);
  if (c.name == "xdigit") return hexadecimal_set(c.is_negated);
  const bool is_punctuation = c.is_posix ? c.name == "punct" : c.name == "posixpunct";
  return is_punctuation ? punctuation_set(c.is_negated) : "";
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// How many of the characters behind the first `from` are those that the claim holds for.
template <class Claim>
size_t run_of(std::string_view text, size_t from, size_t most, const Claim& claim) {
  size_t n = 0;
  while (n < most && from + n < text.size() && claim(text[from + n])) ++n;
  return n;
}

/// Bytes of the character at the front of a text.
size_t character_bytes(std::string_view text) {
  return 1 + run_of(text, 1, text.size(), is_continuation);
}

/// Bytes of the escape at the front of a pattern, with what belongs to it.
size_t escape_bytes(std::string_view pattern) {
  if (pattern.size() < 2) return pattern.size();
  const auto is_hexadecimal = [](char c) {
    return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
  };
  const char c = pattern[1], next = pattern.size() > 2 ? pattern[2] : '\0';
  const bool is_named = next == '{' && (c == 'p' || c == 'P' || c == 'x' || c == 'o');
  const size_t close = is_named                  ? pattern.find('}')
                       : c == 'k' && next == '<' ? pattern.find('>')
                                                 : pattern.npos;
  if (close != pattern.npos) return close + 1;
  if (c == 'x') return 2 + run_of(pattern, 2, 2, is_hexadecimal);
  if (c == 'u') return 2 + run_of(pattern, 2, 4, is_hexadecimal);
  if (is_digit(c)) return 1 + run_of(pattern, 1, 3, is_digit);
  return 1 + character_bytes(pattern.substr(1));
}

class OnigRewriter {
 public:
  OnigRewriter(std::string_view pattern, const std::string& source)
      : whole_(pattern), left_(pattern), source_(source) {}

  std::string run() {
    while (!left_.empty()) {
      if (left_[0] == '\\') {
        escape();
      } else if (depth_ > 0) {
        in_brackets();
      } else if (!bracket() && !group() && !interval()) {
        if (left_[0] != '*' && left_[0] != '+' && left_[0] != '?') atom_ = result_.size();
        if (left_[0] == '{' || left_[0] == '}') result_ += '\\';  // themselves
        copy(character_bytes(left_));
      }
    }
    result_.append(groups_[0].closers, ')');
    return std::move(result_);
  }

 private:
  struct Group {
    size_t begin = 0;
    bool folds = false;  // (?i)
    size_t closers = 0;  // of groups that hold what stands behind an option
  };

  void copy(size_t bytes) {
    result_ += left_.substr(0, bytes);
    drop(bytes);
  }
  void drop(size_t bytes) { left_.remove_prefix(std::min(bytes, left_.size())); }
  void put(std::string_view text, size_t bytes) {
    result_ += text;
    drop(bytes);
  }

  [[noreturn]] void refuse(std::string_view what) const {
    fail(ErrorKind::data,
         "{}: the regular expression '{}' has {}, which heddle cannot read as `tokenizers` does",
         source_, whole_, what);
  }

  void escape() {
    const bool is_in_brackets = depth_ > 0;
    if (!is_in_brackets) atom_ = result_.size();
    const char c = left_.size() > 1 ? left_[1] : '\0';
    if (c == 'p' || c == 'P') return property();
    if (c == 'w' || c == 'W') return put(word_set(c == 'W', is_in_brackets), 2);
    if (c == 'h' || c == 'H') return put(hexadecimal_set(c == 'H'), 2);
    if (c == 'v') return put("\\u000B", 2);
    if (c == 'V' || c == 'Q' || c == 'E') return put(std::string(1, c), 2);
    if (is_in_brackets) {
      if (c == 'b') return put("\\u0008", 2);
      if (std::string_view("NOKyYZ").find(c) != std::string_view::npos && c != '\0') {
        return put(std::string(1, c), 2);
      }
      return copy(escape_bytes(left_));
    }
    if (c == 'b' || c == 'B') return put(word_boundary(c == 'B'), 2);
    if (c == 'N') return put("[^\\n]", 2);
    if (c == 'O') return put("(?s:.)", 2);
    if (c == 'Z') return put("(?=\\n?\\z)", 2);
    if (c == 'K' || c == 'y' || c == 'Y' || c == 'g') refuse(left_.substr(0, 2));
    copy(escape_bytes(left_));
  }

  // Outside of brackets its case counts whatever the options say.
  void property() {
    const NamedClass found = named_class(left_, depth_ > 0);
    const std::string set = found.bytes > 0 ? set_of(found, depth_ > 0) : "";
    if (!set.empty()) return put(set, found.bytes);
    const bool keeps_case = depth_ == 0 && groups_.back().folds && found.bytes > 0;
    if (keeps_case) result_ += "(?-i:";
    copy(escape_bytes(left_));
    if (keeps_case) result_ += ')';
  }

  void in_brackets() {
    const NamedClass found = named_class(left_, true);
    if (found.bytes > 0) {
      const std::string set = set_of(found, true);
      return set.empty() ? copy(found.bytes) : put(set, found.bytes);
    }
    if (left_.starts_with("--")) refuse("-- in brackets");
    if (left_[0] == '[') return open();
    if (left_[0] == ']') --depth_;
    copy(character_bytes(left_));
  }

  bool bracket() {
    if (left_[0] != '[') return false;
    atom_ = result_.size();
    open();
    return true;
  }

  void open() {
    ++depth_;
    copy(left_.starts_with("[^") ? 2 : 1);
    if (left_.starts_with(']')) put("\\]", 1);  // the first is itself
  }

  bool group() {
    if (left_[0] == ')') {
      const Group last = groups_.back();
      result_.append(last.closers, ')');
      if (groups_.size() > 1) groups_.pop_back();
      copy(1);
      atom_ = last.begin;
      return true;
    }
    if (left_[0] != '(') return false;
    if (left_.starts_with("(?#")) {
      copy(std::min(left_.find(')'), left_.size() - 1) + 1);
      return true;
    }
    if (options()) return true;
    groups_.push_back({result_.size(), groups_.back().folds});
    copy(left_.starts_with("(?") ? 2 : 1);
    return true;
  }

  // (?im-x) and (?im-x:: the first is a group up to the end of the one that holds it, with all
  // alternatives there; m is what ICU calls s.
  bool options() {
    if (!left_.starts_with("(?")) return false;
    const size_t n = run_of(left_, 2, left_.size(),
                            [](char c) { return c == 'i' || c == 'm' || c == 'x' || c == '-'; });
    if (n == 0 || 2 + n >= left_.size()) return false;
    const char end = left_[2 + n];
    if (end != ')' && end != ':') return false;
    std::string flags(left_.substr(2, n));
    std::ranges::replace(flags, 'm', 's');
    const size_t minus = flags.find('-'), i = flags.find('i');
    const bool folds = i == flags.npos ? groups_.back().folds : i < minus;
    if (end == ':') {
      groups_.push_back({result_.size(), folds});
    } else {
      groups_.back().folds = folds;
      ++groups_.back().closers;
    }
    put("(?" + flags + ":", 2 + n + 1);
    return true;
  }

  // {n}, {n,}, {,m}, {n,m} behind an atom.
  bool interval() {
    if (left_[0] != '{') return false;
    const size_t low = run_of(left_, 1, left_.size(), is_digit);
    const bool has_comma = left_.substr(1 + low).starts_with(',');
    const size_t high = has_comma ? run_of(left_, 2 + low, left_.size(), is_digit) : 0;
    const size_t close = 1 + low + (has_comma ? 1 + high : 0);
    if (low + high == 0 || !left_.substr(close).starts_with('}')) return false;
    std::string times(left_.substr(0, close + 1));
    if (low == 0) times.insert(1, "0");
    put(times, close + 1);
    const bool is_group = left_.starts_with('+') || (left_.starts_with('?') && !has_comma);
    if (!is_group) return true;
    result_.insert(atom_, "(?:");
    result_ += ')';
    return true;
  }

  const std::string_view whole_;
  std::string_view left_;
  const std::string& source_;
  std::string result_;
  int depth_ = 0;    // of brackets
  size_t atom_ = 0;  // in the result: what a quantifier that follows would repeat
  std::vector<Group> groups_ = {{}};
};

}  // namespace

std::string icu_pattern(std::string_view onig, const std::string& source) {
  return OnigRewriter(onig, source).run();
}

}  // namespace heddle
