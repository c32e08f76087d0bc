// Translators that begin from another one: whole, frozen in part, by adapters; in both formats.
#include <gtest/gtest.h>

#include "heddle/io/safetensors.h"
#include "tests/cli/train_runs.h"

namespace heddle::testing {
namespace {

namespace fs = std::filesystem;

// A translator of en to de, which is to learn de to en.
class TranslatorTuning : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = std::make_unique<TempDir>();
    write_pairs(*folder_ / "data");
    const CliResult trained = run_train(*folder_, "first", small_config());
    ASSERT_EQ(trained.exit_code, 0) << trained.err;
    const CliResult exported = run_heddle({"export", path("first"), "--out", path("marian")});
    ASSERT_EQ(exported.exit_code, 0) << exported.err;
  }
  static void TearDownTestSuite() { folder_.reset(); }

  static std::string path(const std::string& name) { return (*folder_ / name).string(); }

  static CliResult tune(const std::string& from, const std::string& run,
                        const std::vector<std::string>& more) {
    std::vector<std::string> words = {"train",      "--from",        path(from), "--data",
                                      path("data"), "--out",         path(run),  "--source-lang",
                                      "de",         "--target-lang", "en",       "--batch-tokens",
                                      "300",        "--max-tokens",  "40",       "--warmup-updates",
                                      "5",          "--precision",   "f32",      "--validate-every",
                                      "10"};
    words.insert(words.end(), more.begin(), more.end());
    return run_heddle(words);
  }

  // Nats that the translations cost, and the program's own.
  struct Judged {
    double nll = 0;
    std::string translations;
  };
  static Judged judge(const std::string& model) {
    const std::string out = path("out.txt");
    const CliResult result =
        run_heddle({"eval", path(model), "--src", path("data/val.de"), "--ref", path("data/val.en"),
                    "--precision", "f32", "--json", "--output", out});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    if (result.exit_code != 0) return {};
    return {Json::parse(result.out).at("nll").as_double(), read_file(out)};
  }

  static SafetensorsFile weights(const std::string& folder) {
    return SafetensorsFile::open(path(folder) + "/model.safetensors");
  }

  static inline std::unique_ptr<TempDir> folder_;
};

// Adam's decay is part of the gradient, which a mean over tokens makes small: with it a translator
// forgets what it knew (Multi30k: loss 1.25 -> 1.87 in 200 updates on its own training text).
TEST_F(TranslatorTuning, weights_decay_apart_from_gradients_unless_asked_otherwise) {
  ASSERT_EQ(tune("first", "decay", {"--max-updates", "1"}).exit_code, 0);
  const Json settings = Json::load(path("decay/train.json"));
  EXPECT_EQ(settings.get_string("optimizer"), "adamw");
  EXPECT_EQ(settings.at("weight_decay").as_double(), 0.01);
  EXPECT_EQ(settings.at("clip_norm").as_double(), 1);
}

TEST_F(TranslatorTuning, adapter_is_evaluated_translated_with_and_exported_as_the_merged_model) {
  for (const std::string from : {"first", "marian"}) {
    SCOPED_TRACE(from);
    const CliResult tuned =
        tune(from, "lora-" + from,
             {"--lora-rank", "8", "--lora-targets", "q_proj,k_proj,v_proj,out_proj,fc1,fc2",
              "--lora-merge", "true", "--learning-rate", "0.03", "--max-updates", "80"});
    ASSERT_EQ(tuned.exit_code, 0) << tuned.err;
    const std::string merged = "lora-" + from + "/best", adapter = "adapter-" + from;
    fs::copy(path(merged), path(adapter));
    fs::remove(path(adapter) + "/model.safetensors");
    EXPECT_EQ(Json::load(path(adapter) + "/adapter_config.json").get_string("task_type"),
              "SEQ_2_SEQ_LM");
    const Judged before = judge(from), after = judge(merged), on_base = judge(adapter);
    EXPECT_LT(after.nll, 0.7 * before.nll);
    EXPECT_EQ(after.nll, on_base.nll);
    EXPECT_EQ(after.translations, on_base.translations);
    const CliResult translated =
        run_heddle({"translate", path(adapter), path("data/val.de"), "--precision", "f32"});
    EXPECT_EQ(translated.out, after.translations) << translated.err;
    for (const std::string& model : {merged, adapter}) {
      const CliResult exported =
          run_heddle({"export", path(model), "--out", path("of-" + model), "--format", "marian"});
      ASSERT_EQ(exported.exit_code, 0) << exported.err;
    }
    EXPECT_EQ(read_file(*folder_ / ("of-" + merged) / "model.safetensors"),
              read_file(*folder_ / ("of-" + adapter) / "model.safetensors"));
  }
}

TEST_F(TranslatorTuning, frozen_weights_stay_and_the_others_learn) {
  const CliResult tuned =
      tune("first", "frozen",
           {"--freeze", "model.encoder", "--learning-rate", "0.01", "--max-updates", "10"});
  ASSERT_EQ(tuned.exit_code, 0) << tuned.err;
  const SafetensorsFile old = weights("first/best"), now = weights("frozen/last");
  for (const std::string& name : old.names()) {
    const bool is_encoder = name.starts_with("model.encoder.");
    EXPECT_EQ(old.info(name).floats() == now.info(name).floats(), is_encoder) << name;
  }
}

TEST_F(TranslatorTuning, whole_model_of_another_format_keeps_its_files_and_learns) {
  const CliResult tuned =
      tune("marian", "whole", {"--learning-rate", "0.01", "--max-updates", "40"});
  ASSERT_EQ(tuned.exit_code, 0) << tuned.err;
  EXPECT_LT(judge("whole").nll, 0.5 * judge("marian").nll);
  for (const char* name : {"source.spm", "vocab.json", "generation_config.json"}) {
    EXPECT_EQ(read_file(*folder_ / "marian" / name), read_file(*folder_ / "whole/best" / name));
  }
}

TEST_F(TranslatorTuning, run_by_adapters_that_was_stopped_ends_in_the_same_bits) {
  const std::vector<std::string> adapters = {"--lora-rank",     "2",   "--ema-decay", "0.9",
                                             "--learning-rate", "0.01"};
  const auto run = [&](const std::string& name, const char* updates) {
    std::vector<std::string> more = adapters;
    more.insert(more.end(), {"--max-updates", updates});
    const CliResult result = tune("first", name, more);
    ASSERT_EQ(result.exit_code, 0) << result.err;
  };
  run("at-once", "20");
  run("in-two", "10");
  run("in-two", "20");
  for (const char* kind : {"best", "last"}) {
    const std::string file = std::string(kind) + "/adapter_model.safetensors";
    EXPECT_EQ(read_file(*folder_ / "at-once" / file), read_file(*folder_ / "in-two" / file));
  }
}

TEST_F(TranslatorTuning, format_that_is_not_heddles_own_needs_a_model_to_begin_from) {
  const CliResult made = run_heddle({"train", "--model-type", "marian", "--task", "translation",
                                     "--data", path("data"), "--out", path("made")});
  EXPECT_EQ(made.exit_code, 2);
  EXPECT_TRUE(contains(made.err, "name it with --from")) << made.err;
}

}  // namespace
}  // namespace heddle::testing
