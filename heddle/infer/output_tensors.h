// Tensors that a pass gives, to be written to a file.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "heddle/io/safetensors.h"

namespace heddle {

struct OutputTensor {
  std::string name;
  std::vector<int64_t> shape;
  std::vector<float> values;
};

/// Writes them as f32, named as Hugging Face names them. Errors: system if that cannot be done.
void write_outputs(const std::string& path, const auto& outputs) {
  std::vector<NamedTensorView> views;
  for (const OutputTensor& o : outputs) {
    views.push_back({o.name, DType::f32, o.shape, std::as_bytes(std::span(o.values))});
  }
  write_safetensors(path, std::move(views), {{"format", "pt"}});
}

}  // namespace heddle
