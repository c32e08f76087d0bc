// heddle eval of captioners: captions of held-out images, compared with those that are known, and
// judged by what the images show.
#include <algorithm>
#include <cmath>

#include "heddle/base/progress.h"
#include "heddle/cli/flags.h"
#include "heddle/cli/image_files.h"
#include "heddle/cli/measure/eval.h"
#include "heddle/data/captioning/sources.h"
#include "heddle/data/image_cache.h"
#include "heddle/train/metrics/caption_scores.h"

namespace heddle::cli {
namespace {

constexpr int64_t kAtOnce = 128;

using JudgedCaptions = JudgedPart<CaptionSource>;

// The sets that are judged: judged_part(), and what training lacks.
std::vector<JudgedCaptions> sets_of(const std::string& path) {
  const CaptionSources found = find_captions(path);
  std::vector<JudgedCaptions> sets;
  if (found.test || found.val || !found.unseen) sets.push_back(judged_part(found, path));
  if (found.unseen) sets.push_back({"unseen", found.unseen()});
  return sets;
}

struct SetReport {
  std::string name;
  int64_t images = 0, left_out = 0;
  int64_t judged = 0;  ///< images whose scene is known
  train::LossSums loss = {};
  train::CaptionScores scores = {};
  std::optional<train::BleuScore> bleu = {};  ///< where an image has captions

  double perplexity() const { return std::exp(loss.nll / static_cast<double>(loss.predicted)); }
};

class CaptionJudge {
 public:
  CaptionJudge(const CaptionReader& reader, const TranslateOptions& options,
               const JudgedCaptions& set)
      : reader_(reader), options_(options), source_(set.source), report_{.name = set.name} {}

  SetReport run(const train::BleuOptions& bleu) {
    Progress progress("eval");
    const auto count = std::ssize(source_.images.entries);
    for (int64_t begin = 0; begin < count; begin += kAtOnce) {
      judge(begin, std::min(kAtOnce, count - begin));
      if (!progress.is_due()) continue;
      progress.update(
          static_cast<double>(begin) / static_cast<double>(count),
          fmt::format("{}: {} of {}", report_.name, format_count(begin), counted(count, "image")));
    }
    left_out_.report(count);
    scenes_.warn("eval");
    report_.left_out = left_out_.count();
    if (!written_.empty()) report_.bleu = train::caption_bleu(written_, references_, bleu);
    return std::move(report_);
  }

 private:
  void judge(int64_t first, int64_t count) {
    std::vector<Image> all(static_cast<size_t>(count)), fitted;
    const ReadableImages readable = read_in_parallel(count, [&](size_t i) {
      const size_t entry = static_cast<size_t>(first) + i;
      const std::string path = source_.images.path(entry);
      const DecodedImage decoded = source_.images.decode(entry, path);
      check_takes(reader_.model(), reader_.processor, decoded.size, path);
      all[i] = reader_.processor.fit(
          ImageView{decoded.pixels.data(), decoded.size, source_.images.channels}.rgb());
    });
    for (const std::string& message : readable.left_out) left_out_.note(message);
    if (readable.read.empty()) return;
    std::vector<size_t> entries;
    for (const size_t i : readable.read) {
      fitted.push_back(std::move(all[i]));
      entries.push_back(static_cast<size_t>(first) + i);
    }
    judge(entries, encode_images(reader_.model(), reader_.processor, fitted, options_.precision));
  }

  void judge(std::span<const size_t> entries, const EncodedImages& images) {
    report_.images += std::ssize(entries);
    std::vector<std::vector<std::vector<int32_t>>> ids;
    EncodedImages known, others;  // images that say what they show, and the others
    std::vector<std::vector<std::string>> of_others;
    train::CaptionExam exam;
    for (size_t k = 0; k < entries.size(); ++k) {
      const std::vector<std::string>& captions = source_.captions[entries[k]];
      auto& of_image = ids.emplace_back();
      for (const std::string& caption : captions) {
        of_image.push_back(reader_.loaded.target().encode(caption));
      }
      std::optional<CaptionScene> scene = scenes_.read(source_.scenes[entries[k]]);
      EncodedImages& into = scene ? known : others;
      into.memories.push_back(images.memories[k]);
      into.grids.push_back(images.grids[k]);
      if (scene) {
        exam.add(*std::move(scene), captions);
      } else {
        of_others.push_back(captions);
      }
    }
    report_.loss += train::caption_loss(reader_.model(), images, ids, options_.precision);
    judge_scenes(known, exam);
    std::vector<std::string> written;
    for (const Translation& caption :
         caption_images(reader_.model(), reader_.loaded.target(), others.memories, options_)) {
      written.push_back(caption.text);
    }
    compare(written, of_others);
  }

  void judge_scenes(const EncodedImages& images, const train::CaptionExam& exam) {
    report_.judged += std::ssize(exam.scenes);
    if (exam.scenes.empty()) return;
    const train::CaptionScores scores =
        train::score_captions(reader_.model(), reader_.loaded.target(), images, exam, options_);
    compare(scores.written, exam.references);
    report_.scores += scores;
  }

  // Captions that are to be compared with those that images have.
  void compare(std::span<const std::string> written,
               std::span<const std::vector<std::string>> references) {
    for (size_t i = 0; i < written.size(); ++i) {
      if (references[i].empty()) continue;
      written_.push_back(written[i]);
      references_.push_back(references[i]);
    }
  }

  const CaptionReader& reader_;
  const TranslateOptions& options_;
  const CaptionSource& source_;
  SetReport report_;
  train::SceneReader scenes_;
  std::vector<std::string> written_;
  std::vector<std::vector<std::string>> references_;
  Skipped left_out_{"eval", kLeftOutImages};
};

Json pointing_json(const train::PointingSums& p) {
  return Json::object(
      {{"words", p.words}, {"mass_ratio", p.mass_ratio()}, {"peak_inside", p.peak_share()}});
}

Json counts_json(const train::CaptionCounts& counts) {
  return Json::object({{"captions", counts.captions},
                       {"grammatical", counts.grammatical_share()},
                       {"true", counts.true_share()}});
}

Json as_json(const SetReport& r) {
  Json json = Json::object({{"images", r.images},
                            {"left_out", r.left_out},
                            {"ppl", finite_or_null(r.perplexity())},
                            {"tokens", r.loss.predicted}});
  if (r.bleu) {
    const Json bleu = bleu_json(*r.bleu);
    for (const auto& [key, value] : bleu.as_object()) json[key] = value;
  }
  if (r.judged == 0) return json;
  json["judged"] = r.judged;
  json["written"] = counts_json(r.scores.all);
  json["asked"] = counts_json(r.scores.asked());
  for (size_t k = 0; k < kCaptionKinds; ++k) {
    json["kinds"][caption_kind_name(static_cast<CaptionKind>(k))] = counts_json(r.scores.kinds[k]);
  }
  json["held_out"] = counts_json(r.scores.held_out);
  const train::Pointing p = r.scores.pointing_of_all();
  if (p.all().words == 0) return json;
  json["attention"] = pointing_json(p.all());
  json["attention"]["colors"] = pointing_json(p.colors);
  json["attention"]["nouns"] = pointing_json(p.nouns);
  for (size_t k = 0; k < kCaptionKinds; ++k) {
    json["attention"]["kinds"][caption_kind_name(static_cast<CaptionKind>(k))] =
        pointing_json(r.scores.pointing[k].all());
  }
  return json;
}

std::string counts_text(const train::CaptionCounts& c, const char* name) {
  return fmt::format("\n  {:<28} {:>6.2f} % grammatical, {:>6.2f} % true of {}", name,
                     100 * c.grammatical_share(), 100 * c.true_share(),
                     counted(c.captions, "caption"));
}

std::string as_text(const SetReport& r) {
  std::string text =
      fmt::format("{}: {}, perplexity {:.3f} per token ({})", r.name, counted(r.images, "image"),
                  r.perplexity(), counted(r.loss.predicted, "token"));
  if (r.bleu) text += "\n  " + bleu_text(*r.bleu);
  if (r.judged == 0) {
    return text + "\n  no image says what it shows (\"objects\"), so truth is not judged";
  }
  text += counts_text(r.scores.all, "as they are written");
  text += counts_text(r.scores.asked(), "asked for by kind");
  for (size_t k = 0; k < kCaptionKinds; ++k) {
    const std::string name = fmt::format("  {}", caption_kind_name(static_cast<CaptionKind>(k)));
    text += counts_text(r.scores.kinds[k], name.c_str());
  }
  if (r.scores.held_out.captions > 0) {
    text += counts_text(r.scores.held_out, "of held-out combinations");
  }
  const train::Pointing p = r.scores.pointing_of_all();
  if (p.all().words == 0) return text;
  text += fmt::format(
      "\n  attention at {}: {:.2f} times even weights in the objects named, heaviest cell inside "
      "{:.2f} % (colors {:.2f} %, nouns {:.2f} %)",
      counted(p.all().words, "word"), p.all().mass_ratio(), 100 * p.all().peak_share(),
      100 * p.colors.peak_share(), 100 * p.nouns.peak_share());
  for (size_t k = 0; k < kCaptionKinds; ++k) {
    const train::PointingSums of_kind = r.scores.pointing[k].all();
    if (of_kind.words == 0) continue;
    text += fmt::format("\n    {:<26} {:>6.2f} times, heaviest cell inside {:>6.2f} % of {}",
                        caption_kind_name(static_cast<CaptionKind>(k)), of_kind.mass_ratio(),
                        100 * of_kind.peak_share(), counted(of_kind.words, "word"));
  }
  return text;
}

}  // namespace

void eval_captions(const EvalFlags& flags) {
  check(flags.page.empty(), ErrorKind::usage,
        "--page: heddle caption --page shows captions over images; eval has no page of them");
  check_caption_flags(flags);
  const CaptionReader reader = load_captioner(flags.model);
  TranslateOptions options = caption_options(flags, reader.loaded, flags.chosen_precision);
  options.scores = false;
  Json json = Json::object({{"sets", Json::object()}});
  for (const JudgedCaptions& set : sets_of(flags.data)) {
    const SetReport report = CaptionJudge(reader, options, set).run(flags.bleu());
    if (!flags.json) {
      print_result(as_text(report));
    } else {
      json["sets"][report.name] = as_json(report);
    }
  }
  if (!flags.json) return;
  json["beam"] = options.search.beam.value_or(1);
  json["precision"] = precision_name(flags.chosen_precision);
  print_result(json.dump());
}

}  // namespace heddle::cli
