// Training by several processes: the same models, states and losses as of one, whatever the task;
// what ranks refuse, and how they end.
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <future>
#include <sstream>
#include <thread>

#include "heddle/inspect/run_history.h"
#include "heddle/io/snapshot.h"
#include "tests/cli/image_runs.h"
#include "tests/dist/rank_runs.h"

namespace heddle::testing {
namespace {

using train::TrainConfig;

// 16 updates of 4 shards.
void share(TrainConfig& c) {
  c.shards = 4;
  c.max_updates = 16;
  c.validate_every = 8;
  c.checkpoint_every = 5;
  c.log_every = 3;
}

TrainConfig shared_translation() {
  TrainConfig c = small_config();
  share(c);
  c.clip_norm = 0.1;
  c.ema_decay = 0.9;
  return c;
}

TEST(Ranks, translate_with_parts_two_passes_clipping_and_averages_to_the_bits_of_one) {
  const TempDir folder;
  write_pairs(folder / "data");
  TrainConfig c = shared_translation();
  c.shards = 8;
  c.accumulate = 2;
  c.average = "last";
  set_from_string(c, "r_drop", "1");
  set_from_string(c, "dropout", "0.1");
  expect_same_for_ranks({1, 2, 4, 8}, folder, c, {"--data", (folder / "data").string()}, 11);
}

TEST(Ranks, bf16_by_sgd_to_the_bits_of_one) {
  const TempDir folder;
  write_pairs(folder / "data");
  TrainConfig c = shared_translation();
  c.precision = "bf16";
  c.optimizer = "sgd";
  c.learning_rate = 0.1;
  expect_same_for_ranks({1, 2, 4}, folder, c, {"--data", (folder / "data").string()}, 6);
}

// What a layer uses is final when it has been computed again, and not before.
TEST(Ranks, layers_that_are_computed_again_to_the_bits_of_one) {
  const TempDir folder;
  write_pairs(folder / "data");
  TrainConfig c = shared_translation();
  c.recompute = true;
  expect_same_for_ranks({1, 4}, folder, c, {"--data", (folder / "data").string()});
}

TEST(Ranks, wire_bf16_rounds_gradients_and_says_so) {
  const TempDir folder;
  write_pairs(folder / "data");
  const TrainConfig c = shared_translation();
  write_file(folder / "run.json", to_json(c).dump());
  const std::vector<std::string> data = {"--data", (folder / "data").string()};
  train_by_ranks(2, folder, "f32", c, data);
  const auto by_bf16 = [&](const std::string& run, int ranks) {
    return run_ranks(ranks, folder,
                     {"train", "--config", (folder / "run.json").string(), "--out",
                      (folder / run).string(), "--wire", "bf16", data[0], data[1]});
  };
  for (const char* run : {"bf16", "again"}) {
    const auto results = by_bf16(run, 2);
    for (const CliResult& result : results) EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_TRUE(contains(results[0].err, "between the 2 ranks as bf16")) << results[0].err;
  }
  EXPECT_TRUE(model_bytes(folder / "bf16") == model_bytes(folder / "again"));
  EXPECT_FALSE(model_bytes(folder / "bf16") == model_bytes(folder / "f32"));
  const auto last_loss = [&](const char* run) {
    double loss = 0;
    for (const std::string& line : log_without_times(folder / run)) {
      const Json json = Json::parse(line, "log.jsonl");
      if (json.contains("gradient_norm")) loss = json.get_double("loss", "");
    }
    return loss;
  };
  ASSERT_GT(last_loss("f32"), 0);
  EXPECT_NEAR(last_loss("bf16"), last_loss("f32"), 0.01 * last_loss("f32"));
}

std::string two_words_text(int lines = 300) {
  std::string text;
  for (int i = 0; i < lines; ++i) text += i * i % 7 < 3 ? "abcdefx\n" : "gfedcbx\n";
  return text;
}

TrainConfig short_config(const std::string& task, const std::string& type) {
  TrainConfig c = train::default_config(task, type);
  make_short(c);
  share(c);
  return c;
}

TEST(Ranks, language_models_and_their_adapters_to_the_bits_of_one) {
  const TempDir folder;
  write_file(folder / "text.txt", two_words_text());
  const std::string data = (folder / "text.txt").string();
  write_file(folder / "held.txt", two_words_text(1200));  // of three passes
  const std::string held = (folder / "held.txt").string();
  TrainConfig c = short_config("causal_lm", "gpt2");
  for (const char* key : {"n_layer", "n_head"}) c.stack.set(key, 1);
  c.stack.set("n_embd", 16);
  c.stack.set("n_positions", 12);
  expect_same_for_ranks({1, 2, 4}, folder, c, {"--data", data, "--val-data", held}, 10);
  const TempDir adapted;
  c.lora_rank = 2;
  expect_same_for_ranks({1, 2, 4}, adapted, c,
                        {"--data", data, "--from", (folder / "by-1").string()});
}

// Each matrix is updated whole, by one of the ranks.
TEST(Ranks, muon_to_the_bits_of_one) {
  const TempDir folder;
  write_file(folder / "text.txt", two_words_text());
  TrainConfig c = short_config("causal_lm", "gpt2");
  for (const char* key : {"n_layer", "n_head"}) c.stack.set(key, 2);
  c.stack.set("n_embd", 16);
  c.stack.set("n_positions", 12);
  c.optimizer = "muon";
  c.ema_decay = 0.9;
  c.clip_norm = 0.1;
  expect_same_for_ranks({1, 2, 4}, folder, c, {"--data", (folder / "text.txt").string()}, 10);
}

TEST(Ranks, what_a_model_remembers_of_each_stream_is_that_of_one) {
  const TempDir folder;
  write_file(folder / "text.txt", echoing_text(5));
  write_file(folder / "held.txt", echoing_text(5) + echoing_text(4));  // 31 streams
  TrainConfig c = short_config("causal_lm", "transfo-xl");
  for (const char* key : {"n_layer", "n_head", "div_val"}) c.stack.set(key, 1);
  for (const char* key : {"d_model", "d_embed", "d_head"}) c.stack.set(key, 16);
  c.stack.set("d_inner", 32);
  c.stack.set("mem_len", 8);
  set_from_string(c, "block_size", "4");
  expect_same_for_ranks({1, 2, 4}, folder, c, {"--data", (folder / "text.txt").string()}, 7);
  const TempDir shared;  // held-out streams of several passes, of which the last ones end earlier
  set_from_string(c, "block_size", "16");
  set_from_string(c, "batch_size", "36");
  expect_same_for_ranks(
      {1, 2, 4}, shared, c,
      {"--data", (folder / "text.txt").string(), "--val-data", (folder / "held.txt").string()});
}

std::string labelled_texts() {
  std::string table = "text\tlabel\n";
  for (int i = 0; i < 120; ++i) {
    const bool is_good = i * i % 5 < 2;
    table += fmt::format("the {} {} was {}\t{}\n", i % 3 == 0 ? "old" : "new",
                         i % 2 == 0 ? "film" : "book", is_good ? "good" : "bad", is_good);
  }
  return table;
}

TrainConfig tiny_bert(const std::string& task) {
  TrainConfig c = short_config(task, "bert");
  for (const char* key : {"num_hidden_layers", "num_attention_heads"}) c.stack.set(key, 1);
  for (const char* key : {"hidden_size", "intermediate_size"}) c.stack.set(key, 16);
  c.stack.set("max_position_embeddings", 24);
  c.stack.set("vocab_size", 60);
  return c;
}

TEST(Ranks, classifiers_and_masked_models_to_the_bits_of_one) {
  const TempDir classes, masked;
  write_file(classes / "texts.tsv", labelled_texts());
  const std::string data = (classes / "texts.tsv").string();
  TrainConfig of_classes = tiny_bert("sequence_classification");
  set_from_string(of_classes, "val_share", "0.6");  // two passes
  expect_same_for_ranks({1, 2}, classes, of_classes, {"--data", data});
  TrainConfig c = tiny_bert("masked_lm");
  set_from_string(c, "block_size", "10");
  set_from_string(c, "next_sentence", "true");
  expect_same_for_ranks({1, 4}, masked, c, {"--data", data});
}

// Batch norm: running means are those of the shards.
TEST(Ranks, images_with_batch_norm_to_the_bits_of_one) {
  const TempDir folder;
  std::filesystem::create_directory(folder / "data");
  write_quarters((folder / "data").string(), "train", 120);
  write_quarters((folder / "data").string(), "test", 140);  // two passes
  TrainConfig c = short_config("image_classification", "resnet");
  for (const auto& [key, value] : std::map<std::string, std::string>{{"stem", "cifar"},
                                                                     {"downsample", "pool"},
                                                                     {"layer_type", "basic"},
                                                                     {"embedding_size", "8"},
                                                                     {"hidden_sizes", "8,16"},
                                                                     {"depths", "1,1"},
                                                                     {"batch_size", "24"},
                                                                     {"mixup_alpha", "0.2"},
                                                                     {"optimizer", "sgd"},
                                                                     {"ema_decay", "0.9"}}) {
    set_from_string(c, key, value);
  }
  expect_same_for_ranks({1, 2, 4}, folder, c, {"--data", (folder / "data").string()}, 10);
}

// The share of the peak that a token a second took, of the update logged last.
double share_of_a_token(const std::filesystem::path& run) {
  double share = 0;
  std::istringstream log(read_file(run / "log.jsonl"));
  for (std::string line; std::getline(log, line);) {
    const Json json = Json::parse(line, "log.jsonl");
    const Json* found = json.find("share_of_peak");
    if (found != nullptr) share = found->as_double() / json.get_double("tokens_per_second");
  }
  return share;
}

TEST(Ranks, the_share_of_the_peak_is_that_of_one_rank) {
  const TempDir folder;
  write_pairs(folder / "data");
  const std::vector<std::string> more = {"--data", (folder / "data").string()};
  train_by_ranks(1, folder, "one", shared_translation(), more);
  train_by_ranks(4, folder, "four", shared_translation(), more);
  const double one = share_of_a_token(folder / "one"), four = share_of_a_token(folder / "four");
  EXPECT_GT(one, 1.5 * four);  // four times, but for a peak that was measured beside other work
  EXPECT_GT(four, 0);
}

// Of the run's two ranks, once for each time that it was begun or resumed.
TEST(Ranks, log_and_report_say_where_the_time_of_each_went) {
  const TempDir folder;
  write_pairs(folder / "data");
  const std::vector<std::string> more = {"--data", (folder / "data").string()};
  TrainConfig c = shared_translation();
  const int64_t end = c.max_updates;
  c.max_updates = end / 2;
  train_by_ranks(2, folder, "run", c, more);
  c.max_updates = end;
  train_by_ranks(2, folder, "run", c, more);
  const inspect::RunHistory history = inspect::read_history((folder / "run").string());
  ASSERT_EQ(history.ranks.size(), 2u);
  EXPECT_EQ(history.ranks[0].update, end / 2);
  EXPECT_EQ(history.ranks[1].update, end);
  for (const inspect::LoggedRanks& logged : history.ranks) {
    ASSERT_EQ(logged.ranks.size(), 2u);
    double all = 0;
    for (const Json& one : logged.ranks.as_array()) {
      EXPECT_FALSE(one.get_string("host").empty());
      EXPECT_GT(one.get_double("compute_seconds"), 0);
      for (const char* key : {"compute_seconds", "waiting_seconds", "wire_seconds"}) {
        EXPECT_GE(one.get_double(key), 0);
        all += one.get_double(key);
      }
    }
    EXPECT_LE(all, 2 * history.seconds + 1);
  }
  const std::string page = read_file(folder / "run/report.html");
  EXPECT_TRUE(contains(page, history.ranks[1].ranks.dump())) << page.size();
}

TEST(Ranks, more_ranks_than_shards_are_refused_with_what_to_do) {
  const TempDir folder;
  write_pairs(folder / "data");
  TrainConfig c = shared_translation();
  c.shards = 2;
  write_file(folder / "run.json", to_json(c).dump());
  const std::vector<std::string> words = {"train",
                                          "--config",
                                          (folder / "run.json").string(),
                                          "--out",
                                          (folder / "run").string(),
                                          "--data",
                                          (folder / "data").string()};
  for (const CliResult& result : run_ranks(4, folder, words)) {
    EXPECT_EQ(result.exit_code, 2) << result.err;  // and not 7: each has found it by itself
    EXPECT_TRUE(contains(result.err, "4 ranks")) << result.err;
    EXPECT_TRUE(contains(result.err, "--shards 4")) << result.err;
  }
  EXPECT_FALSE(std::filesystem::exists(folder / "run"));
}

// Not 7, the code of those who lost another: what is wrong with one is said of all.
TEST(Ranks, settings_that_one_rank_alone_cannot_read_end_all_with_the_code_of_that) {
  const TempDir folder;
  write_pairs(folder / "data");
  TrainConfig c = shared_translation();
  write_file(folder / "run.json", to_json(c).dump());
  const auto words = [&](const std::string& config) -> std::vector<std::string> {
    return {"train",
            "--config",
            (folder / config).string(),
            "--data",
            (folder / "data").string(),
            "--out",
            (folder / "run").string()};
  };
  write_file(folder / "bad.json", R"({"task": "translation", "learning_rte": 1})");
  for (const char* config : {"bad.json", "none.json"}) {
    for (const CliResult& result : run_each({words("run.json"), words(config)}, folder)) {
      EXPECT_EQ(result.exit_code, 3) << result.err;
      EXPECT_TRUE(contains(result.err, config)) << result.err;
    }
  }
  EXPECT_FALSE(std::filesystem::exists(folder / "run"));
}

// Before settings are read: what a start with --overwrite has left is put right.
TEST(Ranks, what_rank_0_finds_wrong_with_the_run_ends_all_with_the_code_of_that) {
  const TempDir folder;
  write_pairs(folder / "data");
  write_file(folder / "run.json", to_json(shared_translation()).dump());
  write_file(folder / "run/replaced/train.json", "{}");
  std::filesystem::create_directory(folder / "run/state");
  const FolderLock lock((folder / "run/state").string());
  const std::vector<std::string> words = {"train",
                                          "--config",
                                          (folder / "run.json").string(),
                                          "--data",
                                          (folder / "data").string(),
                                          "--out",
                                          (folder / "run").string()};
  for (const CliResult& result : run_ranks(2, folder, words)) {
    EXPECT_EQ(result.exit_code, 2) << result.err;
    EXPECT_TRUE(contains(result.err, "another heddle is working here")) << result.err;
  }
}

TEST(Ranks, paths_that_differ_are_refused_by_name) {
  const TempDir folder;
  TrainConfig c = short_config("causal_lm", "gpt2");
  for (const char* key : {"n_layer", "n_head"}) c.stack.set(key, 1);
  for (const char* key : {"n_embd", "n_positions"}) c.stack.set(key, 16);
  write_file(folder / "run.json", to_json(c).dump());
  for (const char* name : {"text", "held", "other"}) write_file(folder / name, two_words_text());
  const auto words = [&](const char* data, const char* held) -> std::vector<std::string> {
    return {"train",
            "--config",
            (folder / "run.json").string(),
            "--out",
            (folder / "run").string(),
            "--data",
            (folder / data).string(),
            "--val-data",
            (folder / held).string()};
  };
  const auto expect_refused = [&](const std::vector<std::string>& of_rank_1, const char* flag,
                                  const char* path) {
    for (const CliResult& result : run_each({words("text", "held"), of_rank_1}, folder)) {
      EXPECT_EQ(result.exit_code, 2) << result.err;
      const std::string told = fmt::format("{} is \"{}\" on rank 0 and \"{}\" on rank 1", flag,
                                           (folder / path).string(), (folder / "other").string());
      EXPECT_TRUE(contains(result.err, told)) << result.err;
    }
  };
  expect_refused(words("other", "held"), "--data", "text");
  expect_refused(words("text", "other"), "--val-data", "held");
  EXPECT_FALSE(std::filesystem::exists(folder / "run"));
}

// `heddle train` by two ranks, each with a folder of its own for the run.
std::vector<CliResult> train_in(const TempDir& folder, const TrainConfig& c,
                                const std::vector<std::string>& outs) {
  write_file(folder / "run.json", to_json(c).dump());
  std::vector<std::vector<std::string>> all;
  for (const std::string& out : outs) {
    all.push_back({"train", "--config", (folder / "run.json").string(), "--data",
                   (folder / "data").string(), "--out", (folder / out).string()});
  }
  return run_each(all, folder);
}

// As on a file system of a network, which shows late what another machine has made.
TEST(Ranks, a_rank_waits_until_it_sees_the_run) {
  namespace fs = std::filesystem;
  const TempDir folder;
  write_pairs(folder / "data");
  const auto late = std::async(std::launch::async, [&] {
    while (!fs::exists(folder / "there/run/train.json")) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    fs::create_directory_symlink(folder / "there", folder / "seen");
  });
  for (const CliResult& result :
       train_in(folder, shared_translation(), {"there/run", "seen/run"})) {
    EXPECT_EQ(result.exit_code, 0) << result.err;
  }
}

TEST(Ranks, states_of_different_updates_are_found_before_anything_is_written) {
  const TempDir folder;
  write_pairs(folder / "data");
  TrainConfig c = shared_translation();
  c.max_updates = 5;
  train_by_ranks(2, folder, "run", c, {"--data", (folder / "data").string()});
  std::filesystem::copy(folder / "run", folder / "older", std::filesystem::copy_options::recursive);
  c.max_updates = 10;
  train_by_ranks(2, folder, "run", c, {"--data", (folder / "data").string()});
  const std::string before = snapshot_bytes(folder / "run");
  const auto models = model_bytes(folder / "run");
  c.max_updates = 16;
  for (const CliResult& result : train_in(folder, c, {"run", "older"})) {
    EXPECT_EQ(result.exit_code, 2) << result.err;
    EXPECT_TRUE(contains(result.err, "is of update 10")) << result.err;
    EXPECT_TRUE(contains(result.err, "and of update 5")) << result.err;
  }
  EXPECT_TRUE(snapshot_bytes(folder / "run") == before);
  EXPECT_TRUE(model_bytes(folder / "run") == models);
}

// By a shell that starts two ranks and does `meanwhile` ($a, $b: their processes): the exit codes
// of both. before_0: what rank 0's own shell does.
CliResult train_meanwhile(const TempDir& folder, const TrainConfig& c, const std::string& meanwhile,
                          const std::string& before_0 = ":") {
  write_file(folder / "run.json", to_json(c).dump());
  const std::string words = fmt::format("exec {} train --config {} --out {} --data {} --threads 1",
                                        kProgram, (folder / "run.json").string(),
                                        (folder / "run").string(), (folder / "data").string());
  return run_command(
      {"sh", "-c",
       fmt::format("export HEDDLE_RENDEZVOUS=file://{0}/meeting HEDDLE_RANKS=2 HEDDLE_RANK; "
                   "({1}; HEDDLE_RANK=0; {2}) & a=$!; (HEDDLE_RANK=1; {2}) & b=$!; "
                   "{3}; wait $a; a=$?; wait $b; echo $a $?",
                   folder.path().string(), before_0, words, meanwhile)});
}

// Until rank 0 writes to the log, then ends rank 1.
std::string end_rank_1(const TempDir& folder) {
  return fmt::format("until test -s {}; do sleep 0.01; done; kill -TERM $b",
                     (folder / "run/log.jsonl").string());
}

// A file may be as large as a model, and not as large as a state: it has moments and averages too.
TEST(Ranks, a_last_state_that_rank_0_cannot_write_ends_all_by_that_error) {
  const TempDir folder;
  write_pairs(folder / "data");
  TrainConfig c = shared_translation();
  c.checkpoint_every = c.validate_every = 1'000'000;
  const std::string full_disk = "trap '' XFSZ; ulimit -f 400";
  const auto expect_error = [&](const std::string& meanwhile) {
    const CliResult result = train_meanwhile(folder, c, meanwhile, full_disk);
    EXPECT_EQ(result.out, "6 6\n") << result.err;
    EXPECT_TRUE(contains(result.err, "snapshot-")) << result.err;
    EXPECT_FALSE(std::filesystem::exists(folder / "run/state/manifest.json"));
    std::filesystem::remove_all(folder / "run");
  };
  expect_error(":");
  c.max_updates = 1'000'000;
  expect_error(end_rank_1(folder));
}

TEST(Ranks, a_signal_to_one_rank_stops_all_at_one_update_and_the_run_goes_on) {
  const TempDir folder;
  write_pairs(folder / "data");
  TrainConfig c = shared_translation();
  c.max_updates = 60;
  const std::vector<std::string> more = {"--data", (folder / "data").string()};
  train_by_ranks(1, folder, "whole", c, more);
  const CliResult stopped = train_meanwhile(folder, c, end_rank_1(folder));
  EXPECT_EQ(stopped.out, "143 143\n") << stopped.err;
  train_by_ranks(2, folder, "run", c, more);
  EXPECT_TRUE(model_bytes(folder / "run") == model_bytes(folder / "whole"));
  EXPECT_EQ(log_without_times(folder / "run"), log_without_times(folder / "whole"));
}

}  // namespace
}  // namespace heddle::testing
