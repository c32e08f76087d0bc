// Texts as their models take them: special ids around them, cut where they are too long.
#include "heddle/infer/loading/text_model.h"

#include <algorithm>

#include "heddle/base/files/files.h"
#include "heddle/base/log.h"
#include "heddle/base/names.h"
#include "heddle/infer/engine/sequence_reader.h"
#include "heddle/text/strings/strings.h"

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
  check_tokenizer_ids(model, encoding.ids);
  return encoding;
}

}  // namespace

void check_tokenizer_ids(const LoadedModel& model, std::span<const int32_t> ids) {
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

IdsAround ids_around_text(const Tokenizer& tokenizer, int32_t language) {
  constexpr int32_t kText = -1;
  const std::vector<int32_t> ids = tokenizer.with_special(std::vector{kText}, language).ids;
  const auto text = std::find(ids.begin(), ids.end(), kText);
  return {{ids.begin(), text}, {text + (text != ids.end()), ids.end()}};
}

int64_t room_of(const LoadedModel& model) {
  const int64_t special = model.tokenizer->special_count();
  check_room(model, special);
  return model.max_length - special;
}

LoadedModel load_text_model(const std::string& path) {
  LoadedModel model = load_model(
      path, {.tokenizers = LoadOptions::Tokenizers::needed, .reads = LoadOptions::Reads::one_text});
  model.max_length = std::min(model.max_length, tokenizer_limit(model.path));
  check_tokenizer_ids(model, model.tokenizer->with_special({}).ids);
  return model;
}

Encoding encode_truncated(const LoadedModel& model, std::string_view text, int64_t& cut) {
  const Tokenizer& t = *model.tokenizer;
  const auto most = static_cast<size_t>(room_of(model));
  std::vector<int32_t> ids = t.encode(text);
  if (ids.size() > most) {
    ids.resize(most);
    ++cut;
  }
  return checked(model, t.with_special(ids), text);
}

Encoding encode_truncated(const LoadedModel& model, std::string_view first, std::string_view second,
                          int64_t& cut) {
  const Tokenizer& t = *model.tokenizer;
  check_room(model, t.special_count(true));
  std::vector<int32_t> a = t.encode(first), b = t.encode(second);
  const auto most = static_cast<size_t>(model.max_length - t.special_count(true));
  const auto [a_size, b_size] = lengths_that_fit(a.size(), b.size(), most);
  cut += a_size < a.size() || b_size < b.size();
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

PairMarks usual_marks(const EncoderDecoderFacts& facts) {
  const auto eos = static_cast<int32_t>(facts.eos_token_id);
  return {.source_end = {eos},
          .target_start = {static_cast<int32_t>(facts.decoder_start_token_id)},
          .target_end = eos};
}

TranslationBatch pack_pairs(std::span<const std::vector<int32_t>> sources,
                            std::span<const std::vector<int32_t>> targets,
                            std::span<const size_t> pairs, const PairMarks& marks) {
  PairPacker packer(marks);
  for (const size_t i : pairs) {
    packer.add(static_cast<int64_t>(i), static_cast<uint32_t>(i), sources[i], targets[i]);
  }
  return packer.take();
}

// --- prompts -------------------------------------------------------------------------------------

namespace {

int64_t longest_prompt(const LoadedModel& model, const PromptOptions& options) {
  return options.context > 0 ? options.context : model.tokens().max_length();
}

// transformers writes GPT-2's beginning and end into configs of any size: where the vocabulary has
// no such token there is none.
void drop_unknown_ends(SearchConfig& search, int64_t vocab) {
  std::erase_if(search.eos, [&](int64_t id) { return id >= vocab; });
  if (search.bos.value_or(0) >= vocab) search.bos.reset();
}

// Of an empty prompt.
std::vector<int32_t> first_ids(const LoadedModel& model, const std::string& where) {
  const SearchConfig& search = model.generation.value();
  if (const auto bos = token_id(search.bos)) return {*bos};
  const std::vector<int32_t> ends = search.ends();
  check(!ends.empty(), ErrorKind::data,
        "{} is empty, and the model has neither a bos_token_id nor an eos_token_id to begin with; "
        "give at least one token",
        where);
  return {ends[0]};
}

}  // namespace

std::vector<int32_t> begin_text(const Tokenizer& tokenizer, const std::string& text) {
  std::vector<int32_t> ids = ids_around_text(tokenizer).before;
  const std::vector<int32_t> tokens = tokenizer.encode(text);
  ids.insert(ids.end(), tokens.begin(), tokens.end());
  return ids;
}

std::vector<int32_t> document_ids(const Tokenizer& tokenizer,
                                  std::span<const std::string> documents) {
  std::vector<int32_t> ids = begin_text(tokenizer, documents[0]);
  for (const std::string& document : documents.subspan(1)) {
    if (tokenizer.eos_id() >= 0) ids.push_back(tokenizer.eos_id());
    const std::vector<int32_t> tokens = tokenizer.encode(document);
    ids.insert(ids.end(), tokens.begin(), tokens.end());
  }
  return ids;
}

LoadedModel load_prompt_model(const std::string& path) {
  LoadedModel model = load_model(path, {.head = Head::next_token,
                                        .tokenizers = LoadOptions::Tokenizers::if_there,
                                        .reads = LoadOptions::Reads::one_text});
  check(predicts_next_token(*model.model), ErrorKind::data,
        "{}: this {} does not predict the next token; a language model is needed, such as {}", path,
        model.type, class_of_head(Head::next_token));
  model.generation = read_generation_config(model.path);
  drop_unknown_ends(*model.generation, model.tokens().vocab_size());
  if (token_id(model.generation->forced_bos)) {
    log_warning("{}: forced_bos_token_id is a rule of encoder-decoders; heddle passes over it",
                model.path);
  }
  return model;
}

PromptTooLong::PromptTooLong(const std::string& plain)
    : Error(ErrorKind::data,
            plain + name_fields(". Shorten it, or keep its last tokens with `truncate`")),
      plain_(plain) {}

std::vector<int32_t> prompt_ids(const LoadedModel& model, const std::string& text,
                                const std::string& where, const PromptOptions& options,
                                int64_t& cut) {
  check(model.tokenizer.has_value(), ErrorKind::usage,
        "{}: the folder has no tokenizer; give the prompt as ids, as in `ids` 12,7,30", model.path);
  check_text(text, where);
  // Cut first, so that the special tokens stay; of them only those in front begin a text.
  std::vector<int32_t> ids = model.tokenizer->encode(text);
  const std::vector<int32_t> front = ids_around_text(*model.tokenizer).before;
  const int64_t room = longest_prompt(model, options) - std::ssize(front);
  const bool is_long = options.truncate && std::ssize(ids) > room;
  if (is_long) {
    const int64_t kept = std::max<int64_t>(1, room - options.max_new_tokens);
    ids.erase(ids.begin(), ids.end() - std::min(kept, std::ssize(ids)));
  }
  ids.insert(ids.begin(), front.begin(), front.end());
  int64_t cut_again = 0;
  ids = prompt_ids(model, std::move(ids), where, options, cut_again);
  cut += is_long || cut_again > 0;
  return ids;
}

std::vector<int32_t> prompt_ids(const LoadedModel& model, std::vector<int32_t> ids,
                                const std::string& where, const PromptOptions& options,
                                int64_t& cut) {
  const int64_t longest = longest_prompt(model, options);
  if (ids.empty()) ids = first_ids(model, where);
  nn::check_ids(ids, model.tokens().vocab_size(), where);
  const auto length = static_cast<int64_t>(ids.size());
  if (length <= longest) return ids;
  if (!options.truncate) {
    throw PromptTooLong(
        fmt::format("{} has {} tokens; the model takes {} at most", where, length, longest));
  }
  ++cut;
  ids.erase(ids.begin(), ids.end() - std::max<int64_t>(1, longest - options.max_new_tokens));
  return ids;
}

}  // namespace heddle
