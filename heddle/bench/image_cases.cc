// The cases of models that read images: classifying, and updates of training; sizes as in
// bench/peers.
#include <cmath>
#include <memory>
#include <numeric>

#include "heddle/autograd/dry_run.h"
#include "heddle/base/rng.h"
#include "heddle/bench/case.h"
#include "heddle/infer/image_batch.h"
#include "heddle/models/registry.h"
#include "heddle/train/optimizer.h"
#include "heddle/train/tasks/images/image_loss.h"

namespace heddle::bench {
namespace {

/// A model, and the square images that it is timed with.
struct ImageCase {
  const char* name;
  const char* model;  ///< in a few words
  const char* config;
  int64_t classes, batch, edge;
};

constexpr ImageCase kClassify[] = {
    {"classify-vit", "ViT-Base/16", R"({"model_type": "vit"})", 1000, 8, 224},
    {"classify-swin", "Swin-Tiny", R"({"model_type": "swin"})", 1000, 8, 224},
    {"classify-resnet50", "ResNet-50", R"({"model_type": "resnet"})", 1000, 8, 224},
};

constexpr ImageCase kTrain[] = {
    {"train-vit", "ViT d192 L6, patches of 4",
     R"({"model_type": "vit", "hidden_size": 192, "num_hidden_layers": 6,
         "num_attention_heads": 3, "intermediate_size": 384, "image_size": 32, "patch_size": 4})",
     10, 128, 32},
    {"train-swin", "Swin d64 2-4-2, patches of 2",
     R"({"model_type": "swin", "image_size": 32, "patch_size": 2, "embed_dim": 64,
         "depths": [2, 4, 2], "num_heads": [2, 4, 8], "window_size": 4, "mlp_ratio": 2})",
     10, 128, 32},
    {"train-cct", "CCT-2/3x2",
     R"({"model_type": "cct", "hidden_size": 128, "num_hidden_layers": 2,
         "num_attention_heads": 2, "intermediate_size": 128})",
     10, 128, 32},
    {"train-resnet", "ResNet 64-64-256-256 with pools",
     R"({"model_type": "resnet", "stem": "cifar", "downsample": "pool", "layer_type": "basic",
         "embedding_size": 64, "hidden_sizes": [64, 256, 256], "depths": [1, 1, 1]})",
     10, 512, 32},
    {"train-vit-base", "ViT-Base/16", R"({"model_type": "vit"})", 1000, 8, 224},
};

/// A model with random weights and a batch of noise.
struct ImageWork {
  nn::Parameters parameters{1};
  std::unique_ptr<Model> model;
  ImageBatch batch;
  nn::Run run;

  ImageWork(const ImageCase& c, int64_t images)
      : batch(std::vector<ImageSize>(static_cast<size_t>(images), ImageSize{c.edge, c.edge})) {
    const auto config = read_model_config(Json::parse(c.config), "bench");
    config->hub.head = Head::image_classes;
    config->hub.labels.resize(static_cast<size_t>(c.classes));
    model = config->make(nn::Scope(parameters));
    RngStream random(make_key(1, 0, hash_name("bench")));
    for (float& x : batch.pixels()) x = static_cast<float>(random.uniform()) * 2 - 1;
  }

  /// Of one pass over the batch; if `trains`, of its gradients too. Convolutions as this machine
  /// multiplies them.
  Products products(const Precision& precision, bool trains) const {
    Products products(precision, trains);
    const DryRun dry([&](const DryOp& op) {
      const std::string_view name = op.name;
      const Tensor &x = op.inputs[0], &w = op.inputs[1], &y = op.output;
      const int64_t rows = y.elements() / y.size(-1);
      // Of 3 x 3 windows a pixel apart; the images that are trained with have even sides.
      const bool has_tiles = name == "convolution" && w.size(1) == 9 * x.size(1) &&
                             rows == x.size(0) && precision.compute == DType::bf16 &&
                             winograd_is_faster(x.size(1), w.size(0), true);
      if (trains && has_tiles) {  // in its gradients alone
        products.forward(rows, w.size(1), w.size(0));
        products.backward(rows / 4, x.size(1), w.size(0), 16);
      } else if (name == "linear" || name == "convolution") {
        products.linear(rows, w.size(1), w.size(0));
      } else if (name == "winograd_convolution") {  // what it multiplies: 16 times all tiles
        const int64_t in = x.size(1), out = y.size(1);
        const double of_tile = 2.0 * 16 * static_cast<double>(in * out);
        products.linear(std::llround(op.work.flops / of_tile), in, out, 16);
      }
    });
    nn::Run once;
    once.compute = precision.compute;
    model->heads().sequence_classes(model->hidden(batch.rows(), once), batch.rows(), once);
    return products;
  }
};

BenchWorkload workload(const ImageCase& c, const std::shared_ptr<ImageWork>& w, Products products) {
  return {.step = {},
          .units = static_cast<double>(w->batch.size()),
          .batch = w->batch.size(),
          .parameters = w->parameters.elements(),
          .model = c.model,
          .products = std::move(products)};
}

BenchWorkload make_classification(const ImageCase& c, const BenchOptions& o) {
  const auto w = std::make_shared<ImageWork>(c, o.batch > 0 ? o.batch : c.batch);
  w->run.use(o.precision);
  BenchWorkload work = workload(c, w, w->products(o.precision, false));
  work.step = [w] {
    const NoGrad off;
    w->model->forward(w->batch.rows(), w->run);
  };
  work.model_bytes = o.precision.weight_bytes() * w->parameters.elements();
  return work;
}

// Forward, backward, AdamW as PyTorch has it; no clipping, no augmentation.
BenchWorkload make_training(const ImageCase& c, const BenchOptions& o) {
  struct Training : ImageWork {
    using ImageWork::ImageWork;
    std::optional<train::Optimizer> optimizer = {};
    Tensor targets = {};
  };
  const auto w = std::make_shared<Training>(c, o.batch > 0 ? o.batch : c.batch);
  BenchWorkload work = workload(c, w, w->products(o.precision, true));
  w->run.compute = o.precision.compute;
  w->run.dropout.training = true;
  w->run.dropout.seed = 1;
  w->optimizer.emplace(
      w->parameters,
      train::OptimizerOptions{
          .decoupled_decay = true, .beta2 = 0.999, .eps = 1e-8, .weight_decay = 0.05});
  const int64_t n = w->batch.size();
  w->targets = Tensor::zeros({n, c.classes}, DType::f32);
  for (int64_t i = 0; i < n; ++i) w->targets.data<float>()[i * c.classes + i % c.classes] = 1;
  work.step = [w, n] {
    ++w->run.dropout.update;
    train::accumulate_images(*w->model, w->batch.rows(), {.labels = w->targets, .smoothing = 0.1f},
                             w->run);
    w->optimizer->step(1e-4, 1.0 / static_cast<double>(n));
  };
  return work;
}

BenchCase case_of(const ImageCase& c, bool trains) {
  return {
      .name = c.name,
      .unit = "images/s",
      .about = fmt::format("{} {} images of {} x {}, {}", trains ? "an update over" : "classifying",
                           c.batch, c.edge, c.edge, c.model),
      .dtypes = trains ? std::vector<std::string>{"f32", "bf16"}
                       : std::vector<std::string>{"f32", "bf16", "int8"},
      .make = [&c, trains](const BenchOptions& o) {
        return trains ? make_training(c, o) : make_classification(c, o);
      }};
}

}  // namespace

std::vector<BenchCase> image_cases() {
  std::vector<BenchCase> table;
  for (const ImageCase& c : kClassify) table.push_back(case_of(c, false));
  for (const ImageCase& c : kTrain) table.push_back(case_of(c, true));
  return table;
}

}  // namespace heddle::bench
