// A reader of HTML that never fails: what is no tag is text.
#include <algorithm>
#include <array>
#include <cctype>
#include <span>

#include "heddle/text/strings/html_entities.h"
#include "heddle/text/strings/marked_text_reader.h"
#include "heddle/text/strings/strings.h"
#include "heddle/text/strings/tags.h"

namespace heddle {
namespace {

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
      std::to_array<std::string_view>({"!doctype", "area", "br", "embed", "hr", "img", "input",
                                       "link", "meta", "source", "track", "wbr"});
  return is_one_of(name, kNames);
}
// In which nothing is a tag but their own end.
bool is_raw(std::string_view name) {
  static constexpr auto kNames = std::to_array<std::string_view>({"script", "style", "textarea"});
  return is_one_of(name, kNames);
}
bool is_kept_whole(std::string_view name, std::string_view tag) {
  static constexpr auto kNames =
      std::to_array<std::string_view>({"code", "kbd", "math", "pre", "samp", "svg", "var"});
  if (is_raw(name) || is_one_of(name, kNames)) return true;
  const auto translate = tag_attribute(tag, "translate");
  if (translate && is_same_tag_name(*translate, "no")) return true;
  const std::vector<std::string> classes =
      split_at_spaces(std::string(tag_attribute(tag, "class").value_or("")));
  return std::ranges::find(classes, "notranslate") != classes.end();
}

// Whether a tag of that name, or the end of its element, begins at a "<".
bool is_tag_of(std::string_view name, std::string_view html, size_t at) {
  const size_t end = at + 1 + name.size();
  if (end > html.size() || !is_same_tag_name(html.substr(at + 1, name.size()), name)) return false;
  return end == html.size() || std::string_view(" \t\r\n\f\v/>").find(html[end]) != html.npos;
}

// Where the element ends that `at` is behind the begin of, with those of its name in it passed
// over; the end of the whole if it does not.
size_t end_of_element(std::string_view html, size_t at, std::string_view name) {
  const bool is_nested = !is_raw(name);
  const std::string end_name = "/" + std::string(name);
  int64_t depth = 1;
  for (at = html.find('<', at); at != html.npos; at = html.find('<', at + 1)) {
    if (is_nested && html.substr(at).starts_with("<!--")) {
      at = html.find("-->", at);
      if (at == html.npos) break;
    } else if (is_tag_of(end_name, html, at)) {
      const size_t end = end_of_tag(html, at);
      if (--depth == 0) return std::min(end, html.size());
    } else if (is_nested && is_tag_of(name, html, at)) {
      const size_t end = end_of_tag(html, at);
      if (end != html.npos && html[end - 2] != '/') ++depth;
    }
  }
  return html.size();
}

// Takes the comment or the tag at a "<", or that alone.
void take_tag(MarkedText::Reader& to, std::string_view html, size_t& at) {
  const std::string_view rest = html.substr(at);
  if (rest.starts_with("<!--")) {
    const size_t end = rest.find("-->");
    const size_t length = end == rest.npos ? rest.size() : end + 3;
    to.add_mark(rest.substr(0, length));
    at += length;
    return;
  }
  const bool begins = rest.size() > 1 && (std::isalpha(static_cast<unsigned char>(rest[1])) != 0 ||
                                          rest[1] == '/' || rest[1] == '!');
  const size_t end = begins ? end_of_tag(html, at) : html.npos;
  if (end == html.npos) {
    to.add_text("<");
    ++at;
    return;
  }
  const std::string_view tag = html.substr(at, end - at);
  const std::string name = lower_case(tag_name(tag));
  const size_t begin = std::exchange(at, end);
  const bool closes = tag[1] == '/', is_whole = tag.ends_with("/>") || is_void(name);
  if (!closes && !is_whole && is_kept_whole(name, tag)) {
    at = end_of_element(html, end, name);
    const std::string_view element = html.substr(begin, at - begin);
    return is_block(name) ? to.add_literal(element) : to.add_mark(element);
  }
  if (is_block(name)) return to.add_literal(tag);
  if (closes) return to.close(tag);
  return is_whole ? to.add_mark(tag) : to.open(tag);
}

}  // namespace

MarkedText MarkedText::of_html(std::string_view html) {
  MarkedText text;
  text.has_tags_ = true;
  Reader reader(text);
  for (size_t at = 0; at < html.size();) {
    if (html[at] == '<') {
      take_tag(reader, html, at);
      continue;
    }
    const size_t end = std::min(html.find('<', at), html.size());
    reader.add_text(without_entities(html.substr(at, end - at)));
    at = end;
  }
  reader.finish();
  return text;
}

}  // namespace heddle
