// Roll-out: how much of each token of the input reaches each row, through all layers.
#pragma once

#include <vector>

#include "heddle/inspect/subject.h"

namespace heddle::inspect {

/// Shares of a kind of attention, by its sides.
struct RolledMap {
  size_t kind = 0;  ///< of the subject's
  int64_t rows = 0, cols = 0;
  std::vector<float> weights;  ///< [rows, cols]
};

/// The weights of a layer's heads are averaged, and half of a row stays where it is, by the
/// residual connection: R = (A / 2 + I / 2) R of the layers before; rows sum to 1. In a decoder
/// with a source half of what comes in through cross attention is what the encoder's roll-out says
/// of it: then a row of "decoder" and the same of "cross" sum to 1 together. A kind whose keys are
/// not its queries in another way (a memory) has none. Takes a pass, memory of all layers' maps,
/// and time that is cubic in the length.
/// Source: Abnar and Zuidema 2020, "Quantifying Attention Flow in Transformers", section 4; the
/// source's part after Ferrando et al. 2022, "Towards Opening the Black Box of Neural Machine
/// Translation", section 3.3, with halves for contributions.
std::vector<RolledMap> attention_rollout(const Subject& subject);

}  // namespace heddle::inspect
