// Lines of text around translation: ids in, ids out.
#include <algorithm>

#include "heddle/base/json/fields.h"
#include "heddle/base/names.h"
#include "heddle/base/profile.h"
#include "heddle/data/parallel_text.h"
#include "heddle/infer/decoding/translate.h"
#include "heddle/text/strings/strings.h"

namespace heddle {
namespace {

using Ids = std::vector<std::vector<int32_t>>;

// What stands before and behind each source.
struct Around {
  std::vector<int32_t> before, behind;
};

Around around_texts(const LoadedModel& model) {
  const std::vector<int32_t> end = {static_cast<int32_t>(model.translator().facts().eos_token_id)};
  if (!model.tokenizer || model.model->config().is_own_format()) return {{}, end};
  constexpr int32_t kText = -1;
  const std::vector<int32_t> ids =
      model.tokenizer->with_special(std::vector{kText}, model.source_language).ids;
  const auto text = std::find(ids.begin(), ids.end(), kText);
  Around around{{ids.begin(), text}, {text + 1, ids.end()}};
  if (around.behind.empty()) around.behind = end;
  return around;
}

std::vector<std::string> names_of(const std::vector<std::pair<std::string, int32_t>>& languages) {
  std::vector<std::string> names;
  for (const auto& [name, token] : languages) names.push_back(name);
  return names;
}

// The token of a language that the field `key` asks for.
int32_t language_token(const LoadedModel& model, const std::string& name, const char* key) {
  const auto languages = model.tokenizer.value().languages();
  check(!languages.empty(), ErrorKind::usage,
        "{} is '{}', but the tokenizer of {} marks no languages; leave it out", field_name(key),
        name, model.path);
  for (const auto& [known, token] : languages) {
    if (known == name) return token;
  }
  const std::vector<std::string> names = names_of(languages);
  fail(ErrorKind::usage, "{} is '{}'{}; the languages of {} are {}", field_name(key), name,
       did_you_mean(name, names), model.path, fmt::join(names, ", "));
}

// A token may be the byte of a line break; a line in must stay a line out.
std::string without_breaks(std::string text) {
  for (char& c : text) {
    if (c == '\n' || c == '\r') c = ' ';
  }
  return text;
}

std::vector<int32_t> line_ids(const LoadedModel& model, const Tokenizer& tokenizer,
                              const Around& around, const std::string& line,
                              const std::string& where, bool truncate, bool* was_cut) {
  if (was_cut != nullptr) *was_cut = false;
  check_text(line, where);
  if (is_blank(line)) return {};
  std::vector<int32_t> ids = tokenizer.encode(line);
  const auto special = static_cast<int64_t>(around.before.size() + around.behind.size());
  const int64_t limit = model.translator().facts().longest_source - special;
  if (static_cast<int64_t>(ids.size()) > limit) {
    check(truncate, ErrorKind::data,
          "{}: {} tokens with the end of the sentence; the model takes {} "
          "(max_position_embeddings). Split the line, or cut it with `truncate`",
          where, static_cast<int64_t>(ids.size()) + special, limit + special);
    ids.resize(static_cast<size_t>(limit));
    if (was_cut != nullptr) *was_cut = true;
  }
  ids.insert(ids.begin(), around.before.begin(), around.before.end());
  return ids;
}

Ids tokenise(const LoadedModel& model, std::span<const std::string> lines, bool truncate,
             int64_t first_line, int64_t* cut) {
  const ProfilePhase phase("tokenise");
  const Around around = around_texts(model);
  Ids sources;
  for (size_t i = 0; i < lines.size(); ++i) {
    bool was_cut = false;
    const std::string where = fmt::format("line {}", first_line + static_cast<int64_t>(i));
    sources.push_back(
        line_ids(model, model.tokenizer.value(), around, lines[i], where, truncate, &was_cut));
    if (cut != nullptr && was_cut) ++*cut;
  }
  return sources;
}

}  // namespace

TranslateOptions default_options(const LoadedModel& model, const SearchConfig& above) {
  SearchConfig g = model.generation.value_or(SearchConfig());
  lay_over(g, above);
  TranslateOptions o{.search = g, .is_hub = model.generation.has_value()};
  if (!o.is_hub) return o;
  o.source_end = around_texts(model).behind;
  // Theirs count the start, and the end too; 20 is what they take if nothing is said.
  const int64_t most = g.max_new_tokens ? *g.max_new_tokens : g.max_length.value_or(20) - 1;
  o.max_length = std::max<int64_t>(1, most - 1);
  o.search.min_new_tokens =
      std::min(std::max(g.min_new_tokens.value_or(0), g.min_length.value_or(0) - 1), o.max_length);
  o.search.min_length.reset();
  return o;
}

void set_languages(LoadedModel& model, const std::string& source, const std::string& target,
                   TranslateOptions& options) {
  if (!source.empty()) {
    model.source_language = language_token(model, source, "source_language");
    options.source_end = around_texts(model).behind;
  }
  if (model.model->config().is_own_format()) return;
  const auto start = static_cast<int32_t>(model.translator().facts().decoder_start_token_id);
  const auto languages = model.target().languages();
  const bool starts_with_one = std::any_of(languages.begin(), languages.end(),
                                           [&](const auto& l) { return l.second == start; });
  if (target.empty()) {
    check(languages.empty() || starts_with_one || token_id(options.search.forced_bos),
          ErrorKind::usage, "{} writes {} languages; say which with `target_language`: {}",
          model.path, languages.size(), fmt::join(names_of(languages), ", "));
    return;
  }
  (starts_with_one ? options.start : options.search.forced_bos) =
      language_token(model, target, "target_language");
}

std::vector<int32_t> source_ids(const LoadedModel& model, const std::string& line,
                                const std::string& where, bool truncate, bool* was_cut) {
  return line_ids(model, model.tokenizer.value(), around_texts(model), line, where, truncate,
                  was_cut);
}

std::vector<int32_t> target_ids(const LoadedModel& model, const std::string& line,
                                const std::string& where, bool truncate, bool* was_cut) {
  const auto end = static_cast<int32_t>(model.translator().facts().eos_token_id);
  return line_ids(model, model.target(), {{}, {end}}, line, where, truncate, was_cut);
}

std::vector<int32_t> prefix_ids(const LoadedModel& model, const std::string& text,
                                const std::string& where) {
  check_text(text, where);
  return model.target().encode(text);
}

std::vector<Translation> translate_lines(const LoadedModel& model,
                                         std::span<const std::string> lines,
                                         const TranslateOptions& options, int64_t first_line,
                                         int64_t* cut) {
  const Ids sources = tokenise(model, lines, options.truncate, first_line, cut);
  const Tokenizer& tokenizer = model.target();
  TranslateOptions with_unk = options;
  with_unk.search.first_line = first_line;
  if (!options.is_hub) with_unk.search.suppressed.push_back(tokenizer.unk_id());
  std::vector<Translation> results = translate_ids(model.translator(), sources, with_unk);
  const ProfilePhase phase("detokenise");
  for (Translation& t : results) {
    t.text = without_breaks(tokenizer.decode(t.ids));
    for (Translation& o : t.others) o.text = without_breaks(tokenizer.decode(o.ids));
  }
  return results;
}

}  // namespace heddle
