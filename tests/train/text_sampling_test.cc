// Language models and classifiers over subwords that are drawn anew each epoch.
#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>

#include "heddle/base/parallel.h"
#include "tests/text/small_tokenizers.h"
#include "tests/train/stack_run.h"

namespace heddle::train {
namespace {

class TextSampling : public StackRun {
 protected:
  TextSampling() {
    std::string text, table = "text\tlabel\n", words;
    const std::vector<std::string> lines = testing::small_corpus();
    for (size_t i = 0; i < lines.size(); ++i) {
      text += lines[i] + "\n";
      table += fmt::format("{}\t{}\n", lines[i], i / 5 % 2 == 0);  // of four verbs each
      std::istringstream line(lines[i]);
      for (std::string word; line >> word;)
        words += fmt::format("{} {}\n", word, word == "sees" || word == "books!" ? "YES" : "NO");
      words += "\n";
    }
    folder_.write("lines.txt", text);
    folder_.write("many.tsv", table);
    folder_.write("many.conll", words);
  }
  ~TextSampling() override { set_num_threads(threads_); }
  std::string weights(const std::string& name) { return file(name + "/last/model.safetensors"); }

  // A whole run of one thread, and one of three that is stopped in its first epoch and in others.
  void expect_same_bits(TrainConfig config, const std::string& name, const std::string& data) {
    SCOPED_TRACE(name);
    config.checkpoint_every = 4;
    config.max_updates = 80;
    set_num_threads(1);
    train(config, name + "-whole", data);
    set_num_threads(3);
    for (const int64_t updates : {5, 66, 80}) {
      config.max_updates = updates;
      train(config, name + "-cut", data);
    }
    EXPECT_TRUE(weights(name + "-whole") == weights(name + "-cut"));
  }

  int threads_ = num_threads();
};

TrainConfig with(TrainConfig config, const std::string& rate, const std::string& type = "bpe") {
  config.stack.set("vocab_size", 300);
  set_from_string(config, "tokenizer_type", type);
  set_from_string(config, "text_sampling", rate);
  return config;
}

// Transformer-XL, as it has memory along streams.
TrainConfig tiny_language_model() {
  TrainConfig c = default_config("causal_lm", "transfo-xl");
  for (const char* key : {"n_layer", "n_head", "div_val"}) c.stack.set(key, 1);
  for (const char* key : {"d_model", "d_embed", "d_head"}) c.stack.set(key, 16);
  c.stack.set("d_inner", 32);
  c.stack.set("mem_len", 8);
  testing::make_short(c);
  set_from_string(c, "block_size", "8");
  return c;
}

TEST_F(TextSampling, threads_and_stops_change_no_bit_of_language_models) {
  for (const char* type : {"bpe", "unigram"}) {
    for (const char* sampling : {"random", "consecutive", "streams"}) {
      TrainConfig config = with(tiny_language_model(), "0.2", type);
      set_from_string(config, "sampling", sampling);
      expect_same_bits(config, fmt::format("{}-{}", type, sampling), "lines.txt");
    }
  }
}

TEST_F(TextSampling, threads_and_stops_change_no_bit_of_classifiers) {
  for (const char* type : {"bpe", "unigram"}) {
    expect_same_bits(with(tiny_bert("sequence_classification"), "0.2", type), type, "many.tsv");
    expect_same_bits(with(tiny_bert("token_classification"), "0.2", type),
                     std::string("words-") + type, "many.conll");
  }
}

TEST_F(TextSampling, drawn_text_is_another) {
  const TrainConfig language = tiny_language_model(),
                    classes = tiny_bert("sequence_classification");
  train(with(language, "0"), "plain", "lines.txt");
  train(with(language, "0.2"), "drawn", "lines.txt");
  EXPECT_FALSE(weights("plain") == weights("drawn"));
  train(with(classes, "0"), "plain-classes");
  train(with(classes, "0.2"), "drawn-classes");
  EXPECT_FALSE(weights("plain-classes") == weights("drawn-classes"));
}

TEST_F(TextSampling, each_epoch_is_drawn_anew_and_the_same_again) {
  for (const std::string rate : {"0", "0.3"}) {
    const TrainConfig config = with(tiny_bert("sequence_classification"), rate);
    std::filesystem::create_directory(folder_ / rate);
    const auto task =
        config.task_config->make(config, {.data = folder_ / "texts.tsv"}, folder_ / rate);
    const std::vector<int64_t> samples = {0, 1, 2};
    const auto loss_in = [&](int64_t epoch) { return task->accumulate(epoch, samples, {}).nll; };
    const double first = loss_in(0), second = loss_in(1);
    EXPECT_EQ(first == second, rate == "0");
    EXPECT_EQ(loss_in(0), first);
  }
}

TEST_F(TextSampling, an_epoch_goes_through_all_of_the_text_that_is_drawn) {
  std::vector<int64_t> batches;
  for (const std::string rate : {"0", "1"}) {  // 1: characters
    const TrainConfig config = with(tiny_language_model(), rate);
    std::filesystem::create_directory(folder_ / rate);
    const auto task =
        config.task_config->make(config, {.data = folder_ / "lines.txt"}, folder_ / rate);
    batches.push_back(task->batches(0));
  }
  EXPECT_GT(batches[1], batches[0]);
}

// Of weights that stay as they are only the text can change the loss.
TEST_F(TextSampling, held_out_text_stays_as_it_is) {
  TrainConfig config = tiny_language_model();
  config.learning_rate = 0;
  EXPECT_EQ(train(with(config, "0"), "plain", "lines.txt").best.loss,
            train(with(config, "0.5"), "drawn", "lines.txt").best.loss);
  config = tiny_bert("sequence_classification");
  config.learning_rate = 0;
  EXPECT_EQ(train(with(config, "0"), "plain-classes").best.loss,
            train(with(config, "0.5"), "drawn-classes").best.loss);
}

TEST_F(TextSampling, classifiers_learn_the_texts_as_they_are) {
  TrainConfig config = with(tiny_bert("sequence_classification"), "0.1");
  config.max_updates = config.validate_every = 200;
  EXPECT_EQ(train(config, "texts").best.metric("accuracy"), 1);
  config = with(tiny_bert("token_classification"), "0.1");
  config.max_updates = config.validate_every = 200;
  EXPECT_EQ(train(config, "words", "words.conll").best.metric("accuracy"), 1);
}

TEST_F(TextSampling, language_models_learn_the_text_as_it_is) {
  TrainConfig config = with(tiny_language_model(), "0.1");
  config.max_updates = config.validate_every = 600;
  EXPECT_LT(train(config, "run", "lines.txt").best.loss, 1.5);  // from log 300 = 5.7
}

TEST_F(TextSampling, tokenizers_of_one_segmentation_are_refused_before_anything_is_made) {
  const auto expect_refusal = [&](const TrainConfig& config, const std::string& word) {
    expect_error(ErrorKind::usage, {word, "one segmentation"},
                 [&] { train(config, "run", "lines.txt"); });
    EXPECT_FALSE(std::filesystem::exists(folder_ / "run"));
  };
  const std::string given = folder_ / "given";
  std::filesystem::create_directory(given);
  character_tokenizer(std::vector<std::string>{"some text"}).save_folder(given);
  for (TrainConfig config : {tiny_language_model(), tiny_bert("sequence_classification")}) {
    expect_refusal(with(config, "0.1", "char"), "char");
    expect_refusal(with(config, "0.1", "wordpiece"), "wordpiece");
    set_from_string(config, "tokenizer", given);
    expect_refusal(with(config, "0.1"), "tokenizer has");
  }
}

}  // namespace
}  // namespace heddle::train
