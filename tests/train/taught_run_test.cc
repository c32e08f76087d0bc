// A student that learns a translator from a teacher's translations.
#include <gtest/gtest.h>

#include <filesystem>

#include "heddle/base/error.h"
#include "heddle/base/json/json.h"
#include "heddle/infer/decoding/translate.h"
#include "heddle/infer/loading/loaded_model.h"
#include "heddle/text/training/tokenizer_trainer.h"
#include "heddle/train/batches/taught_pairs.h"
#include "tests/support/places.h"
#include "tests/train/pair_run.h"

namespace heddle::train {
namespace {

class TaughtRun : public PairRun {
 protected:
  TaughtRun() {
    TrainConfig config = testing::small_config();
    config.max_updates = config.validate_every = 100;
    train(config, "teacher", "");
  }
  RunResult train(const TrainConfig& config, const std::string& name, const std::string& teacher) {
    return PairRun::train(config, name, "data", teacher);
  }
  TrainConfig student(const std::string& teaching) {
    TrainConfig config = testing::small_config();
    set_from_string(config, "teaching", teaching);
    set_from_string(config, "teacher_beam", "2");
    config.max_updates = 8;
    config.validate_every = config.checkpoint_every = 8;
    return config;
  }
  // What the teacher of a run wrote: the one file of its data with this ending.
  std::string taught(const std::string& run, const std::string& ending) {
    for (const auto& entry : std::filesystem::directory_iterator(folder_ / (run + "/data"))) {
      if (entry.path().string().ends_with(ending)) return testing::read_file(entry.path());
    }
    return "nothing";
  }
};

TEST_F(TaughtRun, targets_are_the_teachers_translations) {
  train(student("sequence"), "student", folder_ / "teacher");
  EXPECT_EQ(taught("student", ".source"), text("data/train.en"));
  const LoadedModel teacher = load_translation_model(folder_ / "teacher");
  TranslateOptions options = default_options(teacher);
  options.search.beam = 2;
  options.precision = resolve_precision(student("sequence").precision);
  std::string expected;
  for (const Translation& t : translate_lines(teacher, lines("data/train.en"), options))
    expected += t.text + "\n";
  EXPECT_EQ(taught("student", ".target"), expected);
  EXPECT_NE(expected, text("data/train.de"));
}

TEST_F(TaughtRun, added_ones_stand_beside_those_of_people_and_a_stop_changes_nothing) {
  train(student("added"), "whole", folder_ / "teacher");
  EXPECT_EQ(taught("whole", ".source"), text("data/train.en") + text("data/train.en"));
  EXPECT_TRUE(taught("whole", ".target").ends_with(text("data/train.de")));
  TrainConfig config = student("added");
  for (const int64_t updates : {3, 8}) {
    config.max_updates = updates;
    config.validate_every = config.checkpoint_every = 8;
    train(config, "cut", folder_ / "teacher");
  }
  EXPECT_EQ(text("whole/last/model.safetensors"), text("cut/last/model.safetensors"));
}

TEST_F(TaughtRun, words_of_the_teacher_are_learned_with_its_tokenizer) {
  TrainConfig config = student("word");
  set_from_string(config, "teacher_beam", "5");
  set_from_string(config, "teacher_weight", "1");
  set_from_string(config, "label_smoothing", "0");
  config.max_updates = config.validate_every = 60;
  train(config, "taught", folder_ / "teacher");
  EXPECT_EQ(text("taught/best/tokenizer.model"), text("teacher/best/tokenizer.model"));
  EXPECT_FALSE(std::filesystem::exists(std::filesystem::path(folder_ / "taught/data")));
  // Of nothing but the teacher's probabilities it learns the labels too.
  const Json last = Json::parse(lines("taught/log.jsonl").back(), "log");
  const Json first = Json::parse(lines("taught/log.jsonl").front(), "log");
  EXPECT_LT(last.get_double("loss"), 0.8 * first.get_double("nll"));
}

TEST_F(TaughtRun, words_are_taught_to_the_same_bits_for_threads_and_over_stops) {
  TrainConfig config = student("word");
  set_from_string(config, "teacher_beam", "5");
  set_from_string(config, "source_sampling", "0.1");
  set_num_threads(1);
  train(config, "whole", folder_ / "teacher");
  set_num_threads(3);
  for (const int64_t updates : {3, 8}) {
    config.max_updates = updates;
    train(config, "cut", folder_ / "teacher");
  }
  EXPECT_EQ(weights("whole"), weights("cut"));
  set_from_string(config, "teacher_weight", "0.25");
  train(config, "other", folder_ / "teacher");
  EXPECT_NE(weights("whole"), weights("other"));
}

TEST_F(TaughtRun, words_of_another_vocabulary_and_two_passes_are_refused) {
  TrainConfig config = student("word");
  set_from_string(config, "teacher_beam", "5");
  TrainConfig passes = config;
  set_from_string(passes, "r_drop", "1");
  expect_error(ErrorKind::usage, {"r_drop", "teaching"},
               [&] { train(passes, "student", folder_ / "teacher"); });
  TrainConfig sequence = student("sequence");
  set_from_string(sequence, "teacher_weight", "0.3");
  expect_error(ErrorKind::usage, {"teacher_weight", "word"},
               [&] { train(sequence, "student", folder_ / "teacher"); });
  const std::string given = folder_ / "given.model";
  train_tokenizer(lines("data/train.en"), {.vocab_size = 340}).save(given);
  set_from_string(config, "tokenizer", given);
  expect_error(ErrorKind::data, {"other tokens"},
               [&] { train(config, "student", folder_ / "teacher"); });
}

TEST_F(TaughtRun, another_teacher_or_text_is_not_what_the_run_began_with) {
  TrainConfig config = student("sequence");
  train(config, "student", folder_ / "teacher");
  TrainConfig other = testing::small_config();
  other.max_updates = other.validate_every = 20;
  train(other, "teacher 2", "");
  config.max_updates = 12;
  EXPECT_THROW(train(config, "student", folder_ / "teacher 2"), Error);
  train(config, "student", folder_ / "teacher");
  testing::write_file(std::filesystem::path(folder_ / "data/train.en"),
                      text("data/train.en") + "x\n");
  testing::write_file(std::filesystem::path(folder_ / "data/train.de"),
                      text("data/train.de") + "y\n");
  config.max_updates = 16;
  EXPECT_THROW(train(config, "student", folder_ / "teacher"), Error);
}

TEST_F(TaughtRun, what_was_translated_before_a_kill_is_kept) {
  train(student("sequence"), "whole", folder_ / "teacher");
  const std::filesystem::path data(folder_ / "whole/data");
  std::filesystem::path target;
  for (const auto& entry : std::filesystem::directory_iterator(data)) {
    if (entry.path().extension() == ".target") target = entry.path();
  }
  const std::string all = testing::read_file(target);
  std::filesystem::create_directories(folder_ / "cut/data");
  std::filesystem::path part = std::filesystem::path(folder_ / "cut/data") / target.filename();
  part.replace_extension(".part");
  const size_t second = all.find('\n', all.find('\n') + 1) + 1;
  testing::write_file(part, "kept as it is\n" + all.substr(all.find('\n') + 1, second) + "ha");
  taught_pairs({folder_ / "data/train.en", folder_ / "data/train.de"}, folder_ / "cut/data",
               {.teacher = folder_ / "teacher",
                .beam = 2,
                .precision = resolve_precision(student("sequence").precision)});
  const std::string gone_on = taught("cut", ".target");
  EXPECT_TRUE(gone_on.starts_with("kept as it is\n"));
  EXPECT_EQ(gone_on.substr(gone_on.find('\n')), all.substr(all.find('\n')));
  EXPECT_FALSE(std::filesystem::exists(part));
}

TEST_F(TaughtRun, teacher_that_is_none_is_refused) {
  EXPECT_THROW(train(student("sequence"), "student", folder_ / "nothing"), Error);
  EXPECT_THROW(train(student("added"), "student", ""), Error);
  EXPECT_FALSE(std::filesystem::exists(std::filesystem::path(folder_ / "student/train.json")));
}

TEST_F(TaughtRun, held_out_text_is_read_before_the_teacher_works) {
  testing::write_file(folder_ / "data/val.en", text("data/val.en") + "one more line\n");
  std::filesystem::resize_file(folder_ / "teacher/best/model.safetensors", 100);
  expect_error(ErrorKind::data, {"val.en", "41"},
               [&] { train(student("sequence"), "student", folder_ / "teacher"); });
}

TEST_F(TaughtRun, tokenizer_of_one_segmentation_is_refused_before_the_teacher_works) {
  TrainConfig config = student("sequence");
  const std::string given = folder_ / "given";
  std::filesystem::create_directory(given);
  character_tokenizer(std::vector<std::string>{"some text"}).save_folder(given);
  set_from_string(config, "tokenizer", given);
  for (const char* side : {"source_sampling", "target_sampling"}) {
    TrainConfig drawn = config;
    set_from_string(drawn, side, "0.1");
    expect_error(ErrorKind::usage, {"one segmentation"},
                 [&] { train(drawn, "student", folder_ / "teacher"); });
    // A model that is there brings its own.
    const std::string marian = std::string(testing::kFixtures) + "/marian/separate";
    expect_error(ErrorKind::usage, {"one segmentation"}, [&] {
      train_model(
          drawn,
          {.paths = {.data = folder_ / "data", .from = marian, .teacher = folder_ / "teacher"},
           .out = folder_ / "student"});
    });
  }
  EXPECT_FALSE(std::filesystem::exists(folder_ / "student"));
}

}  // namespace
}  // namespace heddle::train
