// The vocabulary as a tree of bytes, walked with the grammar; what was found for a place in it is
// kept.
#include "heddle/infer/search/json_constraint.h"

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <list>
#include <mutex>
#include <unordered_map>

#include "heddle/base/error.h"
#include "heddle/base/utf8.h"
#include "heddle/infer/search/best_tokens.h"
#include "heddle/infer/search/json_matcher.h"
#include "heddle/infer/words.h"

namespace heddle {
namespace {

constexpr size_t kKeptStates = 64;
// Readings of bytes, for one place in a text, 0.1 to 0.3 µs each: what goes beyond makes fewer
// tokens possible, so that no schema holds up others.
constexpr int64_t kMostWork = 400'000;
constexpr uint16_t kNotAllowed = std::numeric_limits<uint16_t>::max();

// The bytes of all tokens that add some, sorted, so that those that begin alike lie together.
struct TokenBytes {
  std::vector<std::pair<std::string, int32_t>> tokens = {};
  // Those of whole characters that may stand in strings as they are, and how many they are.
  std::vector<std::pair<int32_t, int64_t>> plain = {};
  std::vector<bool> is_plain = {};  // of each id
  std::array<bool, 256> has_byte = {};
};

bool is_plain(const std::string& bytes) {
  return !first_invalid_utf8(bytes) && std::ranges::all_of(bytes, [](char c) {
    return static_cast<uint8_t>(c) >= 0x20 && c != 0x7F && c != '"' && c != '\\';
  });
}

TokenBytes bytes_of(const Tokenizer& tokenizer, int64_t vocab, std::span<const int32_t> ends) {
  TokenBytes all;
  all.is_plain.resize(static_cast<size_t>(vocab));
  for (int32_t id = 0; id < std::min<int64_t>(vocab, tokenizer.vocab_size()); ++id) {
    if (tokenizer.is_special(id) || id == tokenizer.unk_id() || contains(ends, id)) continue;
    std::string bytes = token_bytes(tokenizer, id);
    if (bytes.empty()) continue;
    if (bytes.size() == 1) all.has_byte[static_cast<uint8_t>(bytes[0])] = true;
    if (is_plain(bytes)) {
      all.plain.emplace_back(id, count_characters(bytes));
      all.is_plain[static_cast<size_t>(id)] = true;
    }
    all.tokens.emplace_back(std::move(bytes), id);
  }
  // A character that is begun must be possible to finish.
  if (!std::all_of(all.has_byte.begin() + 0x80, all.has_byte.begin() + 0xC0, std::identity())) {
    std::erase_if(all.tokens,
                  [](const auto& token) { return first_invalid_utf8(token.first).has_value(); });
  }
  std::ranges::sort(all.tokens);
  return all;
}

// That of a tokenizer is made once.
std::shared_ptr<const TokenBytes> shared_bytes(const Tokenizer& tokenizer, int64_t vocab,
                                               std::span<const int32_t> ends) {
  static std::mutex mutex;
  static std::list<std::pair<std::string, std::shared_ptr<const TokenBytes>>> known;
  const std::string name =
      fmt::format("{} {} {}", tokenizer.fingerprint(), vocab, fmt::join(ends, ","));
  const std::lock_guard lock(mutex);
  for (const auto& [other, bytes] : known) {
    if (other == name) return bytes;
  }
  known.emplace_front(name, std::make_shared<const TokenBytes>(bytes_of(tokenizer, vocab, ends)));
  if (known.size() > 8) known.pop_back();
  return known.front().second;
}

// Errors: usage if a text that the grammar asks for cannot be written byte by byte.
void check_bytes(const JsonGrammar& grammar, const TokenBytes& bytes) {
  std::array<bool, 256> needed = {};
  for (const char c : std::string_view("{}[]\":,-0123456789.e\\ a")) {
    needed[static_cast<uint8_t>(c)] = true;
  }
  for (const JsonRule& rule : grammar.rules) {
    for (const char c : rule.text) needed[static_cast<uint8_t>(c)] = true;
    if (rule.kind == JsonRule::Kind::free_key) std::fill_n(needed.begin() + 0x20, 0x5F, true);
  }
  for (size_t b = 0; b < 256; ++b) {
    check(!needed[b] || bytes.has_byte[b], ErrorKind::usage,
          "the tokenizer has no token for the byte 0x{:02x} alone, so that JSON cannot always be "
          "completed with it",
          b);
  }
}

class JsonConstraint final : public TokenConstraint {
 public:
  JsonConstraint(JsonGrammar grammar, std::shared_ptr<const TokenBytes> bytes,
                 const Tokenizer& tokenizer, int64_t vocab, std::vector<int32_t> ends)
      : grammar_(std::move(grammar)),
        bytes_(std::move(bytes)),
        tokenizer_(tokenizer),
        vocab_(vocab),
        ends_(std::move(ends)),
        least_(JsonMatcher(grammar_).rest()) {
    check_bytes(grammar_, *bytes_);
  }

  int64_t least_tokens() const override { return least_; }

  bool is_over(std::span<const int32_t> tokens) override {
    const std::lock_guard lock(mutex_);
    return behind(tokens).is_over();
  }

  TokenSet allowed(std::span<const int32_t> tokens, int64_t left) override {
    const std::lock_guard lock(mutex_);
    const JsonMatcher& matcher = behind(tokens);
    const std::vector<uint16_t>& rests = rests_behind(matcher);
    TokenSet set(vocab_);
    for (size_t id = 0; id < rests.size(); ++id) {
      if (rests[id] != kNotAllowed && rests[id] < left) set.add(static_cast<int32_t>(id));
    }
    if (matcher.is_whole()) {
      for (const int32_t end : ends_) set.add(end);
    }
    return set;
  }

 private:
  // The grammar behind an output: the one behind all of it but the last token is mostly known.
  const JsonMatcher& behind(std::span<const int32_t> tokens) {
    Ids ids(tokens.begin(), tokens.end());
    for (Known& known : recent_) {
      if (known.ids == ids) return known.matcher;
    }
    Known next{ids, JsonMatcher(grammar_)};
    size_t read = 0;
    for (const Known& known : recent_) {
      const bool is_before = known.ids.size() > read && known.ids.size() < ids.size() &&
                             std::equal(known.ids.begin(), known.ids.end(), ids.begin());
      if (is_before) next.matcher = known.matcher, read = known.ids.size();
    }
    for (; read < ids.size(); ++read) next.matcher.read(token_bytes(tokenizer_, ids[read]));
    recent_.push_front(std::move(next));
    if (recent_.size() > 64) recent_.pop_back();
    return recent_.front().matcher;
  }

  // Of each token the bytes that are needed behind it.
  const std::vector<uint16_t>& rests_behind(const JsonMatcher& matcher) {
    const std::string name = matcher.identity();
    const auto known = states_.find(name);
    if (known != states_.end()) return known->second;
    if (states_.size() >= kKeptStates) states_.clear();
    std::vector<uint16_t>& rests = states_[name];
    rests.assign(static_cast<size_t>(vocab_), kNotAllowed);
    std::vector<bool> is_known(rests.size());
    if (matcher.is_in_string()) {
      take_characters(matcher, rests, is_known);
    } else if (matcher.in_key() != nullptr) {
      take_key(matcher, rests, is_known);
    }
    // What a text can always be completed with comes first, the rest while there is time.
    for (const auto& [bytes, id] : bytes_->tokens) {
      if (bytes.size() != 1 || is_known[static_cast<size_t>(id)]) continue;
      const JsonMatcher next = matcher.behind(static_cast<uint8_t>(bytes[0]));
      if (next.is_possible()) rests[static_cast<size_t>(id)] = short_rest(next);
      is_known[static_cast<size_t>(id)] = true;
    }
    walk(matcher, rests, is_known);
    return rests;
  }

  // Tokens of characters in a string: they are alike but for their number.
  void take_characters(const JsonMatcher& matcher, std::vector<uint16_t>& rests,
                       std::vector<bool>& is_known) const {
    std::vector<uint16_t> behind;  // so many and one more
    JsonMatcher next = matcher;
    for (const auto& [id, count] : bytes_->plain) {
      while (std::ssize(behind) < count && next.is_possible()) {
        next = next.behind(static_cast<uint8_t>('a'));
        behind.push_back(next.is_possible() ? short_rest(next) : kNotAllowed);
      }
      const auto at = static_cast<size_t>(id);
      rests[at] = std::ssize(behind) < count ? kNotAllowed : behind[static_cast<size_t>(count - 1)];
      is_known[at] = true;
    }
  }

  // Tokens of characters in a key: alike, unless another key begins so.
  void take_key(const JsonMatcher& matcher, std::vector<uint16_t>& rests,
                std::vector<bool>& is_known) const {
    const JsonStack& key = *matcher.in_key();
    uint16_t other = kNotAllowed;
    std::string longer;
    for (const auto& [bytes, id] : bytes_->tokens) {
      const auto at = static_cast<size_t>(id);
      if (!bytes_->is_plain[at]) continue;
      longer = key.key + bytes;
      const bool may_be_known = std::ranges::any_of(
          key.keys->names, [&](const std::string& name) { return name.starts_with(longer); });
      if (may_be_known) continue;  // walked to
      if (other == kNotAllowed) {
        JsonMatcher next = matcher;
        next.read(bytes);
        other = short_rest(next);
      }
      rests[at] = other;
      is_known[at] = true;
    }
  }

  // Of the tokens that are not known, those that can be reached: bytes that begin alike are read
  // once.
  void walk(const JsonMatcher& matcher, std::vector<uint16_t>& rests,
            const std::vector<bool>& is_known) const {
    std::vector<JsonMatcher> path = {matcher};  // behind each of the bytes of `before`
    std::string_view before;
    size_t dead = std::numeric_limits<size_t>::max();  // so many of its bytes lead nowhere
    int64_t work = 0;
    for (const auto& [bytes, id] : bytes_->tokens) {
      if (is_known[static_cast<size_t>(id)]) continue;
      const auto same = static_cast<size_t>(
          std::mismatch(before.begin(), before.end(), bytes.begin(), bytes.end()).first -
          before.begin());
      before = bytes;
      if (same >= dead) continue;
      dead = std::numeric_limits<size_t>::max();
      path.resize(std::min(path.size(), same + 1), matcher);
      while (path.size() <= bytes.size()) {
        work += 4 + static_cast<int64_t>(path.back().readings());
        JsonMatcher next = path.back().behind(static_cast<uint8_t>(bytes[path.size() - 1]));
        if (!next.is_possible()) {
          dead = path.size();
          break;
        }
        work += static_cast<int64_t>(8 * next.readings());
        path.push_back(std::move(next));
      }
      if (path.size() == bytes.size() + 1) rests[static_cast<size_t>(id)] = short_rest(path.back());
      if (work > kMostWork) return;
    }
  }
  static uint16_t short_rest(const JsonMatcher& matcher) {
    return static_cast<uint16_t>(std::min<int64_t>(matcher.rest(), kNotAllowed - 1));
  }

  using Ids = std::vector<int32_t>;
  struct Known {
    Ids ids;
    JsonMatcher matcher;
  };

  const JsonGrammar grammar_;
  const std::shared_ptr<const TokenBytes> bytes_;
  const Tokenizer tokenizer_;
  const int64_t vocab_;
  const std::vector<int32_t> ends_;
  const int64_t least_;
  std::mutex mutex_;  // of all below
  std::list<Known> recent_;
  std::unordered_map<std::string, std::vector<uint16_t>> states_;
};

}  // namespace

std::unique_ptr<TokenConstraint> make_json_constraint(const Json& schema,
                                                      const Tokenizer& tokenizer, int64_t vocab,
                                                      std::vector<int32_t> ends) {
  const std::string& kind = tokenizer.kind();
  const bool is_of_bytes = kind.find("BPE") != std::string::npos ||
                           kind.find("SentencePiece") != std::string::npos ||
                           kind.find("nigram") != std::string::npos;
  check(is_of_bytes, ErrorKind::usage,
        "JSON cannot be asked of a {} tokenizer, whose tokens are not the bytes of a text", kind);
  return std::make_unique<JsonConstraint>(json_grammar(schema),
                                          shared_bytes(tokenizer, vocab, ends), tokenizer, vocab,
                                          std::move(ends));
}

}  // namespace heddle
