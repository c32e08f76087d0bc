// Forward and backward over one batch of sentence pairs.
#include "heddle/train/tasks/translation.h"

#include "heddle/base/profile.h"
#include "heddle/ops/loss.h"

namespace heddle::train {
namespace {

std::shared_ptr<const RowIds> row_ids(const std::vector<uint32_t>& sample,
                                      const std::vector<uint32_t>& position) {
  return std::make_shared<const RowIds>(RowIds{sample, position});
}

CrossEntropy forward(const EncoderDecoder& model, const TranslationBatch& b, const nn::Run& run,
                     const CrossEntropyOptions& options) {
  const ProfilePhase phase("forward");
  const nn::TokenRows source{b.source, &b.source_segments,
                             row_ids(b.source_sample, b.source_position)};
  const nn::TokenRows target{b.target_in, &b.target_segments,
                             row_ids(b.target_sample, b.target_position)};
  const Tensor memory = model.encode(source, run);
  const Tensor h = model.decode(target, memory, b.source_segments, run);
  static const std::string kName = "output projection";
  const LayerName layer(kName);
  return model.output().loss(h, b.target_out, options, run);
}

}  // namespace

LossSums accumulate_gradients(const EncoderDecoder& model, const TranslationBatch& batch,
                              const nn::Run& run, double label_smoothing, double divergence) {
  const int64_t passes = divergence > 0 ? 2 : 1;
  const CrossEntropy ce = forward(model, batch, run,
                                  {.smoothing = static_cast<float>(label_smoothing),
                                   .divergence = static_cast<float>(divergence),
                                   .grad_scale = 1.0f / static_cast<float>(passes)});
  const ProfilePhase phase("backward");
  backward(ce.loss);
  const auto mean = [&](double sum) { return sum / static_cast<double>(passes); };
  return {mean(ce.total), mean(ce.nll), ce.predicted / passes, ce.predicted / passes};
}

LossSums batch_loss(const EncoderDecoder& model, const TranslationBatch& batch,
                    const nn::Run& run) {
  const NoGrad off;
  const CrossEntropy ce = forward(model, batch, run, {});
  return {ce.total, ce.nll, ce.predicted, ce.predicted};
}

}  // namespace heddle::train
