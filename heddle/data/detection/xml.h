// The little of XML that annotations of images are written in.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace heddle {

/// An element: its text, or the elements in it. Attributes are passed over.
struct XmlElement {
  std::string name;
  std::string text;  ///< all of it, without white space around; entities are looked up
  std::vector<XmlElement> children;
  int64_t line = 0;  ///< where it begins, from 1

  /// The first child of that name; nullptr if there is none.
  const XmlElement* find(std::string_view child) const;
  /// Errors: data, with file and line, if there is none.
  const XmlElement& at(std::string_view child, const std::string& path) const;
};

/// The root of a document; `path` opens messages. Errors: data, with the line, for text that is not
/// UTF-8 or well-formed, a document type (its entities could grow without bound), more than 64
/// levels.
XmlElement parse_xml(std::string_view text, const std::string& path);

}  // namespace heddle
