// Each switch of the encoder-decoder: right gradients, and a model that comes back from its files.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "heddle/base/files/files.h"
#include "heddle/infer/loading/loaded_model.h"
#include "heddle/infer/words.h"
#include "heddle/ops/loss.h"
#include "tests/base/temporary.h"
#include "tests/infer/plain_decoding.h"

namespace heddle::testing {
namespace {

struct Switch {
  std::string name;
  std::function<void(TransformerConfig&)> change;
};

class Switches : public ::testing::TestWithParam<Switch> {
 protected:
  static TransformerConfig config() {
    TransformerConfig c = small_config();
    GetParam().change(c);
    return c;
  }
};

// The loss along each parameter's gradient grows by the gradient's squared length.
TEST_P(Switches, every_gradient_is_right) {
  TransformerConfig c = config();
  c.encoder_layers = c.decoder_layers = 1;
  if (c.activation_function == "relu") c.activation_function = "gelu";  // no kinks
  c.d_model = 16, c.encoder_ffn_dim = c.decoder_ffn_dim = 12;
  SmallModel m(c);
  const Ids source = {5, 9, 8, 3, 7, 3}, target_in = {2, 6, 11, 2, 10},
            target_out = {6, 11, 3, 10, 3};
  const Segments from = Segments::from_lengths(std::vector<int64_t>{4, 2});
  const Segments to = Segments::from_lengths(std::vector<int64_t>{3, 2});
  const auto loss = [&] {
    const nn::Run run;
    const Tensor memory = m.model.encode(nn::TokenRows{source, &from, nullptr}, run);
    const Tensor h = m.model.decode({target_in, &to, nullptr}, memory, from, run);
    return linear_cross_entropy(h, m.model.output().weight(run), m.model.output().bias(),
                                target_out, {})
        .loss;
  };
  backward(loss());
  for (auto& p : m.parameters.all()) {
    ASSERT_TRUE(p->grad().defined()) << p->name();
    const auto g = p->grad().to_floats();
    double squares = 0;
    for (const float x : g) squares += double{x} * x;
    if (squares < 1e-4) {  // too flat for differences in f32
      // A bias of keys moves all scores alike, and linear ones have no queries.
      const bool has_queries = GetParam().name != "linear";
      EXPECT_TRUE(p->name().ends_with("k_proj.bias") ||
                  (!has_queries && p->name().find("encoder_attn.q_proj.") != std::string::npos))
          << p->name() << " " << squares;
      continue;
    }
    const auto step = static_cast<float>(2e-3 / std::sqrt(squares));
    const auto moved = [&](float by) {
      const NoGrad off;
      const Tensor before = p->value().clone();
      for (size_t i = 0; i < g.size(); ++i) p->value().data<float>()[i] += by * g[i];
      p->changed(true);
      const double value = loss().item();
      std::copy_n(before.data<float>(), g.size(), p->value().data<float>());
      p->changed(true);
      return value;
    };
    const double slope = (moved(step) - moved(-step)) / (2 * step);
    EXPECT_NEAR(slope / squares, 1, 0.05) << p->name();
  }
}

TEST_P(Switches, model_comes_back_from_its_files) {
  const TemporaryFolder folder;
  const SmallModel m(config());
  save_model(folder.path(), *m.made, m.parameters);
  const LoadedModel again = load_model(folder.path());
  EXPECT_TRUE(diff_fields(m.config, config_of(again)).empty());
  const auto sources = random_sentences(8, 6, 40);
  expect_same(translate_ids(again.translator(), sources, {.search = {.beam = 2}}),
              translate_ids(m.model, sources, {.search = {.beam = 2}}));
  const auto maps = cross_attention_maps(again.translator(), sources, sources);
  for (int64_t i = 0; i < maps[0].size(0); ++i) {
    double sum = 0;
    for (int64_t j = 0; j < maps[0].size(1); ++j) {
      sum += maps[0].data<float>()[i * maps[0].size(1) + j];
    }
    EXPECT_NEAR(sum, 1, 1e-5);
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, Switches,
    ::testing::Values(
        Switch{"scaled_dot", [](TransformerConfig&) {}},
        Switch{"dot", [](TransformerConfig& c) { c.attention_scoring = "dot"; }},
        Switch{"additive", [](TransformerConfig& c) { c.attention_scoring = "additive"; }},
        Switch{"linear", [](TransformerConfig& c) { c.attention_scoring = "linear"; }},
        Switch{"rotary", [](TransformerConfig& c) { c.position_embedding_type = "rotary"; }},
        Switch{"learned", [](TransformerConfig& c) { c.position_embedding_type = "learned"; }},
        Switch{"none", [](TransformerConfig& c) { c.position_embedding_type = "none"; }},
        Switch{"swiglu", [](TransformerConfig& c) { c.activation_function = "swiglu"; }},
        Switch{"separate_vocabularies",
               [](TransformerConfig& c) {
                 c.share_encoder_decoder_embeddings = false;
                 c.decoder_vocab_size = 43;
               }},
        Switch{"rotary_additive_swiglu_pre_norm",
               [](TransformerConfig& c) {
                 c.position_embedding_type = "rotary";
                 c.attention_scoring = "additive";
                 c.activation_function = "swiglu";
                 c.normalize_before = true;
               }}),
    [](const auto& p) { return p.param.name; });

TEST(Config, file_from_before_a_switch_was_there_means_what_it_meant) {
  const TemporaryFolder folder;
  const SmallModel m(small_config());
  save_model(folder.path(), *m.made, m.parameters);
  const std::string path = join_path(folder.path(), kConfigName);
  const Json now = Json::load(path);
  Json old = Json::object();
  for (const auto& [key, value] : now.as_object()) {
    const bool is_new =
        key == "attention_scoring" || key == "rope_theta" || key == "decoder_vocab_size";
    if (!is_new) old[key] = value;
  }
  write_file_atomic(path, old.dump(2));
  EXPECT_TRUE(diff_fields(m.config, config_of(load_model(folder.path()))).empty());
}

TEST(Config, switches_that_do_not_fit_together_are_data_errors) {
  TransformerConfig c = small_config();
  c.decoder_vocab_size = 50;
  expect_error(ErrorKind::data, {"share_encoder_decoder_embeddings"}, [&] { c.check("x"); });
  TransformerConfig odd = small_config();
  odd.d_model = 12, odd.position_embedding_type = "rotary";  // heads of 3
  expect_error(ErrorKind::data, {"rotary", "3 wide"}, [&] { odd.check("x"); });
}

}  // namespace
}  // namespace heddle::testing
