// Laying sequences side by side; masks by a key of seed, epoch and sequence; labelled texts.
#include "heddle/train/batches/sequences.h"

#include <algorithm>

#include "heddle/base/error.h"
#include "heddle/data/masking.h"
#include "heddle/infer/words.h"

namespace heddle::train {
namespace {

int32_t class_of(const std::string& label, const std::vector<std::string>& labels,
                 const std::string& place) {
  const auto found = std::find(labels.begin(), labels.end(), label);
  check(
      found != labels.end(), ErrorKind::data, "{}: the label '{}' is none of the model's {}: {}{}",
      place, label, labels.size(),
      fmt::join(labels.begin(), labels.begin() + std::min<ptrdiff_t>(8, std::ssize(labels)), ", "),
      labels.size() > 8 ? ", .." : "");
  return static_cast<int32_t>(found - labels.begin());
}

ClassExample example_of(const Tokenizer& tokenizer, const LabelledText& text,
                        const ClassExampleOptions& o, int64_t& cut) {
  EncodedWords words = encode_words(tokenizer, text.words, o.longest);
  cut += words.was_cut ? 1 : 0;
  ClassExample e{.encoding = std::move(words.encoding),
                 .text = fmt::format("{}", fmt::join(text.words, " ")),
                 .labels = fmt::format("{}", fmt::join(text.labels, " "))};
  check(!e.encoding.ids.empty(), ErrorKind::data, "{}: the text is empty", text.place);
  if (!o.is_words) {
    e.classes = {class_of(text.labels[0], o.labels, text.place)};
    return e;
  }
  e.classes.assign(e.encoding.ids.size(), -1);
  for (size_t w = 0; w < text.words.size(); ++w) {
    const int32_t label = class_of(text.labels[w], o.labels, text.place);
    if (words.first_rows[w] >= 0) e.classes[static_cast<size_t>(words.first_rows[w])] = label;
  }
  return e;
}

}  // namespace

void SequenceBatch::add(std::span<const int32_t> sequence, int64_t sample,
                        std::span<const int32_t> its_targets, std::span<const int32_t> its_types) {
  ids.insert(ids.end(), sequence.begin(), sequence.end());
  targets.insert(targets.end(), its_targets.begin(), its_targets.end());
  types.insert(types.end(), its_types.begin(), its_types.end());
  lengths.push_back(static_cast<int64_t>(sequence.size()));
  for (size_t i = 0; i < sequence.size(); ++i) {
    rows.sample.push_back(static_cast<uint32_t>(sample));
    rows.position.push_back(static_cast<uint32_t>(i));
  }
}

void SequenceBatch::add(std::span<const int32_t> sequence, std::span<const int32_t> its_types,
                        int64_t sample, const Permutation& permutation) {
  const auto first = static_cast<int32_t>(ids.size());
  add(sequence, sample, {}, its_types);
  order.steps.insert(order.steps.end(), permutation.steps.begin(), permutation.steps.end());
  for (const int32_t token : permutation.targets) {
    order.target_tokens.push_back(first + token);
    targets.push_back(sequence[static_cast<size_t>(token)]);
  }
  predictions.push_back(static_cast<int64_t>(permutation.targets.size()));
}

nn::TokenRows SequenceBatch::tokens() {
  segments = Segments::from_lengths(lengths);
  order.targets = Segments::from_lengths(predictions);
  return {.ids = ids,
          .segments = &segments,
          .rows = std::make_shared<const RowIds>(rows),
          .types = types,
          .order = predictions.empty() ? nullptr : &order};
}

Chunks chunks_of(const std::vector<std::vector<int32_t>>& documents, int64_t most) {
  Chunks chunks;
  for (const std::vector<int32_t>& document : documents) {
    const auto n = static_cast<int64_t>(document.size());
    for (int64_t at = 0; at < n; at += most) {
      chunks.emplace_back(document.begin() + at, document.begin() + std::min(at + most, n));
    }
  }
  return chunks;
}

std::vector<int32_t> joined(const Chunks& chunks) {
  std::vector<int32_t> all;
  for (const auto& chunk : chunks) {
    all.insert(all.end(), chunk.begin(), chunk.end());
    all.push_back(-1);
  }
  return all;
}

std::vector<int32_t> mask_sequence(const Tokenizer& tokenizer, std::vector<int32_t>& ids,
                                   int64_t sequence, const HidingOptions& o) {
  static const uint64_t kMask = hash_name("train/masks");
  return mask_tokens(
      ids,
      {.share = o.share,
       .mask_id = tokenizer.mask_id(),
       .vocab_size = tokenizer.vocab_size(),
       .is_special = [&](int32_t id) { return tokenizer.is_special(id); }},
      make_key(o.seed, static_cast<uint64_t>(o.epoch), kMask, static_cast<uint64_t>(sequence)));
}

std::vector<ClassExample> class_examples(const Tokenizer& tokenizer,
                                         std::span<const LabelledText> texts,
                                         const ClassExampleOptions& options, int64_t& cut) {
  std::vector<ClassExample> examples;
  for (const LabelledText& text : texts) {
    examples.push_back(example_of(tokenizer, text, options, cut));
  }
  return examples;
}

void add_example(SequenceBatch& batch, std::span<const ClassExample> examples, int64_t s) {
  const ClassExample& e = examples[static_cast<size_t>(s)];
  batch.add(e.encoding.ids, s, e.classes, e.encoding.types);
}

}  // namespace heddle::train
