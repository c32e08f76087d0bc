// ICU knows them.
#include "heddle/text/strings/language_names.h"

#include <unicode/locid.h>
#include <unicode/unistr.h>

namespace heddle {

std::string language_name(const std::string& code) {
  const icu::Locale whole = icu::Locale::createFromName(code.c_str());
  const std::string script = whole.getScript(), language = whole.getLanguage();
  if (language.empty()) return code;
  const icu::Locale plain((language + (script.empty() ? "" : "_" + script)).c_str());
  icu::UnicodeString found;
  plain.getDisplayName(icu::Locale::getEnglish(), found);
  std::string name;
  found.toUTF8String(name);
  return name == language ? code : name;
}

}  // namespace heddle
