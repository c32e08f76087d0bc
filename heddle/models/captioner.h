// What a model that writes captions of images is asked for beside what every encoder-decoder is.
#pragma once

#include "heddle/models/encoder_decoder.h"
#include "heddle/models/image_model.h"

namespace heddle {

/// An encoder-decoder whose source is an image: each cell of a grid over it is a row of the memory.
class Captioner : public EncoderDecoder {
 public:
  static constexpr const char* kAbility = "writes captions of images";

  Captioner(const EncoderDecoderFacts& facts, const ImageFacts& images, int64_t width)
      : EncoderDecoder(facts, width), images_(images) {}
  Captioner(const Captioner&) = delete;
  Captioner& operator=(const Captioner&) = delete;

  const ImageFacts& images() const { return images_; }
  /// How an image's rows of the memory lie over it, line by line. Errors: see ImageModel::grid().
  virtual ImageSize grid(const ImageSize& image) const = 0;
  Segments memory_segments(const ModelInput& source) const final {
    std::vector<ImageSize> grids;
    for (const ImageSize& size : *source.as<ImageRows>().sizes) grids.push_back(grid(size));
    return nn::image_segments(grids);
  }

  struct Attended {
    Tensor h;  ///< see decode()
    /// [pairs] f32, row after row what each cell of its source weighs, with gradient: of several
    /// heads the mean, of several layers that of aligning_layer(); undefined without attention.
    Tensor weights = {};
    Tensor gates = {};  ///< [t] f32, how much the context counted, without gradient, if gates are
  };
  /// decode(), and where it looked.
  virtual Attended decode_attending(const nn::TokenRows& target, const Tensor& memory,
                                    const Segments& source, const nn::Run& run) const = 0;

 private:
  ImageFacts images_;
};

}  // namespace heddle
