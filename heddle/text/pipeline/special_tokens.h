// Special tokens by name: tokenizer_config.json, special_tokens_map.json, added_tokens.json.
#pragma once

#include <string>
#include <vector>

#include "heddle/base/json/json.h"
#include "heddle/text/pipeline/pipeline.h"

namespace heddle {

/// transformers' class of whatever a tokenizer.json says.
inline constexpr const char* kAnyClass = "PreTrainedTokenizerFast";

/// What stands beside the vocabulary in a folder; null where a file is missing.
struct HubFiles {
  std::string folder;
  Json config;                       ///< tokenizer_config.json
  Json special_map;                  ///< special_tokens_map.json
  Json added;                        ///< added_tokens.json
  std::string model_type;            ///< of config.json; "" if it says none
  std::vector<TokenizerFile> files;  ///< all that were read, config.json aside: see keep_class()
  /// The class by which transformers reads the files as heddle does, see take_config_aside().
  std::string usual_class;

  static HubFiles read(const std::string& folder);
  /// Reads one more file of the folder, unless it is among `files`, where it is kept. Errors: data
  /// if it is missing.
  const std::string& add(const std::string& name);
  std::string path(const std::string& name) const;
  /// Whether tokenizer_class, or model_type where that is absent or general, begins with the name,
  /// in lower case: "gpt2".
  bool is_class(std::string_view name) const;
  bool flag(const char* key, bool otherwise) const;
  /// What tokenizer_config.json, or else special_tokens_map.json, has for "cls_token" or another:
  /// a text or an object, nullptr if neither.
  const Json* special(const char* key) const;
  /// Its content, `usual` if neither has it.
  std::string special_name(const char* key, const std::string& usual) const;
  /// To be called where is_class() decided how the files are read: if tokenizer_config.json does
  /// not say the class, it gets this one, so that the files, saved, are read so again whatever
  /// config.json is then beside them, and have a fingerprint of their own.
  void keep_class(const std::string& name);

 private:
  std::string stated_class() const;
};

/// Has a tokenizer_config.json saved beside the files, by which transformers reads them as heddle
/// does, whatever config.json says: the class (if there is such a one), clean-up as heddle has it
/// of files that say nothing, and, where the class does not know them, the special tokens, which
/// the description has already. A file of these bytes is taken out of `files`, so that the others
/// have the same fingerprint with it and without.
void take_config_aside(HubFiles& files, PipelineDescription& description);

/// Makes the tokens of these names, as far as the vocabulary has them, tokens that are found in
/// texts.
void add_usual(const std::vector<const char*>& names, PipelineDescription& d,
               const std::string& source);

/// Adds the tokens that the files name to the description and fills in its special ids. Where they
/// name none, or for each that they do not name if what usual means is known from the kind of
/// files, the usual names are taken if they are added tokens ("[MASK]", "</s>", ..).
/// Errors: data, naming the file, for an id out of range or of another token.
void apply_special_tokens(const HubFiles& files, bool is_class_known,
                          PipelineDescription& description);

/// Puts the language of a text around it where the class of the tokenizer (mBART, mBART-50, NLLB,
/// M2M-100) does that: src_lang of tokenizer_config.json, or English.
void lay_out_languages(HubFiles& files, PipelineDescription& description);

/// The language that a token stands for: "en_XX", "eng_Latn", or "en" of "__en__"; "" if it is
/// none.
std::string language_of(const std::string& token);

}  // namespace heddle
