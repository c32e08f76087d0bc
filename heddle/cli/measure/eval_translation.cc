// heddle eval of translators: translates a test set and says how good that is.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "heddle/base/files/files.h"
#include "heddle/base/files/lines.h"
#include "heddle/base/progress.h"
#include "heddle/cli/lines.h"
#include "heddle/cli/measure/eval.h"
#include "heddle/cli/shared_command.h"
#include "heddle/dist/share_out.h"
#include "heddle/infer/loading/loaded_model.h"
#include "heddle/inspect/pages/text_pages.h"
#include "heddle/text/strings/strings.h"
#include "heddle/train/metrics/metrics.h"
#include "heddle/train/tasks/losses.h"

namespace heddle::cli {
namespace {

using Ids = std::vector<std::vector<int32_t>>;

// Negative log likelihood of the references, ends included.
train::LossSums likelihood(const LoadedModel& model, const Ids& source, const Ids& target,
                           const TranslateOptions& options, dist::Group& group) {
  const PairMarks marks = text_marks(model, options);
  const auto rows = [&](size_t i) {
    return std::max(std::ssize(source[i]) + marks.source_rows(),
                    std::ssize(target[i]) + marks.target_rows());
  };
  std::vector<size_t> order(source.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, {}, rows);
  nn::Run run;
  run.use(options.precision);
  std::vector<std::span<const size_t>> batches;
  for (size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    int64_t tokens = 0;
    do {
      tokens += rows(order[end++]);
    } while (end < order.size() && tokens + rows(order[end]) <= options.batch_tokens);
    batches.push_back(std::span(order).subspan(begin, end - begin));
  }
  const auto loss_of = [&](int64_t i) {
    return train::batch_loss(model.translator(),
                             pack_pairs(source, target, batches[static_cast<size_t>(i)], marks),
                             run);
  };
  return train::shared_loss(group, std::ssize(batches), loss_of);
}

struct TranslationReport {
  train::BleuScore bleu;
  train::ChrfScore chrf;
  train::LossSums loss;
  int64_t lines = 0, words = 0;

  double per_token() const { return std::exp(loss.nll / static_cast<double>(loss.predicted)); }
  double per_word() const { return std::exp(loss.nll / static_cast<double>(words)); }
};

std::string as_json(const TranslationReport& r, const TranslateOptions& o) {
  Json json = scores_json(r.bleu, r.chrf);
  json["ppl"] = finite_or_null(r.per_token());
  json["ppl_word"] = finite_or_null(r.per_word());
  json["nll"] = finite_or_null(r.loss.nll);
  json["tokens"] = r.loss.predicted;
  json["words"] = r.words;
  json["lines"] = r.lines;
  json["beam"] = o.search.beam.value_or(1);
  json["length_penalty"] = o.search.length_penalty.value_or(1);
  json["precision"] = precision_name(o.precision);
  return json.dump();
}

std::string as_text(const TranslationReport& r) {
  return fmt::format("{}\nperplexity {:.3f} per token ({}), {:.3f} per word ({})",
                     scores_text(r.bleu, r.chrf), r.per_token(), counted(r.loss.predicted, "token"),
                     r.per_word(), counted(r.words, "word"));
}

std::vector<std::string> translate_all(const LoadedModel& model, const PairLines& pairs,
                                       const TranslateOptions& options, dist::Group& group) {
  const auto translate = [&](std::span<const int64_t> items) {
    std::vector<std::string> lines, texts;
    for (const int64_t i : items) lines.push_back(pairs.source[static_cast<size_t>(i)]);
    for (Translation& t : translate_lines(model, lines, options)) {
      texts.push_back(std::move(t.text));
    }
    return texts;
  };
  return dist::share_out<std::string>(group, std::ssize(pairs.source), translate);
}

inspect::Page page_of(const PairLines& pairs, const std::vector<std::string>& hypotheses,
                      const TranslationReport& report, const EvalFlags& flags) {
  std::vector<inspect::JudgedTranslation> lines;
  for (size_t i = 0; i < std::min<size_t>(hypotheses.size(), inspect::kPageAnswers); ++i) {
    const train::ChrfScore chrf = train::corpus_chrf(
        {&hypotheses[i], 1}, train::Sentences(&pairs.target[i], 1), {.lowercase = flags.lowercase});
    lines.push_back({pairs.source[i], pairs.target[i], hypotheses[i], chrf.score});
  }
  return inspect::translations_page(
      {flags.model, fmt::format("{}, {}", flags.source, flags.reference), as_text(report)}, lines,
      std::ssize(hypotheses));
}

void write_lines(const std::string& path, const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  write_file_atomic(path, text);
}

}  // namespace

Json bleu_json(const train::BleuScore& bleu) {
  Json json = Json::object({{"bleu", bleu.score}, {"signature", bleu.signature}});
  for (const double precision : bleu.precisions) json["precisions"].push_back(precision);
  json["bp"] = bleu.brevity_penalty;
  return json;
}

Json scores_json(const train::BleuScore& bleu, const train::ChrfScore& chrf) {
  Json json = bleu_json(bleu);
  json["chrf"] = chrf.score;
  json["chrf_signature"] = chrf.signature;
  return json;
}

std::string bleu_text(const train::BleuScore& bleu) {
  const double* p = bleu.precisions;
  return fmt::format(
      "BLEU  {:.2f}  {:.1f}/{:.1f}/{:.1f}/{:.1f} (BP = {:.3f} hyp_len = {} ref_len = {})  {}",
      bleu.score, p[0], p[1], p[2], p[3], bleu.brevity_penalty, bleu.hypothesis_length,
      bleu.reference_length, bleu.signature);
}

std::string scores_text(const train::BleuScore& bleu, const train::ChrfScore& chrf) {
  return fmt::format("{}\nchrF2 {:.2f}  {}", bleu_text(bleu), chrf.score, chrf.signature);
}

void eval_translation(const EvalFlags& flags) {
  const bool has_page = !flags.page.empty();
  const train::BleuOptions bleu = flags.bleu();
  dist::Group& group = *flags.group;
  PairLines pairs;
  std::optional<LoadedModel> loaded;
  TranslateOptions options;
  int64_t cut = 0;
  Ids source, target;
  const auto read = [&] {
    pairs = read_pairs(flags.source, flags.reference, "eval");
    loaded.emplace(load_translation_model(flags.model));
    options = translate_options(flags, *loaded, flags.chosen_precision);
    options.scores = false;
    source =
        line_ids(*loaded, source_ids, pairs.source,
                 {.where = flags.source + ": line", .truncate = options.truncate, .cut = &cut});
    target =
        line_ids(*loaded, target_ids, pairs.target,
                 {.where = flags.reference + ": line", .truncate = options.truncate, .cut = &cut});
  };
  agree(group, "the data", read, [&] {
    return fmt::format("{}\n\n{}", fmt::join(pairs.source, "\n"), fmt::join(pairs.target, "\n"));
  });
  const LoadedModel& model = *loaded;
  const std::vector<std::string> hypotheses = translate_all(model, pairs, options, group);
  const train::LossSums loss = likelihood(model, source, target, options, group);
  do_on_rank_0(group, [&] {
    if (!flags.output.empty()) write_lines(flags.output, hypotheses);
    int64_t words = 0;
    for (const std::string& line : pairs.target) words += std::ssize(split_at_spaces(line));
    const TranslationReport report{
        .bleu = train::corpus_bleu(hypotheses, pairs.target, bleu),
        .chrf = train::corpus_chrf(hypotheses, pairs.target, {.lowercase = flags.lowercase}),
        .loss = loss,
        .lines = static_cast<int64_t>(pairs.source.size()),
        .words = words};
    print_result(flags.json ? as_json(report, options) : as_text(report));
    warn_of_cut("eval", cut, std::ssize(pairs.source) + std::ssize(pairs.target),
                model.translator().facts().longest_source);
    if (has_page)
      write_page("eval", "a page", flags.page, page_of(pairs, hypotheses, report, flags));
  });
}

}  // namespace heddle::cli
