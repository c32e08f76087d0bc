// Runs of a tiny language model over characters: what they leave, that they learn, go on in the
// same bits, and what is refused.
#include <gtest/gtest.h>

#include <filesystem>

#include "heddle/base/log.h"
#include "heddle/base/parallel.h"
#include "heddle/infer/loading/loaded_model.h"
#include "heddle/text/tokenizer.h"
#include "heddle/train/trainer.h"
#include "tests/base/temporary.h"
#include "tests/train/small_run.h"

namespace heddle::train {
namespace {

namespace fs = std::filesystem;

// 2,400 characters whose next one follows from the one before it but at the letter x.
std::string simple_text() {
  std::string text;
  for (int i = 0; i < 300; ++i) text += i * i % 7 < 3 ? "abcdefx\n" : "gfedcbx\n";
  return text;
}

TrainConfig tiny_config() {
  TrainConfig c = default_config("causal_lm");
  for (const char* key : {"n_layer", "n_head"}) c.stack.set(key, 1);
  c.stack.set("n_embd", 16);
  c.stack.set("n_positions", 12);
  testing::make_short(c);
  return c;
}

class LanguageRun : public ::testing::Test {
 protected:
  LanguageRun() {
    set_log_level(LogLevel::error);
    folder_.write("text.txt", simple_text());
  }
  ~LanguageRun() override { set_log_level(LogLevel::info); }
  RunResult train(const TrainConfig& config, const std::string& name,
                  const std::string& data = "text.txt") {
    return train_model(config, {.paths = {.data = folder_ / data}, .out = folder_ / name});
  }
  std::string weights(const std::string& name) {
    return testing::read_file(folder_ / (name + "/last/model.safetensors"));
  }
  TemporaryFolder folder_;
};

TEST_F(LanguageRun, model_learns_and_loads_with_its_characters) {
  TrainConfig config = tiny_config();
  config.max_updates = config.validate_every = 150;
  const RunResult result = train(config, "run");
  // A choice between two at one of 8 characters: 0.08 nats at best; from log 9 = 2.2. Contexts are
  // cut, so the first characters of a sequence are harder.
  EXPECT_LT(result.best.loss, 0.5);
  const LoadedModel m = load_model(folder_ / "run");
  EXPECT_EQ(m.type, "gpt2");
  EXPECT_EQ(m.tokens().vocab_size(), 9);
  EXPECT_EQ(Tokenizer::load(folder_ / "run/best").vocab_size(), 9);
}

TEST_F(LanguageRun, what_is_trained_on_is_said_in_characters_with_separators) {
  set_log_level(LogLevel::info);
  ::testing::internal::CaptureStderr();
  train(tiny_config(), "run");
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("2,160 characters to train on, 240 held out, 9 in the vocabulary"),
            std::string::npos)
      << said;
}

TEST_F(LanguageRun, run_in_two_ends_in_the_bits_of_a_whole_one) {
  for (const char* sampling : {"random", "consecutive"}) {
    TrainConfig config = tiny_config();
    set_from_string(config, "sampling", sampling);
    config.accumulate = 3;
    config.max_updates = 45;  // beyond an epoch of 23 batches
    const std::string whole = std::string("whole-") + sampling,
                      two = std::string("two-") + sampling;
    train(config, whole);
    config.max_updates = 26;
    train(config, two);
    config.max_updates = 45;
    train(config, two);
    EXPECT_TRUE(weights(whole) == weights(two)) << sampling;
  }
}

// What stands behind each document in training ends a text in generate and in transformers.
TEST_F(LanguageRun, ends_of_the_tokenizer_are_in_the_config) {
  TrainConfig config = tiny_config();
  set_from_string(config, "tokenizer_type", "unigram");
  config.stack.set("vocab_size", 269);
  train(config, "run");
  const Tokenizer tokenizer = Tokenizer::load(folder_ / "run/best");
  ASSERT_GE(tokenizer.eos_id(), 0);
  const Json json = Json::load(folder_ / "run/best/config.json");
  EXPECT_EQ(json.get_int("eos_token_id"), tokenizer.eos_id());
  EXPECT_TRUE(json.contains("bos_token_id"));
}

TEST_F(LanguageRun, threads_change_no_bit) {
  TrainConfig config = tiny_config();
  const int before = num_threads();
  set_num_threads(1);
  train(config, "one");
  set_num_threads(3);
  train(config, "three");
  set_num_threads(before);
  EXPECT_TRUE(weights("one") == weights("three"));
}

TEST_F(LanguageRun, text_that_changed_is_refused) {
  TrainConfig config = tiny_config();
  train(config, "run");
  config.max_updates = 30;
  folder_.write("text.txt", "x" + simple_text().substr(1));
  expect_error(ErrorKind::data, {"training data", "overwrite"}, [&] { train(config, "run"); });
}

TEST_F(LanguageRun, what_cannot_be_trained_is_refused_and_leaves_no_folder) {
  const auto refused = [&](ErrorKind kind, const TrainConfig& config, const std::string& text,
                           const std::vector<std::string>& words) {
    folder_.write("other.txt", text);
    expect_error(kind, words, [&] { train(config, "refused", "other.txt"); });
    EXPECT_FALSE(fs::exists(folder_ / "refused"));
  };
  const TrainConfig config = tiny_config();
  refused(ErrorKind::data, config, "", {"other.txt", "no text"});
  refused(ErrorKind::data, config, "a short text", {"10 tokens", "13", "block_size"});
  refused(ErrorKind::data, config, std::string(300, 'a') + "\xff", {"UTF-8"});
  TrainConfig longer = config;
  set_from_string(longer, "block_size", "13");
  refused(ErrorKind::usage, longer, simple_text(), {"block_size 13", "12 tokens"});
  expect_error(ErrorKind::usage, {"data", "causal_lm"},
               [&] { train_model(config, {.out = folder_ / "refused"}); });
  TrainConfig heads = config;
  heads.stack.set("n_head", 3);
  refused(ErrorKind::data, heads, simple_text(), {"n_embd 16", "3 heads"});
}

TEST(TrainConfig, tasks_have_fields_of_their_own) {
  TrainConfig config = default_config("causal_lm");
  set_from_string(config, "n_embd", "32");
  EXPECT_EQ(config.stack.width(), 32);
  TrainConfig copy = config;
  copy.stack.set("n_embd", 64);
  EXPECT_EQ(config.stack.width(), 32);  // a copy is independent
  expect_error(ErrorKind::usage, {"unknown field d_model"},
               [&] { set_from_string(config, "d_model", "32"); });
  expect_error(ErrorKind::usage, {"'causal'", "causal_lm"}, [] { default_config("causal"); });
  expect_error(ErrorKind::usage, {"marian", "gpt2"}, [] { default_config("causal_lm", "marian"); });
  apply_preset(config, "gpt2-xl");
  EXPECT_EQ(config.stack.width(), 1600);
  EXPECT_EQ(config.stack.integer({"n_layer"}), 48);
  EXPECT_EQ(config.stack.integer({"n_head"}), 25);
  const auto differences = diff_fields(TrainConfig(), config);
  EXPECT_EQ(differences[0].key, "task");
}

}  // namespace
}  // namespace heddle::train
