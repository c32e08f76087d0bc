// Tokens of text and their ids.
#include "heddle/text/subwords/subword_model.h"

#include <utility>

#include "heddle/base/error.h"
#include "heddle/base/log.h"

namespace heddle {
namespace {

/// Ids may leave as many gaps as there are entries, and this many more.
constexpr int64_t kFreeGaps = 100'000;

}  // namespace

void check_token_id(int64_t id, size_t entries, std::string_view token, const std::string& source) {
  const int64_t most = 2 * static_cast<int64_t>(entries) + kFreeGaps;
  check(id >= 0 && id < most, ErrorKind::data,
        "{}: token '{}' has the id {}; with {} entries ids are 0 to {}", source, token, id, entries,
        most - 1);
}

Vocabulary Vocabulary::of_json(const Json& tokens, const std::string& source) {
  Vocabulary result;
  check(tokens.is_object() && tokens.size() > 0, ErrorKind::data,
        "{}: the vocabulary is {}; an object of tokens and ids is needed", source,
        tokens.describe());
  result.ids_.reserve(tokens.size());
  for (const auto& [token, id] : tokens.as_object()) {
    const int64_t value = id.as_int(source + ": id of token '" + token + "'");
    check_token_id(value, tokens.size(), token, source);
    result.add(token, value, source);
  }
  return result;
}

Vocabulary Vocabulary::of_list(std::vector<std::string> tokens, const std::string& source) {
  check(!tokens.empty(), ErrorKind::data, "{}: the vocabulary is empty", source);
  Vocabulary result;
  result.ids_.reserve(tokens.size());
  for (size_t i = 0; i < tokens.size(); ++i) {
    result.add(std::move(tokens[i]), static_cast<int64_t>(i), source);
  }
  return result;
}

Vocabulary Vocabulary::of_lines(std::vector<std::string> tokens, const std::string& source) {
  std::unordered_map<std::string_view, size_t> last;
  size_t repeated = 0, first = 0;  // number, and the line of the first
  for (size_t i = 0; i < tokens.size(); ++i) {
    const auto [at, is_new] = last.insert_or_assign(tokens[i], i);
    if (!is_new && repeated++ == 0) first = i;
  }
  if (repeated > 0) {
    log_warning("{}: {} tokens come twice ('{}' in line {} first); the later lines count", source,
                repeated, tokens[first], first + 1);
  }
  check(!tokens.empty(), ErrorKind::data, "{}: the vocabulary is empty", source);
  Vocabulary result;
  result.ids_.reserve(tokens.size());
  result.tokens_.resize(tokens.size());
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (last.at(tokens[i]) == i) result.add(tokens[i], static_cast<int64_t>(i), source);
  }
  return result;
}

void Vocabulary::add(std::string token, int64_t id, const std::string& source) {
  check(token.size() <= kMaxTokenBytes, ErrorKind::data,
        "{}: the token with the id {} has {} bytes; at most {} are taken", source, id, token.size(),
        kMaxTokenBytes);
  if (static_cast<size_t>(id) >= tokens_.size()) tokens_.resize(static_cast<size_t>(id) + 1);
  check(tokens_[id] == nullptr, ErrorKind::data, "{}: tokens '{}' and '{}' both have the id {}",
        source, tokens_[id] == nullptr ? "" : *tokens_[id], token, id);
  const auto [at, is_new] = ids_.emplace(std::move(token), static_cast<int32_t>(id));
  check(is_new, ErrorKind::data, "{}: token '{}' comes twice, with the ids {} and {}", source,
        at->first, at->second, id);
  tokens_[id] = &at->first;
}

std::optional<std::vector<int32_t>> Vocabulary::find_bytes(std::string_view text) const {
  std::vector<int32_t> ids;
  for (const char c : text) {
    const auto id = find(fmt::format("<0x{:02X}>", static_cast<unsigned char>(c)));
    if (!id) return std::nullopt;
    ids.push_back(*id);
  }
  return ids;
}

int32_t Vocabulary::find_unk(const std::string& unk, const std::string& source) const {
  const auto id = find(unk);
  check(id.has_value(), ErrorKind::data, "{}: unk_token '{}' is not in the vocabulary", source,
        unk);
  return *id;
}

size_t TokenTrie::place(uint32_t node, unsigned char byte) const {
  const uint64_t key = (uint64_t{node} << 8 | byte) + 1;
  const size_t mask = edges_.size() - 1;
  size_t at = (key * 0x9E3779B97F4A7C15u >> 20) & mask;  // 2^64 / golden ratio
  while (edges_[at].key != 0 && edges_[at].key != key) at = (at + 1) & mask;
  return at;
}

void TokenTrie::add(std::string_view text, int32_t value) {
  uint32_t node = 0;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    size_t at = place(node, byte);
    if (edges_[at].key == 0) {
      if (values_.size() * 2 >= edges_.size()) {
        grow();
        at = place(node, byte);
      }
      edges_[at] = {(uint64_t{node} << 8 | byte) + 1, static_cast<uint32_t>(values_.size())};
      values_.push_back(-1);
    }
    node = edges_[at].to;
  }
  values_[node] = value;
}

void TokenTrie::grow() {
  const std::vector<Edge> old = std::exchange(edges_, std::vector<Edge>(edges_.size() * 2));
  for (const Edge& edge : old) {
    if (edge.key == 0) continue;
    const uint64_t key = edge.key - 1;
    edges_[place(static_cast<uint32_t>(key >> 8), static_cast<unsigned char>(key & 0xFF))] = edge;
  }
}

}  // namespace heddle
