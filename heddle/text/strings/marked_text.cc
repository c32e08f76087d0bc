// A reader of tags that never fails, and a writer that follows words.
#include "heddle/text/strings/marked_text.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <functional>

#include "heddle/text/strings/html_entities.h"
#include "heddle/text/strings/longest_matches.h"
#include "heddle/text/strings/strings.h"

namespace heddle {
namespace {

constexpr std::string_view kSpaces = " \t\r\n\f\v";
constexpr size_t kDeepest = 64;  // elements in each other; deeper ones stay as they are

bool is_space(char c) { return kSpaces.find(c) != kSpaces.npos; }

bool is_one_of(std::string_view name, std::span<const std::string_view> names) {
  return std::ranges::find(names, name) != names.end();
}
// Elements that end a text and begin another.
bool is_block(std::string_view name) {
  static constexpr auto kNames = std::to_array<std::string_view>(
      {"address", "article", "aside",  "blockquote", "body",    "br",     "caption", "dd",
       "div",     "dl",      "dt",     "figcaption", "figure",  "footer", "form",    "h1",
       "h2",      "h3",      "h4",     "h5",         "h6",      "head",   "header",  "hr",
       "html",    "li",      "link",   "main",       "meta",    "nav",    "ol",      "option",
       "p",       "section", "select", "table",      "tbody",   "td",     "tfoot",   "th",
       "thead",   "title",   "tr",     "ul",         "!doctype"});
  return is_one_of(name, kNames);
}
bool is_void(std::string_view name) {
  static constexpr auto kNames =
      std::to_array<std::string_view>({"area", "embed", "img", "input", "source", "track", "wbr"});
  return is_one_of(name, kNames);
}
bool is_kept_whole(std::string_view name) {
  static constexpr auto kNames = std::to_array<std::string_view>(
      {"code", "kbd", "math", "pre", "samp", "script", "style", "svg", "textarea", "var"});
  return is_one_of(name, kNames);
}

// "<a href=x>": where it ends, behind ">"; npos if it does not before another begins.
size_t end_of_tag(std::string_view html, size_t begin) {
  char quote = 0;
  for (size_t i = begin; i < html.size(); ++i) {
    if (quote != 0) {
      if (html[i] == quote) quote = 0;
    } else if (html[i] == '"' || html[i] == '\'') {
      quote = html[i];
    } else if (html[i] == '>') {
      return i + 1;
    } else if (html[i] == '<' && i > begin) {
      return html.npos;
    }
  }
  return html.npos;
}

// Of "<A href=x>" "A".
std::string_view name_of(std::string_view tag) {
  size_t begin = 1;
  if (begin < tag.size() && tag[begin] == '/') ++begin;
  size_t end = begin;
  while (end < tag.size() && !is_space(tag[end]) && tag[end] != '>' && tag[end] != '/') ++end;
  return tag.substr(begin, end - begin);
}

size_t end_of_core(std::string_view word) {
  size_t end = word.size();
  while (end > 0 && std::string_view(".,;:!?").find(word[end - 1]) != std::string_view::npos) --end;
  return end == 0 ? word.size() : end;
}

}  // namespace

// --- reading -------------------------------------------------------------------------------------

class MarkedText::Reader {
 public:
  explicit Reader(MarkedText& to) : to_(to) { to_.pieces_.emplace_back(); }

  void read_html(std::string_view html);
  void read_text(std::string_view text, std::span<const std::string> kept);

 private:
  Segment& segment() { return to_.pieces_.back().segment; }
  bool is_empty() { return segment().words.empty() && segment().marks.empty(); }
  void add_text(std::string_view text);
  void add_mark(std::string_view text);
  void add_literal(std::string_view text);
  void take_tag(std::string_view html, size_t& at);
  void open(std::string_view tag);
  void close(std::string_view tag, const std::string& name);
  void finish();

  MarkedText& to_;
  std::vector<int32_t> stack_;
  bool has_space_ = true;  // before what comes next
};

void MarkedText::Reader::add_text(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    if (is_space(text[at])) {
      const size_t end = std::min(text.find_first_not_of(kSpaces, at), text.size());
      if (is_empty()) segment().leading += text.substr(at, end - at);
      segment().trailing = std::string(text.substr(at, end - at));
      if (!segment().marks.empty()) segment().marks.back().has_space_behind = true;
      has_space_ = true, at = end;
      continue;
    }
    const size_t end = std::min(text.find_first_of(kSpaces, at), text.size());
    const std::string word(text.substr(at, end - at));
    std::vector<Word>& words = segment().words;
    const bool is_behind_mark =
        !segment().marks.empty() && segment().marks.back().before == words.size();
    if (has_space_ || words.empty() || is_behind_mark) {
      words.push_back({.text = word, .stack = stack_});
    } else {
      words.back().ends_outside = words.back().stack != stack_;
      words.back().text += word;
    }
    segment().trailing.clear();
    has_space_ = false, at = end;
  }
}

void MarkedText::Reader::add_mark(std::string_view text) {
  std::vector<Mark>& marks = segment().marks;
  marks.push_back({.before = segment().words.size(),
                   .text = std::string(text),
                   .has_space_before = has_space_ && !is_empty()});
  segment().trailing.clear();
  has_space_ = false;
}

void MarkedText::Reader::add_literal(std::string_view text) {
  if (!is_empty() || !segment().leading.empty()) {
    to_.pieces_.emplace_back();
    has_space_ = true;
  }
  to_.pieces_.back().literal += text;
}

void MarkedText::Reader::open(std::string_view tag) {
  if (stack_.size() >= kDeepest) return add_mark(tag);
  const auto id = static_cast<int32_t>(to_.elements_.size());
  to_.elements_.push_back({std::string(tag), std::string(name_of(tag)), segment().words.size()});
  segment().elements.push_back(id);
  stack_.push_back(id);
}

// What was not opened stays as it is.
void MarkedText::Reader::close(std::string_view tag, const std::string& name) {
  for (size_t i = stack_.size(); i-- > 0;) {
    if (lower_case(to_.elements_[static_cast<size_t>(stack_[i])].name) != name) continue;
    stack_.resize(i);
    return;
  }
  add_mark(tag);
}

void MarkedText::Reader::take_tag(std::string_view html, size_t& at) {
  const std::string_view rest = html.substr(at);
  if (rest.starts_with("<!--")) {
    const size_t end = rest.find("-->");
    const size_t length = end == rest.npos ? rest.size() : end + 3;
    add_mark(rest.substr(0, length));
    at += length;
    return;
  }
  const bool begins = rest.size() > 1 && (std::isalpha(static_cast<unsigned char>(rest[1])) != 0 ||
                                          rest[1] == '/' || rest[1] == '!');
  const size_t end = begins ? end_of_tag(html, at) : html.npos;
  if (end == html.npos) {
    add_text("<");
    ++at;
    return;
  }
  const std::string_view tag = html.substr(at, end - at);
  const std::string name = lower_case(name_of(tag));
  at = end;
  const bool closes = tag[1] == '/', is_whole = tag.ends_with("/>") || is_void(name);
  if (is_block(name)) return add_literal(tag);
  if (closes) return close(tag, name);
  const bool is_kept = is_kept_whole(name) || tag.find("translate=\"no\"") != tag.npos ||
                       tag.find("notranslate") != tag.npos;
  if (is_whole) return add_mark(tag);
  if (!is_kept) return open(tag);
  // With all up to its end.
  size_t last = html.find("</", end);
  while (last != html.npos && lower_case(name_of(html.substr(last, name.size() + 3))) != name) {
    last = html.find("</", last + 2);
  }
  if (last != html.npos) last = end_of_tag(html, last);
  at = last == html.npos ? html.size() : last;
  add_mark(html.substr(end - tag.size(), at - (end - tag.size())));
}

void MarkedText::Reader::read_html(std::string_view html) {
  for (size_t at = 0; at < html.size();) {
    if (html[at] == '<') {
      take_tag(html, at);
      continue;
    }
    const size_t end = std::min(html.find('<', at), html.size());
    add_text(without_entities(html.substr(at, end - at)));
    at = end;
  }
  finish();
}

void MarkedText::Reader::read_text(std::string_view text, std::span<const std::string> kept) {
  const std::vector<size_t> lengths = longest_matches(text, kept);
  size_t from = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t length = lengths[at];
    if (length == 0) {
      ++at;
      continue;
    }
    add_text(text.substr(from, at - from));
    add_mark(text.substr(at, length));
    from = at += length;
  }
  add_text(text.substr(from));
  finish();
}

// White space alone is no text.
void MarkedText::Reader::finish() {
  Piece& last = to_.pieces_.back();
  if (!is_empty()) return;
  to_.end_ = last.literal + last.segment.leading;
  to_.pieces_.pop_back();
}

MarkedText MarkedText::of_html(std::string_view html) {
  MarkedText text;
  text.is_html_ = true;
  Reader(text).read_html(html);
  return text;
}

MarkedText MarkedText::of_text(std::string_view plain, std::span<const std::string> kept) {
  MarkedText text;
  Reader(text).read_text(plain, kept);
  return text;
}

std::vector<std::string> MarkedText::texts() const {
  std::vector<std::string> all;
  for (const Piece& piece : pieces_) {
    std::string text;
    for (const Word& word : piece.segment.words) text += (text.empty() ? "" : " ") + word.text;
    all.push_back(std::move(text));
  }
  return all;
}

// --- writing -------------------------------------------------------------------------------------

std::string MarkedText::written(const Segment& segment, const std::string& translation,
                                const Links& links) const {
  const std::vector<std::string> words = split_at_spaces(translation);
  // Of each word the one that it came from; where none is known that of the word before.
  std::vector<size_t> from(words.size(), segment.words.size());
  for (const auto& [source, target] : links) {
    if (target < 0 || source < 0 || target >= std::ssize(words)) continue;
    if (source >= std::ssize(segment.words)) continue;
    size_t& one = from[static_cast<size_t>(target)];
    one = std::min(one, static_cast<size_t>(source));
  }
  size_t last = 0;
  for (size_t t = 0; t < from.size(); ++t) {
    if (from[t] == segment.words.size()) from[t] = last;
    last = from[t];
  }
  // Elements around words that nothing came from stand empty where they began.
  std::vector<Mark> marks = segment.marks;
  for (const int32_t id : segment.elements) {
    const Element& element = elements_[static_cast<size_t>(id)];
    const auto holds = [&](size_t s) {
      return s < segment.words.size() &&
             std::ranges::find(segment.words[s].stack, id) != segment.words[s].stack.end();
    };
    if (std::ranges::any_of(from, holds)) continue;
    marks.push_back({.before = element.before,
                     .text = element.open + "</" + element.name + ">",
                     .is_empty_element = true});
  }
  const auto place = [&](const Mark& mark) {
    const auto same = std::ranges::find(from, mark.before);
    if (same != from.end() || mark.before >= segment.words.size()) return same - from.begin();
    return std::ranges::find_if(from, [&](size_t s) { return s > mark.before; }) - from.begin();
  };
  std::ranges::stable_sort(marks, std::less<>(), &Mark::before);
  std::vector<std::pair<std::ptrdiff_t, const Mark*>> placed;
  for (const Mark& mark : marks) placed.emplace_back(place(mark), &mark);
  std::ranges::stable_sort(placed, std::less<>(), [](const auto& p) { return p.first; });
  const auto html = [&](std::string_view text) {
    return is_html_ ? html_escaped(text, false) : std::string(text);
  };

  std::string out = segment.leading;
  bool needs_space = false;
  std::vector<int32_t> stack;
  std::string tail;  // punctuation that stands behind the elements
  const auto close_to = [&](size_t depth) {
    for (; stack.size() > depth; stack.pop_back()) {
      out += "</" + elements_[static_cast<size_t>(stack.back())].name + ">";
    }
  };
  size_t written_marks = 0;
  const auto write_marks = [&](std::ptrdiff_t t) {
    for (; written_marks < placed.size() && placed[written_marks].first == t; ++written_marks) {
      const Mark& mark = *placed[written_marks].second;
      if (needs_space && mark.has_space_before) out += ' ';
      out += mark.text;
      if (!mark.is_empty_element) needs_space = mark.has_space_behind;
    }
  };
  for (size_t t = 0; t < words.size(); ++t) {
    const Word& source = segment.words[from[t]];
    size_t same = 0;
    while (same < std::min(stack.size(), source.stack.size()) &&
           stack[same] == source.stack[same]) {
      ++same;
    }
    const bool changes = same < stack.size() || same < source.stack.size();
    if (changes) close_to(same);
    out += std::exchange(tail, "");
    write_marks(static_cast<std::ptrdiff_t>(t));
    if (needs_space) out += ' ';
    for (; same < source.stack.size(); ++same) {
      out += elements_[static_cast<size_t>(source.stack[same])].open;
      stack.push_back(source.stack[same]);
    }
    const bool is_last_of_run =
        t + 1 == words.size() || segment.words[from[t + 1]].stack != source.stack;
    const size_t core =
        source.ends_outside && is_last_of_run ? end_of_core(words[t]) : words[t].size();
    out += html(std::string_view(words[t]).substr(0, core));
    tail = html(std::string_view(words[t]).substr(core));
    needs_space = true;
  }
  close_to(0);
  out += tail;
  write_marks(std::ssize(words));
  return out + (segment.words.empty() && segment.marks.empty() ? "" : segment.trailing);
}

std::string MarkedText::with(std::span<const std::string> translations,
                             std::span<const Links> links) const {
  std::string out;
  for (size_t i = 0; i < pieces_.size(); ++i) {
    out += pieces_[i].literal + written(pieces_[i].segment, translations[i], links[i]);
  }
  return out + end_;
}

}  // namespace heddle
