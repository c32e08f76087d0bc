// heddle eval of classifiers, taggers and models of masked tokens: its figures are those that
// training logs of the same held-out text.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "heddle/base/json/json.h"
#include "tests/cli/page_data.h"
#include "tests/cli/train_runs.h"

namespace heddle::testing {
namespace {

class EvalAnswers : public ::testing::Test {
 protected:
  EvalAnswers() {
    write("train.tsv", "text\tlabel\n" + table(0, 60));
    write("val.tsv", "text\tlabel\n" + table(60, 90));
    write("train.conll", words(0, 40));
    write("val.conll", words(40, 60));
    write("train.txt", running(0, 60));
    write("val.txt", running(60, 90));
  }

  // Half of the labels do not follow from the text, so that some answers are wrong.
  static bool is_good(int i) { return i % 2 == 0 ? i % 4 == 0 : i * i % 7 < 3; }
  static std::string text_of(int i) {
    return fmt::format("the {} {} was {}", i % 3 == 0 ? "old" : "new", i % 2 == 0 ? "film" : "book",
                       is_good(i + i % 2 * 4) ? "good" : "bad");
  }
  static std::string table(int begin, int end) {
    std::string rows;
    for (int i = begin; i < end; ++i) {
      rows += fmt::format("{}\t{}\n", text_of(i), is_good(i) ? "yes" : "no");
    }
    return rows;
  }
  static std::string words(int begin, int end) {
    std::string lines;
    for (int i = begin; i < end; ++i) {
      lines += fmt::format("Anna {}\nreads O\nthe O\n{} OBJ\n\n", is_good(i) ? "PER" : "O",
                           i % 2 == 0 ? "paper" : "letter");
    }
    return lines;
  }
  static std::string running(int begin, int end) {
    std::string text;
    for (int i = begin; i < end; ++i) text += text_of(i) + "\n";
    return text;
  }

  void write(const std::string& name, const std::string& text) { write_file(folder_ / name, text); }
  std::string path(const std::string& name) { return (folder_ / name).string(); }

  // A tiny BERT, and what its log says of the held-out file.
  Json train(const std::string& task, const std::string& ending,
             const std::vector<std::string>& more = {}) {
    std::vector<std::string> all = {"train",
                                    "--task",
                                    task,
                                    "--data",
                                    path("train" + ending),
                                    "--val-data",
                                    path("val" + ending),
                                    "--out",
                                    path(task),
                                    "--num-hidden-layers",
                                    "1",
                                    "--num-attention-heads",
                                    "1",
                                    "--hidden-size",
                                    "16",
                                    "--intermediate-size",
                                    "16",
                                    "--max-position-embeddings",
                                    "24",
                                    "--vocab-size",
                                    "70",
                                    "--batch-size",
                                    "8",
                                    "--learning-rate",
                                    "0.01",
                                    "--schedule",
                                    "constant",
                                    "--warmup-updates",
                                    "5",
                                    "--max-updates",
                                    "30",
                                    "--validate-every",
                                    "30",
                                    "--precision",
                                    "f32"};
    all.insert(all.end(), more.begin(), more.end());
    const CliResult result = run_heddle(all);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(result.err.find(" cut"), std::string::npos) << result.err;  // none was
    Json validation;
    std::istringstream lines(read_file(folder_ / task / "log.jsonl"));
    for (std::string line; std::getline(lines, line);) {
      Json json = Json::parse(line);
      if (json.contains("validation")) validation = std::move(json);
    }
    return validation;
  }
  CliResult eval(const std::string& task, const std::vector<std::string>& flags) {
    std::vector<std::string> all = {"eval", path(task), "--precision", "f32"};
    all.insert(all.end(), flags.begin(), flags.end());
    return run_heddle(all);
  }
  Json eval_json(const std::string& task, std::vector<std::string> flags) {
    flags.emplace_back("--json");
    const CliResult result = eval(task, flags);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return Json::parse(result.out);
  }
  void expect_refused(const CliResult& result, int exit_code, const std::string& part) {
    EXPECT_EQ(result.exit_code, exit_code) << result.err;
    EXPECT_EQ(result.out, "");
    EXPECT_NE(result.err.find(part), std::string::npos) << result.err;
  }

  TempDir folder_;
};

TEST_F(EvalAnswers, columns_are_those_of_the_run_unless_flags_name_others) {
  std::string rows = table(0, 60);
  std::ranges::replace(rows, '\t', ';');
  for (const char* name : {"train.csv", "val.csv"}) write(name, "sentence;category\n" + rows);
  const std::string task = "sequence_classification";
  const Json logged = train(task, ".csv", {"--text-key", "sentence", "--label-key", "category"});
  const CliResult result = eval(task, {"--data", path("val.csv"), "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(Json::parse(result.out).get_double("accuracy"), logged.get_double("accuracy"));
  EXPECT_EQ(result.err, "eval: --text-key sentence, as in the training of " + path(task) +
                            "\neval: --label-key category, as in the training of " + path(task) +
                            "\n");
  const CliResult named =
      eval(task, {"--data", path("val.tsv"), "--text-key", "text", "--label-key", "label"});
  EXPECT_EQ(named.exit_code, 0) << named.err;
  EXPECT_EQ(named.err, "");
  expect_refused(eval(task, {"--data", path("val.tsv")}), 3, "Name columns by --text-key");
}

TEST_F(EvalAnswers, classes_have_the_scores_that_training_logs) {
  for (const auto& [task, ending] : {std::pair{"sequence_classification", ".tsv"},
                                     std::pair{"token_classification", ".conll"}}) {
    const Json logged = train(task, ending);
    const Json json = eval_json(task, {"--data", path(std::string("val") + ending)});
    EXPECT_EQ(json.get_double("accuracy"), logged.get_double("accuracy")) << task;
    EXPECT_EQ(json.get_double("macro_f1"), logged.get_double("macro_f1")) << task;
    EXPECT_NEAR(json.get_double("loss"), logged.get_double("loss"), 1e-6) << task;
    EXPECT_GT(json.get_double("accuracy"), 0.5);
    EXPECT_LT(json.get_double("accuracy"), 1);
  }
  // 30 texts; 20 sentences of four words, of which none is cut into tokens that have no label.
  const Json tags = eval_json("token_classification", {"--data", path("val.conll")});
  EXPECT_EQ(tags.get_int("texts"), 20);
  EXPECT_EQ(tags.get_int("answers"), 80);
  const CliResult plain = eval("sequence_classification", {"--data", path("val.tsv")});
  EXPECT_TRUE(plain.out.starts_with("accuracy ")) << plain.out;
  EXPECT_NE(plain.out.find("(30 texts, 2 labels)"), std::string::npos) << plain.out;
}

// What classify prints of the sentences is a file of words and labels.
TEST_F(EvalAnswers, classes_of_words_are_those_that_eval_counts) {
  train("token_classification", ".conll");
  std::string sentences;
  std::istringstream truths(read_file(path("val.conll")));
  for (std::string line; std::getline(truths, line);) {
    sentences += line.empty() ? "\n" : line.substr(0, line.find(' ')) + " ";
  }
  CliOptions options;
  options.input = sentences;
  const CliResult said = run_heddle({"classify", path("token_classification")}, options);
  ASSERT_EQ(said.exit_code, 0) << said.err;
  write("said.conll", said.out);
  EXPECT_EQ(
      eval_json("token_classification", {"--data", path("said.conll")}).get_double("accuracy"), 1);
  std::istringstream truth(read_file(path("val.conll"))), answer(said.out);
  int right = 0, all = 0;
  for (std::string a, b; std::getline(truth, a) && std::getline(answer, b);) {
    EXPECT_EQ(a.substr(0, a.find(' ')), b.substr(0, b.find('\t')));
    if (a.empty()) continue;
    ++all;
    right += a.substr(a.find(' ') + 1) == b.substr(b.find('\t') + 1);
  }
  EXPECT_EQ(all, 80);
  EXPECT_DOUBLE_EQ(
      static_cast<double>(right) / all,
      eval_json("token_classification", {"--data", path("val.conll")}).get_double("accuracy"));
}

TEST_F(EvalAnswers, labels_and_files_that_do_not_fit_are_refused) {
  train("sequence_classification", ".tsv");
  const std::string task = "sequence_classification";
  write("other.tsv", "text\tlabel\nthe film\tyes\nthe book\tmaybe\n");
  expect_refused(eval(task, {"--data", path("other.tsv")}), 3,
                 "other.tsv: line 3: the label 'maybe' is none of the model's 2: no, yes");
  expect_refused(eval(task, {"--data", path("val.tsv"), "--label-key", "class"}), 3, "class");
  expect_refused(eval(task, {"--data", path("none.tsv")}), 3, "none.tsv");
  expect_refused(eval(task, {"--data", path("val.tsv"), "--beam", "4"}), 2,
                 "--beam is a flag of translators");
  expect_refused(eval(task, {"--data", path("val.tsv"), "--src", path("val.txt")}), 2,
                 "give one of them");
  expect_refused(eval(task, {}), 2, "--data FILE");
  expect_refused(eval(task, {"--data", path("val.tsv"), "--context", "8"}), 2,
                 "--context is a flag of language models");
}

TEST_F(EvalAnswers, weights_that_are_not_finite_have_no_accuracy) {
  train("sequence_classification", ".tsv");
  const std::string file = "sequence_classification/best/model.safetensors";
  std::string weights = read_file(path(file));
  weights[weights.find("heddle_xxh64")] = 'x';             // as other programs write a file
  std::fill(weights.end() - 8192, weights.end(), '\xff');  // each four bytes are a NaN
  write(file, weights);
  expect_refused(eval("sequence_classification", {"--data", path("val.tsv")}), 3, "not finite");
}

TEST_F(EvalAnswers, text_of_unknown_characters_alone_is_not_the_fault_of_the_weights) {
  train("masked_lm", ".txt");
  write("other.txt", "漢字\n");
  expect_refused(eval("masked_lm", {"--data", path("other.txt")}), 3,
                 "nothing there can be predicted");
}

TEST_F(EvalAnswers, masked_tokens_have_the_accuracy_that_training_logs) {
  const Json logged = train("masked_lm", ".txt");
  const std::string text = path("val.txt");
  const Json json = eval_json("masked_lm", {"--data", text});
  EXPECT_EQ(json.get_double("accuracy"), logged.get_double("accuracy"));
  EXPECT_NEAR(std::log(json.get_double("ppl")), logged.get_double("loss"), 1e-6);
  EXPECT_NEAR(json.get_double("nll"), json.get_int("masked") * logged.get_double("loss"), 1e-4);
  EXPECT_EQ(json.get_int("context"), 24);
  // [CLS] and [SEP] stand around 22 words.
  EXPECT_EQ(json.get_int("sequences"), (json.get_int("tokens") + 21) / 22);
  EXPECT_EQ(eval_json("masked_lm", {"--data", text}).dump(), json.dump());
  EXPECT_NE(eval_json("masked_lm", {"--data", text, "--seed", "2"}).get_double("nll"),
            json.get_double("nll"));
  EXPECT_EQ(eval_json("masked_lm", {"--data", text, "--context", "12"}).get_int("context"), 12);
  const CliResult plain = eval("masked_lm", {"--data", text});
  EXPECT_TRUE(plain.out.starts_with("masked-token accuracy ")) << plain.out;
  expect_refused(eval("masked_lm", {"--data", text, "--context", "25"}), 2, "--context is 25");
  expect_refused(eval("masked_lm", {"--data", text, "--context", "3"}), 2, "from 4 to the 24");
  expect_refused(eval("masked_lm", {"--data", text, "--stride", "3"}), 2, "--stride");
}

TEST_F(EvalAnswers, page_of_classes_has_all_answers_and_the_wrong_ones) {
  for (const auto& [task, ending] : {std::pair{"sequence_classification", ".tsv"},
                                     std::pair{"token_classification", ".conll"}}) {
    train(task, ending);
    const std::string file = path(std::string("val") + ending), page = path("page.html");
    const Json said = eval_json(task, {"--data", file, "--page", page});
    EXPECT_EQ(said.dump(), eval_json(task, {"--data", file}).dump());
    const Json data = page_data(page);
    const size_t classes = data.at("labels").size();
    std::vector<int64_t> right(classes), truths(classes), answers(classes);
    int64_t all = 0, wrong = 0;
    for (const Json& cell : data.at("cells").as_array()) {
      const auto c = cell.as_ints();
      truths[c[0]] += c[2], answers[c[1]] += c[2], all += c[2];
      (c[0] == c[1] ? right[c[0]] : wrong) += c[2];
    }
    EXPECT_EQ(all, said.get_int("answers"));
    EXPECT_NEAR(1 - static_cast<double>(wrong) / all, said.get_double("accuracy"), 1e-12) << task;
    double f1 = 0;
    int64_t used = 0;
    for (size_t c = 0; c < classes; ++c) {
      if (truths[c] + answers[c] == 0) continue;
      f1 += 2.0 * right[c] / (truths[c] + answers[c]);
      ++used;
    }
    EXPECT_NEAR(f1 / used, said.get_double("macro_f1"), 1e-12) << task;
    ASSERT_EQ(static_cast<int64_t>(data.at("wrong").size()), wrong);
    ASSERT_GT(wrong, 0);
    const std::string whole = read_file(file);
    for (const Json& one : data.at("wrong").as_array()) {
      EXPECT_NE(one.get_int("truth"), one.get_int("answer"));
      EXPECT_GE(one.get_double("answer_p"), one.get_double("truth_p"));
      EXPECT_LE(one.get_double("answer_p") + one.get_double("truth_p"), 1.0001);
      const std::string part = one.at("text").as_strings()[1];
      const bool is_word = ending == std::string(".conll");
      // The tokenizer lowers words, of which the label of "Anna" alone does not follow from them.
      EXPECT_TRUE(is_word ? part.ends_with("anna") : whole.find(part) != whole.npos) << part;
    }
  }
}

TEST_F(EvalAnswers, page_of_masked_tokens_has_each_with_its_answer) {
  train("masked_lm", ".txt");
  const std::string text = path("val.txt"), page = path("page.html");
  const Json said = eval_json("masked_lm", {"--data", text, "--page", page});
  const Json data = page_data(page);
  EXPECT_EQ(data.get_int("count"), said.get_int("masked"));
  const Json::Array& questions = data.at("questions").as_array();
  ASSERT_EQ(static_cast<int64_t>(questions.size()), said.get_int("masked"));
  double nll = 0, right = 0;
  for (const Json& one : questions) {
    const auto parts = one.at("text").as_strings();
    const bool is_same =
        parts[1].substr(parts[1].find_first_not_of(' ')) == one.get_string("answer");
    EXPECT_EQ(one.get_bool("is_right"), is_same) << parts[1];
    right += is_same;
    nll -= std::log(one.get_double("truth_p"));
    EXPECT_NE((running(0, 90)).find(parts[1].substr(parts[1].find_first_not_of(' '))),
              std::string::npos);
  }
  EXPECT_NEAR(right / questions.size(), said.get_double("accuracy"), 1e-12);
  EXPECT_NEAR(nll, said.get_double("nll"), 0.01 * said.get_double("nll"));  // 5 digits of each p
}

}  // namespace
}  // namespace heddle::testing
