// How a translator is best searched, found out on held-out sentences.
#pragma once

#include <string>
#include <vector>

#include "heddle/dist/group.h"
#include "heddle/infer/decoding/translate.h"
#include "heddle/infer/loading/loaded_model.h"
#include "heddle/infer/search/beam.h"
#include "heddle/train/metrics/significance.h"

namespace heddle::train {

/// What a beam ended with.
struct EndedText {
  std::string text;
  double log_p = 0;
  int64_t length = 0;  ///< tokens, and the end if it came

  template <class V>
  void parts(V& v) {
    v(text, log_p, length);
  }
};

struct TunedSearch {
  int64_t beam = 1;
  double length_penalty = 1;
  ResampledScore bleu = {};  ///< with it
  double bleu_at_1 = 0;      ///< with a length penalty of 1
};

/// Chooses the length penalty (0 to 2, in steps of 0.1) by which the best text of each sentence
/// gives the highest BLEU, in the mean over neighbouring steps, so that no single sentence decides;
/// of those that it is not significantly better than (paired_bleu(), p < 0.05) the one nearest to
/// 1: other texts are of other lengths, and what is gained by chance is lost there.
/// sentences: one or more texts of each    Errors: data if there is no sentence.
TunedSearch choose_length_penalty(const std::vector<std::vector<EndedText>>& sentences,
                                  const std::vector<std::string>& references, LengthPenalty kind);

/// The same of what one search with such a beam ends with, which the ranks share: all call it. The
/// same for any number of threads and ranks.
/// sources: ids    options: with a beam, whose width is that of the search
TunedSearch tune_search(const LoadedModel& model, const std::vector<std::vector<int32_t>>& sources,
                        const std::vector<std::string>& references, TranslateOptions options,
                        dist::Group& group);

/// Puts them into generation_config.json of a folder; where there is none, with what config.json of
/// `config_folder` says of the search.
void save_generation(const std::string& folder, const Json& members,
                     const std::string& config_folder);
/// The same of what was tuned, and the folder's own config.json.
void save_search(const std::string& folder, const TunedSearch& search);

}  // namespace heddle::train
