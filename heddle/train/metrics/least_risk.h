// Minimum Bayes risk: of several translations that which agrees most with all of them.
#pragma once

#include "heddle/train/metrics/metrics.h"

namespace heddle::train {

/// The number of the candidate whose chrF against the others, each in turn taken for the reference,
/// is highest in the mean; equal texts count as often as they come, and of equal means the first
/// wins. Of translations that were drawn it is an estimate of the least expected risk.
/// Errors: data if there is none. Source: Eikema & Aziz 2020, "Is MAP Decoding All You Need?",
/// section 3.2; chrF as utility: Freitag et al. 2022.
size_t least_risk(Sentences candidates);

}  // namespace heddle::train
