// Translation by greedy or beam search over cached keys and values.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "heddle/infer/engine/engine.h"
#include "heddle/infer/loading/text_model.h"
#include "heddle/infer/search/beam.h"
#include "heddle/infer/search/shortlist.h"

namespace heddle {

struct TranslateOptions {
  /// But its greatest lengths, which default_options() looks at, and its ends: the model's is one.
  SearchConfig search = {};
  /// As Hugging Face's generate(): the score is log p / length^alpha, of which an end that is
  /// forced at the greatest length takes nothing, if it is (forced_eos); beam search penalises
  /// repeats in log p; and only suppressed tokens never come. Else log p / ((5 + length) / 6)^alpha
  /// and a forced end; pad, bos, start and, of texts, unk never come; and early_stopping is true
  /// unless it is said.
  bool as_transformers = false;
  int64_t batch_tokens = 4096;      ///< source tokens of a batch, times the beam
  double longest_factor = 2;        ///< longest translation in tokens, its end included:
  int64_t longest_extra = 10;       ///< factor * source tokens + extra + those of the prefix
  int64_t longest_without_end = 0;  ///< if not 0, in place of it: tokens beside an end
  /// Ids that the translations begin with: none, one for all sentences, or one for each.
  std::vector<std::vector<int32_t>> prefixes = {};
  std::vector<int32_t> source_end = {};  ///< ids behind each source; none: the end
  std::optional<int64_t> start = {};     ///< the decoder's first token; none: the model's
  bool truncate = false;                 ///< cut what is longer than the model takes, else an error
  bool scores = true;  ///< whether scores are wanted: greedy search is faster without
  /// Which tokens a translation may consist of, given its source; null: all. Scores then count the
  /// others by a sample. Needs sources of ids.
  std::shared_ptr<const Shortlist> shortlist = {};
  /// Sees every step; sentences may be decoded on several threads.
  std::function<void(const DecodeStep&)> on_step = {};
  Precision precision = {};
};

/// Of an empty source: no ids, an empty text, score 0.
struct Translation {
  std::vector<int32_t> ids;  ///< without the end
  double score = 0;    ///< log p of the tokens and the end, in nats, over the length penalty; 0
                       ///< if greedy search was asked for none
  double log_p = 0;    ///< of them
  int64_t length = 1;  ///< that the penalty is one of: tokens, and the end if it came
  std::string text;    ///< by the text form only
  std::vector<Translation> others = {};  ///< the n_best - 1 next best, or the other samples
};

/// Translates sentences given as ids, without the end of sentence; results in their order. A
/// sentence's result depends neither on its neighbours nor on batch_tokens nor on the threads, bit
/// for bit.
///
/// Beam search: each step takes the 2 * beam best continuations of a sentence; an end among the
/// first `beam` of them sets a hypothesis aside, and the others carry on, `beam` at most. A
/// sentence is done with `beam` hypotheses aside, or when none that goes on can beat the n_best of
/// them. Equal scores: the better hypothesis before, then the lower id. At the greatest length the
/// end is forced; so are the tokens of a prefix, and the end where the rules leave no token.
/// Source: Wu et al. 2016, "Google's Neural Machine Translation System", section 7 (length
/// penalty). Errors: usage for options outside their range; data if a sentence or a prefix is
/// longer than learned positions reach, an id is not in the vocabulary, or the weights are not
/// finite.
std::vector<Translation> translate_ids(const EncoderDecoder& model,
                                       std::span<const std::vector<int32_t>> sources,
                                       const TranslateOptions& options);

/// What translate_ids() asks an engine of a sentence that is not empty, for who has an engine of
/// their own: its number is that of the sentence, and prefixes[0] its prefix. Errors: the same.
Request translation_request(const EncoderDecoder& model, const std::vector<int32_t>& source,
                            const TranslateOptions& options, int64_t number = 0);
/// The same of a source that is encoded later, to a memory of so many rows: Request::memory_rows.
Request memory_request(const EncoderDecoder& model, int64_t rows, const TranslateOptions& options,
                       int64_t number = 0);
/// Rows of a step (hypotheses) of each engine from which on engines that translate side by side, a
/// thread each, are faster than one whose products all threads share; 0 where a core's cache holds
/// the model. (Whom a sentence is decoded with changes none of its bits.)
int64_t least_rows_of_engine(const EncoderDecoder& model);
/// What the engine found, without texts.
Translation as_translation(std::span<const Hypothesis> ended);

/// The same of sources that were encoded already, see Request::memory: one is read as so many
/// tokens as it has rows.
std::vector<Translation> translate_memories(const EncoderDecoder& model,
                                            std::span<const Tensor> memories,
                                            const TranslateOptions& options);

/// How the model's folder says that it should be searched (LoadedModel::generation, if there
/// is any), with `above` laid over it; else the defaults.
TranslateOptions default_options(const LoadedModel& model, const SearchConfig& above = {});

/// What messages call the fields that name languages.
struct LanguageKeys {
  const char* source = "source_language";
  const char* target = "target_language";
};
/// Sets the languages that texts are translated from and into, by names of tokenizer.languages();
/// "": as the folder has it. Errors: usage, listing the languages, for one that there is not, or
/// none into which where there are several.
void set_languages(LoadedModel& model, const std::string& source, const std::string& target,
                   TranslateOptions& options, const LanguageKeys& keys = {});

/// What stands around pairs that are translated by these options.
PairMarks pair_marks(const LoadedModel& model, const TranslateOptions& options);
/// The same where sources are those of source_ids(), which puts there what stands before them.
PairMarks text_marks(const LoadedModel& model, const TranslateOptions& options);
/// And where targets are Translation::ids, which begin with what was forced.
PairMarks translation_marks(const LoadedModel& model, const TranslateOptions& options);
/// The reverse: `options` translate what begins with marks.source_start.
void set_marks(TranslateOptions& options, const PairMarks& marks);

/// Ids of a line of text, behind what stands before all (a language), cut or refused where the
/// model takes no more (max_position_embeddings tokens, the end included). `where` ("line 12")
/// opens the message; `cut`, if not null, is raised by 1 for a line that was cut. Errors: data if
/// it is not UTF-8 or too long.
std::vector<int32_t> source_ids(const LoadedModel& model, const std::string& line,
                                const std::string& where, bool truncate, int64_t* cut);

/// The same of a line in the language of the target. max_position_embeddings is the config's bound
/// of both, though a decoder without learned positions could read more.
std::vector<int32_t> target_ids(const LoadedModel& model, const std::string& line,
                                const std::string& where, bool truncate, int64_t* cut);

struct LineOptions {
  std::string where = "line";  ///< opens messages, before the number of the line
  int64_t first_line = 1;      ///< number of the first
  bool truncate = false;
  int64_t* cut = nullptr;  ///< raised by the number of lines that were cut
};

/// The ids of each line; `ids_of`: source_ids or target_ids.
std::vector<std::vector<int32_t>> line_ids(const LoadedModel& model, decltype(source_ids) ids_of,
                                           std::span<const std::string> lines,
                                           const LineOptions& options);

/// Ids of the beginning of a translation. Errors: data, beginning with `where`, if it is not UTF-8.
std::vector<int32_t> prefix_ids(const LoadedModel& model, const std::string& text,
                                const std::string& where);

/// What options say of texts that they do not say of ids: unknown tokens never come.
TranslateOptions text_options(const LoadedModel& model, TranslateOptions options);
/// The tokenizer's <unk>, if it has one, never comes.
void suppress_unknown(SearchConfig& search, const Tokenizer& tokenizer);

/// Sets the text of each, and of its others; one holds no line break.
void decode_texts(std::span<Translation> translations, const Tokenizer& tokenizer);

/// Translates lines of text: line i gives result i; an empty or blank line an empty text. A
/// translation holds no line break. `first_line` is the number of lines[0], in messages and for
/// sampling; `cut`, if not null, is raised by the number of lines that were cut.
std::vector<Translation> translate_lines(const LoadedModel& model,
                                         std::span<const std::string> lines,
                                         const TranslateOptions& options, int64_t first_line = 1,
                                         int64_t* cut = nullptr);

}  // namespace heddle
