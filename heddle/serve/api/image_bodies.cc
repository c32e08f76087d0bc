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

// The options of a query, which are texts there, as they are in JSON.
Json typed_query(const Exchange& e) {
  static constexpr std::string_view kNumbers[] = {
      "threshold",   "beam",  "n_best", "length_penalty", "max_tokens",
      "temperature", "top_k", "top_p",  "min_p",          "seed"};
  const Json texts = query_of(e);
  Json options = Json::object();
  if (has_member(texts, "image")) refuse("`image` stands in the query, and the body is an image");
  for (const auto& [key, value] : texts.as_object()) {
    if (value.is_array()) refuse("`{}` stands in the query {} times", key, value.size());
    if (std::ranges::find(kNumbers, key) != std::end(kNumbers)) {
      options[key] = number_of_text(key, value.as_string());
    } else if (key == "sample" || key == "maps") {
      options[key] = bool_of_text(key, value.as_string());
    } else {
      options[key] = value;
    }
  }
  e.reach(RequestPhase::parsed);
  return options;
}

}  // namespace

SentImages sent_images(Exchange& e, std::initializer_list<const char*> options) {
  const bool is_raw = is_image(e.request);
  if (!is_raw && !e.request.query.empty()) {
    refuse("options stand in the query beside a body that is an image; here they are its members");
  }
  SentImages sent{.options = is_raw ? typed_query(e) : e.json(), .files = {}};
  refuse_others(sent.options, options);
  if (is_raw) {
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
  if (size->height == 0 || size->width == 0) refuse("{} has no pixels", name(i));
  if (size->width > most / size->height) {
    refuse("{} has {} x {} pixels; at most {} are taken", name(i), size->width, size->height, most);
  }
  return turned(*size, exif_orientation(bytes));
}

// A line of pixels may become a large image.
int64_t SentImages::tokens(const Exchange& e, size_t i, ImageSize sent,
                           const ImageProcessor& processor) {
  const int64_t most = e.service.options().most_pixels;
  const ImageSize resized = processor.resized(sent);
  if (resized.width > most / resized.height) {
    refuse("{} of {} x {} pixels would be resized to {} x {}; at most {} are taken", name(i),
           sent.width, sent.height, resized.width, resized.height, most);
  }
  constexpr int64_t kPass = 256, kCell = 16 * 16;
  const int64_t pixels = std::max(sent.height * sent.width, resized.height * resized.width);
  return kPass + pixels / kCell;
}

Image SentImages::take(size_t i) {
  const std::string file = std::exchange(files[i], {});
  return upright_image(std::as_bytes(std::span(file)), name(i));
}

}  // namespace heddle::serve
