// Vocabularies, and the models that turn a pre-token, mostly a word, into ids of one.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "heddle/base/json/json.h"
#include "heddle/base/rng.h"

namespace heddle {

/// Lets maps from strings be asked for string_views.
struct StringHash {
  using is_transparent = void;
  size_t operator()(std::string_view s) const { return std::hash<std::string_view>()(s); }
};
template <class T>
using StringMap = std::unordered_map<std::string, T, StringHash, std::equal_to<>>;

/// The longest token: a text is compared with all that begin at each of its places.
inline constexpr size_t kMaxTokenBytes = 4096;

/// Tokens and ids, one to one; ids may leave gaps.
class Vocabulary {
 public:
  Vocabulary() = default;
  Vocabulary(Vocabulary&&) = default;
  Vocabulary& operator=(Vocabulary&&) = default;

  /// An object of tokens and their ids, as in vocab.json. `source` opens the messages.
  /// Errors: data if it is empty, a token has more than kMaxTokenBytes, or an id is negative, comes
  /// twice, or is far beyond their number.
  static Vocabulary of_json(const Json& tokens, const std::string& source);
  /// Tokens with the ids 0, 1, ... Errors: data if one comes twice or is too long.
  static Vocabulary of_list(std::vector<std::string> tokens, const std::string& source);
  /// The lines of a vocab.txt: of a token that comes twice the later counts, and the id of the
  /// earlier is a gap, as transformers has it; there is a warning. Errors: data if one is too long.
  static Vocabulary of_lines(std::vector<std::string> tokens, const std::string& source);

  std::optional<int32_t> find(std::string_view token) const {
    const auto at = ids_.find(token);
    return at == ids_.end() ? std::nullopt : std::optional<int32_t>(at->second);
  }
  /// nullptr for a gap, or an id beyond.
  const std::string* token(int32_t id) const {
    return id >= 0 && static_cast<size_t>(id) < tokens_.size() ? tokens_[id] : nullptr;
  }
  /// One more than the largest id.
  int64_t size() const { return static_cast<int64_t>(tokens_.size()); }
  /// The ids of the tokens of a text's bytes, "<0x0A>"; nothing if one is missing.
  std::optional<std::vector<int32_t>> find_bytes(std::string_view text) const;
  /// The id of the token for what is unknown. Errors: data if it is not there.
  int32_t find_unk(const std::string& unk, const std::string& source) const;

 private:
  void add(std::string token, int64_t id, const std::string& source);

  StringMap<int32_t> ids_;
  std::vector<const std::string*> tokens_;  // keys of ids_, which stay where they are
};

/// Errors: data unless the id could be one of a vocabulary of so many entries: 0 or more, and not
/// so large that a table by id would be mostly gaps.
void check_token_id(int64_t id, size_t entries, std::string_view token, const std::string& source);

/// A trie over bytes; its edges lie in one hash table.
class TokenTrie {
 public:
  /// Adds a string, which is not empty; a later value replaces an earlier one.
  void add(std::string_view text, int32_t value);

  bool is_empty() const { return values_.size() == 1; }

  /// Calls f(length, value) for each string that begins the text, the shortest first.
  template <class F>
  void each_prefix(std::string_view text, const F& f) const {
    uint32_t node = 0;
    for (size_t i = 0; i < text.size(); ++i) {
      node = child(node, static_cast<unsigned char>(text[i]));
      if (node == 0) return;
      if (values_[node] >= 0) f(i + 1, values_[node]);
    }
  }

 private:
  struct Edge {
    uint64_t key = 0;  // node and byte, plus one; 0: no edge
    uint32_t to = 0;
  };

  uint32_t child(uint32_t node, unsigned char byte) const { return edges_[place(node, byte)].to; }
  size_t place(uint32_t node, unsigned char byte) const;
  void grow();

  std::vector<Edge> edges_ = std::vector<Edge>(64);
  std::vector<int32_t> values_ = {-1};  // by node; -1: no string ends here
};

class SubwordModel {
 public:
  virtual ~SubwordModel() = default;
  /// Appends the ids of a text, which is not empty. Errors: data if a part of it is unknown and the
  /// model has no token for that.
  virtual void encode(std::string_view text, std::vector<int32_t>& ids) const = 0;
  /// Appends the ids of one of its segmentations, drawn; how, `rate` says (see make_bpe(),
  /// make_unigram()). Of other models there is one alone, that of encode().
  virtual void sample(std::string_view text, double rate, RngStream& random,
                      std::vector<int32_t>& ids) const {
    static_cast<void>(rate);
    static_cast<void>(random);
    encode(text, ids);
  }
  /// The token for what is unknown.
  virtual std::optional<int32_t> unk() const = 0;

  const Vocabulary& vocabulary() const { return vocabulary_; }

 protected:
  explicit SubwordModel(Vocabulary vocabulary) : vocabulary_(std::move(vocabulary)) {}

 private:
  Vocabulary vocabulary_;
};

struct BpeOptions {
  std::string unk;                        ///< token for characters without one; "": they vanish
  std::string continuing_subword_prefix;  ///< before a word's characters, save the first
  std::string end_of_word_suffix;         ///< behind a word's last character
  bool fuse_unk = false;                  ///< unknown characters side by side are one token
  bool byte_fallback = false;             ///< unknown characters are their bytes, "<0x0A>"
  bool ignore_merges = false;  ///< a word that is a token is that token, whatever merges say
};

using Merge = std::pair<std::string, std::string>;

/// Byte pair encoding: the pair of neighbours that stands first in `merges` is joined, the leftmost
/// first, until none is left; n log n in the length of the text. Of what could be joined sample()
/// leaves out each with probability `rate` (from 0 to 1) before each step, and ends where nothing
/// is left (BPE-dropout: Provilkov et al. 2020, section 3); quadratic in the length.
/// Errors: data if a merge has an empty part, or joins or gives tokens that are not in the
/// vocabulary, or if `unk` is not. Source: Sennrich et al. 2016, section 3.2.
std::unique_ptr<SubwordModel> make_bpe(Vocabulary vocabulary, const std::vector<Merge>& merges,
                                       BpeOptions options, const std::string& source);

struct WordPieceOptions {
  std::string unk = "[UNK]";
  std::string continuing_subword_prefix = "##";
  int64_t max_characters = 100;  ///< longer words are unknown
};

/// The longest token at the front, then the longest at the front of the rest; a word that cannot be
/// covered so is unknown as a whole. Source: Schuster & Nakajima 2012; Devlin et al. 2018.
std::unique_ptr<SubwordModel> make_word_piece(Vocabulary vocabulary, WordPieceOptions options,
                                              const std::string& source);

struct UnigramOptions {
  std::optional<int64_t> unk;  ///< for characters that no token has
  bool byte_fallback = false;
};

/// The most probable segmentation; scores are log probabilities of the tokens, by id. An unknown
/// character costs 10 more than the least probable token; those side by side are one token.
/// sample() draws a segmentation by its probability to the power of `rate` (above 0).
/// Errors: data if a score is not finite or unk is no id. Source: Kudo 2018, section 3.2.
std::unique_ptr<SubwordModel> make_unigram(Vocabulary vocabulary, std::vector<double> scores,
                                           UnigramOptions options, const std::string& source);

/// A text is a token or unknown.
std::unique_ptr<SubwordModel> make_word_level(Vocabulary vocabulary, const std::string& unk,
                                              const std::string& source);

}  // namespace heddle
