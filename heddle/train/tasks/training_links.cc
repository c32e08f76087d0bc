// Words of tokens, their links, and where these stand among the weights of a batch.
#include "heddle/train/tasks/training_links.h"

#include <algorithm>
#include <utility>

#include "heddle/base/parallel.h"
#include "heddle/infer/words.h"

namespace heddle::train {
namespace {

std::vector<std::string> words_of(const Tokenizer& tokenizer, std::span<const int32_t> ids) {
  std::vector<std::string> words;
  for (const WordSpan& word : split_words(tokenizer, ids)) {
    words.push_back(word_text(tokenizer, ids, word));
  }
  return words;
}

// Of one side of a corpus, a line a pair.
template <class View>
void add_words(const Tokenizer& tokenizer, int64_t pairs, const View& view, WordLines& lines) {
  constexpr int64_t kBlock = 1 << 12;
  std::vector<std::vector<std::string>> words;
  for (int64_t first = 0; first < pairs; first += kBlock) {
    words.resize(static_cast<size_t>(std::min(kBlock, pairs - first)));
    parallel_for(std::ssize(words), [&](int64_t i) {
      words[static_cast<size_t>(i)] = words_of(tokenizer, view(first + i).ids());
    });
    for (const std::vector<std::string>& line : words) lines.add(line);
  }
}

// Where the weights of a pair stand.
struct PairPlace {
  int64_t first = 0;                             // behind those of the pairs before
  int64_t sources = 0;                           // rows of its source, marks included
  int64_t before_source = 0, before_target = 0;  // rows in front of those of the ids

  void add(const Alignment& links, std::span<const WordSpan> source,
           std::span<const WordSpan> target, WantedWeights& wanted) const {
    for (int32_t t = 0; t < std::ssize(target); ++t) {
      std::vector<int64_t> tokens;
      for (const AlignmentLink& link : links) {
        if (link.target != t) continue;
        const WordSpan& word = source[static_cast<size_t>(link.source)];
        for (int64_t j = word.begin; j < word.end; ++j) tokens.push_back(before_source + j);
      }
      if (tokens.empty()) continue;
      std::ranges::sort(tokens);  // a token may hold the end of one word and the next one's first
      tokens.erase(std::ranges::unique(tokens).begin(), tokens.end());
      for (int64_t i = target[t].begin; i < target[t].end; ++i) {
        for (const int64_t j : tokens) {
          wanted.places.push_back(first + (before_target + i) * sources + j);
        }
        wanted.begins.push_back(std::ssize(wanted.places));
      }
    }
  }
};

// The ids of a segment without its marks.
std::span<const int32_t> inside(std::span<const int32_t> ids, const Segments& segments, int64_t i,
                                size_t before, size_t behind) {
  const auto all =
      ids.subspan(static_cast<size_t>(segments.begin(i)), static_cast<size_t>(segments.length(i)));
  return all.subspan(before, all.size() - before - behind);
}

}  // namespace

TrainingLinks::TrainingLinks(const Corpora& corpora)
    : source_(corpora.tokenizer), target_(corpora.target()), marks_(corpora.marks) {
  const TokenizedCorpus& text = corpora.train;
  WordLines sources, targets;
  add_words(
      source_, text.size(), [&](int64_t i) { return text.source(i); }, sources);
  add_words(
      target_, text.size(), [&](int64_t i) { return text.target(i); }, targets);
  for (Alignment& links : align_lines(sources, targets, text.size(), "intersection", {})) {
    const int64_t pair = std::ssize(pairs_);
    pairs_.push_back({std::move(links), sources.line(pair).size(), targets.line(pair).size()});
  }
}

WantedWeights TrainingLinks::wanted(const TranslationBatch& batch) const {
  const auto pairs = batch.pairs();
  std::vector<PairPlace> places(static_cast<size_t>(pairs));
  for (int64_t i = 0, first = 0; i < pairs; ++i) {
    const int64_t sources = batch.source_segments.length(i);
    places[static_cast<size_t>(i)] = {first, sources, std::ssize(marks_.source_start),
                                      marks_.target_rows() - 1};
    first += sources * batch.target_segments.length(i);
  }
  std::vector<WantedWeights> each(places.size());
  parallel_for(pairs, [&](int64_t i) {
    const auto at = static_cast<size_t>(i);
    const auto source =
        split_words(source_, inside(batch.source, batch.source_segments, i,
                                    marks_.source_start.size(), marks_.source_end.size()));
    const auto target = split_words(target_, inside(batch.target_in, batch.target_segments, i,
                                                    static_cast<size_t>(marks_.target_rows()), 0));
    const PairLinks& pair = pairs_[static_cast<size_t>(batch.samples[at])];
    if (source.size() != pair.source_words || target.size() != pair.target_words) return;
    places[at].add(pair.links, source, target, each[at]);
  });
  WantedWeights all;
  for (const WantedWeights& of_pair : each) {
    const int64_t before = std::ssize(all.places);
    all.places.insert(all.places.end(), of_pair.places.begin(), of_pair.places.end());
    for (int64_t r = 1; r <= of_pair.rows(); ++r) {
      all.begins.push_back(before + of_pair.begins[static_cast<size_t>(r)]);
    }
  }
  return all;
}

}  // namespace heddle::train
