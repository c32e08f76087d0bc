// Validations that ranks share: the scores, the findings and the chosen models of one process.
#include <gtest/gtest.h>

#include "tests/dist/rank_runs.h"

namespace heddle::testing {
namespace {

using train::TrainConfig;

TrainConfig brief(TrainConfig c) {
  c.shards = 4;
  c.max_updates = 12;
  c.validate_every = 6;
  c.checkpoint_every = 6;
  c.log_every = 3;
  return c;
}

TrainConfig short_config(const std::string& task) {
  TrainConfig c = train::default_config(task);
  make_short(c);
  return c;
}

void set_all(TrainConfig& c, const std::map<std::string, std::string>& values) {
  for (const auto& [key, value] : values) set_from_string(c, key, value);
}

// BLEU of decoded sentences, averages of weights, and a search that is tuned at the end.
TEST(SharedValidation, of_translations_chooses_models_and_search_of_one) {
  const TempDir folder;
  write_pairs(folder / "data");
  TrainConfig c = brief(small_config());
  c.select = "bleu";
  c.ema_decay = 0.9;
  c.average = "best";
  c.max_updates = 18;
  set_all(c, {{"validation_beam", "2"}, {"tuned_beam", "3"}});
  expect_same_for_ranks({1, 2, 4}, folder, c, {"--data", (folder / "data").string()});
}

TEST(SharedValidation, of_boxes_finds_what_one_finds) {
  const TempDir folder;
  TrainConfig c = brief(short_config("object_detection"));
  c.select = "map";
  set_all(c, {{"drawn", "shapes"},
              {"drawn_images", "24"},
              {"drawn_held_out", "40"},
              {"drawn_height", "48"},
              {"drawn_width", "48"},
              {"batch_size", "4"},
              {"num_queries", "8"},
              {"d_model", "16"},
              {"encoder_layers", "1"},
              {"decoder_layers", "1"},
              {"encoder_attention_heads", "2"},
              {"decoder_attention_heads", "2"},
              {"encoder_ffn_dim", "16"},
              {"decoder_ffn_dim", "16"},
              {"backbone_config",
               R"({"model_type": "resnet", "norm": "group", "norm_groups": 2,)"
               R"( "layer_type": "basic", "embedding_size": 4, "hidden_sizes": [8, 8],)"
               R"( "depths": [1, 1]})"}});
  expect_same_for_ranks({1, 2, 4}, folder, c, {});
}

// More than one pass of images: their captions are judged by their scenes.
TEST(SharedValidation, of_captions_judges_as_one) {
  const TempDir folder;
  const std::string data = (folder / "data").string();
  const CliResult drawn = run_heddle({"shapes", "--task", "captioning", "--out", data, "--count",
                                      "24", "--held-out", "150", "--size", "32"});
  ASSERT_EQ(drawn.exit_code, 0) << drawn.err;
  TrainConfig c = brief(short_config("captioning"));
  c.select = "true";
  set_all(
      c, {{"backbone_config", R"({"model_type": "resnet", "stem": "cifar", "downsample": "pool",)"
                              R"( "layer_type": "plain", "norm": "group", "norm_groups": 2,)"
                              R"( "embedding_size": 4, "hidden_sizes": [8, 8], "depths": [0, 0]})"},
          {"memory_size", "8"},
          {"hidden_size", "16"},
          {"embedding_size", "8"},
          {"batch_size", "8"},
          {"judged_images", "150"}});
  expect_same_for_ranks({1, 2, 4}, folder, c, {"--data", data});
}

}  // namespace
}  // namespace heddle::testing
