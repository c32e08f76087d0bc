// Lines of text around translation: ids in, ids out.
#include "heddle/base/profile.h"
#include "heddle/infer/decoding/translate.h"
#include "heddle/text/strings/check_text.h"

namespace heddle {
namespace {

using Ids = std::vector<std::vector<int32_t>>;

bool is_blank(const std::string& line) {
  return line.find_first_not_of(" \t\r\v\f") == std::string::npos;
}

// A token may be the byte of a line break; a line in must stay a line out.
std::string without_breaks(std::string text) {
  for (char& c : text) {
    if (c == '\n' || c == '\r') c = ' ';
  }
  return text;
}

Ids tokenise(const LoadedModel& model, std::span<const std::string> lines, bool truncate,
             int64_t first_line, int64_t* cut) {
  const ProfilePhase phase("tokenise");
  Ids sources;
  for (size_t i = 0; i < lines.size(); ++i) {
    bool was_cut = false;
    sources.push_back(source_ids(model, lines[i],
                                 fmt::format("line {}", first_line + static_cast<int64_t>(i)),
                                 truncate, &was_cut));
    if (cut != nullptr && was_cut) ++*cut;
  }
  return sources;
}

std::vector<int32_t> line_ids(const LoadedModel& model, const Tokenizer& tokenizer,
                              const std::string& line, const std::string& where, bool truncate,
                              bool* was_cut) {
  if (was_cut != nullptr) *was_cut = false;
  check_text(line, where);
  if (is_blank(line)) return {};
  std::vector<int32_t> ids = tokenizer.encode(line);
  const int64_t limit = model.translator().facts().longest_source - 1;
  if (static_cast<int64_t>(ids.size()) > limit) {
    check(truncate, ErrorKind::data,
          "{}: {} tokens with the end of the sentence; the model takes {} "
          "(max_position_embeddings). Split the line, or cut it with --truncate",
          where, ids.size() + 1, limit + 1);
    ids.resize(static_cast<size_t>(limit));
    if (was_cut != nullptr) *was_cut = true;
  }
  return ids;
}

}  // namespace

TranslateOptions default_options(const LoadedModel& model, const SearchConfig& above) {
  SearchConfig g = model.generation.value_or(SearchConfig());
  lay_over(g, above);
  TranslateOptions o{.beam = g.beam.value_or(1),
                     .length_penalty = g.length_penalty.value_or(1),
                     .is_hub = model.generation.has_value(),
                     .rules = g.rules(),
                     .suppressed = g.suppressed_ids()};
  if (!o.is_hub) return o;
  o.early_stopping = g.stops_early();
  o.needs_end = token_id(g.forced_eos).has_value();
  // Theirs count the start, and the end too; 20 is what they take if nothing is said.
  const int64_t most = g.max_new_tokens ? *g.max_new_tokens : g.max_length.value_or(20) - 1;
  o.max_length = std::max<int64_t>(1, most - 1);
  o.rules.min_length =
      std::min(std::max(o.rules.min_length, g.min_length.value_or(0) - 1), o.max_length);
  return o;
}

std::vector<int32_t> source_ids(const LoadedModel& model, const std::string& line,
                                const std::string& where, bool truncate, bool* was_cut) {
  return line_ids(model, model.tokenizer.value(), line, where, truncate, was_cut);
}

std::vector<int32_t> target_ids(const LoadedModel& model, const std::string& line,
                                const std::string& where, bool truncate, bool* was_cut) {
  return line_ids(model, model.target(), line, where, truncate, was_cut);
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
  if (with_unk.sampling) with_unk.sampling->first_line = first_line;
  if (!options.is_hub && tokenizer.unk_id() >= 0) with_unk.suppressed.push_back(tokenizer.unk_id());
  std::vector<Translation> results = translate_ids(model.translator(), sources, with_unk);
  const ProfilePhase phase("detokenise");
  for (Translation& t : results) {
    t.text = without_breaks(tokenizer.decode(t.ids));
    for (Translation& o : t.others) o.text = without_breaks(tokenizer.decode(o.ids));
  }
  return results;
}

}  // namespace heddle
