// A run of training that was never trained: what its report is written from.
#pragma once

#include <cmath>
#include <filesystem>
#include <string>

#include "heddle/inspect/run_history.h"
#include "tests/support/cli_runner.h"

namespace heddle::testing {

/// A run as heddle train would have logged it: losses fall, two validations with samples.
inline void write_run(const std::string& run, double learning_rate, double label_smoothing = 0.1) {
  train::TrainConfig config;
  config.learning_rate = learning_rate;
  set_from_string(config, "label_smoothing", fmt::format("{}", label_smoothing));
  write_file(std::filesystem::path(run) / "train.json", "{}");
  train::save_settings(run, {.config = config, .paths = {.data = "/data"}});
  std::string log;
  for (int update = 100; update <= 400; update += 100) {
    const double loss = 9 * std::exp(-update * learning_rate);
    log += fmt::format(
        "{{\"update\": {}, \"epoch\": 1, \"loss\": {}, \"nll\": {}, \"gradient_norm\": 1.5, "
        "\"learning_rate\": {}, \"tokens_per_second\": 9000.0, \"seconds\": {}.5}}\n",
        update, loss + 5 * label_smoothing, loss, learning_rate, update / 10);
    if (update % 200 != 0) continue;
    log += fmt::format(
        "{{\"update\": {}, \"validation\": \"snapshot\", \"loss\": {}, \"bleu\": {}, \"best\": "
        "true, \"samples\": [{{\"source\": \"a <b> dog\", \"reference\": \"ein Hund\", "
        "\"translation\": \"{}\"}}], \"seconds\": {}.0}}\n",
        update, loss + 0.1, update / 10.0, update == 400 ? "ein Hund" : "ein ein", update / 10 + 1);
  }
  write_file(std::filesystem::path(run) / "log.jsonl", log);
}

}  // namespace heddle::testing
