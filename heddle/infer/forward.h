// One pass over tensors from a file, under Hugging Face's names and shapes.
#pragma once

#include <string>

#include "heddle/io/safetensors.h"
#include "heddle/models/transformer.h"

namespace heddle {

struct ForwardOptions {
  bool all = false;  ///< hidden states and attention maps of every layer too
  DType precision = DType::f32;
};

/// Runs encoder and decoder.
/// inputs: input_ids [batch, source], decoder_input_ids [batch, target] (i64 or i32); optional
/// attention_mask, decoder_attention_mask of the same shapes (any dtype): entries that are 0 are
/// left out before anything is computed. Positions count columns, as Hugging Face's do, so padding
/// may stand on either side or in the middle. Writes to `path`, f32, zeros where the mask is 0:
/// logits [batch, target, vocab], encoder_last_hidden_state [batch, source, d_model]; with `all`
/// also encoder_hidden_states.i, decoder_hidden_states.i (i from 0, the embeddings, to the number
/// of layers), encoder_attentions.i, decoder_attentions.i, cross_attentions.i [batch, heads,
/// queries, keys]. Errors: data, naming tensor and shape, for inputs that are missing or do not
/// fit; system if the file cannot be written.
void forward_tensors(const Transformer& model, const SafetensorsFile& inputs,
                     const std::string& path, const ForwardOptions& options);

}  // namespace heddle
