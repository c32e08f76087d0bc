// The installed tree: the program, its manual and completion, and programs that others build over
// the library by find_package(heddle).
#include <gtest/gtest.h>

#include "tests/cli/model_fixture.h"

namespace heddle::testing {
namespace {

namespace fs = std::filesystem;

std::string seen(const CliResult& result) { return result.out + result.err; }

/// Installed once, and the examples built once over it.
class Installed : public ModelFixture {
 protected:
  static void SetUpTestSuite() {
    ModelFixture::SetUpTestSuite();
    place_ = std::make_unique<TempDir>();
    installed_ = run_command({kCmake, "--install", kBuild, "--prefix", prefix()});
    if (installed_.exit_code != 0) return;
    const std::string examples = std::string(kSource) + "/examples";
    configured_ = run_command({kCmake, "-S", examples, "-B", build(), "-G", "Ninja",
                               "-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_PREFIX_PATH=" + prefix(),
                               std::string("-DCMAKE_CXX_COMPILER=") + kCompiler});
    if (configured_.exit_code != 0) return;
    CliOptions patient;
    patient.timeout_seconds = 280;
    built_ = run_command({kCmake, "--build", build()}, patient);
  }
  static void TearDownTestSuite() {
    place_.reset();
    ModelFixture::TearDownTestSuite();
  }

  static std::string prefix() { return (*place_ / "prefix").string(); }
  static std::string build() { return (*place_ / "build").string(); }
  static std::string example(const std::string& name) { return build() + "/" + name; }
  void needs_examples() const {
    ASSERT_EQ(built_.exit_code, 0) << seen(installed_) << seen(configured_) << seen(built_);
  }

  static inline CliResult installed_, configured_, built_;

 private:
  static inline std::unique_ptr<TempDir> place_;
};

TEST_F(Installed, program_manual_and_completions_are_in_their_places) {
  ASSERT_EQ(installed_.exit_code, 0) << seen(installed_);
  EXPECT_EQ(run_command({prefix() + "/bin/heddle", "--version"}).out.substr(0, 7), "heddle ");
  for (const char* file :
       {"share/man/man1/heddle.1", "share/man/man1/heddle-tokenizer-train.1",
        "share/bash-completion/completions/heddle", "share/zsh/site-functions/_heddle",
        "share/fish/vendor_completions.d/heddle.fish", "include/heddle/ops/attention.h"}) {
    EXPECT_TRUE(fs::exists(fs::path(prefix()) / file)) << file;
  }
}

TEST_F(Installed, headers_of_the_program_and_of_kernels_for_one_machine_are_not_there) {
  EXPECT_FALSE(fs::exists(prefix() + "/include/heddle/cli"));
  EXPECT_FALSE(fs::exists(prefix() + "/include/heddle/kernels/cpu"));
  EXPECT_TRUE(fs::exists(prefix() + "/include/heddle/kernels/kernels.h"));
}

TEST_F(Installed, example_of_attention_prints_the_worked_weights) {
  needs_examples();
  const CliResult result = run_command({example("attention")});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find("weights  0.9975, 0.0025, 0.0000\n"), std::string::npos) << result.out;
}

TEST_F(Installed, examples_refuse_what_is_no_number) {
  needs_examples();
  for (const char* name : {"attention", "train"}) {
    for (const char* number : {"abc", "10abc", ""}) {
      const CliResult result = run_command({example(name), number});
      EXPECT_EQ(result.exit_code, 2) << name << " " << number;
      EXPECT_NE(result.err.find("'" + std::string(number) + "'"), std::string::npos) << result.err;
    }
  }
}

TEST_F(Installed, example_of_training_learns) {
  needs_examples();
  const CliResult result = run_command({example("train"), "100"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const size_t at = result.out.find("loss ");
  ASSERT_NE(at, std::string::npos) << result.out;
  // Five of the ten digits are random, ln(10) each: 1.15 is the least, 2.3 knows nothing.
  EXPECT_LT(std::stod(result.out.substr(at + 5)), 2.2);
}

TEST_F(Installed, example_of_translation_gives_what_the_program_gives) {
  needs_examples();
  const std::string input = "the dog sleeps\n\na house\r\n";
  const CliResult result = run_command({example("translate"), model()}, with_input(input));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, run_heddle({"translate", model(), "--beam", "5"}, with_input(input)).out);
  EXPECT_EQ(split_lines(result.out).size(), 3u);
}

TEST_F(Installed, example_of_translation_says_what_is_wrong_with_a_missing_model) {
  needs_examples();
  const CliResult result = run_command({example("translate"), "no-such-model"});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_NE(result.err.find("no-such-model"), std::string::npos) << result.err;
}

}  // namespace
}  // namespace heddle::testing
