// One pass over tensors from a file, under Hugging Face's names and shapes.
#pragma once

#include <string>

#include "heddle/io/safetensors.h"
#include "heddle/models/encoder_decoder.h"
#include "heddle/models/model.h"

namespace heddle {

struct ForwardOptions {
  bool all = false;  ///< hidden states and attention maps of every layer too
  Precision precision = {};
};

/// Of a model of sources and targets runs encoder and decoder.
/// inputs: input_ids [batch, source], decoder_input_ids [batch, target] (i64 or i32); optional
/// attention_mask, decoder_attention_mask of the same shapes (any dtype): entries that are 0 are
/// left out before anything is computed. Positions count columns, as Hugging Face's do, so padding
/// may stand on either side, and, but of models that count distances (T5), in the middle. Writes to
/// `path`, f32, zeros where the mask is 0: logits [batch, target, vocab], encoder_last_hidden_state
/// [batch, source, d_model]; with `all` also encoder_hidden_states.i, decoder_hidden_states.i (i
/// from 0, the embeddings, to the number of layers), encoder_attentions.i, decoder_attentions.i,
/// cross_attentions.i [batch, heads, queries, keys]. Of a captioner pixel_values, and pixel_mask,
/// stand for the source, see read_pixel_values(): the cells of an image's grid are then its
/// positions, line by line.
///
/// Of any other model inputs: input_ids [batch, time]; optional attention_mask,
/// token_type_ids, position_ids of the same shape, the last two also [1, time]; of a model with
/// memory mems.i [before, batch, memory_width()] of each layer; of one that takes an order
/// perm_mask [batch, time, time] (1: token i does not see token j), input_mask (1: hidden from
/// all), target_mapping [batch, predictions, time]. Writes what Model::forward() gives, as [batch,
/// time, width] or [batch, width], of predictions [batch, predictions, width], and mems.i; with
/// `all` also hidden_states.i, of a mixture router_logits.i [batch * time, experts], and
/// attentions.i [batch, heads, time, before + time], which with predictions are two, attentions.i.0
/// and, of the tokens that are predicted, attentions.i.1. Outputs at hidden positions are zero, but
/// the token that stands for a sequence (a pooler's first) may be hidden: as in Hugging Face's it
/// sees the others. Errors: data, naming tensor and shape, for inputs that are missing or do not
/// fit, and for a token that is hidden in the middle of what a model of distances reads; system if
/// the file cannot be written.
void forward_tensors(const Model& model, const SafetensorsFile& inputs, const std::string& path,
                     const ForwardOptions& options);

/// The names that forward_tensors() reads.
std::vector<std::string> forward_inputs(const Model& model);

}  // namespace heddle
