// Vectors and classes of texts: one pass over those of a request, between the steps of others.
#include <bit>

#include "heddle/infer/answers.h"
#include "heddle/serve/api/exchange.h"
#include "heddle/text/strings/strings.h"

namespace heddle::serve {
namespace {

// Does `work` on the engine's thread; weighs what texts of so many bytes may come to.
void read_texts(const SharedExchange& e, const std::vector<std::string>& texts,
                std::function<Json()> work) {
  int64_t tokens = 0;
  for (const std::string& text : texts) tokens += std::ssize(text) / 2 + 2;
  if (!e->service.budget().take(tokens)) {
    throw Refusal{.status = 429,
                  .message = "the queue is full",
                  .type = "overloaded",
                  .code = "queue_full",
                  .retry_after = e->service.seconds_for(e->service.budget().taken())};
  }
  e->service.engine().post([e, tokens, work = std::move(work)] {
    try {
      e->send(work());
    } catch (...) {
      e->fail(std::current_exception());
    }
    e->service.worked_off(tokens);
  });
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
  const std::string format = text_of(body, "encoding_format", "float");
  if (format != "float" && format != "base64") {
    refuse("`encoding_format` is '{}'; it must be float or base64", format);
  }
  const auto texts = texts_of(body, "input", e->service.options().most_texts);
  if (texts.empty()) refuse("`input` has no text");
  read_texts(e, texts, [e, texts, format, model] {
    int64_t cut = 0, tokens = 0;
    Json list = Json::array();
    const auto vectors = embed(model->encoder, texts, model->precision, cut);
    for (size_t i = 0; i < vectors.size(); ++i) {
      tokens += std::ssize(model->loaded().tokenizer->encode(texts[i]));
      Json one = Json::object({{"object", "embedding"}, {"index", i}});
      one["embedding"] = format == "base64" ? Json(packed(vectors[i])) : Json(vectors[i]);
      list.push_back(std::move(one));
    }
    e->service.metrics().tokens_read(tokens);
    Json json = Json::object({{"object", "list"}, {"data", std::move(list)}});
    json["model"] = model->name;
    json["usage"] = Json::object({{"prompt_tokens", tokens}, {"total_tokens", tokens}});
    if (cut > 0) json["truncated"] = cut;
    return json;
  });
}

void classify(const SharedExchange& e) {
  const Json body = e->json();
  const SharedModel model = model_of(e->service, body, ModelUse::read);
  const auto texts = texts_of(body, "text", e->service.options().most_texts);
  read_texts(e, texts, [texts, model] {
    std::vector<TextToClassify> asked;
    for (const std::string& text : texts) asked.push_back({text});
    int64_t cut = 0;
    Json list = Json::array();
    for (const auto& probabilities :
         heddle::classify(model->loaded(), asked, model->precision, cut)) {
      const auto& labels = model->loaded().model->labels();
      Json one = Json::object();
      size_t best = 0;
      for (size_t k = 0; k < probabilities.size(); ++k) {
        if (probabilities[k] > probabilities[best]) best = k;
        one["probabilities"][labels[k]] = probabilities[k];
      }
      one["label"] = labels[best];
      list.push_back(std::move(one));
    }
    Json json = Json::object({{"model", model->name}, {"classes", std::move(list)}});
    if (cut > 0) json["truncated"] = cut;
    return json;
  });
}

}  // namespace heddle::serve
