// Models in a form that Hugging Face's transformers, or timm, loads.
#pragma once

#include <string>

#include "heddle/tensor/dtype.h"

namespace heddle {

struct ExportOptions {
  std::string format = "transformers";  ///< or timm, or the model_type that is written
  DType dtype = DType::f32;             ///< of the weights: f32, bf16 or f16
  bool overwrite = false;               ///< a model that stands in the folder is replaced
};

/// What was written.
struct Exported {
  std::string type;  ///< model_type in config.json, or timm's architecture
  std::string note;  ///< what they do not do with it; "" if there is nothing to say
};

/// For timm: config.json and model.safetensors, with the images' preparation in the first. Else
/// writes config.json, model.safetensors and the files of the tokenizer and of generation to `out`,
/// which is made if need be, all of them or none. Tokenizers of heddle's own get what transformers
/// needs to read them. A model that transformers has not becomes one that computes the same, see
/// WithHubModel::hub_model(), and searches greedily there. Any other keeps its type. path: see
/// find_model_dir(). Errors: usage for another format, or a folder that is not empty (without
/// overwrite, or with other files than a model's); data, naming the field, for a model that
/// transformers has nothing for, or values beyond f16; system.
Exported export_model(const std::string& path, const std::string& out,
                      const ExportOptions& options);

}  // namespace heddle
