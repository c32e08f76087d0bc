// Folders of timm's, and CCT, which neither has, against PyTorch in float64.
#include "heddle/infer/export.h"
#include "heddle/models/timm/timm.h"
#include "tests/parity/image_parity.h"

namespace heddle {
namespace {

// Of the largest magnitude, in f32 and bf16.
constexpr double kF32 = 1e-5, kGradients = 1e-4, kBf16 = 6e-2;

class TimmParity : public ::testing::TestWithParam<const char*>, protected ImageFixture {
 protected:
  TimmParity() : ImageFixture(fmt::format("timm/{}", GetParam())) {}
  std::string folder_of(const std::string& name) {
    const char* const kept = std::getenv("HEDDLE_KEEP");  // for make_timm_fixtures.py --check
    return kept ? fmt::format("{}/{}", kept, name) : dir_ / name;
  }
};

TEST_P(TimmParity, every_output_matches_pytorch_at_the_size_of_training_and_at_others) {
  const LoadedModel model = load();
  EXPECT_EQ(report_of(file, pixels, *model.model->as<ImageModel>(), DType::f32, kF32), "");
}

TEST_P(TimmParity, every_output_in_bf16_matches_pytorch) {
  const LoadedModel model = load();
  EXPECT_EQ(report_of(file, pixels, *model.model->as<ImageModel>(), DType::bf16, kBf16), "");
}

TEST_P(TimmParity, image_has_the_bits_it_has_alone_in_a_batch) {
  const LoadedModel loaded = load();
  const auto& model = *loaded.model->as<ImageModel>();
  for (const DType compute : {DType::f32, DType::bf16}) {
    const Outputs together(model, all, {.compute = compute});
    std::map<std::string, std::vector<float>> alone;
    for (const Pixels& p : pixels) {
      for (int64_t i = 0; i < p.count; ++i) {
        Images one;
        one.add(p, i);
        for (const auto& [name, values] : Outputs(model, one, {.compute = compute}).values) {
          alone[name].insert(alone[name].end(), values.begin(), values.end());
        }
      }
    }
    EXPECT_EQ(alone, together.values) << dtype_name(compute);
  }
}

// In the family's own form, that of transformers where it has the family.
TEST_P(TimmParity, model_that_heddle_saved_gives_the_same_bits) {
  const LoadedModel model = load();
  save_model(dir_ / "again", *model.model, model.parameters);
  const LoadedModel again = load_model(dir_ / "again");
  EXPECT_EQ(again.model->config().json(), model.model->config().json());
  EXPECT_EQ(Outputs(*again.model->as<ImageModel>(), all).values,
            Outputs(*model.model->as<ImageModel>(), all).values);
}

INSTANTIATE_TEST_SUITE_P(Fixtures, TimmParity,
                         ::testing::Values("vit", "vit_wide", "vit_states", "deit", "deit_plain",
                                           "mixer", "mixer_wide", "resnet", "resnet_wide", "cct",
                                           "cct_sine"),
                         [](const auto& fixture) { return std::string(fixture.param); });

class TimmFolder : public TimmParity {};

TEST_P(TimmFolder, export_writes_the_tensors_and_the_arguments_that_timm_wrote) {
  (void)load();
  const std::string out = folder_of(GetParam());
  const Exported exported = export_model(dir_.path(), out, {.format = "timm", .overwrite = true});
  const SafetensorsFile saved = SafetensorsFile::open(out + "/model.safetensors");
  const std::set<std::string> others =
      named(file, {"pixel_values", "out.", "label", "loss", "grad."});
  EXPECT_EQ(saved.names().size() + others.size(), file.names().size());
  for (const std::string& name : saved.names()) {
    EXPECT_EQ(saved.info(name).shape, file.info(name).shape) << name;
    EXPECT_EQ(floats(saved, name), floats(file, name)) << name;
  }
  const Json before = Json::parse(file.metadata().at("config"));
  const Json after = Json::load(out + "/config.json");
  EXPECT_EQ(exported.type, after.get_string("architecture"));
  EXPECT_EQ(after.get_int("num_classes"), before.get_int("num_classes"));
  for (const auto& [key, value] : before.at("pretrained_cfg").as_object()) {
    if (const Json* there = after.at("pretrained_cfg").find(key)) {
      EXPECT_EQ(*there, value) << key;
    }
  }
  const LoadedModel again = load_model(out), first = load_model(dir_.path());
  EXPECT_EQ(Outputs(*again.model->as<ImageModel>(), all).values,
            Outputs(*first.model->as<ImageModel>(), all).values);
}

TEST_P(TimmFolder, tensors_as_transformers_wraps_them_load_alike) {
  const LoadedModel expected = load();
  const LoadedModel other = load([](std::string name) { return "timm_model." + name; });
  for (size_t i = 0; i < expected.parameters.all().size(); ++i) {
    EXPECT_EQ(other.parameters.all()[i]->value().to_floats(),
              expected.parameters.all()[i]->value().to_floats());
  }
}

TEST_P(TimmFolder, what_heddle_cannot_follow_is_a_data_error_that_names_it) {
  (void)load();
  const std::string path = dir_ / "config.json";
  const Json good = Json::load(path);
  const auto message = [&](const Json& config) -> std::string {
    dir_.write("config.json", config.dump());
    try {
      (void)load_model(dir_.path());
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::data);
      return e.what();
    }
    return "";
  };
  Json config = good;
  config["architecture"] = "convnext_tiny";
  EXPECT_NE(message(config).find("convnext_tiny"), std::string::npos);
  config = good;
  config["model_args"]["reg_tokens"] = 4;
  EXPECT_NE(message(config).find("reg_tokens"), std::string::npos);
  config = good;
  config["model_args"]["global_pool"] = "map";
  EXPECT_NE(message(config).find("global_pool"), std::string::npos);
  for (const char* size : {"[8]", "[]", "[8, 8, 8]", "[8, null]", "\"8\"", "{}"}) {
    config = good;
    config["model_args"]["img_size"] = Json::parse(size);
    const std::string said = message(config);
    EXPECT_NE(said.find("config.json"), std::string::npos) << size;
    EXPECT_NE(said.find("img_size"), std::string::npos) << size;
  }
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
                         ::testing::Values("vit", "vit_wide", "deit", "deit_plain", "mixer",
                                           "mixer_wide", "resnet", "resnet_wide"),
                         [](const auto& fixture) { return std::string(fixture.param); });

class TimmGradients : public TimmParity {};

TEST_P(TimmGradients, loss_and_every_gradient_match_pytorch) {
  LoadedModel model = load();
  Comparison comparison(file, kGradients);
  for (const auto& [name, values] : gradients(model, {})) {
    // That of a token's bias is rounding: the norms behind it do not see what is added to all its
    // channels.
    comparison.add(name, values, name.ends_with("mlp_tokens.fc2.bias") ? 1 : 0);
  }
  EXPECT_EQ(comparison.report(), "");
  EXPECT_EQ(comparison.names(), named(file, {"grad.", "loss"}));
  RecordProperty("worst_relative_error", fmt::format("{:.2e}", comparison.worst()));
}

TEST_P(TimmGradients, recomputed_layers_give_the_same_bits) {
  LoadedModel model = load();
  EXPECT_EQ(gradients(model, {.recompute = true}), gradients(model, {}));
}

INSTANTIATE_TEST_SUITE_P(Fixtures, TimmGradients,
                         ::testing::Values("mixer", "mixer_wide", "cct", "cct_sine"),
                         [](const auto& fixture) { return std::string(fixture.param); });

TEST(MlpMixer, image_of_another_size_is_a_data_error_that_names_both) {
  const Json json = Json::parse(R"({"model_type": "mlp_mixer", "image_size": 8, "patch_size": 4,
                                    "hidden_size": 8, "num_hidden_layers": 1})");
  nn::Parameters parameters(1);
  const auto model = make_model(nn::Scope(parameters), json);
  Images images;
  images.add({1, 3, {8, 12}, std::vector<float>(3 * 8 * 12)}, 0);
  try {
    (void)model->hidden(images.rows(), {});
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::data);
    EXPECT_NE(std::string(e.what()).find("8 x 12"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("8 x 8"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace heddle
