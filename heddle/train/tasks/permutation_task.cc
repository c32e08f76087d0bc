// Sequences of documents, some tokens of which are predicted in a random order.

#include "heddle/train/tasks/losses.h"
#include "heddle/train/tasks/text_task.h"

namespace heddle::train {
namespace {

struct PermutationFields : TextFields {
  double plm_probability = 1.0 / 6;
  int64_t max_span_length = 5;

  PermutationFields() {
    tokenizer_type = "unigram";
    block_size = 64;
  }
  template <class V>
  void fields(V& v) {
    sequence_fields(v);
    v("plm_probability", plm_probability, "share of the tokens that are predicted",
      {.low = 0, .high = 1, .is_low_open = true});
    v("max_span_length", max_span_length, "of tokens that are predicted side by side, at most",
      between(1, 1 << 20));
    file_fields(v);
  }
};

}  // namespace

class PermutationTask final : public ChunkTask {
 public:
  using Fields = PermutationFields;
  static constexpr TaskFacts kFacts = {Head::ordered_token, "loss,accuracy", 10'000};

  PermutationTask(const TrainConfig& config, const RunPaths& paths, const std::string& run)
      : ChunkTask(config, paths, run) {
    const DocumentSplit split = split_documents(text().files(paths));
    open_tokenizer(split.train);
    make_model(Head::ordered_token);
    cut(split, tokenizer().special_count());
  }

  LossSums accumulate_whole(int64_t epoch, std::span<const int64_t> samples,
                            const nn::Run& run) override {
    SequenceBatch batch;
    for (const int64_t s : samples) add(batch, train_, s, epoch);
    return accumulate_permuted(model(), batch, run);
  }

  ValidationScore validate(const nn::Run& run, dist::Group& group) override {
    const auto held_out = [this](SequenceBatch& batch, int64_t s) {
      add(batch, val_, s, kHeldOutEpoch);
    };
    const AnswerScore score = score_answers(
        model(), answer_permuted,
        {.classes = model().vocab_size(), .samples = std::ssize(val_), .add = held_out}, run,
        group);
    return {.loss = score.loss(), .metrics = {{"accuracy", score.confusion.accuracy()}}};
  }

  // Held-out sequences, and what the model puts in the places of the tokens that it predicts.
  std::vector<Json> samples() override {
    std::vector<Json> samples;
    for (const int64_t s : spread(std::ssize(val_), 4)) {
      SequenceBatch batch;
      add(batch, val_, s, kHeldOutEpoch);
      const Answers a = answer_permuted(model(), batch, {});
      std::vector<int32_t> filled = batch.ids;
      for (size_t k = 0; k < a.answers.size(); ++k) {
        filled[static_cast<size_t>(batch.order.target_tokens[k])] = a.answers[k];
      }
      samples.push_back(Json::object(
          {{"text", tokenizer().decode(batch.ids)}, {"model", tokenizer().decode(filled)}}));
    }
    return samples;
  }

 private:
  void add(SequenceBatch& batch, const Chunks& chunks, int64_t s, int64_t epoch) const {
    static const uint64_t kOrder = hash_name("train/permutations");
    const Encoding encoding = tokenizer().with_special(chunks[static_cast<size_t>(s)]);
    batch.add(
        encoding.ids, encoding.types, s,
        draw_permutation(
            encoding.ids,
            {.share = own<Fields>().plm_probability,
             .max_span = own<Fields>().max_span_length,
             .is_special = [this](int32_t id) { return tokenizer().is_special(id); }},
            make_key(seed(), static_cast<uint64_t>(epoch), kOrder, static_cast<uint64_t>(s))));
  }
};

template std::unique_ptr<TaskFields> new_fields<PermutationTask>();

}  // namespace heddle::train
