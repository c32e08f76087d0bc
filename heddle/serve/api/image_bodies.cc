// Base64, data URLs, and bodies that are images.
#include "heddle/serve/api/image_bodies.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "heddle/serve/api/forms.h"
#include "heddle/text/strings/strings.h"
#include "heddle/vision/encoded_size.h"
#include "heddle/vision/orientation.h"

namespace heddle::serve {
namespace {

// A body that is one image; its options then stand in the query.
bool is_image(const HttpRequest& request) {
  const std::string* type = request.header("content-type");
  return type != nullptr &&
         (type->starts_with("image/") || type->starts_with("application/octet-stream"));
}

// The bytes of "data:image/png;base64,..", or of the base64 alone.
std::string image_bytes(std::string_view text, const std::string& name) {
  if (text.starts_with("data:")) {
    const size_t comma = text.find(',');
    if (comma == std::string_view::npos || !text.substr(0, comma).ends_with(";base64")) {
      refuse("{} is a data URL without base64; data:image/png;base64,.. is read", name);
    }
    text.remove_prefix(comma + 1);
  }
  return base64_bytes(text, name);
}

}  // namespace

SentImages sent_images(Exchange& e, std::initializer_list<const char*> options) {
  const bool is_raw = is_image(e.request);
  SentImages sent{.options = is_raw ? query_of(e) : e.json(), .files = {}};
  refuse_others(sent.options, options);
  if (is_raw) {
    e.reach(RequestPhase::parsed);
    sent.files.push_back(std::move(e.request.body));
    return sent;
  }
  for (const std::string& text : texts_of(sent.options, "image", e.service.options().most_texts)) {
    sent.files.push_back(image_bytes(text, SentImages::name(sent.files.size())));
  }
  sent.options.erase("image");
  return sent;
}

ImageSize SentImages::size(const Exchange& e, size_t i) const {
  const int64_t most = e.service.options().most_pixels;
  const auto bytes = std::as_bytes(std::span(files[i]));
  const std::optional<ImageSize> size = encoded_size(bytes);
  if (!size) {
    decode_image(bytes.first(std::min<size_t>(32, bytes.size())), name(i));  // says what it is
    refuse("{} is cut short or damaged", name(i));
  }
  if (size->height > 0 && size->width > most / size->height) {
    refuse("{} has {} x {} pixels; at most {} are taken", name(i), size->width, size->height, most);
  }
  return turned(*size, exif_orientation(bytes));
}

Image SentImages::take(size_t i) {
  const std::string file = std::exchange(files[i], {});
  const auto bytes = std::as_bytes(std::span(file));
  return turned(decode_image(bytes, name(i)), exif_orientation(bytes));
}

}  // namespace heddle::serve
