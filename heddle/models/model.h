// What all models have, whatever they read, and what they read; what more one can is asked by
// Model::as().
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <typeinfo>
#include <vector>

#include "heddle/models/config.h"
#include "heddle/nn/embedding.h"

namespace heddle {

/// Rows of one kind (nn::TokenRows, nn::ImageRows, feature frames), of sequences that lie end to
/// end. A view. A kind is any struct with `segments`, `rows` (for dropout; may be null) and kName,
/// what its rows are called: "tokens". Errors: shape if it has no segments.
struct ModelInput {
  template <class Kind>
  requires requires { Kind::kName; }
  ModelInput(const Kind& kind)
      : segments(given(kind.segments, Kind::kName)),
        rows(kind.rows),
        kind_(&kind),
        type_(typeid(Kind)),
        name_(Kind::kName) {}

  /// The rows as those of a kind. Errors: internal, naming both, if they are of another.
  template <class Kind>
  const Kind& as() const {
    check(type_ == typeid(Kind), ErrorKind::internal, "a model that reads {} was given {}",
          Kind::kName, name_);
    return *static_cast<const Kind*>(kind_);
  }

  const Segments& segments;
  const std::shared_ptr<const RowIds>& rows;

 private:
  static const Segments& given(const Segments* segments, const char* name) {
    check(segments != nullptr, ErrorKind::shape,
          "{} have no segments, which say where each sequence begins", name);
    return *segments;
  }

  const void* kind_;
  const std::type_info& type_;
  const char* name_;
};

/// A result of a forward pass under Hugging Face's name.
struct ModelOutput {
  std::string name;
  Tensor x;                      ///< [rows, width]
  bool is_of_sequences = false;  ///< a row a sequence (an image), else one a row of hidden()
};

/// What stands on the states h: [rows, width] of hidden(). A part is empty where the model's head
/// has none.
struct Heads {
  using OfRows = std::function<Tensor(const Tensor& rows, const nn::Run& run)>;
  using OfInput =
      std::function<Tensor(const Tensor& h, const ModelInput& input, const nn::Run& run)>;

  /// Logits of next or masked tokens, over `transform` of the rows of h that are asked for.
  std::optional<nn::OutputProjection> output = {};
  OfRows transform = {};          ///< [n, width] to [n, width]; empty: h as it is
  OfInput pooler = {};            ///< [sequences, width]
  OfInput next_sentence = {};     ///< [sequences, 2]: class 0, the second part follows the first
  OfInput sequence_classes = {};  ///< [sequences, labels]
  OfInput token_classes = {};     ///< [rows, labels]
  /// The two whose mean sequence_classes is, of a model that learns from a teacher too: what the
  /// labels teach, and what the teacher does. [sequences, labels]
  OfInput own_classes = {}, distilled_classes = {};
  /// Of a detector, by the states of its queries: logits of classes and boxes, see
  /// ObjectPredictions.
  OfRows object_classes = {}, boxes = {};

  /// `output`. Errors: data if the head predicts no tokens.
  const nn::OutputProjection& token_output() const;
  /// Logits of tokens for rows of h: [n, vocab]. Errors: the same.
  Tensor token_logits(const Tensor& rows, const nn::Run& run) const;
};

class Model {
 public:
  virtual ~Model() = default;

  const ModelConfig& config() const { return *config_; }
  Head head() const { return config_->hub.head; }
  const Heads& heads() const { return heads_; }
  /// Names of the classes of heads() that give such.
  const std::vector<std::string>& labels() const { return config_->hub.labels; }

  int64_t layers() const { return layers_; }
  /// Width of the states.
  int64_t width() const { return width_; }

  /// Other spellings of its tensors in checkpoints.
  virtual nn::TensorNames names() const = 0;
  /// The last layer's states: [rows, width]. Errors: internal if it reads another kind.
  virtual Tensor hidden(const ModelInput& input, const nn::Run& run) const = 0;
  /// What `heddle forward` gives, by the head.
  std::vector<ModelOutput> forward(const ModelInput& input, const nn::Run& run) const;

  /// The model as one with an ability (TokenModel, LanguageModel, EncoderDecoder, WithMemory ..);
  /// null if it has it not, or has another head than the ability needs.
  template <class Ability>
  const Ability* as() const {
    if constexpr (requires { Ability::kHead; }) {
      if (head() != Ability::kHead) return nullptr;
    }
    return dynamic_cast<const Ability*>(this);
  }
  /// The same. Errors: data, naming `source` and what is wanted, if it has it not.
  template <class Ability>
  const Ability& need(const std::string& source) const {
    const Ability* found = as<Ability>();
    check(found != nullptr, ErrorKind::data, "{}: a model is needed that {}; this {} does not",
          source, Ability::kAbility, config_->type);
    return *found;
  }

 protected:
  Model(int64_t layers, int64_t width) : layers_(layers), width_(width) {}
  Heads heads_;

 private:
  int64_t layers_, width_;
  template <class M>
  friend class ConfigOf;
  std::shared_ptr<const ModelConfig> config_;
};

}  // namespace heddle
