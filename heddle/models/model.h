// What commands ask of a model that is one stack over words; the registry makes one by its name.
#pragma once

#include <string>
#include <vector>

#include "heddle/base/fields.h"
#include "heddle/nn/embedding.h"

namespace heddle {

/// A result of a forward pass under Hugging Face's name.
struct ModelOutput {
  std::string name;
  Tensor x;                   ///< [rows, width], or [sequences, width]
  bool is_sequences = false;  ///< a row a sequence, not a word
};

class Model {
 public:
  virtual ~Model() = default;

  /// The fields of its config.
  virtual std::vector<Field> fields() const = 0;
  /// Other spellings of its tensors in checkpoints.
  virtual nn::TensorNames names() const = 0;
  /// Words known; ids are below.
  virtual int64_t vocab_size() const = 0;
  /// What `heddle forward` gives.
  virtual std::vector<ModelOutput> forward(const nn::WordRows& words, const nn::Run& run) const = 0;
};

/// A model that says which word comes next.
class LanguageModel : public Model {
 public:
  /// The last layer's states: [rows, width]. With words.cache it reads words that continue
  /// sequences, and the rows have the very bits that a pass over whole sequences gives them.
  /// Errors: data if a sequence is longer than max_length().
  virtual Tensor hidden(const nn::WordRows& words, const nn::Run& run) const = 0;
  /// To the logits of the next word.
  virtual const nn::WordOutput& output() const = 0;
  /// Longest sequence in words.
  virtual int64_t max_length() const = 0;
  /// Layers that a WordCache needs.
  virtual int64_t layers() const = 0;
  /// Width of the states.
  virtual int64_t width() const = 0;

  std::vector<ModelOutput> forward(const nn::WordRows& words, const nn::Run& run) const override {
    return {{"logits", output()(hidden(words, run), run)}};
  }
};

}  // namespace heddle
