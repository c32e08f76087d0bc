// Sentences become requests of an engine, as many at a time as the batch may hold; lines of text
// around that.
#include "heddle/infer/decoding/translate.h"

#include <algorithm>
#include <functional>
#include <mutex>
#include <ranges>
#include <set>

#include "heddle/base/files/mmap.h"
#include "heddle/base/json/fields.h"
#include "heddle/base/names.h"
#include "heddle/base/parallel.h"
#include "heddle/base/profile.h"
#include "heddle/data/parallel_text.h"
#include "heddle/text/strings/sentences.h"
#include "heddle/text/strings/strings.h"

namespace heddle {
namespace {

// Token ids; of sources of another kind their memories, or the rows that these will have.
struct Sources {
  std::span<const std::vector<int32_t>> ids = {};
  std::span<const Tensor> memories = {};
  std::span<const int64_t> rows = {};

  size_t size() const { return ids.size() + memories.size() + rows.size(); }
  // Rows of the memory; of ids without that of the end.
  int64_t length(int64_t i) const {
    const auto at = static_cast<size_t>(i);
    if (!rows.empty()) return rows[at];
    return memories.empty() ? std::ssize(ids[at]) : memories[at].size(0);
  }
};

std::span<const int32_t> prefix_of(const TranslateOptions& o, int64_t sentence) {
  if (o.prefixes.empty()) return {};
  return o.prefixes[o.prefixes.size() == 1 ? 0 : static_cast<size_t>(sentence)];
}

// Whether the last token there is room for is the end, whatever the model says.
bool forces_end(const TranslateOptions& o) {
  return !o.as_transformers || token_id(o.search.forced_eos).has_value();
}

// The longest translation of so many source tokens, its end included: here alone it is added, where
// nothing else can come in its place.
int64_t longest_translation(const EncoderDecoderFacts& facts, const TranslateOptions& o,
                            int64_t tokens, size_t prefix) {
  const double length = o.longest_factor * static_cast<double>(tokens);
  int64_t limit = o.longest_without_end > 0 ? o.longest_without_end + (forces_end(o) ? 1 : 0)
                                            : static_cast<int64_t>(std::min(length, 1e9)) +
                                                  o.longest_extra + static_cast<int64_t>(prefix);
  return std::max<int64_t>(1, std::min(limit, facts.longest_target));
}

// Hands out the sentences to translate, in order, to any number of threads.
class Queue {
 public:
  Queue(const Sources& sources, std::span<const int64_t> order)
      : sources_(sources), order_(order) {}

  /// Sentences of at most `budget` encoder rows together, but the first whatever its length if
  /// `at_least_one`.
  std::vector<int64_t> take(int64_t budget, bool at_least_one) {
    const std::lock_guard lock(mutex_);
    std::vector<int64_t> taken;
    while (next_ < order_.size()) {
      budget -= rows_of(order_[next_]);
      if (budget < 0 && !(at_least_one && taken.empty())) break;
      taken.push_back(order_[next_++]);
    }
    return taken;
  }
  const Sources& sources() const { return sources_; }
  /// Tokens and end.
  int64_t rows_of(int64_t i) const { return sources_.length(i) + 1; }

 private:
  Sources sources_;
  std::span<const int64_t> order_;
  std::mutex mutex_;
  size_t next_ = 0;
};

// Sentences, the longest first, dealt out so that each hand gets as many and as long ones: nobody
// waits for a last one that a hand had no room for.
std::vector<std::vector<int64_t>> dealt(std::span<const int64_t> order, int64_t hands) {
  std::vector<std::vector<int64_t>> dealt(static_cast<size_t>(hands));
  for (size_t i = 0; i < order.size(); ++i) {
    const size_t round = i / dealt.size(), place = i % dealt.size();
    dealt[round % 2 == 0 ? place : dealt.size() - 1 - place].push_back(order[i]);
  }
  return dealt;
}

// What sentence i asks of the engine.
Request request_of(const EncoderDecoderFacts& c, const TranslateOptions& o,
                   const SearchConfig& search, const Sources& sources, int64_t i) {
  const std::span<const int32_t> prefix = prefix_of(o, i);
  Request r{.number = i,
            .tokens = {static_cast<int32_t>(o.start.value_or(c.decoder_start_token_id))},
            .prefix = {prefix.begin(), prefix.end()},
            .search = search,
            .rules_count_tokens = o.as_transformers,
            .longest_output = longest_translation(c, o, sources.length(i), prefix.size()),
            .penalty = o.as_transformers ? LengthPenalty::power : LengthPenalty::wu,
            .forced_eos_is_free = o.as_transformers,
            .penalises_log_p = o.as_transformers && search.beam.value_or(1) > 1,
            .scores = o.scores,
            .on_step = o.on_step};
  const auto at = static_cast<size_t>(i);
  if (!sources.memories.empty()) {
    r.memory = sources.memories[at];
  } else if (!sources.rows.empty()) {
    r.memory_rows = sources.rows[at];
  } else {
    r.source = sources.ids[at];
    r.source.insert(r.source.end(), o.source_end.begin(), o.source_end.end());
    if (o.source_end.empty()) r.source.push_back(static_cast<int32_t>(c.eos_token_id));
    if (o.shortlist != nullptr) r.candidates = o.shortlist->candidates(r.source);
  }
  if (const auto first = token_id(search.forced_bos)) {
    r.prefix.insert(r.prefix.begin(), *first);
    r.free_prefix = 1;
  }
  r.search.first_line += i;
  return r;
}

// Translates sentence i of the queue into results[i], at most `budget` encoder rows at a time.
void translate_queue(const EncoderDecoder& model, const TranslateOptions& options,
                     const SearchConfig& search, Queue& queue, int64_t budget,
                     std::vector<Translation>& results) {
  Engine engine(model, options.precision);
  int64_t live_rows = 0;  // of the encoder
  for (;;) {
    // Many at a time: an encoder pass over few sentences costs more than slots that stay empty.
    if (live_rows <= budget / 2) {
      for (const int64_t i : queue.take(budget - live_rows, live_rows == 0)) {
        Request r = request_of(model.facts(), options, search, queue.sources(), i);
        r.on_done = [&, i](const Outcome& outcome) {
          results[i] = as_translation(outcome.hypotheses);
          live_rows -= queue.rows_of(i);
        };
        live_rows += queue.rows_of(i);
        engine.submit(std::move(r));
      }
    }
    if (live_rows == 0) return;
    engine.step();
  }
}

// A model of up to so many weights stays in the cache of a core. Weights that come from further
// away are used by enough rows of a step where there are so many: measured on two threads.
constexpr int64_t kSmallModel = 8'000'000, kRowsOfEach = 64;

// The search of all sentences. Ids of the config that are no tokens never come, nor do the
// caller's.
SearchConfig search_of(const EncoderDecoderFacts& c, const TranslateOptions& o) {
  SearchConfig search = o.search;
  if (!o.as_transformers || search.eos.empty()) search.eos = {c.eos_token_id};
  const std::vector<int32_t> never = search.suppressed_ids();
  std::set<int64_t> ids(never.begin(), never.end());
  if (!o.as_transformers) ids.insert({c.pad_token_id, c.bos_token_id, c.decoder_start_token_id});
  std::erase_if(ids, [&](int64_t id) {
    return std::ranges::count(search.eos, id) > 0 || id < 0 || id >= c.target_vocab_size;
  });
  search.suppressed.assign(ids.begin(), ids.end());
  std::erase_if(search.banned, [](const auto& row) { return row.size() == 1; });  // among them
  if (forces_end(o)) search.forced_eos = c.eos_token_id;
  if (!o.as_transformers && search.early_stopping.empty()) search.early_stopping = "true";
  return search;
}

void check_options(const TranslateOptions& o) {
  o.search.check();
  check(o.batch_tokens >= 1, ErrorKind::usage, "`batch_tokens` is {}; it must be at least 1",
        o.batch_tokens);
  check(o.longest_without_end >= 0, ErrorKind::usage,
        "`max_length` is {}; it must be at least 1, or 0 for one that follows the source's",
        o.longest_without_end);
  const int64_t least = o.search.min_new_tokens.value_or(0);
  check(o.longest_without_end == 0 || least <= o.longest_without_end, ErrorKind::usage,
        "`min_length` is {} but `max_length` {}; the first must not be above the second", least,
        o.longest_without_end);
}

void check_prefixes(const EncoderDecoderFacts& c, const TranslateOptions& o, size_t sources) {
  check(o.prefixes.size() <= 1 || o.prefixes.size() == sources, ErrorKind::usage,
        "there are {} prefixes for {} sentences; give one for all, or one for each",
        o.prefixes.size(), sources);
  for (size_t i = 0; i < o.prefixes.size(); ++i) {
    const auto length = static_cast<int64_t>(o.prefixes[i].size());
    check(o.longest_without_end == 0 || length <= o.longest_without_end, ErrorKind::data,
          "prefix {} has {} tokens, more than `max_length` {}", i + 1, length,
          o.longest_without_end);
    check(length < c.longest_target, ErrorKind::data,
          "prefix {} has {} tokens; the model takes {} with the end", i + 1, length,
          c.longest_target);
    for (const int32_t id : o.prefixes[i]) {
      check(id >= 0 && id < c.target_vocab_size && id != c.eos_token_id, ErrorKind::data,
            "prefix {}: the id {} is no token of the vocabulary of {}", i + 1, id,
            c.target_vocab_size);
    }
  }
}

std::vector<Translation> translate_all(const EncoderDecoder& model, const Sources& sources,
                                       const TranslateOptions& options) {
  check_mapped_files();
  check_options(options);
  check_prefixes(model.facts(), options, sources.size());
  std::vector<Translation> results(sources.size());
  std::vector<int64_t> order;
  int64_t tokens = 0;
  for (int64_t i = 0; i < std::ssize(results); ++i) {
    if (sources.length(i) == 0) continue;
    order.push_back(i);
    tokens += sources.length(i) + 1;
  }
  std::ranges::stable_sort(order, std::greater(), [&](int64_t i) { return sources.length(i); });
  const SearchConfig search = search_of(model.facts(), options);
  const int64_t width = search.width(), threads = num_threads();
  const auto sentences = static_cast<int64_t>(order.size());
  const int64_t mean_length = std::max<int64_t>(1, tokens / std::max<int64_t>(1, sentences));
  const int64_t least_rows = least_rows_of_engine(model);
  // Small models have a batch a thread, and the threads of others share one.
  const int64_t budget = options.batch_tokens, own = least_rows > 0 ? budget / threads : budget;
  const int64_t rows_of_each = std::min(sentences * width / threads, own / mean_length);
  const int64_t engines = sentences > 1 && rows_of_each >= least_rows ? threads : 1;
  const auto translate = [&](Queue& queue, int64_t source_rows) {
    translate_queue(model, options, search, queue, source_rows / width, results);
  };
  Queue all(sources, order);
  // A profile follows one thread.
  if (engines == 1 || is_profiling()) {
    translate(all, budget);
  } else if (const int64_t source_rows = tokens * width; source_rows / engines <= own) {
    const std::vector<std::vector<int64_t>> hands = dealt(order, engines);
    parallel_for(engines, [&](int64_t t) {
      Queue mine(sources, hands[static_cast<size_t>(t)]);
      translate(mine, source_rows);
    });
  } else {
    parallel_for(engines, [&](int64_t) { translate(all, own); });
  }
  return results;
}

// Of sources that are one.
Request one_request(const EncoderDecoder& model, const Sources& sources,
                    const TranslateOptions& options, int64_t number) {
  check_options(options);
  check_prefixes(model.facts(), options, 1);
  Request r = request_of(model.facts(), options, search_of(model.facts(), options), sources, 0);
  r.number = number;
  r.search.first_line += number;
  return r;
}

}  // namespace

std::vector<Translation> translate_ids(const EncoderDecoder& model,
                                       std::span<const std::vector<int32_t>> sources,
                                       const TranslateOptions& options) {
  return translate_all(model, {.ids = sources}, options);
}

Request translation_request(const EncoderDecoder& model, const std::vector<int32_t>& source,
                            const TranslateOptions& options, int64_t number) {
  return one_request(model, {.ids = std::span(&source, 1)}, options, number);
}

Request memory_request(const EncoderDecoder& model, int64_t rows, const TranslateOptions& options,
                       int64_t number) {
  return one_request(model, {.rows = std::span(&rows, 1)}, options, number);
}

int64_t least_rows_of_engine(const EncoderDecoder& model) {
  return model.facts().multiplied <= kSmallModel ? 0 : kRowsOfEach;
}

Translation as_translation(std::span<const Hypothesis> ended) {
  const auto made = [](const Hypothesis& h) {
    const int64_t end = h.ended == EndedBy::eos ? 1 : 0;
    return Translation{.ids = h.ids,
                       .score = h.score,
                       .log_p = h.log_p,
                       .length = std::ssize(h.ids) + end,
                       .text = {}};
  };
  Translation t = made(ended[0]);
  for (const Hypothesis& h : ended.subspan(1)) t.others.push_back(made(h));
  return t;
}

std::vector<Translation> translate_memories(const EncoderDecoder& model,
                                            std::span<const Tensor> memories,
                                            const TranslateOptions& options) {
  return translate_all(model, {.memories = memories}, options);
}

// --- texts ---------------------------------------------------------------------------------------

namespace {

int32_t end_of(const LoadedModel& model) {
  return static_cast<int32_t>(model.translator().facts().eos_token_id);
}

// What stands before and behind each source.
IdsAround around_sources(const LoadedModel& model) {
  IdsAround around;
  if (model.tokenizer && !model.model->config().is_own_format()) {
    around = ids_around_text(*model.tokenizer, model.source_language);
  }
  if (around.behind.empty()) around.behind = {end_of(model)};
  return around;
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
  const auto names = std::views::keys(languages);
  fail(ErrorKind::usage, "{} is '{}'{}; the languages of {} are {}", field_name(key), name,
       did_you_mean(name, {names.begin(), names.end()}), model.path, fmt::join(names, ", "));
}

std::vector<int32_t> encode_to_fit(const LoadedModel& model, const Tokenizer& tokenizer,
                                   const IdsAround& around, const std::string& line,
                                   const std::string& where, bool truncate, int64_t* cut) {
  check_text(line, where);
  if (is_blank(line)) return {};
  std::vector<int32_t> ids = tokenizer.encode(line);
  const int64_t special = std::ssize(around.before) + std::ssize(around.behind);
  const int64_t limit = model.translator().facts().longest_source - special;
  if (std::ssize(ids) > limit) {
    check(truncate, ErrorKind::data,
          "{}: {} tokens with the end of the sentence; the model takes {} "
          "(max_position_embeddings). Split the line, or cut it with `truncate`",
          where, std::ssize(ids) + special, limit + special);
    ids.resize(static_cast<size_t>(limit));
    if (cut != nullptr) ++*cut;
  }
  ids.insert(ids.begin(), around.before.begin(), around.before.end());
  return ids;
}

}  // namespace

TranslateOptions default_options(const LoadedModel& model, const SearchConfig& above) {
  SearchConfig g = model.generation.value_or(SearchConfig());
  lay_over(g, above);
  TranslateOptions o{.search = g, .as_transformers = !model.model->config().is_own_format()};
  // Theirs count the start, and the end too; 20 is what they take if nothing is said.
  const int64_t most = g.max_new_tokens ? *g.max_new_tokens : g.max_length.value_or(20) - 1;
  const bool has_longest = o.as_transformers || g.max_new_tokens || g.max_length;
  if (has_longest) o.longest_without_end = std::max<int64_t>(1, most - (forces_end(o) ? 1 : 0));
  int64_t least = g.min_new_tokens.value_or(std::max<int64_t>(0, g.min_length.value_or(0) - 1));
  if (has_longest) least = std::min(least, o.longest_without_end);
  o.search.min_new_tokens = least;
  o.search.min_length.reset();
  if (o.as_transformers) o.source_end = around_sources(model).behind;
  return o;
}

void set_languages(LoadedModel& model, const std::string& source, const std::string& target,
                   TranslateOptions& options, const LanguageKeys& keys) {
  if (!source.empty()) {
    model.source_language = language_token(model, source, keys.source);
    options.source_end = around_sources(model).behind;
  }
  std::optional<int32_t> asked;
  if (!target.empty()) asked = language_token(model, target, keys.target);
  if (model.model->config().is_own_format()) return;
  const auto start = static_cast<int32_t>(model.translator().facts().decoder_start_token_id);
  const auto languages = model.target().languages();
  const bool starts_with_one = std::ranges::count(std::views::values(languages), start) > 0;
  if (!asked) {
    check(languages.empty() || starts_with_one || token_id(options.search.forced_bos),
          ErrorKind::usage, "{} writes {} languages; say which with {}: {}", model.path,
          languages.size(), field_name(keys.target), fmt::join(std::views::keys(languages), ", "));
    return;
  }
  (starts_with_one ? options.start : options.search.forced_bos) = *asked;
}

PairMarks pair_marks(const LoadedModel& model, const TranslateOptions& options) {
  PairMarks marks = usual_marks(model.translator().facts());
  marks.source_start = around_sources(model).before;
  if (!options.source_end.empty()) marks.source_end = options.source_end;
  if (options.start) marks.target_start = {static_cast<int32_t>(*options.start)};
  if (const auto forced = token_id(options.search.forced_bos)) {
    marks.target_start.push_back(*forced);
  }
  return marks;
}

PairMarks text_marks(const LoadedModel& model, const TranslateOptions& options) {
  PairMarks marks = pair_marks(model, options);
  marks.source_start.clear();
  return marks;
}

PairMarks translation_marks(const LoadedModel& model, const TranslateOptions& options) {
  PairMarks marks = text_marks(model, options);
  marks.target_start.resize(1);
  return marks;
}

void set_marks(TranslateOptions& options, const PairMarks& marks) {
  options.source_end = marks.source_end;
  options.start = marks.target_start[0];
  options.search.forced_bos.reset();
  if (marks.target_start.size() > 1) options.search.forced_bos = marks.target_start[1];
}

std::vector<int32_t> source_ids(const LoadedModel& model, const std::string& line,
                                const std::string& where, bool truncate, int64_t* cut) {
  return encode_to_fit(model, model.tokenizer.value(), around_sources(model), line, where, truncate,
                       cut);
}

std::vector<int32_t> target_ids(const LoadedModel& model, const std::string& line,
                                const std::string& where, bool truncate, int64_t* cut) {
  return encode_to_fit(model, model.target(), {{}, {end_of(model)}}, line, where, truncate, cut);
}

std::vector<std::vector<int32_t>> line_ids(const LoadedModel& model, decltype(source_ids) ids_of,
                                           std::span<const std::string> lines,
                                           const LineOptions& o) {
  std::vector<std::vector<int32_t>> ids;
  for (const std::string& line : lines) {
    const std::string where = fmt::format("{} {}", o.where, o.first_line + std::ssize(ids));
    ids.push_back(ids_of(model, line, where, o.truncate, o.cut));
  }
  return ids;
}

std::vector<int32_t> prefix_ids(const LoadedModel& model, const std::string& text,
                                const std::string& where) {
  check_text(text, where);
  return model.target().encode(text);
}

void suppress_unknown(SearchConfig& search, const Tokenizer& tokenizer) {
  if (tokenizer.unk_id() >= 0) search.suppressed.push_back(tokenizer.unk_id());
}

TranslateOptions text_options(const LoadedModel& model, TranslateOptions options) {
  if (!options.as_transformers) suppress_unknown(options.search, model.target());
  return options;
}

void decode_texts(std::span<Translation> translations, const Tokenizer& tokenizer) {
  for (Translation& t : translations) {
    t.text = without_lines(tokenizer.decode(t.ids));  // a token may be the byte of a line break
    decode_texts(t.others, tokenizer);
  }
}

std::vector<Translation> translate_lines(const LoadedModel& model,
                                         std::span<const std::string> lines,
                                         const TranslateOptions& options, int64_t first_line,
                                         int64_t* cut) {
  std::optional<ProfilePhase> phase("tokenise");
  const auto sources =
      line_ids(model, source_ids, lines,
               {.first_line = first_line, .truncate = options.truncate, .cut = cut});
  phase.reset();
  const Tokenizer& tokenizer = model.target();
  TranslateOptions asked = text_options(model, options);
  asked.search.first_line = first_line;
  std::vector<Translation> results = translate_ids(model.translator(), sources, asked);
  phase.emplace("detokenise");
  decode_texts(results, tokenizer);
  return results;
}

}  // namespace heddle
