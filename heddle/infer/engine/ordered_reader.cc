// Whole passes, or memories of states.
#include "heddle/infer/engine/ordered_reader.h"

#include <algorithm>
#include <numeric>

#include "heddle/nn/relative/relative_rows.h"
#include "heddle/ops/embedding.h"

namespace heddle {
namespace {

using Ids = std::vector<int32_t>;

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

  // One answer of each sequence.
  Tensor read(std::span<const int32_t> ids, const Segments& tokens, std::span<const int64_t>,
              const nn::Run& run) override {
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

  // Tokens see those behind them.
  bool checks_drafts() const override { return false; }
  void drop_last(std::span<const int64_t>) override {}

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

std::unique_ptr<SequenceReader> make_ordered_reader(const TokenModel& model) {
  check(model.head() == Head::ordered_token, ErrorKind::data,
        "a model is needed that predicts the next token; this {} does not", model.config().type);
  check(!model.need<WithOrder>("generation").runs_backwards(), ErrorKind::data,
        "bi_data is true: half of a batch runs backwards, but each prompt goes on by itself; set "
        "bi_data to false in config.json");
  return std::make_unique<OrderedReader>(model);
}

}  // namespace heddle
