// What the file of a model includes: its class becomes a line of the registry; heads that many
// families have.
#pragma once

#include "heddle/models/token_model.h"

namespace heddle {

// What every model is made of, by its own name.
using nn::Init;
using nn::LayerNorm;
using nn::Linear;
using nn::Parameter;
using nn::Run;
using nn::Scope;
using nn::TokenRows;

template <class M>
std::unique_ptr<ModelConfig> new_config() {
  return std::make_unique<ConfigOf<M>>();
}

/// Where the stack's parameters are: under `base`, or, where nothing stands on it, at the root.
Scope base_scope(const Scope& s, const std::string& base, const HubConfig& hub);

/// Checks that heads divide a width. Errors: data, naming `source`.
void check_heads(int64_t width, const std::string& width_key, int64_t heads,
                 const std::string& source);

/// A linear layer over what a pooler or a stack gives, and the dropout before it.
struct ClassOptions {
  int64_t width = 0;
  int64_t labels = 2;
  double std = 0.02;
  double dropout = 0;
};
/// Classes of each row.
Heads::OfInput classes_of_tokens(const Scope& s, const ClassOptions& o);
/// Classes of each sequence by its last token that is not `pad`. Neither dropout nor bias.
Heads::OfInput classes_of_last_token(const Scope& s, const ClassOptions& o,
                                     std::optional<int64_t> pad);
/// Classes of each sequence over what `pooler` gives of it.
Heads::OfInput classes_of_pooled(const Scope& s, const ClassOptions& o, Heads::OfInput pooler);

/// One vector of a sequence's states, under the keys of what transformers calls SequenceSummary.
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

/// Rows of x where each sequence begins: [sequences, width]. Errors: shape if a sequence is empty.
Tensor first_rows(const Tensor& x, const Segments& segments);
/// What names those rows, for dropout over them.
std::shared_ptr<const RowIds> first_rows(const ModelInput& input);

}  // namespace heddle
