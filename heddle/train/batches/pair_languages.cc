// Names of languages, given or taken from the suffixes of the files.
#include "heddle/train/batches/pair_languages.h"

#include <algorithm>
#include <ranges>

#include "heddle/base/files/files.h"
#include "heddle/base/json/json.h"
#include "heddle/base/names.h"
#include "heddle/infer/loading/loaded_model.h"

namespace heddle::train {
namespace {

struct LanguageSide {
  const std::string &asked, &suffix, &kept;
  const char *key, *suffix_key;
};

// What a run that was told languages kept in its folder.
LanguageNames kept_names(const std::string& folder) {
  const std::string path = join_path(folder, "tokenizer_config.json");
  if (!path_exists(path)) return {};
  const Json json = Json::load(path);
  const auto name = [&](const char* key) {
    const Json* found = json.find(key);
    return found == nullptr || !found->is_string() ? std::string() : found->as_string();
  };
  LanguageNames names = {name("src_lang"), name("tgt_lang")};
  return names.source.empty() || names.target.empty() ? LanguageNames() : names;
}

// "" of a tokenizer that marks none.
std::string name_of(const LanguageSide& side, const Tokenizer& tokenizer, const std::string& path) {
  const auto languages = tokenizer.languages();
  if (languages.empty()) return "";
  const auto names = std::views::keys(languages);
  const auto is_known = [&](const std::string& one) {
    return std::ranges::find(names, one) != names.end();
  };
  const std::string& name = side.asked.empty() ? side.suffix : side.asked;
  if (is_known(name)) return name;
  if (side.asked.empty() && is_known(side.kept)) return side.kept;
  const std::vector<std::string> known(names.begin(), names.end());
  if (side.asked.empty()) {
    fail(ErrorKind::usage,
         "train: {} is told the language of each side, and the {} '{}' is none of its {}; say "
         "which it is with {}: {}",
         path, field_name(side.suffix_key), name, known.size(), field_name(side.key),
         fmt::join(known, ", "));
  }
  fail(ErrorKind::usage, "train: {} is '{}'{}; the languages of {} are {}", field_name(side.key),
       name, did_you_mean(name, known), path, fmt::join(known, ", "));
}

LanguageNames names_of(const PairLanguages& l, const Tokenizer& source, const Tokenizer& target,
                       const std::string& path) {
  const LanguageNames kept = kept_names(path);
  return {name_of({l.source, l.source_suffix, kept.source, "source_language", "source_lang"},
                  source, path),
          name_of({l.target, l.target_suffix, kept.target, "target_language", "target_lang"},
                  target, path)};
}

}  // namespace

bool marks_languages(const std::string& path, const PairLanguages& languages) {
  if (path.empty()) return false;
  const std::string folder = find_model_dir(path);
  const auto pair = find_tokenizer_pair(folder);
  if (!pair) return false;
  const LanguageNames names =
      names_of(languages, pair->source, pair->target ? *pair->target : pair->source, folder);
  return !names.source.empty() || !names.target.empty();
}

LanguageNames set_languages(LoadedModel& model, const PairLanguages& languages,
                            TranslateOptions& options) {
  LanguageNames names = names_of(languages, model.tokenizer.value(), model.target(), model.path);
  heddle::set_languages(model, names.source, names.target, options);
  return names;
}

}  // namespace heddle::train
