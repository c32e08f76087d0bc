// The files of sentence-transformers in a model's folder: what follows the Transformer.
// https://sbert.net/docs/sentence_transformer/usage/custom_models.html
#pragma once

#include <string>
#include <vector>

namespace heddle {

inline constexpr const char* kModulesName = "modules.json";
inline constexpr const char* kSentenceLimitsName = "sentence_bert_config.json";
inline constexpr const char* kSentencePromptsName = "config_sentence_transformers.json";

/// A line of modules.json.
struct SentenceModule {
  std::string type;    ///< the last part: "Pooling"
  std::string place;   ///< as it stands there: "1_Pooling"; "" for the model's own folder
  std::string folder;  ///< of its files
};

/// What modules.json of `folder` lists, a Transformer first; an error of data where it does not, or
/// where a path leaves the folder.
std::vector<SentenceModule> read_sentence_modules(const std::string& folder);

/// The entries of a model's folder that are sentence-transformers' own: the three files above and
/// the folders of modules, those that are there. Without modules.json: none.
std::vector<std::string> sentence_entries(const std::string& folder);

/// Copies these, with the files in the folders, to a folder that exists.
void copy_sentence_entries(const std::string& from, const std::string& to);

}  // namespace heddle
