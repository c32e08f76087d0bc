// Lines in, answers out, of every command that reads them: pipes, terminals, bad and blank lines,
// byte-order marks.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/cli/language_model.h"
#include "tests/support/conversation.h"

namespace heddle::testing {
namespace {

std::string texts_model(const std::string& name) {
  return std::string(kFixtures) + "/texts/" + name;
}

// A command that reads lines, without --json.
struct LineCommand {
  std::vector<std::string> words;
  std::string line, other;  // lines that it answers, each differently
  bool has_json = true;
};

class LineCommands : public LanguageModelFixture {
 protected:
  static void SetUpTestSuite() {
    LanguageModelFixture::SetUpTestSuite();
    translator_ = std::make_unique<TempDir>();
    write_small_model((*translator_ / "model").string());
  }
  static void TearDownTestSuite() {
    translator_.reset();
    LanguageModelFixture::TearDownTestSuite();
  }
  static std::string translator() { return (*translator_ / "model").string(); }

  static std::vector<LineCommand> commands() {
    const std::string tokenizer = texts_model("fill");
    return {{{"translate", translator()}, "the old man", "my sister"},
            {{"generate", model(), "--max-new-tokens", "3"}, "the old man", "two"},
            {{"classify", texts_model("classify")}, "the fox", "low"},
            {{"fill", texts_model("fill"), "--top", "1"}, "the [MASK] fox", "[MASK] low"},
            {{"embed", texts_model("encoder")}, "the fox", "low"},
            {{"align", translator(), "--pairs", "-"},
             "the old man ||| der alte Mann",
             "my sister ||| meine Schwester",
             false},
            {{"tokenizer", "encode", tokenizer}, "the fox", "low", false},
            {{"tokenizer", "decode", tokenizer}, "20 21", "22", false}};
  }
  static CliResult run(const LineCommand& command, const std::string& input,
                       const std::vector<std::string>& flags = {}) {
    std::vector<std::string> words = command.words;
    words.insert(words.end(), flags.begin(), flags.end());
    return run_heddle(words, with_input(input));
  }
  // What is printed of one line.
  static std::string answer(const LineCommand& command, const std::string& line) {
    const CliResult result = run(command, line + "\n");
    EXPECT_EQ(result.exit_code, 0) << command.words[0] << ": " << result.err;
    EXPECT_TRUE(result.out.size() > 1) << command.words[0];
    return result.out;
  }
  static std::string parted(const LineCommand& command, const std::vector<std::string>& answers) {
    std::string all;
    for (const std::string& one : answers) {
      if (!all.empty() && command.words[0] == "generate") all += "----------\n";
      if (!all.empty() && command.words[0] == "fill" && one != "\n") all += "\n";
      all += one;
    }
    return all;
  }

 private:
  static inline std::unique_ptr<TempDir> translator_;
};

TEST_F(LineCommands, line_is_answered_while_the_writer_waits) {
  for (const LineCommand& command : commands()) {
    Conversation talk(command.words);
    talk.say(command.line + "\n");
    const std::string first = talk.answer();
    EXPECT_EQ(first, answer(command, command.line)) << command.words[0];
    talk.say(command.other.substr(0, 1));
    talk.say(command.other.substr(1) + "\n");
    std::string second = talk.answer();
    const bool are_parted = command.words[0] == "generate" || command.words[0] == "fill";
    if (are_parted) second = talk.answer();  // after the line that parts them
    EXPECT_EQ(second, answer(command, command.other)) << command.words[0];
    EXPECT_EQ(talk.end(), 0) << command.words[0];
  }
}

// Weights that are written to in place between two lines: not other answers with exit code 0.
TEST_F(LineCommands, weights_that_change_in_place_end_the_answers_with_a_message) {
  for (const LineCommand& command : commands()) {
    if (command.words[0] == "tokenizer") continue;  // it maps no weights
    const TempDir copy;
    const std::string folder = (copy / "model").string();
    std::vector<std::string> words = command.words;
    std::filesystem::copy(words[1], folder, std::filesystem::copy_options::recursive);
    words[1] = folder;
    const std::string weights = folder + "/model.safetensors";
    ASSERT_TRUE(std::filesystem::exists(weights)) << folder;
    std::filesystem::last_write_time(
        weights, std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
    Conversation talk(words);
    talk.say(command.line + "\n");
    EXPECT_EQ(talk.answer(), answer(command, command.line)) << command.words[0];
    std::fstream(weights, std::ios::in | std::ios::out | std::ios::binary).put('\x01');
    talk.say(command.other + "\n");
    const std::string message = talk.message();
    EXPECT_NE(message.find("written to while in use"), message.npos) << message;
    EXPECT_EQ(talk.end(), 3) << command.words[0];
  }
}

TEST_F(LineCommands, terminal_is_told_what_is_read_and_how_to_end) {
  for (const LineCommand& command : commands()) {
    Conversation talk(command.words, Conversation::Input::terminal);
    const std::string message = talk.message();
    EXPECT_TRUE(message.starts_with(command.words[0])) << message;
    EXPECT_NE(message.find("reading lines from the terminal; Ctrl-D ends"), message.npos)
        << message;
    talk.say(command.line + "\n");
    EXPECT_EQ(talk.answer(), answer(command, command.line)) << command.words[0];
    EXPECT_EQ(talk.end(), 0) << command.words[0];
  }
}

TEST_F(LineCommands, bad_line_comes_after_the_answers_of_the_lines_before_it) {
  for (const LineCommand& command : commands()) {
    const std::string good = answer(command, command.line);
    const CliResult result =
        run(command, command.line + "\n" + command.line + "\nbad \xFF\n" + command.other + "\n");
    EXPECT_EQ(result.exit_code, 3) << command.words[0];
    EXPECT_EQ(result.out, parted(command, {good, good})) << command.words[0];
    EXPECT_NE(result.err.find("line 3"), std::string::npos) << result.err;
  }
}

TEST_F(LineCommands, skipped_lines_are_empty_and_counted_and_change_no_other_answer) {
  for (const LineCommand& command : commands()) {
    const std::string input =
        command.line + "\nbad \xFF\n" + command.other + "\n\xFF\n" + command.line + "\n";
    const CliResult result = run(command, input, {"--skip-bad"});
    EXPECT_EQ(result.exit_code, 0) << command.words[0] << result.err;
    const std::string line = answer(command, command.line), other = answer(command, command.other);
    EXPECT_EQ(result.out, parted(command, {line, "\n", other, "\n", line})) << command.words[0];
    EXPECT_NE(result.err.find("line 2: not UTF-8"), std::string::npos) << result.err;
    EXPECT_NE(result.err.find("2 of 5 lines were skipped"), std::string::npos) << result.err;
    if (!command.has_json) continue;
    const auto objects = json_lines(run(command, input, {"--skip-bad", "--json"}).out);
    ASSERT_EQ(objects.size(), 5u) << command.words[0];
    EXPECT_FALSE(objects[2].contains("error"));
    EXPECT_TRUE(objects[3].get_string("error").starts_with("line 4: not UTF-8"));
  }
}

TEST_F(LineCommands, nothing_but_bad_lines_is_a_data_error_even_when_they_are_skipped) {
  for (const LineCommand& command : commands()) {
    const CliResult result = run(command, "\xFF\n\xFE x\n", {"--skip-bad"});
    EXPECT_EQ(result.exit_code, 3) << command.words[0];
    EXPECT_NE(result.err.find("none of the 2 lines could be answered"), std::string::npos)
        << result.err;
  }
}

TEST_F(LineCommands, byte_order_mark_and_carriage_returns_change_no_answer) {
  for (const LineCommand& command : commands()) {
    const std::string text = command.line + "\n" + command.other + "\n";
    const CliResult plain = run(command, text);
    const CliResult marked =
        run(command, "\xEF\xBB\xBF" + command.line + "\r\n" + command.other + "\r\n");
    EXPECT_EQ(marked.out, plain.out) << command.words[0];
    EXPECT_EQ(marked.exit_code, 0) << command.words[0] << marked.err;
  }
}

TEST_F(LineCommands, blank_line_has_an_answer_of_its_own_and_the_next_line_goes_on) {
  for (const LineCommand& command : commands()) {
    for (const std::string blank : {"", " \t"}) {
      const CliResult result =
          run(command, command.line + "\n" + blank + "\n" + command.line + "\n");
      EXPECT_EQ(result.exit_code, 0) << command.words[0] << result.err;
      const std::string line = answer(command, command.line);
      EXPECT_TRUE(result.out.starts_with(line)) << command.words[0];
      EXPECT_TRUE(result.out.ends_with(line)) << command.words[0];
      EXPECT_GT(result.out.size(), 2 * line.size()) << command.words[0];
    }
  }
}

TEST_F(LineCommands, blank_prompt_of_a_model_that_cannot_begin_is_blank) {
  const TempDir folder;
  const std::string none = (folder / "none").string();
  write_language_model(none, "{}");
  const auto objects = json_lines(
      run_heddle({"generate", none, "--json", "--max-new-tokens", "2"}, with_input("the\n\ntwo\n"))
          .out);
  ASSERT_EQ(objects.size(), 3u);
  EXPECT_EQ(objects[1].get_string("error"), "line 2 is blank");
  EXPECT_EQ(objects[2].get_int("prompt"), 3);
}

// A draw is a function of seed and line number, whatever the lines between.
TEST_F(LineCommands, skipped_line_changes_no_draw_of_later_ones) {
  const std::vector<std::string> words = {
      "generate", model(), "--sample", "--json", "--skip-bad", "--max-new-tokens", "8"};
  const auto all = json_lines(run_heddle(words, with_input("the\nmy\ntwo\n")).out);
  const auto some = json_lines(run_heddle(words, with_input("the\n\xFF\ntwo\n")).out);
  ASSERT_EQ(some.size(), 3u);
  EXPECT_EQ(some[0], all[0]);
  EXPECT_EQ(some[2], all[2]);
}

TEST_F(LineCommands, prefixes_stay_with_their_lines_where_one_is_skipped) {
  const TempDir folder;
  write_file(folder / "prefixes", "the\nmy\ntwo\nold\n");
  const std::vector<std::string> words = {"translate", translator(), "--skip-bad", "--prefix-file",
                                          (folder / "prefixes").string()};
  const auto all = split_lines(run_heddle(words, with_input("the\nmy\ntwo\nold\n")).out);
  const auto some = split_lines(run_heddle(words, with_input("the\n\xFF\ntwo\nold\n")).out);
  ASSERT_EQ(some.size(), 4u);
  EXPECT_EQ(some[0], all[0]);
  EXPECT_EQ(some[1], "");
  EXPECT_EQ(some[2], all[2]);
  EXPECT_EQ(some[3], all[3]);
}

TEST_F(LineCommands, translate_takes_a_file_by_its_name) {
  const TempDir folder;
  const std::string path = (folder / "lines.txt").string();
  write_file(path, "the old man\nmy \xFFsister\n");
  const CliResult from_file = run_heddle({"translate", translator(), path});
  EXPECT_EQ(from_file.exit_code, 3);
  EXPECT_EQ(from_file.out, answer(commands()[0], "the old man"));
  EXPECT_NE(from_file.err.find(path + ": line 2: not UTF-8"), std::string::npos) << from_file.err;
  EXPECT_EQ(run_heddle({"translate", translator(), "-"}, with_input("the old man\n")).out,
            from_file.out);
}

TEST_F(LineCommands, text_that_is_the_name_of_a_file_is_taken_as_a_text_with_a_warning) {
  const TempDir folder;
  write_file(folder / "fox.txt", "the fox\n");
  CliOptions options;
  options.folder = folder.path();
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"classify", texts_model("classify"), "--text", "fox.txt"},
        {"embed", texts_model("encoder"), "--text", "fox.txt"},
        {"generate", model(), "--prompt", "fox.txt"}}) {
    const CliResult result = run_heddle(words, options);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_NE(result.err.find("its lines are read by < fox.txt"), std::string::npos) << result.err;
  }
}

}  // namespace
}  // namespace heddle::testing
