// What commands and training ask of a model that is one stack over tokens, whatever its family.
#pragma once

#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "heddle/models/config.h"
#include "heddle/models/plan.h"
#include "heddle/nn/embedding.h"

namespace heddle {

/// A result of a forward pass under Hugging Face's name.
struct ModelOutput {
  std::string name;
  Tensor x;  ///< [rows, width]
  /// What a row is of: a token, a sequence, or a prediction of TokenOrder::targets.
  enum class Rows : uint8_t { tokens, sequences, targets } rows = Rows::tokens;
};

/// What stands on the states h: [rows, width] of hidden(). A part is empty where the model's head
/// has none.
struct Heads {
  using OfRows = std::function<Tensor(const Tensor& rows, const nn::Run& run)>;
  using OfTokens =
      std::function<Tensor(const Tensor& h, const nn::TokenRows& tokens, const nn::Run& run)>;

  /// Logits of next or masked tokens, over `transform` of the rows of h that are asked for.
  std::optional<nn::OutputProjection> output = {};
  OfRows transform = {};           ///< [n, width] to [n, width]; empty: h as it is
  OfTokens pooler = {};            ///< [sequences, width]
  OfTokens next_sentence = {};     ///< [sequences, 2]: class 0, the second part follows the first
  OfTokens sequence_classes = {};  ///< [sequences, labels]
  OfTokens token_classes = {};     ///< [rows, labels]

  /// Logits of tokens for rows of h: [n, vocab]. Errors: internal if there is no `output`.
  Tensor token_logits(const Tensor& rows, const nn::Run& run) const;
};

/// A tensor of a checkpoint, f32.
struct NamedFloats {
  std::string name;
  std::vector<int64_t> shape;
  std::vector<float> values;
};

/// A model of a family that Hugging Face's transformers has.
struct HubModel {
  Json config;
  std::vector<NamedFloats> tensors;
};

/// Model::max_length() of one that takes sequences of any length.
inline constexpr int64_t kAnyLength = std::numeric_limits<int32_t>::max() / 2;

class Model {
 public:
  virtual ~Model() = default;

  const ModelConfig& config() const { return *config_; }
  Head head() const { return config_->hub.head; }
  const Heads& heads() const { return heads_; }
  /// Names of the classes of heads().sequence_classes or token_classes.
  const std::vector<std::string>& labels() const { return config_->hub.labels; }

  /// Other spellings of its tensors in checkpoints.
  virtual nn::TensorNames names() const = 0;
  /// Tokens known; ids are below.
  virtual int64_t vocab_size() const = 0;
  /// Longest sequence in tokens; kAnyLength if it has no bound.
  virtual int64_t max_length() const = 0;
  virtual int64_t layers() const = 0;
  /// Width of the states.
  virtual int64_t width() const = 0;
  /// Scalars that decoding keeps of a token in each layer: keys and values.
  virtual int64_t cache_width() const { return 2 * width(); }
  /// What training adds to the mean loss of a token, from what Run::router_logits received: [1], or
  /// undefined if there is nothing.
  virtual Tensor auxiliary_loss(const std::vector<Tensor>& router_logits) const;
  /// Whether it remembers the tokens before a pass (TokenRows::memory), and how many states it
  /// hands on at most.
  virtual bool has_memory() const { return false; }
  virtual int64_t memory_length() const { return 0; }
  /// Whether token types change anything; else those of a tokenizer are passed over.
  virtual bool takes_types() const { return false; }
  /// Sequences that it takes at once are a multiple of this; 2: half of them run backwards.
  virtual int64_t batch_multiple() const { return 1; }
  /// Whether its tokens may be known in another order than the text's (TokenRows::order).
  virtual bool takes_order() const { return false; }
  /// What its cost follows from.
  virtual ModelPlan plan() const = 0;
  /// The last layer's states: [rows, width]. Errors: data if a sequence is longer than
  /// max_length().
  virtual Tensor hidden(const nn::TokenRows& tokens, const nn::Run& run) const = 0;
  /// Positions of a sequence's tokens as it was given, hidden ones too: 0, 1, .. unless the family
  /// counts otherwise. ids: [n]
  virtual std::vector<int32_t> positions(std::span<const int32_t> ids) const;
  /// The model that computes the same in transformers, if it is another. Errors: data, naming
  /// `source` and the field, where there is none.
  virtual std::optional<HubModel> hub_model(const nn::Parameters&, const std::string&) const {
    return {};
  }
  /// What `heddle forward` gives, by the head.
  virtual std::vector<ModelOutput> forward(const nn::TokenRows& tokens, const nn::Run& run) const;

 protected:
  Heads heads_;

 private:
  template <class M>
  friend class ConfigOf;
  std::shared_ptr<const ModelConfig> config_;
};

/// A model that may predict the next token, see language_model(). With tokens.cache hidden()
/// reads tokens that continue sequences, and the rows have the very bits that a pass over whole
/// sequences gives them.
class LanguageModel : public Model {
 public:
  /// To the logits of the next token.
  const nn::OutputProjection& output() const { return *heads_.output; }
};

/// The model as one that predicts the next token; null if its head is another.
const LanguageModel* language_model(const Model& model);

}  // namespace heddle
