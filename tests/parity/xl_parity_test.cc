// Transformer-XL and XLNet against transformers in float64: memory, order, two streams.
#include <gtest/gtest.h>

#include "heddle/base/files/files.h"
#include "heddle/infer/forward.h"
#include "heddle/infer/loading/loaded_model.h"
#include "heddle/nn/relative/relative_rows.h"
#include "tests/base/temporary.h"
#include "tests/parity/comparison.h"
#include "tests/support/places.h"

namespace heddle {
namespace {

// As in stack_parity_test.cc. Worst seen: 5.3e-7 in f32, 1.8e-2 in bf16.
constexpr double kF32 = 2e-5, kBf16 = 6e-2;

const std::vector<std::string> kInputs = {"input_ids", "mems.",          "token_type_ids",
                                          "perm_mask", "target_mapping", "attention_mask"};

bool begins_with_one_of(const std::string& name, const std::vector<std::string>& words) {
  return std::any_of(words.begin(), words.end(),
                     [&](const std::string& word) { return name.starts_with(word); });
}

class Xl : public ::testing::TestWithParam<const char*> {
 protected:
  Xl()
      : file(SafetensorsFile::open(std::string(testing::kFixtures) + "/" + GetParam() +
                                   ".safetensors")) {
    std::vector<NamedTensorView> weights, inputs;
    for (const std::string& name : file.names()) {
      if (begins_with_one_of(name, {"out.", "loss", "grad."})) continue;
      const StoredTensor& info = file.info(name);
      (begins_with_one_of(name, kInputs) ? inputs : weights)
          .push_back({name, info.dtype, info.shape, info.bytes});
    }
    dir_.write("config.json", file.metadata().at("config"));
    write_safetensors(dir_ / "model.safetensors", weights);
    write_safetensors(dir_ / "in.safetensors", inputs);
  }

  std::string report(const Model& model, DType precision, double tolerance) {
    const std::string out = dir_ / "out.safetensors";
    forward_tensors(model, SafetensorsFile::open(dir_ / "in.safetensors"), out,
                    {.all = true, .precision = precision});
    const SafetensorsFile actual = SafetensorsFile::open(out);
    Comparison comparison(file, tolerance);
    for (const std::string& name : actual.names()) {
      EXPECT_EQ(actual.info(name).shape, file.info("out." + name).shape) << name;
      comparison.add("out." + name, floats(actual, name));
    }
    std::set<std::string> wanted = named(file, {"out."});
    // A model with a head gives its result alone.
    if (wanted.contains("out.logits")) wanted.erase("out.last_hidden_state");
    EXPECT_EQ(comparison.names(), wanted);
    RecordProperty("worst_relative_error", fmt::format("{:.2e}", comparison.worst()));
    return comparison.report();
  }

  LoadedModel load() { return load_model(dir_.path()); }

  SafetensorsFile file;
  TemporaryFolder dir_;
};

TEST_P(Xl, every_output_matches_transformers) {
  EXPECT_EQ(report(*load().model, DType::f32, kF32), "");
}

TEST_P(Xl, every_output_in_bf16_matches_transformers) {
  EXPECT_EQ(report(*load().model, DType::bf16, kBf16), "");
}

TEST_P(Xl, saved_model_has_the_tensors_of_the_checkpoint_bit_for_bit) {
  const LoadedModel model = load();
  save_model(dir_ / "again", *model.model, model.parameters);
  const SafetensorsFile saved = SafetensorsFile::open(dir_ / "again/model.safetensors");
  const SafetensorsFile given = SafetensorsFile::open(dir_ / "model.safetensors");
  const auto sorted = [](const std::vector<std::string>& names) {
    return std::set<std::string>(names.begin(), names.end());
  };
  EXPECT_EQ(sorted(saved.names()), sorted(given.names()));  // q, k and v lie end to end
  for (const std::string& name : saved.names()) {
    EXPECT_EQ(saved.info(name).shape, given.info(name).shape) << name;
    EXPECT_EQ(floats(saved, name), floats(given, name)) << name;
  }
  EXPECT_EQ(report(*load_model(dir_ / "again").model, DType::f32, kF32), "");
}

INSTANTIATE_TEST_SUITE_P(Fixtures, Xl,
                         ::testing::Values("transfo-xl/adaptive", "transfo-xl/pre_norm",
                                           "transfo-xl/one_softmax", "transfo-xl/base",
                                           "xlnet/two_streams", "xlnet/backwards", "xlnet/one_way",
                                           "xlnet/one_way_ordered", "xlnet/classes"),
                         [](const auto& fixture) {
                           std::string name = fixture.param;
                           std::replace_if(
                               name.begin(), name.end(),
                               [](char c) { return c == '/' || c == '-'; }, '_');
                           return name;
                         });

// --- gradients -----------------------------------------------------------------------------------

class XlGradients : public Xl {
 protected:
  std::vector<int32_t> ids_of(const std::string& name) {
    const std::vector<int64_t> all = integers(file, name);
    return {all.begin(), all.end()};
  }

  // [time, batch, width] as rows of each sequence.
  nn::Memory memory(const Model& model, int64_t batch) {
    if (file.find("mems.0") == nullptr) return {};
    const int64_t time = file.info("mems.0").shape[0], width = model.width();
    nn::Memory result{Segments::uniform(batch, time), {}};
    for (int64_t i = 0; i < model.layers(); ++i) {
      const std::vector<float> values = floats(file, fmt::format("mems.{}", i));
      std::vector<float> rows;
      for (int64_t b = 0; b < batch; ++b) {
        for (int64_t t = 0; t < time; ++t) {
          const auto from = values.begin() + (t * batch + b) * width;
          rows.insert(rows.end(), from, from + width);
        }
      }
      result.layers.push_back(Tensor::from(rows, {batch * time, width}));
    }
    return result;
  }

  void compare(const LoadedModel& stack, const CrossEntropy& loss) {
    backward(loss.loss);
    const auto tokens = static_cast<float>(loss.predicted);
    Comparison comparison(file, kF32);
    comparison.add("loss", {static_cast<float>(loss.total) / tokens});
    for (auto& p : stack.parameters.all()) {
      // Types' biases have none where no types are given, nor have tokens that a softmax passes
      // over.
      if (!p->grad().defined()) {
        for (const nn::Part& part : p->parts()) {
          const StoredTensor* info = file.find("grad." + part.name);
          if (info != nullptr) {
            comparison.add("grad." + part.name, std::vector<float>(info->elements()), 1);
          }
        }
        continue;
      }
      for (const nn::Part& part : p->parts()) {
        std::vector<float> grad = part_of(p->grad(), part);
        for (float& g : grad) g /= tokens;  // theirs is of the mean
        comparison.add("grad." + part.name, grad);
      }
    }
    EXPECT_EQ(comparison.report(), "");
    std::set<std::string> wanted = named(file, {"grad."});
    wanted.insert("loss");
    EXPECT_EQ(comparison.names(), wanted);
  }
};

class TransformerXlGradients : public XlGradients {};
TEST_P(TransformerXlGradients, loss_and_every_gradient_match_transformers) {
  LoadedModel stack = load();
  const std::vector<int32_t> ids = ids_of("input_ids");
  const int64_t batch = file.info("input_ids").shape[0], time = file.info("input_ids").shape[1];
  const Segments segments = Segments::uniform(batch, time);
  nn::Memory before = memory(*stack.model, batch);
  const nn::Run run;
  const Tensor h =
      stack.tokens().hidden({.ids = ids, .segments = &segments, .memory = &before}, run);
  std::vector<int32_t> next(ids.begin() + 1, ids.end());
  next.push_back(-1);
  for (int64_t b = 0; b < batch; ++b) next[b * time + time - 1] = -1;
  compare(stack, stack.model->heads().output->loss(h, next, {}, run));
}
INSTANTIATE_TEST_SUITE_P(Fixtures, TransformerXlGradients,
                         ::testing::Values("transfo-xl/adaptive", "transfo-xl/pre_norm",
                                           "transfo-xl/one_softmax"),
                         [](const auto& fixture) { return std::string(fixture.param).substr(11); });

class XlnetGradients : public XlGradients {};
TEST_P(XlnetGradients, loss_and_every_gradient_match_transformers) {
  LoadedModel stack = load();
  const std::vector<int32_t> ids = ids_of("input_ids");
  const int64_t batch = file.info("input_ids").shape[0], time = file.info("input_ids").shape[1];
  const Segments segments = Segments::uniform(batch, time);
  nn::TokenOrder order;
  for (const float hidden : floats(file, "perm_mask")) order.hidden.push_back(hidden > 0);
  const std::vector<float> map = floats(file, "target_mapping");
  const int64_t count = file.info("target_mapping").shape[1];
  order.targets = Segments::uniform(batch, count);
  std::vector<int32_t> tokens;
  for (int64_t row = 0; row < batch * count; ++row) {
    const auto first = map.begin() + row * time;
    const auto token = row / count * time + (std::find(first, first + time, 1.0f) - first);
    order.target_tokens.push_back(static_cast<int32_t>(token));
    tokens.push_back(ids[token]);
  }
  const nn::Run run;
  const Tensor h = stack.tokens().hidden({.ids = ids, .segments = &segments, .order = &order}, run);
  compare(stack, stack.model->heads().output->loss(h, tokens, {}, run));
}
INSTANTIATE_TEST_SUITE_P(Fixtures, XlnetGradients, ::testing::Values("xlnet/one_way_ordered"),
                         [](const auto& fixture) { return std::string(fixture.param).substr(6); });

}  // namespace
}  // namespace heddle
