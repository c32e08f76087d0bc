// Bytes as a JSON schema and, behind a byte 0, as what somebody writes under it: bytes that may not
// come are passed over, and wherever the text stands it can be completed, by as many bytes as are
// said at most, to JSON.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "heddle/base/error.h"
#include "heddle/infer/search/json_matcher.h"

namespace {

using namespace heddle;

std::optional<JsonGrammar> grammar_of(std::string_view schema) {
  try {
    return json_grammar(Json::parse(schema, "the schema"));
  } catch (const Error&) {
    return {};
  }
}

// Adds a byte behind which less is missing. returns: whether there is one
bool go_on(JsonMatcher& matcher, std::string& text) {
  const int64_t rest = matcher.rest();
  for (int byte = 0x20; byte < 0x100; ++byte) {
    JsonMatcher next = matcher.behind(static_cast<uint8_t>(byte));
    if (!next.is_possible() || next.rest() >= rest) continue;
    matcher = std::move(next);
    text += static_cast<char>(byte);
    return true;
  }
  return false;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t border = std::min(input.find('\0'), size);
  const auto grammar = grammar_of(input.substr(0, border));
  if (!grammar) return 0;
  JsonMatcher matcher(*grammar);
  std::string text;
  for (const char c : input.substr(std::min(border + 1, size)).substr(0, 256)) {
    JsonMatcher next = matcher.behind(static_cast<uint8_t>(c));
    if (!next.is_possible()) continue;
    matcher = std::move(next);
    text += c;
  }
  const int64_t rest = matcher.rest();
  if (rest > 512) return 0;  // a long constant, or many items
  int64_t written = 0;
  for (; !matcher.is_whole(); ++written) {
    if (!go_on(matcher, text)) std::abort();
  }
  if (written > rest) std::abort();
  try {
    if (Json::parse(text, "what was written").describe().empty()) std::abort();
  } catch (const Error&) {
    std::abort();
  }
  return 0;
}
