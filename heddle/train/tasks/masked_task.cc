// Sequences of documents, some tokens of which are hidden, in pairs where the next is asked for.
#include <algorithm>

#include "heddle/base/rng.h"
#include "heddle/train/tasks/losses.h"
#include "heddle/train/tasks/text_task.h"

namespace heddle::train {
namespace {

struct MaskedFields : TextFields {
  double mask_share = 0.15;
  bool next_sentence = false;

  template <class V>
  void fields(V& v) {
    sequence_fields(v);
    v("mask_share", mask_share, "share of the tokens that are predicted", between(0, 1));
    v("next_sentence", next_sentence,
      "also tell whether the second half of a sequence follows the first");
    file_fields(v);
  }
};

}  // namespace

class MaskedTask final : public ChunkTask {
 public:
  using Fields = MaskedFields;
  static constexpr TaskFacts kFacts = {Head::masked_token, "loss,accuracy", 10'000};

  MaskedTask(const TrainConfig& config, const RunPaths& paths, const std::string& run)
      : ChunkTask(config, paths, run) {
    const DocumentSplit split = split_documents(text().files(paths));
    open_tokenizer(split.train);
    check(tokenizer().mask_id() >= 0, ErrorKind::usage,
          "the tokenizer has no [MASK] token to hide others with; give `tokenizer`, or "
          "`tokenizer_type` wordpiece");
    make_model(own<Fields>().next_sentence ? Head::pretraining : Head::masked_token);
    cut(split, tokenizer().special_count(own<Fields>().next_sentence));
  }

  LossSums accumulate_whole(int64_t epoch, std::span<const int64_t> samples,
                            const nn::Run& run) override {
    SequenceBatch batch;
    std::vector<int32_t> next;
    for (const int64_t s : samples) add(batch, next, train_, s, epoch);
    return accumulate_masked(model(), batch, next, run);
  }

  ValidationScore validate(const nn::Run& run, dist::Group& group) override {
    const auto held_out = [this](SequenceBatch& batch, int64_t s) {
      std::vector<int32_t> next;
      add(batch, next, val_, s, kHeldOutEpoch);
    };
    const AnswerScore score = score_answers(
        model(), answer_masked,
        {.classes = model().vocab_size(), .samples = std::ssize(val_), .add = held_out}, run,
        group);
    check(score.sums.predicted > 0, ErrorKind::data,
          "no token of the held-out text is hidden; hold out more of it, or raise `mask_share`");
    return {.loss = score.loss(), .metrics = {{"accuracy", score.confusion.accuracy()}}};
  }

  // Held-out sequences with masked tokens, and what the model puts there.
  std::vector<Json> samples() override {
    std::vector<Json> samples;
    for (const int64_t s : spread(std::ssize(val_), 4)) {
      SequenceBatch batch;
      std::vector<int32_t> next;
      add(batch, next, val_, s, kHeldOutEpoch);
      const Answers a = answer_masked(model(), batch, {});
      std::vector<int32_t> truth = batch.ids, filled = batch.ids;
      for (size_t r = 0, k = 0; r < batch.ids.size(); ++r) {
        if (batch.targets[r] < 0) continue;
        truth[r] = batch.targets[r];
        filled[r] = a.answers[k++];
      }
      samples.push_back(
          Json::object({{"hidden", tokenizer().decode(batch.ids, {.skip_special = false})},
                        {"text", tokenizer().decode(truth)},
                        {"model", tokenizer().decode(filled)}}));
    }
    return samples;
  }

 private:
  // Sequence `s`, or two halves of which the second is in half of the cases another's.
  Encoding encoding_of(const Chunks& chunks, int64_t s, RngStream& random,
                       std::vector<int32_t>& next) const {
    const std::vector<int32_t>& chunk = chunks[static_cast<size_t>(s)];
    if (!own<Fields>().next_sentence) return tokenizer().with_special(chunk);
    const bool is_other = random.uniform() < 0.5F && chunks.size() > 1;
    const auto n = static_cast<uint64_t>(chunks.size());
    const std::vector<int32_t>& second =
        is_other ? chunks[(static_cast<uint64_t>(s) + 1 + random.below(n - 1)) % n] : chunk;
    next.push_back(is_other ? 1 : 0);
    const auto half = [](const std::vector<int32_t>& c) { return (c.size() + 1) / 2; };
    return tokenizer().with_special(std::span(chunk).first(half(chunk)),
                                    std::span(second).subspan(half(second)));
  }

  void add(SequenceBatch& batch, std::vector<int32_t>& next, const Chunks& chunks, int64_t s,
           int64_t epoch) const {
    static const uint64_t kPair = hash_name("train/next sentence");
    RngStream random(
        make_key(seed(), static_cast<uint64_t>(epoch), kPair, static_cast<uint64_t>(s)));
    Encoding encoding = encoding_of(chunks, s, random, next);
    const std::vector<int32_t> targets =
        mask_sequence(tokenizer(), encoding.ids, s,
                      {.share = own<Fields>().mask_share, .seed = seed(), .epoch = epoch});
    batch.add(encoding.ids, s, targets, encoding.types);
  }
};

template std::unique_ptr<TaskFields> new_fields<MaskedTask>();

}  // namespace heddle::train
