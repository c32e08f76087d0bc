// Masked words, classification, tagging, adapters: losses against plain definitions, runs that
// learn and go on in the same bits, what is frozen stays, an adapter equals the merged model.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "heddle/base/log.h"
#include "heddle/infer/adapter.h"
#include "heddle/infer/stack_model.h"
#include "heddle/io/safetensors.h"
#include "heddle/train/class_loss.h"
#include "heddle/train/stack_task.h"
#include "heddle/train/trainer.h"
#include "tests/base/temporary.h"
#include "tests/train/small_run.h"

namespace heddle::train {
namespace {

TrainConfig tiny_bert(const std::string& task) {
  TrainConfig c = default_config(task, "bert");
  for (const char* key : {"num_hidden_layers", "num_attention_heads"}) c.stack.set(key, 1);
  for (const char* key : {"hidden_size", "intermediate_size"}) c.stack.set(key, 16);
  c.stack.set("max_position_embeddings", 24);
  c.stack.set("vocab_size", 60);
  testing::make_short(c);
  return c;
}

class StackRun : public ::testing::Test {
 protected:
  StackRun() {
    set_log_level(LogLevel::error);
    std::string table = "text\tlabel\n", words;
    for (int i = 0; i < 120; ++i) {
      const bool is_good = i * i % 5 < 2;
      table += fmt::format("the {} {} was {}\t{}\n", i % 3 == 0 ? "old" : "new",
                           i % 2 == 0 ? "film" : "book", is_good ? "good" : "bad", is_good);
      words += fmt::format("Anna PER\nreads O\nthe O\n{} OBJ\n\n", i % 2 == 0 ? "paper" : "letter");
    }
    folder_.write("texts.tsv", table);
    folder_.write("words.conll", words);
  }
  ~StackRun() override { set_log_level(LogLevel::info); }
  RunResult train(const TrainConfig& config, const std::string& name,
                  const std::string& data = "texts.tsv", const std::string& from = "") {
    return train_model(
        config, {.paths = {.data = folder_ / data, .from = from.empty() ? "" : folder_ / from},
                 .out = folder_ / name});
  }
  TrainConfig fine_tuning(const std::string& task, const std::string& from) {
    TrainConfig c = tiny_bert(task);
    c.stack = config_of_model(folder_ / from);
    return c;
  }
  std::string file(const std::string& path) { return testing::read_file(folder_ / path); }
  // Whole, and stopped at update 13, past two saved states.
  void expect_same_bits_in_two(TrainConfig config, const std::string& weights,
                               const std::string& data = "texts.tsv",
                               const std::string& from = "") {
    train(config, "whole", data, from);
    config.max_updates = 13;
    train(config, "two", data, from);
    config.max_updates = 20;
    train(config, "two", data, from);
    EXPECT_TRUE(file("whole/last/" + weights) == file("two/last/" + weights));
  }
  TemporaryFolder folder_;
};

// -log softmax(x)[t], f64.
double plain_loss(const std::vector<float>& x, size_t begin, size_t width, int32_t t) {
  double sum = 0;
  for (size_t i = 0; i < width; ++i) sum += std::exp(double{x[begin + i]});
  return std::log(sum) - x[begin + static_cast<size_t>(t)];
}

TEST(ClassLoss, sums_equal_the_plain_definitions_over_the_heads_logits) {
  for (const Head head : {Head::sequence_classes, Head::word_classes, Head::pretraining}) {
    StackConfig config = tiny_bert("masked_lm").stack;
    config.hub().head = head;
    config.hub().labels = {"a", "b", "c"};
    nn::Parameters parameters(3);
    const auto model = config.make(nn::Scope(parameters));
    SequenceBatch batch;
    batch.add(std::vector<int32_t>{2, 7, 9, 3}, 0);
    batch.add(std::vector<int32_t>{2, 8, 3}, 1);
    std::vector<int32_t> next;
    batch.targets = {-1, 2, 0, -1, -1, 1, -1};
    if (head == Head::sequence_classes) batch.targets = {2, 0};
    if (head == Head::pretraining) next = {1, 0};
    const auto outputs = model->forward(batch.words(), {});
    const auto sum_of = [](const Tensor& x, std::span<const int32_t> targets) {
      const std::vector<float> values = x.to_floats();
      const auto width = static_cast<size_t>(x.size(1));
      double sum = 0;
      for (size_t r = 0; r < targets.size(); ++r) {
        if (targets[r] >= 0) sum += plain_loss(values, r * width, width, targets[r]);
      }
      return sum;
    };
    const double plain = sum_of(outputs[0].x, batch.targets);
    const LossSums sums = head == Head::pretraining ? accumulate_masked(*model, batch, next, {})
                                                    : accumulate_classes(*model, batch, {});
    EXPECT_NEAR(sums.nll, plain, 1e-5 * plain);
    EXPECT_EQ(sums.words, head == Head::sequence_classes ? 2 : 3);
    EXPECT_EQ(sums.tokens, 7);
    if (head != Head::pretraining) continue;
    const double both = plain + 3.0 / 2 * sum_of(outputs[1].x, next);  // words / sequences
    EXPECT_NEAR(sums.loss, both, 1e-5 * both);
  }
}

TEST(Confusion, accuracy_and_macro_f1_by_hand) {
  Confusion c(4);  // class 3 never occurs
  for (const auto& [truth, answer] :
       std::vector<std::pair<int32_t, int32_t>>{{0, 0}, {0, 0}, {0, 1}, {1, 1}, {2, 0}}) {
    c.add(truth, answer);
  }
  EXPECT_DOUBLE_EQ(c.accuracy(), 0.6);
  EXPECT_DOUBLE_EQ(c.macro_f1(), (4.0 / 6 + 2.0 / 3 + 0) / 3);
}

TEST_F(StackRun, classification_learns_and_saves_its_labels) {
  TrainConfig config = tiny_bert("sequence_classification");
  config.max_updates = config.validate_every = 120;
  const RunResult result = train(config, "run");
  EXPECT_EQ(result.best.metric("accuracy"), 1);
  EXPECT_EQ(result.best.metric("macro_f1"), 1);
  const StackModel m = load_stack_model(folder_ / "run");
  EXPECT_EQ(m.model->labels(), (std::vector<std::string>{"false", "true"}));
  EXPECT_EQ(m.model->head(), Head::sequence_classes);
}

TEST_F(StackRun, tagging_learns) {
  TrainConfig config = tiny_bert("token_classification");
  config.max_updates = config.validate_every = 120;
  EXPECT_EQ(train(config, "run", "words.conll").best.metric("accuracy"), 1);
}

TEST_F(StackRun, masked_words_are_learnt_and_fine_tuned_with_a_new_head) {
  TrainConfig config = tiny_bert("masked_lm");
  config.max_updates = config.validate_every = 300;
  const RunResult result = train(config, "mlm");
  EXPECT_LT(result.best.loss, 1.5);  // from log 60 = 4.1; most words are free
  const TrainConfig tuning = fine_tuning("sequence_classification", "mlm");
  train(tuning, "tuned", "texts.tsv", "mlm");
  EXPECT_EQ(load_stack_model(folder_ / "tuned").model->labels().size(), 2u);
}

TEST_F(StackRun, each_task_goes_on_in_the_bits_of_a_whole_run) {
  expect_same_bits_in_two(tiny_bert("sequence_classification"), "model.safetensors");
}
TEST_F(StackRun, tagging_goes_on_in_the_bits_of_a_whole_run) {
  expect_same_bits_in_two(tiny_bert("token_classification"), "model.safetensors", "words.conll");
}
TEST_F(StackRun, masked_words_go_on_in_the_bits_of_a_whole_run) {
  TrainConfig config = tiny_bert("masked_lm");
  config.next_sentence = true;
  config.accumulate = 2;
  config.ema_decay = 0.9;
  expect_same_bits_in_two(config, "model.safetensors");
}

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
  const StackModel merged = load_stack_model(folder_ / "whole/last");
  std::filesystem::remove(folder_ / "whole/last/model.safetensors");
  const StackModel on_base = load_stack_model(folder_ / "whole/last");
  ASSERT_EQ(merged.parameters.all().size(), on_base.parameters.all().size());
  for (size_t i = 0; i < merged.parameters.all().size(); ++i) {
    EXPECT_EQ(merged.parameters.all()[i]->value().to_floats(),
              on_base.parameters.all()[i]->value().to_floats())
        << merged.parameters.all()[i]->name();
  }
}

TEST_F(StackRun, frozen_weights_stay_and_chosen_ones_alone_are_trained) {
  train(tiny_bert("masked_lm"), "mlm");
  TrainConfig config = fine_tuning("masked_lm", "mlm");
  config.train_only = "attention";
  config.freeze = "query|LayerNorm";
  train(config, "run", "texts.tsv", "mlm");
  const StackModel before = load_stack_model(folder_ / "mlm/best");
  const StackModel after = load_stack_model(folder_ / "run/last");
  for (size_t i = 0; i < before.parameters.all().size(); ++i) {
    const auto& p = *before.parameters.all()[i];
    // query, key and value lie in one parameter, which goes by the first.
    const bool is_trained = p.name().find("attention.output.dense") != std::string::npos;
    EXPECT_EQ(p.value().to_floats() != after.parameters.all()[i]->value().to_floats(), is_trained)
        << p.name();
  }
}

// dL/dA and dL/dB through W0 + s B A against finite differences of the loss.
TEST_F(StackRun, gradients_of_adapters_are_those_of_the_loss) {
  StackConfig stack = tiny_bert("sequence_classification").stack;
  stack.hub().head = Head::sequence_classes;
  nn::Parameters parameters(3);
  const auto model = stack.make(nn::Scope(parameters));
  TrainConfig config = tiny_bert("sequence_classification");
  config.lora_rank = 2;
  config.lora_alpha = 5;
  TrainedParts parts(config, parameters, {});
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
    return answer_classes(*model, batch, {}).sums.nll;
  };
  accumulate_classes(*model, batch, {});
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
  for (const auto& p : parameters.all()) EXPECT_FALSE(p->grad().defined()) << p->name();
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
  refused(ErrorKind::usage, config, {"nothing to train"});
  config.train_only = "(";
  refused(ErrorKind::usage, config, {"--train-only", "'('"});
  config = fine_tuning("masked_lm", "mlm");
  config.lora_rank = 2;
  config.lora_targets = "c_attn";
  refused(ErrorKind::usage, config, {"'c_attn'", "query"});
  config.freeze = "a";
  refused(ErrorKind::usage, config, {"lora_rank", "freeze"});
  config = fine_tuning("sequence_classification", "mlm");
  config.block_size = 1;
  refused(ErrorKind::usage, config, {"block_size 1 leaves -1 words"});
  config = tiny_bert("sequence_classification");
  config.lora_rank = 2;
  expect_error(ErrorKind::usage, {"lora_rank 2", "--from"}, [&] { train(config, "refused"); });
  EXPECT_FALSE(std::filesystem::exists(folder_ / "refused"));
}

// A classifier that is an adapter on a model of masked words, which has no such head.
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
    expect_error(ErrorKind::data, words, [&] { load_stack_model(adapter_); });
  }
};

TEST_F(AdapterFolder, head_that_neither_model_nor_adapter_has_is_an_error_that_names_it) {
  EXPECT_NO_THROW(load_stack_model(adapter_));
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
  ASSERT_EQ(bare->head(), Head::next_word);
  save_stack_model(folder_ / "gpt2", *bare, parameters);
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
  EXPECT_EQ(load_stack_model(folder_ / "lora", Head::next_word).model->head(), Head::next_word);
}

// Gradients of a second part of a batch are added to those of the first.
TEST_F(StackRun, gradients_of_chosen_weights_are_sums_over_the_parts_of_a_batch) {
  StackConfig stack = tiny_bert("sequence_classification").stack;
  stack.hub().head = Head::sequence_classes;
  nn::Parameters parameters(3);
  const auto model = stack.make(nn::Scope(parameters));
  TrainConfig config = tiny_bert("sequence_classification");
  config.train_only = "classifier";
  TrainedParts parts(config, parameters, {});
  SequenceBatch batch;
  batch.add(std::vector<int32_t>{2, 7, 9, 3}, 0, std::vector<int32_t>{1});
  std::vector<std::vector<float>> once;
  for (const int times : {1, 2}) {
    accumulate_classes(*model, batch, {});
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

}  // namespace
}  // namespace heddle::train
