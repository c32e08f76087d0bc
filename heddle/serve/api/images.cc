// Classes and objects of images, one by one between the steps of others.
#include "heddle/infer/answers.h"
#include "heddle/infer/detect.h"
#include "heddle/serve/api/between_steps.h"
#include "heddle/serve/api/image_bodies.h"

namespace heddle::serve {
namespace {

struct ImageRequest {
  SharedExchange exchange = {};
  SharedModel model = {};
  double threshold = 0.5;
  SentImages sent = {};
  Json answers = Json::array();
  size_t next = 0;

  bool answer_one();
  Json answer(const Image& image) const;
};

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
  answers.push_back(answer(sent.take(next)));
  if (++next < sent.files.size()) return true;
  Json json = Json::object({{"model", model->name}});
  json[model->use == ModelUse::classify_images ? "classes" : "images"] = std::move(answers);
  exchange->send(json);
  return false;
}

void answer_images(const SharedExchange& e, ModelUse use) {
  ImageRequest asked{.exchange = e};
  asked.sent = use == ModelUse::detect ? sent_images(*e, {"model", "image", "threshold"})
                                       : sent_images(*e, {"model", "image"});
  asked.model = model_of(e->service, asked.sent.options, use);
  asked.threshold = number_of(asked.sent.options, "threshold", 0.5, 0, 1);
  int64_t tokens = 0;
  for (size_t i = 0; i < asked.sent.files.size(); ++i) {
    tokens += SentImages::tokens(*e, i, asked.sent.size(*e, i), asked.model->images().processor);
  }
  work_between_steps(e, tokens,
                     [asked = std::move(asked)]() mutable { return asked.answer_one(); });
}

}  // namespace

void images_classify(const SharedExchange& e) { answer_images(e, ModelUse::classify_images); }
void images_detect(const SharedExchange& e) { answer_images(e, ModelUse::detect); }

}  // namespace heddle::serve
