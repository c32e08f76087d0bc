// Sequences out of running text, their loss, the loss of the held-out text, and a continuation.
#include <algorithm>

#include "heddle/base/log.h"
#include "heddle/base/parallel.h"
#include "heddle/base/progress.h"
#include "heddle/base/rng.h"
#include "heddle/base/work_notes.h"
#include "heddle/data/batches.h"
#include "heddle/infer/decoding/generate.h"
#include "heddle/infer/loading/loaded_model.h"
#include "heddle/train/batches/stream_memory.h"
#include "heddle/train/tasks/losses.h"
#include "heddle/train/tasks/text_task.h"

namespace heddle::train {
namespace {

// Rows of one forward pass of validation.
constexpr int64_t kValidationRows = 4096;
// Sequences of a stream of validation at least: the first of each remembers nothing.
constexpr int64_t kLeastStreamBlocks = 16;
// Rows of streams that are read side by side: few, so that ranks can share the streams; but as many
// streams as fill the products of a recurrent step.
constexpr int64_t kStreamRows = 256, kLeastStreams = 16;

// Ids of the text that one stream of randomness draws anew; no id is joined across such parts.
constexpr size_t kPartIds = 4096;

// Texts end to end, each with its end behind it where the tokenizer has one.
std::vector<int32_t> joined(const Tokenizer& tokenizer, std::span<const std::string> texts) {
  std::vector<int32_t> ids;
  for (const std::vector<int32_t>& part : encode_all(tokenizer, texts)) {
    ids.insert(ids.end(), part.begin(), part.end());
    if (tokenizer.eos_id() >= 0) ids.push_back(tokenizer.eos_id());
  }
  return ids;
}

struct LanguageFields : TextFields {
  std::string sampling = "random";

  LanguageFields() { tokenizer_type = "char"; }
  void suit(TrainConfig& config) override {
    TextFields::suit(config);
    auto unmade = nn::Parameters::shapes_alone();
    if (memory_length(*config.stack.make(nn::Scope(unmade))) == 0) return;
    sampling = "streams";
    block_size = 64;
    if (config.stack.integer({"mem_len"}) < 0) return;  // Transformer-XL
    // The published ones are of its vocabulary.
    set_from_string(config.stack.fields(), "cutoffs", "");
  }
  template <class V>
  void fields(V& v) {
    sequence_fields(v);
    subword_fields(v);
    v("sampling", sampling,
      "random: sequences begin anywhere in the text; consecutive: an epoch goes once through it; "
      "streams: so too, in batch_size parts side by side, along which a model remembers",
      one_of({"random", "consecutive", "streams"}));
    file_fields(v);
  }
  /// What a token is to the reader of a message.
  const char* unit() const {
    return tokenizer.empty() && tokenizer_type == "char" ? "characters" : "tokens";
  }
};

}  // namespace

class LanguageTask final : public TextTask {
 public:
  using Fields = LanguageFields;
  static constexpr TaskFacts kFacts = {Head::next_token, "loss", 5'000};

  LanguageTask(const TrainConfig& config, const RunPaths& paths, const std::string& run)
      : TextTask(config, paths, run) {
    DocumentSplit split = split_documents(text().files(paths));
    std::vector<std::string> all = std::move(split.train);
    const size_t trained = all.size();
    std::ranges::move(split.val, std::back_inserter(all));
    open_tokenizer(all);
    train_ = joined(tokenizer(), std::span(all).first(trained));
    val_ = joined(tokenizer(), std::span(all).subspan(trained));
    note_keys(train_, val_);
    check(val_.size() > 1, ErrorKind::data,
          "the held-out text has {} tokens; at least 2 are needed", val_.size());
    log_info("{} {} to train on, {} held out, {} in the vocabulary",
             format_count(std::ssize(train_)), own<Fields>().unit(), format_count(std::ssize(val_)),
             format_count(tokenizer().vocab_size()));
    make_model(Head::next_token);
    language_ = &model().need<LanguageModel>("train");
    check(language_->is_causal(), ErrorKind::usage,
          "this {} lets tokens see those after them (mem_len 0 with same_length, as in "
          "transformers); give `same_length` false",
          config.model_type);
    block_ = whole_block_size();
    const BlockOrder order = block_order(own<Fields>().sampling);
    remembers_ = order == BlockOrder::streams && memory_length(*language_) > 0;
    begin_text(train_);
  }

  int64_t batches(int64_t epoch) override {
    begin_epoch(epoch);
    return plan_->batches();
  }
  NamedTensors carried() const override { return memory_.tensors(); }
  void carry_on(const NamedTensors& tensors, int64_t epoch, int64_t batch) override {
    memory_.restore(tensors, {epoch, batch}, text().batch_size);
  }

  LossSums accumulate_whole(int64_t epoch, std::span<const int64_t> samples,
                            const nn::Run& run) override {
    SequenceBatch batch;
    begin_epoch(epoch);
    for (const int64_t s : samples) add(batch, epoch_text_, plan_->begin(epoch, s), block_, s);
    nn::TokenRows tokens = batch.tokens();
    if (!remembers_) return accumulate_gradients(*language_, tokens, run, batch.targets);
    const StreamMemory::Place place{epoch, samples[0] / text().batch_size};
    const int64_t stream = samples[0] % text().batch_size;
    nn::Memory memory = memory_.before(place, stream);
    tokens.memory = &memory;
    const LossSums sums = accumulate_gradients(*language_, tokens, run, batch.targets);
    memory_.put(place, stream, std::move(memory));
    return sums;
  }

  // Each held-out token but the first is predicted once, from what stands before it in its sequence
  // and what is remembered of those before.
  ValidationScore validate(const nn::Run& run, dist::Group& group) override {
    const LossSums sums = remembers_ ? streams_loss(run, group) : blocks_loss(run, group);
    return {.loss = sums.nll / static_cast<double>(sums.predicted)};
  }

  // How the held-out text goes on, as the model has it.
  std::vector<Json> samples() override {
    const int64_t most = std::max<int64_t>(1, std::min<int64_t>(16, block_ / 2));
    const int64_t given = std::min<int64_t>(most, static_cast<int64_t>(val_.size()));
    const std::vector<std::vector<int32_t>> prompts = {{val_.begin(), val_.begin() + given}};
    const auto tokens = generate_ids(*language_, prompts,
                                     {.search = {.max_new_tokens = 200,
                                                 .temperature = 0.8,
                                                 .seed = config_.seed,
                                                 .samples = true},
                                      .precision = resolve_precision(config_.precision)});
    return {Json::object({{"prompt", tokenizer().decode(prompts[0])},
                          {"continuation", tokenizer().decode(tokens[0][0].ids)}})};
  }

 private:
  std::vector<int64_t> batch_samples(int64_t epoch, int64_t batch) override {
    begin_epoch(epoch);
    return plan_->batch(batch);
  }

  void begin_text(std::span<const int32_t> ids) {
    epoch_text_ = ids;
    plan_.emplace(std::ssize(ids), BlockOptions{.block = block_,
                                                .batch = text().batch_size,
                                                .order = block_order(own<Fields>().sampling),
                                                .seed = seed()});
  }

  // Where subwords are drawn each epoch has a text of its own, and as many batches as it fills.
  void begin_epoch(int64_t epoch) {
    if (!sampler() || epoch == drawn_epoch_) return;
    Chunks drawn((train_.size() + kPartIds - 1) / kPartIds);
    parallel_for(std::ssize(drawn), [&](int64_t i) {
      const std::span rest = std::span<const int32_t>(train_).subspan(i * kPartIds);
      RngStream random = subword_stream(epoch, i);
      sampler()->sample(rest.first(std::min(rest.size(), kPartIds)), random, drawn[i]);
    });
    drawn_.clear();
    for (const auto& ids : drawn) drawn_.insert(drawn_.end(), ids.begin(), ids.end());
    begin_text(drawn_);
    drawn_epoch_ = epoch;
  }

  LossSums blocks_loss(const nn::Run& run, dist::Group& group) const {
    const auto last = static_cast<int64_t>(val_.size()) - 1;
    const int64_t most = std::max<int64_t>(1, kValidationRows / block_) * block_;
    return shared_loss(group, (last + most - 1) / most, [&](int64_t pass) {
      SequenceBatch batch;
      const int64_t begin = pass * most;
      for (int64_t at = begin; at < std::min(begin + most, last); at += block_) {
        add(batch, val_, at, std::min(block_, last - at), at / block_);
      }
      return batch_loss(*language_, batch.tokens(), run, batch.targets);
    });
  }

  // The same sequences, in parts of the text that are read some side by side, each from its
  // beginning.
  LossSums streams_loss(const nn::Run& run, dist::Group& group) const {
    const auto last = static_cast<int64_t>(val_.size()) - 1;
    const int64_t blocks = (last + block_ - 1) / block_;
    const int64_t streams = std::clamp<int64_t>(blocks / kLeastStreamBlocks, 1, text().batch_size);
    const int64_t each = (blocks + streams - 1) / streams;
    const int64_t at_once = std::max(kLeastStreams, kStreamRows / block_);
    return shared_loss(group, (streams + at_once - 1) / at_once, [&](int64_t pass) {
      nn::Memory memory;
      LossSums sums;
      for (int64_t step = 0; step < each; ++step) {
        SequenceBatch batch;
        const int64_t first = pass * at_once;
        for (int64_t stream = first; stream < std::min(first + at_once, streams); ++stream) {
          const int64_t at = std::min((stream * each + step) * block_, last);
          add(batch, val_, at, std::min(block_, last - at), at / block_);  // empty behind the end
        }
        nn::TokenRows tokens = batch.tokens();
        tokens.memory = &memory;
        sums += batch_loss(*language_, tokens, run, batch.targets);
        note_work();
      }
      return sums;
    });
  }

  // text[begin, begin + length) predicts the tokens behind each.
  static void add(SequenceBatch& batch, std::span<const int32_t> text, int64_t begin,
                  int64_t length, int64_t sample) {
    batch.add(text.subspan(begin, length), sample, text.subspan(begin + 1, length));
  }

  std::vector<int32_t> train_, val_, drawn_;
  std::span<const int32_t> epoch_text_;  // of the epoch: train_ or drawn_
  int64_t drawn_epoch_ = -1;
  const LanguageModel* language_ = nullptr;
  int64_t block_ = 0;
  std::optional<BlockPlan> plan_;
  bool remembers_ = false;  // from batch to batch
  StreamMemory memory_;
};

template std::unique_ptr<TaskFields> new_fields<LanguageTask>();

}  // namespace heddle::train
