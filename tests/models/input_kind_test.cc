// A model over rows that are no tokens, made here alone: a new kind of input is a struct and a
// model that reads it.
#include <gtest/gtest.h>

#include "heddle/autograd/tape.h"
#include "heddle/io/weights.h"
#include "heddle/models/encoder_decoder.h"
#include "heddle/models/family.h"
#include "heddle/models/registry.h"
#include "heddle/nn/attention.h"
#include "heddle/train/optimizer.h"
#include "heddle/train/tasks/class_loss.h"
#include "tests/base/temporary.h"

namespace heddle {

// Frames of features, as a model of speech reads them.
struct FrameRows {
  static constexpr const char* kName = "frames";
  Tensor x;  // [rows, features]
  const Segments* segments = nullptr;
  std::shared_ptr<const RowIds> rows = nullptr;
};

struct FrameConfig {
  int64_t features = 3, width = 8;
  template <class V>
  void fields(V& v) {
    v("features", features, "numbers of a frame", at_least(1));
    v("width", width, "width of the states", at_least(1));
  }
  void check(const std::string&) const {}
};

// One layer of attention and the mean of its states.
class FrameModel final : public Model {
 public:
  using Config = FrameConfig;
  static std::vector<HeadClass> heads() {
    return {{Head::sequence_classes, "FrameForSequenceClassification"}, {Head::none, "FrameModel"}};
  }
  static std::vector<std::pair<std::string, std::string>> aliases() { return {}; }

  FrameModel(const Scope& s, const Config& c, const HubConfig& hub)
      : c_(c),
        in_(s / "in", {.in = c.features, .out = c.width, .init = Init::normal(0.3)}),
        attention_("attention", Linear(s / "qkv", {.in = c.width, .out = 3 * c.width}),
                   Linear(s / "out", {.in = c.width, .out = c.width}),
                   {.heads = 2, .observed = "attentions.0"}),
        norm_(s / "norm", c.width, 1e-5) {
    heads_.pooler = [](const Tensor& h, const ModelInput& input, const Run&) {
      return first_rows(h, input.segments);
    };
    if (hub.head != Head::sequence_classes) return;
    heads_.sequence_classes = classes_of_pooled(
        s / "classes", {.width = c.width, .labels = std::ssize(hub.labels), .dropout = 0.1},
        heads_.pooler);
  }

  nn::TensorNames names() const override { return {}; }
  int64_t layers() const override { return 1; }
  int64_t width() const override { return c_.width; }
  Tensor hidden(const ModelInput& input, const Run& run) const override {
    const Tensor x = in_(input.as<FrameRows>().x, run);
    return norm_(attention_(x, {.segments = &input.segments, .rows = input.rows}, run));
  }

 private:
  Config c_;
  Linear in_;
  nn::SelfAttention attention_;
  LayerNorm norm_;
};

namespace testing {
namespace {

std::unique_ptr<Model> make_frames(nn::Parameters& parameters, Head head = Head::sequence_classes) {
  const auto config = new_config<FrameModel>();
  config->type = "frames";
  config->hub.head = head;
  return config->make(Scope(parameters));
}

// Sequences of these lengths; the class of each is the sign of its first frame's first number.
struct Frames {
  Segments segments;
  std::vector<int32_t> classes;
  std::vector<float> x;
  RowIds ids;

  explicit Frames(const std::vector<int64_t>& lengths) : segments(Segments::from_lengths(lengths)) {
    RngStream random(make_key(1, 2, 3));
    for (uint32_t s = 0; s < lengths.size(); ++s) {
      for (uint32_t t = 0; t < lengths[s]; ++t) {
        for (int i = 0; i < 3; ++i) x.push_back(2 * random.uniform() - 1);
        ids.sample.push_back(s), ids.position.push_back(t);
      }
      classes.push_back(x[3 * segments.begin(s)] > 0 ? 1 : 0);
    }
  }
  FrameRows rows() const {
    return {Tensor::from(x, {segments.rows(), 3}), &segments, std::make_shared<const RowIds>(ids)};
  }
};

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

TEST(InputKind, frames_are_trained_by_the_loss_and_the_optimizer_of_texts) {
  nn::Parameters parameters(7);
  const auto model = make_frames(parameters);
  train::Optimizer optimizer(parameters, {});
  const Frames many(std::vector<int64_t>(32, 3));
  double first = 0, last = 0;
  for (uint64_t update = 1; update <= 150; ++update) {
    const nn::Run run{.training = true, .seed = 5, .update = update};
    const train::LossSums sums = train::accumulate_classes(*model, many.rows(), many.classes, run);
    EXPECT_EQ(sums.predicted, 32);
    EXPECT_EQ(sums.tokens, 96);
    (update == 1 ? first : last) = sums.nll / 32;
    optimizer.step(0.01, 1.0 / 32);
  }
  EXPECT_GT(first, 0.5);  // about log 2
  EXPECT_LT(last, 0.15);
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
}

}  // namespace
}  // namespace testing

template std::unique_ptr<ModelConfig> new_config<FrameModel>();

}  // namespace heddle
