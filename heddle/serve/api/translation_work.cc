// One job a text; the last that ends sends the response.
#include "heddle/serve/api/translation_work.h"

#include <algorithm>
#include <optional>

#include "heddle/base/json/fields.h"
#include "heddle/base/utf8.h"
#include "heddle/serve/api/jobs.h"
#include "heddle/text/strings/strings.h"

namespace heddle::serve {
namespace {

// The beginning that all hypotheses of a text share, those that ended among them.
class SharedBeginning {
 public:
  // returns: whether it grew; nothing of it changes.
  bool step(const DecodeStep& seen) {
    for (const Hypothesis& h : seen.ended) ended_.narrow(h.ids);
    Beginning all = ended_;
    for (const Hypothesis& h : seen.live) all.narrow(h.ids);
    if (!all.is_known || all.ids.size() <= shared_.size()) return false;
    shared_ = std::move(all.ids);
    return true;
  }
  std::span<const int32_t> ids() const { return shared_; }

 private:
  struct Beginning {
    std::vector<int32_t> ids = {};
    bool is_known = false;
    void narrow(const std::vector<int32_t>& other) {
      if (!std::exchange(is_known, true)) ids = other;
      ids.erase(std::ranges::mismatch(ids, other).in1, ids.end());
    }
  };
  Beginning ended_;
  std::vector<int32_t> shared_;
};

// Shared by the jobs of a request, which are called one at a time.
struct Pending {
  SharedExchange exchange;
  TranslationWork work;
  std::vector<Translation> results;
  std::vector<size_t> partial;  // bytes of each that were told
  size_t left = 0;

  void take(size_t i, std::span<const Hypothesis> found) {
    work.found[i].assign(found.begin(), found.end());
    results[i] = as_translation(found);
    decode_texts(std::span(&results[i], 1), work.model->loaded().target());
    exchange->service.metrics().tokens_written(std::ssize(results[i].ids));
    done(i);
  }
  // Whole words: what comes next may go on with the last one.
  void take_partial(size_t i, std::span<const int32_t> ids) try {
    Translation beginning{.ids = {ids.begin(), ids.end()}, .text = {}};
    decode_texts(std::span(&beginning, 1), work.model->loaded().target());
    const size_t end = beginning.text.rfind(' ');
    if (end == std::string::npos || end <= partial[i]) return;
    partial[i] = end;
    work.on_partial(i, beginning.text.substr(0, end));
  } catch (...) {  // others run beside it
    exchange->fail(std::current_exception());
  }
  void done(size_t i) {
    if (work.on_text) work.on_text(work, i, results);
    if (--left == 0) work.on_done(work, results);
  }
};

// Before they are tokenized: that costs more than to count them.
void check_parts(const SplitTexts& split, int64_t most) {
  if (std::ssize(split.texts) <= most && split.begins.back() > static_cast<size_t>(most)) {
    refuse("the texts have more than {} parts; send fewer at once", most);
  }
}

// own: that of the model's name, "" without; known: else those that it marks
void check_language(const char* key, const std::string& asked, const std::string& own,
                    const std::vector<std::string>& known, const ServedModel& model) {
  if (asked.empty() || asked == own || std::ranges::find(known, asked) != known.end()) return;
  if (!own.empty()) refuse("`{}` is '{}', but '{}' has '{}'", key, asked, model.name, own);
  if (known.empty()) {
    refuse("`{}` is '{}', but '{}' marks no languages; leave it out", key, asked, model.name);
  }
  refuse("`{}` is '{}'{}; the languages of '{}' are {}", key, asked, did_you_mean(asked, known),
         model.name, fmt::join(known, ", "));
}

// Cuts or refuses a text that is too long whatever its tokens are. returns: whether it was cut
bool fit_bytes(std::string& text, int64_t longest, bool truncates, size_t number) {
  if (!is_beyond(text.size(), longest)) return false;
  if (!truncates) check_bytes(text.size(), longest, fmt::format("text {}", number));
  auto end = static_cast<size_t>(kMostBytesOfToken * longest);
  while (end > 0 && is_continuation(text[end])) --end;
  text.resize(end);
  return true;
}

}  // namespace

SplitTexts split_texts(std::vector<std::string> texts, const Splitting& splitting) {
  SplitTexts split{.texts = std::move(texts), .joins_lines = splitting.at == SplitAt::sentences};
  std::optional<SentenceSplitter> splitter;
  if (splitting.at != SplitAt::nothing) splitter.emplace(splitting.language);
  for (const std::string& text : split.texts) {
    std::vector<TextPart> parts;
    if (splitter && !first_invalid_utf8(text)) parts = splitter->split(text, !split.joins_lines);
    // A blank text stays one, which has an empty translation.
    if (parts.empty()) parts.push_back({0, text.size()});
    split.begins.push_back(split.begins.back() + parts.size());
    check_parts(split, splitting.most);
    split.parts.push_back(std::move(parts));
  }
  return split;
}

namespace {

MarkedText xml_text(const std::string& text, const char* key) try {
  return MarkedText::of_xml(text);
} catch (const Error& error) {
  refuse("`{}`: {}", key, error.what());
}

}  // namespace

SplitTexts marked_texts(std::vector<std::string> texts, MarkedFormat format,
                        const Splitting& splitting, const char* key,
                        std::span<const std::string> kept) {
  SplitTexts split{.texts = std::move(texts)};
  std::optional<SentenceSplitter> splitter;
  if (splitting.at != SplitAt::nothing) splitter.emplace(splitting.language);
  for (const std::string& text : split.texts) {
    MarkedText marked = format == MarkedFormat::html  ? MarkedText::of_html(text)
                        : format == MarkedFormat::xml ? xml_text(text, key)
                                                      : MarkedText::of_text(text, kept);
    const size_t before = split.begins.back();
    split.begins.push_back(before + marked.count());
    check_parts(split, splitting.most);
    if (splitter) {
      marked.split(*splitter);
      split.begins.back() = before + marked.count();
      check_parts(split, splitting.most);
    }
    split.marked.push_back(std::move(marked));
  }
  return split;
}

std::vector<std::string> SplitTexts::sentences() const {
  std::vector<std::string> all;
  for (const MarkedText& one : marked) {
    for (std::string& text : one.texts()) all.push_back(std::move(text));
  }
  for (size_t i = 0; i < parts.size(); ++i) {
    for (const TextPart& part : parts[i]) {
      const std::string text = texts[i].substr(part.begin, part.end - part.begin);
      all.push_back(joins_lines ? without_lines(text) : text);
    }
  }
  return all;
}

size_t SplitTexts::text_of(size_t k) const {
  return static_cast<size_t>(std::ranges::upper_bound(begins, k) - begins.begin()) - 1;
}

std::string SplitTexts::joined(size_t i, const std::function<std::string(size_t)>& of,
                               std::span<const MarkedText::Links> links) const {
  size_t sentence = first(i);
  if (!marked.empty()) {
    std::vector<std::string> all;
    for (size_t k = 0; k < count(i); ++k) all.push_back(of(sentence + k));
    return marked[i].with(all, links.subspan(sentence, all.size()));
  }
  std::string text;
  size_t end = 0;
  for (const TextPart& part : parts[i]) {
    text.append(texts[i], end, part.begin - end);
    text += of(sentence++);
    end = part.end;
  }
  return text.append(texts[i], end);
}

std::vector<std::vector<int32_t>> Translated::targets() const {
  std::vector<std::vector<int32_t>> targets;
  for (const Translation& t : translations) targets.push_back(t.ids);
  return targets;
}

std::vector<Alignment> word_alignments(const Translated& translated, AlignmentOptions options) {
  const TranslationWork& work = translated.work;
  options.precision = work.model->precision;
  options.marks = translation_marks(work.model->loaded(), work.options);
  return align_pairs(work.model->loaded(), translated.sources(), translated.targets(), options);
}

std::vector<MarkedText::Links> links_of(std::span<const Alignment> alignments) {
  std::vector<MarkedText::Links> links;
  for (const Alignment& one : alignments) {
    MarkedText::Links& to = links.emplace_back();
    for (const AlignmentLink& link : one) to.emplace_back(link.source, link.target);
  }
  return links;
}

void start_translation(const SharedExchange& e, TranslationWork work) {
  const ServedModel& model = *work.model;
  auto pending = std::make_shared<Pending>();
  pending->exchange = e;
  pending->results.resize(work.texts.size());
  pending->partial.resize(work.texts.size());
  work.found.resize(work.texts.size());
  pending->left = work.texts.size();
  std::vector<QueuedJob> jobs;
  std::vector<size_t> empty;
  int64_t tokens = 0;
  for (size_t i = 0; i < work.texts.size(); ++i) {
    const int64_t longest = most_tokens_of_text(model.loaded().translator().facts().longest_source);
    int64_t cut = fit_bytes(work.texts[i], longest, work.truncates, i + 1) ? 1 : 0;
    const std::vector<int32_t>& ids = work.sources.emplace_back(source_ids(
        model.loaded(), work.texts[i], fmt::format("text {}", i + 1), work.truncates, &cut));
    work.are_cut.push_back(cut > 0);
    if (ids.empty()) {
      empty.push_back(i);
      continue;
    }
    TranslateOptions options = work.options;
    if (options.prefixes.size() > 1) options.prefixes = {work.options.prefixes[i]};
    tokens += std::ssize(ids);
    if (tokens > e->service.budget().most()) take_room(*e, tokens);  // refuses them
    Request request = translation_request(model.loaded().translator(), ids, options);
    if (work.on_partial) {
      request.on_step = [pending, i, shared = SharedBeginning()](const DecodeStep& step) mutable {
        if (shared.step(step)) pending->take_partial(i, shared.ids());
      };
    }
    jobs.push_back({std::move(request), options.search.width(),
                    [pending, i](std::span<const Hypothesis> found) { pending->take(i, found); }});
  }
  pending->work = std::move(work);
  start_jobs(e, pending->work.model, std::move(jobs), [pending, tokens, empty = std::move(empty)] {
    pending->exchange->service.metrics().tokens_read(tokens);
    if (pending->work.on_start) pending->work.on_start();
    for (const size_t i : empty) pending->done(i);
    if (pending->results.empty()) pending->work.on_done(pending->work, pending->results);
  });
}

void set_request_languages(ServedModel& model, const std::string& source, const std::string& target,
                           TranslateOptions& options) {
  if (!model.source_language.empty()) return;
  model.loaded().source_language = model.default_language;  // the request before may have set it
  set_languages(model.loaded(), source, target, options,
                {.source = "source_lang", .target = "target_lang"});
}

SharedModel find_translator(const Service& service, const std::string& source,
                            const std::string& target) {
  const auto has = [](const std::string& asked, const std::string& known) {
    return asked.empty() || asked == known;
  };
  for (const auto& model : service.models()) {
    if (model->use == ModelUse::translate && !model->source_language.empty() &&
        has(source, model->source_language) && has(target, model->target_language)) {
      return model;
    }
  }
  for (const auto& model : service.models()) {
    if (model->use != ModelUse::translate || !model->source_language.empty()) continue;
    const auto knows = [](const std::string& language, const std::vector<std::string>& known) {
      return language.empty() || std::ranges::find(known, language) != known.end();
    };
    if (knows(source, model->source_languages) && knows(target, model->target_languages)) {
      return model;
    }
  }
  return nullptr;
}

SharedModel translator_of(const Service& service, const Json& body, const std::string& source,
                          const std::string& target) {
  if (!text_of(body, "model").empty() || (source.empty() && target.empty())) {
    SharedModel model = model_of(service, body, ModelUse::translate);
    check_language("source_lang", source, model->source_language, model->source_languages, *model);
    check_language("target_lang", target, model->target_language, model->target_languages, *model);
    return model;
  }
  if (const SharedModel model = find_translator(service, source, target)) return model;
  throw Refusal{.message = fmt::format("no model here translates{}{}; /languages has those that "
                                       "there are",
                                       source.empty() ? "" : fmt::format(" from '{}'", source),
                                       target.empty() ? "" : fmt::format(" into '{}'", target))};
}

TranslateOptions translate_options_of(const Service& service, const ServedModel& model,
                                      const Json& body) {
  const ServiceOptions& limits = service.options();
  TranslateOptions o = text_options(model.loaded(), model.translating);
  o.search.n_best = int_of(body, "n_best", 1, 1, std::min(limits.most_results, limits.most_beams));
  o.search.beam = std::max(int_of(body, "beam", o.search.beam.value_or(1), 1, limits.most_beams),
                           o.search.n_best);
  if (has_member(body, "length_penalty")) {
    o.search.length_penalty = number_of(body, "length_penalty", 1, -100, 100);
  }
  if (has_member(body, "max_tokens")) {
    o.longest_without_end = int_of(body, "max_tokens", 0, 1, 1 << 16);
    o.search.min_new_tokens = std::min(o.search.min_new_tokens.value_or(0), o.longest_without_end);
  }
  return o;
}

}  // namespace heddle::serve
