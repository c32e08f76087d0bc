// What a text must be before a tokenizer sees it.
#include "heddle/text/strings/check_text.h"

#include "heddle/base/error.h"
#include "heddle/text/strings/utf8.h"

namespace heddle {

void check_text(std::string_view text, const std::string& where) {
  check(text.size() <= kLongestText, ErrorKind::data,
        "{}: {} bytes are too long for one text; a model takes 1 MiB ({} bytes) at most. Split it "
        "into lines",
        where, text.size(), kLongestText);
  check_utf8(text, where);
}

}  // namespace heddle
