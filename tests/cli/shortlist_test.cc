// heddle shortlist at the command line, and what translate and eval do with its file.
#include <gtest/gtest.h>

#include "tests/cli/model_fixture.h"

namespace heddle::testing {
namespace {

class ShortlistCommand : public ModelFixture {
 protected:
  void SetUp() override {
    write_file(path("a"), "the old man reads two books !\n\nmy sister\n");
    write_file(path("b"), "der alte Mann liest !\n\nmeine Schwester\n");
  }
  std::string path(const std::string& name) { return (folder_ / name).string(); }
  CliResult make(const std::string& source = "a", const std::string& target = "b",
                 const std::vector<std::string>& flags = {}) {
    std::vector<std::string> words = {"shortlist", model(),      "--src", path(source),
                                      "--tgt",     path(target), "-o",    path("list")};
    words.insert(words.end(), flags.begin(), flags.end());
    return run_heddle(words);
  }
  void refused(int exit_code, const std::string& part, const CliResult& result) {
    EXPECT_EQ(result.exit_code, exit_code) << result.err;
    EXPECT_NE(result.err.find(part), std::string::npos) << result.err;
  }

  TempDir folder_;
};

TEST_F(ShortlistCommand, writes_a_file_that_translate_and_eval_take) {
  const CliResult made = make();
  ASSERT_EQ(made.exit_code, 0) << made.err;
  EXPECT_NE(made.out.find("of 312 tokens as candidates (mean of 2 pairs"), std::string::npos)
      << made.out;
  EXPECT_NE(made.out.find("100.00 % of its translation's"), std::string::npos) << made.out;
  for (const std::string beam : {"1", "3"}) {
    const CliResult whole =
        run_heddle({"translate", model(), "--beam", beam}, with_input("the old man\nmy dog\n"));
    const CliResult limited =
        run_heddle({"translate", model(), "--beam", beam, "--shortlist", path("list")},
                   with_input("the old man\nmy dog\n"));
    ASSERT_EQ(limited.exit_code, 0) << limited.err;
    EXPECT_EQ(split_lines(limited.out).size(), 2u);
    EXPECT_NE(limited.out, whole.out);
  }
  const CliResult scored = run_heddle({"eval", model(), "--src", path("a"), "--ref", path("b"),
                                       "--shortlist", path("list"), "--json"});
  EXPECT_EQ(scored.exit_code, 0) << scored.err;
}

TEST_F(ShortlistCommand, bad_input_gets_an_error_that_names_it) {
  write_file(path("c"), "eine Zeile\n");
  refused(3, "has 3 lines", make("a", "c"));
  write_file(path("blank"), "\n\n\n");
  refused(3, "no pair of lines", make("a", "blank"));
  refused(3, "nowhere", make("nowhere"));
  write_file(path("latin1"), "der alte Mann\n\xe4\n\n");
  refused(3, "line 2", make("a", "latin1"));
  refused(2, "--candidates", make("a", "b", {"--candidates", "0"}));
  refused(
      2, "would be overwritten",
      run_heddle({"shortlist", model(), "--src", path("a"), "--tgt", path("b"), "-o", path("b")}));
  refused(2, "--frequent", make("a", "b", {"--frequent", "-1"}));
  const CliResult piped = run_heddle(
      {"shortlist", model(), "--src", path("a"), "--tgt", path("b"), "-o", "/dev/stdout"});
  EXPECT_EQ(piped.exit_code, 0) << piped.err;  // it cannot be read again for its figures
  EXPECT_FALSE(std::filesystem::exists(path("list")));
  const auto translate = [&](std::vector<std::string> flags) {
    flags.insert(flags.begin(), {"translate", model(), "--shortlist"});
    return run_heddle(flags, with_input("the old man\n"));
  };
  refused(3, "nowhere", translate({path("nowhere")}));
  refused(3, path("a"), translate({path("a")}));
  refused(3, "this is no shortlist", translate({model() + "/model.safetensors"}));
  ASSERT_EQ(make().exit_code, 0);
  refused(2, "--shortlist excludes --page", translate({path("list"), "--page", path("x.html")}));
}

}  // namespace
}  // namespace heddle::testing
