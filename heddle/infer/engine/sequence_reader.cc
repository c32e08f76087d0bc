// Caches of keys, or memories of states.
#include "heddle/infer/engine/sequence_reader.h"

#include <algorithm>
#include <numeric>

#include "heddle/base/profile.h"
#include "heddle/models/encoder_decoder.h"
#include "heddle/nn/relative/relative_rows.h"
#include "heddle/ops/embedding.h"

namespace heddle {
namespace {

using Ids = std::vector<int32_t>;
using Sources = std::span<const std::span<const int32_t>>;

// h: [rows of tokens, width]    returns: [sequences, width]
Tensor last_of_each(const Tensor& h, const Segments& tokens) {
  if (tokens.rows() == tokens.count()) return h;
  Ids last;
  for (int64_t i = 0; i < tokens.count(); ++i) {
    last.push_back(static_cast<int32_t>(tokens.end(i)) - 1);
  }
  return gather_rows(h, last);
}

class CachedReader final : public SequenceReader {
 public:
  explicit CachedReader(const LanguageModel& model) : model_(model), cache_(0, model.layers()) {}

  void add(Sources sources, const nn::Run&) override { cache_.add(std::ssize(sources)); }
  void select(std::span<const int64_t> sequences) override { cache_.select(sequences); }
  void limit_rows(int64_t rows) override { cache_.limit(rows); }
  int64_t rows() const override { return cache_.rows(); }

  Tensor read(std::span<const int32_t> ids, const Segments& tokens, const nn::Run& run) override {
    cache_.extend(tokens);
    const Tensor h = model_.hidden(
        {.ids = ids, .segments = &tokens, .position_ids = cache_.position_ids(), .cache = &cache_},
        run);
    return last_of_each(h, tokens);
  }

 private:
  const LanguageModel& model_;
  nn::KvCache cache_;
};

// A sequence is a translation that begins; those that fork have the same source.
class TranslationReader final : public SequenceReader {
 public:
  explicit TranslationReader(const EncoderDecoder& model)
      : model_(model), tokens_(0, model.layers()), sources_(model.layers()) {}

  void add(Sources sources, const nn::Run& run) override {
    const ProfilePhase phase("encode");
    Ids ids, rows;
    std::vector<int64_t> lengths;
    for (const std::span<const int32_t> source : sources) {
      ids.insert(ids.end(), source.begin(), source.end());
      lengths.push_back(std::ssize(source));
      auto taken = std::make_shared<Ids>();
      source_pool_.take(lengths.back(), *taken);
      rows.insert(rows.end(), taken->begin(), taken->end());
      source_rows_.push_back(std::move(taken));
    }
    const Segments segments = Segments::from_lengths(lengths);
    model_.add_sources(sources_, model_.encode({ids, &segments, nullptr}, run), rows, run);
    tokens_.add(std::ssize(sources));
  }

  Tensor read(std::span<const int32_t> ids, const Segments& tokens, const nn::Run& run) override {
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
    const Tensor h = model_.step({.ids = ids,
                                  .segments = &tokens,
                                  .position_ids = tokens_.position_ids(),
                                  .cache = &tokens_},
                                 sources_, {&asking, &of_sources, rows}, run);
    return last_of_each(h, tokens);
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
  std::vector<std::shared_ptr<Ids>>
      source_rows_;  // of each sequence, shared by those of one source
};

class OrderedReader final : public SequenceReader {
 public:
  explicit OrderedReader(const TokenModel& model)
      : model_(model), remembers_(memory_length(model) > 0) {}

  void add(Sources sources, const nn::Run&) override {
    tokens_.resize(tokens_.size() + sources.size());
    std::vector<int64_t> lengths;
    for (int64_t i = 0; i < memory_.segments.count(); ++i) {
      lengths.push_back(memory_.segments.length(i));
    }
    lengths.resize(tokens_.size());
    memory_.segments = Segments::from_lengths(lengths);
  }

  Tensor read(std::span<const int32_t> ids, const Segments& tokens, const nn::Run& run) override {
    Ids rows;
    std::vector<int64_t> lengths;
    nn::TokenOrder order{.targets = Segments::uniform(tokens.count(), 1)};
    for (int64_t i = 0; i < tokens.count(); ++i) {
      Ids& own = tokens_[static_cast<size_t>(i)];
      own.insert(own.end(), ids.begin() + tokens.begin(i), ids.begin() + tokens.end(i));
      rows.insert(rows.end(), own.begin(), own.end());
      order.target_tokens.push_back(static_cast<int32_t>(rows.size()));
      rows.push_back(0);  // any token: none sees it
      const auto n = static_cast<int64_t>(own.size()) + 1;
      lengths.push_back(n);
      for (int64_t j = 0; j < n * n; ++j) order.hidden.push_back(j % n == n - 1);
      if (remembers_) own.erase(own.begin(), own.end() - 1);
    }
    const Segments segments = Segments::from_lengths(lengths);
    const Tensor h = model_.hidden({.ids = rows,
                                    .segments = &segments,
                                    .memory = remembers_ ? &memory_ : nullptr,
                                    .order = &order},
                                   run);
    if (remembers_) {  // the last token is read again, the one behind it was none
      std::vector<int64_t> all(tokens_.size());
      std::iota(all.begin(), all.end(), int64_t{0});
      keep(all, 2);
    }
    return h;
  }

  void select(std::span<const int64_t> sequences) override {
    std::vector<Ids> tokens;
    for (const int64_t s : sequences) tokens.push_back(tokens_[static_cast<size_t>(s)]);
    tokens_ = std::move(tokens);
    keep(sequences, 0);
  }

  void limit_rows(int64_t) override {}  // nothing is kept ahead
  int64_t rows() const override {
    int64_t rows = memory_.segments.rows();
    for (const Ids& own : tokens_) rows += std::ssize(own);
    return rows;
  }

  // Nothing is shared.
  int64_t rows_of(int64_t shared, int64_t own, int64_t n) const override {
    return (shared + own) * n;
  }

 private:
  // The states of these sequences but the last `fewer` of each.
  void keep(std::span<const int64_t> sequences, int64_t fewer) {
    std::vector<int64_t> lengths;
    Ids rows;
    for (const int64_t s : sequences) {
      lengths.push_back(std::max<int64_t>(0, memory_.segments.length(s) - fewer));
      for (int64_t r = 0; r < lengths.back(); ++r) {
        rows.push_back(static_cast<int32_t>(memory_.segments.begin(s) + r));
      }
    }
    for (Tensor& layer : memory_.layers) layer = gather_rows(layer, rows);
    memory_.segments = Segments::from_lengths(lengths);
  }

  const TokenModel& model_;
  const bool remembers_;
  std::vector<Ids> tokens_;  // of each sequence; with memory: the last one only
  nn::Memory memory_;
};

}  // namespace

bool predicts_next_token(const Model& model) {
  return model.as<LanguageModel>() != nullptr || model.head() == Head::ordered_token;
}

std::unique_ptr<SequenceReader> make_sequence_reader(const TokenModel& model) {
  if (const auto* translator = model.as<EncoderDecoder>()) {
    return std::make_unique<TranslationReader>(*translator);
  }
  if (const auto* language = model.as<LanguageModel>()) {
    return std::make_unique<CachedReader>(*language);
  }
  check(predicts_next_token(model), ErrorKind::internal,
        "the model does not predict the next token");
  check(!model.need<WithOrder>("generation").runs_backwards(), ErrorKind::data,
        "bi_data is true: half of a batch runs backwards, but each prompt goes on by itself; set "
        "bi_data to false in config.json");
  return std::make_unique<OrderedReader>(model);
}

}  // namespace heddle
