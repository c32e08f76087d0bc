// Names of languages, given or taken from the suffixes of the files.
#include "heddle/train/batches/pair_languages.h"

#include <algorithm>
#include <ranges>

#include "heddle/base/names.h"
#include "heddle/infer/loading/loaded_model.h"

namespace heddle::train {
namespace {

struct LanguageSide {
  const std::string &asked, &suffix;
  const char *key, *suffix_key;
};

// "" of a tokenizer that marks none.
std::string name_of(const LanguageSide& side, const Tokenizer& tokenizer, const std::string& path) {
  const auto languages = tokenizer.languages();
  if (languages.empty()) return "";
  const auto names = std::views::keys(languages);
  const std::string& name = side.asked.empty() ? side.suffix : side.asked;
  if (std::ranges::find(names, name) != names.end()) return name;
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
  return {name_of({l.source, l.source_suffix, "source_language", "source_lang"}, source, path),
          name_of({l.target, l.target_suffix, "target_language", "target_lang"}, target, path)};
}

}  // namespace

bool marks_languages(const std::string& path, const PairLanguages& languages) {
  if (path.empty()) return false;
  const auto pair = find_tokenizer_pair(find_model_dir(path));
  if (!pair) return false;
  const LanguageNames names =
      names_of(languages, pair->source, pair->target ? *pair->target : pair->source, path);
  return !names.source.empty() || !names.target.empty();
}

LanguageNames set_languages(LoadedModel& model, const PairLanguages& languages,
                            TranslateOptions& options) {
  LanguageNames names = names_of(languages, model.tokenizer.value(), model.target(), model.path);
  heddle::set_languages(model, names.source, names.target, options);
  return names;
}

}  // namespace heddle::train
