// A model of the registry with its tokenizer: texts in, rows of tokens to the model.
#include "heddle/infer/loading/text_model.h"

#include <algorithm>

#include "heddle/base/files/files.h"

namespace heddle {
namespace {

/// Longest text by tokenizer_config.json; huge if it does not say (transformers writes 1e30 then).
int64_t tokenizer_limit(const std::string& folder) {
  constexpr double kNone = 1e9;
  const std::string path = join_path(folder, "tokenizer_config.json");
  if (!path_exists(path)) return static_cast<int64_t>(kNone);
  const Json config = Json::load(path);
  const Json* limit = config.find("model_max_length");
  if (limit == nullptr || limit->is_null()) return static_cast<int64_t>(kNone);
  const double value = limit->as_double(path + ": key 'model_max_length'");
  check(value >= 1, ErrorKind::data, "{}: model_max_length is {}; it must be at least 1", path,
        value);
  return static_cast<int64_t>(std::min(value, kNone));
}

void check_room(const LoadedModel& model, int64_t special) {
  check(special < model.max_length, ErrorKind::data,
        "{}: texts of at most {} ids leave no room beside {} special ones", model.path,
        model.max_length, special);
}

/// The ids that remain of two parts, as `tokenizers` cuts them (longest_first).
std::pair<size_t, size_t> lengths_that_fit(size_t first, size_t second, size_t most) {
  if (first + second <= most) return {first, second};
  const bool is_swapped = first > second;
  if (is_swapped) std::swap(first, second);
  second = first > most ? first : std::max(first, most - first);
  if (first + second > most) {
    first = most / 2;
    second = first + most % 2;
  }
  return is_swapped ? std::pair(second, first) : std::pair(first, second);
}

Encoding checked(const LoadedModel& model, Encoding encoding, std::string_view text) {
  check(!encoding.ids.empty(), ErrorKind::data,
        "{}: the text '{}' gives no ids; a text with tokens is needed", model.path, text);
  check_ids(model, encoding.ids);
  return encoding;
}

}  // namespace

void check_ids(const LoadedModel& model, std::span<const int32_t> ids) {
  const int64_t known = model.tokens().vocab_size();
  for (const int32_t id : ids) {
    check(id < known, ErrorKind::data,
          "{}: the tokenizer gives '{}' the id {}, but the model has a vocab_size of {}; it is the "
          "tokenizer of another model",
          model.path, model.tokenizer->token(id), id, known);
  }
}

void check_head(const LoadedModel& model, bool has_it, Head head, const char* what) {
  check(has_it, ErrorKind::data, "{}: the model has no head for {}; one is needed, like {}",
        model.path, what, class_of_head(head));
}

int64_t room_of(const LoadedModel& model) {
  const int64_t special = model.tokenizer->special_count();
  check_room(model, special);
  return model.max_length - special;
}

LoadedModel load_text_model(const std::string& path) {
  check_reads_one_text(path);
  LoadedModel model = load_model(path, {.tokenizers = LoadOptions::Tokenizers::needed});
  model.max_length = std::min(model.max_length, tokenizer_limit(model.path));
  check_ids(model, model.tokenizer->with_special({}).ids);
  return model;
}

Encoding encode_to_fit(const LoadedModel& model, std::string_view text, bool& was_cut) {
  const Tokenizer& t = *model.tokenizer;
  const auto most = static_cast<size_t>(room_of(model));
  std::vector<int32_t> ids = t.encode(text);
  if (ids.size() > most) {
    ids.resize(most);
    was_cut = true;
  }
  return checked(model, t.with_special(ids), text);
}

Encoding encode_to_fit(const LoadedModel& model, std::string_view first, std::string_view second,
                       bool& was_cut) {
  const Tokenizer& t = *model.tokenizer;
  check_room(model, t.special_count(true));
  std::vector<int32_t> a = t.encode(first), b = t.encode(second);
  const auto most = static_cast<size_t>(model.max_length - t.special_count(true));
  const auto [a_size, b_size] = lengths_that_fit(a.size(), b.size(), most);
  was_cut = was_cut || a_size < a.size() || b_size < b.size();
  a.resize(a_size);
  b.resize(b_size);
  return checked(model, t.with_special(a, b), first);
}

PackedTexts::PackedTexts(const TokenModel& model, std::span<const Encoding> texts) {
  std::vector<int64_t> lengths;
  for (const Encoding& text : texts) {
    const std::vector<int32_t> own = model.positions(text.ids);
    ids.insert(ids.end(), text.ids.begin(), text.ids.end());
    types.insert(types.end(), text.types.begin(), text.types.end());
    position_ids.insert(position_ids.end(), own.begin(), own.end());
    lengths.push_back(static_cast<int64_t>(text.ids.size()));
  }
  segments = Segments::from_lengths(lengths);
}

}  // namespace heddle
