// One vector of a sequence's states, and classes over it: what transformers calls SequenceSummary.
#pragma once

#include "heddle/models/family.h"

namespace heddle {

/// Its fields, under Hugging Face's keys.
struct SummaryConfig {
  std::string summary_type = "last";
  bool summary_use_proj = true;
  double summary_last_dropout = 0.1;

  template <class V>
  void fields(V& v) {
    v("summary_type", summary_type, "the token whose state is classified",
      one_of({"last", "first", "mean", "cls_index"}));
    v("summary_use_proj", summary_use_proj, "a linear layer before the classes");
    v("summary_last_dropout", summary_last_dropout, "before the classes", from_below(0, 1));
  }
};

/// Classes of each sequence: the state of its last token ("cls_index" too) or first, or the mean of
/// all; a linear layer `s.summary` if there is one; the activation that `hub` names
/// (summary_activation; tanh if the key is absent, none if it is null); dropout; classes at `out`.
/// The dropout of `o` does not count.
Heads::OfInput classes_of_summary(const Scope& s, const Scope& out, const ClassOptions& o,
                                  const SummaryConfig& c, const HubConfig& hub);

}  // namespace heddle
