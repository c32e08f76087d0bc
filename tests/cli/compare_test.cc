// A run's report as it trains, and heddle compare.
#include <gtest/gtest.h>

#include "heddle/base/progress.h"
#include "heddle/train/run/state.h"
#include "tests/cli/page_data.h"
#include "tests/cli/train_runs.h"

namespace heddle::testing {
namespace {

namespace fs = std::filesystem;

// Two runs that differ in their learning rate, trained once.
class Runs : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = std::make_unique<TempDir>();
    write_pairs(*folder_ / "data");
    train::TrainConfig config = config_of(0.003);
    slow_ = run_train(*folder_, "slow", config);
    config = config_of(0.006);
    fast_ = run_train(*folder_, "fast", config);
  }
  static void TearDownTestSuite() { folder_.reset(); }

  static train::TrainConfig config_of(double rate) {
    train::TrainConfig config = small_config();
    config.max_updates = 20;
    config.validate_every = config.log_every = 10;
    config.learning_rate = rate;
    return config;
  }
  static std::string run(const std::string& name) { return (*folder_ / name).string(); }
  static const TempDir& folder() { return *folder_; }

  static inline CliResult slow_, fast_;

 private:
  static inline std::unique_ptr<TempDir> folder_;
};

TEST_F(Runs, report_holds_what_the_log_holds) {
  ASSERT_EQ(slow_.exit_code, 0) << slow_.err;
  const Json run = page_data(folder() / "slow/report.html").at("runs").as_array()[0];
  EXPECT_EQ(run.at("updates").at("update").as_ints(), (std::vector<int64_t>{10, 20}));
  EXPECT_EQ(run.at("validations").as_array()[0].at("update").as_ints(),
            (std::vector<int64_t>{10, 20}));
  EXPECT_EQ(run.at("best").get_string("kind"), "snapshot");
  const Json& samples = run.at("samples");
  EXPECT_EQ(samples.at("labels").as_strings(), (std::vector<std::string>{"en", "de", "model"}));
  ASSERT_EQ(samples.at("validations").size(), 2u);
  EXPECT_EQ(samples.at("validations").as_array()[1].at("samples").size(), 6u);
}

TEST_F(Runs, log_holds_samples_of_each_validation_whose_references_are_held_out_lines) {
  const std::string held_out = read_file(folder() / "data/val.de");
  int validations = 0;
  for (const std::string& text : log_without_times(folder() / "slow")) {
    const Json line = Json::parse(text);
    if (!line.contains("validation")) continue;
    ++validations;
    for (const Json& s : line.at("samples").as_array()) {
      EXPECT_TRUE(contains(held_out, s.get_string("reference") + "\n")) << s.dump();
    }
  }
  EXPECT_EQ(validations, 2);
}

TEST_F(Runs, report_that_cannot_be_written_is_a_warning_and_training_goes_on) {
  fs::remove(folder() / "fast/report.html");
  fs::create_directory(folder() / "fast/report.html");
  train::TrainConfig config = config_of(0.006);
  config.max_updates = 40;
  const CliResult result = run_train(folder(), "fast", config);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(contains(result.err, "warning: no report of this run: ")) << result.err;
  EXPECT_TRUE(contains(result.err, "40 updates")) << result.err;
  // Said once, though three events would have written it.
  EXPECT_EQ(result.err.find("no report"), result.err.rfind("no report"));
  fs::remove(folder() / "fast/report.html");
}

TEST_F(Runs, compare_prints_a_row_a_run_and_the_fields_that_differ) {
  const CliResult result = run_heddle({"compare", run("slow"), run("fast")});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(contains(result.out, "val. loss")) << result.out;
  EXPECT_TRUE(contains(result.out, "learning_rate")) << result.out;
  EXPECT_TRUE(contains(result.out, "0.003")) << result.out;
  EXPECT_TRUE(contains(result.out, "0.006")) << result.out;
  EXPECT_FALSE(contains(result.out, "d_model")) << result.out;
  EXPECT_TRUE(contains(result.out, "\nslow ")) << result.out;
  EXPECT_FALSE(contains(result.out, folder().path().string())) << result.out;
}

TEST_F(Runs, comparison_page_holds_every_run) {
  const std::string page = (folder() / "compare.html").string();
  const CliResult result = run_heddle({"compare", run("slow"), run("fast"), "--page", page});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err, "compare: 2 runs in " + page + "; open it in a browser\n");
  const Json data = page_data(page);
  EXPECT_EQ(data.at("runs").size(), 2u);
  EXPECT_EQ(data.at("runs").as_array()[1].get_string("name"), "fast");
  EXPECT_EQ(data.at("differences").as_array()[0].get_string("key"), "learning_rate");
}

// Neither logged nor validated: what it did is known from its state, its vocabulary from its
// tokenizer.
TEST(StoppedRun, is_compared_and_shown_by_its_state) {
  const TempDir folder;
  std::string text;
  for (int i = 0; i < 20; ++i) text += "to be or not to be, that is the question.\n";
  write_file(folder / "text.txt", text);
  const auto words = [&](const std::string& run, const std::string& updates) {
    return std::vector<std::string>{"train",
                                    "--task",
                                    "causal_lm",
                                    "--data",
                                    (folder / "text.txt").string(),
                                    "--out",
                                    (folder / run).string(),
                                    "--n-layer",
                                    "1",
                                    "--n-head",
                                    "1",
                                    "--n-embd",
                                    "8",
                                    "--n-positions",
                                    "8",
                                    "--batch-size",
                                    "2",
                                    "--checkpoint-every",
                                    "4",
                                    "--log-every",
                                    "100000",
                                    "--validate-every",
                                    "100000",
                                    "--precision",
                                    "f32",
                                    "--max-updates",
                                    updates};
  };
  ASSERT_EQ(run_heddle(words("whole", "5")).exit_code, 0);
  std::string command = kProgram;
  for (const std::string& w : words("stopped", "100000")) command += " '" + w + "'";
  const CliResult stopped =
      run_command({"sh", "-c",
                   command + " & p=$!; until [ -f '" + (folder / "stopped").string() +
                       "/state/manifest.json' ]; do sleep 0.01; done; kill -INT $p; wait $p"});
  ASSERT_EQ(stopped.exit_code, 130) << stopped.err;
  const auto place = train::StateFolder::place((folder / "stopped/state").string());
  ASSERT_TRUE(place.has_value());
  EXPECT_GE(place->update, 4);
  const CliResult compared =
      run_heddle({"compare", (folder / "whole").string(), (folder / "stopped").string()});
  EXPECT_EQ(compared.exit_code, 0) << compared.err;
  const std::string row = compared.out.substr(compared.out.find("\nstopped "));
  EXPECT_TRUE(contains(row.substr(0, row.find('\n', 1)), " " + format_count(place->update) + " "))
      << compared.out;
  EXPECT_FALSE(contains(compared.out, "vocab_size")) << compared.out;
  const Json run = page_data(folder / "stopped/report.html").at("runs").as_array()[0];
  EXPECT_EQ(run.get_int("done"), place->update);
  EXPECT_GT(run.get_double("seconds"), 0);
  EXPECT_FALSE(run.get_bool("finished"));
  const Json whole = page_data(folder / "whole/report.html").at("runs").as_array()[0];
  EXPECT_TRUE(whole.get_bool("finished"));
}

TEST_F(Runs, bad_input_of_compare_is_said) {
  const auto expect_refused = [](const std::vector<std::string>& words, int exit_code,
                                 const std::string& part) {
    const CliResult result = run_heddle(words);
    EXPECT_EQ(result.exit_code, exit_code) << result.err;
    EXPECT_TRUE(contains(result.err, part)) << result.err;
  };
  expect_refused({"compare"}, 2, "runs is required");
  expect_refused({"compare", run("data")}, 3, "there is no training run");
  expect_refused({"compare", run("slow"), "--page", run("none/page.html")}, 3, "does not exist");
  fs::copy(folder() / "slow", folder() / "broken", fs::copy_options::recursive);
  write_file(folder() / "broken/log.jsonl", "{\"update\": 1}\n{broken\n");
  expect_refused({"compare", run("broken")}, 3, "log.jsonl:1");
  write_file(folder() / "broken/log.jsonl", "{\"update\": 1");  // still being written
  EXPECT_EQ(run_heddle({"compare", run("broken")}).exit_code, 0);
}

}  // namespace
}  // namespace heddle::testing
