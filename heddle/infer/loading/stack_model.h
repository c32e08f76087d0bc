// A model of the registry in a folder, as Hugging Face lays it out.
#pragma once

#include <memory>
#include <string>

#include "heddle/models/registry.h"

namespace heddle {

/// A model that is ready to use.
struct StackModel {
  std::string path;  ///< the folder that it was read from
  std::string type;  ///< model_type of its config
  nn::Parameters parameters;
  std::unique_ptr<Model> model;
};

/// The model_type of the model that `path` names, see find_model_dir(): one of the registry, or a
/// translator's, see is_translator_type(). Errors: data, naming the file and the known types, for
/// any other or none.
std::string model_type_of(const std::string& path);

/// Reads config.json and the weights, see open_weights(). A folder with an adapter in place of
/// weights gives the model that it stands on with the adapter added. Errors: those of
/// ModelConfig::read(); data, naming the file and what to do, for anything missing, broken, cut
/// short, or weights of another config. `head`: what is to stand on a bare stack (GPT2Model), where
/// the family has that: a tied output needs no weights of its own.
StackModel load_stack_model(const std::string& path, Head head = Head::none);

/// Writes config.json alone, for weights of this dtype; the folder is made if need be.
void save_stack_config(const std::string& path, const Model& model, DType dtype = DType::f32);
/// Writes config.json and model.safetensors, f32, bf16 or f16; the folder is made if need be.
/// Errors: system for a full disk or no permission; data for values beyond f16.
void save_stack_model(const std::string& path, const Model& model, const nn::Parameters& parameters,
                      DType dtype = DType::f32);

/// What `torch_dtype` of config.json calls it: "float32". Of f32, bf16 and f16.
const char* torch_dtype_name(DType dtype);

}  // namespace heddle
