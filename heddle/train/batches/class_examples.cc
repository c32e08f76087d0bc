// Labelled texts as a model takes them.
#include "heddle/train/batches/class_examples.h"

#include <algorithm>

#include "heddle/base/error.h"
#include "heddle/infer/words/word_spans.h"

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
