// Weights of one model in another of its family, and low-rank adapters in the form of PEFT.
// Source: Hu et al. 2022, "LoRA"; github.com/huggingface/peft for names and files.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "heddle/models/model.h"

namespace heddle {

inline constexpr const char* kAdapterConfigName = "adapter_config.json";
inline constexpr const char* kAdapterWeightsName = "adapter_model.safetensors";
/// What PEFT puts before the names of tensors.
inline constexpr const char* kAdapterPrefix = "base_model.model.";

/// A matrix, one part of a parameter, to which scale * b a is added.
struct LowRankTarget {
  nn::Parameter* parameter = nullptr;
  nn::Part part = {};
  std::string module;  ///< name of the layer: "transformer.h.0.attn.c_attn"
};

/// The matrices of layers whose name is, or ends with, one of `targets` ("c_attn", "query").
/// Errors: usage, naming the target, if one matches no layer; the layers' names are listed.
std::vector<LowRankTarget> low_rank_targets(nn::Parameters& parameters,
                                            const std::vector<std::string>& targets);

/// Sets rows of the target's matrix to base + scale * b a.
/// base: [rows * in], a: [rank, in], b: [rows, rank], f32
void add_low_rank(const LowRankTarget& target, const float* base, const Tensor& a, const Tensor& b,
                  float scale);

/// Names of parameters.
struct CopiedWeights {
  std::vector<std::string> alone = {};     ///< that `to` alone has; they keep their values
  std::vector<std::string> left_out = {};  ///< that `from` alone has
};
/// Copies the values of parameters that both models have, by name, whatever the base prefix. Those
/// of a head for other classes, by number or by names, are alone; of the same names in another
/// order the rows are put into that of `to`. Learned positions of images of another size become
/// those of `to` (GridPositions::table_of()). Errors: data, naming both shapes, for one of another
/// shape.
CopiedWeights copy_weights(const nn::Parameters& from, const Model& from_model, nn::Parameters& to,
                           const Model& to_model);

/// True if the folder holds an adapter without the weights of a whole model beside it.
bool is_adapter_alone(const std::string& folder);
/// The folder of the model that an adapter stands on, as its config names it: a path, also one
/// beside the adapter. Errors: data if it is not there, or is an adapter alone.
std::string adapter_base(const std::string& folder);
/// Adds an adapter to the weights of its base model, and takes the layers that it holds whole.
/// `missing`: names of parameters that the base model lacks, which it must hold.
/// Errors: data, naming the tensor, for one that does not fit or is missing, or settings that are
/// not supported.
void merge_adapter(const std::string& folder, nn::Parameters& parameters,
                   std::span<const std::string> missing);

}  // namespace heddle
