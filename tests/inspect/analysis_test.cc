// What models cost: the sums of the literature, and counts equal to those of models that are built.
#include "heddle/inspect/analysis.h"

#include <gtest/gtest.h>

#include <set>

#include "heddle/inspect/model_sizes.h"
#include "heddle/models/registry.h"
#include "heddle/models/transformer.h"

namespace heddle::inspect {
namespace {

constexpr int64_t kKiB = 1 << 10, kMiB = 1 << 20, kGiB = 1 << 30;

using Settings = std::vector<std::string>;

Analysis analysis_of(const std::string& name, const Settings& settings = {},
                     const Workload& w = {}) {
  return analyze(*find_size(name, settings), name, w);
}

Analysis analysis_of_json(const std::string& config, const Workload& w = {.source = 4}) {
  return analyze(*read_model_config(Json::parse(config), "test"), "test", w);
}

int64_t parameters_of(const std::string& name) {
  return analysis_of(name, {}, {.source = 4}).parameters;
}

// Of one of the layers that are called so.
int64_t layer_parameters(const Analysis& a, const std::string& part) {
  int64_t sum = 0, layers = 0;
  for (const Step& step : a.steps) {
    if (step.part == part) sum += step.parameters, layers = step.layers;
  }
  return layers == 0 ? -1 : sum / layers;
}

TEST(ModelParameters, base_and_big_of_the_paper_have_63_and_214_million) {
  const Analysis base = analysis_of("base");
  EXPECT_EQ(base.parameters, 63'082'496);
  EXPECT_EQ(layer_parameters(base, "model.encoder.layers"), 3'152'384);
  EXPECT_EQ(layer_parameters(base, "model.decoder.layers"), 4'204'032);
  EXPECT_EQ(parameters_of("big"), 214'245'376);
}

TEST(ModelParameters, published_sizes_come_out) {
  EXPECT_EQ(parameters_of("gpt2"), 124'439'808);
  EXPECT_EQ(parameters_of("gpt2-medium"), 354'823'168);
  EXPECT_EQ(parameters_of("gpt2-large"), 774'030'080);
  EXPECT_EQ(parameters_of("gpt2-xl"), 1'557'611'200);
  EXPECT_EQ(parameters_of("gpt3"), 174'604'259'328);
  // Published with 1,000 classes, here with two: 86,567,656, 304,326,632, 28,288,354, 25,557,032.
  const auto of_images = [](const std::string& name) {
    return analysis_of(name, {}, {.image = {224, 224}}).parameters;
  };
  EXPECT_EQ(of_images("vit-base"), 86'567'656 - 998 * (768 + 1));
  EXPECT_EQ(of_images("vit-large"), 304'326'632 - 998 * (1024 + 1));
  EXPECT_EQ(of_images("swin-tiny"), 28'288'354 - 998 * (768 + 1));
  EXPECT_EQ(of_images("resnet50"), 25'557'032 - 998 * (2048 + 1));
  int64_t steps = 0;  // without the statistics of batch norm
  for (const Step& step : analysis_of("resnet50", {}, {.image = {224, 224}}).steps) {
    steps += step.parameters;
  }
  EXPECT_EQ(steps, of_images("resnet50"));
}

// Four square matrices, whatever the number of heads.
TEST(ModelParameters, attention_of_width_300_has_360000_for_4_and_10_heads) {
  for (const char* heads : {"encoder_attention_heads=4", "encoder_attention_heads=10"}) {
    const auto attention = [&](const char* bias) {
      const Analysis a = analysis_of("base", {"d_model=300", heads, "decoder_attention_heads=4",
                                              "encoder_ffn_dim=1200", bias});
      const int64_t rest = 2 * 300 * 1200 + 1200 + 300 + 2 * 2 * 300;
      return layer_parameters(a, "model.encoder.layers") - rest;
    };
    EXPECT_EQ(attention("projection_bias=true"), 361'200) << heads;
    EXPECT_EQ(attention("projection_bias=false"), 360'000) << heads;
  }
  EXPECT_THROW(find_size("stack", {"d_model=300", "heads=8"}), Error);
}

// What is counted here and what a model really makes, for switches that change its parameters.
TEST(ModelParameters, counts_are_those_of_the_models_that_are_built) {
  TransformerConfig c;
  c.vocab_size = 50, c.d_model = 12, c.encoder_layers = 2, c.decoder_layers = 3;
  c.encoder_attention_heads = 2, c.decoder_attention_heads = 3;
  c.encoder_ffn_dim = 20, c.decoder_ffn_dim = 28, c.max_position_embeddings = 9;
  const auto expect_equal = [](const ModelConfig& config) {
    nn::Parameters parameters(1);
    config.make(nn::Scope(parameters));
    const Analysis a = analyze(config, "test", {.source = 4});
    EXPECT_EQ(a.parameters, parameters.elements());
    int64_t matrices = 0;
    for (const auto& p : parameters.all()) matrices += p->shape().rank() > 1 ? p->elements() : 0;
    EXPECT_EQ(a.matrix_parameters, matrices);
    int64_t steps = 0;
    for (const Step& step : a.steps) steps += step.parameters;
    EXPECT_EQ(steps, parameters.elements());
  };
  for (int bits = 0; bits < 128; ++bits) {
    c.normalize_before = bits & 1;
    c.normalize_embedding = bits & 2;
    c.projection_bias = bits & 4;
    c.output_bias = bits & 8;
    c.position_embedding_type = bits & 16 ? "learned" : "sinusoidal";
    c.share_encoder_decoder_embeddings = bits & 32;
    c.tie_word_embeddings = bits & 64;
    SCOPED_TRACE(bits);
    expect_equal(*model_config(c));
  }
  for (const char* scoring : {"dot", "additive", "linear"}) {
    for (const char* activation : {"relu", "swiglu"}) {
      c.attention_scoring = scoring, c.activation_function = activation;
      SCOPED_TRACE(fmt::format("{} {}", scoring, activation));
      expect_equal(*model_config(c));
    }
  }
  c.normalization = "rms_norm";
  expect_equal(*model_config(c));
  for (
      const char* config :
      {R"({"model_type": "gpt2", "vocab_size": 40, "n_positions": 8, "n_embd": 12, "n_layer": 2,
            "n_head": 3})",
       R"({"model_type": "gpt2", "vocab_size": 40, "n_positions": 8, "n_embd": 12, "n_layer": 2,
            "n_head": 3, "tie_word_embeddings": false, "n_inner": 20})",
       R"({"model_type": "bert", "vocab_size": 40, "hidden_size": 12, "num_hidden_layers": 2,
            "num_attention_heads": 3, "intermediate_size": 20, "max_position_embeddings": 8})",
       R"({"model_type": "llama", "vocab_size": 40, "hidden_size": 12, "num_hidden_layers": 2,
            "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 6,
            "intermediate_size": 20, "attention_bias": true, "mlp_bias": true})",
       R"({"model_type": "qwen2", "vocab_size": 40, "hidden_size": 12, "num_hidden_layers": 2,
            "num_attention_heads": 2, "num_key_value_heads": 1, "intermediate_size": 20})",
       R"({"model_type": "qwen3", "vocab_size": 40, "hidden_size": 12, "num_hidden_layers": 2,
            "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 6,
            "intermediate_size": 20, "attention_bias": true})",
       R"({"model_type": "mixtral", "vocab_size": 40, "hidden_size": 12, "num_hidden_layers": 2,
            "num_attention_heads": 2, "num_key_value_heads": 1, "intermediate_size": 20,
            "num_local_experts": 5, "tie_word_embeddings": true})",
       R"({"model_type": "transfo-xl", "vocab_size": 40, "d_model": 12, "d_embed": 12, "n_layer": 2,
            "n_head": 3, "d_head": 5, "d_inner": 20, "cutoffs": [10, 20], "div_val": 2})",
       R"({"model_type": "transfo-xl", "vocab_size": 40, "d_model": 12, "d_embed": 8, "n_layer": 2,
            "n_head": 3, "d_head": 4, "d_inner": 20, "cutoffs": [10], "div_val": 1,
            "untie_r": false, "tie_word_embeddings": false, "proj_share_all_but_first": false})",
       R"({"model_type": "transfo-xl", "vocab_size": 40, "d_model": 12, "d_embed": 12, "n_layer": 1,
            "n_head": 3, "d_head": 4, "d_inner": 20, "cutoffs": [], "div_val": 1,
            "pre_lnorm": true})",
       R"({"model_type": "xlnet", "vocab_size": 40, "d_model": 12, "n_layer": 2, "n_head": 3,
            "d_inner": 20, "tie_word_embeddings": false})"}) {
    SCOPED_TRACE(config);
    expect_equal(*read_model_config(Json::parse(config), "test"));
  }
}

TEST(Steps, stages_of_different_shapes_are_steps_of_their_own) {
  std::set<int64_t> widths;
  for (const Step& step : analysis_of("resnet50", {}, {.image = {64, 64}}).steps) {
    if (step.name.find("shortcut") != step.name.npos) widths.insert(step.out.back());
  }
  EXPECT_EQ(widths, (std::set<int64_t>{256, 512, 1024, 2048}));
}

TEST(Steps, positions_are_added_where_they_are_vectors) {
  const auto adds = [](const Analysis& a) {
    return std::any_of(a.steps.begin(), a.steps.end(),
                       [](const Step& step) { return step.name == "embedding and positions"; });
  };
  for (const char* type : {"gpt2", "bert", "llama", "transfo-xl", "xlnet"}) {
    const Analysis a = analysis_of_json(fmt::format(R"({{"model_type": "{}"}})", type));
    const std::string name = type;
    EXPECT_EQ(adds(a), name == "gpt2" || name == "bert") << type;
  }
  for (const char* positions : {"sinusoidal", "learned", "rotary", "none"}) {
    TransformerConfig c;
    c.position_embedding_type = positions;
    const std::string name = positions;
    EXPECT_EQ(adds(analyze(*model_config(c), "test", {.source = 8})),
              name == "sinusoidal" || name == "learned")
        << positions;
  }
}

// Touvron et al. 2023, section 2.2: three matrices of hidden 8d/3 are as many weights as the two of
// 4d. LLaMA 7B has 6,738,415,616 parameters, Mixtral 8x7B 46,702,792,704.
TEST(ModelParameters, gated_layers_of_8d_over_3_have_those_of_plain_ones) {
  const Analysis llama = analysis_of_json(
      R"({"model_type": "llama", "hidden_size": 384, "intermediate_size": 1024,
          "num_attention_heads": 6, "num_hidden_layers": 1})");
  EXPECT_EQ(layer_parameters(llama, "model.layers") - 4 * 384 * 384 - 2 * 384, 8 * 384 * 384);
  const auto count = [](const std::string& config) { return analysis_of_json(config).parameters; };
  EXPECT_EQ(count(R"({"model_type": "llama"})"), 6'738'415'616);
  EXPECT_EQ(count(R"({"model_type": "mixtral"})"), 46'702'792'704);
  // Qwen2-7B and Qwen3-0.6B.
  EXPECT_EQ(count(R"({"model_type": "qwen2", "vocab_size": 152064, "hidden_size": 3584,
                      "intermediate_size": 18944, "num_hidden_layers": 28,
                      "num_attention_heads": 28, "num_key_value_heads": 4})"),
            7'615'616'512);
  EXPECT_EQ(count(R"({"model_type": "qwen3", "hidden_size": 1024, "intermediate_size": 3072,
                      "num_hidden_layers": 28, "num_attention_heads": 16,
                      "num_key_value_heads": 8, "tie_word_embeddings": true})"),
            596'049'920);
}

AttentionMemory attention_of(int64_t positions, int64_t layers, int64_t heads, int64_t window = 0) {
  return analysis_of("stack",
                     {fmt::format("layers={}", layers), fmt::format("heads={}", heads),
                      fmt::format("d_model={}", 64 * heads)},
                     {.source = positions, .window = window})
      .attention;
}

TEST(AttentionMatrices, pixels_of_a_128_image_need_768_gib) {
  EXPECT_EQ(attention_of(128 * 128, 48, 16).all.f32, 768 * kGiB);
}

TEST(AttentionMatrices, patches_of_224_and_256_images_need_112_and_192_mib) {
  const AttentionMemory a = attention_of(14 * 14, 48, 16);
  EXPECT_EQ(a.entries, 38'416);
  EXPECT_EQ(a.head.f32 / kKiB, 150);
  EXPECT_EQ(a.all.f32 * 10 / kMiB, 1125);
  const AttentionMemory b = attention_of(16 * 16, 48, 16);
  EXPECT_EQ(b.entries, 65'536);
  EXPECT_EQ(b.head.f32, 256 * kKiB);
  EXPECT_EQ(b.all.f32, 192 * kMiB);
}

TEST(AttentionMatrices, windows_of_7_hold_153664_of_the_9834496_entries) {
  EXPECT_EQ(attention_of(56 * 56, 2, 3).entries, 9'834'496);
  EXPECT_EQ(attention_of(56 * 56, 2, 3, 7 * 7).entries, 153'664);
}

TEST(AttentionMatrices, a_hundred_thousand_positions_and_64_heads_need_1192_gib_in_16_bits) {
  const AttentionMemory a = attention_of(100'000, 1, 64);
  EXPECT_EQ(a.one_layer.bf16 / kGiB, 1192);
  EXPECT_EQ(a.flash.f32, 4 * 64 * 100'000);  // linear in the length
}

// Hidden 8d/3: three matrices hold what two of 4d do (Touvron et al. 2023, section 2.2).
TEST(ModelParameters, swiglu_of_8_thirds_has_those_of_a_plain_layer_of_4) {
  const auto layer = [](const Settings& settings) {
    Settings all = settings;
    all.insert(all.begin(), "d_model=768");
    return layer_parameters(analysis_of("base", all), "model.encoder.layers");
  };
  const int64_t biases = 3072 + 768;
  EXPECT_EQ(layer({"encoder_ffn_dim=2048", "activation_function=swiglu"}),
            layer({"encoder_ffn_dim=3072"}) - biases);
}

// One layer each, 3 tokens in and 2 out, width 4 in 2 heads of 2, by hand.
const Settings kSmall = {"d_model=4",         "encoder_layers=1",
                         "decoder_layers=1",  "encoder_attention_heads=2",
                         "encoder_ffn_dim=6", "decoder_attention_heads=2",
                         "decoder_ffn_dim=6", "vocab_size=5"};

Analysis small(const std::string& setting) {
  Settings settings = kSmall;
  settings.push_back(setting);
  return analysis_of("base", settings, {.source = 3, .target = 2});
}

TEST(Flops, swiglu_has_three_products_of_a_token) {
  const Analysis plain = small("activation_function=silu");
  const Analysis gated = small("activation_function=swiglu");
  // Of 3 + 2 tokens: 2 * 4 * 6 for the third matrix.
  EXPECT_EQ(gated.forward_flops - plain.forward_flops, 5 * 48);
  // Biases 6 + 4 go, 4 * 6 weights come, in each of two layers.
  EXPECT_EQ(gated.parameters - plain.parameters, 2 * (24 - 10));
  // Gate, up, silu(gate) and their product, in place of what silu was given and gave: 12 a token.
  EXPECT_EQ(gated.kept.f32 - plain.kept.f32, 4 * 5 * 12);
}

TEST(Flops, additive_scores_compute_and_keep_every_pair) {
  const Analysis dot = small("attention_scoring=dot"), sum = small("attention_scoring=additive");
  // Pairs 9 + 4 + 6, of which a causal pass by dot products leaves out one: 2 * 4 in the scores
  // and in the weighted sum.
  EXPECT_EQ(dot.attention_flops, 2 * 2 * 4 * (9 + 3 + 6));
  EXPECT_EQ(sum.attention_flops, 2 * 2 * 4 * (9 + 4 + 6));
  EXPECT_EQ(sum.decoding_flops, dot.decoding_flops);
  EXPECT_EQ(sum.parameters - dot.parameters, 3 * 2 * 2);  // a v of 2 for each of 2 heads
  // q + k and its tanh, 4 wide, in f32 in both formats; in bf16 an f32 copy of each v too. The
  // queries to the source, 4 wide, of 2 tokens, are not read again; the others lie beside values.
  const int64_t sums = 4 * 2 * 4 * 19;
  EXPECT_EQ(sum.kept.f32 - dot.kept.f32, sums - 4 * 2 * 4);
  EXPECT_EQ(sum.kept.bf16 - dot.kept.bf16, sums + 4 * 3 * 2 * 2 - 2 * 2 * 4);
  EXPECT_FALSE(sum.attention.has_flash);
  EXPECT_EQ(sum.attention.flash.f32, sum.attention.all.f32);
  EXPECT_EQ(sum.training_flash_flops, sum.training_flops);
}

TEST(Flops, linear_scores_have_a_product_a_token_and_none_a_pair) {
  const Analysis dot = small("attention_scoring=dot"), sum = small("attention_scoring=linear");
  // What is left of the square is the weighted sum.
  EXPECT_EQ(sum.attention_flops, 2 * 4 * (9 + 4 + 6));
  // Shares of 3 + 3, 2 + 2 and 2 + 3 tokens: a product 4 wide each.
  const int64_t shares = 2 * 4 * (6 + 4 + 5);
  EXPECT_EQ(sum.forward_flops - sum.attention_flops,
            dot.forward_flops - dot.attention_flops + shares);
  EXPECT_EQ(sum.parameters - dot.parameters, 3 * 2 * 4);  // a weight of 2 * 2 for each of 2 heads
}

// Four products for attention beside the four projections, two for the feed-forward layers.
TEST(Flops, a_layer_is_24_n_d2_and_4_n2_d_where_the_inner_width_is_4d) {
  const int64_t n = 10, d = 16;
  const Analysis a =
      analysis_of("stack", {"layers=3", "heads=4", "d_model=16", "ffn_dim=64"}, {.source = n});
  EXPECT_EQ(a.forward_flops, 3 * (24 * n * d * d + 4 * n * n * d));
  EXPECT_EQ(a.attention_flops, 3 * 4 * n * n * d);
  EXPECT_EQ(a.training_flops, 3 * a.forward_flops);
  EXPECT_EQ(a.training_flash_flops - a.training_flops, a.attention_flops / 2);
}

TEST(Flops, a_causal_pass_is_the_sum_of_its_tokens_over_caches) {
  const Settings settings = {"layers=2",   "heads=2",     "d_model=8",
                             "ffn_dim=16", "causal=true", "vocab_size=11"};
  const int64_t n = 7, d = 8, linear = 2 * 2 * (4 * d * d + 2 * d * 16) + 2 * d * 11;
  int64_t by_hand = 0, passes = 0;
  for (int64_t t = 1; t <= n; ++t) {
    by_hand += linear + 2 * 4 * t * d;  // token t sees t positions
    passes += by_hand;                  // all tokens so far again
  }
  const Analysis a = analysis_of("stack", settings, {.source = n});
  EXPECT_EQ(a.forward_flops, by_hand);
  EXPECT_EQ(a.decoding_flops, by_hand);
  EXPECT_DOUBLE_EQ(a.uncached_decoding_flops, static_cast<double>(passes));
}

TEST(Caches, a_token_keeps_a_key_and_a_value_in_every_layer) {
  const Analysis a = analysis_of("base", {}, {.batch = 2, .source = 30, .target = 20});
  EXPECT_EQ(a.cache_token.f32, 4 * 6 * 2 * 512);
  EXPECT_EQ(a.cache_source.bf16, 2 * 6 * 2 * 512);
  EXPECT_EQ(a.cache.f32, 2 * 50 * a.cache_token.f32);
}

TEST(Analysis, bert_writes_nothing_and_has_no_cache) {
  const Analysis a = analysis_of("bert-base");
  EXPECT_EQ(a.workload.source, 512);
  EXPECT_EQ(a.decoding_flops, 0);
  EXPECT_EQ(a.cache.f32, 0);
}

void expect_error(ErrorKind kind, const std::string& part, const std::function<void()>& f) {
  try {
    f();
    FAIL() << "no error; expected " << part;
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), kind) << e.what();
    EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what();
  }
}

TEST(Analysis, bad_names_fields_and_sizes_are_said) {
  expect_error(ErrorKind::usage, "did you mean 'gpt2-large'?", [] { find_size("gpt2-lage"); });
  expect_error(ErrorKind::usage, "did you mean 'd_model'?",
               [] { find_size("base", {"d_modl=3"}); });
  expect_error(ErrorKind::usage, "FIELD=VALUE", [] { find_size("base", {"d_model"}); });
  expect_error(ErrorKind::data, "7 heads",
               [] { find_size("base", {"encoder_attention_heads=7"}); });
  expect_error(ErrorKind::data, "1024 learned positions",
               [] { analysis_of("gpt2", {}, {.source = 1025}); });
  expect_error(ErrorKind::usage, "batch is 0", [] { analysis_of("base", {}, {.batch = 0}); });
  expect_error(ErrorKind::data, "64 bits",
               [] { analysis_of("base", {}, {.batch = 1 << 20, .source = 1 << 24}); });
  expect_error(ErrorKind::data, "64 bits", [] {
    analysis_of("stack", {"heads=1", "d_model=4000000000000"});
  });
}

TEST(LayerCosts, formulas_are_those_of_table_1) {
  const auto costs = layer_costs({.n = 1000, .d = 10, .kernel = 3, .reach = 50});
  ASSERT_EQ(costs.size(), 4u);
  EXPECT_EQ(costs[0].operation_count, 1000 * 100);
  EXPECT_EQ(costs[0].sequential_count, 1000);
  EXPECT_EQ(costs[0].path_count, 1000);
  EXPECT_EQ(costs[1].operation_count, 3 * 1000 * 100);
  EXPECT_EQ(costs[1].path_count, 7);  // 3^6 < 1000 <= 3^7
  EXPECT_EQ(costs[2].operation_count, 1e6 * 10);
  EXPECT_EQ(costs[2].path_count, 1);
  EXPECT_EQ(costs[3].operation_count, 50 * 1000 * 10);
  EXPECT_EQ(costs[3].path_count, 20);
}

TEST(LayerCosts, a_power_of_the_kernel_needs_no_further_layer) {
  EXPECT_EQ(layer_costs({.n = 243, .d = 1, .kernel = 3})[1].path_count, 5);
  EXPECT_EQ(layer_costs({.n = 1, .d = 1, .kernel = 3})[1].path_count, 1);
}

TEST(LayerCosts, kernel_of_1_and_no_positions_are_refused) {
  expect_error(ErrorKind::usage, "kernel is 1", [] { layer_costs({.kernel = 1}); });
  expect_error(ErrorKind::usage, "at least 1", [] { layer_costs({.n = 0}); });
}

}  // namespace
}  // namespace heddle::inspect
