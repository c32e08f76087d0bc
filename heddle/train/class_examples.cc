// Encoding words one by one, so that each knows its first id.
#include "heddle/train/class_examples.h"

#include <algorithm>

#include "heddle/base/error.h"

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
  std::vector<int32_t> ids, classes;
  for (size_t w = 0; w < text.words.size(); ++w) {
    const std::vector<int32_t> tokens = tokenizer.encode(text.words[w]);
    ids.insert(ids.end(), tokens.begin(), tokens.end());
    classes.resize(ids.size(), -1);
    if (tokens.empty()) continue;
    classes[ids.size() - tokens.size()] = class_of(text.labels[w], o.labels, text.place);
  }
  if (static_cast<int64_t>(ids.size()) > o.longest) {
    ids.resize(static_cast<size_t>(o.longest));
    classes.resize(ids.size());
    ++cut;
  }
  ClassExample e{.encoding = tokenizer.with_special(ids),
                 .text = fmt::format("{}", fmt::join(text.words, " ")),
                 .labels = fmt::format("{}", fmt::join(text.labels, " "))};
  check(!e.encoding.ids.empty(), ErrorKind::data, "{}: the text is empty", text.place);
  if (!o.is_words) {
    e.classes = {class_of(text.labels[0], o.labels, text.place)};
    return e;
  }
  e.classes.assign(e.encoding.ids.size(), -1);
  // The special tokens stand before and behind: where the text begins is where its ids do.
  const auto at = std::search(e.encoding.ids.begin(), e.encoding.ids.end(), ids.begin(), ids.end());
  std::copy(classes.begin(), classes.end(), e.classes.begin() + (at - e.encoding.ids.begin()));
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
