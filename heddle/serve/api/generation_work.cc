// Jobs of a prompt each; their choices, streamed or whole.
#include "heddle/serve/api/generation_work.h"

#include <algorithm>
#include <ctime>
#include <limits>
#include <random>

#include "heddle/base/rng.h"
#include "heddle/base/utf8.h"
#include "heddle/infer/decoding/text_stream.h"
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
  int64_t offset = 0;  // characters of the text before it
};

// A choice while it grows.
struct GrowingChoice {
  TextStream text;
  std::optional<ToolCallReader> calls = {};  // of a chat with tools
  std::string content = {};                  // that is no call
  Json tool_calls = Json::array();
  std::vector<ChosenToken> tokens = {};  // if log probabilities are wanted
  size_t sent = 0, told = 0;             // of them, of bytes of the content
  int64_t offset = 0;                    // of the last token
  std::string reason = {};               // why it ended
};

// Where a token's text begins, in characters of the text: a part of a character where that does.
int64_t offset_of(std::string_view before, std::string_view after, bool is_part) {
  if (is_part) {
    while (before.ends_with(kUnknownCharacter)) before.remove_suffix(kUnknownCharacter.size());
    return count_characters(before);
  }
  auto same = static_cast<size_t>(std::ranges::mismatch(before, after).in1 - before.begin());
  while (same > 0 && same < after.size() && is_continuation(after[same])) --same;
  return count_characters(after.substr(0, same));
}

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
            const std::string& reason, const Json& tool_calls = {}) {
    Json choice = Json::object({{"index", i}});
    if (work_.is_chat) {
      Json delta = Json::object();
      if (kind == Part::first) delta["role"] = "assistant";
      if (kind == Part::first || !text.empty()) delta["content"] = text;
      if (!tool_calls.is_null()) delta["tool_calls"] = tool_calls;
      choice["delta"] = std::move(delta);
    } else {
      choice["text"] = text;
    }
    finish(choice, tokens, reason);
    Json json = head();
    json["choices"].push_back(std::move(choice));
    if (work_.wants_usage) json["usage"] = Json();
    return json;
  }
  Json whole(size_t i, const std::string& text, const GrowingChoice& from) const {
    Json choice = Json::object({{"index", i}});
    if (work_.is_chat) {
      Json message = Json::object({{"role", "assistant"}, {"content", text}});
      message["refusal"] = Json();
      if (from.tool_calls.size() > 0) {
        if (text.empty()) message["content"] = Json();
        message["tool_calls"] = from.tool_calls;
      }
      choice["message"] = std::move(message);
    } else {
      choice["text"] = text;
    }
    finish(choice, from.tokens, from.reason);
    return choice;
  }

 private:
  const Tokenizer& tokenizer() const { return work_.model->loaded().tokenizer.value(); }
  std::string text_of(int32_t id) const {
    return replace_invalid_utf8(token_bytes(tokenizer(), id));
  }

  void finish(Json& choice, std::span<const ChosenToken> tokens, const std::string& reason) const {
    const bool has_log_probs = work_.top_log_probs >= 0 && !tokens.empty();
    choice["logprobs"] = !has_log_probs  ? Json()
                         : work_.is_chat ? chat_log_probs(tokens)
                                         : text_log_probs(tokens);
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
  Json text_log_probs(std::span<const ChosenToken> tokens) const {
    Json json = Json::object();
    for (const char* key : {"tokens", "token_logprobs", "top_logprobs", "text_offset"}) {
      json[key] = Json::array();
    }
    for (const ChosenToken& one : tokens) {
      json["tokens"].push_back(text_of(one.token.id));
      json["token_logprobs"].push_back(finite(one.token.log_p));
      json["text_offset"].push_back(one.offset);
      Json top = Json::object();
      for (const NextToken& other : one.top) {
        // Parts of characters may look alike; the likeliest of them stays.
        const std::string name = text_of(other.id);
        if (!top.contains(name)) top[name] = finite(other.log_p);
      }
      json["top_logprobs"].push_back(std::move(top));
    }
    return json;
  }

  const GenerationWork& work_;
  const std::string id_;
  const int64_t created_;
};

// The choices of a request. Of its engine's thread, once it is there.
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
        choices_.push_back({TextStream(tokenizer, prompt, work_.stops, !work_.tools.empty())});
        if (work_.tools.empty()) continue;
        choices_.back().calls.emplace(work_.model->chat->tool_call_form(), work_.tools,
                                      work_.must_call, work_.most_calls);
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
    GrowingChoice& choice = choices_[i];
    if (work_.top_log_probs < 0) {
      const bool is_read = choice.text.read(h.ids);
      send_new(i);
      return is_read;
    }
    const std::string before = choice.text.text();
    const bool is_read = choice.text.read(h.ids);
    const std::string bytes = token_bytes(*work_.model->loaded().tokenizer, h.ids.back());
    choice.offset = offset_of(before, choice.text.text(), first_invalid_utf8(bytes).has_value());
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
        const size_t i = number(prompt, h.sample);
        ChosenToken chosen{
            .token = {h.ids.back(), h.log_ps.back()}, .top = {}, .offset = choices_[i].offset};
        if (work_.top_log_probs > 0) {
          chosen.top = best_tokens(step.logits.slice(0, h.parent, 1),
                                   {.count = std::min(work_.top_log_probs, step.logits.size(1))});
          std::erase_if(chosen.top, [](const NextToken& other) { return other.id < 0; });
        }
        choices_[i].tokens.push_back(std::move(chosen));
        if (h.ended == EndedBy::nothing) send_new(i);
      }
    }
  } catch (...) {
    exchange_->fail(std::current_exception());
  }
  void cached(int64_t tokens) { cached_ += tokens; }
  void done(size_t prompt, std::span<const Hypothesis> found) {
    for (const Hypothesis& h : found) {
      const size_t i = number(prompt, h.sample);
      GrowingChoice& choice = choices_[i];
      choice.text.read(h.ids);
      written_ += std::ssize(h.ids);
      const Json calls = take_new(i, choice.text.take_rest(), true);
      choice.reason = h.ended == EndedBy::length     ? "length"
                      : choice.tool_calls.size() > 0 ? "tool_calls"
                                                     : "stop";
      if (!work_.streams) continue;
      const std::string rest = choice.content.substr(choice.told);
      if (!rest.empty() || !calls.is_null() || choice.sent < choice.tokens.size()) {
        send(i, ChoiceWriter::Part::next, rest, "", calls);
      }
      send(i, ChoiceWriter::Part::last, "", choice.reason);
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
  // Takes text that came, which is content, or calls. returns: those that are new, null of none
  Json take_new(size_t i, const std::string& text, bool is_last) {
    GrowingChoice& choice = choices_[i];
    if (!choice.calls) {
      choice.content += text;
      return {};
    }
    choice.calls->read(text);
    if (is_last) choice.calls->end();
    choice.content += choice.calls->take_text();
    Json calls;
    for (const ToolCall& call : choice.calls->take_calls()) {
      const size_t number = choice.tool_calls.size();
      Json json = Json::object({{"id", call_id(i, number)}, {"type", "function"}});
      json["function"] = Json::object({{"name", call.name}, {"arguments", call.arguments}});
      choice.tool_calls.push_back(json);
      if (calls.is_null()) calls = Json::array();
      json["index"] = number;
      calls.push_back(std::move(json));
    }
    return calls;
  }
  // Nine letters and digits, as Mistral's templates want them, of the request and the place.
  std::string call_id(size_t choice, size_t call) const {
    uint64_t hash = hash_name(fmt::format("{}/{}/{}", exchange_->id, choice, call));
    static constexpr std::string_view kSigns = "0123456789abcdefghijklmnopqrstuvwxyz";
    std::string id;
    for (int n = 0; n < 9; ++n, hash /= kSigns.size()) id += kSigns[hash % kSigns.size()];
    return id;
  }
  void send_new(size_t i) {
    if (!work_.streams) return;
    GrowingChoice& choice = choices_[i];
    const Json calls = take_new(i, choice.text.take(), false);
    const std::string text = choice.content.substr(choice.told);
    if (!text.empty() || !calls.is_null()) send(i, ChoiceWriter::Part::next, text, "", calls);
  }
  // A part, with the tokens that have come since the last one.
  void send(size_t i, ChoiceWriter::Part kind, const std::string& text,
            const std::string& reason = "", const Json& calls = {}) {
    GrowingChoice& choice = choices_[i];
    const auto tokens = std::span<const ChosenToken>(choice.tokens).subspan(choice.sent);
    choice.sent = choice.tokens.size(), choice.told = choice.content.size();
    exchange_->event(writer_.part(i, kind, text, tokens, reason, calls).dump());
  }
  Json usage() const {
    Json json = Json::object({{"prompt_tokens", read_},
                              {"completion_tokens", written_},
                              {"total_tokens", read_ + written_}});
    json["prompt_tokens_details"] = Json::object({{"cached_tokens", cached_}});
    return json;
  }
  void finish() {
    exchange_->service.metrics().tokens_read(read_ - cached_);
    exchange_->service.metrics().tokens_cached(cached_);
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
      json["choices"].push_back(writer_.whole(i, before + choices_[i].content, choices_[i]));
    }
    json["usage"] = usage();
    exchange_->send(json);
  }

  SharedExchange exchange_;
  const GenerationWork work_;
  ChoiceWriter writer_;
  size_t left_;  // prompts
  std::vector<GrowingChoice> choices_;
  int64_t read_ = 0, written_ = 0, cached_ = 0;  // tokens; cached ones are among those read
};

// What is asked is drawn, as OpenAI's models do, unless the temperature is 0.
void take_search(const Exchange& e, const Json& body, GenerationWork& work) {
  SearchConfig& s = work.options.search;
  s = work.model->loaded().generation.value_or(SearchConfig());
  s.beam = 1;
  s.max_length.reset();
  s.n_best = int_of(body, "n", 1, 1, e.service.options().most_results);
  const double temperature = number_of(body, "temperature", s.temperature.value_or(1), 0, 10);
  s.samples = temperature > 0;
  if (!s.samples && s.n_best > 1)
    refuse("`n` is {}, but at `temperature` 0 all are alike", s.n_best);
  s.temperature = temperature;
  s.top_p = std::max(1e-6, number_of(body, "top_p", s.top_p.value_or(1), 0, 1));
  s.top_k = int_of(body, "top_k", s.top_k.value_or(0), 0, std::numeric_limits<int32_t>::max());
  s.min_p = number_of(body, "min_p", s.min_p.value_or(0), 0, 1);
  s.repetition_penalty =
      number_of(body, "repetition_penalty", s.repetition_penalty.value_or(1), 0.01, 100);
  s.seed = std::abs(int_of(body, "seed", static_cast<int64_t>(std::random_device{}()),
                           std::numeric_limits<int64_t>::min() + 1,
                           std::numeric_limits<int64_t>::max()));
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
  constrain(work, schema);
}

}  // namespace

void constrain(GenerationWork& work, const Json& schema) {
  if (!work.stops.empty()) refuse("`stop` would cut the JSON that is asked for");
  // What may come next is sought among all that a schema allows, on the engine's thread.
  constexpr size_t kMostBytes = 1 << 18;
  const size_t bytes = schema.dump().size();
  if (bytes > kMostBytes) refuse("the schema has {} bytes; at most {}", bytes, kMostBytes);
  const LoadedModel& model = work.model->loaded();
  work.options.constraint = make_json_constraint(
      schema, *model.tokenizer, model.tokens().vocab_size(), work.options.search.ends());
}

GenerationWork generation_work(const Exchange& e, const Json& body) {
  GenerationWork work{.model = model_of(e.service, body, ModelUse::generate)};
  if (!work.model->loaded().tokenizer) {
    refuse("the folder of '{}' has no tokenizer", work.model->name);
  }
  take_search(e, body, work);
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
          "`max_tokens` and the context leave {} tokens; the least JSON that is asked for may need "
          "{}",
          r.longest_output, r.constraint->least_tokens());
    }
    r.on_cached = [choices](int64_t tokens) { choices->cached(tokens); };
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
