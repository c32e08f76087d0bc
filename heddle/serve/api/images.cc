// Classes and objects of images, one by one between the steps of others.
#include "heddle/infer/answers.h"
#include "heddle/infer/detect.h"
#include "heddle/serve/api/between_steps.h"
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

struct ImageRequest {
  SharedExchange exchange = {};
  SharedModel model = {};
  double threshold = 0.5;
  std::vector<std::string> files = {};
  Json answers = Json::array();
  size_t next = 0;

  std::string name(size_t i) const { return fmt::format("image {}", i + 1); }
  // Errors: Refusal.
  int64_t tokens() const;
  bool answer_one();
  Json answer(const Image& image) const;
};

// What an image costs as tokens do: its cells of 16 x 16 pixels, and a pass.
int64_t ImageRequest::tokens() const {
  const int64_t most = exchange->service.options().most_pixels;
  int64_t tokens = 0;
  for (size_t i = 0; i < files.size(); ++i) {
    const std::optional<ImageSize> size = encoded_size(std::as_bytes(std::span(files[i])));
    if (!size) {
      decode_image(std::as_bytes(std::span(files[i])).first(std::min<size_t>(32, files[i].size())),
                   name(i));  // says what it is
      refuse("{} is cut short or damaged", name(i));
    }
    if (size->height > 0 && size->width > most / size->height) {
      refuse("{} has {} x {} pixels; at most {} are taken", name(i), size->width, size->height,
             most);
    }
    tokens += 256 + size->height * size->width / 256;
  }
  return tokens;
}

Json ImageRequest::answer(const Image& image) const {
  const ImageReader& reader = model->images();
  const std::vector<std::string> names = class_names(reader.model());
  const Image fitted = reader.processor.fit(image);
  if (model->use == ModelUse::classify_images) {
    return class_json(names, heddle::classify(reader, {&fitted, 1}, model->precision)[0]);
  }
  const ImageSize size = image.size();
  const auto boxes = detect(reader, {&fitted, 1}, {&size, 1}, model->precision)[0];
  return objects_json(sure_boxes(boxes, threshold, size), names, size);
}

// Whether there are more.
bool ImageRequest::answer_one() {
  const auto bytes = std::as_bytes(std::span(files[next]));
  answers.push_back(answer(turned(decode_image(bytes, name(next)), exif_orientation(bytes))));
  std::string().swap(files[next]);
  if (++next < files.size()) return true;
  Json json = Json::object({{"model", model->name}});
  json[model->use == ModelUse::classify_images ? "classes" : "images"] = std::move(answers);
  exchange->send(json);
  return false;
}

void answer_images(const SharedExchange& e, ModelUse use) {
  ImageRequest asked{.exchange = e};
  const bool is_raw = is_image(e->request);
  const Json options = is_raw ? query_of(*e) : e->json();
  if (use == ModelUse::detect) refuse_others(options, {"model", "image", "threshold"});
  if (use != ModelUse::detect) refuse_others(options, {"model", "image"});
  asked.model = model_of(e->service, options, use);
  asked.threshold = number_of(options, "threshold", 0.5, 0, 1);
  if (is_raw) {
    asked.files.push_back(std::move(e->request.body));
    e->reach(RequestPhase::parsed);
  } else {
    for (const std::string& text : texts_of(options, "image", e->service.options().most_texts)) {
      asked.files.push_back(image_bytes(text, asked.name(asked.files.size())));
    }
  }
  const int64_t tokens = asked.tokens();
  work_between_steps(e, tokens,
                     [asked = std::move(asked)]() mutable { return asked.answer_one(); });
}

}  // namespace

void images_classify(const SharedExchange& e) { answer_images(e, ModelUse::classify_images); }
void images_detect(const SharedExchange& e) { answer_images(e, ModelUse::detect); }

}  // namespace heddle::serve
