// Captions of images: sentences, and where each word looked.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "heddle/base/json/json.h"
#include "heddle/infer/decoding/translate.h"
#include "heddle/infer/image_batch.h"
#include "heddle/models/captioner.h"

namespace heddle {

struct CaptionReader {
  LoadedModel loaded;  ///< with its tokenizer
  ImageProcessor processor;
  const Captioner& model() const { return loaded.model->need<Captioner>(loaded.path); }
};

/// Whether the model that `path` names, see find_model_dir(), does. Errors: those of
/// load_model_config().
bool writes_captions(const std::string& path);
/// A captioner with the tokenizer and processor of its folder. Errors: those of load_model() and
/// ImageProcessor::of_folder(); data if the model writes no captions.
CaptionReader load_captioner(const std::string& path);

/// default_options(), and captions of at most 48 tokens where neither says how many.
TranslateOptions caption_options(const LoadedModel& model, const SearchConfig& above = {});

/// Images as the decoder sees them.
struct EncodedImages {
  std::vector<Tensor> memories;  ///< of each image [cells, width]
  std::vector<ImageSize> grids;  ///< how its cells lie over it, line by line
};
/// Fitted images, in passes of at most `most_pixels`; an image's memory is the same in any.
EncodedImages encode_images(const Captioner& model, const ImageProcessor& processor,
                            std::span<const Image> fitted, const Precision& precision,
                            int64_t most_pixels = kMostPassPixels);

/// A caption of each, by translate_memories(), and its text. The tokenizer's <unk> never comes.
std::vector<Translation> caption_images(const Captioner& model, const Tokenizer& tokenizer,
                                        std::span<const Tensor> memories, TranslateOptions options);

/// What caption_images() asks an engine of an image, see memory_request(): its number is that of
/// the image.
Request caption_request(const Captioner& model, const Tokenizer& tokenizer, ImageSize grid,
                        TranslateOptions options, int64_t number = 0);

/// A word of a caption, and where the model looked while it was chosen: means over its tokens, see
/// Captioner::Attended.
struct SeenWord {
  std::string text;
  std::vector<float> weights;      ///< of its image's cells; they sum to 1
  std::optional<float> gate = {};  ///< how much that counted, 0 to 1; none: the model has no gate
};
/// Whether words have maps: the model looks at cells, not at their mean alone.
inline bool has_maps(const Captioner& model) { return model.facts().cross_attention_layers > 0; }
/// Errors: data, beginning with `source`, if they have none.
void check_has_maps(const Captioner& model, const std::string& source);
/// The words of captions, by word_spans(), in a pass that is given them. captions: ids without the
/// end, of each memory    returns: [captions][words]; of a model without attention nothing of each
std::vector<std::vector<SeenWord>> seen_words(const Captioner& model, const Tokenizer& tokenizer,
                                              std::span<const Tensor> memories,
                                              std::span<const std::vector<int32_t>> captions,
                                              const Precision& precision);

/// A caption with its seen_words(), if there are any.
struct SeenCaption {
  std::string text;
  double score = 0;
  std::vector<SeenWord> words = {};
};
/// What was found for images, with words. memories: theirs    returns: [images][captions], best
/// first
std::vector<std::vector<SeenCaption>> seen_captions(const CaptionReader& reader,
                                                    std::span<const Tensor> memories,
                                                    std::span<const Translation> found,
                                                    const Precision& precision);
/// The same without words.
std::vector<SeenCaption> plain_captions(const Translation& found);

/// How the cells that weights are of lie over an image.
struct SeenGrid {
  ImageSize cells;
  std::array<double, 4> kept = {0, 0, 1, 1};  ///< the part below them, see ImageProcessor::kept()
};
/// {"text", "score"} of an image's best caption, with its words where it has them ("words":
/// [{"text", "gate", "weights"}]), the grid that their weights are of, if it is given ("grid":
/// [rows, columns], and "kept": [left, top, right, bottom] where that is not the whole image), and
/// all captions under "n_best" where there are several.
Json captions_json(std::span<const SeenCaption> captions, const std::optional<SeenGrid>& grid);

}  // namespace heddle
