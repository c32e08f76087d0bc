// Completions and chat completions as OpenAI's clients ask for them.
#include <algorithm>

#include "heddle/serve/api/generation_work.h"

namespace heddle::serve {
namespace {

constexpr int64_t kMostTokens = 1 << 20, kMostTop = 20;

// What would change the text, of OpenAI's own members and of those that other servers add; what
// would not (`user`, `store`, `metadata`, ..) is passed over.
void refuse_what_is_not_there(const Json& body) {
  refuse_members(body, {"logit_bias", "presence_penalty", "frequency_penalty", "web_search_options",
                        "min_tokens", "ignore_eos", "stop_token_ids", "bad_words",
                        "use_beam_search", "guided_json", "guided_regex", "guided_choice",
                        "guided_grammar", "structured_outputs", "grammar"});
}

// Of a text or of ids.
template <class Prompt>
std::vector<int32_t> ids_within(const LoadedModel& model, Prompt prompt,
                                const std::string& where) try {
  int64_t cut = 0;
  return prompt_ids(model, std::move(prompt), where, {}, cut);
} catch (const PromptTooLong& error) {
  throw Refusal{.message = error.plain(), .code = kTooLong};
}

// "prompt": a text, texts, ids, or lists of ids.
void take_prompts(const Exchange& e, const Json& body, GenerationWork& work) {
  const LoadedModel& model = work.model->loaded();
  const Json* prompt = body.find("prompt");
  if (prompt == nullptr || prompt->is_null()) refuse("`prompt` is missing");
  const auto add_ids = [&](const Json& ids) {
    std::vector<int32_t> all;
    for (const int64_t id : ids.as_ints("`prompt`")) {
      if (id < 0 || id >= model.tokens().vocab_size()) {
        refuse("`prompt` has the id {}; ids must be at least 0 and below {}", id,
               model.tokens().vocab_size());
      }
      all.push_back(static_cast<int32_t>(id));
    }
    work.prompts.push_back(ids_within(model, std::move(all), "prompt"));
    work.texts.push_back(model.tokenizer ? model.tokenizer->decode(work.prompts.back()) : "");
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
  work.texts = texts_of(body, "prompt", e.service.options().most_texts);
  for (size_t i = 0; i < work.texts.size(); ++i) {
    const std::string where = fmt::format("prompt {}", i + 1);
    check_bytes(work.texts[i].size(), model.tokens().max_length(), where);
    work.prompts.push_back(ids_within(model, work.texts[i], where));
  }
}

// New tokens at most: as asked, else as the model says, else as many as its context has room for,
// but not so many that a few chats, each of which holds room for all it may come to, leave none.
int64_t most_of_chat(const ServiceOptions& limits, const Json& body, const LoadedModel& model,
                     int64_t prompt) {
  const int64_t room = std::max<int64_t>(1, model.tokens().max_length() - prompt + 1);
  const int64_t share = std::max<int64_t>(1, limits.cache_rows / 16);
  const int64_t usual =
      std::min(room, model.generation ? model.generation->max_new_tokens.value_or(share) : share);
  const int64_t old = int_of(body, "max_tokens", usual, 1, kMostTokens);
  return int_of(body, "max_completion_tokens", old, 1, kMostTokens);
}

// "tools" and "tool_choice": auto, none, required, or one by its name. What must be called is JSON
// of the schemas of the tools.
void take_tools(const Json& body, GenerationWork& work, ChatInput& input) {
  const Json* tools = body.find("tools");
  const Json* choice = body.find("tool_choice");
  const bool has_choice = choice != nullptr && !choice->is_null();
  if (tools == nullptr || tools->is_null() || *tools == Json::array()) {
    if (has_choice && *choice != Json("none") && *choice != Json("auto")) {
      refuse("`tool_choice` needs `tools`");
    }
    return;
  }
  std::vector<std::string> names = tool_names(*tools);
  if (std::ssize(names) > 128) refuse("`tools` has {} functions; at most 128", names.size());
  std::string named;
  if (has_choice && choice->is_object()) {
    const Json* function = choice->find("function");
    if (function == nullptr || !function->is_object()) refuse("`tool_choice` has no `function`");
    named = text_of(*function, "name");
    if (std::ranges::find(names, named) == names.end()) {
      refuse("`tool_choice` names '{}', which is none of the `tools`", named);
    }
  } else if (choice_of(body, "tool_choice", {"auto", "none", "required"}) == "none") {
    return;
  }
  if (!work.model->chat->takes_tools()) {
    refuse("the chat template of '{}' takes no `tools`", work.model->name);
  }
  if (work.options.constraint) refuse("`tools` and `response_format` do not go together");
  work.must_call = has_choice && *choice != Json("auto");
  if (work.must_call) {
    constrain(work, tool_call_schema(*tools, named, work.model->chat->tool_call_form()));
  }
  if (!bool_of(body, "parallel_tool_calls", true)) work.most_calls = 1;
  input.tools = *tools;
  work.tools = std::move(names);
}

}  // namespace

void completions(const SharedExchange& e) {
  const Json body = e->json();
  refuse_what_is_not_there(body);
  refuse_members(body, {"suffix"});
  const int64_t n = int_of(body, "n", 1, 1, e->service.options().most_results);
  if (int_of(body, "best_of", n, 1, 1 << 20) != n) refuse("`best_of` must be `n`, if it is there");
  GenerationWork work = generation_work(*e, body);
  work.options.search.max_new_tokens = int_of(body, "max_tokens", 16, 1, kMostTokens);
  take_prompts(*e, body, work);
  work.echoes = bool_of(body, "echo", false);
  const Json* log_probs = body.find("logprobs");
  const bool has_log_probs =
      log_probs != nullptr && !log_probs->is_null() && *log_probs != Json(false);
  if (has_log_probs) work.top_log_probs = int_of(body, "logprobs", -1, 0, kMostTop);
  if (has_log_probs && work.echoes) {
    refuse("`logprobs` with `echo` is not there yet: those of the prompt are not computed");
  }
  start_generation(e, std::move(work));
}

void chat_completions(const SharedExchange& e) {
  const Json body = e->json();
  refuse_what_is_not_there(body);
  refuse_members(body, {"functions", "function_call", "audio", "prediction"});
  GenerationWork work = generation_work(*e, body);
  const ServedModel& served = *work.model;
  if (!served.chat) {
    throw Refusal{.message = served.chat_fault.empty()
                                 ? fmt::format("'{}' has no chat template; /v1/completions goes on "
                                               "from any text",
                                               served.name)
                                 : served.chat_fault,
                  .code = "no_chat_template"};
  }
  const Json* messages = body.find("messages");
  if (messages == nullptr || messages->is_null()) refuse("`messages` is missing");
  if (std::ssize(messages->as_array("`messages`")) > 4096) refuse("more than 4096 `messages`");
  ChatInput input{.messages = *messages,
                  .add_generation_prompt = bool_of(body, "add_generation_prompt", true)};
  if (const Json* more = body.find("chat_template_kwargs"); more != nullptr && !more->is_null()) {
    if (!more->is_object()) refuse("`chat_template_kwargs` is {}", more->describe());
    input.variables = *more;
  }
  work.is_chat = true;
  take_tools(body, work, input);
  const LoadedModel& model = served.loaded();
  const std::string rendered = served.chat->render_hidden(*model.tokenizer, input);
  check_bytes(rendered.size(), model.tokens().max_length(), "the conversation");
  std::vector<int32_t> ids = model.tokenizer->encode_rendered(rendered);
  if (work.must_call) {  // the model's own way to begin a call
    const auto opening =
        model.tokenizer->encode_rendered(tool_call_opening(served.chat->tool_call_form()));
    ids.insert(ids.end(), opening.begin(), opening.end());
  }
  work.prompts.push_back(ids_within(model, std::move(ids), "the conversation"));
  work.options.search.max_new_tokens =
      most_of_chat(e->service.options(), body, model, std::ssize(work.prompts[0]));
  const bool has_log_probs = bool_of(body, "logprobs", false);
  const int64_t top = int_of(body, "top_logprobs", 0, 0, kMostTop);
  if (top > 0 && !has_log_probs) refuse("`top_logprobs` needs `logprobs` to be true");
  if (has_log_probs) work.top_log_probs = top;
  start_generation(e, std::move(work));
}

}  // namespace heddle::serve
