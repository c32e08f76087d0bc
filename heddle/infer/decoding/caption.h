// Captions of images: sentences, and where each word looked.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "heddle/infer/decoding/translate.h"
#include "heddle/infer/image_batch.h"
#include "heddle/models/captioner.h"

namespace heddle {

struct CaptionReader {
  LoadedModel loaded;  ///< with its tokenizer
  ImageProcessor processor;
  const Captioner& model() const { return loaded.model->need<Captioner>(loaded.path); }
};

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

/// A word of a caption, and where the model looked while it was chosen: means over its tokens, see
/// Captioner::Attended.
struct SeenWord {
  std::string text;
  std::vector<float> weights;      ///< of its image's cells; they sum to 1
  std::optional<float> gate = {};  ///< how much that counted, 0 to 1; none: the model has no gate
};
/// The words of captions, by word_spans(), in a pass that is given them. captions: ids without the
/// end, of each memory    returns: [captions][words]; of a model without attention nothing of each
std::vector<std::vector<SeenWord>> seen_words(const Captioner& model, const Tokenizer& tokenizer,
                                              std::span<const Tensor> memories,
                                              std::span<const std::vector<int32_t>> captions,
                                              const Precision& precision);

}  // namespace heddle
