// Vectors and classes of texts: passes over those of a request.
#include "heddle/serve/api/reading.h"

#include <bit>
#include <memory>
#include <string>

#include "heddle/serve/api/between_steps.h"
#include "heddle/text/strings/strings.h"

namespace heddle::serve {
namespace {

constexpr int64_t kBytes = 1 << 14;  // of a pass

int64_t bytes_of(const TextToClassify& one) {
  return std::ssize(one.text) + (one.second ? std::ssize(*one.second) : 0);
}

std::vector<TextToClassify> alone(const std::vector<std::string>& texts) {
  std::vector<TextToClassify> all;
  for (const std::string& text : texts) all.push_back({text});
  return all;
}

// From number `next`, which is raised. returns: whether there are more
bool read_some(const Reading& reading, size_t& next) {
  size_t end = next;
  for (int64_t bytes = 0; end < reading.texts.size() && (end == next || bytes < kBytes); ++end) {
    bytes += bytes_of(reading.texts[end]);
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

// The model that is named, or the first without classes, which is made for vectors; else any.
SharedModel embedding_model(const Service& service, const Json& body) {
  const std::string name = text_of(body, "model");
  SharedModel found;
  for (const SharedModel& model : service.models()) {
    if (!model->reads_texts() || (!name.empty() && model->name != name)) continue;
    if (!has_labels(model->loaded().model->head())) return model;
    if (!found) found = model;
  }
  return found ? found : model_of(service, body, ModelUse::embed);
}

// "text", and "text_pair": the second of each, where they are pairs.
std::vector<TextToClassify> texts_to_classify(const Json& body, int64_t most) {
  std::vector<TextToClassify> all = alone(texts_of(body, "text", most));
  if (!has_member(body, "text_pair")) return all;
  const std::vector<std::string> seconds = texts_of(body, "text_pair", most);
  if (seconds.size() != all.size()) {
    refuse("`text_pair` has {} texts, but `text` {}; each needs its second", seconds.size(),
           all.size());
  }
  for (size_t i = 0; i < all.size(); ++i) all[i].second = seconds[i];
  return all;
}

}  // namespace

void start_reading(Reading reading) {
  int64_t tokens = 0;
  for (const TextToClassify& one : reading.texts) tokens += bytes_of(one) / 2 + 2;
  const SharedExchange e = reading.exchange;
  work_between_steps(e, tokens, [reading = std::move(reading), next = size_t{0}]() mutable {
    return read_some(reading, next);
  });
}

void embeddings(const SharedExchange& e) {
  const Json body = e->json();
  const SharedModel model = embedding_model(e->service, body);
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
  auto texts = alone(texts_of(body, "input", e->service.options().most_texts));
  struct Found {
    Json list = Json::array();
    int64_t tokens = 0;
  };
  const auto found = std::make_shared<Found>();
  const auto read = [found, format, model](std::span<const TextToClassify> some, int64_t& cut) {
    std::vector<std::string> plain;
    for (const TextToClassify& one : some) plain.push_back(one.text);
    for (const auto& vector : embed(model->encoder(), plain, model->precision, cut)) {
      Json one = Json::object({{"object", "embedding"}, {"index", found->list.size()}});
      one["embedding"] = format == "base64" ? Json(packed(vector)) : Json(vector);
      found->list.push_back(std::move(one));
    }
    for (const std::string& text : plain) {
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
  start_reading({.exchange = e, .texts = std::move(texts), .read = read, .on_done = on_done});
}

void classify(const SharedExchange& e) {
  const Json body = e->json();
  refuse_others(body, {"text", "text_pair", "model"});
  const SharedModel model = model_of(e->service, body, ModelUse::classify);
  auto texts = texts_to_classify(body, e->service.options().most_texts);
  const auto list = std::make_shared<Json>(Json::array());
  const auto read = [list, model](std::span<const TextToClassify> some, int64_t& cut) {
    for (const auto& probabilities :
         heddle::classify(model->loaded(), some, model->precision, cut)) {
      list->push_back(class_json(class_names(*model->loaded().model), probabilities));
    }
  };
  const auto on_done = [e, list, model] {
    e->send(Json::object({{"model", model->name}, {"classes", std::move(*list)}}));
  };
  start_reading({.exchange = e, .texts = std::move(texts), .read = read, .on_done = on_done});
}

}  // namespace heddle::serve
