// Byte pair encoding — Sennrich et al. 2016, "Neural Machine Translation of Rare Words with Subword
// Units".
#include <algorithm>
#include <queue>
#include <unordered_map>

#include "heddle/base/error.h"
#include "heddle/base/utf8.h"
#include "heddle/text/subwords/subword_model.h"

namespace heddle {

namespace {

struct Joined {
  int32_t rank;  // place among the merges
  int32_t id;    // of what the two become
};

uint64_t pair_key(int32_t left, int32_t right) {
  return static_cast<uint64_t>(left) << 32 | static_cast<uint32_t>(right);
}

/// Symbols of a text as a list in which neighbours can be joined.
struct Symbol {
  int32_t id;
  int32_t previous, next;  // -1: none
  bool is_gone = false;
};

struct MergeCandidate {
  int32_t rank, at, id;
  bool operator<(const MergeCandidate& o) const {  // the queue gives the largest first
    return rank != o.rank ? rank > o.rank : at > o.at;
  }
};

class Bpe final : public SubwordModel {
 public:
  Bpe(Vocabulary vocabulary, const std::vector<Merge>& merges, BpeOptions options,
      const std::string& source)
      : SubwordModel(std::move(vocabulary)), options_(std::move(options)) {
    if (!options_.unk.empty()) unk_ = this->vocabulary().find_unk(options_.unk, source);
    merges_.reserve(merges.size());
    for (size_t i = 0; i < merges.size(); ++i) add_merge(merges[i], i, source);
  }

  void encode(std::string_view text, std::vector<int32_t>& ids) const override {
    if (options_.ignore_merges) {
      if (const auto id = vocabulary().find(text)) {
        ids.push_back(*id);
        return;
      }
    }
    append(
        symbols_of(text), [] { return false; }, ids);
  }

  // As SentencePiece draws: a merge that is left out comes back only where a neighbour changes.
  void sample(std::string_view text, double rate, RngStream& random,
              std::vector<int32_t>& ids) const override {
    append(
        symbols_of(text), [&] { return random.happens(rate); }, ids);
  }

  std::optional<int32_t> unk() const override { return unk_; }

 private:
  void add_merge(const Merge& merge, size_t number, const std::string& source) {
    const auto& [left, right] = merge;
    const std::string& prefix = options_.continuing_subword_prefix;
    check(!left.empty() && right.size() > prefix.size(), ErrorKind::data,
          "{}: merge {} joins '{}' and '{}'; neither may be empty", source, number + 1, left,
          right);
    const auto id_of = [&](const std::string& token, const char* which) {
      const auto id = vocabulary().find(token);
      check(id.has_value(), ErrorKind::data,
            "{}: merge {} ('{}' and '{}') {} '{}', which is not in "
            "the vocabulary",
            source, number + 1, left, right, which, token);
      return *id;
    };
    const int32_t left_id = id_of(left, "joins"), right_id = id_of(right, "joins");
    const int32_t id = id_of(left + right.substr(prefix.size()), "gives");
    merges_[pair_key(left_id, right_id)] = {static_cast<int32_t>(number), id};
  }

  std::vector<Symbol> symbols_of(std::string_view text) const {
    std::vector<Symbol> symbols;
    symbols.reserve(text.size());
    bool is_unk_pending = false;
    const auto add = [&](int32_t id) { symbols.push_back({.id = id, .previous = 0, .next = 0}); };
    const auto flush_unk = [&] {
      if (is_unk_pending) add(*unk_);
      is_unk_pending = false;
    };
    std::string decorated;
    for (size_t at = 0; at < text.size();) {
      const size_t begin = at;
      next_code_point(text, at);
      std::string_view character = text.substr(begin, at - begin);
      if (!options_.continuing_subword_prefix.empty() || !options_.end_of_word_suffix.empty()) {
        decorated = begin == 0 ? "" : options_.continuing_subword_prefix;
        decorated += character;
        if (at == text.size()) decorated += options_.end_of_word_suffix;
        character = decorated;
      }
      const auto id = vocabulary().find(character);
      const auto bytes =
          !id && options_.byte_fallback ? vocabulary().find_bytes(character) : std::nullopt;
      if (id) {
        flush_unk();
        add(*id);
      } else if (bytes) {
        std::ranges::for_each(*bytes, add);
      } else if (unk_) {
        if (!options_.fuse_unk) flush_unk();
        is_unk_pending = true;
      }
    }
    flush_unk();
    for (size_t i = 0; i < symbols.size(); ++i) {
      symbols[i].previous = static_cast<int32_t>(i) - 1;
      symbols[i].next = i + 1 < symbols.size() ? static_cast<int32_t>(i) + 1 : -1;
    }
    return symbols;
  }

  // Joins neighbours, those of the first merges first, but where `leaves_out` says no, and appends
  // what they become.
  template <class LeavesOut>
  void append(std::vector<Symbol> symbols, const LeavesOut& leaves_out,
              std::vector<int32_t>& ids) const {
    std::vector<MergeCandidate> first;
    for (size_t i = 0; i + 1 < symbols.size(); ++i) {
      if (const Joined* j = joined(symbols[i].id, symbols[i + 1].id)) {
        first.push_back({j->rank, static_cast<int32_t>(i), j->id});
      }
    }
    std::priority_queue<MergeCandidate> queue(std::less<MergeCandidate>(), std::move(first));
    const auto offer = [&](int32_t at, int32_t next) {
      if (at < 0 || next < 0) return;
      const Joined* j = joined(symbols[at].id, symbols[next].id);
      if (j != nullptr) queue.push({j->rank, at, j->id});
    };
    while (!queue.empty()) {
      const MergeCandidate best = queue.top();
      queue.pop();
      Symbol& left = symbols[best.at];
      if (left.is_gone || left.next < 0) continue;
      Symbol& right = symbols[left.next];
      const Joined* now = joined(left.id, right.id);
      if (now == nullptr || now->id != best.id) continue;  // one of the two was joined meanwhile
      if (leaves_out()) continue;
      left.id = best.id;
      left.next = right.next;
      right.is_gone = true;
      if (left.next >= 0) symbols[left.next].previous = best.at;
      offer(best.at, left.next);
      offer(left.previous, best.at);
    }
    for (const Symbol& symbol : symbols) {
      if (!symbol.is_gone) ids.push_back(symbol.id);
    }
  }

  const Joined* joined(int32_t left, int32_t right) const {
    const auto at = merges_.find(pair_key(left, right));
    return at == merges_.end() ? nullptr : &at->second;
  }

  BpeOptions options_;
  std::optional<int32_t> unk_;
  std::unordered_map<uint64_t, Joined> merges_;
};

}  // namespace

std::unique_ptr<SubwordModel> make_bpe(Vocabulary vocabulary, const std::vector<Merge>& merges,
                                       BpeOptions options, const std::string& source) {
  return std::make_unique<Bpe>(std::move(vocabulary), merges, std::move(options), source);
}

}  // namespace heddle
