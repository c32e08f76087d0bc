// heddle eval of translators: translates a test set and says how good that is.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "heddle/base/files/files.h"
#include "heddle/base/files/lines.h"
#include "heddle/base/progress.h"
#include "heddle/cli/flags/eval_flags.h"
#include "heddle/infer/loading/precision.h"
#include "heddle/inspect/pages/text_pages.h"
#include "heddle/train/metrics/metrics.h"
#include "heddle/train/tasks/losses.h"

namespace heddle::cli {
namespace {

struct Pairs {
  std::vector<std::string> source, reference;
};

Pairs read_pairs(const EvalFlags& flags) {
  Pairs pairs{read_lines(flags.source, "eval"), read_lines(flags.reference, "eval")};
  check(pairs.source.size() == pairs.reference.size(), ErrorKind::data,
        "{} has {} lines but {} has {}; line i of the one must be the translation of line i of the "
        "other",
        flags.source, pairs.source.size(), flags.reference, pairs.reference.size());
  return pairs;
}

using Ids = std::vector<std::vector<int32_t>>;

Ids encode(const LoadedModel& model, const std::vector<std::string>& lines, const std::string& path,
           const TranslateOptions& options, bool is_target, int64_t& cut) {
  Ids ids;
  for (size_t i = 0; i < lines.size(); ++i) {
    bool was_cut = false;
    const std::string where = fmt::format("{}: line {}", path, i + 1);
    ids.push_back(is_target ? target_ids(model, lines[i], where, options.truncate, &was_cut)
                            : source_ids(model, lines[i], where, options.truncate, &was_cut));
    cut += was_cut;
  }
  return ids;
}

void append(std::vector<int32_t>& rows, std::vector<int64_t>& lengths,
            const std::vector<int32_t>& ids, int64_t first, int64_t last) {
  if (first >= 0) rows.push_back(static_cast<int32_t>(first));
  rows.insert(rows.end(), ids.begin(), ids.end());
  if (last >= 0) rows.push_back(static_cast<int32_t>(last));
  lengths.push_back(static_cast<int64_t>(ids.size()) + 1);
}

TranslationBatch make_batch(const EncoderDecoderFacts& c, const Ids& source, const Ids& target,
                            std::span<const size_t> pairs) {
  TranslationBatch b;
  std::vector<int64_t> source_lengths, target_lengths, target_again;
  for (const size_t i : pairs) {
    b.samples.push_back(static_cast<int64_t>(i));
    append(b.source, source_lengths, source[i], -1, c.eos_token_id);
    append(b.target_in, target_lengths, target[i], c.decoder_start_token_id, -1);
    append(b.target_out, target_again, target[i], -1, c.eos_token_id);
  }
  b.source_segments = Segments::from_lengths(source_lengths);
  b.target_segments = Segments::from_lengths(target_lengths);
  b.target_tokens = b.target_segments.rows();
  return b;
}

// Negative log likelihood of the references, ends included.
train::LossSums likelihood(const LoadedModel& model, const Ids& source, const Ids& target,
                           const TranslateOptions& options) {
  const auto rows = [&](size_t i) { return std::max(source[i].size(), target[i].size()) + 1; };
  std::vector<size_t> order(source.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return rows(a) < rows(b); });
  nn::Run run;
  run.use(options.precision);
  train::LossSums sums;
  for (size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    int64_t tokens = 0;
    do {
      tokens += static_cast<int64_t>(rows(order[end++]));
    } while (end < order.size() &&
             tokens + static_cast<int64_t>(rows(order[end])) <= options.batch_tokens);
    sums += train::batch_loss(model.translator(),
                              make_batch(model.translator().facts(), source, target,
                                         std::span(order).subspan(begin, end - begin)),
                              run);
  }
  return sums;
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
  Json json = Json::object({{"bleu", r.bleu.score},
                            {"chrf", r.chrf.score},
                            {"signature", r.bleu.signature},
                            {"chrf_signature", r.chrf.signature}});
  for (const double precision : r.bleu.precisions) json["precisions"].push_back(precision);
  json["bp"] = r.bleu.brevity_penalty;
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
  const double* p = r.bleu.precisions;
  return fmt::format(
      "BLEU  {:.2f}  {:.1f}/{:.1f}/{:.1f}/{:.1f} (BP = {:.3f} hyp_len = {} ref_len = {})  {}\n"
      "chrF2 {:.2f}  {}\n"
      "perplexity {:.3f} per token ({}), {:.3f} per word ({})",
      r.bleu.score, p[0], p[1], p[2], p[3], r.bleu.brevity_penalty, r.bleu.hypothesis_length,
      r.bleu.reference_length, r.bleu.signature, r.chrf.score, r.chrf.signature, r.per_token(),
      counted(r.loss.predicted, "token"), r.per_word(), counted(r.words, "word"));
}

std::vector<std::string> translate_all(const LoadedModel& model, const Pairs& pairs,
                                       const TranslateOptions& options) {
  std::vector<std::string> texts;
  for (Translation& t : translate_lines(model, pairs.source, options)) {
    texts.push_back(std::move(t.text));
  }
  return texts;
}

inspect::Page page_of(const Pairs& pairs, const std::vector<std::string>& hypotheses,
                      const TranslationReport& report, const EvalFlags& flags) {
  std::vector<inspect::JudgedTranslation> lines;
  for (size_t i = 0; i < std::min<size_t>(hypotheses.size(), inspect::kPageAnswers); ++i) {
    const train::ChrfScore chrf =
        train::corpus_chrf({&hypotheses[i], 1}, train::Sentences(&pairs.reference[i], 1),
                           {.lowercase = flags.lowercase});
    lines.push_back({pairs.source[i], pairs.reference[i], hypotheses[i], chrf.score});
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

void eval_translation(const EvalFlags& flags) {
  const bool has_page = wants_page(flags);
  const Precision precision = apply_translate_flags(flags);
  const train::BleuOptions bleu = {.lowercase = flags.lowercase,
                                   .tokenizer = train::bleu_tokenizer(flags.tokenize)};
  const Pairs pairs = read_pairs(flags);
  LoadedModel model = load_translation_model(flags.model);
  const TranslateOptions options = translate_options(flags, model, precision);
  int64_t cut = 0;
  const Ids source = encode(model, pairs.source, flags.source, options, false, cut);
  const Ids target = encode(model, pairs.reference, flags.reference, options, true, cut);
  const std::vector<std::string> hypotheses = translate_all(model, pairs, options);
  if (!flags.output.empty()) write_lines(flags.output, hypotheses);
  int64_t words = 0;
  for (const std::string& line : pairs.reference) words += count_words(line);
  const TranslationReport report{
      .bleu = train::corpus_bleu(hypotheses, pairs.reference, bleu),
      .chrf = train::corpus_chrf(hypotheses, pairs.reference, {.lowercase = flags.lowercase}),
      .loss = likelihood(model, source, target, options),
      .lines = static_cast<int64_t>(pairs.source.size()),
      .words = words};
  fmt::print("{}\n", flags.json ? as_json(report, options) : as_text(report));
  report_cut("eval", cut, model);
  if (has_page) write_eval_page(flags, page_of(pairs, hypotheses, report, flags));
}

}  // namespace heddle::cli
