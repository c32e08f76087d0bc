// Settings: presets, recipes, files, flags, and what does not fit together.
#include "heddle/train/config.h"

#include <gtest/gtest.h>

#include "heddle/train/run/run_folder.h"
#include "tests/base/temporary.h"
#include "tests/train/small_run.h"

namespace heddle::train {
namespace {

using testing::small_config;

TEST(TrainConfig, every_recipe_is_valid_and_ends_by_updates) {
  ASSERT_EQ(recipe_names(), (std::vector<std::string>{
                                "agreement",         "banking77",           "bccd-detr",
                                "bert-tiny-mlm",     "cifar10-cct",         "cifar10-deit-tenth",
                                "cifar10-deit",      "cifar10-grid",        "cifar10-mixer",
                                "cifar10-resnet",    "cifar10-swin",        "cifar10-vit",
                                "collages-captions", "gutenberg-xl",        "languages",
                                "mnist-vit",         "multi30k-de-en-lstm", "multi30k-de-en",
                                "multi30k-en-de",    "multi30k-en-fr",      "phrasebook",
                                "shakespeare-baby",  "shakespeare-char",    "shapes-captions",
                                "shapes-detr",       "shapes-vit",          "sst2"}));
  for (const std::string& name : recipe_names()) {
    const TrainConfig config = load_recipe(name);
    config.check(name);
    EXPECT_GT(config.max_updates, 0) << name;
    EXPECT_EQ(config.max_minutes, 0) << name;
  }
}

TEST(TrainConfig, every_model_that_is_trained_tells_its_width_to_the_schedule) {
  for (const std::string& task : task_names()) {
    for (const std::string& type : trainable_types(TaskConfig(task)->facts().head)) {
      EXPECT_GT(default_config(task, type).schedule_options().d_model, 0) << task << " " << type;
    }
  }
}

TEST(TrainConfig, recipes_of_a_language_pair_name_it) {
  const auto language = [](const char* recipe, const char* key) {
    return to_json(load_recipe(recipe)).get_string(key);
  };
  EXPECT_EQ(language("multi30k-de-en", "source_lang"), "de");
  EXPECT_EQ(language("multi30k-de-en", "target_lang"), "en");
  EXPECT_EQ(language("multi30k-en-fr", "target_lang"), "fr");
}

TEST(TrainConfig, unknown_recipe_is_a_usage_error_with_the_nearest_name) {
  expect_error(ErrorKind::usage, {"'multi30k-en-dee'", "did you mean 'multi30k-en-de'"},
               [] { load_recipe("multi30k-en-dee"); });
}

TEST(TrainConfig, preset_sets_the_sizes_of_the_model) {
  TrainConfig config;
  apply_preset(config, "tiny");
  EXPECT_EQ(config.stack.integer({"encoder_layers"}), 4);
  EXPECT_EQ(config.stack.integer({"decoder_layers"}), 4);
  EXPECT_EQ(config.stack.integer({"d_model"}), 128);
  EXPECT_EQ(config.stack.integer({"decoder_ffn_dim"}), 256);
  EXPECT_EQ(config.stack.integer({"decoder_attention_heads"}), 4);
  apply_preset(config, "big");
  EXPECT_EQ(config.stack.integer({"d_model"}), 1024);
  EXPECT_EQ(to_json(config.stack.fields()).at("dropout").as_double(), 0.3);
  expect_error(ErrorKind::usage, {"'huge'", "tiny, base or big"},
               [&] { apply_preset(config, "huge"); });
}

TEST(TrainConfig, file_is_read_over_its_preset) {
  const TemporaryFolder folder;
  const std::string path =
      folder.write("c.json", R"({"preset": "tiny", "description": "mine", "d_model": 64})");
  const TrainConfig config = parse_config(Json::load(path), path);
  EXPECT_EQ(config.stack.integer({"d_model"}), 64);
  EXPECT_EQ(config.stack.integer({"encoder_layers"}), 4);
}

TEST(TrainConfig, unknown_key_of_a_file_is_named_with_the_nearest_one) {
  const TemporaryFolder folder;
  const std::string path = folder.write("c.json", R"({"learning_rat": 0.1})");
  expect_error(ErrorKind::data, {path, "'learning_rat'", "did you mean 'learning_rate'"},
               [&] { parse_config(Json::load(path), path); });
}

TEST(TrainConfig, broken_file_is_a_data_error_with_its_place) {
  const TemporaryFolder folder;
  const std::string path = folder.write("c.json", "{\"d_model\": 64,\n  oops}");
  expect_error(ErrorKind::data, {path, "line 2"}, [&] { parse_config(Json::load(path), path); });
  expect_error(ErrorKind::data, {"nowhere.json"},
               [] { parse_config(Json::load("nowhere.json"), "nowhere.json"); });
}

TEST(TrainConfig, settings_come_back_from_the_folder_as_they_were) {
  const TemporaryFolder folder;
  TrainConfig config = small_config();
  config.learning_rate = 0.1 + 0.2;  // all digits
  config.average = "best";
  save_settings(folder.path(), {config, {"/some/data", "/held/out"}});
  const RunSettings read = load_settings(folder.path());
  EXPECT_TRUE(diff_fields(read.config, config).empty());
  EXPECT_EQ(read.paths.data, "/some/data");
  EXPECT_EQ(read.paths.val_data, "/held/out");
}

TEST(TrainConfig, what_does_not_fit_together_is_a_usage_error_that_says_so) {
  const auto expect_refused = [](const std::vector<std::string>& words, const auto& change) {
    TrainConfig config = small_config();
    change(config);
    expect_error(ErrorKind::usage, words, [&] { config.check("train"); });
  };
  expect_refused({"32", "5 heads"}, [](auto& c) { c.stack.set("encoder_attention_heads", 5); });
  expect_refused({"no end", "max_updates", "max_minutes"}, [](auto& c) { c.max_updates = 0; });
  expect_refused({"cosine", "max_updates"}, [](auto& c) {
    c.schedule = "cosine";
    c.max_updates = 0;
    c.max_minutes = 1;
  });
  expect_refused({"301", "300", "batch_tokens"},
                 [](auto& c) { set_from_string(c, "max_tokens", "301"); });
  expect_refused({"learned positions", "40", "30"}, [](auto& c) {
    set_from_string(c, "position_embedding_type", "learned");
    c.stack.set("max_position_embeddings", 30);
  });
  expect_refused({"dropout", "1.5"}, [](auto& c) {
    for (const Field& f : c.stack.fields()) {
      if (f.key == "dropout") *std::get<double*>(f.member) = 1.5;
    }
  });
  expect_refused({"accumulate", "0"}, [](auto& c) { c.accumulate = 0; });
}

TEST(TrainConfig, only_limits_may_change_when_a_run_goes_on) {
  const TrainConfig stored = small_config();
  TrainConfig wanted = stored;
  wanted.max_updates = 100;
  wanted.max_minutes = 3;
  wanted.patience = 4;
  check_same_config(stored, wanted, "RUN");
  int refused = 0;
  for (const FieldInfo& field : list_fields(stored)) {
    if (is_limit(field.key)) continue;
    TrainConfig other = stored;
    const std::string& now = field.default_value;
    try {
      set_from_string(other, field.key,
                      field.type == "true|false" ? (now == "true" ? "false" : "true") : "7");
    } catch (const Error&) {
      continue;  // a word of a list
    }
    if (diff_fields(stored, other).empty()) continue;
    expect_error(ErrorKind::usage, {"RUN", field.key, "overwrite"},
                 [&] { check_same_config(stored, other, "RUN"); });
    ++refused;
  }
  EXPECT_GT(refused, 20);
}

}  // namespace
}  // namespace heddle::train
