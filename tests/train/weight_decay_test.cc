// What weight decay leaves alone: of images' models class tokens and positions, of texts' models
// vectors only.
#include <gtest/gtest.h>

#include <algorithm>

#include "heddle/train/config.h"
#include "heddle/train/optimizer.h"
#include "heddle/train/trained_parts.h"

namespace heddle::train {
namespace {

struct SmallModel {
  nn::Parameters parameters{1};
  std::unique_ptr<Model> model;
  TrainConfig config;
  SmallModel(const std::string& task, const std::string& type)
      : config(default_config(task, type)) {
    for (const char* key :
         {"hidden_size", "n_embd", "d_model", "dim", "intermediate_size", "hidden_dim"}) {
      if (config.stack.integer({key}) > 0) config.stack.set(key, 24);
    }
    if (config.stack.integer({"vocab_size"}) > 0) config.stack.set("vocab_size", 50);
    if (config.stack.integer({"image_size"}) > 0) {
      config.stack.set("image_size", 8), config.stack.set("patch_size", 4);
    }
    config.stack.hub().head = config.head();
    model = config.stack.make(nn::Scope(parameters));
  }
  std::vector<std::string> undecayed_tables() const {
    std::vector<std::string> names;
    for (const auto& p : parameters.all()) {
      if (p->shape().rank() < 2 || p->decays()) continue;
      for (const nn::Part& part : p->parts()) names.push_back(part.name);
    }
    return names;
  }
};

TEST(WeightDecay, leaves_tokens_and_positions_of_images_alone) {
  const auto vit = SmallModel("image_classification", "vit").undecayed_tables();
  EXPECT_EQ(vit, (std::vector<std::string>{"vit.embeddings.cls_token",
                                           "vit.embeddings.position_embeddings"}));
  const auto deit = SmallModel("image_classification", "deit").undecayed_tables();
  EXPECT_EQ(deit, (std::vector<std::string>{"deit.embeddings.cls_token",
                                            "deit.embeddings.distillation_token",
                                            "deit.embeddings.position_embeddings"}));
}

TEST(WeightDecay, of_models_of_texts_takes_every_matrix_as_ever) {
  for (const auto& [task, type] :
       {std::pair("causal_lm", "gpt2"), std::pair("masked_lm", "bert")}) {
    EXPECT_TRUE(SmallModel(task, type).undecayed_tables().empty()) << type;
  }
}

TEST(WeightDecay, without_gradient_shrinks_all_else_by_rate_times_decay) {
  SmallModel m("image_classification", "vit");
  const TrainedParts parts(
      [&] {
        TrainConfig c = m.config;
        c.train_only = "embeddings";
        return c;
      }(),
      m.parameters, {});
  nn::Parameters& trained = const_cast<TrainedParts&>(parts).parameters();
  std::vector<std::vector<float>> before;
  for (auto& p : trained.all()) {
    before.push_back(p->value().to_floats());
    p->grad() = Tensor::zeros(p->shape(), DType::f32);
  }
  ASSERT_EQ(trained.all().size(), 4U);  // patches' weight and bias, token, positions
  Optimizer(trained, {.decoupled_decay = true, .weight_decay = 0.5}).step(0.1, 1);
  for (size_t i = 0; i < before.size(); ++i) {
    const nn::Parameter& p = *trained.all()[i];
    const bool is_decayed = p.name().ends_with("projection.weight");
    const std::vector<float> after = p.value().to_floats();
    for (size_t k = 0; k < after.size(); ++k) {
      ASSERT_NEAR(after[k], before[i][k] * (is_decayed ? 0.95F : 1.0F), 1e-6) << p.name();
    }
  }
}

}  // namespace
}  // namespace heddle::train
