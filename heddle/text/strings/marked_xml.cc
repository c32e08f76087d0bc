// A reader of XML: first its parts, and which elements hold text beside others, then the words.
// Source: Extensible Markup Language (XML) 1.0, fifth edition.
#include <algorithm>
#include <cctype>

#include "heddle/base/error.h"
#include "heddle/base/utf8.h"
#include "heddle/text/strings/html_entities.h"
#include "heddle/text/strings/marked_text_reader.h"
#include "heddle/text/strings/strings.h"
#include "heddle/text/strings/tags.h"

namespace heddle {
namespace {

enum class XmlKind : uint8_t {
  text,
  cdata,
  begin,
  end,
  whole
};  // whole: an empty element, or else
struct XmlPart {
  XmlKind kind = XmlKind::text;
  size_t at = 0, end = 0;  // bytes
  size_t partner = 0;      // of begin: the part that ends the element
  bool has_text = false;   // of begin: beside the elements in it
};

bool begins_name(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_' || c == ':' ||
         (c & 0x80) != 0;
}
bool is_of_name(char c) {
  return begins_name(c) || std::isdigit(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '.';
}

template <class... Args>
void check_xml(bool is_right, fmt::format_string<Args...> format, const Args&... args) {
  if (is_right) return;
  throw Error(ErrorKind::data, "this is no well-formed XML: " +
                                   fmt::vformat(format, fmt::make_format_args(args...)));
}

constexpr std::string_view kCdata = "<![CDATA[", kCdataEnd = "]]>";

// What stands in a part that is text or CDATA.
std::string_view characters_of(const XmlPart& part, std::string_view xml) {
  const std::string_view written = xml.substr(part.at, part.end - part.at);
  if (part.kind == XmlKind::text) return written;
  return written.substr(kCdata.size(), written.size() - kCdata.size() - kCdataEnd.size());
}

// Behind a document type, whose declarations may stand between brackets.
size_t end_of_doctype(std::string_view xml, size_t at) {
  char quote = 0;
  for (int64_t depth = 0; at < xml.size(); ++at) {
    const char c = xml[at];
    if (quote != 0) {
      if (c == quote) quote = 0;
    } else if (xml.substr(at).starts_with("<!--")) {
      const size_t end = xml.find("-->", at);
      if (end == xml.npos) return end;
      at = end + 2;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '<') {
      ++depth;
    } else if (c == '>' && --depth == 0) {
      return at + 1;
    }
  }
  return xml.npos;
}

class XmlParts {
 public:
  explicit XmlParts(std::string_view xml) : xml_(xml) {
    for (size_t at = 0; at < xml.size(); at = all.back().end) take(at);
    if (!open_.empty()) {
      const XmlPart& last = all[open_.back()];
      check_xml(false, "the element at byte {} does not end", last.at);
    }
  }

  std::vector<XmlPart> all;
  bool has_text = false;  // outside of all elements

 private:
  void take(size_t at) {
    if (xml_[at] != '<') {
      const size_t end = std::min(xml_.find('<', at), xml_.size());
      return add(XmlKind::text, at, end);
    }
    const std::string_view rest = xml_.substr(at);
    if (rest.starts_with("<!--")) return add(XmlKind::whole, at, behind("-->", at + 4));
    if (rest.starts_with(kCdata)) {
      return add(XmlKind::cdata, at, behind(kCdataEnd, at + kCdata.size()));
    }
    if (rest.starts_with("<?")) return add(XmlKind::whole, at, behind("?>", at + 2));
    if (rest.starts_with("<!DOCTYPE")) return add(XmlKind::whole, at, end_of_doctype(xml_, at));
    const bool ends = rest.starts_with("</");
    const size_t name = at + (ends ? 2 : 1), end = end_of_tag(xml_, at);
    check_xml(name < xml_.size() && begins_name(xml_[name]) && end != xml_.npos,
              "what begins at byte {} is no tag", at);
    const bool is_whole = xml_[end - 2] == '/';
    add(ends ? XmlKind::end : is_whole ? XmlKind::whole : XmlKind::begin, at, end);
    if (ends) return take_end();
    if (is_whole) return;
    open_.push_back(all.size() - 1);
    check_xml(open_.size() <= MarkedText::Reader::kDeepest, "elements are more than {} deep",
              MarkedText::Reader::kDeepest);
  }
  void take_end() {
    const std::string_view name = name_of(all.back());
    check_xml(!open_.empty() && name_of(all[open_.back()]) == name,
              "what the tag at byte {} ends is not open", all.back().at);
    all[open_.back()].partner = all.size() - 1;
    open_.pop_back();
  }
  void add(XmlKind kind, size_t at, size_t end) {
    check_xml(end != xml_.npos, "what begins at byte {} does not end", at);
    all.push_back({.kind = kind, .at = at, .end = end});
    if (kind != XmlKind::text && kind != XmlKind::cdata) return;
    const std::string_view text = characters_of(all.back(), xml_);
    if (text.find_first_not_of(" \t\r\n") == text.npos) return;
    (open_.empty() ? has_text : all[open_.back()].has_text) = true;
  }
  size_t behind(std::string_view end, size_t from) const {
    const size_t at = xml_.find(end, from);
    return at == xml_.npos ? at : at + end.size();
  }
  std::string_view name_of(const XmlPart& part) const {
    return tag_name(xml_.substr(part.at, part.end - part.at));
  }

  std::string_view xml_;
  std::vector<size_t> open_;  // parts that begin elements
};

// The five names of XML, and numbers; others mean what a document type says.
std::optional<uint32_t> character_of(std::string_view entity) {
  constexpr std::string_view kNames[] = {"amp", "apos", "gt", "lt", "quot"};
  const bool is_known =
      entity.starts_with('#') || std::ranges::find(kNames, entity) != std::end(kNames);
  return is_known ? entity_character(entity) : std::nullopt;
}

void add_characters(MarkedText::Reader& to, std::string_view text, size_t offset) {
  std::string plain;
  for (size_t at = 0; at < text.size();) {
    if (text[at] != '&') {
      plain += text[at++];
      continue;
    }
    size_t end = at + 1;
    while (end < text.size() && (is_of_name(text[end]) || text[end] == '#')) ++end;
    check_xml(end > at + 1 && end < text.size() && text[end] == ';',
              "the & at byte {} begins no entity", offset + at);
    if (const auto character = character_of(text.substr(at + 1, end - at - 1))) {
      append_utf8(*character, plain);
    } else {
      to.add_text(plain);
      plain.clear();
      to.add_mark(text.substr(at, end + 1 - at));
    }
    at = end + 1;
  }
  to.add_text(plain);
}

}  // namespace

MarkedText MarkedText::of_xml(std::string_view xml) {
  const XmlParts parts(xml);
  MarkedText text;
  text.has_tags_ = true;
  Reader reader(text);
  std::vector<bool> among_words = {parts.has_text};  // of the elements that are open
  const auto keep = [&](std::string_view part) {
    among_words.back() ? reader.add_mark(part) : reader.add_literal(part);
  };
  for (size_t i = 0; i < parts.all.size(); ++i) {
    const XmlPart& part = parts.all[i];
    const std::string_view written = xml.substr(part.at, part.end - part.at);
    switch (part.kind) {
      case XmlKind::text: add_characters(reader, written, part.at); break;
      case XmlKind::cdata: reader.add_text(characters_of(part, xml)); break;
      case XmlKind::whole: keep(written); break;
      case XmlKind::begin:
        if (tag_attribute(written, "translate") == "no") {
          i = part.partner;
          keep(xml.substr(part.at, parts.all[i].end - part.at));
          break;
        }
        among_words.back() ? reader.open(written) : reader.add_literal(written);
        among_words.push_back(among_words.back() || part.has_text);
        break;
      case XmlKind::end:
        among_words.pop_back();
        among_words.back() ? reader.close(written) : reader.add_literal(written);
        break;
    }
  }
  reader.finish();
  return text;
}

}  // namespace heddle
