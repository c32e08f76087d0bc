// Special tokens by name: tokenizer_config.json, special_tokens_map.json, added_tokens.json.
#pragma once

#include <string>
#include <vector>

#include "heddle/base/json.h"
#include "heddle/text/tokenizer_json.h"

namespace heddle {

/// What stands beside the vocabulary in a folder; null where a file is missing.
struct HubFiles {
  std::string folder;
  Json config;                       ///< tokenizer_config.json
  Json special_map;                  ///< special_tokens_map.json
  Json added;                        ///< added_tokens.json
  std::string model_type;            ///< of config.json; "" if it says none
  std::vector<TokenizerFile> files;  ///< all that were read, config.json aside

  static HubFiles read(const std::string& folder);
  /// Reads one more file of the folder, which is kept among `files`. Errors: data if it is missing.
  const std::string& add(const std::string& name);
  std::string path(const std::string& name) const;
  /// Whether tokenizer_class or else model_type begins with the name, in lower case: "gpt2".
  bool is_class(std::string_view name) const;
  bool flag(const char* key, bool otherwise) const;
};

/// Adds the tokens that the files name to the description and fills in its special ids. Where they
/// name none, or for each that they do not name if what usual means is known from the kind of
/// files, the usual names are taken if they are added tokens ("[MASK]", "</s>", ..).
/// Errors: data, naming the file, for an id out of range or of another token.
void apply_special_tokens(const HubFiles& files, bool is_class_known,
                          PipelineDescription& description);

}  // namespace heddle
