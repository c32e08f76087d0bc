// The outputs of each head under Hugging Face's names; what abilities have in common.
#include "heddle/models/model.h"

#include <algorithm>
#include <numeric>

#include "heddle/models/encoder_decoder.h"

namespace heddle {

Tensor Heads::token_logits(const Tensor& rows, const nn::Run& run) const {
  check(output.has_value(), ErrorKind::internal, "this model predicts no tokens");
  return (*output)(transform ? transform(rows, run) : rows, run);
}

std::vector<int32_t> TokenModel::positions(std::span<const int32_t> ids) const {
  std::vector<int32_t> positions(ids.size());
  std::iota(positions.begin(), positions.end(), 0);
  return positions;
}

std::vector<ModelOutput> Model::forward(const ModelInput& input, const nn::Run& run) const {
  const Tensor h = hidden(input, run);
  switch (head()) {
    case Head::none:
    case Head::target_token: break;
    case Head::next_token:
    case Head::masked_token:
    case Head::ordered_token: return {{"logits", heads_.token_logits(h, run)}};
    case Head::pretraining:
      return {{"prediction_logits", heads_.token_logits(h, run)},
              {"seq_relationship_logits", heads_.next_sentence(h, input, run), true}};
    case Head::next_sentence: return {{"logits", heads_.next_sentence(h, input, run), true}};
    case Head::sequence_classes: return {{"logits", heads_.sequence_classes(h, input, run), true}};
    case Head::token_classes: return {{"logits", heads_.token_classes(h, input, run)}};
  }
  std::vector<ModelOutput> outputs = {{"last_hidden_state", h}};
  if (heads_.pooler) outputs.push_back({"pooler_output", heads_.pooler(h, input, run), true});
  return outputs;
}

int64_t memory_length(const Model& model) {
  const auto* memory = model.as<WithMemory>();
  return memory != nullptr ? memory->memory_length() : 0;
}

void check_token_ids(const EncoderDecoderFacts& f, const std::string& source) {
  const int64_t tokens = std::min(f.source_vocab_size, f.target_vocab_size);
  for (const int64_t id :
       {f.pad_token_id, f.bos_token_id, f.eos_token_id, f.decoder_start_token_id}) {
    check(id < tokens, ErrorKind::data, "{}: the special id {} is not below vocab_size {}", source,
          id, tokens);
  }
}

DecoderCache EncoderDecoder::start() const {
  DecoderCache cache;
  cache.layers.resize(static_cast<size_t>(facts().decoder_layers));
  return cache;
}

}  // namespace heddle
