// Bytes as JSON: what is read is written and read again to the same value; what is none is refused
// by an Error.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "heddle/base/error.h"
#include "heddle/base/json/json.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using heddle::Json;
  Json value;
  try {
    value = Json::parse(std::string_view(reinterpret_cast<const char*>(data), size), "fuzz");
  } catch (const heddle::Error&) {
    return 0;
  }
  if (Json::parse(value.dump(), "once more") != value) std::abort();
  if (Json::parse(value.dump(2), "indented") != value) std::abort();
  if (value.describe().empty()) std::abort();
  return 0;
}
