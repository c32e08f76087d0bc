// What commands and tasks ask of models that read tokens.
#pragma once

#include <limits>
#include <numeric>
#include <vector>

#include "heddle/models/model.h"
#include "heddle/nn/embedding.h"

namespace heddle {

/// TokenModel::max_length() of one that takes sequences of any length.
inline constexpr int64_t kAnyLength = std::numeric_limits<int32_t>::max() / 2;

/// 0, 1, .. for the tokens of a sequence.
inline std::vector<int32_t> counted_positions(std::span<const int32_t> ids) {
  std::vector<int32_t> positions(ids.size());
  std::iota(positions.begin(), positions.end(), 0);
  return positions;
}

struct TokenSizes {
  int64_t vocab_size;  ///< tokens known; ids are below
  int64_t max_length;  ///< longest sequence in tokens; kAnyLength if it has no bound
  int64_t layers, width;
};

class TokenModel : public Model {
 public:
  static constexpr const char* kAbility = "reads tokens";

  explicit TokenModel(const TokenSizes& sizes) : Model(sizes.layers, sizes.width), sizes_(sizes) {}

  int64_t vocab_size() const { return sizes_.vocab_size; }
  int64_t max_length() const { return sizes_.max_length; }
  /// The last layer's states: [rows, width]. Errors: data if a sequence is longer than
  /// max_length().
  virtual Tensor hidden(const nn::TokenRows& tokens, const nn::Run& run) const = 0;
  Tensor hidden(const ModelInput& input, const nn::Run& run) const final {
    return hidden(input.as<nn::TokenRows>(), run);
  }
  /// From states to the logits of the next token. Errors: data if the head predicts no tokens.
  const nn::OutputProjection& output() const { return heads_.token_output(); }
  /// Positions of a sequence's tokens as it was given, hidden ones too: 0, 1, .. unless the family
  /// counts otherwise. ids: [n]
  virtual std::vector<int32_t> positions(std::span<const int32_t> ids) const {
    return counted_positions(ids);
  }

 protected:
  TokenSizes sizes_;
};

/// Predicts the next token. With tokens.cache hidden() reads tokens that continue sequences, and
/// the rows have the very bits that a pass over whole sequences gives them.
class LanguageModel : public TokenModel {
 public:
  static constexpr const char* kAbility = "predicts the next token";
  static constexpr Head kHead = Head::next_token;
  using TokenModel::TokenModel;

  /// Whether no token sees those after it.
  virtual bool is_causal() const { return true; }
  /// Whether tokens that continue a cache may come several at a time, with the bits that they have
  /// one by one.
  virtual bool reads_ahead() const { return is_causal(); }
  /// Scalars that decoding keeps of a token in each layer: keys and values.
  virtual int64_t cache_width() const { return 2 * width(); }
};

/// Whether the model predicts the next token, in the order of the text (LanguageModel) or, as
/// XLNet, in any.
inline bool predicts_next_token(const Model& model) {
  return model.as<LanguageModel>() != nullptr || model.head() == Head::ordered_token;
}

/// Remembers the tokens before a pass (TokenRows::memory).
struct WithMemory {
  /// States that it hands on at most; 0: none.
  virtual int64_t memory_length() const = 0;
  /// Scalars of such a state in each layer.
  virtual int64_t memory_width() const = 0;
};
/// WithMemory::memory_length(); 0 if the model is none.
inline int64_t memory_length(const Model& model) {
  const auto* memory = model.as<WithMemory>();
  return memory != nullptr ? memory->memory_length() : 0;
}

/// Its tokens may be known in another order than the text's (TokenRows::order).
struct WithOrder {
  static constexpr const char* kAbility = "takes tokens in any order";

  /// Whether the second half of a batch runs backwards, which so has an even number of sequences.
  virtual bool runs_backwards() const = 0;
};

/// Token types change something; else those of a tokenizer are passed over.
struct WithTokenTypes {};

/// A mixture of experts, whose routers leave their logits in Run::router_logits.
struct WithExperts {
  /// Experts of a layer that a token goes through.
  virtual int64_t chosen_experts() const = 0;
  /// What training adds to the mean loss of a token: [1], or undefined if there is nothing.
  virtual Tensor router_loss(const std::vector<Tensor>& router_logits) const = 0;
};

}  // namespace heddle
