// Validation loss, and BLEU of greedy translations.
#include "heddle/train/metrics/validation.h"

#include <algorithm>

#include "heddle/data/batches.h"
#include "heddle/train/metrics/metrics.h"
#include "heddle/train/tasks/translation.h"

namespace heddle::train {

Validator::Validator(const TokenizedCorpus& corpus, const Tokenizer& tokenizer,
                     const ValidationOptions& options, const Tokenizer* source)
    : corpus_(&corpus),
      tokenizer_(&tokenizer),
      source_tokenizer_(source != nullptr ? source : &tokenizer),
      options_(options) {
  if (!options.wants_bleu) return;
  for (int64_t i = 0; i < corpus.size(); ++i) {
    sources_.push_back(corpus.source(i).ids());
    references_.push_back(tokenizer.decode(corpus.target(i).ids()));
  }
}

ValidationScore Validator::operator()(const EncoderDecoder& model, const nn::Run& run) const {
  nn::Run plain = run;
  plain.training = false;
  const EncoderDecoderFacts& c = model.facts();
  const TranslationIds special{static_cast<int32_t>(c.decoder_start_token_id),
                               static_cast<int32_t>(c.eos_token_id)};
  const BatchPlan plan = plan_epoch({corpus_->source_lengths(), corpus_->target_lengths()},
                                    {.batch_tokens = options_.batch_tokens, .shuffle = false}, 0);
  LossSums sums;
  for (int64_t i = 0; i < plan.size(); ++i) {
    sums += batch_loss(model, make_translation_batch(*corpus_, plan.batch(i), special), plain);
  }
  ValidationScore score;
  score.loss = sums.nll / static_cast<double>(sums.predicted);
  if (!options_.wants_bleu) return score;
  std::vector<std::string> hypotheses;
  for (const Translation& t : translate_ids(model, sources_, options_.translate)) {
    hypotheses.push_back(tokenizer_->decode(t.ids));
  }
  score.metrics = {{"bleu", corpus_bleu(hypotheses, references_).score}};
  return score;
}

std::vector<SampleTranslation> Validator::samples(const EncoderDecoder& model) const {
  const int64_t count = std::min<int64_t>(6, corpus_->size());
  std::vector<SampleTranslation> samples;
  std::vector<std::vector<int32_t>> sources;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t at = i * corpus_->size() / count;
    sources.push_back(corpus_->source(at).ids());
    samples.push_back({.source = source_tokenizer_->decode(sources.back()),
                       .reference = tokenizer_->decode(corpus_->target(at).ids()),
                       .translation = {}});
  }
  TranslateOptions options = options_.translate;
  options.search.beam = 1;
  options.scores = false;
  const std::vector<Translation> translations = translate_ids(model, sources, options);
  for (int64_t i = 0; i < count; ++i) {
    samples[i].translation = tokenizer_->decode(translations[i].ids);
  }
  return samples;
}

}  // namespace heddle::train
