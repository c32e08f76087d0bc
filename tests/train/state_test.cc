// The state folder: what comes back, what is kept, what is refused.
#include "heddle/train/run/state.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "heddle/base/files/files.h"
#include "heddle/train/run/run_folder.h"
#include "tests/base/temporary.h"

namespace heddle::train {
namespace {

struct Model {
  nn::Parameters parameters{1};
  nn::Parameter* w;
  std::optional<Optimizer> optimizer;
  explicit Model(float value) {
    w = &nn::Scope(parameters, "w").parameter(Shape({2, 3}), nn::Init::ones());
    optimizer.emplace(parameters, OptimizerOptions{.ema_decay = 0.5});
    set(value);
  }
  void set(float value) {
    for (int i = 0; i < 6; ++i) w->value().data<float>()[i] = value;
    w->changed(true);
  }
  void step() {
    w->grad() = Tensor::full(Shape({2, 3}), 0.5f, DType::f32);
    optimizer->step(0.1, 1);
  }
  float value() const { return w->value().data<float>()[5]; }
};

std::vector<std::string> names(const std::string& folder) { return list_directory(folder); }

TEST(StateFolder, fresh_one_holds_nothing) {
  const TemporaryFolder folder;
  Model m(1);
  StateFolder state(folder / "state");
  EXPECT_FALSE(state.holds_state());
  EXPECT_FALSE(state.load(m.parameters, *m.optimizer).has_value());
  EXPECT_EQ(m.value(), 1);
}

TEST(StateFolder, weights_moments_and_place_come_back) {
  const TemporaryFolder folder;
  Model m(1);
  m.step();
  Progression p;
  p.update = 1;
  p.epoch = 2;
  p.batch = 3;
  p.seconds = 4.25;
  p.log_bytes = 50;
  p.best_kind = "ema";
  p.best = {.loss = 0.1 + 0.2, .metrics = {{"accuracy", 1.0 / 7}}};
  p.best_cost = 0.4;
  p.recent_costs = {{"ema", {0.1, 1.0 / 3}}, {"snapshot", {2}}};
  p.stop_best = -1.5;
  p.machine = "here";
  p.version = "0.0.1";
  p.window.loss = 1.0 / 3;
  p.window.updates = 7;
  {
    StateFolder state(folder / "state");
    state.save(p, m.parameters, m.optimizer->moments());
  }
  Model other(9);
  StateFolder state(folder / "state");
  const auto read = state.load(other.parameters, *other.optimizer);
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->epoch, 2);
  EXPECT_EQ(read->batch, 3);
  EXPECT_EQ(read->seconds, 4.25);
  EXPECT_EQ(read->log_bytes, 50);
  EXPECT_EQ(read->best_kind, "ema");
  EXPECT_EQ(read->best, p.best);
  EXPECT_EQ(read->best_cost, 0.4);
  EXPECT_EQ(read->recent_costs, p.recent_costs);
  EXPECT_EQ(read->stop_best, -1.5);
  EXPECT_EQ(read->machine, "here");
  EXPECT_EQ(read->version, "0.0.1");
  EXPECT_EQ(read->window.loss, 1.0 / 3);
  EXPECT_EQ(read->window.updates, 7);
  EXPECT_EQ(other.optimizer->updates(), 1);
  m.step();
  other.step();  // equal only if the moments are
  EXPECT_EQ(m.value(), other.value());
  EXPECT_EQ(m.optimizer->moments()[0].ema.data<float>()[0],
            other.optimizer->moments()[0].ema.data<float>()[0]);
}

TEST(StateFolder, only_the_last_state_and_named_weights_stay) {
  const TemporaryFolder folder;
  Model m(1);
  StateFolder state(folder / "state");
  for (int64_t update : {1, 2, 3}) {
    state.keep_weights(update, m.parameters);
    Progression p;
    p.update = update;
    p.kept = {{update, {}}};
    state.save(p, m.parameters, m.optimizer->moments());
  }
  EXPECT_EQ(names(folder / "state"),
            (std::vector<std::string>{"lock", "manifest.json", "snapshot-000000003.safetensors",
                                      "weights-000000003.safetensors"}));
}

TEST(StateFolder, what_a_killed_save_left_is_removed) {
  const TemporaryFolder folder;
  Model m(1);
  {
    StateFolder state(folder / "state");
    state.save(Progression(), m.parameters, m.optimizer->moments());
  }
  write_file_atomic(folder / "state/snapshot-000000009.safetensors", "half");
  write_file_atomic(folder / "state/manifest.json.tmp-0123456789abcdef", "half");
  StateFolder state(folder / "state");
  ASSERT_TRUE(state.load(m.parameters, *m.optimizer).has_value());
  EXPECT_EQ(names(folder / "state").size(), 3u);
}

TEST(StateFolder, average_is_the_mean_of_kept_weights) {
  const TemporaryFolder folder;
  Model m(1);
  StateFolder state(folder / "state");
  for (const float v : {1.0f, 2.0f, 6.0f}) {
    m.set(v);
    state.keep_weights(static_cast<int64_t>(v), m.parameters);
  }
  const auto mean = state.average({{1, {}}, {2, {}}, {6, {}}}, m.parameters);
  EXPECT_EQ(mean.at(0).data<float>()[0], 3);
  EXPECT_EQ(m.value(), 6);
}

TEST(StateFolder, altered_snapshot_is_refused_by_name) {
  const TemporaryFolder folder;
  Model m(1);
  {
    StateFolder state(folder / "state");
    state.save(Progression(), m.parameters, m.optimizer->moments());
  }
  const std::string path = folder / "state/snapshot-000000000.safetensors";
  std::string bytes = read_file(path);
  bytes[bytes.size() - 5] ^= 1;
  write_file_atomic(path, bytes);
  StateFolder state(folder / "state");
  expect_error(ErrorKind::data, {"snapshot-000000000.safetensors", "altered"},
               [&] { state.load(m.parameters, *m.optimizer); });
}

TEST(StateFolder, second_process_is_refused) {
  const TemporaryFolder folder;
  const StateFolder state(folder / "state");
  expect_error(ErrorKind::usage, {"another heddle"},
               [&] { const StateFolder second(folder / "state"); });
}

TEST(StateFolder, noted_seconds_come_back_and_the_last_note_counts) {
  const TemporaryFolder folder;
  const StateFolder state(folder / "state");
  EXPECT_EQ(state.noted_seconds(), 0);
  state.note_seconds(123456.5);
  state.note_seconds(7.25);
  EXPECT_EQ(state.noted_seconds(), 7.25);
}

TEST(StateFolder, cleared_one_holds_nothing) {
  const TemporaryFolder folder;
  Model m(1);
  StateFolder state(folder / "state");
  state.save(Progression(), m.parameters, m.optimizer->moments());
  state.clear();
  EXPECT_FALSE(StateFolder::peek(folder / "state").has_value());
  EXPECT_EQ(names(folder / "state"), std::vector<std::string>{"lock"});
}

Json line(int n) {
  Json json = Json::object();
  json["n"] = n;
  return json;
}

TEST(RunLog, resume_cuts_what_came_after_the_saved_state) {
  const TemporaryFolder folder;
  int64_t saved = 0;
  {
    RunLog log(folder / "log.jsonl", 0);
    log.write(line(1));
    saved = log.bytes();
    log.write(line(2));
  }
  RunLog log(folder / "log.jsonl", saved);
  log.write(line(3));
  EXPECT_EQ(read_file(folder / "log.jsonl"), "{\"n\": 1}\n{\"n\": 3}\n");
}

TEST(RunLog, log_that_was_made_shorter_is_not_filled_with_zeros) {
  const TemporaryFolder folder;
  RunLog log(folder / "log.jsonl", 1000);
  log.write(line(1));
  EXPECT_EQ(read_file(folder / "log.jsonl"), "{\"n\": 1}\n");
  EXPECT_EQ(log.bytes(), 9);
}

}  // namespace
}  // namespace heddle::train
