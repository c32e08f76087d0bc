// Tokens that are found in a text before anything else is done with it.
#include "heddle/text/pipeline/pipeline.h"

#include <algorithm>

#include "heddle/base/error.h"
#include "heddle/base/utf8.h"
#include "heddle/text/strings/pattern.h"
#include "heddle/text/strings/strings.h"

namespace heddle {
namespace {

bool ends_with_word(std::string_view text) {
  if (text.empty()) return false;
  size_t at = last_character(text);
  return is_word_character(next_code_point(text, at));
}

bool starts_with_word(std::string_view text) {
  size_t at = 0;
  return !text.empty() && is_word_character(next_code_point(text, at));
}

}  // namespace

AddedToken read_added_token(const Json& json, const std::string& source) {
  AddedToken token;
  if (json.is_string()) {
    token.content = json.as_string();
    token.special = true;
    token.normalized = false;
  } else {
    token.content = json.get_string("content", source);
    token.single_word = bool_or(json, "single_word", false, source);
    token.lstrip = bool_or(json, "lstrip", false, source);
    token.rstrip = bool_or(json, "rstrip", false, source);
    token.special = bool_or(json, "special", false, source);
    token.normalized = bool_or(json, "normalized", !token.special, source);
  }
  check(!token.content.empty(), ErrorKind::data, "{}: an added token is empty", source);
  return token;
}

void AddedTokens::add(int32_t id, AddedToken token, const std::string& source) {
  check(token.content.size() <= kMaxTokenBytes, ErrorKind::data,
        "{}: the added token with the id {} has {} bytes; at most {} are taken", source, id,
        token.content.size(), kMaxTokenBytes);
  const auto [at, is_new] = ids_.emplace(token.content, id);
  check(is_new || at->second == id, ErrorKind::data,
        "{}: added token '{}' comes twice, with the ids {} and {}", source, token.content,
        at->second, id);
  const auto known = tokens_.find(id);
  check(known == tokens_.end() || known->second.content == token.content, ErrorKind::data,
        "{}: added tokens '{}' and '{}' both have the id {}", source,
        known == tokens_.end() ? "" : known->second.content, token.content, id);
  tokens_[id] = std::move(token);
  largest_ = std::max(largest_, id);
}

void AddedTokens::prepare(const Normalizer* normalizer) {
  for (auto& [id, token] : tokens_) {
    if (token.special) special_.add(token.content, id), names_.push_back(token.content);
    if (token.special && hides_special_) {
      hidden_.add(token.content, id);
      continue;
    }
    if (!token.normalized) {
      plain_.add(token.content, id), given_.add(token.content, id);
      continue;
    }
    if (token.special) given_.add(token.content, id);
    if (normalizer != nullptr) token.content = (*normalizer)(token.content);
    check(token.content.size() <= kMaxTokenBytes, ErrorKind::data,
          "tokenizer: the added token with the id {} has {} bytes once it is normalized; at most "
          "{} are taken",
          id, token.content.size(), kMaxTokenBytes);
    if (token.content.empty()) continue;
    normalized_.add(token.content, id);
    (token.special ? normalized_special_ : normalized_text_).add(token.content, id);
    if (token.special) normalized_names_.push_back(token.content);
  }
}

void AddedTokens::split(std::string_view text, bool is_normalized, const Found& f) const {
  split(text, is_normalized ? normalized_ : plain_, f);
}

void AddedTokens::split_given(std::string_view text, bool is_normalized, const Found& f) const {
  split(text, is_normalized ? normalized_text_ : given_, f);
}

void AddedTokens::split_hidden(std::string_view text, const Found& f) const {
  split(text, hidden_, f);
}

namespace {

// Whether one of the names may begin at the end of a text.
bool may_begin(const std::vector<std::string>& names, std::string_view text) {
  return std::ranges::any_of(names,
                             [&](const std::string& name) { return begun_at_end(text, name) > 0; });
}

}  // namespace

std::string AddedTokens::broken(std::string_view text, std::string_view mark,
                                const Normalizer* normalizer) const {
  std::string result;
  for (size_t at = 0; at < text.size();) {
    bool is_name = false;
    special_.each_prefix(text.substr(at), [&](size_t, int32_t) { is_name = true; });
    const size_t length = std::max<size_t>(1, utf8_length(text.substr(at)));
    result += text.substr(at, length);
    if (is_name) result += mark;
    at += length;
  }
  bool is_marked = may_begin(names_, text);
  if (!is_marked && has_normalized_special() && normalizer != nullptr) {
    const std::string normalized = (*normalizer)(text);
    is_marked = may_begin(normalized_names_, normalized);
    for (size_t at = 0; !is_marked && at < normalized.size(); ++at) {
      normalized_special_.each_prefix(std::string_view(normalized).substr(at),
                                      [&](size_t, int32_t) { is_marked = true; });
    }
  }
  if (is_marked) result += mark;
  return result;
}

void AddedTokens::split(std::string_view text, const TokenTrie& trie, const Found& f) const {
  size_t done = 0;       // up to there f() was called
  size_t space_end = 0;  // of the white space last looked at
  for (size_t at = 0; !trie.is_empty() && at < text.size();) {
    size_t length = 0;
    int32_t id = -1;
    trie.each_prefix(text.substr(at), [&](size_t l, int32_t v) { length = l, id = v; });
    if (id < 0) {
      ++at;
      continue;
    }
    size_t begin = at, end = at + length;
    at = end;
    const AddedToken& token = tokens_.at(id);
    if (token.single_word &&
        (ends_with_word(text.substr(0, begin)) || starts_with_word(text.substr(end)))) {
      continue;
    }
    if (token.lstrip && begin > done) begin -= trailing_space(text.substr(done, begin - done));
    if (token.lstrip) begin = std::max(begin, done);
    if (token.rstrip && end >= space_end) space_end = end + leading_space(text.substr(end));
    if (token.rstrip) end = space_end;
    if (begin >= end) continue;  // the token before it took all of it; `tokenizers` panics
    if (done < begin) f(text.substr(done, begin - done), -1);
    f(text.substr(begin, end - begin), id);
    done = end;  // which may lie before where the token before it ended: so in `tokenizers`
  }
  if (done < text.size()) f(text.substr(done), -1);
}

const AddedToken* AddedTokens::find(int32_t id) const {
  const auto at = tokens_.find(id);
  return at == tokens_.end() ? nullptr : &at->second;
}

std::optional<int32_t> AddedTokens::find(std::string_view content) const {
  const auto at = ids_.find(content);
  return at == ids_.end() ? std::nullopt : std::optional<int32_t>(at->second);
}

bool AddedTokens::is_special(int32_t id) const {
  const AddedToken* token = find(id);
  return token != nullptr && token->special;
}

}  // namespace heddle
