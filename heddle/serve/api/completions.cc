// Completions as OpenAI's clients ask for them.
#include <algorithm>
#include <ctime>
#include <limits>
#include <random>

#include "heddle/infer/decoding/generate.h"
#include "heddle/serve/api/jobs.h"

namespace heddle::serve {
namespace {

struct CompletionRequest {
  SharedModel model = {};
  std::vector<std::vector<int32_t>> prompts = {};
  std::vector<std::string> texts = {};  // of the prompts
  GenerateOptions options = {};
  std::vector<std::string> stops = {};
  bool streams = false, echoes = false, wants_usage = false;
};

// "prompt": a text, texts, ids, or lists of ids.
void take_prompts(const Exchange& e, const Json& body, CompletionRequest& asked) {
  const LoadedModel& model = asked.model->loaded();
  const Json* prompt = body.find("prompt");
  if (prompt == nullptr || prompt->is_null()) refuse("`prompt` is missing");
  int64_t cut = 0;
  const auto add_ids = [&](const Json& ids) {
    std::vector<int32_t> all;
    for (const int64_t id : ids.as_ints("`prompt`")) {
      if (id < 0 || id >= model.tokens().vocab_size()) {
        refuse("`prompt` has the id {}; ids must be at least 0 and below {}", id,
               model.tokens().vocab_size());
      }
      all.push_back(static_cast<int32_t>(id));
    }
    asked.prompts.push_back(prompt_ids(model, std::move(all), "prompt", {}, cut));
    asked.texts.push_back(model.tokenizer ? model.tokenizer->decode(asked.prompts.back()) : "");
  };
  const bool is_list = prompt->is_array() && !prompt->as_array().empty();
  if (is_list && prompt->as_array()[0].is_int()) return add_ids(*prompt);
  if (is_list && prompt->as_array()[0].is_array()) {
    if (std::ssize(prompt->as_array()) > e.service.options().most_texts) {
      refuse("`prompt` has {} prompts; at most {}", prompt->size(), e.service.options().most_texts);
    }
    for (const Json& ids : prompt->as_array()) add_ids(ids);
    return;
  }
  asked.texts = texts_of(body, "prompt", e.service.options().most_texts);
  for (size_t i = 0; i < asked.texts.size(); ++i) {
    asked.prompts.push_back(
        prompt_ids(model, asked.texts[i], fmt::format("prompt {}", i + 1), {}, cut));
  }
}

// What is asked is drawn, as OpenAI's models do, unless the temperature is 0.
void take_search(const Exchange& e, const Json& body, CompletionRequest& asked) {
  SearchConfig& s = asked.options.search;
  s = asked.model->loaded().generation.value_or(SearchConfig());
  s.beam = 1;
  s.max_length.reset();
  s.max_new_tokens = int_of(body, "max_tokens", 16, 1, 1 << 20);
  s.n_best = int_of(body, "n", 1, 1, e.service.options().most_results);
  const double temperature = number_of(body, "temperature", 1, 0, 10);
  s.samples = temperature > 0;
  if (!s.samples && s.n_best > 1)
    refuse("`n` is {}, but at `temperature` 0 all are alike", s.n_best);
  s.temperature = temperature;
  s.top_p = std::max(1e-6, number_of(body, "top_p", 1, 0, 1));
  s.top_k = int_of(body, "top_k", s.top_k.value_or(0), 0, std::numeric_limits<int32_t>::max());
  s.min_p = number_of(body, "min_p", 0, 0, 1);
  s.repetition_penalty =
      number_of(body, "repetition_penalty", s.repetition_penalty.value_or(1), 0.01, 100);
  s.seed = std::abs(int_of(body, "seed", static_cast<int64_t>(std::random_device{}()),
                           std::numeric_limits<int64_t>::min() + 1,
                           std::numeric_limits<int64_t>::max()));
  // A table of embeddings may be longer than its vocabulary: what has no text never comes.
  const LoadedModel& model = asked.model->loaded();
  for (int64_t id = model.tokenizer->vocab_size(); id < model.tokens().vocab_size(); ++id) {
    s.suppressed.push_back(id);
  }
  if (!s.samples) s.temperature.reset(), s.top_p.reset(), s.top_k.reset(), s.min_p.reset();
  asked.options.slides = false;
  asked.options.precision = asked.model->precision;
}

// A choice while it grows.
struct CompletionChoice {
  TextStream text;
  int64_t tokens = 0;
};

// The choices of a request. Of the engine's thread.
class Choices {
 public:
  Choices(SharedExchange e, CompletionRequest asked)
      : exchange_(std::move(e)), asked_(std::move(asked)), left_(asked_.prompts.size()) {
    const Tokenizer& tokenizer = asked_.model->loaded().tokenizer.value();
    for (const auto& prompt : asked_.prompts) {
      for (int64_t n = 0; n < asked_.options.search.n_best; ++n) {
        choices_.push_back({TextStream(tokenizer, prompt, asked_.stops)});
      }
      read_ += std::ssize(prompt);
    }
    finished_.resize(choices_.size());
  }
  const CompletionRequest& asked() const { return asked_; }

  void begin() {
    if (!asked_.streams) return;
    exchange_->begin_events();
    for (size_t i = 0; i < choices_.size() && asked_.echoes; ++i) {
      send_part(i, asked_.texts[prompt_of(i)], {});
    }
  }
  // A token that was chosen: whether the choice goes on. Never throws: others run beside it.
  bool goes_on(size_t prompt, const Hypothesis& h) try {
    const size_t i = number(prompt, h.sample);
    const bool is_read = choices_[i].text.read(h.ids);
    if (asked_.streams) {
      const std::string part = choices_[i].text.take();
      if (!part.empty()) send_part(i, part, {});
    }
    return is_read;
  } catch (...) {
    exchange_->fail(std::current_exception());
    return false;
  }
  void done(size_t prompt, std::span<const Hypothesis> found) {
    for (const Hypothesis& h : found) {
      const size_t i = number(prompt, h.sample);
      choices_[i].text.read(h.ids);
      choices_[i].tokens = std::ssize(h.ids);
      written_ += std::ssize(h.ids);
      finished_[i] = h.ended == EndedBy::length ? "length" : "stop";
      if (!asked_.streams) continue;
      const std::string rest = choices_[i].text.take_rest();
      if (!rest.empty()) send_part(i, rest, {});
      send_part(i, "", finished_[i]);
    }
    if (--left_ == 0) finish();
  }

 private:
  size_t number(size_t prompt, int64_t sample) const {
    return prompt * static_cast<size_t>(asked_.options.search.n_best) + static_cast<size_t>(sample);
  }
  size_t prompt_of(size_t choice) const {
    return choice / static_cast<size_t>(asked_.options.search.n_best);
  }
  Json head() const {
    return Json::object({{"id", "cmpl-" + exchange_->id},
                         {"object", "text_completion"},
                         {"created", created_},
                         {"model", asked_.model->name}});
  }
  static Json choice_json(size_t i, const std::string& text, const std::string& reason) {
    Json choice = Json::object({{"text", text}, {"index", i}});
    choice["logprobs"] = Json();
    choice["finish_reason"] = reason.empty() ? Json() : Json(reason);
    return choice;
  }
  void send_part(size_t i, const std::string& text, const std::string& reason) {
    Json json = head();
    json["choices"].push_back(choice_json(i, text, reason));
    exchange_->event(json.dump());
  }
  Json usage() const {
    return Json::object({{"prompt_tokens", read_},
                         {"completion_tokens", written_},
                         {"total_tokens", read_ + written_}});
  }
  void finish() {
    exchange_->service.metrics().tokens_read(read_);
    exchange_->service.metrics().tokens_written(written_);
    Json json = head();
    json["choices"] = Json::array();
    if (asked_.streams) {
      json["usage"] = usage();
      if (asked_.wants_usage) exchange_->event(json.dump());
      exchange_->event("[DONE]");
      return exchange_->end_events();
    }
    for (size_t i = 0; i < choices_.size(); ++i) {
      const std::string before = asked_.echoes ? asked_.texts[prompt_of(i)] : "";
      json["choices"].push_back(choice_json(i, before + choices_[i].text.text(), finished_[i]));
    }
    json["usage"] = usage();
    exchange_->send(json);
  }

  SharedExchange exchange_;
  const CompletionRequest asked_;
  size_t left_;  // prompts
  std::vector<CompletionChoice> choices_;
  std::vector<std::string> finished_;
  const int64_t created_ = static_cast<int64_t>(std::time(nullptr));
  int64_t read_ = 0, written_ = 0;
};

}  // namespace

void completions(const SharedExchange& e) {
  const Json body = e->json();
  CompletionRequest asked{.model = model_of(e->service, body, ModelUse::generate)};
  const LoadedModel& model = asked.model->loaded();
  if (!model.tokenizer) refuse("the folder of '{}' has no tokenizer", asked.model->name);
  for (const char* key :
       {"logprobs", "suffix", "logit_bias", "presence_penalty", "frequency_penalty"}) {
    const Json* value = body.find(key);
    const bool does_nothing = value == nullptr || value->is_null() || *value == Json(0) ||
                              *value == Json(0.0) || *value == Json::object();
    if (!does_nothing) refuse("`{}` is not there yet", key);
  }
  const int64_t n = int_of(body, "n", 1, 1, e->service.options().most_results);
  if (int_of(body, "best_of", n, 1, 1 << 20) != n) refuse("`best_of` must be `n`, if it is there");
  take_search(*e, body, asked);
  take_prompts(*e, body, asked);
  asked.streams = bool_of(body, "stream", false);
  asked.echoes = bool_of(body, "echo", false);
  const Json* stops = body.find("stop");
  const bool has_stops =
      stops != nullptr && !stops->is_null() && !(stops->is_array() && stops->as_array().empty());
  if (has_stops) asked.stops = texts_of(body, "stop", 16);
  for (const std::string& stop : asked.stops) {
    if (stop.size() > 256) refuse("`stop` has a text of {} bytes; at most 256", stop.size());
  }
  if (const Json* options = body.find("stream_options"); options != nullptr && options->is_object())
    asked.wants_usage = bool_of(*options, "include_usage", false);

  const auto choices = std::make_shared<Choices>(e, asked);
  std::vector<QueuedJob> jobs;
  for (size_t i = 0; i < asked.prompts.size(); ++i) {
    Request r = generation_request(model.tokens(), asked.prompts[i], asked.options,
                                   static_cast<int64_t>(i));
    r.goes_on = [choices, i](const Hypothesis& h) { return choices->goes_on(i, h); };
    jobs.push_back({std::move(r), asked.options.search.n_best,
                    [choices, i](std::span<const Hypothesis> found) { choices->done(i, found); }});
  }
  start_jobs(e, asked.model, std::move(jobs), [choices] { choices->begin(); });
}

}  // namespace heddle::serve
