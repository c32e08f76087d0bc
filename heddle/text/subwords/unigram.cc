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
    std::vector<Part> parts;
    for (size_t end = text.size(); end > 0; end = parts.back().begin) {
      add_part({static_cast<size_t>(best[end].begin), end, best[end].id}, parts);
    }
    append_parts(text, parts, ids);
  }

  // Forwards the weight of all segmentations up to each place, backwards a token at a time.
  void sample(std::string_view text, double rate, RngStream& random,
              std::vector<int32_t>& ids) const override {
    struct Edge {
      size_t begin;
      int32_t id;
      double weight;
    };
    constexpr double kNothing = -std::numeric_limits<double>::infinity();
    std::vector<std::vector<Edge>> edges(text.size() + 1);
    std::vector<double> weight(text.size() + 1, kNothing);
    weight[0] = 0;
    each_token(text, [&](size_t begin, size_t end, int32_t id, double score) {
      const double own = rate * score + weight[begin];
      edges[end].push_back({begin, id, own});
      const double high = std::max(weight[end], own), low = std::min(weight[end], own);
      weight[end] = low == kNothing ? high : high + std::log1p(std::exp(low - high));
    });
    std::vector<Part> parts;
    for (size_t end = text.size(); end > 0; end = parts.back().begin) {
      double left = static_cast<double>(random.uniform());
      const Edge* chosen = &edges[end].back();
      for (const Edge& edge : edges[end]) {
        left -= std::exp(edge.weight - weight[end]);
        if (left >= 0) continue;
        chosen = &edge;
        break;
      }
      add_part({chosen->begin, end, chosen->id}, parts);
    }
    append_parts(text, parts, ids);
  }

  std::optional<int32_t> unk() const override { return unk_; }

 private:
  struct Part {
    size_t begin, end;
    int32_t id;
  };

  /// Adds a part before the others; unknown ones side by side are one.
  void add_part(Part part, std::vector<Part>& parts) const {
    if (part.id == unk_) part.id = kUnknown;
    if (part.id == kUnknown && unk_ && !parts.empty() && parts.back().id == kUnknown) {
      parts.back().begin = part.begin;
    } else {
      parts.push_back(part);
    }
  }

  /// The ids of parts, which stand from the last to the first.
  void append_parts(std::string_view text, const std::vector<Part>& parts,
                    std::vector<int32_t>& ids) const {
    for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
      if (part->id == kUnknown) {
        append_unknown(text.substr(part->begin, part->end - part->begin), ids);
      } else {
        ids.push_back(part->id);
      }
    }
  }

  /// Calls f(begin, end, id, score) for each token that stands in the text, in order of `begin`.
  template <class F>
  void each_token(std::string_view text, const F& f) const {
    for (size_t begin = 0; begin < text.size();) {
      size_t next = begin;
      next_code_point(text, next);
      bool has_single = false;  // a token of one character
      trie_.each_prefix(text.substr(begin), [&](size_t length, int32_t id) {
        f(begin, begin + length, id, scores_[id]);
        has_single = has_single || length == next - begin;
      });
      if (!has_single) f(begin, next, kUnknown, unk_score_);
      begin = next;
    }
  }

  /// Viterbi: by place in the text.
  std::vector<Best> paths(std::string_view text) const {
    std::vector<Best> best(text.size() + 1);
    each_token(text, [&](size_t begin, size_t end, int32_t id, double score) {
      const double own = score + best[begin].score;
      if (best[end].begin >= 0 && !(own > best[end].score)) return;
      best[end] = {own, static_cast<int64_t>(begin), id};
    });
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
