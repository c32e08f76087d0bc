// The vocabulary as a tree of bytes, walked with the grammar; what was found for a place in it is
// kept, packed.
#include "heddle/infer/search/json_tokens.h"

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <list>

#include "heddle/base/error.h"
#include "heddle/base/utf8.h"
#include "heddle/infer/search/best_tokens.h"
#include "heddle/infer/words.h"

namespace heddle {

// The bytes of all tokens that add some, sorted, so that those that begin alike lie together.
struct TokenBytes {
  std::vector<std::pair<std::string, int32_t>> tokens = {};
  // Those of whole characters that may stand in strings as they are, and how many they are.
  std::vector<std::pair<int32_t, int32_t>> plain = {};
  std::vector<bool> is_plain = {};   // of each id
  std::vector<int32_t> marked = {};  // the others: with quotes, escapes, parts of characters
  std::array<bool, 256> has_byte = {};
};

namespace {

// Readings of bytes, for one place in a text, 0.1 to 0.3 µs each: what goes beyond makes fewer
// tokens possible, so that no schema holds up others.
constexpr int64_t kMostWork = 400'000;
constexpr uint16_t kNotAllowed = std::numeric_limits<uint16_t>::max();

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
      all.plain.emplace_back(id, static_cast<int32_t>(count_characters(bytes)));
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
  for (const auto& [bytes, id] : all.tokens) {
    if (!all.is_plain[static_cast<size_t>(id)]) all.marked.push_back(id);
  }
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
  for (const char c : grammar.texts) needed[static_cast<uint8_t>(c)] = true;
  for (const JsonRule& rule : grammar.rules) {
    if (rule.kind == JsonRule::Kind::free_key) std::fill_n(needed.begin() + 0x20, 0x5F, true);
  }
  for (size_t b = 0; b < 256; ++b) {
    check(!needed[b] || bytes.has_byte[b], ErrorKind::usage,
          "the tokenizer has no token for the byte 0x{:02x} alone, so that JSON cannot always be "
          "completed with it",
          b);
  }
}

uint16_t short_rest(const JsonMatcher& matcher) {
  return static_cast<uint16_t>(std::min<int64_t>(matcher.rest(), kNotAllowed - 1));
}

// Clients ask for the same again and again: those that anybody has, and the last.
class KnownTokens {
 public:
  // returns: nullptr for one that is not known
  std::shared_ptr<JsonTokens> find(const std::string& name) {
    std::shared_ptr<JsonTokens> dropped;
    const std::lock_guard lock(mutex_);
    return find_here(name, dropped);
  }
  // returns: that of another thread if it came first
  std::shared_ptr<JsonTokens> add(std::string name, std::shared_ptr<JsonTokens> made) {
    std::shared_ptr<JsonTokens> dropped;  // freed without the mutex
    const std::lock_guard lock(mutex_);
    if (auto there = find_here(name, dropped)) return there;
    all_.push_front({std::move(name), made, made});
    dropped = drop_last();
    all_.remove_if([](const Known& one) { return one.tokens.expired(); });
    return made;
  }

 private:
  static constexpr size_t kKept = 16;
  struct Known {
    std::string name;
    std::weak_ptr<JsonTokens> tokens;
    std::shared_ptr<JsonTokens> kept;  // by the first kKept
  };

  std::shared_ptr<JsonTokens> find_here(const std::string& name,
                                        std::shared_ptr<JsonTokens>& dropped) {
    const auto found = std::ranges::find(all_, name, &Known::name);
    if (found == all_.end()) return nullptr;
    auto there = found->tokens.lock();
    if (!there) return nullptr;
    found->kept = there;
    all_.splice(all_.begin(), all_, found);
    dropped = drop_last();
    return there;
  }
  // One came to the front, so one at most is kept beyond kKept.
  std::shared_ptr<JsonTokens> drop_last() {
    return all_.size() > kKept ? std::move(std::next(all_.begin(), kKept)->kept) : nullptr;
  }

  std::mutex mutex_;      // of all below
  std::list<Known> all_;  // the last that was asked for first
};

}  // namespace

JsonTokens::JsonTokens(JsonGrammar grammar, std::shared_ptr<const TokenBytes> bytes, int64_t vocab)
    : grammar_(std::move(grammar)),
      bytes_(std::move(bytes)),
      vocab_(vocab),
      least_(JsonMatcher(grammar_).rest()) {
  check_bytes(grammar_, *bytes_);
}

std::shared_ptr<JsonTokens> JsonTokens::of(const Json& schema, const Tokenizer& tokenizer,
                                           int64_t vocab, std::span<const int32_t> ends) {
  constexpr size_t kMostKept = 1 << 18;  // of a larger one each has its own
  static KnownTokens known;
  std::string name = fmt::format("{} {} {} {}", tokenizer.fingerprint(), vocab,
                                 fmt::join(ends, ","), schema.dump());
  if (auto there = known.find(name)) return there;
  auto made = std::make_shared<JsonTokens>(json_grammar(schema),
                                           shared_bytes(tokenizer, vocab, ends), vocab);
  if (name.size() + static_cast<size_t>(made->size()) > kMostKept) return made;
  return known.add(std::move(name), std::move(made));
}

TokenSet JsonTokens::allowed(const JsonMatcher& behind, int64_t left) {
  TokenSet set(vocab_);
  const std::shared_ptr<const Place> here = place(behind);
  const auto most = std::ssize(here->plain);
  const auto is_allowed = [&](uint16_t rest) { return rest != kNotAllowed && rest < left; };
  if (most > 0) {
    for (const auto& [id, count] : bytes_->plain) {
      if (count <= most && is_allowed(here->plain[static_cast<size_t>(count - 1)])) set.add(id);
    }
  }
  for (const auto& [id, rest] : here->others) is_allowed(rest) ? set.add(id) : set.remove(id);
  return set;
}

int64_t JsonTokens::size() const {
  const std::lock_guard lock(mutex_);
  return grammar_.size() + places_size_;
}

int64_t JsonTokens::Place::size() const {
  return static_cast<int64_t>(sizeof(Place) + plain.capacity() * sizeof(plain[0]) +
                              others.capacity() * sizeof(others[0]));
}

// --- a place -------------------------------------------------------------------------------------

// Found without the mutex: of two that look for the same the first stays.
std::shared_ptr<const JsonTokens::Place> JsonTokens::place(const JsonMatcher& matcher) {
  std::string name = matcher.identity();
  const auto known = [&] {
    const auto found = places_.find(name);
    return found == places_.end() ? nullptr : found->second;
  };
  {
    const std::lock_guard lock(mutex_);
    if (auto there = known()) return there;
  }
  auto made = std::make_shared<const Place>(packed(rests_behind(matcher)));
  decltype(places_) dropped;  // freed without the mutex
  const std::lock_guard lock(mutex_);
  if (auto there = known()) return there;
  constexpr int64_t kNode = 80;  // of the table, about
  const int64_t size = made->size() + kNode + std::ssize(name);
  if (places_size_ + size > kMostBytes) dropped.swap(places_), places_size_ = 0;
  places_size_ += size;
  places_.emplace(std::move(name), made);
  return made;
}

// The rest of most plain tokens of a length, found by majority (Boyer, Moore 1991): one that is
// none costs memory only.
JsonTokens::Place JsonTokens::packed(const std::vector<uint16_t>& rests) const {
  Place place;
  std::vector<int64_t> votes;
  for (const auto& [id, count] : bytes_->plain) {
    const auto at = static_cast<size_t>(count - 1);
    if (votes.size() <= at) votes.resize(at + 1), place.plain.resize(at + 1, kNotAllowed);
    const uint16_t rest = rests[static_cast<size_t>(id)];
    if (votes[at] == 0) place.plain[at] = rest;
    votes[at] += rest == place.plain[at] ? 1 : -1;
  }
  while (!place.plain.empty() && place.plain.back() == kNotAllowed) place.plain.pop_back();
  for (const auto& [id, count] : bytes_->plain) {
    const auto at = static_cast<size_t>(count - 1);
    const uint16_t likely = at < place.plain.size() ? place.plain[at] : kNotAllowed;
    if (rests[static_cast<size_t>(id)] == likely) continue;
    place.others.emplace_back(id, rests[static_cast<size_t>(id)]);
  }
  for (const int32_t id : bytes_->marked) {
    const uint16_t rest = rests[static_cast<size_t>(id)];
    if (rest != kNotAllowed) place.others.emplace_back(id, rest);
  }
  place.plain.shrink_to_fit(), place.others.shrink_to_fit();
  return place;
}

std::vector<uint16_t> JsonTokens::rests_behind(const JsonMatcher& matcher) const {
  std::vector<uint16_t> rests(static_cast<size_t>(vocab_), kNotAllowed);
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
void JsonTokens::take_characters(const JsonMatcher& matcher, std::vector<uint16_t>& rests,
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
void JsonTokens::take_key(const JsonMatcher& matcher, std::vector<uint16_t>& rests,
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
void JsonTokens::walk(const JsonMatcher& matcher, std::vector<uint16_t>& rests,
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

}  // namespace heddle
