// Folders of timm's: what is written for it, what is read of it, and what is not.
#include "heddle/infer/export.h"
#include "heddle/models/timm/timm.h"
#include "tests/parity/image_parity.h"

namespace heddle {
namespace {

class TimmFolder : public ::testing::TestWithParam<const char*>, protected ImageFixture {
 protected:
  TimmFolder() : ImageFixture(fmt::format("timm/{}", GetParam())) {}
};

TEST_P(TimmFolder, export_writes_the_tensors_and_the_arguments_that_timm_wrote) {
  (void)load();
  const std::string out = saved_folder();
  const Exported exported = export_model(dir_.path(), out, {.format = "timm", .overwrite = true});
  expect_weights_in(out);
  const Json before = Json::parse(file.metadata().at("config"));
  const Json after = Json::load(out + "/config.json");
  EXPECT_EQ(exported.type, after.get_string("architecture"));
  EXPECT_EQ(after.get_int("num_classes"), before.get_int("num_classes"));
  for (const auto& [key, value] : before.at("pretrained_cfg").as_object()) {
    EXPECT_EQ(after.at("pretrained_cfg").at(key), value) << key;
  }
  const LoadedModel again = load_model(out), first = load_model(dir_.path());
  EXPECT_EQ(outputs(*again.model, all), outputs(*first.model, all));
}

TEST_P(TimmFolder, tensors_as_transformers_wraps_them_load_alike) {
  const LoadedModel expected = load();
  expect_same_parameters(load([](std::string name) { return "timm_model." + name; }), expected);
}

TEST_P(TimmFolder, what_heddle_cannot_follow_is_a_data_error_that_names_it) {
  (void)load();
  const std::string path = dir_ / "config.json";
  const Json good = Json::load(path);
  const auto refused = [&](const char* key, const Json& value, const std::string& word) {
    Json config = good;
    (key == std::string("architecture") ? config : config["model_args"])[key] = value;
    dir_.write("config.json", config.dump());
    expect_error(ErrorKind::data, {"config.json", word}, [&] { (void)load_model(dir_.path()); });
  };
  refused("architecture", "convnext_tiny", "convnext_tiny");
  refused("reg_tokens", 4, "reg_tokens");
  refused("global_pool", "map", "global_pool");
  for (const char* size : {"[8]", "[]", "[8, 8, 8]", "[8, null]", "\"8\"", "{}"}) {
    refused("img_size", Json::parse(size), "img_size");
  }
}

Json vit_of(const char* architecture, const char* args, const char* cfg = "{}") {
  return timm::family_config(Json::object({{"architecture", architecture},
                                           {"model_args", Json::parse(args)},
                                           {"pretrained_cfg", Json::parse(cfg)}}),
                             "a/config.json");
}

// As timm.create_model() makes them: its fc_norm is by the pool where nothing is said, and is said
// of the architectures without a class token.
TEST(TimmConfig, pool_and_last_norm_are_those_of_the_architecture_and_its_arguments) {
  struct Case {
    const char *architecture, *args, *pooling;
    bool has_token, is_behind;
  };
  const char *const base = "vit_base_patch16_224", *const gap = "vit_base_patch16_gap_224";
  for (const Case& c :
       {Case{base, "{}", "token", true, false},
        {base, R"({"global_pool": "avg"})", "mean", true, true},
        {base, R"({"global_pool": "avg", "fc_norm": null})", "mean", true, true},
        {base, R"({"global_pool": "avg", "fc_norm": false})", "mean", true, false},
        {base, R"({"global_pool": "avg", "class_token": false,
                                   "no_embed_class": true, "pool_include_prefix": true})",
         "mean", false, true},
        {gap, "{}", "mean", false, false},
        {gap, R"({"fc_norm": null})", "mean", false, true},
        {gap, R"({"class_token": true, "global_pool": "token"})", "token", true, false}}) {
    const Json config = vit_of(c.architecture, c.args);
    EXPECT_EQ(config.get_string("pooling"), c.pooling) << c.architecture << c.args;
    EXPECT_EQ(config.at("class_token"), Json(c.has_token)) << c.architecture << c.args;
    EXPECT_EQ(config.at("norm_after_pooling"), Json(c.is_behind)) << c.architecture << c.args;
  }
  // Where neither says anything pretrained_cfg does.
  const char* const pool = R"({"global_pool": "avg"})";
  EXPECT_EQ(vit_of(base, "{}", pool).get_string("pooling"), "mean");
  EXPECT_EQ(vit_of(base, R"({"global_pool": "token"})", pool).get_string("pooling"), "token");
  EXPECT_EQ(vit_of(gap, "{}", R"({"global_pool": "token"})").get_string("pooling"), "mean");
  const Json giant = vit_of("vit_giant_patch16_gap_224", "{}");
  EXPECT_EQ(giant.get_int("patch_size"), 16);
  EXPECT_EQ(giant.get_int("intermediate_size"), 6144);
  EXPECT_EQ(vit_of(gap, "{}").get_int("num_attention_heads"), 16);
}

TEST(TimmConfig, vit_that_is_not_plain_is_refused_by_what_is_not) {
  const auto refused = [](const char* architecture, const char* args, const char* word) {
    expect_error(ErrorKind::data, {"a/config.json", word},
                 [&] { (void)vit_of(architecture, args); });
  };
  const char* const base = "vit_base_patch16_224";
  for (const char* other : {"vit_base_patch16_rpn_224", "vit_base_patch16_clip_224",
                            "vit_base_patch16_reg4_gap_256", "deit3_base_patch16_224"}) {
    refused(other, "{}", other);
  }
  refused("vit_medium_patch16_gap_256", "{}", "layer scale");
  refused("vit_medium_patch16_gap_256", R"({"init_values": 1e-6})", "init_values");
  const Json plain = vit_of("vit_medium_patch16_gap_256", R"({"init_values": null})");
  EXPECT_EQ(plain.at("qkv_bias"), Json(false));
  EXPECT_EQ(plain.get_int("image_size"), 256);
  refused(base, R"({"class_token": false})", "class_token");
  refused(base, R"({"fc_norm": true})", "fc_norm");
  refused(base, R"({"global_pool": "max"})", "global_pool");
  refused(base, R"({"global_pool": "avg", "no_embed_class": true})", "no_embed_class");
  refused(base, R"({"global_pool": "avg", "pool_include_prefix": true})", "pool_include_prefix");
  refused("deit_base_distilled_patch16_224", R"({"global_pool": "avg"})", "global_pool");
}

TEST(TimmConfig, sizes_of_images_are_one_number_or_two) {
  const auto sizes = [](const char* architecture, const char* args, const char* cfg = "{}") {
    const Json config = Json::object({{"architecture", architecture},
                                      {"model_args", Json::parse(args)},
                                      {"pretrained_cfg", Json::parse(cfg)}});
    return timm::family_config(config, "a/config.json");
  };
  const char* const swin = "swin_tiny_patch4_window7_224";
  for (const char* name : {"resnet18", "mixer_b16_224", "vit_base_patch16_224", swin}) {
    EXPECT_EQ(sizes(name, R"({"img_size": 448})").at("image_size"), Json(448)) << name;
    for (const char* args : {R"({"img_size": [224]})", R"({"img_size": []})"}) {
      expect_error(ErrorKind::data, {"a/config.json", "img_size", "[height, width]"},
                   [&] { (void)sizes(name, args); });
    }
    expect_error(ErrorKind::data, {"a/config.json", "img_size", "integer"},
                 [&] { (void)sizes(name, R"({"img_size": ["a", "b"]})"); });
  }
  EXPECT_EQ(sizes("mixer_b16_224", R"({"img_size": [32, 48]})").at("image_width"), Json(48));
  const char* const square = R"({"input_size": [3, 96, 96]})";
  EXPECT_EQ(sizes("resnet18", "{}", square).at("image_size"), Json(96));
  expect_error(ErrorKind::data, {"a/config.json", "96 x 128"},
               [&] { (void)sizes("resnet18", "{}", R"({"input_size": [3, 96, 128]})"); });
}

INSTANTIATE_TEST_SUITE_P(Fixtures, TimmFolder,
                         ::testing::Values("vit", "vit_wide", "vit_mean", "vit_gap",
                                           "vit_mean_states", "deit", "deit_plain", "mixer",
                                           "mixer_wide", "resnet", "resnet_wide", "resnet_silu",
                                           "swin", "swin_wide"),
                         [](const auto& fixture) { return std::string(fixture.param); });

Json small_resnet(const char* more) {
  const Json added = Json::parse(more);
  Json json = Json::parse(R"({"model_type": "resnet", "embedding_size": 64, "layer_type": "basic",
      "hidden_sizes": [4, 4, 4, 4], "depths": [1, 1, 1, 1], "num_labels": 2})");
  for (const auto& [key, value] : added.as_object()) json[key] = value;
  return json;
}

TEST(TimmExport, positions_of_columns_and_rows_are_refused) {
  const Json json = Json::parse(R"({"model_type": "vit", "image_size": 8, "patch_size": 4,
      "hidden_size": 8, "num_attention_heads": 2, "two_dimensional_positions": true})");
  const auto config = read_model_config(json, "config.json");
  expect_error(ErrorKind::data, {"columns and rows"}, [&] { (void)timm::written_config(*config); });
}

// create_model() gives img_size to a model of fixed size, and a ResNet takes none.
TEST(TimmExport, resnet_has_no_fixed_size) {
  const auto config = read_model_config(small_resnet("{}"), "config.json");
  const timm::Written written = timm::written_config(*config);
  EXPECT_EQ(written.config.at("pretrained_cfg").at("fixed_input_size"), Json(false));
}

TEST(TimmExport, resnet_of_two_activations_is_refused) {
  const auto written = [](const char* more) {
    return timm::written_config(*read_model_config(small_resnet(more), "config.json")).config;
  };
  expect_error(ErrorKind::data, {"hidden_act", "gelu", "layer_act", "relu"},
               [&] { written(R"({"hidden_act": "gelu"})"); });
  const Json args = written(R"({"hidden_act": "gelu", "layer_act": "gelu"})").at("model_args");
  EXPECT_EQ(args.get_string("act_layer"), "gelu");
}

TEST(MlpMixer, image_of_another_size_is_a_data_error_that_names_both) {
  const Json json = Json::parse(R"({"model_type": "mlp_mixer", "image_size": 8, "patch_size": 4,
                                    "hidden_size": 8, "num_hidden_layers": 1})");
  nn::Parameters parameters(1);
  const auto model = make_model(nn::Scope(parameters), json);
  Images images;
  images.add({1, 3, {8, 12}, std::vector<float>(3 * 8 * 12)}, 0);
  expect_error(ErrorKind::data, {"8 x 12", "8 x 8"},
               [&] { (void)model->hidden(images.rows(), {}); });
}

}  // namespace
}  // namespace heddle
