// Writing the phrasebook, training a tokenizer where none is given, filling the caches.
#include "heddle/train/corpora.h"

#include "heddle/base/files.h"
#include "heddle/base/log.h"
#include "heddle/data/phrasebook.h"
#include "heddle/text/tokenizer_trainer.h"

namespace heddle::train {
namespace {

void write_phrases(const std::vector<Phrase>& phrases, const std::string& folder,
                   const std::string& split, const TrainConfig& config) {
  std::string source, target;
  for (const Phrase& p : phrases) {
    source += p.source + "\n";
    target += p.target + "\n";
  }
  write_file_atomic(join_path(folder, split + "." + config.source_lang), source);
  write_file_atomic(join_path(folder, split + "." + config.target_lang), target);
}

std::string write_phrasebook(const TrainConfig& config, const std::string& run) {
  const std::string folder = join_path(run, "data");
  if (path_exists(join_path(folder, "test.de"))) return folder;  // the last one written
  make_directories(folder);
  const Phrasebook book = make_phrasebook({});
  write_phrases(book.train, folder, "train", config);
  write_phrases(book.val, folder, "val", config);
  write_phrases(book.test, folder, "test", config);
  return folder;
}

// Reads the text once, so that what is wrong with it is said with its place, and at once.
void check_lines(const ParallelFiles& files) {
  ParallelReader reader(files);
  std::string source, target;
  while (reader.next(source, target)) {
  }
}

Tokenizer open_tokenizer(const TrainConfig& config, const ParallelFiles& files,
                         const std::string& run) {
  const std::string path = join_path(run, "tokenizer.model");
  if (!path_exists(path)) {
    if (!config.tokenizer.empty()) {
      Tokenizer::load(config.tokenizer).save(path);
    } else {
      log_info("training a {} tokenizer of {} words", config.tokenizer_type,
               config.model.vocab_size);
      check_lines(files);
      LineReader source(files.source), target(files.target);
      const auto next = [&](std::string& line) { return source.next(line) || target.next(line); };
      train_tokenizer(next,
                      {.type = tokenizer_type(config.tokenizer_type),
                       .vocab_size = config.model.vocab_size,
                       .seed = static_cast<uint64_t>(config.seed)},
                      [](const std::string& message) { log_info("{}", message); })
          .save(path);
    }
  }
  Tokenizer tokenizer = Tokenizer::load(path);
  check(tokenizer.vocab_size() == config.model.vocab_size, ErrorKind::data,
        "{}: the tokenizer has {} words, the model {}; set --vocab-size {}", path,
        tokenizer.vocab_size(), config.model.vocab_size, tokenizer.vocab_size());
  check(tokenizer.eos_id() == config.model.eos_token_id, ErrorKind::data,
        "{}: the tokenizer ends sentences with id {}, the model with {}; set --eos-token-id", path,
        tokenizer.eos_id(), config.model.eos_token_id);
  return tokenizer;
}

}  // namespace

void check_text(const TrainConfig& config, const std::string& data) {
  if (config.corpus == "phrasebook") {
    check(config.source_lang == "en" && config.target_lang == "de", ErrorKind::usage,
          "the phrasebook is English to German, not {} to {}", config.source_lang,
          config.target_lang);
    return;
  }
  check(!data.empty(), ErrorKind::usage,
        "train needs --data DIR, a folder with train.{0}, train.{1}, val.{0}, val.{1}",
        config.source_lang, config.target_lang);
  for (const char* split : {"train", "val"}) {
    find_parallel(data, split, config.source_lang, config.target_lang);
  }
}

Corpora open_corpora(const TrainConfig& config, const std::string& data, const std::string& run) {
  check_text(config, data);
  const std::string folder = config.corpus == "phrasebook" ? write_phrasebook(config, run) : data;
  const auto files = [&](const char* split) {
    return find_parallel(folder, split, config.source_lang, config.target_lang);
  };
  Tokenizer tokenizer = open_tokenizer(config, files("train"), run);
  const auto open = [&](const char* split) {
    const auto log = [split](std::string_view text) { log_info("{}: {}", split, text); };
    return TokenizedCorpus::open_or_build(
        {.files = files(split),
         .cache_dir = join_path(run, "cache"),
         .name = fmt::format("{}.{}-{}", split, config.source_lang, config.target_lang),
         .max_source_tokens = config.max_tokens,
         .max_target_tokens = config.max_tokens},
        text_encoder(tokenizer), log);
  };
  TokenizedCorpus train = open("train"), val = open("val");
  return {std::move(tokenizer), std::move(train), std::move(val)};
}

}  // namespace heddle::train
