// Sequences of documents, in another order each epoch.
#include "heddle/train/tasks/chunk_task.h"

#include <algorithm>

#include "heddle/base/log.h"
#include "heddle/base/progress.h"

namespace heddle::train {

void ChunkTask::cut(const DocumentSplit& split, int64_t special) {
  const int64_t block = whole_block_size(), tokens = block - special;
  check(tokens >= 2, ErrorKind::usage, "block_size {} leaves {} tokens beside the special ones",
        block, tokens);
  // One of unknown characters alone has nothing to predict.
  const auto usable = [&](const std::vector<std::string>& documents) {
    Chunks chunks = chunks_of(encode_all(tokenizer(), documents), tokens);
    std::erase_if(chunks, [&](const std::vector<int32_t>& chunk) {
      return std::all_of(chunk.begin(), chunk.end(),
                         [&](int32_t id) { return tokenizer().is_special(id); });
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
  plan_.emplace(static_cast<int64_t>(train_.size()), text().batch_size, seed());
}

}  // namespace heddle::train
