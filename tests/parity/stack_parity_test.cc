// GPT-2 and BERT against transformers in float64: whole model directories loaded as they are.
#include <gtest/gtest.h>

#include <functional>

#include "heddle/base/files/files.h"
#include "heddle/infer/forward.h"
#include "heddle/infer/loading/loaded_model.h"
#include "heddle/ops/elementwise.h"
#include "heddle/ops/embedding.h"
#include "heddle/ops/loss.h"
#include "heddle/ops/moe.h"
#include "heddle/train/tasks/losses.h"
#include "tests/base/temporary.h"
#include "tests/parity/comparison.h"
#include "tests/support/places.h"

namespace heddle {
namespace {

// As in transformer_parity_test.cc. Worst seen: 9.8e-7 in f32; in bf16 2.3e-2 of states, 0.18 of
// gradients.
constexpr double kF32 = 2e-5, kBf16 = 6e-2, kBf16Gradients = 0.4;

const std::vector<std::string> kResults = {"hidden_state", "attentions.", "logits", "pooler_output",
                                           "grad.",        "loss",        "_ids",   "_mask"};

// How the weights of a checkpoint may be named.
using Rename = std::function<std::string(const std::string&)>;
std::string unchanged(const std::string& name) { return name; }

// A fixture, and the model directory that holds its config and weights.
class StackFixture {
 public:
  explicit StackFixture(const std::string& name)
      : file(SafetensorsFile::open(std::string(testing::kFixtures) + "/" + name + ".safetensors")) {
  }

  // The weights under other names, beside `more`.
  LoadedModel load(const Rename& rename = unchanged, std::vector<NamedTensorView> more = {}) {
    std::vector<NamedTensorView> views = std::move(more);
    const std::set<std::string> results = named(file, kResults);
    for (const std::string& name : file.names()) {
      if (results.contains(name)) continue;
      const StoredTensor& info = file.info(name);
      const std::string other = rename(name);
      if (!other.empty()) views.push_back({other, info.dtype, info.shape, info.bytes});
    }
    dir_.write("config.json", file.metadata().at("config"));
    write_safetensors(path("model.safetensors"), views);
    return load_model(dir_.path());
  }

  // The loaded model's config with one key changed.
  void change_config(const std::string& key, const Json& value) {
    load();
    Json config = Json::load(path("config.json"));
    config[key] = value;
    dir_.write("config.json", config.dump());
  }

  std::string path(const std::string& name) const { return dir_ / name; }
  const std::string& folder() const { return dir_.path(); }

  SafetensorsFile file;

 private:
  TemporaryFolder dir_;
};

std::string report_of(const StackFixture& f, const Model& model, DType precision,
                      double tolerance) {
  const std::string out = f.path("out.safetensors");
  forward_tensors(model, f.file, out, {.all = true, .precision = precision});
  const SafetensorsFile actual = SafetensorsFile::open(out);
  Comparison comparison(f.file, tolerance);
  for (const std::string& name : actual.names()) {
    EXPECT_EQ(actual.info(name).shape, f.file.info(name).shape) << name;
    comparison.add(name, floats(actual, name));
  }
  EXPECT_EQ(comparison.names(),
            named(f.file, {"hidden_state", "attentions.", "logits", "pooler_output"}));
  ::testing::Test::RecordProperty("worst_relative_error",
                                  fmt::format("{:.2e}", comparison.worst()));
  return comparison.report();
}

class StackParity : public ::testing::TestWithParam<const char*> {};

TEST_P(StackParity, every_output_matches_transformers) {
  StackFixture f(GetParam());
  EXPECT_EQ(report_of(f, *f.load().model, DType::f32, kF32), "");
}

// Without mixtures: rounded to 8 bits, some of their tokens go to other experts.
class StackParityInBf16 : public StackParity {};

TEST_P(StackParityInBf16, every_output_matches_transformers) {
  StackFixture f(GetParam());
  EXPECT_EQ(report_of(f, *f.load().model, DType::bf16, kBf16), "");
}

TEST_P(StackParity, names_with_and_without_the_base_load_alike) {
  StackFixture f(GetParam());
  const LoadedModel expected = f.load();
  const std::string base = expected.model->names().base + ".";
  const LoadedModel other = f.load([&](const std::string& name) {
    return name.starts_with(base) ? name.substr(base.size()) : base + name;
  });
  for (size_t i = 0; i < expected.parameters.all().size(); ++i) {
    EXPECT_EQ(other.parameters.all()[i]->value().to_floats(),
              expected.parameters.all()[i]->value().to_floats());
  }
}

TEST_P(StackParity, saved_model_has_the_tensors_of_the_checkpoint_bit_for_bit) {
  StackFixture f(GetParam());
  const LoadedModel model = f.load();
  const std::string folder = f.path("again");
  save_model(folder, *model.model, model.parameters);
  const SafetensorsFile saved = SafetensorsFile::open(folder + "/model.safetensors");
  const std::set<std::string> results = named(f.file, kResults);
  EXPECT_EQ(saved.names().size() + results.size(), f.file.names().size());
  for (const std::string& name : saved.names()) {
    EXPECT_EQ(saved.info(name).shape, f.file.info(name).shape) << name;
    EXPECT_EQ(floats(saved, name), floats(f.file, name)) << name;
  }
  EXPECT_EQ(report_of(f, *load_model(folder).model, DType::f32, kF32), "");
}

// As transformers 5: files of several tools hold a table of their own beside a config that ties.
TEST(TiedOutput, a_table_that_differs_is_used_whatever_the_config_says) {
  for (const char* name : {"gpt2/untied", "hub/bert_words_untied", "hub/llama_grouped", "hub/qwen3",
                           "hub/roberta_words_untied", "hub/distilbert_words_untied"}) {
    SCOPED_TRACE(name);
    StackFixture f(name);
    f.change_config("tie_word_embeddings", true);
    ::testing::internal::CaptureStderr();
    const LoadedModel model = load_model(f.folder());
    EXPECT_NE(::testing::internal::GetCapturedStderr().find("another table than the embeddings"),
              std::string::npos);
    EXPECT_EQ(model.model->config().json().at("tie_word_embeddings"), Json(false));
    EXPECT_EQ(report_of(f, *model.model, DType::f32, kF32), "");
  }
}

TEST(TiedOutput, a_table_that_is_there_twice_stays_one) {
  StackFixture f("hub/llama_tied");
  const StoredTensor table = f.file.info("model.embed_tokens.weight");
  ::testing::internal::CaptureStderr();
  const LoadedModel model =
      f.load(unchanged, {NamedTensorView{"lm_head.weight", table.dtype, table.shape, table.bytes}});
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(model.model->config().json().at("tie_word_embeddings"), Json(true));
  EXPECT_EQ(report_of(f, *model.model, DType::f32, kF32), "");
}

TEST(TiedOutput, one_of_its_own_that_is_missing_is_named_where_the_class_has_one) {
  StackFixture f("seq2seq/bart_untied");
  const Rename without = [](const std::string& name) {
    return name == "lm_head.weight" || name == "labels" ? "" : name;
  };
  expect_error(ErrorKind::data, {"lm_head.weight"}, [&] { f.load(without); });
  Json config = Json::load(f.path("config.json"));
  config["architectures"] = std::vector<std::string>{"BartModel"};
  write_file_atomic(f.path("config.json"), config.dump());
  const LoadedModel bare = load_model(f.folder());
  std::set<std::string> tables;
  for (const auto& p : bare.parameters.all()) {
    if (p->name().ends_with("embed_tokens.weight")) tables.insert(p->name());
  }
  EXPECT_EQ(tables.size(), 2U);
}

const char* const kFixtureNames[] = {"gpt2/tied",
                                     "gpt2/untied",
                                     "gpt2/unscaled",
                                     "bert/gelu",
                                     "bert/one_head",
                                     "hub/llama_grouped",
                                     "hub/llama_tied",
                                     "hub/llama_classes",
                                     "hub/mistral_window",
                                     "hub/qwen2_window",
                                     "hub/qwen3",
                                     "hub/qwen3_window",
                                     "hub/gpt2_classes",
                                     "hub/bert_words",
                                     "hub/bert_words_untied",
                                     "hub/bert_pretraining",
                                     "hub/bert_classes",
                                     "hub/bert_tags",
                                     "hub/roberta",
                                     "hub/roberta_words",
                                     "hub/roberta_classes",
                                     "hub/distilbert",
                                     "hub/distilbert_words",
                                     "hub/distilbert_classes",
                                     "hub/bert_next",
                                     "hub/roberta_words_untied",
                                     "hub/distilbert_words_untied"};

std::string name_of(const ::testing::TestParamInfo<const char*>& fixture) {
  std::string name = fixture.param;
  std::replace(name.begin(), name.end(), '/', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Fixtures, StackParity, ::testing::ValuesIn(kFixtureNames), name_of);
INSTANTIATE_TEST_SUITE_P(Mixtures, StackParity,
                         ::testing::Values("hub/mixtral", "hub/mixtral_window"), name_of);
INSTANTIATE_TEST_SUITE_P(Fixtures, StackParityInBf16, ::testing::ValuesIn(kFixtureNames), name_of);

// Sentence encoders and taggers are often saved so (add_pooling_layer=False).
class WithoutPooler : public ::testing::TestWithParam<const char*> {};

TEST_P(WithoutPooler, states_are_given_alone_and_saved_again_so) {
  StackFixture f(GetParam());
  const Rename drop = [](const std::string& name) {
    return name.starts_with("pooler.") ? "" : name;
  };
  const LoadedModel model = f.load(drop);
  const std::string folder = f.path("again"), out = f.path("out.safetensors");
  save_model(folder, *model.model, model.parameters);
  for (const LoadedModel& m : {f.load(drop), load_model(folder)}) {
    forward_tensors(*m.model, f.file, out, {});
    const SafetensorsFile actual = SafetensorsFile::open(out);
    EXPECT_EQ(actual.names(), std::vector<std::string>{"last_hidden_state"});
    Comparison comparison(f.file, kF32);
    comparison.add("last_hidden_state", floats(actual, "last_hidden_state"));
    EXPECT_EQ(comparison.report(), "");
  }
  EXPECT_FALSE(
      SafetensorsFile::open(folder + "/model.safetensors").contains("pooler.dense.weight"));
}

TEST_P(WithoutPooler, half_a_pooler_is_a_data_error_that_names_the_rest) {
  StackFixture f(GetParam());
  expect_error(ErrorKind::data, {"missing: pooler.dense.bias [24]"}, [&] {
    f.load([](const std::string& name) { return name == "pooler.dense.bias" ? "" : name; });
  });
}

INSTANTIATE_TEST_SUITE_P(Fixtures, WithoutPooler, ::testing::Values("bert/gelu", "hub/roberta"),
                         [](const auto& fixture) {
                           return std::string(fixture.param).substr(0, 4) == "bert" ? "bert"
                                                                                    : "roberta";
                         });

class Gpt2Gradients : public ::testing::TestWithParam<const char*> {
 protected:
  void compare(DType compute, double tolerance) {
    StackFixture f(GetParam());
    LoadedModel stack = f.load();
    const LanguageModel& model = *stack.model->as<LanguageModel>();
    std::vector<int32_t> ids, position_ids;
    std::vector<int64_t> lengths(f.file.info("input_ids").shape[0]);
    const int64_t time = f.file.info("input_ids").shape[1];
    const std::vector<int64_t> all = integers(f.file, "input_ids");
    const std::vector<int64_t> mask = integers(f.file, "attention_mask");
    for (size_t cell = 0; cell < all.size(); ++cell) {
      if (mask[cell] == 0) continue;
      ids.push_back(static_cast<int32_t>(all[cell]));
      position_ids.push_back(static_cast<int32_t>(cell % time));
      ++lengths[cell / time];
    }
    const Segments segments = Segments::from_lengths(lengths);
    nn::Run run;
    run.compute = compute;
    const train::LossSums sums = train::accumulate_gradients(
        model, {.ids = ids, .segments = &segments, .position_ids = position_ids}, run);
    const auto tokens = static_cast<float>(sums.predicted);
    Comparison comparison(f.file, tolerance);
    comparison.add("loss", {static_cast<float>(sums.loss) / tokens});
    for (auto& p : stack.parameters.all()) {
      ASSERT_TRUE(p->grad().defined()) << p->name() << " has no gradient";
      for (const nn::Part& part : p->parts()) {
        std::vector<float> grad = part_of(p->grad(), part);
        for (float& g : grad) g /= tokens;  // theirs is of the mean
        comparison.add("grad." + part.name, grad);
      }
    }
    EXPECT_EQ(comparison.report(), "");
    EXPECT_EQ(comparison.names(), named(f.file, {"grad.", "loss"}));
    RecordProperty("worst_relative_error", fmt::format("{:.2e}", comparison.worst()));
  }
};

TEST_P(Gpt2Gradients, loss_and_every_gradient_match_transformers) { compare(DType::f32, kF32); }
TEST_P(Gpt2Gradients, loss_and_every_gradient_in_bf16_match_transformers) {
  compare(DType::bf16, kBf16Gradients);
}

INSTANTIATE_TEST_SUITE_P(Fixtures, Gpt2Gradients,
                         ::testing::Values("gpt2/tied", "gpt2/untied", "gpt2/unscaled",
                                           "hub/llama_grouped", "hub/llama_tied",
                                           "hub/mistral_window", "hub/qwen2_window", "hub/qwen3"),
                         [](const auto& fixture) {
                           const std::string name = fixture.param;
                           return name.substr(name.find('/') + 1);
                         });

// Rows of the tokens that the mask leaves, and their labels; -1: none is asked for.
struct LabelledRows {
  std::vector<int32_t> ids, position_ids, types, labels;
  Segments segments;

  explicit LabelledRows(const SafetensorsFile& file) {
    const auto read = [&](const char* name) {
      return file.find(name) == nullptr ? std::vector<int64_t>() : integers(file, name);
    };
    const std::vector<int64_t> all = read("input_ids"), mask = read("attention_mask");
    const std::vector<int64_t> type = read("token_type_ids"), label = read("label_ids");
    const int64_t time = file.info("input_ids").shape[1];
    std::vector<int64_t> lengths(file.info("input_ids").shape[0]);
    const bool is_by_word = label.size() == all.size();
    for (size_t cell = 0; cell < all.size(); ++cell) {
      if (mask[cell] == 0) continue;
      ids.push_back(static_cast<int32_t>(all[cell]));
      position_ids.push_back(static_cast<int32_t>(cell % time));
      types.push_back(static_cast<int32_t>(type[cell]));
      if (is_by_word) labels.push_back(static_cast<int32_t>(std::max<int64_t>(-1, label[cell])));
      ++lengths[cell / time];
    }
    if (!is_by_word) labels.assign(label.begin(), label.end());
    segments = Segments::from_lengths(lengths);
  }
};

// The mean of the losses of the rows that count.
Tensor mean_loss(const Tensor& logits, const std::vector<int32_t>& labels) {
  const auto count = std::count_if(labels.begin(), labels.end(), [](int32_t l) { return l >= 0; });
  return cross_entropy(logits, labels, {.grad_scale = 1 / static_cast<float>(count)}).loss;
}

// As training computes it: tokens are predicted for the masked rows alone.
Tensor loss_of(const Model& model, const LabelledRows& rows, const SafetensorsFile& file) {
  const nn::Run run;
  const nn::TokenRows tokens{.ids = rows.ids,
                             .segments = &rows.segments,
                             .position_ids = rows.position_ids,
                             .types = rows.types};
  const Tensor h = model.hidden(tokens, run);
  const Heads& heads = model.heads();
  if (heads.token_classes) return mean_loss(heads.token_classes(h, tokens, run), rows.labels);
  if (heads.sequence_classes) return mean_loss(heads.sequence_classes(h, tokens, run), rows.labels);
  std::vector<int32_t> masked, labels;
  for (size_t r = 0; r < rows.labels.size(); ++r) {
    if (rows.labels[r] < 0) continue;
    masked.push_back(static_cast<int32_t>(r));
    labels.push_back(rows.labels[r]);
  }
  const Tensor asked = heads.transform(gather_rows(h, masked), run);
  const Tensor loss =
      linear_cross_entropy(asked, heads.output->weight(run), heads.output->bias(), labels,
                           {.grad_scale = 1 / static_cast<float>(labels.size())})
          .loss;
  if (!heads.next_sentence) return loss;
  const std::vector<int64_t> follows = integers(file, "next_sentence_label_ids");
  return add(loss,
             mean_loss(heads.next_sentence(h, tokens, run), {follows.begin(), follows.end()}));
}

class BertGradients : public ::testing::TestWithParam<const char*> {};

TEST_P(BertGradients, loss_and_every_gradient_match_transformers) {
  StackFixture f(GetParam());
  LoadedModel stack = f.load();
  const LabelledRows rows(f.file);
  const Tensor loss = loss_of(*stack.model, rows, f.file);
  Comparison comparison(f.file, kF32);
  comparison.add("loss", loss.to_floats());
  backward(loss);
  for (auto& p : stack.parameters.all()) {
    ASSERT_TRUE(p->grad().defined()) << p->name() << " has no gradient";
    // That of the key's bias is rounding: a softmax does not see what is added to all its scores.
    for (const nn::Part& part : p->parts()) {
      const double scale = part.name.ends_with("key.bias") ? 1 : 0;
      comparison.add("grad." + part.name, part_of(p->grad(), part), scale);
    }
  }
  EXPECT_EQ(comparison.report(), "");
  EXPECT_EQ(comparison.names(), named(f.file, {"grad.", "loss"}));
}

INSTANTIATE_TEST_SUITE_P(Fixtures, BertGradients,
                         ::testing::Values("hub/bert_words", "hub/bert_pretraining",
                                           "hub/bert_classes", "hub/bert_tags"),
                         [](const auto& fixture) {
                           return std::string(fixture.param).substr(sizeof "hub");
                         });

// load_balancing_loss_func() of transformers, over two layers and the tokens that its mask leaves.
TEST(MixtureOfExperts, loss_that_balances_and_its_gradient_match_transformers) {
  const SafetensorsFile file =
      SafetensorsFile::open(std::string(testing::kFixtures) + "/hub/balance_loss.safetensors");
  std::vector<Leaf> leaves(2);
  std::vector<Tensor> logits;
  for (size_t i = 0; i < leaves.size(); ++i) {
    const std::string name = fmt::format("router_logits.{}", i);
    const std::vector<int64_t>& sizes = file.info(name).shape;
    logits.push_back(Tensor::from(floats(file, name), {sizes[0], sizes[1]}).with_leaf(&leaves[i]));
  }
  const Tensor loss = balance_loss(logits, 2);
  Comparison comparison(file, 1e-6);  // f32 on both sides
  comparison.add("loss", loss.to_floats());
  backward(loss);
  for (size_t i = 0; i < leaves.size(); ++i) {
    comparison.add(fmt::format("grad.router_logits.{}", i), leaves[i].grad.to_floats());
  }
  EXPECT_EQ(comparison.report(), "");
  EXPECT_EQ(comparison.names(), named(file, {"grad.", "loss"}));
}

// --- checkpoints as other programs leave them ----------------------------------------------------

TEST(Gpt2Checkpoint, causal_mask_buffers_and_a_second_name_of_the_tied_table_are_no_error) {
  StackFixture f("gpt2/tied");
  const std::vector<uint8_t> mask(12 * 12, 1);
  const StoredTensor& table = f.file.info("transformer.wte.weight");
  const LoadedModel model =
      f.load(unchanged, {{"transformer.h.0.attn.bias",
                          DType::boolean,
                          {1, 1, 12, 12},
                          std::as_bytes(std::span(mask))},
                         {"lm_head.weight", table.dtype, table.shape, table.bytes}});
  EXPECT_EQ(report_of(f, *model.model, DType::f32, kF32), "");
}

TEST(Gpt2Checkpoint, tied_table_under_the_name_of_the_head_alone_is_found) {
  StackFixture f("gpt2/tied");
  const LoadedModel model = f.load([](const std::string& name) {
    return name == "transformer.wte.weight" ? "lm_head.weight" : name;
  });
  EXPECT_EQ(report_of(f, *model.model, DType::f32, kF32), "");
}

TEST(BertCheckpoint, gamma_and_beta_are_the_old_names_of_the_norms) {
  StackFixture f("bert/gelu");
  const LoadedModel model = f.load([](const std::string& name) {
    const size_t norm = name.find("LayerNorm.");
    if (norm == std::string::npos) return name;
    return name.substr(0, norm) + (name.ends_with("weight") ? "LayerNorm.gamma" : "LayerNorm.beta");
  });
  EXPECT_EQ(report_of(f, *model.model, DType::f32, kF32), "");
}

TEST(Gpt2Checkpoint, missing_and_unused_tensors_are_listed_with_their_shapes) {
  StackFixture f("gpt2/tied");
  expect_error(
      ErrorKind::data,
      {"missing: transformer.h.1.attn.c_attn.weight [24, 72]", "not used by the model: h.2.odd"},
      [&] {
        f.load([](const std::string& name) {
          return name == "transformer.h.1.attn.c_attn.weight" ? "h.2.odd" : name;
        });
      });
}

TEST(Gpt2Checkpoint, config_that_asks_for_more_than_the_file_holds_is_refused_before_memory_is) {
  StackFixture f("gpt2/tied");
  f.change_config("n_embd", 999'999);
  expect_error(ErrorKind::data, {"is it the config of this model?"},
               [&] { load_model(f.folder()); });
}

TEST(Gpt2Checkpoint, fields_that_do_not_fit_or_are_not_supported_are_refused_by_name) {
  StackFixture f("gpt2/tied");
  f.change_config("add_cross_attention", true);
  expect_error(ErrorKind::data, {"config.json", "add_cross_attention"},
               [&] { load_model(f.folder()); });
  f.change_config("n_head", 5);
  expect_error(ErrorKind::data, {"24", "5 heads"}, [&] { load_model(f.folder()); });
  f.change_config("activation_function", "square");
  expect_error(ErrorKind::data, {"activation_function", "square"}, [&] { load_model(f.folder()); });
}

TEST(ModelRegistry, unknown_type_names_the_known_ones) {
  StackFixture f("gpt2/tied");
  f.change_config("model_type", "gpt3");
  expect_error(ErrorKind::data, {"'gpt3'", "bert, captioner, cct, deit, detr, distilbert, gpt2"},
               [&] { is_translator(f.folder()); });
}

}  // namespace
}  // namespace heddle
