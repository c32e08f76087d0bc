// Vectors and classes of texts: one pass over those of a request, between the steps of others.
#include <atomic>
#include <bit>
#include <memory>

#include "heddle/infer/answers.h"
#include "heddle/serve/api/exchange.h"
#include "heddle/text/strings/strings.h"

namespace heddle::serve {
namespace {

// Reads the texts of a request some at a time, so that those who wait for tokens do not wait for
// all of them. Of the engine's thread, once it is there.
class Reading : public std::enable_shared_from_this<Reading> {
 public:
  using Answers = std::function<void(std::span<const std::string>, int64_t& cut)>;
  // answers: takes those of some texts; last: the response once all are there
  Reading(SharedExchange e, std::vector<std::string> texts, Answers answers,
          std::function<Json()> last)
      : exchange_(std::move(e)),
        texts_(std::move(texts)),
        answers_(std::move(answers)),
        last_(std::move(last)) {
    for (const std::string& text : texts_) tokens_ += std::ssize(text) / 2 + 2;
  }

  // Errors: Refusal where there is no room.
  void start() {
    take_room(exchange_->service, tokens_);
    exchange_->on_gone([self = shared_from_this()] { self->is_gone_ = true; });
    go_on();
  }

 private:
  static constexpr int64_t kBytes = 1 << 14;  // of a pass

  void go_on() {
    exchange_->service.engine().post([self = shared_from_this()] { self->read(); });
  }
  void read() {
    const bool goes_on = !is_gone_ && read_some();
    if (goes_on) return go_on();
    exchange_->service.worked_off(tokens_);
  }
  // Whether there are more.
  bool read_some() try {
    size_t end = next_;
    for (int64_t bytes = 0; end < texts_.size() && (end == next_ || bytes < kBytes); ++end) {
      bytes += std::ssize(texts_[end]);
    }
    int64_t cut = 0;
    answers_(std::span(texts_).subspan(next_, end - next_), cut);
    if (cut > 0) refuse("{} of the texts are longer than the model takes", cut);
    next_ = end;
    if (next_ < texts_.size()) return true;
    exchange_->send(last_());
    return false;
  } catch (...) {
    exchange_->fail(std::current_exception());
    return false;
  }

  SharedExchange exchange_;
  std::vector<std::string> texts_;
  Answers answers_;
  std::function<Json()> last_;
  int64_t tokens_ = 0;
  size_t next_ = 0;
  std::atomic<bool> is_gone_ = false;
};

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
  const Json* size = body.find("dimensions");
  if (size != nullptr && !size->is_null()) refuse("`dimensions` is not there yet");
  const std::string format = text_of(body, "encoding_format", "float");
  if (format != "float" && format != "base64") {
    refuse("`encoding_format` is '{}'; it must be float or base64", format);
  }
  const auto texts = texts_of(body, "input", e->service.options().most_texts);
  struct Found {
    Json list = Json::array();
    int64_t tokens = 0;
  };
  const auto found = std::make_shared<Found>();
  const auto answers = [found, format, model](std::span<const std::string> some, int64_t& cut) {
    for (const auto& vector : embed(model->encoder, some, model->precision, cut)) {
      Json one = Json::object({{"object", "embedding"}, {"index", found->list.size()}});
      one["embedding"] = format == "base64" ? Json(packed(vector)) : Json(vector);
      found->list.push_back(std::move(one));
    }
    for (const std::string& text : some) {
      found->tokens += std::ssize(model->loaded().tokenizer->encode(text));
    }
  };
  const auto last = [e, found, model] {
    e->service.metrics().tokens_read(found->tokens);
    Json json = Json::object({{"object", "list"}, {"data", std::move(found->list)}});
    json["model"] = model->name;
    json["usage"] =
        Json::object({{"prompt_tokens", found->tokens}, {"total_tokens", found->tokens}});
    return json;
  };
  std::make_shared<Reading>(e, texts, answers, last)->start();
}

void classify(const SharedExchange& e) {
  const Json body = e->json();
  const SharedModel model = model_of(e->service, body, ModelUse::read);
  const auto texts = texts_of(body, "text", e->service.options().most_texts);
  const auto list = std::make_shared<Json>(Json::array());
  const auto answers = [list, model](std::span<const std::string> some, int64_t& cut) {
    std::vector<TextToClassify> asked;
    for (const std::string& text : some) asked.push_back({text});
    const auto& labels = model->loaded().model->labels();
    for (const auto& probabilities :
         heddle::classify(model->loaded(), asked, model->precision, cut)) {
      Json one = Json::object();
      size_t best = 0;
      for (size_t k = 0; k < probabilities.size(); ++k) {
        if (probabilities[k] > probabilities[best]) best = k;
        one["probabilities"][labels[k]] = probabilities[k];
      }
      one["label"] = labels[best];
      list->push_back(std::move(one));
    }
  };
  std::make_shared<Reading>(e, texts, answers, [list, model] {
    return Json::object({{"model", model->name}, {"classes", std::move(*list)}});
  })->start();
}

}  // namespace heddle::serve
