// Whether an op need prepare what it would put on the tape.
#pragma once

#include <initializer_list>

#include "heddle/tensor/tensor.h"

namespace heddle {

/// Whether record() would do anything for an op of these inputs: put it on the tape, or name, count
/// or check it. Where not, an op does without what its closure would hold. While one token is
/// decoded those copies took 5 % of the thread that runs the model (EPYC, Zen 4, 2026-11).
bool needs_record(std::initializer_list<const Tensor*> inputs);

}  // namespace heddle
