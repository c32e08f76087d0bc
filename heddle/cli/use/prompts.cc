// Prompts one block after another, and the reasons of those that are none.
#include "heddle/cli/use/prompts.h"

#include "heddle/base/error.h"
#include "heddle/base/utf8.h"
#include "heddle/text/strings/strings.h"

namespace heddle::cli {
namespace {

constexpr BlockSize kBlock = {.lines = 256, .bytes = 1 << 20};

}  // namespace

void add_prompt_flags(Subcommand& c, PromptFlags& f) {
  c.add_option("-p,--prompt", f.prompts,
               "what the text goes on from; repeatable; without it lines of standard input")
      .may_be_empty()
      .allow_extra_args(false);
  c.add_option("--prompts", f.lines.path, "a file with a prompt a line").type_name("FILE");
  add_skip_flag(c, f.lines);
  c.add_option("--ids", f.ids, "a prompt as token ids: --ids 12,7,30").delimiter(',');
  c.add_flag("--truncate", f.truncate,
             "keep the last tokens of a prompt that is longer than the model takes");
  c.add_flag(
      "--chat", f.is_chat,
      "a prompt is what a user says, or a conversation, {\"messages\": [{\"role\": .., "
      "\"content\": ..}, ..]}; the model's chat template makes the text of it that is gone on "
      "from");
  c.add_option("--system", f.system, "with --chat: what the system says before it")
      .type_name("TEXT")
      .may_be_empty();
}

Json conversation_messages(const std::string& system, const std::string& prompt,
                           const std::string& where) {
  Json messages = Json::array();
  if (!system.empty()) {
    messages.push_back(Json::object({{"role", "system"}, {"content", system}}));
  }
  Json body;  // null: the prompt is what the user says
  if (trimmed(prompt).starts_with('{') && prompt.find("\"messages\"") != std::string::npos) {
    body = Json::parse(prompt, where);
  }
  if (const Json* given = body.is_object() ? body.find("messages") : nullptr) {
    for (const Json& message : given->as_array(where + ": 'messages'")) messages.push_back(message);
  } else {
    messages.push_back(Json::object({{"role", "user"}, {"content", prompt}}));
  }
  return messages;
}

Prompts::Prompts(const PromptFlags& flags, const LoadedModel& model, const PromptOptions& options)
    : flags_(flags), model_(model), options_(options) {
  check(!flags.is_chat || flags.ids.empty(), ErrorKind::usage,
        "--chat makes ids of texts; drop --ids");
  if (flags.is_chat) {
    check(model.tokenizer.has_value(), ErrorKind::usage,
          "--chat: {} has no tokenizer, so no text can be read", model.path);
    chat_ = ChatTemplate::find(model.path, &*model.tokenizer);
    check(chat_.has_value(), ErrorKind::data,
          "--chat: {} has no chat template (chat_template.jinja, or chat_template in "
          "tokenizer_config.json); go on from a text without --chat",
          model.path);
  }
  if (model.tokenizer) dropped_.emplace("generate", *model.tokenizer);
  if (!flags.prompts.empty() || !flags.ids.empty()) return;
  if (from_.path.empty()) from_.path = "-";
  lines_.emplace("generate", from_.path, kBlock);
}

std::vector<Prompt> Prompts::next() {
  if (lines_) return next_lines();
  if (count_ > 0) return {};
  std::vector<Prompt> some;
  for (const std::string& text : flags_.prompts) {
    warn_of_file_name("generate", text);
    some.push_back(prompt(std::string(without_byte_order_mark(text)), "prompt"));
  }
  if (!flags_.ids.empty()) some.push_back(prompt_of_ids());
  return some;
}

void Prompts::report() const {
  if (dropped_) dropped_->report();
  if (lines_) skipped_.report(lines_->lines());
  if (cut_ == 0) return;
  fmt::print(stderr, "generate: {} prompt{} cut to the last tokens that leave room\n", cut_,
             cut_ == 1 ? " was" : "s were");
}

// A bad line throws once the prompts before it were given.
std::vector<Prompt> Prompts::next_lines() {
  if (failure_) std::rethrow_exception(failure_);
  std::vector<Prompt> some;
  for (const std::string& line : lines_->next()) {
    try {
      some.push_back(prompt_or_reason(line));
    } catch (const Error&) {
      if (some.empty()) throw;
      failure_ = std::current_exception();
      break;
    }
  }
  return some;
}

Prompt Prompts::prompt_or_reason(const std::string& line) {
  try {
    return prompt(line, "line");
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::data) throw;
    return {.text = {}, .ids = {}, .error = skip_line(from_, skipped_, line, count_, error)};
  }
}

Prompt Prompts::prompt(const std::string& text, const char* what) {
  const std::string where = fmt::format("{} {}", what, ++count_);
  if (dropped_) {
    check_text(text, where);
    dropped_->look_at(text, where);
  }
  if (chat_) return conversation(text, where);
  return {text, prompt_ids(model_, text, where, options_, cut_)};
}

// What the server makes of the same messages.
Prompt Prompts::conversation(const std::string& text, const std::string& where) {
  const ChatInput input{.messages = conversation_messages(flags_.system, text, where)};
  return {chat_->render(input),
          prompt_ids(model_, chat_->encode(*model_.tokenizer, input), where, options_, cut_)};
}

Prompt Prompts::prompt_of_ids() {
  std::vector<int32_t> ids;
  const int64_t vocab = model_.tokens().vocab_size();
  for (const int64_t id : flags_.ids) {
    check(id >= 0 && id < vocab, ErrorKind::usage,
          "--ids: {} is not in the vocabulary; ids must be at least 0 and below {}", id, vocab);
    ids.push_back(static_cast<int32_t>(id));
  }
  Prompt p{{}, prompt_ids(model_, ids, fmt::format("prompt {}", ++count_), options_, cut_)};
  if (model_.tokenizer) p.text = model_.tokenizer->decode(p.ids);
  return p;
}

}  // namespace heddle::cli
