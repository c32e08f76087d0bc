// Which tokens of a vocabulary may come at a place of a grammar of JSON.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "heddle/base/json/json.h"
#include "heddle/infer/search/json_matcher.h"
#include "heddle/infer/search/token_constraint.h"
#include "heddle/text/tokenizer.h"

namespace heddle {

/// The bytes of a vocabulary's tokens: made once, for all schemas.
struct TokenBytes;

/// A grammar and a vocabulary, shared by all outputs of the same schema: what was found for a place
/// is kept. From any thread.
class JsonTokens {
 public:
  /// What is kept of places, beside the grammar, takes so many bytes at most, or is of one place
  /// alone.
  static constexpr int64_t kMostBytes = 1 << 20;

  /// That of a schema, see json_grammar(); the same for the same arguments, as long as anybody has
  /// it or it is one of the last 16 that were asked for, unless schema and grammar take more than
  /// 256 KiB. Errors: usage for what json_grammar()
  /// refuses, and for a tokenizer that has no token for one of the bytes alone that a text may
  /// need.
  static std::shared_ptr<JsonTokens> of(const Json& schema, const Tokenizer& tokenizer,
                                        int64_t vocab, std::span<const int32_t> ends);
  JsonTokens(JsonGrammar grammar, std::shared_ptr<const TokenBytes> bytes, int64_t vocab);

  const JsonGrammar& grammar() const { return grammar_; }
  /// Bytes of the shortest text.
  int64_t least() const { return least_; }
  /// The ids that may come behind a text, which can be completed with fewer than `left` more.
  TokenSet allowed(const JsonMatcher& behind, int64_t left);
  /// Bytes of memory that it takes: the grammar, and what was found so far.
  int64_t size() const;

 private:
  // Bytes that are needed behind each token, kNotAllowed for one that may not come. Most tokens of
  // plain characters with as many of them have the same.
  struct Place {
    std::vector<uint16_t> plain = {};  // by the number of characters - 1; behind them kNotAllowed
    std::vector<std::pair<int32_t, uint16_t>> others = {};  // tokens of which that is wrong
    int64_t size() const;
  };

  std::shared_ptr<const Place> place(const JsonMatcher& matcher);
  std::vector<uint16_t> rests_behind(const JsonMatcher& matcher) const;
  Place packed(const std::vector<uint16_t>& rests) const;
  void take_characters(const JsonMatcher& matcher, std::vector<uint16_t>& rests,
                       std::vector<bool>& is_known) const;
  void take_key(const JsonMatcher& matcher, std::vector<uint16_t>& rests,
                std::vector<bool>& is_known) const;
  void walk(const JsonMatcher& matcher, std::vector<uint16_t>& rests,
            const std::vector<bool>& is_known) const;

  const JsonGrammar grammar_;
  const std::shared_ptr<const TokenBytes> bytes_;
  const int64_t vocab_, least_;
  mutable std::mutex mutex_;  // of all below
  std::unordered_map<std::string, std::shared_ptr<const Place>> places_;
  int64_t places_size_ = 0;
};

}  // namespace heddle
