// Bytes as requests, and their bodies as JSON or a form. The first byte says how many bytes come at
// a time: what is read does not depend on it, nor on anything but the bytes.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "heddle/base/error.h"
#include "heddle/serve/api/body.h"
#include "heddle/serve/http/request_reader.h"

namespace {

using namespace heddle;
using namespace heddle::serve;
using State = RequestReader::State;

void look_at(const HttpRequest& request) {
  for (const bool is_form : {false, true}) {
    try {
      const Json body = is_form ? json_of_form(request.body) : json_of_body(request.body);
      int_of(body, "n", 1, 1, 16);
      number_of(body, "temperature", 1, 0, 10);
      bool_of(body, "stream", false);
      text_of(body, "model");
      texts_of(body, "text", 8);
    } catch (const Refusal& refusal) {
      if (refusal.status != 400 || refusal.message.empty()) std::abort();
    }
  }
}

std::string read(std::string_view bytes, size_t part) {
  HttpLimits limits;
  limits.header_bytes = 1024, limits.header_fields = 16, limits.body_bytes = 4096;
  RequestReader reader(limits);
  std::string all;
  for (size_t at = 0; at < bytes.size(); at += part) {
    reader.put(bytes.substr(at, part));
    while (reader.state() == State::whole) {
      const HttpRequest request = reader.take();
      if (std::ssize(request.body) > limits.body_bytes) std::abort();
      if (std::ssize(request.headers) > limits.header_fields) std::abort();
      if (part > bytes.size()) look_at(request);
      all += request.method + " " + request.path + "?" + request.query + request.body + "\n";
    }
    if (reader.state() == State::refused) return all + std::to_string(reader.status());
  }
  return all + std::to_string(static_cast<int>(reader.state()));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (read(bytes, 1 + data[0]) != read(bytes, size + 1)) std::abort();
  return 0;
}
