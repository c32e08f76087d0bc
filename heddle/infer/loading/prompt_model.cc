// Model, tokenizer and generation_config.json of a folder.
#include "heddle/infer/loading/prompt_model.h"

#include <algorithm>

#include "heddle/base/log.h"
#include "heddle/infer/engine/sequence_reader.h"
#include "heddle/text/strings/strings.h"

namespace heddle {
namespace {

// The special ids that the tokenizer puts before a text.
std::vector<int32_t> ids_before_text(const Tokenizer& tokenizer) {
  constexpr int32_t kText = -1;
  const std::vector<int32_t> text = {kText};
  std::vector<int32_t> ids = tokenizer.with_special(text).ids;
  ids.erase(std::find(ids.begin(), ids.end(), kText), ids.end());
  return ids;
}

int64_t longest_prompt(const LoadedModel& model, const PromptOptions& options) {
  return options.context > 0 ? options.context : model.tokens().max_length();
}

// Of an empty prompt.
std::vector<int32_t> first_ids(const LoadedModel& model, const std::string& where) {
  const SearchConfig& search = model.generation.value();
  if (const auto bos = token_id(search.bos)) return {*bos};
  const std::vector<int32_t> ends = search.ends();
  check(!ends.empty(), ErrorKind::data,
        "{} is empty, and the model has neither a bos_token_id nor an eos_token_id to begin with; "
        "give at least one token",
        where);
  return {ends[0]};
}

}  // namespace

std::vector<int32_t> begin_text(const Tokenizer& tokenizer, const std::string& text) {
  std::vector<int32_t> ids = ids_before_text(tokenizer);
  const std::vector<int32_t> tokens = tokenizer.encode(text);
  ids.insert(ids.end(), tokens.begin(), tokens.end());
  return ids;
}

LoadedModel load_prompt_model(const std::string& path) {
  check_reads_one_text(path);
  LoadedModel model =
      load_model(path, {.head = Head::next_token, .tokenizers = LoadOptions::Tokenizers::if_there});
  check(predicts_next_token(*model.model), ErrorKind::data,
        "{}: this {} does not predict the next token; a language model is needed, such as {}", path,
        model.type, class_of_head(Head::next_token));
  model.generation = read_generation_config(model.path);
  if (token_id(model.generation->forced_bos)) {
    log_warning("{}: forced_bos_token_id is a rule of encoder-decoders; heddle passes over it",
                model.path);
  }
  return model;
}

std::vector<int32_t> prompt_ids(const LoadedModel& model, const std::string& text,
                                const std::string& where, const PromptOptions& options,
                                bool* was_cut) {
  check(model.tokenizer.has_value(), ErrorKind::usage,
        "{}: the folder has no tokenizer; give the prompt as ids, as in `ids` 12,7,30", model.path);
  check_text(text, where);
  // Cut first, so that the special tokens stay; of them only those in front begin a text.
  std::vector<int32_t> ids = model.tokenizer->encode(text);
  const std::vector<int32_t> front = ids_before_text(*model.tokenizer);
  const auto room = longest_prompt(model, options) - static_cast<int64_t>(front.size());
  if (options.truncate && static_cast<int64_t>(ids.size()) > room) {
    if (was_cut != nullptr) *was_cut = true;
    ids.erase(ids.begin(), ids.end() - std::max<int64_t>(1, room - options.max_new_tokens));
    ids.insert(ids.begin(), front.begin(), front.end());
    return prompt_ids(model, std::move(ids), where, options, nullptr);
  }
  ids.insert(ids.begin(), front.begin(), front.end());
  return prompt_ids(model, std::move(ids), where, options, was_cut);
}

std::vector<int32_t> prompt_ids(const LoadedModel& model, std::vector<int32_t> ids,
                                const std::string& where, const PromptOptions& options,
                                bool* was_cut) {
  if (was_cut != nullptr) *was_cut = false;
  const int64_t longest = longest_prompt(model, options);
  if (ids.empty()) ids = first_ids(model, where);
  nn::check_ids(ids, model.tokens().vocab_size(), where);
  const auto length = static_cast<int64_t>(ids.size());
  if (length <= longest) return ids;
  check(options.truncate, ErrorKind::data,
        "{} has {} tokens; the model takes {} at most. Shorten it, or keep its last tokens with "
        "`truncate`",
        where, length, longest);
  if (was_cut != nullptr) *was_cut = true;
  ids.erase(ids.begin(), ids.end() - std::max<int64_t>(1, longest - options.max_new_tokens));
  return ids;
}

}  // namespace heddle
