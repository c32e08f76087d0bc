// Beginnings of captions of each kind, and cells against boxes.
#include "heddle/train/metrics/caption_scores.h"

#include <algorithm>
#include <functional>
#include <map>

#include "heddle/base/log.h"
#include "heddle/base/progress.h"
#include "heddle/ops/shape.h"

namespace heddle::train {
namespace {

// The parts of a cell's sides that lie in a box, and whether its middle does. All are shares of the
// image.
struct GridCell {
  double x0, y0, x1, y1;

  GridCell(int64_t number, ImageSize grid) {
    const auto columns = static_cast<double>(grid.width), rows = static_cast<double>(grid.height);
    x0 = static_cast<double>(number % grid.width) / columns, x1 = x0 + 1 / columns;
    y0 = static_cast<double>(number / grid.width) / rows, y1 = y0 + 1 / rows;
  }
  double share_in(const Box& box) const {
    const double w = std::min(x1, box.x1) - std::max(x0, box.x0);
    const double h = std::min(y1, box.y1) - std::max(y0, box.y0);
    return std::max(0.0, w) * std::max(0.0, h) / ((x1 - x0) * (y1 - y0));
  }
  bool has_middle_in(const Box& box) const {
    const double x = (x0 + x1) / 2, y = (y0 + y1) / 2;
    return x >= box.x0 && x <= box.x1 && y >= box.y0 && y <= box.y1;
  }
};

// Of a word that names these objects, whose boxes do not overlap.
PointingSums pointing_of(const SeenWord& word, std::span<const size_t> named,
                         const CaptionScene& scene, ImageSize grid) {
  PointingSums sums{.words = 1};
  const auto peak = std::ranges::max_element(word.weights) - word.weights.begin();
  bool is_inside = false;
  for (const size_t object : named) {
    const Box box = resized(scene.objects[object].box, scene.size, {1, 1});
    sums.area += box.area();
    is_inside = is_inside || GridCell(peak, grid).has_middle_in(box);
    for (int64_t c = 0; c < std::ssize(word.weights); ++c) {
      sums.mass += static_cast<double>(word.weights[static_cast<size_t>(c)]) *
                   GridCell(c, grid).share_in(box);
    }
  }
  sums.peaks_inside = is_inside ? 1 : 0;
  return sums;
}

// What captions of a kind begin with, and no other; relations with what no other begins with.
constexpr std::array<const char*, kCaptionKinds> kBeginnings = {"there is", "there are", "", "the"};

// What makes the model begin a caption of a kind. Errors: usage where captions are too short.
TranslateOptions asking_for(CaptionKind kind, bool has_places, const Tokenizer& tokenizer,
                            TranslateOptions options) {
  if (kind == CaptionKind::relation) {
    options.search.banned_beginnings.push_back(tokenizer.encode("there"));
    if (has_places) options.search.banned_beginnings.push_back(tokenizer.encode("the"));
    return options;
  }
  const std::string begin = kBeginnings[static_cast<size_t>(kind)];
  const std::vector<int32_t> prefix = tokenizer.encode(begin);
  const int64_t most = options.longest_without_end;
  check(
      most == 0 || std::ssize(prefix) <= most, ErrorKind::usage,
      "`max_length` is {}; captions are asked for that begin with \"{}\": it must be at least the "
      "{} tokens of that",
      most, begin, prefix.size());
  options.prefixes = {prefix};
  return options;
}

bool has_kind(const std::vector<std::string>& captions, CaptionKind kind) {
  return std::ranges::any_of(captions, [&](const std::string& text) {
    const std::optional<Caption> caption = parse_caption(text);
    return caption && caption->kind == kind;
  });
}

class Examiner {
 public:
  Examiner(const Captioner& model, const Tokenizer& tokenizer, const EncodedImages& images,
           const CaptionExam& exam)
      : model_(model), tokenizer_(tokenizer), images_(images), exam_(exam) {}

  std::vector<Translation> captions(std::span<const size_t> chosen,
                                    const TranslateOptions& options) const {
    return caption_images(model_, tokenizer_, memories_of(chosen), options);
  }

  // Of captions of some images.
  CaptionCounts judge(std::span<const size_t> chosen, std::span<const Translation> captions,
                      const TranslateOptions& options, CaptionScores& sums) const {
    CaptionCounts counts;
    const std::vector<Tensor> memories = memories_of(chosen);
    std::vector<std::vector<int32_t>> ids;
    for (const Translation& caption : captions) ids.push_back(caption.ids);
    const auto words = seen_words(model_, tokenizer_, memories, ids, options.precision);
    for (size_t k = 0; k < chosen.size(); ++k) {
      const size_t i = chosen[k];
      const JudgedCaption judged =
          judge_seen_caption(captions[k].text, exam_.scenes[i], words[k], images_.grids[i]);
      const CaptionCounts one{1, judged.kind ? 1 : 0, judged.is_true ? 1 : 0};
      counts += one;
      if (!judged.is_true) sums.wrong.push_back({static_cast<int64_t>(i), captions[k].text});
      if (judged.mentions_held_out) sums.held_out += one;
      if (judged.kind) sums.pointing[static_cast<size_t>(*judged.kind)] += judged.pointing;
    }
    return counts;
  }

  std::vector<size_t> images_with(CaptionKind kind) const {
    std::vector<size_t> chosen;
    for (size_t i = 0; i < exam_.references.size(); ++i) {
      if (has_kind(exam_.references[i], kind)) chosen.push_back(i);
    }
    return chosen;
  }

 private:
  std::vector<Tensor> memories_of(std::span<const size_t> chosen) const {
    std::vector<Tensor> memories;
    for (const size_t i : chosen) memories.push_back(images_.memories[i]);
    return memories;
  }

  const Captioner& model_;
  const Tokenizer& tokenizer_;
  const EncodedImages& images_;
  const CaptionExam& exam_;
};

}  // namespace

CaptionCounts CaptionScores::asked() const {
  CaptionCounts sum;
  for (const CaptionCounts& kind : kinds) sum += kind;
  return sum;
}

Pointing CaptionScores::pointing_of_all() const {
  Pointing sum;
  for (const Pointing& kind : pointing) sum += kind;
  return sum;
}

void CaptionScores::operator+=(const CaptionScores& o) {
  all += o.all, held_out += o.held_out;
  for (size_t k = 0; k < kCaptionKinds; ++k) kinds[k] += o.kinds[k], pointing[k] += o.pointing[k];
  for (const WrongCaption& one : o.wrong) {
    wrong.push_back({one.image + std::ssize(written), one.text});
  }
  written.insert(written.end(), o.written.begin(), o.written.end());
}

std::vector<ImageMistakes> worst_captions(std::span<const WrongCaption> wrong, size_t most) {
  std::map<int64_t, std::vector<std::string>> of_image;
  for (const WrongCaption& one : wrong) {
    std::vector<std::string>& texts = of_image[one.image];
    if (std::ranges::find(texts, one.text) == texts.end()) texts.push_back(one.text);
  }
  std::vector<ImageMistakes> worst;
  for (auto& [image, texts] : of_image) worst.push_back({image, std::move(texts)});
  std::ranges::stable_sort(worst, std::greater(),
                           [](const ImageMistakes& one) { return one.texts.size(); });
  worst.resize(std::min(worst.size(), most));
  return worst;
}

JudgedCaption judge_seen_caption(const std::string& text, const CaptionScene& scene,
                                 std::span<const SeenWord> words, ImageSize grid) {
  JudgedCaption judged;
  const std::optional<Caption> caption = parse_caption(text);
  if (!caption) return judged;
  const CaptionTruth truth = judge_caption(*caption, scene);
  judged.kind = caption->kind;
  judged.is_true = truth.is_true;
  judged.mentions_held_out = mentions_held_out(*caption);
  if (!truth.is_true || words.size() != caption->words.size()) return judged;
  for (size_t w = 0; w < words.size(); ++w) {
    const WordRole role = caption->words[w].role;
    const bool is_of_object = role == WordRole::color || role == WordRole::noun;
    if (!is_of_object || truth.named[w].empty()) continue;
    PointingSums& sums = role == WordRole::color ? judged.pointing.colors : judged.pointing.nouns;
    sums += pointing_of(words[w], truth.named[w], scene, grid);
  }
  return judged;
}

std::optional<CaptionScene> SceneReader::read(const WrittenScene& written) {
  if (written.json.empty()) return std::nullopt;
  try {
    return caption_scene_of(Json::parse(written.json, written.where), written.where);
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::data) throw;
    if (count_++ == 0) first_ = e.what();
    return std::nullopt;
  }
}

void SceneReader::warn(const char* command) const {
  if (count_ == 0) return;
  log_warning(
      "{}: the \"objects\" of {} are no scene that captions are judged by; passed over, the "
      "first: {}",
      command, counted(count_, "image"), first_);
}

void CaptionExam::add(CaptionScene scene, std::vector<std::string> known) {
  has_places = has_places || has_kind(known, CaptionKind::place);
  scenes.push_back(std::move(scene));
  references.push_back(std::move(known));
}

CaptionExam CaptionExam::part(size_t begin, size_t end) const {
  const auto from = static_cast<int64_t>(begin), to = static_cast<int64_t>(end);
  return {.scenes = {scenes.begin() + from, scenes.begin() + to},
          .references = {references.begin() + from, references.begin() + to},
          .has_places = has_places};
}

CaptionScores score_captions(const Captioner& model, const Tokenizer& tokenizer,
                             const EncodedImages& images, const CaptionExam& exam,
                             const TranslateOptions& options) {
  const Examiner examiner(model, tokenizer, images, exam);
  CaptionScores scores;
  std::vector<size_t> every(exam.scenes.size());
  for (size_t i = 0; i < every.size(); ++i) every[i] = i;
  const std::vector<Translation> written = examiner.captions(every, options);
  for (const Translation& caption : written) scores.written.push_back(caption.text);
  scores.all = examiner.judge(every, written, options, scores);
  for (size_t k = 0; k < kCaptionKinds; ++k) {
    const auto kind = static_cast<CaptionKind>(k);
    if (kind == CaptionKind::place && !exam.has_places) continue;
    const TranslateOptions asked = asking_for(kind, exam.has_places, tokenizer, options);
    const std::vector<size_t> chosen = examiner.images_with(kind);
    scores.kinds[k] = examiner.judge(chosen, examiner.captions(chosen, asked), asked, scores);
  }
  return scores;
}

// A reference that stands there twice changes no count, so images with few repeat their first.
BleuScore caption_bleu(Sentences captions, std::span<const std::vector<std::string>> references,
                       const BleuOptions& options) {
  size_t most = 0, fewest = references.empty() ? 0 : references[0].size();
  for (const std::vector<std::string>& of_image : references) {
    check(!of_image.empty(), ErrorKind::data,
          "bleu: an image has no caption to compare with; each needs one at least");
    most = std::max(most, of_image.size());
    fewest = std::min(fewest, of_image.size());
  }
  std::vector<std::vector<std::string>> columns(most);
  for (const std::vector<std::string>& of_image : references) {
    for (size_t k = 0; k < most; ++k) {
      columns[k].push_back(of_image[k < of_image.size() ? k : 0]);
    }
  }
  BleuScore bleu = corpus_bleu(captions, columns, options);
  const std::string count = fmt::format("nrefs:{}|", most);
  if (fewest != most) bleu.signature = "nrefs:var|" + bleu.signature.substr(count.size());
  return bleu;
}

LossSums caption_loss(const Captioner& model, const EncodedImages& images,
                      std::span<const std::vector<std::vector<int32_t>>> captions,
                      const Precision& precision) {
  const NoGrad off;
  nn::Run run;
  run.use(precision);
  LossSums sums;
  for (size_t i = 0; i < captions.size(); ++i) {
    if (captions[i].empty()) continue;
    std::vector<int32_t> in, out;
    std::vector<int64_t> lengths, cells;
    std::vector<Tensor> memories;
    for (const std::vector<int32_t>& ids : captions[i]) {
      in.push_back(static_cast<int32_t>(model.facts().decoder_start_token_id));
      in.insert(in.end(), ids.begin(), ids.end());
      out.insert(out.end(), ids.begin(), ids.end());
      out.push_back(static_cast<int32_t>(model.facts().eos_token_id));
      lengths.push_back(std::ssize(ids) + 1);
      memories.push_back(images.memories[i]);
      cells.push_back(images.memories[i].size(0));
    }
    const Segments targets = Segments::from_lengths(lengths),
                   sources = Segments::from_lengths(cells);
    const Tensor h =
        model.decode({.ids = in, .segments = &targets}, concat(memories, 0), sources, run);
    const CrossEntropy ce = model.output().loss(h, out, {}, run);
    sums += {ce.total, ce.nll, ce.predicted, 1};
  }
  return sums;
}

}  // namespace heddle::train
