// Bytes as a chat template and, behind the first zero, JSON that it sees as `messages`: they are
// rendered, or refused by an Error of kind data, within their steps.
#include <cstdint>
#include <string_view>

#include "heddle/base/error.h"
#include "heddle/base/utf8.h"
#include "heddle/text/chat/jinja_interpreter.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace std::string_view_literals;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const std::string_view source = bytes.substr(0, bytes.find('\0'));
  std::string_view values = R"([{"role": "user", "content": "a \u00e9 <b>"}, {"role": "b"}])"sv;
  if (source.size() < bytes.size()) values = bytes.substr(source.size() + 1);
  if (heddle::first_invalid_utf8(source)) return 0;
  try {
    heddle::JinjaInput input{.variables = {{"eos_token", "</s>"}, {"add_generation_prompt", true}},
                             .now = 1773057600,
                             .steps = 2'000};
    input.variables.emplace_back(
        "messages", heddle::JinjaValue::of_json(heddle::Json::parse(values, "messages")));
    heddle::render_jinja(*heddle::parse_jinja(source), input);
  } catch (const heddle::Error& error) {
    if (error.kind() != heddle::ErrorKind::data) throw;
  }
  return 0;
}
