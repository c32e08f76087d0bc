// A unigram language model over tokens — Kudo 2018, "Subword Regularization".
#include <algorithm>
#include <cmath>
#include <limits>

#include "heddle/base/error.h"
#include "heddle/base/utf8.h"
#include "heddle/text/subwords/subword_model.h"

namespace heddle {

namespace {

constexpr double kUnkPenalty = 10.0;

/// The best segmentation of a text up to some place.
struct Best {
  double score = 0;
  int64_t begin = -1;  // of its last token; -1: the place cannot be reached
  int32_t id = -1;     // of that token; kUnknown
};

constexpr int32_t kUnknown = -2;

class Unigram final : public SubwordModel {
 public:
  Unigram(Vocabulary vocabulary, std::vector<double> scores, UnigramOptions options,
          const std::string& source)
      : SubwordModel(std::move(vocabulary)),
        scores_(std::move(scores)),
        byte_fallback_(options.byte_fallback),
        source_(source) {
    const int64_t size = this->vocabulary().size();
    if (options.unk) {
      check(*options.unk >= 0 && *options.unk < size, ErrorKind::data,
            "{}: unk_id is {}, but the ids are 0 to {}", source, *options.unk, size - 1);
      unk_ = static_cast<int32_t>(*options.unk);
    }
    double least = std::numeric_limits<double>::infinity();
    for (int64_t id = 0; id < size; ++id) {
      check(std::isfinite(scores_[id]) && std::abs(scores_[id]) < 1e100, ErrorKind::data,
            "{}: the score of token {} is {}; a log probability is needed", source, id,
            scores_[id]);
      least = std::min(least, scores_[id]);
      const std::string& token = *this->vocabulary().token(static_cast<int32_t>(id));
      if (!token.empty()) trie_.add(token, static_cast<int32_t>(id));
    }
    unk_score_ = least - kUnkPenalty;
  }

  void encode(std::string_view text, std::vector<int32_t>& ids) const override {
    const std::vector<Best> best = paths(text);
    struct Part {
      size_t begin, end;
      int32_t id;
    };
    std::vector<Part> parts;  // from the last to the first
    for (size_t end = text.size(); end > 0;) {
      const Best& b = best[end];
      const auto begin = static_cast<size_t>(b.begin);
      const int32_t id = b.id == unk_ ? kUnknown : b.id;
      if (id == kUnknown && unk_ && !parts.empty() && parts.back().id == kUnknown) {
        parts.back().begin = begin;
      } else {
        parts.push_back({begin, end, id});
      }
      end = begin;
    }
    for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
      if (part->id == kUnknown) {
        append_unknown(text.substr(part->begin, part->end - part->begin), ids);
      } else {
        ids.push_back(part->id);
      }
    }
  }

  std::optional<int32_t> unk() const override { return unk_; }

 private:
  /// Viterbi: by place in the text.
  std::vector<Best> paths(std::string_view text) const {
    std::vector<Best> best(text.size() + 1);
    const auto offer = [&](size_t end, double score, size_t begin, int32_t id) {
      if (best[end].begin >= 0 && !(score > best[end].score)) return;
      best[end] = {score, static_cast<int64_t>(begin), id};
    };
    for (size_t begin = 0; begin < text.size();) {
      size_t next = begin;
      next_code_point(text, next);
      bool has_single = false;  // a token of one character
      trie_.each_prefix(text.substr(begin), [&](size_t length, int32_t id) {
        offer(begin + length, scores_[id] + best[begin].score, begin, id);
        has_single = has_single || length == next - begin;
      });
      if (!has_single) offer(next, unk_score_ + best[begin].score, begin, kUnknown);
      begin = next;
    }
    return best;
  }

  void append_unknown(std::string_view text, std::vector<int32_t>& ids) const {
    if (const auto id = vocabulary().find(text)) {  // tokens of several unknown characters
      ids.push_back(*id);
      return;
    }
    if (const auto bytes = byte_fallback_ ? vocabulary().find_bytes(text) : std::nullopt) {
      ids.insert(ids.end(), bytes->begin(), bytes->end());
      return;
    }
    check(unk_.has_value(), ErrorKind::data,
          "{}: '{}' has no token, and the model has no token for unknown characters", source_,
          text);
    ids.push_back(*unk_);
  }

  std::vector<double> scores_;
  double unk_score_;
  std::optional<int32_t> unk_;
  bool byte_fallback_;
  std::string source_;
  TokenTrie trie_;
};

}  // namespace

std::unique_ptr<SubwordModel> make_unigram(Vocabulary vocabulary, std::vector<double> scores,
                                           UnigramOptions options, const std::string& source) {
  return std::make_unique<Unigram>(std::move(vocabulary), std::move(scores), options, source);
}

}  // namespace heddle
