// A batch of sentence pairs as the model takes it.
#include "heddle/data/translation_batch.h"

#include "heddle/base/error.h"
#include "heddle/base/profile.h"

namespace heddle {

namespace {

void append_row_names(uint32_t name, int64_t rows, std::vector<uint32_t>& sample,
                      std::vector<uint32_t>& position) {
  for (int64_t i = 0; i < rows; ++i) {
    sample.push_back(name);
    position.push_back(static_cast<uint32_t>(i));
  }
}

}  // namespace

TranslationBatch make_translation_batch(const TokenizedCorpus& corpus,
                                        std::span<const int64_t> pairs,
                                        const TranslationIds& special, int64_t passes) {
  const ProfilePhase phase("batch");
  TranslationBatch batch;
  std::vector<int64_t> source_rows, target_rows;
  const auto append = [&](int64_t pair, uint32_t pass) {
    check(pair >= 0 && pair < corpus.size(), ErrorKind::internal,
          "translation batch: pair {} of a corpus of {}", pair, corpus.size());
    const TokenView source = corpus.source(pair), target = corpus.target(pair);
    batch.samples.push_back(pair);
    source.append_to(batch.source);
    batch.source.push_back(special.eos);
    batch.target_in.push_back(special.decoder_start);
    target.append_to(batch.target_in);
    target.append_to(batch.target_out);
    batch.target_out.push_back(special.eos);
    source_rows.push_back(source.size() + 1);
    target_rows.push_back(target.size() + 1);
    const uint32_t name = static_cast<uint32_t>(pair) ^ (pass << 31);
    append_row_names(name, source.size() + 1, batch.source_sample, batch.source_position);
    append_row_names(name, target.size() + 1, batch.target_sample, batch.target_position);
  };
  for (int64_t pass = 0; pass < passes; ++pass) {
    for (const int64_t pair : pairs) append(pair, static_cast<uint32_t>(pass));
  }
  batch.source_segments = Segments::from_lengths(source_rows);
  batch.target_segments = Segments::from_lengths(target_rows);
  batch.target_tokens = batch.target_segments.rows();
  return batch;
}

}  // namespace heddle
