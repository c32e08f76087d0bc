// Whole runs of a tiny model: what they leave, how they end, go on, and refuse.
#include "heddle/train/trainer.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <numeric>

#include "heddle/base/json/json.h"
#include "heddle/base/log.h"
#include "heddle/base/parallel.h"
#include "heddle/infer/loading/loaded_model.h"
#include "heddle/text/known_words.h"
#include "tests/base/temporary.h"
#include "tests/train/small_run.h"

namespace heddle::train {
namespace {

namespace fs = std::filesystem;
using testing::files_below;
using testing::model_bytes;
using testing::read_file;
using testing::small_config;
using testing::TempDir;

std::vector<Json> log_lines(const fs::path& run) {
  std::vector<Json> lines;
  std::string text = read_file(run / "log.jsonl");
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = text.find('\n', begin);
    lines.push_back(Json::parse(text.substr(begin, end - begin)));
    begin = end + 1;
  }
  return lines;
}

class TrainerTest : public ::testing::Test {
 protected:
  TrainerTest() {
    set_log_level(LogLevel::error);
    testing::write_pairs(folder_ / "data");
  }
  ~TrainerTest() override { set_log_level(LogLevel::info); }
  RunResult train(const TrainConfig& config, const std::string& name, bool overwrite = false) {
    return train_model(config, {.paths = {.data = (folder_ / "data").string()},
                                .out = (folder_ / name).string(),
                                .overwrite = overwrite});
  }
  // Trains to update `n`, then on to the end of config; the schedule must not look at the end.
  RunResult train_in_two(const TrainConfig& config, int64_t n, const std::string& name) {
    TrainConfig first = config;
    first.max_updates = n;
    train(first, name);
    return train(config, name);
  }
  TempDir folder_;
};

// Else the page of a run that died would load itself again and again.
TEST_F(TrainerTest, run_that_an_error_ends_says_that_it_goes_on_no_longer) {
  std::vector<RunEvent> events;
  const RunOptions options = {.paths = {.data = (folder_ / "data").string()},
                              .out = (folder_ / "run").string(),
                              .on_event = [&](RunEvent event) {
                                events.push_back(event);
                                if (event == RunEvent::log) fail(ErrorKind::system, "no space");
                              }};
  expect_error(ErrorKind::system, {"no space"}, [&] { train_model(small_config(), options); });
  EXPECT_EQ(events, (std::vector{RunEvent::log, RunEvent::end}));
}

TEST_F(TrainerTest, replaced_run_is_kept_when_the_new_one_fails_between_its_save_and_its_model) {
  TrainConfig config = small_config();
  config.max_updates = 5;
  train(config, "run");
  const auto models = model_bytes(folder_ / "run");
  config.max_updates = config.validate_every = 20;
  config.checkpoint_every = 2;
  config.log_every = 3;
  const RunOptions options = {.paths = {.data = (folder_ / "data").string()},
                              .out = (folder_ / "run").string(),
                              .overwrite = true,
                              .on_event = [](RunEvent event) {
                                if (event == RunEvent::log) fail(ErrorKind::system, "no space");
                              }};
  expect_error(ErrorKind::system, {"no space"}, [&] { train_model(config, options); });
  EXPECT_EQ(StateFolder::place(folder_ / "run/state").value().update, 2);
  EXPECT_TRUE(models == model_bytes(folder_ / "run/replaced"));
  EXPECT_EQ(train(config, "run").updates, 20);
  EXPECT_FALSE(fs::exists(folder_ / "run/replaced"));
}

TEST_F(TrainerTest, run_of_five_updates_leaves_a_log_a_state_and_two_models) {
  TrainConfig config = small_config();
  config.max_updates = 5;
  config.validate_every = config.checkpoint_every = config.log_every = 1000;
  const RunResult result = train(config, "run");
  EXPECT_EQ(result.updates, 5);
  EXPECT_FALSE(result.was_finished);
  for (const char* name : {"best", "last"}) {
    const LoadedModel m = load_translation_model((folder_ / "run" / name).string());
    EXPECT_EQ(m.model->width(), 32);
  }
  const auto lines = log_lines(folder_ / "run");
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0].get_int("update"), 5);
  EXPECT_GT(lines[0].get_double("loss"), 4);
  EXPECT_EQ(lines[1].get_string("validation"), "snapshot");
  EXPECT_TRUE(fs::exists(folder_ / "run" / "state" / "manifest.json"));
}

TEST_F(TrainerTest, model_of_a_small_vocabulary_has_the_words_of_its_source) {
  TrainConfig config = small_config();
  config.max_updates = 1;
  train(config, "run");
  const auto words = KnownWords::find((folder_ / "run" / "best").string());
  ASSERT_TRUE(words.has_value());
  EXPECT_EQ(words->unknown_words("The old man sees a banana, and Bread."),
            (std::vector<std::string>{"banana", "and"}));
}

TEST_F(TrainerTest, training_learns) {
  TrainConfig config = small_config();
  config.max_updates = 300;
  config.validate_every = 300;
  const RunResult result = train(config, "run");
  EXPECT_LT(result.best.loss, 1.5);  // from 5.8, the log of 340
}

TEST_F(TrainerTest, finished_run_is_left_as_it_is) {
  TrainConfig config = small_config();
  config.max_updates = 10;
  train(config, "run");
  const auto before = files_below(folder_ / "run");
  EXPECT_TRUE(train(config, "run").was_finished);
  config.max_updates = 5;
  EXPECT_TRUE(train(config, "run").was_finished);
  EXPECT_EQ(train_model(config, {.out = (folder_ / "run").string()}).updates, 10);
  EXPECT_TRUE(before == files_below(folder_ / "run"));
}

TEST_F(TrainerTest, run_that_stopped_early_counts_as_finished) {
  TrainConfig config = small_config();
  config.learning_rate = 0;  // nothing gets better
  config.max_updates = 1000;
  config.validate_every = 5;
  config.early_stop = "loss";
  config.patience = 2;
  EXPECT_EQ(train(config, "run").updates, 15);  // the first is the best, then twice no better
  const auto before = files_below(folder_ / "run");
  EXPECT_TRUE(train(config, "run").was_finished);
  EXPECT_TRUE(before == files_below(folder_ / "run"));
  config.patience = 3;
  EXPECT_EQ(train(config, "run").updates, 20);
}

TEST_F(TrainerTest, early_stop_looks_at_its_own_score) {
  // With untrained weights BLEU stays 0 while the loss falls: on BLEU it stops, on loss it does
  // not.
  TrainConfig config = small_config();
  config.validate_every = 2;
  config.max_updates = 12;
  config.learning_rate = 1e-4;
  config.patience = 2;
  config.early_stop = "bleu";
  const RunResult on_bleu = train(config, "bleu");
  EXPECT_EQ(on_bleu.updates, 6);
  EXPECT_EQ(on_bleu.best.metric("bleu"), 0);
  config.early_stop = "loss";
  EXPECT_EQ(train(config, "loss").updates, 12);
}

TEST_F(TrainerTest, higher_limit_goes_on_from_where_the_run_was) {
  TrainConfig config = small_config();
  config.max_updates = 40;
  train(config, "whole");
  EXPECT_EQ(train_in_two(config, 20, "two").updates, 40);
  EXPECT_TRUE(model_bytes(folder_ / "whole") == model_bytes(folder_ / "two"));
}

TEST_F(TrainerTest, another_seed_is_refused_by_its_flag_and_overwrite_begins_anew) {
  TrainConfig config = small_config();
  config.max_updates = 5;
  train(config, "run");
  const auto before = files_below(folder_ / "run");
  const auto models = model_bytes(folder_ / "run");
  config.seed = 2;
  expect_error(ErrorKind::usage, {"seed 1", "not 2", "overwrite"}, [&] { train(config, "run"); });
  EXPECT_TRUE(before == files_below(folder_ / "run"));
  EXPECT_FALSE(train(config, "run", true).was_finished);
  EXPECT_FALSE(models == model_bytes(folder_ / "run"));
  train(config, "other");
  EXPECT_TRUE(model_bytes(folder_ / "other") == model_bytes(folder_ / "run"));
}

TEST_F(TrainerTest, folder_with_something_else_is_refused_and_kept) {
  testing::write_file(folder_ / "mine" / "thesis.txt", "text");
  for (const bool overwrite : {false, true}) {
    expect_error(ErrorKind::usage, {"mine", "thesis.txt", "out"},
                 [&] { train(small_config(), "mine", overwrite); });
  }
  EXPECT_EQ(files_below(folder_ / "mine").size(), 1u);
}

TEST_F(TrainerTest, overwrite_keeps_what_is_not_of_the_run) {
  TrainConfig config = small_config();
  config.max_updates = 2;
  train(config, "run");
  testing::write_file(folder_ / "run" / "notes.txt", "text");
  train(config, "run", true);
  EXPECT_EQ(read_file(folder_ / "run" / "notes.txt"), "text");
}

TEST_F(TrainerTest, start_that_fails_leaves_no_folder_and_no_old_run_is_lost) {
  TrainConfig config = small_config();
  config.max_updates = 2;
  config.stack.set("vocab_size", 20000);
  expect_error(ErrorKind::data, {"20000"}, [&] { train(config, "run"); });
  EXPECT_FALSE(fs::exists(folder_ / "run"));
  config.stack.set("vocab_size", 340);
  train(config, "run");
  const auto before = files_below(folder_ / "run");
  expect_error(ErrorKind::data, {"nowhere"}, [&] {
    train_model(config, {.paths = {.data = (folder_ / "nowhere").string()},
                         .out = (folder_ / "run").string(),
                         .overwrite = true});
  });
  EXPECT_TRUE(before == files_below(folder_ / "run"));
}

TEST_F(TrainerTest, text_that_changed_is_refused) {
  TrainConfig config = small_config();
  config.max_updates = 2;
  train(config, "run");
  config.max_updates = 4;
  for (const std::string split : {"train", "val"}) {
    const std::string text = read_file(folder_ / "data" / (split + ".en"));
    testing::write_file(folder_ / "data" / (split + ".en"), "The" + text.substr(3));
    expect_error(ErrorKind::data, {split == "train" ? "training data" : "validation data"},
                 [&] { train(config, "run"); });
    testing::write_file(folder_ / "data" / (split + ".en"), text);
  }
  EXPECT_EQ(train(config, "run").updates, 4);
}

TEST_F(TrainerTest, model_has_the_same_bits_for_any_number_of_threads) {
  for (const char* precision : {"f32", "bf16"}) {
    TrainConfig config = small_config();
    config.precision = precision;
    config.accumulate = 2;
    config.max_updates = 30;
    const int before = num_threads();
    set_num_threads(1);
    train(config, std::string("one-") + precision);
    set_num_threads(2);
    train(config, std::string("two-") + precision);
    set_num_threads(before);
    EXPECT_TRUE(model_bytes(folder_ / (std::string("one-") + precision)) ==
                model_bytes(folder_ / (std::string("two-") + precision)))
        << precision;
  }
}

TEST_F(TrainerTest, layers_that_are_computed_again_give_the_same_weights) {
  for (const bool is_pre : {false, true}) {
    TrainConfig config = small_config();
    set_from_string(config, "normalize_before", is_pre ? "true" : "false");
    config.stack.set("encoder_layers", 2);
    config.stack.set("decoder_layers", 2);
    set_from_string(config, "r_drop", is_pre ? "1" : "0");
    config.max_updates = 6;
    const std::string kept = is_pre ? "pre" : "post", again = kept + "-again";
    train(config, kept);
    config.recompute = true;
    train(config, again);
    EXPECT_TRUE(model_bytes(folder_ / kept) == model_bytes(folder_ / again)) << kept;
  }
}

TEST_F(TrainerTest, best_is_the_best_of_snapshot_average_and_moving_average) {
  TrainConfig config = small_config();
  config.ema_decay = 0.9;
  config.average = "last";
  config.average_count = 2;
  config.validate_every = 10;
  config.learning_rate = 0.03;  // so large that means beat snapshots
  config.max_updates = 80;
  const RunResult result = train(config, "run");
  double best = 1e9;
  std::string kind;
  int kinds = 0;
  for (const Json& line : log_lines(folder_ / "run")) {
    if (!line.contains("validation")) continue;
    ++kinds;
    const bool is_better = line.get_double("loss") < best;
    EXPECT_EQ(line.get_bool("best"), is_better) << line.dump();
    if (!is_better) continue;
    best = line.get_double("loss");
    kind = line.get_string("validation");
  }
  EXPECT_EQ(kinds, 8 * 3 - 1);  // the average begins with the second
  EXPECT_EQ(result.best_kind, kind);
  EXPECT_EQ(result.best.loss, best);
  EXPECT_NE(kind, "snapshot") << "the case is too easy to tell them apart";
  EXPECT_NE(model_bytes(folder_ / "run").first, model_bytes(folder_ / "run").second);
}

TEST_F(TrainerTest, average_of_the_best_keeps_the_best_validations) {
  TrainConfig config = small_config();
  config.average = "best";
  config.average_count = 2;
  config.validate_every = 10;
  config.max_updates = 60;
  config.learning_rate = 0.02;
  train(config, "run");
  std::vector<std::pair<double, int64_t>> snapshots;
  for (const Json& line : log_lines(folder_ / "run")) {
    if (line.contains("validation") && line.get_string("validation") == "snapshot") {
      snapshots.push_back({line.get_double("loss"), line.get_int("update")});
    }
  }
  std::sort(snapshots.begin(), snapshots.end());
  for (size_t i = 0; i < snapshots.size(); ++i) {
    const auto path =
        folder_ / "run" / "state" / fmt::format("weights-{:09}.safetensors", snapshots[i].second);
    EXPECT_EQ(fs::exists(path), i < 2) << i;
  }
}

TEST_F(TrainerTest, bleu_chooses_the_best_where_it_is_asked_for) {
  TrainConfig config = small_config();
  config.select = "bleu";
  config.max_updates = 200;
  config.validate_every = 50;
  config.learning_rate = 0.005;
  const RunResult result = train(config, "run");
  double best = -1;
  for (const Json& line : log_lines(folder_ / "run")) {
    if (line.contains("bleu")) best = std::max(best, line.get_double("bleu"));
  }
  EXPECT_EQ(result.best.metric("bleu"), best);
  EXPECT_GT(best, 5);
  const Json last = log_lines(folder_ / "run").back();
  const double half_width = last.get_double("bleu_half_width");
  EXPECT_TRUE(half_width > 0 && half_width < 50) << last.dump();
}

// A mean over several is less noisy; it goes on over a stop.
TEST_F(TrainerTest, smoothed_scores_choose_the_best_where_a_window_is_given) {
  TrainConfig config = small_config();
  config.select_window = 3;
  config.validate_every = 5;
  config.checkpoint_every = 10;
  config.learning_rate = 0.03;
  for (const int64_t updates : {40, 80}) {
    config.max_updates = updates;
    train(config, "stopped");
  }
  train(config, "whole");
  std::vector<double> costs;
  double best = 1e300;  // a window that is not full counts 1e9 for each that is missing
  int unlike_alone = 0;
  double lowest = 1e9;
  for (const Json& line : log_lines(folder_ / "whole")) {
    if (!line.contains("validation")) continue;
    const double loss = line.get_double("loss");
    costs.push_back(loss);
    if (costs.size() > 3) costs.erase(costs.begin());
    const auto count = static_cast<double>(costs.size());
    const double mean =
        std::accumulate(costs.begin(), costs.end(), 0.0) / count + 1e9 * (3 - count);
    EXPECT_EQ(line.get_bool("best"), mean < best) << line.dump();
    unlike_alone += (mean < best) != (loss < lowest);
    best = std::min(best, mean), lowest = std::min(lowest, loss);
  }
  EXPECT_GT(unlike_alone, 0) << "the case is too easy to tell them apart";
  EXPECT_EQ(model_bytes(folder_ / "stopped"), model_bytes(folder_ / "whole"));
}

TEST_F(TrainerTest, minutes_end_a_run_and_count_over_its_parts) {
  TrainConfig config = small_config();
  config.max_updates = 0;
  config.max_minutes = 0.4 / 60;
  const RunResult first = train(config, "run");
  EXPECT_GE(first.seconds, 0.4);
  EXPECT_TRUE(train(config, "run").was_finished);
  // An hour more, of which one update is used.
  config.max_minutes = 60;
  config.max_updates = first.updates + 1;
  const RunResult second = train(config, "run");
  EXPECT_EQ(second.updates, first.updates + 1);
  EXPECT_GT(second.seconds, first.seconds);
  // All parts together are beyond this.
  config.max_updates = 0;
  config.max_minutes = (first.seconds + second.seconds) / 2 / 60;
  EXPECT_TRUE(train(config, "run").was_finished);
}

TEST_F(TrainerTest, clipping_bounds_the_update_of_the_moments) {
  // The log's norm is that before clipping; with a tiny bound the run differs from the free one.
  TrainConfig config = small_config();
  config.max_updates = 20;
  config.adam_epsilon = 1e-3;  // or Adam would undo the scale
  train(config, "free");
  config.clip_norm = 1e6;
  train(config, "wide");
  config.clip_norm = 1e-3;
  train(config, "tight");
  EXPECT_TRUE(model_bytes(folder_ / "free") == model_bytes(folder_ / "wide"));
  EXPECT_FALSE(model_bytes(folder_ / "free") == model_bytes(folder_ / "tight"));
  EXPECT_GT(log_lines(folder_ / "tight")[0].get_double("gradient_norm"), 0.1);
}

TEST_F(TrainerTest, loss_that_is_not_finite_names_a_tensor_and_keeps_the_state) {
  TrainConfig config = small_config();
  config.max_updates = 8;
  config.validate_every = 4;
  train(config, "run");
  // The same run with a rate that explodes, going on from a good state.
  RunSettings settings = load_settings((folder_ / "run").string());
  settings.config.learning_rate = 1e30;
  settings.config.warmup_updates = 0;
  save_settings((folder_ / "run").string(), settings);
  settings.config.max_updates = 20;
  const auto models = model_bytes(folder_ / "run");
  expect_error(ErrorKind::data, {"update ", "not finite", "last good state"},
               [&] { train(settings.config, "run"); });
  const auto state = StateFolder::peek((folder_ / "run" / "state").string());
  ASSERT_TRUE(state.has_value());
  EXPECT_EQ(state->update, 8);
  EXPECT_TRUE(models == model_bytes(folder_ / "run"));
}

TEST_F(TrainerTest, weights_ruined_by_the_last_update_are_an_error_and_no_model) {
  TrainConfig config = small_config();
  config.learning_rate = 1e30;
  config.warmup_updates = 0;
  config.max_updates = 1;
  expect_error(ErrorKind::data,
               {"update 1: the validation loss is not finite", "no state was saved yet"},
               [&] { train(config, "run"); });
  EXPECT_FALSE(fs::exists(folder_ / "run" / "best"));
  EXPECT_FALSE(StateFolder::peek((folder_ / "run" / "state").string()).has_value());
}

TEST_F(TrainerTest, precision_that_auto_chose_is_recorded) {
  TrainConfig config = small_config();
  config.precision = "auto";
  config.max_updates = 1;
  train(config, "run");
  const auto state = StateFolder::peek((folder_ / "run" / "state").string());
  EXPECT_EQ(state->machine, machine_signature(resolve_precision("auto").compute));
}

TEST_F(TrainerTest, tokenizer_that_is_given_is_used_and_must_fit) {
  TrainConfig config = small_config();
  config.max_updates = 1;
  train(config, "first");
  set_from_string(config, "tokenizer", (folder_ / "first" / "tokenizer.model").string());
  train(config, "second");
  EXPECT_EQ(read_file(folder_ / "first" / "tokenizer.model"),
            read_file(folder_ / "second" / "best" / "tokenizer.model"));
  config.stack.set("vocab_size", 350);
  expect_error(ErrorKind::data, {"340", "350", "vocab_size 340"}, [&] { train(config, "third"); });
}

}  // namespace
}  // namespace heddle::train
