// Reads elements from left to right; comments, instructions and attributes are skipped.
#include "heddle/data/detection/xml.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "heddle/base/error.h"
#include "heddle/base/files/lines.h"
#include "heddle/base/utf8.h"
#include "heddle/text/strings/strings.h"

namespace heddle {
namespace {

constexpr int kMostLevels = 64;

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
bool ends_name(char c) { return is_space(c) || c == '/' || c == '>' || c == '<' || c == '='; }

std::string trimmed(const std::string& text) {
  const auto begin = std::ranges::find_if_not(text, is_space);
  auto end = text.end();
  while (end != begin && is_space(end[-1])) --end;
  return std::string(begin, end);
}

class XmlReader {
 public:
  XmlReader(std::string_view text, const std::string& path) : text_(text), path_(path) {}

  XmlElement document() {
    skip_between();
    need(at_ < text_.size(), "there is no element");
    XmlElement root = element(1);
    skip_between();
    need(at_ == text_.size(), "there is something behind the first element");
    return root;
  }

 private:
  // Counts on from where it stood at last.
  int64_t line() {
    for (; counted_ < std::min(at_, text_.size()); ++counted_) line_ += text_[counted_] == '\n';
    return line_;
  }
  void need(bool holds, std::string_view what) {
    if (!holds) fail(ErrorKind::data, "{}: line {}: this is no XML: {}", path_, line(), what);
  }
  bool sees(std::string_view what) const { return text_.substr(at_).starts_with(what); }
  void skip_space() {
    while (at_ < text_.size() && is_space(text_[at_])) ++at_;
  }
  // Moves behind the end mark, and returns what stands before it.
  std::string_view until(std::string_view end) {
    const size_t found = text_.find(end, at_);
    need(found != text_.npos, "it is cut short");
    const std::string_view skipped = text_.substr(at_, found - at_);
    at_ = found + end.size();
    return skipped;
  }
  // Comments and instructions: <!-- .. -->, <? .. ?>.
  bool skip_markup() {
    if (sees("<!--")) return until("-->"), true;
    if (sees("<?")) return until("?>"), true;
    need(!sees("<!DOCTYPE"), "a document type is not read; remove it");
    return false;
  }
  void skip_between() {
    do {
      skip_space();
    } while (skip_markup());
  }

  std::string name() {
    const size_t begin = at_;
    while (at_ < text_.size() && !ends_name(text_[at_])) ++at_;
    need(at_ > begin, "a name is missing");
    return std::string(text_.substr(begin, at_ - begin));
  }

  // True if the element has an inside.
  bool skip_attributes() {
    for (;;) {
      skip_space();
      need(at_ < text_.size(), "it is cut short");
      if (sees("/>")) return at_ += 2, false;
      if (sees(">")) return at_ += 1, true;
      name();
      skip_space();
      need(sees("="), "an attribute has no value");
      ++at_;
      skip_space();
      need(sees("\"") || sees("'"), "an attribute's value has no quotes");
      const char quote = text_[at_++];
      until(std::string_view(&quote, 1));
    }
  }

  char32_t character(std::string_view code) {
    const bool is_hex = code.starts_with('x');
    code.remove_prefix(is_hex ? 1 : 0);
    uint32_t value = 0;
    const char* end = code.data() + code.size();
    const auto [stop, fault] = std::from_chars(code.data(), end, value, is_hex ? 16 : 10);
    need(fault == std::errc() && stop == end && value > 0 && value <= 0x10FFFF &&
             (value < 0xD800 || value > 0xDFFF),
         "an entity is the number of no character");
    return value;
  }

  void add_entity(std::string& to) {
    ++at_;
    const std::string_view code = until(";");
    static constexpr std::pair<std::string_view, char> known[] = {
        {"amp", '&'}, {"lt", '<'}, {"gt", '>'}, {"quot", '"'}, {"apos", '\''}};
    for (const auto& [name, meant] : known) {
      if (code == name) return to.push_back(meant);
    }
    need(code.starts_with('#'), "an entity is not known");
    append_utf8(character(code.substr(1)), to);
  }

  XmlElement element(int level) {
    need(level <= kMostLevels, "elements stand in each other in more than 64 levels");
    XmlElement result;
    result.line = line();
    need(sees("<"), "an element is missing");
    ++at_;
    result.name = name();
    if (!skip_attributes()) return result;
    while (!sees("</")) {
      need(at_ < text_.size(), "it is cut short");
      if (sees("<![CDATA[")) {
        at_ += 9;
        result.text += until("]]>");
      } else if (sees("<")) {
        if (!skip_markup()) result.children.push_back(element(level + 1));
      } else if (sees("&")) {
        add_entity(result.text);
      } else {
        result.text += text_[at_++];
      }
    }
    at_ += 2;
    need(name() == result.name, "an element ends by another name");
    skip_space();
    need(sees(">"), "an element's end is cut short");
    ++at_;
    result.text = trimmed(result.text);
    return result;
  }

  std::string_view text_;
  const std::string& path_;
  size_t at_ = 0, counted_ = 0;
  int64_t line_ = 1;
};

}  // namespace

const XmlElement* XmlElement::find(std::string_view child) const {
  const auto found = std::ranges::find(children, child, &XmlElement::name);
  return found == children.end() ? nullptr : &*found;
}

const XmlElement& XmlElement::at(std::string_view child, const std::string& path) const {
  const XmlElement* found = find(child);
  if (found == nullptr) {
    fail(ErrorKind::data, "{}: line {}: <{}> has no <{}>", path, line, name, child);
  }
  return *found;
}

XmlElement parse_xml(std::string_view text, const std::string& path) {
  check_utf8(text, path);
  return XmlReader(without_byte_order_mark(text), path).document();
}

}  // namespace heddle
