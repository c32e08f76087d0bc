// Models with weights of few bits, as files.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "heddle/infer/loading/loaded_model.h"

namespace heddle {

/// Of weights in groups; see QuantizedRows.
struct QuantizedFormat {
  int bits = 4;             ///< of the layers' matrices, 4 or 8
  int64_t group_size = 32;  ///< inner elements that share a scale: 32 or 64
  int output_bits = 8;      ///< of the output projection and the table tied to it
};

/// `quantization_config` of config.json.
Json quantization_config(const QuantizedFormat& format);

/// What was rounded, in weights.
struct QuantizedCounts {
  int64_t layers = 0;  ///< of matrices of linear layers
  int64_t output = 0;  ///< of the output projection and the table tied to it
  int64_t kept = 0;    ///< all others
  /// Matrices of linear layers, by a checkpoint's names, that panels of 32 rows do not fit, and
  /// those of one product with them.
  std::vector<std::string> whole;
};

/// Rounds the matrices of a model's linear layers and that of its output projection; other tables,
/// norms and biases are left alone. Errors: usage for another format; data, naming
/// `source`, for a model that is quantized already or has no such matrix.
QuantizedCounts quantize_weights(const Model& model, nn::Parameters& parameters,
                                 const QuantizedFormat& format, const std::string& source);

struct QuantizeOptions {
  QuantizedFormat format = {};
  bool overwrite = false;  ///< a model that stands in the folder is replaced
  /// Called with the model before its weights are rounded, and with that of the folder written.
  std::function<void(const LoadedModel&)> before = {}, after = {};
};

struct QuantizedModel {
  QuantizedCounts counts;
  int64_t bytes = 0;  ///< of the file of weights
};

/// Writes the model in `path`, see find_model_dir(), with weights of few bits to the folder `out`,
/// all of it or nothing: config.json with `quantization_config`, model.safetensors (matrices that
/// are not rounded in bf16, vectors in f32), and the files of tokenizer and generation. Errors:
/// those of quantize_weights(), load_model() and NewModelFolder; usage if `out` is the
/// model's own folder; system.
QuantizedModel quantize_model(const std::string& path, const std::string& out,
                              const QuantizeOptions& options);

}  // namespace heddle
