// The outputs of each head under Hugging Face's names.
#include "heddle/models/model.h"

#include <numeric>

namespace heddle {

Tensor Heads::word_logits(const Tensor& rows, const nn::Run& run) const {
  check(words.has_value(), ErrorKind::internal, "this model predicts no words");
  return (*words)(transform ? transform(rows, run) : rows, run);
}

std::vector<int32_t> Model::positions(std::span<const int32_t> ids) const {
  std::vector<int32_t> places(ids.size());
  std::iota(places.begin(), places.end(), 0);
  return places;
}

Tensor Model::auxiliary_loss(const std::vector<Tensor>& router_logits) const {
  (void)router_logits;
  return {};
}

std::vector<ModelOutput> Model::forward(const nn::WordRows& words, const nn::Run& run) const {
  const Tensor h = hidden(words, run);
  switch (head()) {
    case Head::none: break;
    case Head::next_word:
    case Head::masked_word:
    case Head::ordered_word: return {{"logits", heads_.word_logits(h, run)}};
    case Head::pretraining:
      return {{"prediction_logits", heads_.word_logits(h, run)},
              {"seq_relationship_logits", heads_.next_sentence(h, words, run),
               ModelOutput::Rows::sequences}};
    case Head::next_sentence:
      return {{"logits", heads_.next_sentence(h, words, run), ModelOutput::Rows::sequences}};
    case Head::sequence_classes:
      return {{"logits", heads_.sequence_classes(h, words, run), ModelOutput::Rows::sequences}};
    case Head::word_classes: return {{"logits", heads_.word_classes(h, words, run)}};
  }
  std::vector<ModelOutput> outputs = {{"last_hidden_state", h}};
  if (heads_.pooler)
    outputs.push_back(
        {"pooler_output", heads_.pooler(h, words, run), ModelOutput::Rows::sequences});
  return outputs;
}

const LanguageModel* language_model(const Model& model) {
  if (model.head() != Head::next_word) return nullptr;
  return dynamic_cast<const LanguageModel*>(&model);
}

}  // namespace heddle
