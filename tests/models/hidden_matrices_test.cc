// Which matrices of a model lie between hidden states, so that Muon trains them: all but tables,
// heads and what looks at pixels.
#include <gtest/gtest.h>

#include <set>

#include "heddle/models/registry.h"

namespace heddle {
namespace {

// Tensors of the checkpoint, of two axes and more, in parameters that are none.
std::set<std::string> other_matrices(const char* config) {
  nn::Parameters parameters{1};
  const auto model = make_model(nn::Scope(parameters), Json::parse(config));
  std::set<std::string> names;
  for (const auto& p : parameters.all()) {
    if (p->shape().rank() < 2 || p->is_hidden_matrix()) continue;
    for (const nn::Part& part : p->parts()) names.insert(part.name);
  }
  return names;
}

using Names = std::set<std::string>;

TEST(HiddenMatrices, xlnet_leaves_out_tables_alone) {
  EXPECT_EQ(other_matrices(R"({"model_type": "xlnet", "vocab_size": 20, "d_model": 16,
                               "n_layer": 1, "n_head": 2, "d_inner": 24})"),
            (Names{"transformer.layer.0.rel_attn.seg_embed", "transformer.mask_emb",
                   "transformer.word_embedding.weight"}));
}

// As many classes as the model is wide: a head is none by its size.
TEST(HiddenMatrices, detector_leaves_out_points_boxes_and_classes_of_any_number) {
  const Names names = other_matrices(
      R"({"model_type": "detr", "d_model": 16, "num_queries": 4, "encoder_layers": 1,
          "decoder_layers": 2, "encoder_attention_heads": 2, "decoder_attention_heads": 2,
          "encoder_ffn_dim": 24, "decoder_ffn_dim": 24, "conditional_queries": true,
          "class_loss": "mal", "num_labels": 16, "architectures": ["DetrForObjectDetection"],
          "backbone_config": {"model_type": "resnet", "norm": "group", "norm_groups": 4,
                              "layer_type": "basic", "embedding_size": 8, "hidden_sizes": [8],
                              "depths": [1]}})");
  EXPECT_EQ(names, (Names{"bbox_predictor.layers.2.weight", "class_labels_classifier.weight",
                          "model.backbone.conv_encoder.model.embedder.embedder.convolution.weight",
                          "model.decoder.points.layers.1.weight",
                          "model.query_position_embeddings.weight"}));
}

TEST(HiddenMatrices, experts_leave_out_the_gate) {
  EXPECT_EQ(other_matrices(R"({"model_type": "mixtral", "vocab_size": 20, "hidden_size": 16,
                               "num_hidden_layers": 1, "num_attention_heads": 2,
                               "num_key_value_heads": 2, "intermediate_size": 24,
                               "num_local_experts": 2})"),
            (Names{"lm_head.weight", "model.embed_tokens.weight",
                   "model.layers.0.block_sparse_moe.gate.weight"}));
}

}  // namespace
}  // namespace heddle
