// Translation in heddle's own words.
#include <algorithm>

#include "heddle/inspect/attention_maps.h"
#include "heddle/serve/api/translation_work.h"

namespace heddle::serve {
namespace {

enum class AlignmentForm : uint8_t { none, hard, matrix };
struct TranslationsRequest {
  SharedModel model = {};
  SplitTexts split = {};
  AlignmentOptions alignment = {};
  AlignmentForm form = AlignmentForm::none;
  bool has_scores = false, has_several = false, streams = false, truncates = false;
  bool has_parts = false;  // sentences, or what stands between tags
};

Json one_json(const Translation& t, const Hypothesis* h, const Tokenizer& tokenizer,
              bool has_scores) {
  Json json = Json::object({{"text", t.text}});
  if (!has_scores) return json;
  json["score"] = t.score;
  json["tokens"] = Json::array();
  json["log_probs"] = Json::array();
  for (size_t i = 0; i < t.ids.size(); ++i) {
    json["tokens"].push_back(tokenizer.token(t.ids[i]));
    json["log_probs"].push_back(h->log_ps[i]);
  }
  return json;
}

// A sentence, with all of its translations under "n_best" where several were asked for.
Json sentence_json(const TranslationsRequest& asked, const TranslationWork& work, size_t i,
                   const Translation& t) {
  const Tokenizer& tokenizer = asked.model->loaded().target();
  const std::vector<Hypothesis>& found = work.found[i];
  Json json = one_json(t, found.data(), tokenizer, asked.has_scores);
  if (asked.has_several) {
    json["n_best"] = Json::array();
    json["n_best"].push_back(one_json(t, found.data(), tokenizer, true));
    for (size_t k = 0; k < t.others.size(); ++k) {
      json["n_best"].push_back(one_json(t.others[k], &found[k + 1], tokenizer, true));
    }
  }
  json["finish_reason"] = work.is_full(i) ? "length" : "stop";
  if (asked.truncates) json["truncated"] = bool{work.are_cut[i]};
  return json;
}

// The weights themselves, with the tokens that they are of.
std::vector<Json> weight_matrices(const TranslationsRequest& asked, const Translated& translated) {
  const std::span sources = translated.sources();
  const std::vector<std::vector<int32_t>> targets = translated.targets();
  const LoadedModel& model = asked.model->loaded();
  const EncoderDecoder& translator = model.translator();
  check_alignment(translator.facts(), asked.alignment);
  AlignmentOptions options = asked.alignment;
  const PairMarks marks = translation_marks(model, translated.work.options);
  options.marks = marks;
  int64_t weights = 0;
  for (size_t i = 0; i < targets.size(); ++i) {
    weights += (std::ssize(targets[i]) + 1) * (std::ssize(sources[i]) + marks.source_rows());
  }
  if (weights > kMostWeights) {
    refuse("the matrices have {} weights together; at most {}", weights, kMostWeights);
  }
  const auto tokens = [](const Tokenizer& tokenizer, std::span<const int32_t> ids,
                         const std::vector<std::string>& ends) {
    Json list = Json::array();
    for (const int32_t id : ids) list.push_back(tokenizer.token(id));
    for (const std::string& end : ends) list.push_back(end);
    return list;
  };
  const Tokenizer& reads = model.tokenizer.value();
  const std::vector<std::string> ends = names_of_ends(reads, marks);
  std::vector<Json> all(targets.size(), Json());
  for (size_t i = 0; i < targets.size(); ++i) {
    if (sources[i].empty()) continue;
    const Tensor map = cross_attention_maps(translator, sources.subspan(i, 1),
                                            std::span(targets).subspan(i, 1), options)[0];
    Json& json = all[i] =
        Json::object({{"source_tokens", tokens(reads, sources[i], ends)},
                      {"target_tokens", tokens(model.target(), targets[i], {"(end)"})}});
    const float* values = map.data<float>();
    json["weights"] = inspect::weights_json({values, values + map.size(0) * map.size(1)},
                                            map.size(0), map.size(1));
  }
  return all;
}

// What attention says of some of the sentences. On an engine's thread.
struct Attended {
  std::vector<Json> alignments = {};          // as the answer has them; none if none were asked for
  std::vector<MarkedText::Links> links = {};  // for what is marked: the words of the same alignment
};
Attended attended(const TranslationsRequest& asked, const Translated& translated) {
  Attended found;
  const bool is_hard = asked.form == AlignmentForm::hard;
  std::vector<Alignment> words;
  if (is_hard || !asked.split.marked.empty()) words = word_alignments(translated, asked.alignment);
  if (asked.form == AlignmentForm::matrix) found.alignments = weight_matrices(asked, translated);
  if (is_hard) {
    for (const Alignment& one : words) found.alignments.emplace_back(to_pharaoh(one));
  }
  found.links = links_of(words);
  return found;
}

// All of them, each with its sentences where they were sought. On an engine's thread.
Json translations_json(const TranslationsRequest& asked, const TranslationWork& work,
                       const std::vector<Translation>& all) {
  const auto [alignments, links] = attended(asked, {work, all});
  const auto sentence = [&](size_t k) {
    Json json = sentence_json(asked, work, k, all[k]);
    if (!alignments.empty()) json["alignment"] = alignments[k];
    return json;
  };
  Json list = Json::array();
  for (size_t i = 0; i < asked.split.texts.size(); ++i) {
    const size_t first = asked.split.first(i);
    if (!asked.has_parts) {
      list.push_back(sentence(first));
      continue;
    }
    Json json = Json::object({{"text", asked.split.joined(
                                           i, [&](size_t k) { return all[k].text; }, links)},
                              {"sentences", Json::array()}});
    for (size_t k = first; k < first + asked.split.count(i); ++k) {
      Json one = Json::object({{"source", work.texts[k]}});
      const Json found = sentence(k);
      for (const auto& [key, value] : found.as_object()) one[key] = value;
      json["sentences"].push_back(std::move(one));
    }
    list.push_back(std::move(json));
  }
  return list;
}

// Which text, and with sentences which of them, sentence k of all is.
Json place_json(const TranslationsRequest& asked, size_t k) {
  const size_t text = asked.split.text_of(k);
  Json json = Json::object({{"index", text}});
  if (asked.has_parts) json["sentence"] = k - asked.split.first(text);
  return json;
}

// The events of what is done: of each sentence, and where texts have parts, of each text behind its
// last one.
class FinalEvents {
 public:
  FinalEvents(SharedExchange e, std::shared_ptr<const TranslationsRequest> asked)
      : exchange_(std::move(e)), asked_(std::move(asked)) {
    const SplitTexts& split = asked_->split;
    if (!asked_->has_parts) return;
    links_.resize(split.begins.back());
    for (size_t i = 0; i < split.texts.size(); ++i) left_.push_back(split.count(i));
  }
  // Texts of tags alone have no sentence.
  void begin() {
    exchange_->begin_events();
    for (size_t i = 0; i < left_.size(); ++i) {
      if (left_[i] == 0) send_text(i, {});
    }
  }
  // all: of which that of sentence k has come
  void take(const TranslationWork& work, size_t k, std::span<const Translation> all) {
    Attended found = attended(*asked_, {work, all.subspan(k, 1), k});
    Json event = sentence_json(*asked_, work, k, all[k]);
    if (!found.alignments.empty()) event["alignment"] = std::move(found.alignments[0]);
    const Json place = place_json(*asked_, k);
    for (const auto& [key, value] : place.as_object()) event[key] = value;
    send(std::move(event));
    if (!asked_->has_parts) return;
    if (!found.links.empty()) links_[k] = std::move(found.links[0]);
    const size_t i = asked_->split.text_of(k);
    if (--left_[i] == 0) send_text(i, all);
  }

 private:
  void send_text(size_t i, std::span<const Translation> all) {
    const auto of = [&](size_t k) { return all[k].text; };
    send(Json::object({{"text", asked_->split.joined(i, of, links_)}, {"index", i}}));
  }
  void send(Json event) {
    event["final"] = true;
    exchange_->event(event.dump());
  }

  SharedExchange exchange_;
  std::shared_ptr<const TranslationsRequest> asked_;
  std::vector<MarkedText::Links> links_;  // of all sentences
  std::vector<size_t> left_;              // sentences of each text
};

void take_alignment(const Json& body, TranslationsRequest& asked) {
  const std::string form = choice_of(body, "alignment", {"none", "hard", "matrix"});
  if (form == "hard") asked.form = AlignmentForm::hard;
  if (form == "matrix") asked.form = AlignmentForm::matrix;
  if (asked.streams && form == "matrix") {
    refuse("`stream` takes the `alignment` hard; matrices come whole, without it");
  }
  asked.alignment.layers = ints_of(body, "layers");
  asked.alignment.heads = ints_of(body, "heads");
  asked.alignment.precision = asked.model->precision;
  if (asked.form != AlignmentForm::none || !asked.split.marked.empty()) {
    const EncoderDecoderFacts& facts = asked.model->loaded().translator().facts();
    check_attends(facts);
    return check_alignment(facts, asked.alignment);
  }
  for (const char* key : {"layers", "heads"}) {
    if (has_member(body, key)) refuse("`{}` is of an `alignment`, which is not asked for", key);
  }
}

void take_prefixes(const Json& body, const TranslationsRequest& asked, TranslateOptions& options) {
  if (!has_member(body, "prefix")) return;
  if (asked.has_parts) refuse("`prefix` goes with whole texts, not with parts of them");
  const auto texts = std::ssize(asked.split.texts);
  const std::vector<std::string> prefixes = texts_of(body, "prefix", texts);
  if (prefixes.size() != 1 && std::ssize(prefixes) != texts) {
    refuse("there are {} prefixes for {} texts; give one for all, or one for each", prefixes.size(),
           texts);
  }
  const int64_t longest =
      most_tokens_of_text(asked.model->loaded().translator().facts().longest_target);
  for (const std::string& prefix : prefixes) {
    check_bytes(prefix.size(), longest, "the prefix");
    options.prefixes.push_back(prefix_ids(asked.model->loaded(), prefix, "prefix"));
  }
}

// The texts as what is translated of them.
void take_texts(const Exchange& e, const Json& body, const std::string& language,
                TranslationsRequest& asked) {
  auto texts = texts_of(body, "text", e.service.options().most_texts);
  const bool is_html = choice_of(body, "format", {"text", "html"}) == "html";
  const bool has_kept = has_member(body, "keep");
  const bool splits = bool_of(body, "split_sentences", false);
  asked.has_parts = splits || has_kept || is_html;
  const Splitting splitting{.at = splits ? SplitAt::lines : SplitAt::nothing,
                            .language = language,
                            .most = most_sequences(e.service)};
  if (!has_kept && !is_html) {
    asked.split = split_texts(std::move(texts), splitting);
    return;
  }
  if (has_kept && is_html) refuse("`keep` is for texts; HTML has translate=\"no\"");
  std::vector<std::string> kept;
  if (has_kept) kept = texts_of(body, "keep", e.service.options().most_texts);
  constexpr size_t kLongest = 1024;  // bytes of one
  for (const std::string& one : kept) {
    if (one.size() > kLongest) {
      refuse("`keep` has a span of {} bytes; at most {}", one.size(), kLongest);
    }
  }
  asked.split = marked_texts(std::move(texts), is_html ? MarkedFormat::html : MarkedFormat::plain,
                             splitting, "text", kept);
}

}  // namespace

void translations(const SharedExchange& e) {
  const Json body = e->json();
  refuse_others(body, {"text", "model", "source_lang", "target_lang", "beam", "n_best", "scores",
                       "length_penalty", "max_tokens", "prefix", "alignment", "layers", "heads",
                       "format", "keep", "split_sentences", "truncate", "stream", "partial"});
  const std::string source = text_of(body, "source_lang"), target = text_of(body, "target_lang");
  TranslationsRequest asked{.model = translator_of(e->service, body, source, target)};
  const ServedModel& model = *asked.model;
  asked.has_scores = bool_of(body, "scores", false);
  asked.streams = bool_of(body, "stream", false);
  asked.truncates = bool_of(body, "truncate", false);
  take_texts(*e, body, source.empty() ? model.source_language : source, asked);
  take_alignment(body, asked);
  TranslationWork work{.model = asked.model,
                       .texts = asked.split.sentences(),
                       .options = translate_options_of(e->service, model, body)};
  work.truncates = asked.truncates;
  set_request_languages(*asked.model, source, target, work.options);
  asked.has_several = work.options.search.n_best > 1;
  work.options.scores = asked.has_scores || asked.has_several;
  take_prefixes(body, asked, work.options);
  const auto shared = std::make_shared<const TranslationsRequest>(std::move(asked));
  const bool has_partial = bool_of(body, "partial", false);
  if (has_partial && !shared->streams) refuse("`partial` is for a `stream`");
  if (shared->streams) {
    const auto events = std::make_shared<FinalEvents>(e, shared);
    work.on_start = [events] { events->begin(); };
    work.on_text = [events](const TranslationWork& done, size_t k,
                            const std::vector<Translation>& all) { events->take(done, k, all); };
  }
  if (has_partial) {
    work.on_partial = [e, shared](size_t k, const std::string& text) {
      Json event = place_json(*shared, k);
      event["partial"] = text;
      event["final"] = false;
      e->event(event.dump());
    };
  }
  work.on_done = [e, shared](const TranslationWork& done, const std::vector<Translation>& all) {
    if (shared->streams) {
      e->event("[DONE]");
      return e->end_events();
    }
    Json json = Json::object({{"id", "tr-" + e->id}, {"object", "translations"}});
    json["model"] = shared->model->name;
    json["translations"] = translations_json(*shared, done, all);
    int64_t tokens = 0;
    for (const Translation& t : all) tokens += std::ssize(t.ids);
    json["usage"] = Json::object({{"target_tokens", tokens}});
    e->send(json);
  };
  start_translation(e, std::move(work));
}

}  // namespace heddle::serve
