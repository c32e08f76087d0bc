// One job a text; the last that ends sends the response.
#include "heddle/serve/api/translation_work.h"

#include <algorithm>

#include "heddle/serve/api/jobs.h"
#include "heddle/text/strings/strings.h"

namespace heddle::serve {
namespace {

// Shared by the jobs of a request; of the engine's thread, once it is there.
struct Pending {
  SharedExchange exchange;
  TranslationWork work;
  std::vector<Translation> results;
  size_t left = 0;

  void take(size_t i, std::span<const Hypothesis> found) {
    results[i] = as_translation(found);
    decode_texts(std::span(&results[i], 1), work.model->loaded().target());
    exchange->service.metrics().tokens_written(std::ssize(results[i].ids));
    done(i);
  }
  void done(size_t i) {
    if (work.on_text) work.on_text(i, results[i]);
    if (--left == 0) work.on_done(work, results);
  }
};

}  // namespace

void start_translation(const SharedExchange& e, TranslationWork work) {
  const ServedModel& model = *work.model;
  auto pending = std::make_shared<Pending>();
  pending->exchange = e;
  pending->results.resize(work.texts.size());
  pending->left = work.texts.size();
  std::vector<QueuedJob> jobs;
  std::vector<size_t> empty;
  int64_t tokens = 0;
  for (size_t i = 0; i < work.texts.size(); ++i) {
    const std::vector<int32_t>& ids = work.sources.emplace_back(
        source_ids(model.loaded(), work.texts[i], fmt::format("text {}", i + 1), false, nullptr));
    if (ids.empty()) {
      empty.push_back(i);
      continue;
    }
    TranslateOptions options = work.options;
    if (options.prefixes.size() > 1) options.prefixes = {work.options.prefixes[i]};
    tokens += std::ssize(ids);
    jobs.push_back({translation_request(model.loaded().translator(), ids, options),
                    options.search.width(),
                    [pending, i](std::span<const Hypothesis> found) { pending->take(i, found); }});
  }
  pending->work = std::move(work);
  e->service.metrics().tokens_read(tokens);
  start_jobs(e, pending->work.model, std::move(jobs), [pending, empty = std::move(empty)] {
    if (pending->work.on_start) pending->work.on_start();
    for (const size_t i : empty) pending->done(i);
  });
}

void set_request_languages(ServedModel& model, const std::string& source, const std::string& target,
                           TranslateOptions& options) {
  if (!model.source_language.empty()) return;
  model.loaded().source_language = model.default_language;  // the request before may have set it
  set_languages(model.loaded(), source, target, options);
}

SharedModel translator_of(const Service& service, const Json& body, const std::string& source,
                          const std::string& target) {
  if (body.contains("model") || (source.empty() && target.empty())) {
    return model_of(service, body, ModelUse::translate);
  }
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
    const auto known = model->loaded().target().languages();
    const auto knows = [&](const std::string& language) {
      return language.empty() ||
             std::ranges::any_of(known, [&](const auto& one) { return one.first == language; });
    };
    if (knows(source) && knows(target)) return model;
  }
  throw Refusal{.message = fmt::format("no model here translates from '{}' into '{}'; /languages "
                                       "has those that there are",
                                       source, target)};
}

TranslateOptions translate_options_of(const Service& service, const ServedModel& model,
                                      const Json& body) {
  const ServiceOptions& limits = service.options();
  TranslateOptions o = text_options(model.loaded(), model.translating);
  o.search.n_best = int_of(body, "n_best", 1, 1, std::min(limits.most_results, limits.most_beams));
  o.search.beam = std::max(int_of(body, "beam", o.search.beam.value_or(1), 1, limits.most_beams),
                           o.search.n_best);
  if (body.contains("length_penalty")) {
    o.search.length_penalty = number_of(body, "length_penalty", 1, -100, 100);
  }
  if (body.contains("max_tokens")) {
    o.longest_without_end = int_of(body, "max_tokens", 0, 1, 1 << 16);
    o.search.min_new_tokens = std::min(o.search.min_new_tokens.value_or(0), o.longest_without_end);
  }
  return o;
}

}  // namespace heddle::serve
