// Texts of one request on their way through a translator.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "heddle/infer/words.h"
#include "heddle/serve/api/exchange.h"
#include "heddle/text/strings/marked_text.h"
#include "heddle/text/strings/sentences.h"

namespace heddle::serve {

/// What ends a part of a text that is translated by itself.
enum class SplitAt : uint8_t {
  nothing,    ///< but, where there are tags, a block
  sentences,  ///< their ends
  lines       ///< theirs too
};
struct Splitting {
  SplitAt at = SplitAt::nothing;
  std::string language = {};  ///< of the texts: "en", see SentenceSplitter
  int64_t most = 0;           ///< parts of all texts together
};

/// Texts as their sentences, or each as one, and back.
struct SplitTexts {
  std::vector<std::string> texts = {};
  std::vector<std::vector<TextPart>> parts = {};  ///< of each text: what is translated by itself
  std::vector<MarkedText> marked = {};  ///< in the place of parts, where there are tags or the like
  bool joins_lines = false;             ///< of parts: whether an end of a line in one is a space

  std::vector<size_t> begins = {0};  ///< of each text, among sentences(), and of one behind them

  /// Among sentences(), the first of text i, and how many are its.
  size_t first(size_t i) const { return begins[i]; }
  size_t count(size_t i) const { return begins[i + 1] - begins[i]; }
  /// The text that sentence k is of.
  size_t text_of(size_t k) const;
  /// Parts of all texts.
  std::vector<std::string> sentences() const;
  /// Text i with each of its parts replaced. of: what stands for sentence k of sentences();
  /// links: word alignments of all of them, needed for what is marked
  std::string joined(size_t i, const std::function<std::string(size_t)>& of,
                     std::span<const MarkedText::Links> links = {}) const;
};
/// Errors: Refusal if there are too many parts.
SplitTexts split_texts(std::vector<std::string> texts, const Splitting& splitting);

enum class MarkedFormat : uint8_t { html, xml, plain };
/// The same of texts with tags, or with spans to keep: see MarkedText.
/// key: what a Refusal of bad XML names; kept: of plain ones
SplitTexts marked_texts(std::vector<std::string> texts, MarkedFormat format,
                        const Splitting& splitting, const char* key,
                        std::span<const std::string> kept = {});

struct TranslationWork {
  SharedModel model = {};
  std::vector<std::string> texts = {};
  TranslateOptions options = {};  ///< prefixes: none, one for all, or one of each text
  /// Called one at a time, on threads of engines but the first: at first, of each text as it is
  /// done (with those of all, of which others are empty until they are), then of all.
  std::function<void()> on_start = {};
  std::function<void(const TranslationWork&, size_t, const std::vector<Translation>&)> on_text = {};
  std::function<void(const TranslationWork&, const std::vector<Translation>&)> on_done = {};
  /// What all hypotheses of a text agree on so far, in whole words, each time that it grows; no
  /// later one, nor the translation, begins otherwise. Takes an output projection more a step.
  std::function<void(size_t, const std::string&)> on_partial = {};
  std::vector<std::vector<int32_t>> sources = {};  ///< set by start_translation(): ids of the texts
  /// Set as texts are done: what each Translation and its others come of; none of an empty text.
  std::vector<std::vector<Hypothesis>> found = {};
  bool truncates = false;          ///< cuts a text that is too long, where it is refused else
  std::vector<bool> are_cut = {};  ///< which texts were

  /// Whether the translation of text i ended because there was no more room.
  bool is_full(size_t i) const { return !found[i].empty() && found[i][0].is_cut; }
};

/// Finished translations of some of the texts of a request, that of text `first` and those behind.
struct Translated {
  const TranslationWork& work;
  std::span<const Translation> translations;
  size_t first = 0;

  std::span<const std::vector<int32_t>> sources() const {
    return std::span(work.sources).subspan(first, translations.size());
  }
  std::vector<std::vector<int32_t>> targets() const;
};
/// Word alignments of each, by attention: a pass over them. On the engine's thread.
std::vector<Alignment> word_alignments(const Translated& translated, AlignmentOptions options = {});
/// What SplitTexts::joined() takes of them.
std::vector<MarkedText::Links> links_of(std::span<const Alignment> alignments);

/// Tokens of one text, or beginning, of a translator that takes so many: of any length 2,048, since
/// tokenizing more would cost the others too much.
inline int64_t most_tokens_of_text(int64_t longest) {
  return longest == kAnyLength ? 2048 : longest;
}

/// Tokenizes the texts and hands them to the engine; the exchange fails if one of them cannot be
/// translated. An empty text has an empty translation.
/// Errors: Refusal 429 where the queue is full, 400 for a text that is too long: one of 64 bytes
/// for each token that the model takes is, whatever its tokens are, and is not tokenized.
void start_translation(const SharedExchange& e, TranslationWork work);

/// Sets the languages of a model of several for the texts of one request, which are tokenized
/// before the next is looked at; of a model whose name says them nothing is to be set.
void set_request_languages(ServedModel& model, const std::string& source, const std::string& target,
                           TranslateOptions& options);

/// The first translator for this pair of languages ("": any), that of the pair before one of many;
/// null where there is none.
SharedModel find_translator(const Service& service, const std::string& source,
                            const std::string& target);
/// The translator that a request names, or find_translator().
/// Errors: Refusal; of one that is named also if it has not these languages.
SharedModel translator_of(const Service& service, const Json& body, const std::string& source,
                          const std::string& target);
/// "model": as the model's folder says, with the members of the body laid over it.
TranslateOptions translate_options_of(const Service& service, const ServedModel& model,
                                      const Json& body);

}  // namespace heddle::serve
