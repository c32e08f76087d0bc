// Finds a dictionary and takes its lines apart.
#include "corpora/lexicon.h"

#include <map>

#include "heddle/base/error.h"

namespace heddle {

const Json& lexicon(const std::string& name) {
  static const std::map<std::string, Json> all = [] {
    const std::pair<const char*, const char*> texts[] = {
#include "lexicons.inc"  // written by CMakeLists.txt
    };
    std::map<std::string, Json> lexicons;
    for (const auto& [key, text] : texts) lexicons[key] = Json::parse(text, key);
    return lexicons;
  }();
  const auto found = all.find(name);
  check(found != all.end(), ErrorKind::internal, "there is no lexicon '{}'", name);
  return found->second;
}

std::vector<std::string> fields_of(const std::string& line, size_t count) {
  std::vector<std::string> fields(1);
  for (const char c : line) {
    if (c == '/') {
      fields.emplace_back();
    } else {
      fields.back() += c;
    }
  }
  check(fields.size() == count, ErrorKind::internal, "lexicon: '{}' needs {} fields", line, count);
  return fields;
}

}  // namespace heddle
