// What suits the tasks over texts; making, copying and opening their tokenizer.
#include "heddle/train/tasks/text_data.h"

#include "heddle/base/files/files.h"
#include "heddle/base/log.h"
#include "heddle/base/parallel.h"
#include "heddle/base/progress.h"
#include "heddle/infer/loading/model_dir.h"
#include "heddle/text/subwords/tokenizer_trainer.h"
#include "heddle/text/subwords/vocabulary_trainer.h"

namespace heddle::train {
namespace {

Tokenizer make_tokenizer(const TrainConfig& config, std::span<const std::string> texts) {
  const std::string& type = config.task_config.as<TextFields>().tokenizer_type;
  if (type == "char") return character_tokenizer(texts);
  const int64_t size = config.stack.integer({"vocab_size"});
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
}

DocumentFiles TextFields::files(const RunPaths& paths) const {
  return {paths.data, paths.val_data, val_share, text_key};
}

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

std::vector<std::vector<int32_t>> encode_all(const Tokenizer& tokenizer,
                                             std::span<const std::string> texts) {
  std::vector<std::vector<int32_t>> ids(texts.size());
  parallel_for(static_cast<int64_t>(texts.size()),
               [&](int64_t i) { ids[i] = tokenizer.encode(texts[i]); });
  return ids;
}

}  // namespace heddle::train
