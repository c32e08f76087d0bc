// The weights of a model directory, in whichever files Hugging Face keeps them.
#pragma once

#include <memory>
#include <string>

#include "heddle/io/tensor_file.h"

namespace heddle {

// The files that are looked for, in this order.
inline constexpr const char* kWeightsName = "model.safetensors";
inline constexpr const char* kWeightsIndexName = "model.safetensors.index.json";
inline constexpr const char* kTorchWeightsName = "pytorch_model.bin";
inline constexpr const char* kTorchIndexName = "pytorch_model.bin.index.json";

/// Opens model.safetensors, or the shards that its index names, or pytorch_model.bin, or its
/// shards. A tensor is where the index says; tensors that it does not name are passed over with a
/// warning. Errors: data, naming the file and what to do, if there is none, a shard or a tensor in
/// it is missing, an index names a file outside the folder, or for a file that cannot be read as
/// what it should be.
std::unique_ptr<TensorFile> open_weights(const std::string& folder,
                                         Mapping mapping = Mapping::own_copy);

}  // namespace heddle
