// Fine-tuning: adapters, chosen and frozen weights, what the model begun from has and lacks.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <functional>
#include <memory>

#include "heddle/infer/loading/adapter.h"
#include "heddle/infer/loading/loaded_model.h"
#include "heddle/io/safetensors.h"
#include "heddle/train/run/run_folder.h"
#include "heddle/train/tasks/losses.h"
#include "heddle/train/trained_parts.h"
#include "tests/train/stack_run.h"

namespace heddle::train {
namespace {

struct TinyClassifier {
  nn::Parameters parameters{3};
  std::unique_ptr<Model> model;

  TinyClassifier() {
    StackConfig stack = tiny_bert("sequence_classification").stack;
    stack.hub().head = Head::sequence_classes;
    model = stack.make(nn::Scope(parameters));
  }
};

TEST_F(StackRun, adapter_goes_on_in_the_same_bits_and_equals_the_merged_model) {
  train(tiny_bert("masked_lm"), "mlm");
  TrainConfig config = fine_tuning("sequence_classification", "mlm");
  config.lora_rank = 3;
  config.lora_merge = true;
  config.ema_decay = 0.9;
  expect_same_bits_in_two(config, "adapter_model.safetensors", "texts.tsv", "mlm");
  const auto adapter = SafetensorsFile::open(folder_ / "whole/last/adapter_model.safetensors");
  const std::string query = "base_model.model.bert.encoder.layer.0.attention.self.query.lora_";
  EXPECT_EQ(adapter.info(query + "A.weight").shape, (std::vector<int64_t>{3, 16}));
  EXPECT_EQ(adapter.info(query + "B.weight").shape, (std::vector<int64_t>{16, 3}));
  EXPECT_TRUE(adapter.contains("base_model.model.classifier.weight"));
  // PEFT takes each module whose name ends so: "dense" alone would be those of every layer too.
  const Json peft = Json::load(folder_ / "whole/last/adapter_config.json");
  EXPECT_EQ(peft.at("modules_to_save").as_strings(),
            (std::vector<std::string>{"bert.pooler.dense", "classifier"}));
  // The state has the adapters and the new head, nothing else.
  const auto state = SafetensorsFile::open(folder_ / "whole/state/snapshot-000000020.safetensors");
  for (const std::string& name : state.names()) {
    EXPECT_NE(name.find("base_model.model."), std::string::npos) << name;
  }
  const LoadedModel merged = load_model(folder_ / "whole/last");
  std::filesystem::remove(folder_ / "whole/last/model.safetensors");
  const LoadedModel on_base = load_model(folder_ / "whole/last");
  ASSERT_EQ(merged.parameters.all().size(), on_base.parameters.all().size());
  for (size_t i = 0; i < merged.parameters.all().size(); ++i) {
    EXPECT_EQ(merged.parameters.all()[i]->value().to_floats(),
              on_base.parameters.all()[i]->value().to_floats())
        << merged.parameters.all()[i]->name();
  }
  // Another shape of as many numbers does not fit.
  std::vector<std::vector<float>> values;
  for (const std::string& name : adapter.names()) values.push_back(adapter.info(name).floats());
  std::vector<NamedTensorView> views;
  for (const std::string& name : adapter.names()) {
    std::vector<int64_t> shape = adapter.info(name).shape;
    if (name.ends_with("classifier.weight")) std::swap(shape[0], shape[1]);
    views.push_back({name, DType::f32, shape, std::as_bytes(std::span(values[views.size()]))});
  }
  write_safetensors(folder_ / "whole/last/adapter_model.safetensors", views, {{"format", "pt"}});
  expect_error(ErrorKind::data,
               {"classifier.weight' has shape [16, 2]; that of the model is [2, 16]"},
               [&] { load_model(folder_ / "whole/last"); });
}

TEST_F(StackRun, weights_are_trained_whole_beside_adapters_and_frozen_layers_have_none) {
  train(tiny_bert("masked_lm"), "mlm");
  TrainConfig config = fine_tuning("masked_lm", "mlm");
  config.lora_rank = 2;
  config.train_only = "word_embeddings";
  config.freeze = "value";
  expect_same_bits_in_two(config, "adapter_model.safetensors", "texts.tsv", "mlm");
  const auto adapter = SafetensorsFile::open(folder_ / "whole/last/adapter_model.safetensors");
  const std::string bert = "base_model.model.bert.";
  EXPECT_TRUE(adapter.contains(bert + "encoder.layer.0.attention.self.query.lora_A.weight"));
  EXPECT_FALSE(adapter.contains(bert + "encoder.layer.0.attention.self.value.lora_A.weight"));
  const std::string table = "embeddings.word_embeddings";
  EXPECT_EQ(
      Json::load(folder_ / "whole/last/adapter_config.json").at("modules_to_save").as_strings(),
      std::vector<std::string>{"bert." + table});
  const LoadedModel before = load_model(folder_ / "mlm/best");
  const LoadedModel after = load_model(folder_ / "whole/last");
  for (size_t i = 0; i < before.parameters.all().size(); ++i) {
    const auto& p = *before.parameters.all()[i];
    const bool changed = p.value().to_floats() != after.parameters.all()[i]->value().to_floats();
    const bool is_query = p.name().find("query.weight") != p.name().npos;
    EXPECT_EQ(changed, p.name().find(table) != p.name().npos || is_query) << p.name();
  }
}

TEST_F(StackRun, frozen_weights_stay_and_chosen_ones_alone_are_trained) {
  train(tiny_bert("masked_lm"), "mlm");
  TrainConfig config = fine_tuning("masked_lm", "mlm");
  config.train_only = "attention";
  config.freeze = "query|LayerNorm";
  train(config, "run", "texts.tsv", "mlm");
  const LoadedModel before = load_model(folder_ / "mlm/best");
  const LoadedModel after = load_model(folder_ / "run/last");
  for (size_t i = 0; i < before.parameters.all().size(); ++i) {
    const auto& p = *before.parameters.all()[i];
    const std::vector<float> old = p.value().to_floats();
    const std::vector<float> now = after.parameters.all()[i]->value().to_floats();
    for (const nn::Part& part : p.parts()) {  // query, key and value lie in one parameter
      const auto has = [&](const char* text) { return part.name.find(text) != part.name.npos; };
      const bool is_trained = has("attention") && !has("query") && !has("LayerNorm");
      const int64_t row = p.elements() / p.shape()[0];
      const auto begin = part.begin * row, end = begin + part.rows * row;
      EXPECT_NE(std::equal(old.begin() + begin, old.begin() + end, now.begin() + begin), is_trained)
          << part.name;
    }
  }
}

// dL/dA and dL/dB through W0 + s B A against finite differences of the loss.
TEST_F(StackRun, gradients_of_adapters_are_those_of_the_loss) {
  TinyClassifier tiny;
  TrainConfig config = tiny_bert("sequence_classification");
  config.lora_rank = 2;
  config.lora_alpha = 5;
  TrainedParts parts(config, tiny.parameters, {});
  for (auto& p : parts.parameters().all()) {
    for (int64_t i = 0; i < p->elements(); ++i) {
      p->value().data<float>()[i] = 0.3F * std::sin(static_cast<float>(3 * i + 1));
    }
  }
  parts.apply();
  SequenceBatch batch;
  batch.add(std::vector<int32_t>{2, 7, 9, 3}, 0);
  batch.add(std::vector<int32_t>{2, 8, 3}, 1);
  batch.targets = {1, 0};
  const auto loss = [&] {
    parts.apply();
    return answer_classes(*tiny.model, batch, {}).sums.nll;
  };
  accumulate_classes(*tiny.model, batch.tokens(), batch.targets, {});
  parts.take_gradients();
  for (auto& p : parts.parameters().all()) {
    ASSERT_TRUE(p->grad().defined()) << p->name();
    for (const int64_t i : {int64_t{0}, p->elements() / 2}) {
      float& x = p->value().data<float>()[i];
      const float before = x, step = 0.02F;
      x = before + step;
      const double up = loss();
      x = before - step;
      const double down = loss();
      x = before;
      // f32 sums of some tens of terms over a step of 0.04, and its cube.
      EXPECT_NEAR(p->grad().data<float>()[i], (up - down) / (2 * step), 2e-3) << p->name();
    }
  }
  for (const auto& p : tiny.parameters.all()) EXPECT_FALSE(p->grad().defined()) << p->name();
}

TEST_F(StackRun, what_cannot_be_fine_tuned_is_refused) {
  TrainConfig config = tiny_bert("masked_lm");
  train(config, "mlm");
  const auto refused = [&](ErrorKind kind, const TrainConfig& c,
                           const std::vector<std::string>& words) {
    expect_error(kind, words, [&] { train(c, "refused", "texts.tsv", "mlm"); });
    EXPECT_FALSE(std::filesystem::exists(folder_ / "refused"));
  };
  config = fine_tuning("masked_lm", "mlm");
  config.train_only = "nothing";
  refused(ErrorKind::usage, config, {"train_only 'nothing'", "no weight"});
  config.train_only = config.freeze = "query";
  refused(ErrorKind::usage, config, {"nothing to train"});
  config.train_only = "(";
  refused(ErrorKind::usage, config, {"train_only", "'('"});
  config.train_only = "";
  config.freeze = "q_proj";
  refused(ErrorKind::usage, config, {"freeze 'q_proj'", "no weight"});
  config = fine_tuning("masked_lm", "mlm");
  config.lora_rank = 2;
  config.lora_targets = "c_attn";
  refused(ErrorKind::usage, config, {"'c_attn'", "query"});
  config.lora_targets = "query";
  config.freeze = "query";
  refused(ErrorKind::usage, config, {"lora_targets", "frozen"});
  config = fine_tuning("sequence_classification", "mlm");
  set_from_string(config, "block_size", "1");
  refused(ErrorKind::usage, config, {"block_size 1 leaves -1 tokens"});
  config = fine_tuning("masked_lm", "mlm");
  config.optimizer = "muon";
  config.lora_rank = 2;
  refused(ErrorKind::usage, config, {"optimizer", "muon", "none of the 4 weights", "train_only"});
  config.lora_rank = 0;
  config.train_only = "word_embeddings";
  refused(ErrorKind::usage, config, {"muon", "none of the 1 weights", "adamw"});
  config = tiny_bert("sequence_classification");
  config.lora_rank = 2;
  expect_error(ErrorKind::usage, {"lora_rank 2", "from"}, [&] { train(config, "refused"); });
  EXPECT_FALSE(std::filesystem::exists(folder_ / "refused"));
}

// A classifier that is an adapter on a model of masked tokens, which has no such head.
class AdapterFolder : public StackRun {
 protected:
  AdapterFolder() {
    train(tiny_bert("masked_lm"), "mlm");
    TrainConfig config = fine_tuning("sequence_classification", "mlm");
    config.lora_rank = 2;
    config.max_updates = 2;
    train(config, "tuned", "texts.tsv", "mlm");
  }
  const std::string adapter_ = folder_ / "tuned/best";
  const std::string weights_ = adapter_ + "/adapter_model.safetensors";

  // Writes the adapter anew, with its tensors' names as `rename` has them; "" leaves one out.
  void rewrite(const std::function<std::string(const std::string&)>& rename) {
    const auto file = SafetensorsFile::open(weights_);
    std::vector<NamedTensorView> kept;
    for (const std::string& name : file.names()) {
      const StoredTensor& t = file.info(name);
      if (!rename(name).empty()) kept.push_back({rename(name), t.dtype, t.shape, t.bytes});
    }
    write_safetensors(adapter_ + "/new", kept);
    std::filesystem::rename(adapter_ + "/new", weights_);
  }
  void set_base(const std::string& base) {
    Json json = Json::load(adapter_ + "/adapter_config.json");
    json["base_model_name_or_path"] = base;
    folder_.write("tuned/best/adapter_config.json", json.dump());
  }
  void expect_no_load(const std::vector<std::string>& words) {
    expect_error(ErrorKind::data, words, [&] { load_model(adapter_); });
  }
};

TEST_F(AdapterFolder, head_that_neither_model_nor_adapter_has_is_an_error_that_names_it) {
  EXPECT_NO_THROW(load_model(adapter_));
  rewrite([](const std::string& name) { return name.ends_with("classifier.weight") ? "" : name; });
  expect_no_load({"adapter_model.safetensors", "'base_model.model.classifier.weight'", "lacks"});
}

TEST_F(AdapterFolder, half_a_pair_and_unknown_layers_are_data_errors_that_name_them) {
  const std::string bytes = testing::read_file(weights_);
  for (const char* half : {"A", "B"}) {
    const std::string ending = fmt::format("query.lora_{}.weight", half);
    rewrite([&](const std::string& name) { return name.ends_with(ending) ? "" : name; });
    expect_no_load({"attention.self.query.lora_"});
    testing::write_file(weights_, bytes);
  }
  rewrite([](const std::string& name) {
    const size_t at = name.find("bert.encoder.layer.0.");
    // The end of a layer's name is no layer.
    return at == name.npos ? name : name.substr(0, at) + name.substr(at + 21);
  });
  expect_no_load({"no layer 'attention.self.query'"});
}

TEST_F(AdapterFolder, base_that_is_no_whole_model_is_a_data_error) {
  set_base("");
  expect_no_load({"adapter_config.json", "not there: ''"});
  for (const std::string& base : {adapter_, std::string("../best"), folder_ / "tuned"}) {
    set_base(base);
    expect_no_load({"adapter_config.json", "'" + base + "'", "an adapter itself"});
  }
  TrainConfig config = fine_tuning("sequence_classification", "tuned");
  config.lora_rank = 2;
  expect_error(ErrorKind::usage, {"tuned is an adapter", "heddle export"},
               [&] { train(config, "again", "texts.tsv", "tuned"); });
}

TEST_F(AdapterFolder, head_that_is_asked_for_stands_on_a_bare_stack) {
  StackConfig stack("gpt2");
  for (const char* key : {"n_layer", "n_head"}) stack.set(key, 1);
  for (const char* key : {"n_embd", "n_positions", "vocab_size"}) stack.set(key, 8);
  nn::Parameters parameters(3);
  const auto bare = stack.make(nn::Scope(parameters));
  ASSERT_EQ(bare->head(), Head::next_token);
  save_model(folder_ / "gpt2", *bare, parameters);
  TrainConfig config = default_config("causal_lm");
  config.stack = stack;
  config.lora_rank = 2;
  const TrainedParts parts(config, parameters, {});
  parts.save_adapter(folder_ / "lora", folder_ / "gpt2");
  for (const char* name : {"gpt2", "lora"}) {  // a class without a head
    Json json = Json::load(folder_ / "gpt2" + "/config.json");
    json["architectures"] = std::vector<std::string>{"GPT2Model"};
    folder_.write(std::string(name) + "/config.json", json.dump());
  }
  EXPECT_EQ(load_model(folder_ / "lora", {.head = Head::next_token}).model->head(),
            Head::next_token);
}

// Gradients of a second part of a batch are added to those of the first.
TEST_F(StackRun, gradients_of_chosen_weights_are_sums_over_the_parts_of_a_batch) {
  TinyClassifier tiny;
  TrainConfig config = tiny_bert("sequence_classification");
  config.train_only = "classifier";
  TrainedParts parts(config, tiny.parameters, {});
  SequenceBatch batch;
  batch.add(std::vector<int32_t>{2, 7, 9, 3}, 0, std::vector<int32_t>{1});
  std::vector<std::vector<float>> once;
  for (const int times : {1, 2}) {
    accumulate_classes(*tiny.model, batch.tokens(), batch.targets, {});
    parts.take_gradients();
    size_t i = 0;
    for (auto& p : parts.parameters().all()) {
      const std::vector<float> grad = p->grad().to_floats();
      if (times == 1) once.push_back(grad);
      for (size_t k = 0; k < grad.size(); ++k) {
        EXPECT_EQ(grad[k], static_cast<float>(times) * once[i][k]) << p->name();
      }
      ++i;
    }
    EXPECT_EQ(i, 2u);
  }
}

// A layer that is both new and named is trained whole, or the file would hold it twice.
TEST_F(StackRun, adapters_stand_on_no_new_layer) {
  train(tiny_bert("masked_lm"), "mlm");
  TrainConfig config = fine_tuning("sequence_classification", "mlm");
  config.lora_rank = 2;
  config.lora_targets = "query,dense";
  config.lora_merge = true;
  train(config, "run", "texts.tsv", "mlm");
  const LoadedModel merged = load_model(folder_ / "run/last");
  std::filesystem::remove(folder_ / "run/last/model.safetensors");
  const LoadedModel on_base = load_model(folder_ / "run/last");
  const LoadedModel begun = load_model(folder_ / "mlm/best");
  bool has_pooler = false;
  for (size_t i = 0; i < merged.parameters.all().size(); ++i) {
    const auto& p = *merged.parameters.all()[i];
    EXPECT_EQ(p.value().to_floats(), on_base.parameters.all()[i]->value().to_floats()) << p.name();
    has_pooler = has_pooler || p.name() == "bert.pooler.dense.weight";
  }
  EXPECT_TRUE(has_pooler);
  const auto adapter = SafetensorsFile::open(folder_ / "run/last/adapter_model.safetensors");
  EXPECT_TRUE(adapter.contains("base_model.model.bert.pooler.dense.weight"));
  EXPECT_FALSE(adapter.contains("base_model.model.bert.pooler.dense.lora_A.weight"));
  const Json peft = Json::load(folder_ / "run/last/adapter_config.json");
  for (const std::string& module : peft.at("target_modules").as_strings()) {
    EXPECT_NE(module.find(".layer.0."), std::string::npos) << module;
  }
  config.lora_targets = "pooler.dense";
  expect_error(ErrorKind::usage, {"lora_targets", "new"},
               [&] { train(config, "other", "texts.tsv", "mlm"); });
  config.lora_targets = "word_embeddings";
  expect_error(ErrorKind::usage, {"'word_embeddings'"},
               [&] { train(config, "other", "texts.tsv", "mlm"); });
}

// transformers keeps the pooler of such a file for a classifier; heddle's masked language models
// have none.
TEST_F(StackRun, what_the_file_has_beside_its_head_is_taken) {
  train(tiny_bert("masked_lm"), "mlm");
  const std::string path = folder_ / "mlm/best/model.safetensors";
  const std::vector<float> weight(16 * 16, 0.25f), bias(16, -0.5f);
  {
    const auto file = SafetensorsFile::open(path);
    std::vector<NamedTensorView> tensors = {
        {"bert.pooler.dense.weight", DType::f32, {16, 16}, std::as_bytes(std::span(weight))},
        {"bert.pooler.dense.bias", DType::f32, {16}, std::as_bytes(std::span(bias))}};
    for (const std::string& name : file.names()) {
      const StoredTensor& info = file.info(name);
      tensors.push_back({name, info.dtype, info.shape, info.bytes});
    }
    write_safetensors(path + ".new", tensors);
  }
  std::filesystem::rename(path + ".new", path);
  TrainConfig config = fine_tuning("sequence_classification", "mlm");
  config.train_only = "classifier";
  train(config, "run", "texts.tsv", "mlm");
  const LoadedModel tuned = load_model(folder_ / "run/last");
  int poolers = 0;
  for (const auto& p : tuned.parameters.all()) {
    if (p->name().find("pooler") == std::string::npos) continue;
    const bool is_bias = p->name().ends_with("bias");
    EXPECT_EQ(p->value().to_floats(), is_bias ? bias : weight) << p->name();
    ++poolers;
  }
  EXPECT_EQ(poolers, 2);
}

// The settings of a run hold its fields; the rest of the config is in the model begun from.
TEST_F(StackRun, keys_of_the_model_begun_from_outlast_a_resume) {
  train(tiny_bert("masked_lm"), "mlm");
  const std::string path = folder_ / "mlm/best/config.json";
  Json json = Json::load(path);
  json["eos_token_id"] = 7;
  json["classifier_dropout"] = 0.0;
  folder_.write("mlm/best/config.json", json.dump());
  TrainConfig config = fine_tuning("sequence_classification", "mlm");
  config.max_updates = 5;
  train(config, "run", "texts.tsv", "mlm");
  TrainConfig stored = stored_config(folder_ / "run");
  stored.max_updates = 10;
  train(stored, "run", "texts.tsv", "mlm");
  EXPECT_EQ(Json::load(folder_ / "run/last/config.json").get_int("eos_token_id"), 7);
}

TEST_F(StackRun, adapter_goes_on_upon_the_same_weights_only) {
  train(tiny_bert("masked_lm"), "mlm");
  TrainConfig other = tiny_bert("masked_lm");
  other.seed = 9;
  train(other, "other");
  TrainConfig config = fine_tuning("sequence_classification", "mlm");
  config.lora_rank = 2;
  config.max_updates = 5;
  train(config, "run", "texts.tsv", "mlm");
  config.max_updates = 10;
  expect_error(ErrorKind::usage, {"was begun from", "mlm, not ", "other"},
               [&] { train(config, "run", "texts.tsv", "other"); });
  std::filesystem::rename(folder_ / "mlm", folder_ / "kept");
  std::filesystem::rename(folder_ / "other", folder_ / "mlm");
  expect_error(ErrorKind::data, {"the model begun from"},
               [&] { train(config, "run", "texts.tsv", "mlm"); });
  std::filesystem::remove_all(folder_ / "mlm");
  std::filesystem::rename(folder_ / "kept", folder_ / "mlm");
  EXPECT_EQ(train(config, "run", "texts.tsv", "mlm").updates, 10);
}

}  // namespace
}  // namespace heddle::train
