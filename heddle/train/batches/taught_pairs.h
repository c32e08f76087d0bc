// Pairs whose targets a teacher wrote: sequence-level distillation.
#pragma once

#include <string>

#include "heddle/data/parallel_text.h"
#include "heddle/nn/run.h"
#include "heddle/train/batches/pair_languages.h"

namespace heddle::train {

struct TaughtOptions {
  std::string teacher;  ///< folder of a translator, or a run
  int64_t beam = 5;
  bool keeps = false;  ///< the pairs as people wrote them follow behind
  PairLanguages languages = {};
  Precision precision = {};
};

/// The sources of `pairs` and the teacher's translations of them as two files of a folder, which
/// are written unless they are there; their names hold a checksum of pairs, teacher and options.
/// What was translated before a stop is gone on from. Lines that are blank on a side are left out.
/// A student learns such targets more easily than what people wrote, and needs a smaller beam.
/// Errors: those of load_translation_model() and of ParallelReader; system if it cannot be written.
/// Source: Kim & Rush 2016, "Sequence-Level Knowledge Distillation", section 3.2.
ParallelFiles taught_pairs(const ParallelFiles& pairs, const std::string& folder,
                           const TaughtOptions& options);

}  // namespace heddle::train
