// heddle train from translators that are told languages by tokens.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "heddle/base/json/json.h"
#include "heddle/text/tokenizer.h"
#include "tests/base/temporary.h"
#include "tests/infer/small_models.h"
#include "tests/support/cli_runner.h"
#include "tests/support/places.h"

namespace heddle::testing {
namespace {

class TrainLanguages : public ::testing::Test {
 protected:
  TrainLanguages() {
    for (const char* name : {"pairs", "other"}) {
      std::filesystem::create_directories(folder_ / name);
    }
    std::string source, target;
    for (int i = 0; i < 12; ++i) {
      source += i % 2 == 0 ? "the boy reads a book\n" : "a girl drinks tea\n";
      target += i % 3 == 0 ? "a book\n" : "tea in the garden\n";
    }
    for (const char* split : {"train.", "val."}) {
      folder_.write(std::string("pairs/") + split + "en", source);
      folder_.write(std::string("pairs/") + split + "de", target);
    }
  }
  static std::string fixture(const std::string& family) {
    return std::string(kFixtures) + "/seq2seq/" + family;
  }
  // With a copy of a folder of tests/fixtures/seq2seq, and as `out`.
  CliResult train(const std::string& family, std::vector<std::string> flags,
                  const std::string& out = "run", const std::string& longest = "24") {
    const std::string model = folder_ / family;
    if (!std::filesystem::exists(model)) std::filesystem::copy(fixture(family), model);
    flags.insert(flags.begin(),
                 {"train", "--from", model, "--data", folder_ / "pairs", "--out", folder_ / out,
                  "--max-tokens", longest, "--max-updates", updates_, "--validate-every", "3",
                  "--select", "loss", "--precision", "f32", "--warmup-updates", "1"});
    return run_heddle(flags);
  }
  // What the run says of its held-out pairs at its end.
  double validation_loss(const std::string& out = "run") {
    double loss = -1;
    std::istringstream log(read_file(folder_ / (out + "/log.jsonl")));
    for (std::string line; std::getline(log, line);) {
      const Json entry = Json::parse(line);
      if (entry.contains("validation")) loss = entry.at("loss").as_double();
    }
    return loss;
  }
  // The same by heddle eval of the model that was saved.
  double evaluated(std::vector<std::string> flags = {}) {
    flags.insert(flags.begin(),
                 {"eval", folder_ / "run/last", "--src", folder_ / "pairs/val.en", "--ref",
                  folder_ / "pairs/val.de", "--precision", "f32", "--json"});
    const CliResult result = run_heddle(flags);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return std::log(Json::parse(result.out).at("ppl").as_double());
  }

  TemporaryFolder folder_;
  std::string updates_ = "3";
};

// The model is evaluated as it was trained, and remembers what it was told.
TEST_F(TrainLanguages, what_is_trained_is_evaluated_behind_the_same_tokens_without_flags) {
  const CliResult result = train("m2m_100", {"--source-language", "fr", "--target-language", "de"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NEAR(evaluated(), validation_loss(), 1e-5);
  for (const std::vector<std::string>& others :
       {std::vector<std::string>{"--source-language", "en"}, {"--target-language", "fr"}}) {
    EXPECT_GT(std::abs(evaluated(others) - validation_loss()), 1e-4) << others[1];
  }
  EXPECT_NEAR(evaluated({"--source-language", "fr", "--target-language", "de"}), validation_loss(),
              1e-5);
}

TEST_F(TrainLanguages, suffixes_of_the_files_are_languages_where_the_model_knows_them) {
  ASSERT_EQ(train("m2m_100", {}).exit_code, 0);
  const CliResult same =
      train("m2m_100", {"--source-language", "en", "--target-language", "de"}, "same");
  ASSERT_EQ(same.exit_code, 0) << same.err;
  EXPECT_EQ(read_file(folder_ / "run/last/model.safetensors"),
            read_file(folder_ / "same/last/model.safetensors"));
}

// The token stands behind sources, and begins targets.
TEST_F(TrainLanguages, mbart_is_told_them_in_its_own_places) {
  const CliResult result =
      train("mbart", {"--source-language", "fr_XX", "--target-language", "de_DE"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NEAR(evaluated(), validation_loss(), 1e-5);
  EXPECT_GT(std::abs(evaluated({"--source-language", "de_DE"}) - validation_loss()), 1e-4);
}

// Such a model has no bias on its logits, and gets none.
TEST_F(TrainLanguages, what_is_trained_has_the_weights_of_the_model_and_no_others) {
  const std::vector<std::string> told = {"--source-language", "fr", "--target-language", "de"};
  ASSERT_EQ(train("m2m_100", told).exit_code, 0);
  EXPECT_EQ(read_file(folder_ / "run/last/model.safetensors").find("final_logits_bias"),
            std::string::npos);
  std::vector<std::string> adapted = told;
  adapted.insert(adapted.end(), {"--lora-rank", "2"});
  std::filesystem::remove_all(folder_ / "run");
  const CliResult result = train("m2m_100", adapted);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NEAR(evaluated(), validation_loss(), 1e-5);
}

// As in the first mBART, where the decoder begins with the language.
TEST_F(TrainLanguages, a_decoder_that_begins_with_a_language_begins_with_that_of_the_run) {
  std::filesystem::copy(fixture("mbart"), folder_ / "mbart");
  Json config = Json::load(folder_ / "mbart/config.json");
  const Tokenizer tokenizer = Tokenizer::load(folder_ / "mbart");
  config["decoder_start_token_id"] = tokenizer.token_id("en_XX");
  folder_.write("mbart/config.json", config.dump());
  const CliResult result =
      train("mbart", {"--source-language", "fr_XX", "--target-language", "de_DE"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NEAR(evaluated(), validation_loss(), 1e-5);
  EXPECT_GT(std::abs(evaluated({"--target-language", "en_XX"}) - validation_loss()), 1e-4);
  const Json kept = Json::load(folder_ / "run/last/generation_config.json");
  EXPECT_EQ(kept.get_int("decoder_start_token_id"), tokenizer.token_id("de_DE"));
}

// BART, which has no languages, has its first token in front of sources and targets.
TEST_F(TrainLanguages, tokens_around_sentences_are_those_of_translation) {
  std::filesystem::copy(fixture("bart"), folder_ / "bart");
  folder_.write("bart/generation_config.json", R"({"forced_bos_token_id": 0})");
  const CliResult result = train("bart", {});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const double loss = validation_loss();
  EXPECT_NEAR(evaluated(), loss, 1e-5);
  folder_.write("run/last/generation_config.json", "{}");
  EXPECT_GT(std::abs(evaluated() - loss), 1e-4);
}

// Validation translates behind the same tokens; the search is tuned, and the run remembers itself.
TEST_F(TrainLanguages, a_run_is_tuned_goes_on_and_is_begun_from) {
  const std::vector<std::string> told = {"--source-language", "fr", "--target-language", "de",
                                         "--tuned-beam",      "2"};
  CliResult result = train("m2m_100", told);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json kept = Json::load(folder_ / "run/best/generation_config.json");
  EXPECT_EQ(kept.get_int("num_beams"), 2);
  EXPECT_EQ(kept.get_int("forced_bos_token_id"),
            Tokenizer::load(fixture("m2m_100")).token_id("__de__"));
  updates_ = "6";
  result = train("m2m_100", told);  // goes on
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NEAR(evaluated(), validation_loss(), 1e-5);
  const CliResult whole = train("m2m_100", told, "whole");
  ASSERT_EQ(whole.exit_code, 0) << whole.err;
  EXPECT_EQ(read_file(folder_ / "run/last/model.safetensors"),
            read_file(folder_ / "whole/last/model.safetensors"));
  // Begun from that, without names: those that it remembers, as "xx" is none.
  for (const char* split : {"train.", "val."}) {
    for (const char* side : {"en", "de"}) {
      folder_.write("other/" + std::string(split) + side + side,
                    read_file(folder_ / ("pairs/" + std::string(split) + side)));
    }
  }
  const CliResult again =
      run_heddle({"train", "--from", folder_ / "run", "--data", folder_ / "other", "--out",
                  folder_ / "again", "--source-lang", "enen", "--target-lang", "dede",
                  "--max-tokens", "24", "--max-updates", "1", "--precision", "f32"});
  ASSERT_EQ(again.exit_code, 0) << again.err;
  const Json names = Json::load(folder_ / "again/last/tokenizer_config.json");
  EXPECT_EQ(names.get_string("src_lang"), "fr");
  // It has the same tokens: the names change none.
  EXPECT_EQ(Tokenizer::load(folder_ / "again/last").fingerprint(),
            Tokenizer::load(fixture("m2m_100")).fingerprint());
  EXPECT_EQ(names.get_string("tgt_lang"), "de");
}

// A student from nothing learns what the teacher writes in that language.
TEST_F(TrainLanguages, a_teacher_of_many_languages_writes_the_one_that_is_asked_for) {
  const std::string teacher = std::string(kFixtures) + "/seq2seq/m2m_100";
  shared_tokenizer().save(folder_ / "tokenizer.model");
  const auto taught = [&](const std::string& target, const std::string& out) {
    std::vector<std::string> words = {"train", "--teacher", teacher};
    const auto add = [&](const std::string& flag, const std::string& value) {
      words.push_back(flag), words.push_back(value);
    };
    add("--data", folder_ / "pairs"), add("--out", folder_ / out);
    add("--source-language", "fr"), add("--target-language", target), add("--teacher-beam", "2");
    add("--tokenizer", folder_ / "tokenizer.model");
    add("--vocab-size", std::to_string(shared_tokenizer().vocab_size())), add("--d-model", "8");
    add("--encoder-layers", "1"), add("--decoder-layers", "1"), add("--max-updates", "1");
    add("--max-tokens", "24"), add("--select", "loss"), add("--precision", "f32");
    const CliResult result = run_heddle(words);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    for (const auto& file : std::filesystem::directory_iterator(folder_ / (out + "/data"))) {
      if (file.path().extension() == ".target") return read_file(file.path());
    }
    return std::string();
  };
  for (const char* target : {"de", "zu"}) {
    CliOptions options;
    options.input = read_file(folder_ / "pairs/train.en");
    const CliResult written =
        run_heddle({"translate", teacher, "--source-language", "fr", "--target-language", target,
                    "--beam", "2", "--precision", "f32"},
                   options);
    ASSERT_EQ(written.exit_code, 0) << written.err;
    EXPECT_EQ(taught(target, target), written.out);
  }
}

TEST_F(TrainLanguages, languages_that_are_unknown_or_of_no_use_are_refused) {
  CliResult result = train("mbart", {});
  EXPECT_EQ(result.exit_code, 2);
  for (const char* part : {"--source-lang 'en' is none of its 25", "--source-language", "de_DE"}) {
    EXPECT_NE(result.err.find(part), std::string::npos) << part << " in " << result.err;
  }
  result = train("m2m_100", {"--target-language", "dee"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_NE(result.err.find("--target-language is 'dee'; did you mean 'de'"), std::string::npos)
      << result.err;
  result = train("bart", {"--target-language", "de"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_NE(result.err.find("leave them out"), std::string::npos) << result.err;
  EXPECT_FALSE(std::filesystem::exists(folder_ / "run"));
}

TEST_F(TrainLanguages, sentences_and_their_marks_must_fit_into_the_positions) {
  const CliResult result = train("m2m_100", {}, "run", "40");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_NE(result.err.find("positions for beside the tokens around"), std::string::npos)
      << result.err;
}

}  // namespace
}  // namespace heddle::testing
