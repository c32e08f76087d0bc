// Vectors of sentences and images: the states of their tokens, pooled.
// Reimers & Gurevych 2019, "Sentence-BERT", section 3.
#pragma once

#include <string>
#include <vector>

#include "heddle/infer/image_batch.h"
#include "heddle/infer/loading/text_model.h"

namespace heddle {

/// How a text's rows h: [n, width] become one, special tokens included.
enum class Pooling : uint8_t {
  cls,            ///< the first
  max,            ///< the largest of each column
  mean,           ///< sum / n
  mean_sqrt_len,  ///< sum / sqrt(n)
  weighted_mean,  ///< row i weighs i, from 1
  last_token      ///< the last
};

/// "cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken", as
/// sentence-transformers names them. Errors: usage, listing the names.
Pooling pooling_of(const std::string& name);

/// A layer behind the pooling: tanh(W x + b), or W x + b.
struct DenseLayer {
  int64_t in = 0, out = 0;
  std::vector<float> weight, bias;  ///< [out, in]; [out], or empty
  bool has_tanh = true;
};

struct EmbedOptions {
  std::vector<Pooling> pooling = {Pooling::mean};  ///< several are laid end to end
  std::vector<DenseLayer> dense = {};
  bool normalize = false;   ///< to length 1
  bool lower_case = false;  ///< texts, before they are split
  std::string prompt;       ///< put before each text
};

struct SentenceEncoder {
  LoadedModel text;
  EmbedOptions options;
};

/// Reads a model and how it is pooled, as its sentence-transformers files say: modules.json,
/// sentence_bert_config.json (max_seq_length, do_lower_case), 1_Pooling/config.json, 2_Dense,
/// 2_Normalize, config_sentence_transformers.json (default_prompt_name). Without modules.json: the
/// mean.
/// Errors: those of load_text_model(); data, naming file and module, for one that is not known.
SentenceEncoder load_sentence_encoder(const std::string& path);

/// A vector for each text; `cut` counts the texts that were cut to fit.
/// Errors: data if a vector is not finite or of another width than a dense layer takes, or see
/// encode_truncated().
std::vector<std::vector<float>> embed(const SentenceEncoder& encoder,
                                      std::span<const std::string> texts,
                                      const Precision& precision, int64_t& cut);

/// A vector for each image, which is fitted (ImageProcessor::fit()): of the states of its tokens,
/// its class token's first. Of the options those that are not about texts count. Errors: data if a
/// vector is not finite, or the model takes none of a size.
std::vector<std::vector<float>> embed(const ImageReader& reader, std::span<const Image> images,
                                      const EmbedOptions& options, const Precision& precision);

}  // namespace heddle
