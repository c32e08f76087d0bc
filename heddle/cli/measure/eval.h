// The flags of heddle eval, and what it does with models of each kind.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "heddle/base/json/json.h"
#include "heddle/base/log.h"
#include "heddle/base/progress.h"
#include "heddle/cli/flags.h"
#include "heddle/cli/group_flags.h"
#include "heddle/dist/share_out.h"
#include "heddle/train/metrics/metrics.h"

namespace heddle::cli {

struct EvalFlags : TranslateFlags {
  std::string source, reference, tokenize = "13a", output;
  std::string data, text_key = "text", label_key = "label", page;
  int64_t context = 0, stride = 0;
  std::optional<uint64_t> seed;
  bool no_memory = false, lowercase = false, json = false;
  int64_t views = 1;
  Precision chosen_precision = {};  ///< what compute.precision comes to on this machine
  dist::GroupOptions ranks;
  dist::Group* group = nullptr;  ///< whose ranks measure together

  train::BleuOptions bleu() const {
    return {.lowercase = lowercase, .tokenizer = train::bleu_tokenizer(tokenize)};
  }
};

/// BLEU, and chrF beside it, as `heddle score` and `eval` show them.
Json bleu_json(const train::BleuScore& bleu);
std::string bleu_text(const train::BleuScore& bleu);
Json scores_json(const train::BleuScore& bleu, const train::ChrfScore& chrf);
std::string scores_text(const train::BleuScore& bleu, const train::ChrfScore& chrf);

/// JSON has no infinity: a perplexity beyond double is null.
Json finite_or_null(double value);

/// The documents of --data, the same on all ranks, which all call it.
std::vector<std::string> documents_of(const EvalFlags& flags);

// The ranks of flags.group share what is measured, and rank 0 writes; captions, and objects with a
// page, rank 0 measures alone.

/// Images that are judged, and the part that they are: test, val or all.
template <class Source>
struct JudgedPart {
  std::string name;
  Source source;
};

/// Of what is found at a path that to test on, or what validation takes where there is none; where
/// nothing is held out all of it, which is said.
template <class Sources>
auto judged_part(const Sources& found, const std::string& path) {
  using Part = JudgedPart<decltype(found.train())>;
  if (found.test) return Part{"test", found.test()};
  if (found.val) return Part{"val", found.val()};
  log_info("eval: {} has no images that are held out; all of them are judged", path);
  return Part{"all", found.train()};
}

/// What judge(first, n) finds in images first .. first + n - 1, `at_once` at a time, in order; says
/// how far it is. All ranks of the group call it, and share the images.
template <class Found>
std::vector<Found> judge_in_passes(dist::Group& group, int64_t images, int64_t at_once,
                                   const auto& judge) {
  Progress progress("eval");
  return dist::share_out_each<Found>(group, (images + at_once - 1) / at_once, [&](int64_t pass) {
    const int64_t first = pass * at_once;
    Found found = judge(first, std::min(at_once, images - first));
    if (progress.is_due()) {
      progress.update(static_cast<double>(first) / static_cast<double>(images),
                      fmt::format("{} of {}", format_count(first), counted(images, "image")));
    }
    return found;
  });
}

/// BLEU, chrF and perplexity of a translator on sentences and their translations.
void eval_translation(const EvalFlags& flags);

/// Perplexity of a language model on a text.
void eval_text(const EvalFlags& flags);

/// How often a model of masked tokens finds the masked tokens of a text.
void eval_masked_tokens(const EvalFlags& flags);

/// Accuracy and macro F1 of a model with classes on labelled texts, or words.
void eval_classes(const EvalFlags& flags);

/// Accuracy, top-5 accuracy and calibration of a model that classifies images.
void eval_images(const EvalFlags& flags);

/// Perplexity of captions, BLEU of a captioner's own; where scenes are known their grammar, truth
/// and attention.
void eval_captions(const EvalFlags& flags);

/// Average precision and recall of a model that finds objects in images.
void eval_objects(const EvalFlags& flags);

}  // namespace heddle::cli
