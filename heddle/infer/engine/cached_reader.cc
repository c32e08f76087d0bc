// Passes over caches of keys and values.
#include "heddle/infer/engine/cached_reader.h"

#include <numeric>

#include "heddle/base/profile.h"
#include "heddle/models/encoder_decoder.h"
#include "heddle/ops/shape.h"

namespace heddle {
namespace {

using Ids = std::vector<int32_t>;

class CachedReader final : public SequenceReader {
 public:
  explicit CachedReader(const LanguageModel& model) : model_(model), cache_(0, model.layers()) {}

  void add(Sources sources, const nn::Run&) override {
    cache_.add(std::ssize(sources));
    count_ += std::ssize(sources);
  }
  void select(std::span<const int64_t> sequences) override {
    std::vector<int64_t> numbers = first(kept());
    for (const int64_t s : sequences) numbers.push_back(kept() + s);
    cache_.select(numbers);
    count_ = std::ssize(sequences);
  }
  void keep(int64_t i, int64_t tokens) override {
    std::vector<int64_t> numbers = first(kept() + count_);
    numbers.insert(numbers.begin() + kept(), kept() + i);
    cache_.select(numbers);
    kept_.push_back(tokens);
  }
  void forget_kept(int64_t i) override {
    std::vector<int64_t> numbers = first(kept() + count_);
    numbers.erase(numbers.begin() + i);
    cache_.select(numbers);
    kept_.erase(kept_.begin() + i);
  }
  void add_from_kept(int64_t i, int64_t tokens) override {
    std::vector<int64_t> numbers = first(kept() + count_);
    numbers.push_back(i);
    cache_.select(numbers);
    std::vector<int64_t> more(numbers.size());
    more.back() = kept_[static_cast<size_t>(i)] - tokens;
    cache_.drop_last(more);
    ++count_;
  }
  void limit_rows(int64_t rows) override { cache_.limit(rows); }
  int64_t rows() const override { return cache_.rows(); }
  bool checks_drafts() const override { return model_.reads_ahead(); }
  bool can_keep() const override { return checks_drafts(); }
  void drop_last(std::span<const int64_t> counts) override {
    cache_.drop_last(behind_kept(counts));
  }

  Tensor read(std::span<const int32_t> ids, const Segments& tokens,
              std::span<const int64_t> answers, const nn::Run& run) override {
    const Segments all =
        kept_.empty() ? tokens : Segments::from_lengths(behind_kept(lengths_of(tokens)));
    cache_.extend(all);
    const bool is_all = std::reduce(answers.begin(), answers.end()) == tokens.rows();
    const std::vector<int64_t> asked = is_all ? std::vector<int64_t>() : behind_kept(answers);
    return model_.hidden({.ids = ids,
                          .segments = &all,
                          .position_ids = cache_.position_ids(),
                          .cache = &cache_,
                          .answers = asked},
                         run);
  }

 private:
  int64_t kept() const { return std::ssize(kept_); }
  static std::vector<int64_t> first(int64_t n) {
    std::vector<int64_t> numbers(static_cast<size_t>(n));
    std::iota(numbers.begin(), numbers.end(), int64_t{0});
    return numbers;
  }
  static std::vector<int64_t> lengths_of(const Segments& segments) {
    std::vector<int64_t> lengths;
    for (int64_t i = 0; i < segments.count(); ++i) lengths.push_back(segments.length(i));
    return lengths;
  }
  // A number for each sequence of the cache: none of those that are kept.
  std::vector<int64_t> behind_kept(std::span<const int64_t> numbers) const {
    std::vector<int64_t> all(kept_.size());
    all.insert(all.end(), numbers.begin(), numbers.end());
    return all;
  }

  const LanguageModel& model_;
  nn::KvCache cache_;          // sequences that are kept, then the others
  std::vector<int64_t> kept_;  // tokens of each
  int64_t count_ = 0;          // of the others
};

// A sequence is a translation that begins; those that fork have the same source.
class TranslationReader final : public SequenceReader {
 public:
  explicit TranslationReader(const EncoderDecoder& model)
      : model_(model),
        tokens_(0, model.facts().decoder_layers),
        sources_(model.facts().decoder_layers) {}

  void add(Sources sources, const nn::Run& run) override {
    const ProfilePhase phase("encode");
    Ids ids, rows;
    std::vector<int64_t> lengths;
    std::vector<Tensor> memories;
    for (const Source& source : sources) {
      ids.insert(ids.end(), source.ids.begin(), source.ids.end());
      if (source.memory.defined()) memories.push_back(source.memory);
      lengths.push_back(source.memory.defined() ? source.memory.size(0) : std::ssize(source.ids));
      auto taken = std::make_shared<Ids>();
      source_pool_.take(lengths.back(), *taken);
      rows.insert(rows.end(), taken->begin(), taken->end());
      source_rows_.push_back(std::move(taken));
    }
    const Segments segments = Segments::from_lengths(lengths);
    const Tensor memory = memories.empty()
                              ? model_.encode(nn::TokenRows{.ids = ids, .segments = &segments}, run)
                              : concat(memories, 0);
    model_.add_sources(sources_, memory, segments, rows, run);
    tokens_.add(std::ssize(sources));
  }

  bool checks_drafts() const override { return true; }
  void drop_last(std::span<const int64_t> counts) override { tokens_.drop_last(counts); }

  Tensor read(std::span<const int32_t> ids, const Segments& tokens,
              std::span<const int64_t> answers, const nn::Run& run) override {
    tokens_.extend(tokens);
    Ids rows;
    std::vector<int64_t> queries, keys;  // of each source
    for (size_t i = 0; i < source_rows_.size(); ++i) {
      const Ids& source = *source_rows_[i];
      if (i == 0 || source_rows_[i] != source_rows_[i - 1]) {
        rows.insert(rows.end(), source.begin(), source.end());
        keys.push_back(std::ssize(source));
        queries.push_back(0);
      }
      queries.back() += tokens.length(static_cast<int64_t>(i));
    }
    const Segments of_sources = Segments::from_lengths(keys);
    const Segments asking = Segments::from_lengths(queries);
    nn::TokenRows own{
        .ids = ids, .segments = &tokens, .position_ids = tokens_.position_ids(), .cache = &tokens_};
    const Tensor h = model_.step(own, sources_, {&asking, &of_sources, rows}, run);
    own.answers = answers;
    return h.size(0) == std::reduce(answers.begin(), answers.end()) ? h : keep_answers(h, own);
  }

  void select(std::span<const int64_t> sequences) override {
    tokens_.select(sequences);
    std::vector<std::shared_ptr<Ids>> selected;
    for (const int64_t s : sequences) selected.push_back(source_rows_[static_cast<size_t>(s)]);
    source_rows_.swap(selected);
    for (std::shared_ptr<Ids>& rows : selected) {  // the last holder gives them back
      if (rows.use_count() == 1) source_pool_.give_back(*rows);
      rows.reset();
    }
  }

  void limit_rows(int64_t rows) override {
    tokens_.limit(rows);
    for (nn::RowCache& layer : sources_) layer.limit(rows);
  }
  int64_t rows() const override { return tokens_.rows() + source_pool_.held(); }

 private:
  const EncoderDecoder& model_;
  nn::KvCache tokens_;
  std::vector<nn::RowCache> sources_;  // of each layer
  nn::RowPool source_pool_;
  std::vector<std::shared_ptr<Ids>> source_rows_;  // of each sequence; of one source the same
};

}  // namespace

std::unique_ptr<SequenceReader> make_cached_reader(const LanguageModel& model) {
  return std::make_unique<CachedReader>(model);
}

std::unique_ptr<SequenceReader> make_cached_reader(const EncoderDecoder& model) {
  return std::make_unique<TranslationReader>(model);
}

}  // namespace heddle
