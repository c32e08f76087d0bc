// Models as timm (github.com/huggingface/pytorch-image-models) writes them: config.json with an
// architecture's name, tensors under names of its own. In memory they are models of heddle's
// families.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "heddle/io/tensor_file.h"
#include "heddle/models/config.h"

namespace heddle::timm {

/// Whether a config.json is timm's, or of the class of transformers that holds a model of timm's.
bool is_config(const Json& config);

/// config.json of the family that an architecture is of ("vit_base_patch16_224": a vit), with what
/// model_args change; pretrained_cfg stays in it. Errors: data, naming `source`, for an
/// architecture that heddle does not know or arguments that it cannot follow.
Json family_config(const Json& config, const std::string& source);

/// The weights of such a model under the names of its family, where they lie. config: what
/// family_config() gave.
std::unique_ptr<TensorFile> family_weights(std::unique_ptr<TensorFile> file, const Json& config);

/// The way back: config.json, in whose pretrained_cfg lacks how images are prepared, and what is to
/// be said of it.
struct Written {
  Json config;
  std::string note;  ///< "" if timm loads it as it is and computes the same
};
/// Errors: data for a model that timm has nothing for.
Written written_config(const ModelConfig& config);
/// Writes model.safetensors. Errors: data for a tensor that timm's models have not, or values
/// beyond f16; system.
void save_weights(const std::string& path, const nn::Parameters& parameters,
                  const ModelConfig& config, DType dtype);

/// A tensor's name there, and here: of several the parts, of equally many rows each. '#' stands for
/// a number, the same on both sides, '*' for the rest of a name.
struct NameRule {
  std::string theirs;
  std::vector<std::string> ours;
};
/// Those of a family. config: as family_config() gives it.
std::vector<NameRule> name_rules(const Json& config);

}  // namespace heddle::timm
