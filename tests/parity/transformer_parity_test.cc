// The encoder-decoder against PyTorch in float64: every hidden state, attention map and gradient.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "heddle/io/safetensors.h"
#include "heddle/models/encoder_decoder.h"
#include "heddle/models/registry.h"
#include "heddle/ops/loss.h"
#include "tests/parity/comparison.h"
#include "tests/support/places.h"

namespace heddle {
namespace {

// Relative to the tensor's largest magnitude. f32: a sum of n <= 40 products errs by about
// eps sqrt(n) = 4e-7, and some 15 such sums stand between the tokens and the loss and as many on
// the way back; where scores hardly differ, queries' gradients cancel tenfold. Worst seen: 5.6e-6.
constexpr double kF32 = 2e-5;
// bf16 rounds by 2^-9, through the same steps. Worst seen: logits 1.4e-2, gradients 0.17 (of
// queries, where they cancel): wide, but a lost factor or a wrong sign is an error of 0.5 and more.
constexpr double kBf16Logits = 4e-2, kBf16Gradients = 0.4;
constexpr float kSmoothing = 0.1f;

// One side of a batch without its padding, and the way back to [batch, time, ..].
struct Side {
  std::vector<int32_t> ids;
  Segments segments;
  int64_t batch = 0, time = 0;

  // `counts`: which entries of the padded ids are tokens.
  Side(const SafetensorsFile& file, const std::string& name, const std::vector<bool>& counts)
      : batch(file.info(name).shape[0]), time(file.info(name).shape[1]) {
    const std::vector<int64_t> padded = integers(file, name);
    std::vector<int64_t> lengths(batch);
    for (int64_t i = 0; i < batch * time; ++i) {
      if (!counts[i]) continue;
      ids.push_back(static_cast<int32_t>(padded[i]));
      ++lengths[i / time];
    }
    segments = Segments::from_lengths(lengths);
  }

  nn::TokenRows tokens() const { return {ids, &segments, nullptr}; }

  // [rows, width] to [batch, time, width], zeros in the padding.
  std::vector<float> pad(const Tensor& x) const {
    const int64_t width = x.size(1);
    const std::vector<float> packed = x.to_floats();
    std::vector<float> padded(batch * time * width);
    for (int64_t b = 0; b < batch; ++b) {
      std::copy_n(packed.begin() + segments.begin(b) * width, segments.length(b) * width,
                  padded.begin() + b * time * width);
    }
    return padded;
  }
};

std::vector<bool> where(const std::vector<int64_t>& values, auto&& counts) {
  std::vector<bool> result(values.size());
  std::transform(values.begin(), values.end(), result.begin(), counts);
  return result;
}

// A fixture and the model built from it.
struct Fixture {
  SafetensorsFile file;
  Side source, target;
  std::vector<int32_t> labels;
  nn::Parameters parameters{1};
  std::unique_ptr<Model> made;
  const EncoderDecoder& model;

  explicit Fixture(const std::string& path)
      : file(SafetensorsFile::open(path)),
        source(file, "input_ids", where(integers(file, "attention_mask"), is_one)),
        target(file, "decoder_input_ids", where(integers(file, "labels"), is_due)),
        made(read_config(file)->make(nn::Scope(parameters))),
        model(*made->as<EncoderDecoder>()) {
    for (int64_t label : integers(file, "labels")) {
      if (is_due(label)) labels.push_back(static_cast<int32_t>(label));
    }
    for (auto& p : parameters.all()) {
      const int64_t width = p->elements() / p->value().size(0);
      for (const nn::Part& part : p->parts()) {
        const std::vector<float> values = floats(file, part.name);
        check(static_cast<int64_t>(values.size()) == part.rows * width, ErrorKind::shape,
              "{}: {} has {} elements, the model {}", path, part.name, values.size(),
              part.rows * width);
        std::copy(values.begin(), values.end(), p->value().data<float>() + part.begin * width);
      }
      p->changed(true);
    }
  }

  static bool is_one(int64_t x) { return x == 1; }
  static bool is_due(int64_t label) { return label >= 0; }

  static std::unique_ptr<ModelConfig> read_config(const SafetensorsFile& file) {
    Json json = Json::parse(file.metadata().at("config"), file.path());
    if (!json.contains("model_type")) json["model_type"] = "heddle_transformer";
    std::unique_ptr<ModelConfig> config = read_model_config(json, file.path());
    config->fit(file);
    return config;
  }

  Tensor decode(const nn::Run& run) const {
    return model.decode(target.tokens(), model.encode(source.tokens(), run), source.segments, run);
  }
};

const Side& side_of(const Fixture& f, const std::string& name) {
  return name.starts_with("encoder") ? f.source : f.target;
}

// The maps of one attention call, [batch, heads, queries, keys], zeros in the padding.
std::vector<float> padded_maps(const Fixture& f, const nn::AttentionCall& call) {
  const Side& rows = side_of(f, call.name());
  const int64_t columns = (call.name().starts_with("decoder") ? f.target : f.source).time;
  std::vector<float> maps(rows.batch * call.heads() * rows.time * columns);
  for (int64_t b = 0; b < rows.batch; ++b) {
    for (int64_t h = 0; h < call.heads(); ++h) {
      const std::vector<float> map = call.weights(b, h).to_floats();
      for (int64_t i = 0; i < call.queries().length(b); ++i) {
        std::copy_n(map.begin() + i * call.keys().length(b), call.keys().length(b),
                    maps.begin() + ((b * call.heads() + h) * rows.time + i) * columns);
      }
    }
  }
  return maps;
}

class TransformerParity : public ::testing::TestWithParam<std::string> {
 protected:
  Fixture fixture_{std::string(testing::kFixtures) + "/" + GetParam() + ".safetensors"};

  void expect_equal(const Comparison& comparison) {
    EXPECT_EQ(comparison.report(), "");
    RecordProperty("worst_relative_error", fmt::format("{:.2e}", comparison.worst()));
  }
  void compare_logits(DType compute, double tolerance);
  void compare_gradients(DType compute, double tolerance);
};

TEST_P(TransformerParity, parameters_are_those_of_the_checkpoint) {
  std::set<std::string> ours, theirs;
  fixture_.parameters.for_each_tensor(
      [&](const std::string& name, const Shape& shape, const float*) {
        EXPECT_EQ(shape, Shape(fixture_.file.info(name).shape)) << name;
        ours.insert("grad." + name);
      });
  EXPECT_EQ(ours, named(fixture_.file, {"grad."}));
}

TEST_P(TransformerParity, hidden_states_and_attention_maps_match_pytorch) {
  const Fixture& f = fixture_;
  Comparison comparison(f.file, kF32);
  nn::Observer observer;
  observer.hidden = [&](const std::string& name, const Tensor& x) {
    comparison.add(name, side_of(f, name).pad(x));
  };
  observer.attention = [&](const nn::AttentionCall& call) {
    comparison.add(call.name(), padded_maps(f, call));
  };
  const NoGrad no_grad;
  nn::Run run;
  run.observer = &observer;
  const Tensor memory = f.model.encode(f.source.tokens(), run);
  comparison.add("encoder_last_hidden_state", f.source.pad(memory));
  f.model.decode(f.target.tokens(), memory, f.source.segments, run);
  expect_equal(comparison);
  EXPECT_EQ(comparison.names(), named(f.file, {"hidden_state", "attentions."}));
}

// Without an observer the residual sums run fused with the norms.
void TransformerParity::compare_logits(DType compute, double tolerance) {
  const NoGrad no_grad;
  nn::Run run;
  run.compute = compute;
  Comparison comparison(fixture_.file, tolerance);
  comparison.add("logits", fixture_.target.pad(fixture_.model.output()(fixture_.decode(run), run)));
  expect_equal(comparison);
}

TEST_P(TransformerParity, logits_match_pytorch) { compare_logits(DType::f32, kF32); }
TEST_P(TransformerParity, logits_in_bf16_match_pytorch) {
  compare_logits(DType::bf16, kBf16Logits);
}

// Keys' biases shift all scores of a query alike: their gradient is a sum that cancels to zero, so
// its rounding is measured against the weights' gradient, a sum of the same terms.
double scale_of_gradient(const SafetensorsFile& file, const std::string& name) {
  const size_t bias = name.find("k_proj.bias");
  if (bias == std::string::npos) return 0;
  return Comparison::largest(floats(file, "grad." + name.substr(0, bias) + "k_proj.weight"));
}

void TransformerParity::compare_gradients(DType compute, double tolerance) {
  Fixture& f = fixture_;
  nn::Run run;
  run.compute = compute;
  Comparison comparison(f.file, tolerance);
  const Tensor h = f.decode(run);
  const float per_token = 1.0f / static_cast<float>(f.labels.size());
  const CrossEntropy loss =
      linear_cross_entropy(h, f.model.output().weight(run), f.model.output().bias(), f.labels,
                           {.smoothing = kSmoothing, .grad_scale = per_token});
  backward(loss.loss);
  comparison.add("loss", loss.loss.to_floats());
  for (auto& p : f.parameters.all()) {
    ASSERT_TRUE(p->grad().defined()) << p->name() << " has no gradient";
    const int64_t width = p->elements() / p->value().size(0);
    const std::vector<float> grad = p->grad().to_floats();
    for (const nn::Part& part : p->parts()) {
      const auto begin = grad.begin() + part.begin * width;
      comparison.add("grad." + part.name, {begin, begin + part.rows * width},
                     scale_of_gradient(f.file, part.name));
    }
  }
  expect_equal(comparison);
  std::set<std::string> all = named(f.file, {"grad."});
  all.insert("loss");
  EXPECT_EQ(comparison.names(), all);
}

TEST_P(TransformerParity, loss_and_every_gradient_match_pytorch) {
  compare_gradients(DType::f32, kF32);
}
TEST_P(TransformerParity, loss_and_every_gradient_in_bf16_match_pytorch) {
  compare_gradients(DType::bf16, kBf16Gradients);
}

// The parity of the same without the key is tested above.
TEST(TiedOutput, tables_that_differ_are_used_whatever_the_config_says) {
  for (const char* name : {"seq2seq/bart_untied", "marian/untied", "xlnet/one_way"}) {
    SCOPED_TRACE(name);
    const auto file =
        SafetensorsFile::open(std::string(testing::kFixtures) + "/" + name + ".safetensors");
    const auto tables = [&](bool is_tied) {
      Json json = Json::parse(file.metadata().at("config"), file.path());
      json["tie_word_embeddings"] = is_tied;
      std::unique_ptr<ModelConfig> config = read_model_config(json, file.path());
      config->fit(file);
      EXPECT_EQ(config->json().at("tie_word_embeddings"), Json(false));
      nn::Parameters parameters(1);
      config->make(nn::Scope(parameters));
      std::vector<std::string> names;
      for (const auto& p : parameters.all()) names.push_back(p->name());
      return names;
    };
    EXPECT_EQ(tables(true), tables(false));
  }
}

std::vector<std::string> fixture_names() {
  std::vector<std::string> names;
  for (const std::string folder : {"transformer", "marian", "seq2seq"}) {
    for (const auto& entry :
         std::filesystem::directory_iterator(std::string(testing::kFixtures) + "/" + folder)) {
      if (entry.path().extension() != ".safetensors") continue;
      names.push_back(folder + "/" + entry.path().stem().string());
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

INSTANTIATE_TEST_SUITE_P(Fixtures, TransformerParity, ::testing::ValuesIn(fixture_names()),
                         [](const auto& fixture) {
                           std::string name = fixture.param;
                           std::replace(name.begin(), name.end(), '/', '_');
                           return name;
                         });

}  // namespace
}  // namespace heddle
