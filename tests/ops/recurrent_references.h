// Plain definitions of recurrent ops: token by token and sequence by sequence, of primitive ops.
#pragma once

#include "heddle/ops/recurrent/attentive_recurrence.h"

namespace heddle {

/// Without Recurrence::c.
Recurrence recurrence_reference(const Tensor& x, const StateWeights& weights,
                                const CellState& begin, const Segments& segments,
                                const RecurrenceOptions& options);
/// Without queries and gates; sequence i asks source i.
AttentiveRecurrence attentive_reference(const Tensor& x, const AttentiveWeights& weights,
                                        const AttendedSources& sources, const CellState& begin,
                                        const Segments& segments, const AttentiveOptions& options);

}  // namespace heddle
