// heddle translate at the command line: a line in, a line out, and bad input.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "heddle/base/json/json.h"
#include "heddle/text/strings/strings.h"
#include "heddle/train/metrics/least_risk.h"
#include "tests/base/temporary.h"
#include "tests/cli/model_fixture.h"
#include "tests/support/conversation.h"
#include "tests/support/places.h"

namespace heddle::testing {
namespace {

class Translate : public ModelFixture {
 protected:
  CliResult translate(const std::string& input, std::vector<std::string> flags = {}) {
    flags.insert(flags.begin(), {"translate", model()});
    return run_heddle(flags, with_input(input));
  }
};

constexpr const char* kText = "the old man reads two books!\n\nmy sister\nder alte Mann\n";

TEST_F(Translate, gives_a_line_for_each_line_and_an_empty_one_for_an_empty_one) {
  const CliResult result = translate(kText);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto lines = split_lines(result.out);
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_NE(lines[0], "");
  EXPECT_EQ(lines[1], "");
  EXPECT_NE(lines[3], "");
  EXPECT_EQ(result.err, "");
}

TEST_F(Translate, last_line_without_its_end_is_translated_too) {
  const std::string text = kText;
  const std::string whole = translate(text).out;
  EXPECT_NE(whole, "");
  EXPECT_EQ(translate(text.substr(0, text.size() - 1)).out, whole);
}

TEST_F(Translate, empty_input_gives_empty_output) {
  const CliResult result = translate("");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, "");
}

TEST_F(Translate, batches_and_threads_change_no_bit_of_text_and_score) {
  std::string text;
  for (int i = 0; i < 30; ++i) text += kText;
  for (const std::string beam : {"1", "3"}) {
    const CliResult one = translate(text, {"--json", "--beam", beam, "--threads", "1"});
    ASSERT_EQ(one.exit_code, 0) << one.err;
    EXPECT_EQ(translate(text, {"--json", "--beam", beam, "--threads", "2"}).out, one.out);
    EXPECT_EQ(translate(text, {"--json", "--beam", beam, "--batch-tokens", "20"}).out, one.out);
  }
}

TEST_F(Translate, searches_as_the_folder_says_unless_told_otherwise) {
  const TempDir folder;
  const std::string own = (folder / "own").string();
  std::filesystem::copy(model(), own);
  const auto said = [&](const std::string& path, std::vector<std::string> flags) {
    flags.insert(flags.begin(), {"translate", path, "--json"});
    const CliResult result = run_heddle(flags, with_input("the old man reads two books!\n"));
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.out;
  };
  const auto write = [&](const char* key, int value) {
    Json generation = Json::load(own + "/generation_config.json");
    generation[key] = value;
    write_file(own + "/generation_config.json", generation.dump());
  };
  write("num_beams", 3), write("length_penalty", 0);
  EXPECT_EQ(said(own, {}), said(model(), {"--beam", "3", "--length-penalty", "0"}));
  EXPECT_EQ(said(own, {"--length-penalty", "2"}),
            said(model(), {"--beam", "3", "--length-penalty", "2"}));
  EXPECT_NE(said(own, {}), said(model(), {"--beam", "3", "--length-penalty", "2"}));
  const auto tokens = [](const std::string& out) { return Json::parse(out).at("tokens").size(); };
  ASSERT_GT(tokens(said(own, {})), 3u);
  write("max_new_tokens", 4);
  EXPECT_EQ(tokens(said(own, {})), 3u);  // and the end
}

TEST_F(Translate, json_holds_text_score_and_tokens) {
  const auto plain = split_lines(translate(kText, {"--beam", "2"}).out);
  const CliResult result = translate(kText, {"--beam", "2", "--json"});
  const auto lines = split_lines(result.out);
  ASSERT_EQ(lines.size(), 4u) << result.err;
  for (size_t i = 0; i < 4; ++i) {
    const Json json = Json::parse(lines[i]);
    EXPECT_EQ(json.get_string("text"), plain[i]);
    EXPECT_TRUE(json.at("tokens").is_array());
    if (i == 1) {  // the blank line
      EXPECT_EQ(json.at("tokens").size(), 0u);
    }
    EXPECT_EQ(json.get_double("score") < 0, i != 1);
  }
}

TEST_F(Translate, line_longer_than_the_model_takes_is_a_data_error_that_names_it) {
  std::string text = "my sister\n";
  for (int i = 0; i < 100000; ++i) text += "book ";
  const CliResult result = translate(text + "\n");
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_EQ(result.out, translate("my sister\n").out);
  EXPECT_NE(result.err.find("line 2: "), std::string::npos) << result.err;
  EXPECT_NE(result.err.find("--truncate"), std::string::npos) << result.err;
}

TEST_F(Translate, truncate_cuts_long_lines_and_says_how_many) {
  std::string text = "my sister\n";
  for (int i = 0; i < 1000; ++i) text += "book ";
  text += "\n\nthe dog\n";
  const CliResult result = translate(text, {"--truncate"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(split_lines(result.out).size(), 4u);
  EXPECT_NE(result.err.find("1 of 4 texts were longer than 64 tokens and cut"), std::string::npos)
      << result.err;
}

TEST_F(Translate, line_that_is_not_utf8_is_a_data_error_that_names_it) {
  const CliResult result = translate("my sister\ncaf\xE9\n");
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_NE(result.err.find("line 2: not UTF-8"), std::string::npos) << result.err;
}

TEST_F(Translate, every_precision_translates) {
  for (const char* precision : {"f32", "bf16", "int8", "auto"}) {
    const CliResult result = translate("my sister\nthe cat\n", {"--precision", precision});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(split_lines(result.out).size(), 2u) << precision;
  }
}

TEST_F(Translate, beam_or_batch_of_0_and_unknown_precision_are_usage_errors) {
  for (const std::vector<std::string>& flags : {std::vector<std::string>{"--beam", "0"},
                                                {"--beam", "-1"},
                                                {"--batch-tokens", "0"},
                                                {"--precision", "f8"},
                                                {"--length-penalty", "nan"},
                                                {"--threads", "-2"}}) {
    const CliResult result = translate("my sister\n", flags);
    EXPECT_EQ(result.exit_code, 2) << flags[0];
    EXPECT_NE(result.err.find(flags[0]), std::string::npos) << result.err;
    EXPECT_EQ(result.out, "");
  }
}

TEST_F(Translate, n_best_gives_numbered_lines_best_first) {
  const auto best = split_lines(translate(kText, {"--beam", "4"}).out);
  const auto lines = split_lines(translate(kText, {"--beam", "4", "--n-best", "3"}).out);
  ASSERT_EQ(lines.size(), 3u + 1 + 3 + 3);  // the blank line has one
  EXPECT_TRUE(lines[0].starts_with("0 ||| " + best[0] + " ||| -")) << lines[0];
  EXPECT_EQ(lines[3], "1 |||  ||| 0.000000");
  EXPECT_TRUE(lines[4].starts_with("2 ||| " + best[2] + " ||| -")) << lines[4];
  const auto json = split_lines(translate(kText, {"--beam", "4", "--n-best", "3", "--json"}).out);
  ASSERT_EQ(json.size(), 4u);
  const Json first = Json::parse(json[0]);
  ASSERT_EQ(first.at("n_best").size(), 3u);
  EXPECT_EQ(first.get_string("text"), best[0]);
  EXPECT_EQ(first.at("n_best").as_array("n_best").at(0).get_string("text"), best[0]);
}

TEST_F(Translate, samples_depend_on_seed_and_line_number_only) {
  std::string text;
  for (int i = 0; i < 5; ++i) text += kText;
  const auto sample = [&](std::vector<std::string> flags) {
    flags.insert(flags.end(), {"--sample", "--temperature", "1.5", "--top-p", "0.95"});
    const CliResult result = translate(text, flags);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.out;
  };
  const std::string one = sample({"--seed", "3"});
  EXPECT_EQ(sample({"--seed", "3", "--batch-tokens", "9", "--threads", "2"}), one);
  EXPECT_NE(sample({"--seed", "4"}), one);
  const auto lines = split_lines(one);
  EXPECT_NE(lines[0], lines[4]);  // the same text in another line
}

TEST_F(Translate, minimum_bayes_risk_gives_one_of_what_was_drawn) {
  const CliOptions input = with_input("the old man reads two books !\n\nmy sister\n");
  const std::vector<std::string> draws = {"translate", model(),  "--sample", "--n-best",
                                          "8",         "--seed", "3"};
  std::vector<std::string> chosen = draws;
  chosen.push_back("--mbr");
  const CliResult all = run_heddle(draws, input), one = run_heddle(chosen, input);
  ASSERT_EQ(one.exit_code, 0) << one.err;
  const auto lines = split_lines(one.out);
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[1], "");
  for (const int line : {0, 2}) {
    std::vector<std::string> texts;
    const std::string begin = fmt::format("{} ||| ", line);
    for (const std::string& draw : split_lines(all.out)) {
      if (!draw.starts_with(begin)) continue;
      texts.push_back(draw.substr(begin.size(), draw.rfind(" ||| ") - begin.size()));
    }
    ASSERT_EQ(texts.size(), 8u);
    EXPECT_EQ(lines[static_cast<size_t>(line)], texts[train::least_risk(texts)]);
  }
  EXPECT_EQ(run_heddle({"translate", model(), "--mbr"}, input).exit_code, 2);
}

TEST_F(Translate, prefix_begins_every_translation_and_a_file_holds_one_a_line) {
  for (const std::string& line : split_lines(translate(kText, {"--prefix", "der alte"}).out)) {
    EXPECT_TRUE(line.empty() || line.starts_with("der alte")) << line;
  }
  const TempDir folder;
  write_file(folder / "prefixes", "der\n\n\nMann hat\n");
  const auto lines =
      split_lines(translate(kText, {"--prefix-file", (folder / "prefixes").string()}).out);
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_TRUE(lines[0].starts_with("der")) << lines[0];
  EXPECT_TRUE(lines[3].starts_with("Mann hat")) << lines[3];
  write_file(folder / "short", "der\n");
  const CliResult result = translate(kText, {"--prefix-file", (folder / "short").string()});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_NE(result.err.find("fewer than the input"), std::string::npos) << result.err;
  const CliResult more = translate("der\n", {"--prefix-file", (folder / "prefixes").string()});
  EXPECT_EQ(more.exit_code, 3);
  EXPECT_NE(more.err.find("more than the input"), std::string::npos) << more.err;
}

TEST_F(Translate, wrong_decoding_options_are_usage_errors) {
  for (const std::vector<std::string>& flags : {std::vector<std::string>{"--n-best", "0"},
                                                {"--temperature", "2"},
                                                {"--temperature", "-1", "--sample"},
                                                {"--top-k", "-1", "--sample"},
                                                {"--top-p", "0", "--sample"},
                                                {"--min-p", "1.5", "--sample"},
                                                {"--sample", "--beam", "3"},
                                                {"--no-repeat-ngram", "-1"},
                                                {"--repetition-penalty", "0"},
                                                {"--min-length", "5", "--max-length", "4"},
                                                {"--max-length", "-1"},
                                                {"--prefix", "a", "--prefix-file", "b"},
                                                {"--prefix-file", "-"}}) {
    const CliResult result = translate("my sister\n", flags);
    EXPECT_EQ(result.exit_code, 2) << flags[0];
    EXPECT_NE(result.err.find(flags[0]), std::string::npos) << result.err;
    EXPECT_EQ(result.out, "");
  }
}

TEST_F(Translate, words_that_training_did_not_have_are_said_once_and_counted_at_the_end) {
  const TempDir folder;
  const std::string other = (folder / "model").string();
  write_small_model(other);
  write_file(other + "/source_words.txt", "alte\ndog\nmann\nmy\nthe\n");
  const auto run = [&](const std::string& input) {
    return run_heddle({"translate", other}, with_input(input));
  };
  EXPECT_EQ(run("The dog! My dog: 17.\n").err, "");
  const CliResult two = run("the banana, my dog\n\nthe Quark and the banana\n");
  EXPECT_EQ(two.err,
            "warning: translate: 'banana', 'quark', 'and' were not seen in training, which had 5 "
            "different words, so the translation of their lines is a guess\n");
  Conversation talk({"translate", other});
  talk.say("the Banane\n");
  talk.answer();
  EXPECT_NE(talk.message().find("'banane' was not seen"), std::string::npos);
  talk.say("one two\n");
  talk.answer();
  EXPECT_EQ(talk.end(), 0);
  EXPECT_EQ(talk.message(),
            "warning: translate: 3 different words of the input were not seen in training\n");
}

TEST_F(Translate, missing_model_is_a_data_error) {
  const CliResult result = run_heddle({"translate", "/no/such/model"});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_NE(result.err.find("/no/such/model"), std::string::npos) << result.err;
}

TEST_F(Translate, full_disk_is_a_system_error) {
  CliOptions options = with_input(kText);
  options.stdout_file = "/dev/full";
  const CliResult result = run_heddle({"translate", model()}, options);
  EXPECT_EQ(result.exit_code, 6) << result.err;
}

TEST_F(Translate, run_means_its_best_model) {
  const TempDir run;
  std::filesystem::copy(model(), run / "best", std::filesystem::copy_options::recursive);
  const CliResult result = run_heddle({"translate", run.path().string()}, with_input(kText));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, translate(kText).out);
}

// A copy of a folder of tests/fixtures/seq2seq, searched as its first case was.
class Multilingual : public ::testing::Test {
 protected:
  CliResult translate(const std::string& family, std::vector<std::string> flags) {
    std::filesystem::copy(std::string(kFixtures) + "/seq2seq/" + family, folder_ / family,
                          std::filesystem::copy_options::recursive);
    const Json first = Json::load(folder_ / (family + "/cases.json")).as_array()[0];
    folder_.write(family + "/generation_config.json", first.at("settings").dump());
    std::string input, texts;
    for (const Json& r : first.at("results").as_array()) {
      input += r.get_string("line") + "\n";
      expected_ += r.at("translations").as_array()[0].get_string("text") + "\n";
    }
    flags.insert(flags.begin(), {"translate", folder_ / family, "--precision", "f32"});
    CliOptions options;
    options.input = input;
    return run_heddle(flags, options);
  }

  TemporaryFolder folder_;
  std::string expected_;
};

TEST_F(Multilingual, languages_give_the_texts_of_transformers) {
  const CliResult m2m =
      translate("m2m_100", {"--source-language", "en", "--target-language", "fr"});
  EXPECT_EQ(m2m.exit_code, 0) << m2m.err;
  EXPECT_EQ(m2m.out, expected_);
  expected_.clear();
  const CliResult mbart =
      translate("mbart", {"--source-language", "en_XX", "--target-language", "de_DE"});
  EXPECT_EQ(mbart.exit_code, 0) << mbart.err;
  EXPECT_EQ(mbart.out, expected_);
}

TEST_F(Multilingual, language_that_is_unknown_or_missing_lists_those_that_there_are) {
  const CliResult unknown = translate("m2m_100", {"--target-language", "fra"});
  EXPECT_EQ(unknown.exit_code, 2);
  for (const char* part : {"--target-language is 'fra'", "did you mean 'fr'", "af, am, ar"}) {
    EXPECT_NE(unknown.err.find(part), std::string::npos) << unknown.err;
  }
  const CliResult missing = translate("mbart", {"--source-language", "en_XX"});
  EXPECT_EQ(missing.exit_code, 2);
  for (const char* part : {"writes 25 languages", "--target-language", "ar_AR, cs_CZ"}) {
    EXPECT_NE(missing.err.find(part), std::string::npos) << missing.err;
  }
}

// Greedily an end cuts off what came without it; so it does in transformers 5.24.
TEST_F(Multilingual, each_of_several_ends_ends_a_translation) {
  const std::string model = folder_ / "bart";
  std::filesystem::copy(std::string(kFixtures) + "/seq2seq/bart", model,
                        std::filesystem::copy_options::recursive);
  const Json vocabulary = Json::load(model + "/vocab.json");
  const Json first = Json::load(model + "/cases.json").as_array()[0];
  CliOptions options;
  std::vector<std::vector<int64_t>> expected;
  for (const Json& r : first.at("results").as_array()) {
    options.input += r.get_string("line") + "\n";
    expected.push_back(r.at("translations").as_array()[0].at("ids").as_ints("ids"));
    auto& ids = expected.back();
    ids.erase(std::ranges::find(ids, 96), ids.end());
  }
  const Json plain = Json::load(model + "/config.json");
  for (const bool is_in_config : {true, false}) {
    Json config = plain, settings = first.at("settings");
    settings.erase("eos_token_id");
    (is_in_config ? config : settings)["eos_token_id"] = std::vector<int64_t>{2, 96};
    folder_.write("bart/config.json", config.dump());
    folder_.write("bart/generation_config.json", settings.dump());
    const CliResult result =
        run_heddle({"translate", model, "--precision", "f32", "--json"}, options);
    ASSERT_EQ(result.exit_code, 0) << result.err;
    std::vector<std::vector<int64_t>> found;
    for (const std::string_view line : lines_of(result.out)) {
      if (line.empty()) continue;
      found.emplace_back();
      for (const std::string& token : Json::parse(line).at("tokens").as_strings("tokens")) {
        found.back().push_back(vocabulary.get_int(token));
      }
    }
    EXPECT_EQ(found, expected);
  }
}

// A reference stands behind the tokens that generate() begins with, as transformers has it.
TEST_F(Multilingual, perplexity_is_that_behind_the_language_that_is_asked_for) {
  const std::string fixtures = std::string(kFixtures) + "/seq2seq/";
  const Json all = Json::load(fixtures + "likelihoods.json");
  for (const Json& wanted : all.as_array()) {
    std::string model = fixtures + wanted.get_string("model");
    const auto text_of = [&](const char* key) {
      std::string text;
      for (const std::string& line : wanted.at(key).as_strings(key)) text += line + "\n";
      return text;
    };
    folder_.write("source", text_of("sources")), folder_.write("reference", text_of("targets"));
    std::vector<std::string> flags = {};
    if (const Json& languages = wanted.at("languages"); !languages.is_null()) {
      const auto names = languages.as_strings("languages");
      flags = {"--source-language", names[0], "--target-language", names[1]};
    } else {
      std::filesystem::copy(model, folder_ / "bart", std::filesystem::copy_options::recursive);
      folder_.write("bart/generation_config.json", R"({"forced_bos_token_id": 0})");
      model = folder_ / "bart";
    }
    flags.insert(flags.begin(), {"eval", model, "--src", folder_ / "source", "--ref",
                                 folder_ / "reference", "--precision", "f32", "--json"});
    const CliResult result = run_heddle(flags);
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const Json scores = Json::parse(result.out);
    const double nll = wanted.get_double("nll");
    EXPECT_NEAR(scores.get_double("nll"), nll, 1e-5 * nll) << wanted.dump();
    EXPECT_EQ(scores.get_int("tokens"), wanted.get_int("tokens"));
  }
}

TEST_F(Multilingual, model_that_marks_no_languages_refuses_them) {
  const CliResult result = translate("t5", {"--source-language", "en"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_NE(result.err.find("marks no languages"), std::string::npos) << result.err;
}

TEST_F(Multilingual, task_of_a_t5_stands_in_the_text) {
  const CliResult result = translate("t5", {});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, expected_);
}

}  // namespace
}  // namespace heddle::testing
