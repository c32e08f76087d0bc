// Jobs of a prompt each; their choices, streamed or whole.
#include "heddle/serve/api/generation_work.h"

#include <algorithm>
#include <ctime>
#include <limits>
#include <random>

#include "heddle/base/utf8.h"
#include "heddle/infer/search/json_constraint.h"
#include "heddle/infer/words.h"
#include "heddle/serve/api/jobs.h"
#include "heddle/text/strings/strings.h"

namespace heddle::serve {
namespace {

// A token that was chosen, and those that were likeliest there.
struct ChosenToken {
  NextToken token;
  std::vector<NextToken> top;
};

// A choice while it grows.
struct GrowingChoice {
  TextStream text;
  std::vector<ChosenToken> tokens = {};  // if log probabilities are wanted
  size_t sent = 0;                       // of them
  std::string reason = {};               // why it ended
};

// What a choice looks like: of a chat a message or what comes to it, else a text.
class ChoiceWriter {
 public:
  ChoiceWriter(const GenerationWork& work, std::string id, int64_t created)
      : work_(work), id_(std::move(id)), created_(created) {}

  Json head() const {
    const char* object = !work_.is_chat  ? "text_completion"
                         : work_.streams ? "chat.completion.chunk"
                                         : "chat.completion";
    return Json::object({{"id", (work_.is_chat ? "chatcmpl-" : "cmpl-") + id_},
                         {"object", object},
                         {"created", created_},
                         {"model", work_.model->name}});
  }
  // A part of a stream; of a chat the first one says the role, the last one nothing.
  enum class Part : uint8_t { first, next, last };
  Json part(size_t i, Part kind, const std::string& text, std::span<const ChosenToken> tokens,
            const std::string& reason) const {
    Json choice = Json::object({{"index", i}});
    if (work_.is_chat) {
      Json delta = Json::object();
      if (kind == Part::first) delta["role"] = "assistant";
      if (kind != Part::last) delta["content"] = text;
      choice["delta"] = std::move(delta);
    } else {
      choice["text"] = text;
    }
    finish(choice, tokens, reason, text_offset(i));
    Json json = head();
    json["choices"].push_back(std::move(choice));
    if (work_.wants_usage) json["usage"] = Json();
    return json;
  }
  Json whole(size_t i, const std::string& text, std::span<const ChosenToken> tokens,
             const std::string& reason) const {
    Json choice = Json::object({{"index", i}});
    if (work_.is_chat) {
      Json message = Json::object({{"role", "assistant"}, {"content", text}});
      message["refusal"] = Json();
      choice["message"] = std::move(message);
    } else {
      choice["text"] = text;
    }
    finish(choice, tokens, reason, 0);
    return choice;
  }
  // Characters of tokens that were sent of a choice.
  void count(size_t i, std::span<const ChosenToken> tokens) {
    if (offsets_.size() <= i) offsets_.resize(i + 1);
    for (const ChosenToken& one : tokens) offsets_[i] += count_of(one.token.id);
  }

 private:
  const Tokenizer& tokenizer() const { return work_.model->loaded().tokenizer.value(); }
  int64_t text_offset(size_t i) const { return i < offsets_.size() ? offsets_[i] : 0; }
  std::string text_of(int32_t id) const {
    return replace_invalid_utf8(token_bytes(tokenizer(), id));
  }
  int64_t count_of(int32_t id) const { return count_characters(text_of(id)); }

  void finish(Json& choice, std::span<const ChosenToken> tokens, const std::string& reason,
              int64_t offset) const {
    const bool has_log_probs = work_.top_log_probs >= 0 && !tokens.empty();
    choice["logprobs"] = !has_log_probs  ? Json()
                         : work_.is_chat ? chat_log_probs(tokens)
                                         : text_log_probs(tokens, offset);
    choice["finish_reason"] = reason.empty() ? Json() : Json(reason);
  }

  Json named(const NextToken& token) const {
    const std::string bytes = token_bytes(tokenizer(), token.id);
    Json json = Json::object({{"token", text_of(token.id)}, {"logprob", finite(token.log_p)}});
    json["bytes"] = Json::array();
    for (const char c : bytes)
      json["bytes"].push_back(static_cast<int64_t>(static_cast<uint8_t>(c)));
    return json;
  }
  // As OpenAI writes what has no probability at all.
  static float finite(float log_p) { return std::max(log_p, -9999.0f); }

  Json chat_log_probs(std::span<const ChosenToken> tokens) const {
    Json list = Json::array();
    for (const ChosenToken& one : tokens) {
      Json json = named(one.token);
      json["top_logprobs"] = Json::array();
      for (const NextToken& other : one.top) json["top_logprobs"].push_back(named(other));
      list.push_back(std::move(json));
    }
    Json json = Json::object({{"content", std::move(list)}});
    json["refusal"] = Json();
    return json;
  }
  Json text_log_probs(std::span<const ChosenToken> tokens, int64_t offset) const {
    Json json = Json::object();
    for (const char* key : {"tokens", "token_logprobs", "top_logprobs", "text_offset"}) {
      json[key] = Json::array();
    }
    for (const ChosenToken& one : tokens) {
      json["tokens"].push_back(text_of(one.token.id));
      json["token_logprobs"].push_back(finite(one.token.log_p));
      json["text_offset"].push_back(offset);
      offset += count_of(one.token.id);
      Json top = Json::object();
      for (const NextToken& other : one.top) {
        // Parts of characters may look alike; the likeliest of them stays.
        if (!top.contains(text_of(other.id))) top[text_of(other.id)] = finite(other.log_p);
      }
      json["top_logprobs"].push_back(std::move(top));
    }
    return json;
  }

  const GenerationWork& work_;
  const std::string id_;
  const int64_t created_;
  std::vector<int64_t> offsets_;
};

// The choices of a request. Of the engine's thread.
class Choices {
 public:
  Choices(SharedExchange e, GenerationWork work)
      : exchange_(std::move(e)),
        work_(std::move(work)),
        writer_(work_, exchange_->id, static_cast<int64_t>(std::time(nullptr))),
        left_(work_.prompts.size()) {
    const Tokenizer& tokenizer = work_.model->loaded().tokenizer.value();
    for (const auto& prompt : work_.prompts) {
      for (int64_t n = 0; n < work_.options.search.n_best; ++n) {
        choices_.push_back({TextStream(tokenizer, prompt, work_.stops)});
      }
      read_ += std::ssize(prompt);
    }
  }
  const GenerationWork& work() const { return work_; }

  void begin() {
    if (!work_.streams) return;
    exchange_->begin_events();
    for (size_t i = 0; i < choices_.size(); ++i) {
      if (work_.is_chat) send(i, ChoiceWriter::Part::first, "");
      if (work_.echoes) send(i, ChoiceWriter::Part::next, work_.texts[prompt_of(i)]);
    }
  }
  // A token that was chosen: whether the choice goes on. Never throws: others run beside it.
  bool goes_on(size_t prompt, const Hypothesis& h) try {
    const size_t i = number(prompt, h.sample);
    const bool is_read = choices_[i].text.read(h.ids);
    if (work_.top_log_probs < 0) send_new(i);
    return is_read;
  } catch (...) {
    exchange_->fail(std::current_exception());
    return false;
  }
  // Behind a step, if log probabilities are wanted: those of its tokens.
  void add_log_probs(size_t prompt, const DecodeStep& step) try {
    for (const auto& some : {step.live, step.ended}) {
      for (const Hypothesis& h : some) {
        if (h.ids.size() == step.before[static_cast<size_t>(h.parent)].ids.size()) continue;  // end
        ChosenToken chosen{.token = {h.ids.back(), h.log_ps.back()}, .top = {}};
        if (work_.top_log_probs > 0) {
          chosen.top =
              best_tokens(step.logits.slice(0, h.parent, 1), {.count = work_.top_log_probs});
        }
        const size_t i = number(prompt, h.sample);
        choices_[i].tokens.push_back(std::move(chosen));
        if (h.ended == EndedBy::nothing) send_new(i);
      }
    }
  } catch (...) {
    exchange_->fail(std::current_exception());
  }
  void done(size_t prompt, std::span<const Hypothesis> found) {
    for (const Hypothesis& h : found) {
      const size_t i = number(prompt, h.sample);
      choices_[i].text.read(h.ids);
      written_ += std::ssize(h.ids);
      choices_[i].reason = h.ended == EndedBy::length ? "length" : "stop";
      if (!work_.streams) continue;
      const std::string rest = choices_[i].text.take_rest();
      if (!rest.empty() || choices_[i].sent < choices_[i].tokens.size()) {
        send(i, ChoiceWriter::Part::next, rest);
      }
      send(i, ChoiceWriter::Part::last, "", choices_[i].reason);
    }
    if (--left_ == 0) finish();
  }

 private:
  size_t number(size_t prompt, int64_t sample) const {
    return prompt * static_cast<size_t>(work_.options.search.n_best) + static_cast<size_t>(sample);
  }
  size_t prompt_of(size_t choice) const {
    return choice / static_cast<size_t>(work_.options.search.n_best);
  }
  void send_new(size_t i) {
    if (!work_.streams) return;
    const std::string text = choices_[i].text.take();
    if (!text.empty()) send(i, ChoiceWriter::Part::next, text);
  }
  // A part, with the tokens that have come since the last one.
  void send(size_t i, ChoiceWriter::Part kind, const std::string& text,
            const std::string& reason = "") {
    GrowingChoice& choice = choices_[i];
    const auto tokens = std::span<const ChosenToken>(choice.tokens).subspan(choice.sent);
    choice.sent = choice.tokens.size();
    exchange_->event(writer_.part(i, kind, text, tokens, reason).dump());
    writer_.count(i, tokens);
  }
  Json usage() const {
    return Json::object({{"prompt_tokens", read_},
                         {"completion_tokens", written_},
                         {"total_tokens", read_ + written_}});
  }
  void finish() {
    exchange_->service.metrics().tokens_read(read_);
    exchange_->service.metrics().tokens_written(written_);
    Json json = writer_.head();
    json["choices"] = Json::array();
    if (work_.streams) {
      json["usage"] = usage();
      if (work_.wants_usage) exchange_->event(json.dump());
      exchange_->event("[DONE]");
      return exchange_->end_events();
    }
    for (size_t i = 0; i < choices_.size(); ++i) {
      const std::string before = work_.echoes ? work_.texts[prompt_of(i)] : "";
      json["choices"].push_back(writer_.whole(i, before + choices_[i].text.text(),
                                              choices_[i].tokens, choices_[i].reason));
    }
    json["usage"] = usage();
    exchange_->send(json);
  }

  SharedExchange exchange_;
  const GenerationWork work_;
  ChoiceWriter writer_;
  size_t left_;  // prompts
  std::vector<GrowingChoice> choices_;
  int64_t read_ = 0, written_ = 0;
};

// What is asked is drawn, as OpenAI's models do, unless the temperature is 0.
void take_search(const Exchange& e, const Json& body, int64_t most_tokens, GenerationWork& work) {
  SearchConfig& s = work.options.search;
  s = work.model->loaded().generation.value_or(SearchConfig());
  s.beam = 1;
  s.max_length.reset();
  s.max_new_tokens = most_tokens;
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
  const LoadedModel& model = work.model->loaded();
  for (int64_t id = model.tokenizer->vocab_size(); id < model.tokens().vocab_size(); ++id) {
    s.suppressed.push_back(id);
  }
  if (!s.samples) s.temperature.reset(), s.top_p.reset(), s.top_k.reset(), s.min_p.reset();
  work.options.slides = false;
  work.options.precision = work.model->precision;
}

// "response_format": text, json_object, or json_schema with a schema.
void take_format(const Json& body, GenerationWork& work) {
  const Json* format = body.find("response_format");
  if (format == nullptr || format->is_null()) return;
  if (!format->is_object()) refuse("`response_format` is {}", format->describe());
  const std::string type = text_of(*format, "type");
  if (type == "text") return;
  Json schema;
  if (type == "json_schema") {
    const Json* named = format->find("json_schema");
    const Json* found = named == nullptr ? nullptr : named->find("schema");
    if (found == nullptr) refuse("`response_format` has no `json_schema` with a `schema`");
    schema = *found;
  } else if (type != "json_object") {
    refuse("`response_format` has the type '{}'; text, json_object and json_schema are there",
           type);
  }
  if (!work.stops.empty()) refuse("`stop` would cut the JSON of `response_format`");
  const LoadedModel& model = work.model->loaded();
  work.options.constraint = make_json_constraint(
      schema, *model.tokenizer, model.tokens().vocab_size(), work.options.search.ends());
}

}  // namespace

void refuse_members(const Json& body, std::initializer_list<const char*> keys) {
  for (const char* key : keys) {
    const Json* value = body.find(key);
    const bool does_nothing = value == nullptr || value->is_null() || *value == Json(0) ||
                              *value == Json(0.0) || *value == Json::object() ||
                              *value == Json::array() || *value == Json(false);
    if (!does_nothing) refuse("`{}` is not there yet", key);
  }
}

GenerationWork generation_work(const Exchange& e, const Json& body, int64_t most_tokens) {
  GenerationWork work{.model = model_of(e.service, body, ModelUse::generate)};
  if (!work.model->loaded().tokenizer) {
    refuse("the folder of '{}' has no tokenizer", work.model->name);
  }
  take_search(e, body, most_tokens, work);
  work.streams = bool_of(body, "stream", false);
  const Json* stops = body.find("stop");
  const bool has_stops =
      stops != nullptr && !stops->is_null() && !(stops->is_array() && stops->as_array().empty());
  if (has_stops) work.stops = texts_of(body, "stop", 16);
  for (const std::string& stop : work.stops) {
    if (stop.size() > 256) refuse("`stop` has a text of {} bytes; at most 256", stop.size());
  }
  take_format(body, work);
  if (const Json* options = body.find("stream_options"); options != nullptr && options->is_object())
    work.wants_usage = bool_of(*options, "include_usage", false);
  return work;
}

void start_generation(const SharedExchange& e, GenerationWork work) {
  work.options.scores = work.top_log_probs >= 0;
  const SharedModel model = work.model;
  const auto choices = std::make_shared<Choices>(e, std::move(work));
  const GenerationWork& asked = choices->work();
  std::vector<QueuedJob> jobs;
  for (size_t i = 0; i < asked.prompts.size(); ++i) {
    Request r = generation_request(model->loaded().tokens(), asked.prompts[i], asked.options,
                                   static_cast<int64_t>(i));
    if (r.constraint && r.longest_output < r.constraint->least_tokens()) {
      refuse(
          "`max_tokens` and the context leave {} tokens; the least JSON of `response_format` may "
          "need {}",
          r.longest_output, r.constraint->least_tokens());
    }
    r.goes_on = [choices, i](const Hypothesis& h) { return choices->goes_on(i, h); };
    if (asked.top_log_probs >= 0) {
      r.on_step = [choices, i](const DecodeStep& step) { choices->add_log_probs(i, step); };
    }
    jobs.push_back({std::move(r), asked.options.search.n_best,
                    [choices, i](std::span<const Hypothesis> found) { choices->done(i, found); }});
  }
  start_jobs(e, model, std::move(jobs), [choices] { choices->begin(); });
}

}  // namespace heddle::serve
