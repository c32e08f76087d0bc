// How good captions of images are whose scenes are known: grammar, truth, and where words looked.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "corpora/captions/caption_scene.h"
#include "heddle/data/captioning/sources.h"
#include "heddle/infer/decoding/caption.h"
#include "heddle/train/metrics/metrics.h"
#include "heddle/train/scores.h"

namespace heddle::train {

/// Captions that were judged. Source: Xie et al. 2020, "Going beneath the surface: evaluating image
/// captioning for grammaticality, truthfulness and diversity" (arXiv 1912.08960).
struct CaptionCounts {
  int64_t captions = 0, grammatical = 0, are_true = 0;

  void operator+=(const CaptionCounts& o) {
    captions += o.captions, grammatical += o.grammatical, are_true += o.are_true;
  }
  /// Shares of all captions; 0 of none.
  double grammatical_share() const { return share(grammatical); }
  double true_share() const { return share(are_true); }

 private:
  double share(int64_t n) const {
    return captions == 0 ? 0 : static_cast<double>(n) / static_cast<double>(captions);
  }
};

/// Where words looked that name objects: colours and nouns of true captions.
/// Source: Liu et al. 2017, "Attention correctness in neural image captioning" (arXiv 1605.09553).
struct PointingSums {
  int64_t words = 0, peaks_inside = 0;
  double mass = 0, area = 0;  ///< of weights inside the objects' boxes; of these in their image

  void operator+=(const PointingSums& o) {
    words += o.words, peaks_inside += o.peaks_inside, mass += o.mass, area += o.area;
  }
  /// The weight inside over what even weights would have there; 0 without words.
  double mass_ratio() const { return area > 0 ? mass / area : 0; }
  /// Share of words whose heaviest cell has its middle in a box.
  double peak_share() const {
    return words == 0 ? 0 : static_cast<double>(peaks_inside) / static_cast<double>(words);
  }
};

/// By what the words are: a colour is chosen where several objects could be named next, a noun
/// where the colour before it has said which.
struct Pointing {
  PointingSums colors, nouns;

  void operator+=(const Pointing& o) { colors += o.colors, nouns += o.nouns; }
  PointingSums all() const {
    PointingSums sum = colors;
    sum += nouns;
    return sum;
  }
};

/// A caption that is untrue, or no sentence of the grammar.
struct WrongCaption {
  int64_t image = 0;  ///< among those that were judged
  std::string text = {};

  template <class V>
  void parts(V& v) {
    v(image, text);
  }
};

struct CaptionScores {
  CaptionCounts all;                               ///< as the model writes them
  std::array<CaptionCounts, kCaptionKinds> kinds;  ///< asked for by kind, where one could be true
  CaptionCounts held_out;                        ///< of all of these: that mention what is held out
  std::array<Pointing, kCaptionKinds> pointing;  ///< of all of these, by what they say
  std::vector<std::string> written = {};         ///< of each image, as the model writes it
  std::vector<WrongCaption> wrong = {};          ///< of all of these

  /// Those that were asked for.
  CaptionCounts asked() const;
  Pointing pointing_of_all() const;
  /// Of images that come behind those of this.
  void operator+=(const CaptionScores& o);
  template <class V>
  void parts(V& v) {
    v(all, kinds, held_out, pointing, written, wrong);
  }
};

/// What was written of an image and is wrong, each text once.
struct ImageMistakes {
  int64_t image = 0;
  std::vector<std::string> texts = {};
};
/// At most `most` images, those of the most different wrong captions first, of equal ones the first
/// image.
std::vector<ImageMistakes> worst_captions(std::span<const WrongCaption> wrong, size_t most);

/// Judges a caption of a scene. words, grid: see SeenWord; empty: no attention to judge
struct JudgedCaption {
  std::optional<CaptionKind> kind = {};  ///< none where it is not grammatical
  bool is_true = false, mentions_held_out = false;
  Pointing pointing = {};
};
JudgedCaption judge_seen_caption(const std::string& text, const CaptionScene& scene,
                                 std::span<const SeenWord> words, ImageSize grid);

/// Reads what images are said to show. What is no scene of heddle's (another program's "objects", a
/// word that captions do not have) is passed over, and counted.
class SceneReader {
 public:
  /// The scene; nothing where there is none.
  std::optional<CaptionScene> read(const WrittenScene& written);
  /// One warning, if any was passed over: how many, and why the first of them.
  void warn(const char* command) const;

 private:
  int64_t count_ = 0;
  std::string first_;
};

/// Images of which captions are asked.
struct CaptionExam {
  std::vector<CaptionScene> scenes = {};
  /// Of each image captions that are known to be true: of no other kind one is asked.
  std::vector<std::vector<std::string>> references = {};
  /// Whether any of the references says where something stands, also of an exam of which this is a
  /// part: what begins so is then no relation.
  bool has_places = false;

  void add(CaptionScene scene, std::vector<std::string> known);
  /// Images [begin, end) of it.
  CaptionExam part(size_t begin, size_t end) const;
};
/// Asks for a caption of each image as the model would write it, and for one of each kind, by what
/// such a caption begins with; judges them all.
CaptionScores score_captions(const Captioner& model, const Tokenizer& tokenizer,
                             const EncodedImages& images, const CaptionExam& exam,
                             const TranslateOptions& options);

/// BLEU of captions, each against all that are known of its image, be they one or many: by the
/// definition of corpus_bleu(); the signature says nrefs:var where images have different numbers.
/// captions, references: of each image    Errors: those of corpus_bleu(); data for an image without
/// references.
BleuScore caption_bleu(Sentences captions, std::span<const std::vector<std::string>> references,
                       const BleuOptions& options = {});

/// The loss of captions that are given, of all images: nats, ends included.
/// captions: [images][captions of each] ids without the end
LossSums caption_loss(const Captioner& model, const EncodedImages& images,
                      std::span<const std::vector<std::vector<int32_t>>> captions,
                      const Precision& precision);

}  // namespace heddle::train
