// Tokens that are found in a text before anything else is done with it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "heddle/base/json/json.h"
#include "heddle/text/pipeline/normalizer.h"
#include "heddle/text/subwords/vocabulary.h"

namespace heddle {

struct AddedToken {
  std::string content;
  bool single_word = false;  ///< not beside letters or digits
  bool lstrip = false;       ///< takes the white space before it
  bool rstrip = false;       ///< and behind it
  bool normalized = true;    ///< is looked for in the normalized text, itself normalized
  bool special = false;      ///< decoding may leave it out
};

/// {"content": .., "special": ..}, or its content alone, which is then a special token.
/// Errors: data if it has no content or an empty one.
AddedToken read_added_token(const Json& json, const std::string& source);

class AddedTokens {
 public:
  /// Errors: data if the id has another token, or it is longer than kMaxTokenBytes.
  void add(int32_t id, AddedToken token, const std::string& source);
  /// Special tokens are not found in texts then: their names are text as any other.
  void hide_special() { hides_special_ = true; }
  /// To be called once, after the last add(). Tokens that are looked for in normalized text then
  /// have normalized contents, which decoding writes; find() knows what add() got too.
  void prepare(const Normalizer* normalizer);

  /// Calls f(part, id) for the parts of a text; id is -1 for what is between the tokens. Tokens
  /// that are looked for in normalized text are found if `is_normalized`, else the others; the
  /// longest of those that begin at a place is taken. A token in the white space that the one
  /// before it took is found there nevertheless, unless it takes the space before it too.
  void split(std::string_view text, bool is_normalized,
             const std::function<void(std::string_view, int32_t)>& f) const;

  /// nullptr if the id is that of no added token.
  const AddedToken* find(int32_t id) const;
  std::optional<int32_t> find(std::string_view content) const;
  bool is_special(int32_t id) const;
  /// The largest id; -1 if there is none.
  int32_t largest_id() const { return largest_; }

 private:
  std::unordered_map<int32_t, AddedToken> tokens_;
  StringMap<int32_t> ids_;
  TokenTrie plain_, normalized_;
  bool hides_special_ = false;
  int32_t largest_ = -1;
};

}  // namespace heddle
