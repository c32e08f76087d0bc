// Tokenizers of texts, models over them, cutting documents into sequences.
#include "heddle/train/tasks/text_task.h"

#include <algorithm>

#include "heddle/base/files/files.h"
#include "heddle/base/log.h"
#include "heddle/base/parallel.h"
#include "heddle/base/progress.h"
#include "heddle/base/rng.h"
#include "heddle/infer/loading/loaded_model.h"
#include "heddle/text/dropped_characters.h"
#include "heddle/text/training/tokenizer_trainer.h"

namespace heddle::train {

namespace {

// What ends and begins texts, as generate and transformers find it in config.json.
void note_ends(const Tokenizer& tokenizer, Json& config) {
  if (tokenizer.eos_id() < 0) {  // transformers takes GPT-2's for those that are not said
    config["eos_token_id"] = Json();
    config["bos_token_id"] = Json();
    return;
  }
  config["eos_token_id"] = tokenizer.eos_id();
  config["bos_token_id"] = tokenizer.bos_id() >= 0 ? tokenizer.bos_id() : tokenizer.eos_id();
}

Tokenizer make_tokenizer(const TrainConfig& config, std::span<const std::string> texts) {
  const std::string& type = config.task_config.as<TextFields>().tokenizer_type;
  const int64_t size = config.stack.integer({"vocab_size"});
  if (type == "char") {
    if (size != StackConfig(config.model_type).integer({"vocab_size"})) {
      log_warning(
          "`vocab_size` {} is not looked at: each character of the text is a token; give "
          "`tokenizer_type` bpe for a vocabulary of that size",
          size);
    }
    return character_tokenizer(texts);
  }
  log_info("training a {} tokenizer of {} tokens", type, format_count(size));
  if (type == "wordpiece") return train_word_pieces(texts, size);
  std::vector<std::string> lines;
  for (const std::string& text : texts) {
    for (size_t at = 0; at < text.size();) {
      const size_t end = std::min(text.find('\n', at), text.size());
      lines.push_back(text.substr(at, end - at));
      at = end + 1;
    }
  }
  return train_tokenizer(lines,
                         {.type = tokenizer_type(type),
                          .vocab_size = size,
                          .seed = static_cast<uint64_t>(config.seed)},
                         [](const std::string& message) { log_info("{}", message); });
}

// The tokenizer in RUN/tokenizer, put there first if there is none: the task's `tokenizer`, else
// that of the model that the run begins `from` (may be empty), else one made of `texts`.
Tokenizer open_text_tokenizer(const TrainConfig& config, std::span<const std::string> texts,
                              const std::string& from, const std::string& run) {
  const std::string folder = join_path(run, "tokenizer");
  if (!path_exists(folder) || list_directory(folder).empty()) {
    const std::string& given = config.task_config.as<TextFields>().tokenizer;
    const Tokenizer made = !given.empty()  ? Tokenizer::load(given)
                           : !from.empty() ? Tokenizer::load(find_model_dir(from))
                                           : make_tokenizer(config, texts);
    // Whole or not at all: half a tokenizer of several files would be taken for one of its own.
    write_folder_atomic(folder, [&](const std::string& whole) { made.save_folder(whole); });
  }
  return Tokenizer::load(folder);
}

// That the run's tokenizer, which is made of the text where none is named, has more than one
// segmentation.
void check_sampling(const TextFields& own, const std::string& from) {
  if (own.tokenizer.empty() && from.empty()) {
    check(own.tokenizer_type == "bpe" || own.tokenizer_type == "unigram", ErrorKind::usage,
          "`text_sampling` {}: a {} tokenizer has one segmentation of a text; set `tokenizer_type` "
          "bpe or unigram, or `text_sampling` 0",
          own.text_sampling, own.tokenizer_type);
    return;
  }
  const std::string path = own.tokenizer.empty() ? find_model_dir(from) : own.tokenizer;
  // A run that goes on has a copy.
  if (path_exists(path)) SubwordSampler(Tokenizer::load(path), own.text_sampling);
}

}  // namespace

// GPT-2's and BERT's optimisation, but for the rate.
void TextFields::suit(TrainConfig& config) {
  config.optimizer = "adamw";
  config.schedule = "cosine";
  config.warmup_updates = 100;
  config.adam_beta2 = 0.99;
  config.adam_epsilon = 1e-8;
  config.weight_decay = 0.1;
  config.clip_norm = 1;
}

void TextFields::check_data(const TrainConfig& config, const RunPaths& paths) const {
  check(!paths.data.empty(), ErrorKind::usage,
        "train needs `data`, a file or a folder of them, for task {}", config.task);
  find_text_files(files(paths));
  if (text_sampling > 0) check_sampling(*this, paths.from);
}

DocumentFiles TextFields::files(const RunPaths& paths) const {
  return {paths.data, paths.val_data, val_share, text_key};
}

std::vector<std::vector<int32_t>> encode_all(const Tokenizer& tokenizer,
                                             std::span<const std::string> texts) {
  std::vector<std::vector<int32_t>> ids(texts.size());
  parallel_for(static_cast<int64_t>(texts.size()),
               [&](int64_t i) { ids[i] = tokenizer.encode(texts[i]); });
  return ids;
}

void TextTask::open_tokenizer(std::span<const std::string> texts) {
  tokenizer_ = open_text_tokenizer(config_, texts, paths_.from, run_);
  if (text().text_sampling > 0) sampler_.emplace(*tokenizer_, text().text_sampling);
  DroppedCharacters dropped(*tokenizer_);
  for (const std::string& text : texts) dropped.count_in(text);
  if (dropped.count() == 0) return;
  log_warning("the vocabulary lacks {} of the texts, which the model does not see: {}",
              dropped.counted_characters(), dropped.examples());
}

RngStream TextTask::subword_stream(int64_t epoch, int64_t part) const {
  static const uint64_t kSite = hash_name("train/text subwords");
  return RngStream(
      make_key(seed(), static_cast<uint64_t>(epoch), kSite, static_cast<uint64_t>(part)));
}

void TextTask::make_model(Head head, const std::vector<std::string>& labels) {
  StackConfig& stack = config_.stack;
  if (paths_.from.empty()) {
    stack.set("vocab_size", tokenizer_->vocab_size());
    if (head == Head::next_token) note_ends(*tokenizer_, stack.hub().others);
  } else {
    stack.hub() = config_of_model(paths_.from).hub();  // a run's settings hold the fields alone
  }
  const int64_t tokens = stack.integer({"vocab_size"});
  check(tokenizer_->vocab_size() <= tokens, ErrorKind::data,
        "the tokenizer has {} tokens, the model only {}", tokenizer_->vocab_size(), tokens);
  stack.hub().head = head;
  if (!labels.empty()) stack.hub().labels = labels;
  if (tokenizer_->pad_id() >= 0) stack.hub().pad_token_id = tokenizer_->pad_id();
  begin_model();
}

void TextTask::note_keys(std::span<const int32_t> train, std::span<const int32_t> val) {
  const auto key = [&](std::span<const int32_t> ids) {
    return fmt::format("{} {}", checksum(std::as_bytes(ids)), tokenizer_->fingerprint());
  };
  set_keys(key(train), key(val));
}

int64_t TextTask::block_size() const {
  const int64_t most = model().max_length();
  check(text().block_size <= most, ErrorKind::usage,
        "block_size {} is more than the {} tokens that the model takes; lower `block_size`",
        text().block_size, most);
  return text().block_size > 0 ? text().block_size : most;
}

int64_t TextTask::whole_block_size() const {
  const int64_t size = block_size();
  check(size < kAnyLength, ErrorKind::usage,
        "a {} takes sequences of any length; say by `block_size` how long they are in training",
        config_.model_type);
  return size;
}

void ChunkTask::cut(const DocumentSplit& split, int64_t special) {
  const int64_t block = whole_block_size(), tokens = block - special;
  check(tokens >= 2, ErrorKind::usage, "block_size {} leaves {} tokens beside the special ones",
        block, tokens);
  // One of unknown characters alone has nothing to predict.
  const auto usable = [&](const std::vector<std::string>& documents) {
    Chunks chunks = chunks_of(encode_all(tokenizer(), documents), tokens);
    std::erase_if(chunks, [&](const std::vector<int32_t>& chunk) {
      return std::ranges::all_of(chunk, [&](int32_t id) { return tokenizer().is_special(id); });
    });
    return chunks;
  };
  train_ = usable(split.train);
  val_ = usable(split.val);
  check(!train_.empty() && !val_.empty(), ErrorKind::data,
        "the text gives {} sequences to train on and {} held out", train_.size(), val_.size());
  note_keys(joined(train_), joined(val_));
  log_info("{} to train on, {} held out, {} in the vocabulary",
           counted(std::ssize(train_), "sequence"), format_count(std::ssize(val_)),
           counted(tokenizer().vocab_size(), "token"));
  shuffle(std::ssize(train_), text().batch_size);
}

}  // namespace heddle::train
