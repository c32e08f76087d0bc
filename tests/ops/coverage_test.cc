// Every op that training records has a case and a name without training too; each of its dropouts
// has a site of its own.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "heddle/autograd/dry_run.h"
#include "heddle/models/captioner.h"
#include "heddle/models/registry.h"
#include "heddle/models/transformer.h"
#include "heddle/nn/relative/relative_rows.h"
#include "heddle/ops/loss.h"
#include "heddle/ops/recurrent/attention_penalties.h"
#include "tests/support/op_case.h"

namespace heddle {
namespace {

const std::vector<int32_t> kTokens = {5, 6, 7, 3, 8, 3};
const Segments kTwo = Segments::from_lengths(std::vector<int64_t>{4, 2});
const std::shared_ptr<const RowIds> kRows =
    std::make_shared<const RowIds>(RowIds{{0, 0, 0, 0, 1, 1}, {0, 1, 2, 3, 0, 1}});

std::vector<std::string> tape_of_training_step(bool is_pre, const std::string& positions,
                                               const std::string& scoring = "scaled_dot") {
  TransformerConfig c;
  c.vocab_size = 20, c.d_model = 16, c.encoder_layers = c.decoder_layers = 2;
  c.encoder_attention_heads = c.decoder_attention_heads = 2;
  c.encoder_ffn_dim = c.decoder_ffn_dim = 32;
  c.normalize_before = is_pre, c.normalize_embedding = true, c.output_bias = true;
  c.position_embedding_type = positions;
  c.attention_scoring = scoring;
  if (positions == "rotary") c.activation_function = "swiglu";
  c.attention_dropout = c.activation_dropout = 0.1;
  nn::Parameters parameters(1);
  const Transformer model(nn::Scope(parameters), c);
  const nn::Run run{.dropout = {.training = true}};
  const Tensor memory = model.encode(nn::TokenRows{kTokens, &kTwo, kRows}, run);
  const Tensor h = model.decode({kTokens, &kTwo, kRows}, memory, kTwo, run);
  linear_cross_entropy(h, model.output().weight(run), model.output().bias(), kTokens, {});
  const std::vector<std::string> names = tape_names();
  clear_tape();
  return names;
}

// One image of the size that the model was made for, and one of another.
void run_images(const ImageModel& model, const nn::Run& run) {
  ImageSize own = model.facts().image_size;
  if (own.height == 0) own = {16, 16};  // detectors take any
  const bool takes_one = model.config().type == "mlp_mixer";
  const ImageSize other = takes_one ? own : ImageSize{own.height + 4, own.width + 5};
  const std::vector<ImageSize> sizes = {own, other};
  const Segments pixels = nn::image_segments(sizes);
  const std::vector<uint32_t> samples = {3, 5};
  model.forward(
      nn::ImageRows{.x = Tensor::zeros({pixels.rows(), model.facts().channels}, DType::f32),
                    .segments = &pixels,
                    .sizes = &sizes,
                    .samples = &samples},
      run);
}

// Two captions, of images of the size that the model was made for.
void run_captioner(const Captioner& model, const nn::TokenRows& tokens, const nn::Run& run) {
  const std::vector<ImageSize> sizes(2, model.images().image_size);
  const Segments pixels = nn::image_segments(sizes);
  const std::vector<uint32_t> samples = {3, 5};
  const nn::ImageRows images{
      .x = Tensor::zeros({pixels.rows(), model.images().channels}, DType::f32),
      .segments = &pixels,
      .sizes = &sizes,
      .samples = &samples};
  const Segments cells = model.memory_segments(images);
  const Captioner::Attended y =
      model.decode_attending(tokens, model.encode(images, run), cells, run);
  model.output().loss(y.h, tokens.ids, {}, run);
  if (!y.weights.defined()) return;
  unevenness(y.weights, *tokens.segments, cells);
  mean_entropy(y.weights, tokens.segments->rows());
  guided_attention_loss(y.weights, {.places = {0}, .begins = {0, 1}});
}

// One pass of training.
void run_once(const Model& model, const nn::Run& run) {
  nn::TokenRows tokens{.ids = kTokens, .segments = &kTwo, .rows = kRows};
  const nn::TokenOrder order{.steps = {1, 0, 0, 2, 0, 1},
                             .targets = Segments::from_lengths(std::vector<int64_t>{2, 1}),
                             .target_tokens = {0, 3, 5}};
  if (const auto* captioner = model.as<Captioner>()) {
    run_captioner(*captioner, tokens, run);
  } else if (const auto* images = model.as<ImageModel>()) {
    run_images(*images, run);
  } else if (const auto* translator = model.as<EncoderDecoder>()) {
    const Tensor h = translator->decode(tokens, translator->encode(tokens, run), kTwo, run);
    translator->output().loss(h, kTokens, {}, run);
  } else {
    if (model.head() == Head::ordered_token) tokens.order = &order;
    model.forward(tokens, run);
  }
}

// The tape of one pass of a model of the registry under each head that it may have.
std::vector<std::string> tape_of(const std::string& config) {
  std::vector<std::string> names;
  Json json = Json::parse(config);
  for (const HeadClass& head : read_model_config(json, "test")->heads()) {
    json["architectures"] = std::vector<std::string>{head.name};
    nn::Parameters parameters(1);
    const auto model = make_model(nn::Scope(parameters), json);
    const nn::Run run{.dropout = {.training = true}};
    run_once(*model, run);
    EXPECT_FALSE(tape_names().empty());
    if (model->heads().output && model->as<EncoderDecoder>() == nullptr) {
      const nn::TokenRows tokens{.ids = kTokens, .segments = &kTwo, .rows = kRows};
      model->heads().output->loss(model->hidden(tokens, run), kTokens, {}, run);
    }
    for (std::string& name : tape_names()) names.push_back(std::move(name));
    clear_tape();
  }
  return names;
}

// Small models of every family.
const std::vector<std::string> kFamilies = {
    R"({"model_type": "gpt2", "vocab_size": 20, "n_embd": 16, "n_layer": 2, "n_head": 2})",
    R"({"model_type": "bert", "vocab_size": 20, "hidden_size": 16, "num_hidden_layers": 2,
        "num_attention_heads": 2, "intermediate_size": 24})",
    R"({"model_type": "roberta", "vocab_size": 20, "hidden_size": 16, "num_hidden_layers": 2,
        "num_attention_heads": 2, "intermediate_size": 24})",
    R"({"model_type": "distilbert", "vocab_size": 20, "dim": 16, "n_layers": 2, "n_heads": 2,
        "hidden_dim": 24})",
    R"({"model_type": "heddle_transformer", "vocab_size": 20, "d_model": 16, "encoder_layers": 2,
        "decoder_layers": 2, "encoder_attention_heads": 2, "decoder_attention_heads": 2,
        "encoder_ffn_dim": 24, "decoder_ffn_dim": 24})",
    R"({"model_type": "marian", "vocab_size": 20, "d_model": 16, "encoder_layers": 2,
        "decoder_layers": 2, "encoder_attention_heads": 2, "decoder_attention_heads": 2,
        "encoder_ffn_dim": 24, "decoder_ffn_dim": 24})",
    R"({"model_type": "bart", "vocab_size": 20, "d_model": 16, "encoder_layers": 2,
        "decoder_layers": 2, "encoder_attention_heads": 2, "decoder_attention_heads": 2,
        "encoder_ffn_dim": 24, "decoder_ffn_dim": 24})",
    R"({"model_type": "m2m_100", "vocab_size": 20, "d_model": 16, "encoder_layers": 2,
        "decoder_layers": 2, "encoder_attention_heads": 2, "decoder_attention_heads": 2,
        "encoder_ffn_dim": 24, "decoder_ffn_dim": 24})",
    R"({"model_type": "mbart", "vocab_size": 20, "d_model": 16, "encoder_layers": 2,
        "decoder_layers": 2, "encoder_attention_heads": 2, "decoder_attention_heads": 2,
        "encoder_ffn_dim": 24, "decoder_ffn_dim": 24})",
    R"({"model_type": "t5", "vocab_size": 20, "d_model": 16, "num_layers": 2, "num_heads": 2,
        "d_kv": 8, "d_ff": 24})",
    R"({"model_type": "llama", "vocab_size": 20, "hidden_size": 16, "num_hidden_layers": 2,
        "num_attention_heads": 2, "num_key_value_heads": 1, "intermediate_size": 24})",
    R"({"model_type": "mistral", "vocab_size": 20, "hidden_size": 16, "num_hidden_layers": 2,
        "num_attention_heads": 2, "num_key_value_heads": 1, "intermediate_size": 24,
        "sliding_window": 2})",
    R"({"model_type": "qwen2", "vocab_size": 20, "hidden_size": 16, "num_hidden_layers": 2,
        "num_attention_heads": 2, "num_key_value_heads": 1, "intermediate_size": 24})",
    R"({"model_type": "qwen3", "vocab_size": 20, "hidden_size": 16, "num_hidden_layers": 2,
        "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 6,
        "intermediate_size": 24})",
    R"({"model_type": "mixtral", "vocab_size": 20, "hidden_size": 16, "num_hidden_layers": 2,
        "num_attention_heads": 2, "num_key_value_heads": 1, "intermediate_size": 24,
        "num_local_experts": 3})",
    R"({"model_type": "transfo-xl", "vocab_size": 20, "cutoffs": [4, 7], "d_model": 16, "d_embed": 16,
        "n_head": 2, "d_head": 8, "d_inner": 24, "n_layer": 2, "div_val": 2, "mem_len": 3})",
    R"({"model_type": "xlnet", "vocab_size": 20, "d_model": 16, "n_head": 2, "d_inner": 24,
        "n_layer": 2})",
    R"({"model_type": "rnn_lm", "vocab_size": 20, "embedding_size": 12, "hidden_size": 16})",
    R"({"model_type": "rnn_seq2seq", "vocab_size": 20, "embedding_size": 12, "hidden_size": 16,
        "encoder_layers": 2, "decoder_layers": 2})",
    R"({"model_type": "rnn_seq2seq", "vocab_size": 20, "embedding_size": 12, "hidden_size": 16,
        "attention_scoring": "none"})",
    R"({"model_type": "captioner", "vocab_size": 20, "embedding_size": 12, "hidden_size": 16,
        "memory_size": 8, "image_size": 8, "position_embedding_type": "learned",
        "initial_state": "mean", "backbone_config": {"model_type": "vit", "image_size": 8,
        "patch_size": 4, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
        "intermediate_size": 24, "hidden_dropout_prob": 0.1,
        "attention_probs_dropout_prob": 0.1}})",
    R"({"model_type": "captioner", "vocab_size": 20, "embedding_size": 12, "hidden_size": 16,
        "memory_size": 8, "image_size": 8, "attention_scoring": "none",
        "backbone_config": {"model_type": "resnet", "layer_type": "plain", "stem": "cifar",
        "downsample": "pool", "norm": "group", "norm_groups": 2, "embedding_size": 8,
        "hidden_sizes": [8], "depths": [0]}})",
    R"({"model_type": "captioner", "vocab_size": 20, "hidden_size": 16, "memory_size": 8,
        "image_size": 8, "decoder_type": "transformer", "decoder_layers": 2,
        "decoder_attention_heads": 2, "decoder_ffn_dim": 24, "backbone_config":
        {"model_type": "resnet", "layer_type": "plain", "stem": "cifar", "downsample": "pool",
        "norm": "group", "norm_groups": 2, "embedding_size": 8, "hidden_sizes": [8],
        "depths": [0]}})",
    R"({"model_type": "vit", "image_size": 8, "patch_size": 4, "hidden_size": 16,
        "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24,
        "hidden_dropout_prob": 0.1, "drop_path_rate": 0.2})",
    R"({"model_type": "resnet", "image_size": 8, "embedding_size": 8, "hidden_sizes": [8, 16],
        "depths": [1, 2], "layer_type": "basic", "stem": "cifar", "drop_path_rate": 0.2,
        "attention_stages": [1]})",
    R"({"model_type": "mlp_mixer", "image_size": 8, "patch_size": 4, "hidden_size": 16,
        "num_hidden_layers": 2, "hidden_dropout_prob": 0.1, "drop_path_rate": 0.2})",
    R"({"model_type": "cct", "image_size": 8, "hidden_size": 16, "intermediate_size": 24,
        "conv_width": 8, "hidden_dropout_prob": 0.1})",
    R"({"model_type": "deit", "image_size": 8, "patch_size": 4, "hidden_size": 16,
        "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24})",
    R"({"model_type": "swin", "image_size": 16, "patch_size": 2, "embed_dim": 8,
        "depths": [2, 2], "num_heads": [2, 4], "window_size": 3, "use_absolute_embeddings": true,
        "drop_path_rate": 0.2, "hidden_dropout_prob": 0.1})",
    R"({"model_type": "detr", "d_model": 16, "num_queries": 3, "encoder_layers": 2,
        "decoder_layers": 2, "encoder_attention_heads": 2, "decoder_attention_heads": 2,
        "encoder_ffn_dim": 24, "decoder_ffn_dim": 24, "dropout": 0.1,
        "backbone_config": {"model_type": "resnet", "layer_type": "basic", "norm": "group",
                            "norm_groups": 2, "embedding_size": 8, "hidden_sizes": [8],
                            "depths": [2], "drop_path_rate": 0.2}})",
    R"({"model_type": "detr", "d_model": 16, "num_queries": 3, "encoder_layers": 1,
        "decoder_layers": 2, "encoder_attention_heads": 2, "decoder_attention_heads": 2,
        "encoder_ffn_dim": 24, "decoder_ffn_dim": 24, "conditional_queries": true,
        "backbone_config": {"model_type": "resnet", "layer_type": "basic", "norm": "group",
                            "norm_groups": 2, "embedding_size": 8, "hidden_sizes": [8],
                            "depths": [1]}})"};

void expect_cases_for(const std::vector<std::string>& names) {
  static const std::set<std::string> known = [] {
    std::set<std::string> ops;
    for (const OpCase& c : op_cases()) ops.insert(c.op);
    return ops;
  }();
  EXPECT_GT(names.size(), 15u);
  for (const std::string& name : names) {
    EXPECT_TRUE(known.contains(name)) << "op '" << name << "' has no case in tests/ops";
  }
}

TEST(OpCoverage, every_op_of_a_training_step_has_a_case) {
  for (bool is_pre : {false, true}) {
    for (const char* positions : {"sinusoidal", "learned"}) {
      expect_cases_for(tape_of_training_step(is_pre, positions));
    }
  }
  for (const char* scoring : {"dot", "additive", "linear"}) {
    expect_cases_for(tape_of_training_step(true, "rotary", scoring));
  }
  std::set<std::string> types;
  for (const std::string& family : kFamilies) {
    types.insert(Json::parse(family).get_string("model_type"));
    expect_cases_for(tape_of(family));
  }
  EXPECT_EQ(types.size(), model_types().size());
}

// The names that a dry run is told.
std::vector<std::string> dry_ops_of(const OpCase& c, bool is_recording) {
  std::vector<Leaf> leaves(c.shapes.size());
  const Tensors inputs = case_inputs(c, DType::f32, leaves);
  std::vector<std::string> names;
  const DryRun dry([&](const DryOp& op) { names.emplace_back(op.name); });
  const Recording recording(is_recording);
  c.function(inputs);
  return names;
}

TEST(OpCoverage, ops_without_a_gradient_have_the_names_of_those_with_one) {
  for (const OpCase& c : op_cases()) {
    SCOPED_TRACE(c.op + " " + c.variant);
    EXPECT_EQ(dry_ops_of(c, false), dry_ops_of(c, true));
  }
}

// A small model's config with every dropout that it may have.
Json with_dropout(const std::string& family) {
  Json json = Json::parse(family);
  const Json whole = read_model_config(json, "test")->json();
  for (const auto& [key, value] : whole.as_object("test")) {
    const bool is_rate = value.is_number() || value.is_null();
    if (is_rate && key.find("drop") != key.npos) json[key] = 0.1;
  }
  return json;
}

TEST(DropoutSites, each_dropout_of_a_pass_has_a_site_of_its_own) {
  for (const std::string& family : kFamilies) {
    Json json = with_dropout(family);
    for (const HeadClass& head : read_model_config(json, "test")->heads()) {
      SCOPED_TRACE(head.name);
      json["architectures"] = std::vector<std::string>{head.name};
      nn::Parameters parameters(1);
      const auto model = make_model(nn::Scope(parameters), json);
      std::vector<std::string> sites;
      run_once(*model, {.dropout = {.training = true, .sites = &sites}});
      clear_tape();
      EXPECT_FALSE(sites.empty());
      std::ranges::sort(sites);
      const auto twice = std::ranges::adjacent_find(sites);
      EXPECT_TRUE(twice == sites.end()) << "one mask drops two things at " << *twice;
    }
  }
}

}  // namespace
}  // namespace heddle
