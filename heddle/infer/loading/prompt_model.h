// A language model with its tokenizer, and prompts as ids.
#pragma once

#include <string>
#include <vector>

#include "heddle/infer/loading/loaded_model.h"
#include "heddle/infer/loading/model_dir.h"

namespace heddle {

/// Reads a model that predicts_next_token(), its tokenizer if there is one, and how it generates;
/// `path` is a model directory or a training run, see find_model_dir(). Errors: data, naming the
/// file, for anything missing but the tokenizer, broken or cut short, or a model that does not
/// predict the next token.
LoadedModel load_prompt_model(const std::string& path);

/// Ids of a text with the special ones that the tokenizer puts at its front, not those behind it.
std::vector<int32_t> begin_text(const Tokenizer& tokenizer, const std::string& text);

struct PromptOptions {
  int64_t max_new_tokens = 0;  ///< room that truncation leaves
  int64_t context = 0;         ///< tokens of a prompt at most; 0: as many as the model takes
  bool truncate = false;       ///< keep the last tokens of a prompt that is too long, else an error
};

/// Ids of a prompt, with the special ones that the tokenizer puts at its front. Of an empty prompt:
/// the id that begins texts, or that ends them (GPT-2). `where` ("prompt 3") opens messages;
/// `was_cut` may be null.
/// Errors: usage if the model has no tokenizer; data if the text is not UTF-8, is empty and the
/// model has no such id, or is longer than the model takes.
std::vector<int32_t> prompt_ids(const LoadedModel& model, const std::string& text,
                                const std::string& where, const PromptOptions& options,
                                bool* was_cut);

/// Ids given as they are: checked, cut, or begun as above.
std::vector<int32_t> prompt_ids(const LoadedModel& model, std::vector<int32_t> ids,
                                const std::string& where, const PromptOptions& options,
                                bool* was_cut);

}  // namespace heddle
