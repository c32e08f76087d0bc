// Prompts as ids, and the bad lines among them.
#include "heddle/cli/use/prompts.h"

#include "heddle/base/error.h"
#include "heddle/text/strings/strings.h"

namespace heddle::cli {
namespace {

constexpr BlockSize kBlock = {.lines = 256, .bytes = 1 << 20};

}  // namespace

Prompts::Prompts(const PromptFlags& flags, const LoadedModel& model, const PromptOptions& options)
    : flags_(flags), model_(model), options_(options), bad_("generate", flags_.lines) {
  if (model.tokenizer) dropped_.emplace("generate", *model.tokenizer);
  if (!flags.prompts.empty() || !flags.ids.empty()) return;
  if (flags_.lines.path.empty()) flags_.lines.path = "-";
  lines_.emplace("generate", flags_.lines.path, kBlock);
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
  if (lines_) bad_.report(lines_->lines());
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
    return {.text = {}, .ids = {}, .error = bad_.add(line, count_, error)};
  }
}

Prompt Prompts::prompt(const std::string& text, const char* what) {
  bool was_cut = false;
  const std::string where = fmt::format("{} {}", what, ++count_);
  if (dropped_) {
    check_text(text, where);
    dropped_->look_at(text, where);
  }
  Prompt p{text, prompt_ids(model_, text, where, options_, &was_cut)};
  cut_ += was_cut;
  return p;
}

Prompt Prompts::prompt_of_ids() {
  std::vector<int32_t> ids;
  const int64_t vocab = model_.tokens().vocab_size();
  for (const int64_t id : flags_.ids) {
    check(id >= 0 && id < vocab, ErrorKind::usage,
          "--ids: {} is not in the vocabulary; ids must be at least 0 and below {}", id, vocab);
    ids.push_back(static_cast<int32_t>(id));
  }
  bool was_cut = false;
  Prompt p{{}, prompt_ids(model_, ids, fmt::format("prompt {}", ++count_), options_, &was_cut)};
  cut_ += was_cut;
  if (model_.tokenizer) p.text = model_.tokenizer->decode(p.ids);
  return p;
}

}  // namespace heddle::cli
