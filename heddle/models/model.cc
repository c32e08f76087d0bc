// The outputs of each head under Hugging Face's names.
#include "heddle/models/model.h"

namespace heddle {

const nn::OutputProjection& Heads::token_output() const {
  check(output.has_value(), ErrorKind::data,
        "a model is needed that predicts tokens; the head of this one does not");
  return *output;
}

Tensor Heads::token_logits(const Tensor& rows, const nn::Run& run) const {
  const nn::OutputProjection& logits = token_output();
  return logits(transform ? transform(rows, run) : rows, run);
}

std::vector<ModelOutput> Model::forward(const ModelInput& input, const nn::Run& run) const {
  const Tensor h = hidden(input, run);
  switch (head()) {
    case Head::none:
    case Head::caption:
    case Head::target_token: break;
    case Head::next_token:
    case Head::masked_token:
    case Head::ordered_token: return {{"logits", heads_.token_logits(h, run)}};
    case Head::pretraining:
      return {{"prediction_logits", heads_.token_logits(h, run)},
              {"seq_relationship_logits", heads_.next_sentence(h, input, run), true}};
    case Head::next_sentence: return {{"logits", heads_.next_sentence(h, input, run), true}};
    case Head::image_classes:
    case Head::sequence_classes: return {{"logits", heads_.sequence_classes(h, input, run), true}};
    case Head::token_classes: return {{"logits", heads_.token_classes(h, input, run)}};
    case Head::distilled_classes:
      return {{"logits", heads_.sequence_classes(h, input, run), true},
              {"cls_logits", heads_.own_classes(h, input, run), true},
              {"distillation_logits", heads_.distilled_classes(h, input, run), true}};
    case Head::objects:
      return {{"logits", heads_.object_classes(h, run)}, {"pred_boxes", heads_.boxes(h, run)}};
  }
  std::vector<ModelOutput> outputs = {{"last_hidden_state", h}};
  if (heads_.pooler) outputs.push_back({"pooler_output", heads_.pooler(h, input, run), true});
  return outputs;
}

}  // namespace heddle
