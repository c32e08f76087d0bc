// The classes of texts, by a model with a head for them.
#include "heddle/infer/classify.h"

#include <algorithm>
#include <cmath>

#include "heddle/base/mapped_files.h"

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

}  // namespace

ClassScale class_scale(const Model& model) {
  const Json* type = model.config().hub.others.find("problem_type");
  const std::string name = type != nullptr && type->is_string() ? type->as_string() : "";
  if (name == "regression") return ClassScale::none;
  const bool is_each = name == "multi_label_classification" || model.labels().size() == 1;
  return is_each ? ClassScale::sigmoid : ClassScale::softmax;
}

std::vector<std::vector<double>> classify(const TextModel& model,
                                          std::span<const TextToClassify> texts,
                                          const Precision& precision, int64_t& cut) {
  check_mapped_files();
  const Heads& heads = model.model().heads();
  check(static_cast<bool>(heads.sequence_classes), ErrorKind::data,
        "{}: the model has no head for classes of texts; one is needed, like "
        "BertForSequenceClassification",
        model.stack.path);
  std::vector<Encoding> encodings;
  for (const TextToClassify& one : texts) {
    bool was_cut = false;
    encodings.push_back(one.second ? encode_to_fit(model, one.text, *one.second, was_cut)
                                   : encode_to_fit(model, one.text, was_cut));
    cut += was_cut ? 1 : 0;
  }
  const PackedTexts packed(model.model(), encodings);
  const NoGrad off;
  nn::Run run;
  run.use(precision);
  const nn::TokenRows tokens = packed.tokens();
  const std::vector<float> logits =
      heads.sequence_classes(model.model().hidden(tokens, run), tokens, run).to_floats();
  check(std::ranges::all_of(logits, [](float x) { return std::isfinite(x); }), ErrorKind::data,
        "{}: the model gives logits that are not finite", model.stack.path);
  const size_t labels = model.model().labels().size();
  std::vector<std::vector<double>> result;
  for (size_t i = 0; i < texts.size(); ++i) {
    result.push_back(
        scaled(std::span(logits).subspan(i * labels, labels), class_scale(model.model())));
  }
  return result;
}

}  // namespace heddle
