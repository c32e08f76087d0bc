// The classes of texts, or of their words, by a model with a head for them.
#include "heddle/infer/classify.h"

#include <algorithm>
#include <cmath>

#include "heddle/base/files/mmap.h"
#include "heddle/infer/words/word_spans.h"

namespace heddle {
namespace {

std::vector<double> scaled(std::span<const float> logits, ClassScale scale) {
  std::vector<double> p(logits.begin(), logits.end());
  if (scale == ClassScale::sigmoid) {
    for (double& x : p) x = 1 / (1 + std::exp(-x));
  } else if (scale == ClassScale::softmax) {
    const double most = *std::ranges::max_element(p);
    double sum = 0;
    for (double& x : p) sum += x = std::exp(x - most);
    for (double& x : p) x /= sum;
  }
  return p;
}

// Of the texts end to end, by one of the model's heads.
std::vector<float> logits_of(const LoadedModel& model, std::span<const Encoding> texts,
                             const Heads::OfInput& head, const Precision& precision) {
  const PackedTexts packed(model.tokens(), texts);
  const NoGrad off;
  nn::Run run;
  run.use(precision);
  const nn::TokenRows tokens = packed.tokens();
  std::vector<float> logits = head(model.model->hidden(tokens, run), tokens, run).to_floats();
  check(std::ranges::all_of(logits, [](float x) { return std::isfinite(x); }), ErrorKind::data,
        "{}: the model gives logits that are not finite", model.path);
  return logits;
}

}  // namespace

ClassScale class_scale(const Model& model) {
  const Json* type = model.config().hub.others.find("problem_type");
  const std::string name = type != nullptr && type->is_string() ? type->as_string() : "";
  if (name == "regression") return ClassScale::none;
  const bool is_each = name == "multi_label_classification" || model.labels().size() == 1;
  return is_each ? ClassScale::sigmoid : ClassScale::softmax;
}

std::vector<std::vector<double>> classify(const LoadedModel& model,
                                          std::span<const TextToClassify> texts,
                                          const Precision& precision, int64_t& cut) {
  check_mapped_files();
  check_head(model, model.model->heads().sequence_classes != nullptr, Head::sequence_classes,
             "classes");
  std::vector<Encoding> encodings;
  for (const TextToClassify& one : texts) {
    encodings.push_back(one.second ? encode_to_fit(model, one.text, *one.second, cut)
                                   : encode_to_fit(model, one.text, cut));
  }
  const std::vector<float> logits =
      logits_of(model, encodings, model.model->heads().sequence_classes, precision);
  const size_t labels = model.model->labels().size();
  std::vector<std::vector<double>> result;
  for (size_t i = 0; i < texts.size(); ++i) {
    result.push_back(
        scaled(std::span(logits).subspan(i * labels, labels), class_scale(*model.model)));
  }
  return result;
}

std::vector<std::vector<WordClass>> classify_words(const LoadedModel& model,
                                                   std::span<const std::vector<std::string>> texts,
                                                   const Precision& precision, int64_t& cut) {
  check_mapped_files();
  check_head(model, model.model->heads().token_classes != nullptr, Head::token_classes,
             "classes of words");
  std::vector<std::vector<WordClass>> result;
  std::vector<Encoding> encodings;
  std::vector<std::pair<WordClass*, size_t>> asked;  // with its row among those of all texts
  size_t rows = 0;
  for (const std::vector<std::string>& words : texts) {
    EncodedWords encoded = encode_words(*model.tokenizer, words, room_of(model));
    check_ids(model, encoded.encoding.ids);
    cut += encoded.was_cut ? 1 : 0;
    result.emplace_back(words.size());
    const size_t before = asked.size();
    for (size_t w = 0; w < words.size(); ++w) {
      if (encoded.first_rows[w] < 0) continue;
      asked.emplace_back(&result.back()[w], rows + static_cast<size_t>(encoded.first_rows[w]));
    }
    if (asked.size() == before) continue;  // a model is not asked about nothing
    rows += encoded.encoding.ids.size();
    encodings.push_back(std::move(encoded.encoding));
  }
  if (encodings.empty()) return result;
  const std::vector<float> logits =
      logits_of(model, encodings, model.model->heads().token_classes, precision);
  const size_t labels = model.model->labels().size();
  for (const auto& [word, row] : asked) {
    const std::vector<double> p =
        scaled(std::span(logits).subspan(row * labels, labels), ClassScale::softmax);
    const auto most = std::ranges::max_element(p);
    *word = {static_cast<int32_t>(most - p.begin()), *most};
  }
  return result;
}

}  // namespace heddle
