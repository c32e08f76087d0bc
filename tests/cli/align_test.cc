// heddle align and translate --alignment at the command line, and bad input.
#include <gtest/gtest.h>

#include "heddle/base/json/json.h"
#include "tests/cli/model_fixture.h"

namespace heddle::testing {
namespace {

class Align : public ModelFixture {
 protected:
  void SetUp() override {
    write_file(path("a"), "the old man reads two books !\n\nmy sister\n");
    write_file(path("b"), "der alte Mann liest !\n\nmeine Schwester\n");
    write_file(path("gold"), "0-0 1-1 2-2 6-4\n\n0-0 0p1\n");
  }
  std::string path(const std::string& name) { return (folder_ / name).string(); }
  CliResult align(std::vector<std::string> flags) {
    flags.insert(flags.begin(), {"align", model()});
    return run_heddle(flags);
  }
  CliResult align_files(std::vector<std::string> flags = {}) {
    flags.insert(flags.end(), {"--src", path("a"), "--tgt", path("b")});
    return align(flags);
  }

  TempDir folder_;
};

TEST_F(Align, gives_a_line_of_links_for_each_pair_a_link_for_each_target_word) {
  const CliResult result = align_files();
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto lines = split_lines(result.out);
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(std::count(lines[0].begin(), lines[0].end(), '-'), 5);
  EXPECT_TRUE(lines[0].ends_with("6-4")) << lines[0];  // the mark
  EXPECT_EQ(lines[1], "");
  write_file(path("pairs"),
             "the old man reads two books ! ||| der alte Mann liest !\n ||| \n"
             "my sister ||| meine Schwester\n");
  EXPECT_EQ(align({"--pairs", path("pairs")}).out, result.out);
}

TEST_F(Align, gold_gives_the_error_rate_as_text_or_json) {
  const CliResult text = align_files({"--gold", path("gold"), "--output", path("links")});
  ASSERT_EQ(text.exit_code, 0) << text.err;
  EXPECT_TRUE(text.out.starts_with("AER ")) << text.out;
  EXPECT_EQ(read_file(path("links")), align_files().out);
  const CliResult json = align_files({"--gold", path("gold"), "--json"});
  const Json report = Json::parse(json.out);
  EXPECT_EQ(report.get_int("pairs"), 3);
  EXPECT_EQ(report.get_int("links"), 7);
  EXPECT_EQ(report.get_int("sure"), 5);
  const CliResult each = align_files({"--gold", path("gold"), "--each-head"});
  EXPECT_EQ(split_lines(each.out).size(), 2u * 4 + 1) << each.out;
  const Json heads =
      Json::parse(align_files({"--gold", path("gold"), "--each-head", "--json"}).out).at("heads");
  ASSERT_EQ(heads.size(), 2u * 4);
  const Json& last = heads.as_array()[7];
  EXPECT_EQ(fmt::format("layer {}, head {}  AER {:.4f}  precision {:.4f}  recall {:.4f}",
                        last.get_int("layer"), last.get_int("head"), last.get_double("aer"),
                        last.get_double("precision"), last.get_double("recall")),
            split_lines(each.out)[7]);
}

TEST_F(Align, translate_adds_the_alignment_of_what_it_gives) {
  const std::string text = "the old man reads two books !\n\nmy sister\n";
  const CliResult plain = run_heddle({"translate", model()}, with_input(text));
  const CliResult result = run_heddle({"translate", model(), "--alignment"}, with_input(text));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  write_file(path("hyp"), plain.out);
  const auto links = split_lines(align({"--src", path("a"), "--tgt", path("hyp")}).out);
  const auto lines = split_lines(result.out), texts = split_lines(plain.out);
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[1], " ||| ");
  for (const size_t i : {0, 1, 2}) EXPECT_TRUE(lines[i].starts_with(texts[i] + " ||| "));
  const CliResult json = run_heddle(
      {"translate", model(), "--alignment", "--json", "--n-best", "2"}, with_input(text));
  const Json first = Json::parse(split_lines(json.out)[0]);
  EXPECT_EQ(first.at("n_best").size(), 2u);
  EXPECT_NE(first.at("n_best").as_array().at(1).get_string("alignment"), "");
}

TEST_F(Align, statistics_of_the_pairs_align_without_a_model) {
  std::string german, english;
  for (int i = 0; i < 20; ++i) {
    german += i % 2 == 0 ? "das Haus\n" : "das Buch .\n";
    english += i % 2 == 0 ? "the house\n" : "the book .\n";
  }
  write_file(path("de"), german);
  write_file(path("en"), english);
  write_file(path("one.de"), "das Haus\n\n");
  write_file(path("one.en"), "the house\n\n");
  const std::vector<std::string> command = {"align",        "--statistical", "--src",
                                            path("one.de"), "--tgt",         path("one.en")};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), command.begin(), command.end());
    return run_heddle(more);
  };
  const CliResult learned = with({"--train-src", path("de"), "--train-tgt", path("en")});
  EXPECT_EQ(learned.exit_code, 0) << learned.err;
  EXPECT_EQ(learned.out, "0-0 1-1\n\n");
  write_file(path("links"), "0-0 1-1\n\n");
  const CliResult scored = with({"--train-src", path("de"), "--train-tgt", path("en"), "--gold",
                                 path("links"), "--symmetrize", "none", "--ibm-model", "1"});
  EXPECT_TRUE(scored.out.starts_with("AER 0.0000 ")) << scored.out << scored.err;
  EXPECT_EQ(with({"--train-src", path("de")}).exit_code, 2);
  EXPECT_EQ(with({"--ibm-model", "3"}).exit_code, 2);
  EXPECT_EQ(with({"--align-heads", "1"}).exit_code, 2);
  EXPECT_EQ(with({"--skip-bad"}).exit_code, 2);
  EXPECT_EQ(align_files({"--symmetrize", "union"}).exit_code, 2);
  write_file(path("latin"), "f\xFCr\n\n");
  const CliResult latin =
      run_heddle({"align", "--statistical", "--src", path("latin"), "--tgt", path("one.en")});
  EXPECT_EQ(latin.exit_code, 3);
  EXPECT_NE(latin.err.find("latin: line 1"), std::string::npos) << latin.err;
  EXPECT_EQ(with({model()}).exit_code, 2);
  EXPECT_EQ(run_heddle({"align", "--src", path("a"), "--tgt", path("b")}).exit_code, 2);
}

TEST_F(Align, what_is_not_there_is_said) {
  struct Case {
    std::vector<std::string> flags;
    int code;
    std::string says;
  };
  write_file(path("short"), "0-0\n");
  write_file(path("bad"), "0-0\nx\n\n");
  for (const Case& c :
       {Case{{"--align-layers", "2"}, 2, "no decoder layer 2"},
        Case{{"--align-heads", "0,4"}, 2, "no head 4"},
        Case{{"--gold", path("short")}, 3, "1 lines, but there are 3 pairs"},
        Case{{"--gold", path("bad")}, 3, "line 2: 'x' is no link"},
        Case{{"--gold", path("none")}, 3, "none"}, Case{{"--gold-base", "2"}, 2, "--gold-base"},
        Case{{"--each-head"}, 2, "--gold"}, Case{{"--pairs", path("a")}, 2, "--pairs"},
        Case{{"--output", "/no/such/folder/x"}, 3, "/no/such/folder"}}) {
    const CliResult result = align_files(c.flags);
    EXPECT_EQ(result.exit_code, c.code) << c.flags[0] << result.err;
    EXPECT_NE(result.err.find(c.says), std::string::npos) << result.err;
    EXPECT_EQ(result.out, "");
  }
  EXPECT_EQ(align({}).exit_code, 2);
  EXPECT_EQ(align({"--pairs", path("a")}).exit_code, 3);
  EXPECT_EQ(run_heddle({"translate", model(), "--align-heads", "1"}, with_input("")).exit_code, 2);
}

}  // namespace
}  // namespace heddle::testing
