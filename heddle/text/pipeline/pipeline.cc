// A tokenizer made of parts, as Hugging Face's tokenizer.json describes it.
#include "heddle/text/pipeline/pipeline.h"

#include <algorithm>

#include "heddle/text/strings/strings.h"

namespace heddle {

namespace {

constexpr size_t kLongestCachedWord = 64;  // bytes

}  // namespace

Pipeline::Pipeline(PipelineParts parts) : parts_(std::move(parts)) {
  parts_.added.prepare(parts_.normalizer.get());
}

std::vector<int32_t> Pipeline::encode(std::string_view text) const {
  std::vector<int32_t> ids;
  parts_.added.split(text, false, [&](std::string_view part, int32_t id) {
    if (id >= 0) {
      ids.push_back(id);
    } else {
      encode_between(part, part.data() == text.data(), ids);
    }
  });
  return ids;
}

void Pipeline::encode_between(std::string_view text, bool is_first,
                              std::vector<int32_t>& ids) const {
  std::string normalized;
  if (parts_.normalizer) {
    if (is_first && parts_.pre_tokenizer.asks_for_first) {
      is_first = parts_.normalizer->keeps_start(text);
    }
    text = normalized = (*parts_.normalizer)(text);
  }
  parts_.added.split(text, true, [&](std::string_view part, int32_t id) {
    if (id >= 0) {
      ids.push_back(id);
    } else {
      encode_normalized(part, is_first && part.data() == text.data(), ids);
    }
  });
}

void Pipeline::encode_normalized(std::string_view text, bool is_first,
                                 std::vector<int32_t>& ids) const {
  if (!parts_.pre_tokenizer.split) {
    encode_word(text, ids);
    return;
  }
  PreTokens pre_tokens{std::string(text), {{0, text.size(), is_first}}};
  parts_.pre_tokenizer.split(pre_tokens);
  for (size_t i = 0; i < pre_tokens.ranges.size(); ++i) encode_word(pre_tokens[i], ids);
}

void Pipeline::encode_word(std::string_view word, std::vector<int32_t>& ids) const {
  if (word.size() > kLongestCachedWord) {
    parts_.model->encode(word, ids);
    return;
  }
  if (cache_.find(word, ids)) return;
  std::vector<int32_t> own;
  parts_.model->encode(word, own);
  ids.insert(ids.end(), own.begin(), own.end());
  cache_.add(word, std::move(own));
}

std::string Pipeline::decode(std::span<const int32_t> ids, const DecodeOptions& options) const {
  std::vector<std::string> tokens;
  tokens.reserve(ids.size());
  for (const int32_t id : ids) {
    if (options.skip_special && is_special(id)) continue;
    if (std::string p = token(id); !p.empty()) tokens.push_back(std::move(p));
  }
  std::string text;
  if (parts_.decoder && !tokens.empty()) {
    parts_.decoder(tokens);
    for (const std::string& part : tokens) text += part;
  } else {
    for (size_t i = 0; i < tokens.size(); ++i) (text += i == 0 ? "" : " ") += tokens[i];
  }
  return options.clean_up.value_or(parts_.clean_up) ? clean_up_spaces(std::move(text)) : text;
}

int64_t Pipeline::vocab_size() const {
  return std::max<int64_t>(parts_.model->vocabulary().size(), parts_.added.largest_id() + 1);
}

std::string Pipeline::token(int32_t id) const {
  if (const AddedToken* token = parts_.added.find(id)) return token->content;
  const std::string* token = parts_.model->vocabulary().token(id);
  return token == nullptr ? "" : *token;
}

int32_t Pipeline::token_id(std::string_view token) const {
  if (const auto id = parts_.added.find(token)) return *id;
  return parts_.model->vocabulary().find(token).value_or(special.unk);
}

}  // namespace heddle
