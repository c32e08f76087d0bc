// What holds for a model over frames without a line elsewhere.
#include <gtest/gtest.h>

#include "heddle/autograd/tape.h"
#include "heddle/io/tensor_file.h"
#include "heddle/models/encoder_decoder.h"
#include "heddle/models/registry.h"
#include "tests/base/temporary.h"
#include "tests/models/frame_model.h"

namespace heddle::testing {
namespace {

TEST(InputKind, frames_give_states_and_pooled_classes_under_the_names_of_all_models) {
  nn::Parameters parameters(7), bare_parameters(7);
  const auto model = make_frames(parameters), bare = make_frames(bare_parameters, Head::none);
  const Frames two({4, 2});
  const NoGrad off;
  const std::vector<ModelOutput> logits = model->forward(two.rows(), {});
  ASSERT_EQ(logits.size(), 1u);
  EXPECT_EQ(logits[0].name, "logits");
  EXPECT_TRUE(logits[0].is_of_sequences);
  EXPECT_EQ(logits[0].x.shape(), Shape({2, 2}));
  const std::vector<ModelOutput> states = bare->forward(two.rows(), {});
  ASSERT_EQ(states.size(), 2u);
  EXPECT_EQ(states[0].x.shape(), Shape({6, 8}));
  EXPECT_EQ(states[1].name, "pooler_output");
  EXPECT_EQ(states[1].x.shape(), Shape({2, 8}));
}

TEST(InputKind, a_sequence_of_frames_has_the_same_bits_alone_and_in_a_batch) {
  nn::Parameters parameters(7);
  const auto model = make_frames(parameters);
  const Frames two({4, 2}), one({4});
  const NoGrad off;
  const std::vector<float> both = model->hidden(two.rows(), {}).to_floats();
  const std::vector<float> alone = model->hidden(one.rows(), {}).to_floats();
  EXPECT_EQ(alone, std::vector<float>(both.begin(), both.begin() + 4 * 8));
}

TEST(InputKind, frames_have_a_config_and_weights_as_files) {
  const TemporaryFolder folder;
  nn::Parameters parameters(7);
  const auto model = make_frames(parameters);
  parameters.save(folder / "model.safetensors", DType::f32);
  const Json json = model->config().json();
  EXPECT_EQ(json.at("architectures").as_array()[0].as_string(), "FrameForSequenceClassification");
  const auto config = new_config<FrameModel>();
  config->type = "frames";
  config->read(json, "config.json");
  const auto file = open_weights(folder.path());
  nn::Parameters loaded = nn::Parameters::to_be_loaded(file->elements(), file->path());
  const auto again = config->make(Scope(loaded));
  loaded.load(*file, again->names());
  const Frames two({4, 2});
  const NoGrad off;
  EXPECT_EQ(again->forward(two.rows(), {})[0].x.to_floats(),
            model->forward(two.rows(), {})[0].x.to_floats());
}

TEST(InputKind, what_a_model_cannot_is_said_by_what_is_wanted) {
  nn::Parameters parameters(7), text_parameters(7);
  const auto frames = make_frames(parameters);
  EXPECT_EQ(frames->as<TokenModel>(), nullptr);
  EXPECT_EQ(frames->as<EncoderDecoder>(), nullptr);
  EXPECT_EQ(frames->as<WithMemory>(), nullptr);
  expect_error(ErrorKind::data, {"speech:", "reads tokens", "frames"},
               [&] { frames->need<TokenModel>("speech"); });
  const auto gpt2 =
      make_model(Scope(text_parameters),
                 Json::parse(R"({"model_type": "gpt2", "n_embd": 8, "n_layer": 1, "n_head": 2,
                      "vocab_size": 9, "architectures": ["GPT2ForSequenceClassification"]})"));
  EXPECT_NE(gpt2->as<TokenModel>(), nullptr);
  EXPECT_EQ(gpt2->as<LanguageModel>(), nullptr) << "its head gives classes";
  EXPECT_EQ(gpt2->as<WithExperts>(), nullptr);
  expect_error(ErrorKind::internal, {"reads tokens", "given frames"},
               [&] { gpt2->hidden(Frames({4}).rows(), {}); });
  const Heads& heads = gpt2->heads();
  expect_error(ErrorKind::data, {"predicts tokens"}, [&] { gpt2->as<TokenModel>()->output(); });
  expect_error(ErrorKind::data, {"predicts tokens"}, [&] { heads.token_logits({}, {}); });
  expect_error(ErrorKind::shape, {"frames have no segments"},
               [&] { frames->hidden(FrameRows{}, {}); });
}

}  // namespace
}  // namespace heddle::testing
