// Vectors and classes of texts: passes over those of a request.
#include "heddle/serve/api/reading.h"

#include <bit>
#include <memory>

#include "heddle/infer/answers.h"
#include "heddle/serve/api/between_steps.h"
#include "heddle/text/strings/strings.h"

namespace heddle::serve {
namespace {

constexpr int64_t kBytes = 1 << 14;  // of a pass

// From number `next`, which is raised. returns: whether there are more
bool read_some(const Reading& reading, size_t& next) {
  size_t end = next;
  for (int64_t bytes = 0; end < reading.texts.size() && (end == next || bytes < kBytes); ++end) {
    bytes += std::ssize(reading.texts[end]);
  }
  int64_t cut = 0;
  reading.read(std::span(reading.texts).subspan(next, end - next), cut);
  if (cut > 0) refuse("{} of the texts are longer than the model takes", cut);
  next = end;
  if (next < reading.texts.size()) return true;
  reading.on_done();
  return false;
}

// Floats, little-endian, as OpenAI's clients ask for them.
std::string packed(const std::vector<float>& values) {
  std::string bytes;
  for (const float value : values) {
    const auto bits = std::bit_cast<uint32_t>(value);
    for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(bits >> shift & 255u);
  }
  return base64_text(bytes);
}

}  // namespace

void start_reading(Reading reading) {
  int64_t tokens = 0;
  for (const std::string& text : reading.texts) tokens += std::ssize(text) / 2 + 2;
  const SharedExchange e = reading.exchange;
  work_between_steps(e, tokens, [reading = std::move(reading), next = size_t{0}]() mutable {
    return read_some(reading, next);
  });
}

void embeddings(const SharedExchange& e) {
  const Json body = e->json();
  const SharedModel model = model_of(e->service, body, ModelUse::read);
  const Json* input = body.find("input");
  if (input != nullptr && input->is_array() && !input->as_array().empty() &&
      !input->as_array()[0].is_string()) {
    refuse(
        "`input` holds {}: these are ids of another tokenizer; send texts (langchain: "
        "check_embedding_ctx_length=False)",
        input->as_array()[0].describe());
  }
  const Json* size = body.find("dimensions");
  if (size != nullptr && !size->is_null()) refuse("`dimensions` is not there yet");
  const std::string format = choice_of(body, "encoding_format", {"float", "base64"});
  const auto texts = texts_of(body, "input", e->service.options().most_texts);
  struct Found {
    Json list = Json::array();
    int64_t tokens = 0;
  };
  const auto found = std::make_shared<Found>();
  const auto read = [found, format, model](std::span<const std::string> some, int64_t& cut) {
    for (const auto& vector : embed(model->encoder(), some, model->precision, cut)) {
      Json one = Json::object({{"object", "embedding"}, {"index", found->list.size()}});
      one["embedding"] = format == "base64" ? Json(packed(vector)) : Json(vector);
      found->list.push_back(std::move(one));
    }
    for (const std::string& text : some) {
      found->tokens += std::ssize(model->loaded().tokenizer->encode(text));
    }
  };
  const auto on_done = [e, found, model] {
    e->service.metrics().tokens_read(found->tokens);
    Json json = Json::object({{"object", "list"}, {"data", std::move(found->list)}});
    json["model"] = model->name;
    json["usage"] =
        Json::object({{"prompt_tokens", found->tokens}, {"total_tokens", found->tokens}});
    e->send(json);
  };
  start_reading({.exchange = e, .texts = texts, .read = read, .on_done = on_done});
}

void classify(const SharedExchange& e) {
  const Json body = e->json();
  const SharedModel model = model_of(e->service, body, ModelUse::read);
  const auto texts = texts_of(body, "text", e->service.options().most_texts);
  const auto list = std::make_shared<Json>(Json::array());
  const auto read = [list, model](std::span<const std::string> some, int64_t& cut) {
    std::vector<TextToClassify> asked;
    for (const std::string& text : some) asked.push_back({text});
    for (const auto& probabilities :
         heddle::classify(model->loaded(), asked, model->precision, cut)) {
      list->push_back(class_json(class_names(*model->loaded().model), probabilities));
    }
  };
  const auto on_done = [e, list, model] {
    e->send(Json::object({{"model", model->name}, {"classes", std::move(*list)}}));
  };
  start_reading({.exchange = e, .texts = texts, .read = read, .on_done = on_done});
}

}  // namespace heddle::serve
