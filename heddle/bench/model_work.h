// What cases of models that read tokens share: random ones, and the weights of a training.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "heddle/base/rng.h"
#include "heddle/models/model.h"
#include "heddle/tensor/segments.h"
#include "heddle/train/optimizer.h"

namespace heddle::bench {

/// The numbers that inputs are made of, the same in every case.
RngStream random_numbers();

/// Tokens from `first` on, equally likely.
std::vector<int32_t> random_tokens(RngStream& random, int64_t n, int64_t vocab, int64_t first = 0);

/// Appends each row's sequence and its position there.
void name_rows(const Segments& segments, std::vector<uint32_t>& sample,
               std::vector<uint32_t>& position);

/// Memory at its highest counts from here: a process that is started inherits the figure.
void forget_peak_memory();

/// A folder that is removed with all it holds at the end.
struct TemporaryFolder {
  std::string path;

  TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder();
};

/// Weights and optimizer of a case whose every update learns from one batch.
struct Training {
  nn::Parameters parameters{1};
  std::unique_ptr<Model> model;
  train::Optimizer optimizer;
  nn::Run run;

  Training(const ModelConfig& config, const train::OptimizerOptions& options, DType dtype)
      : model(config.make(nn::Scope(parameters))), optimizer(parameters, options) {
    run.compute = dtype;
    run.dropout.training = true;
    run.dropout.seed = 1;
  }
};

}  // namespace heddle::bench
