// A few hundred short pairs and settings that train a tiny model on them in a second.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "heddle/train/config.h"
#include "tests/support/cli_runner.h"

namespace heddle::testing {

/// Writes {train,val}.{en,de}: 200 and 40 pairs, the same each time.
inline void write_pairs(const std::filesystem::path& folder) {
  const std::vector<std::pair<std::string, std::string>> who = {{"the old man", "der alte Mann"},
                                                                {"a small dog", "ein kleiner Hund"},
                                                                {"my sister", "meine Schwester"},
                                                                {"our teacher", "unser Lehrer"},
                                                                {"the cat", "die Katze"}};
  const std::vector<std::pair<std::string, std::string>> what = {
      {"sees", "sieht"}, {"buys", "kauft"}, {"finds", "findet"},
      {"hears", "hört"}, {"wants", "will"}, {"likes", "mag"}};
  const std::vector<std::pair<std::string, std::string>> whom = {
      {"the newspaper", "die Zeitung"},
      {"two books", "zwei Bücher"},
      {"a green bicycle", "ein grünes Fahrrad"},
      {"nothing", "nichts"},
      {"the street", "die Straße"},
      {"a big house", "ein großes Haus"},
      {"bread", "Brot"},
      {"the blue car", "das blaue Auto"}};
  std::map<std::string, std::string> files;
  int i = 0;
  for (const auto& a : who) {
    for (const auto& b : what) {
      for (const auto& c : whom) {
        const std::string split = ++i % 6 == 0 ? "val" : "train";
        files[split + ".en"] += a.first + " " + b.first + " " + c.first + ".\n";
        files[split + ".de"] += a.second + " " + b.second + " " + c.second + ".\n";
      }
    }
  }
  for (const auto& [name, text] : files) write_file(folder / name, text);
}

/// 4,000 letters, each the one `back` before it, but a quarter of them new.
inline std::string echoing_text(size_t back) {
  std::string text = "abcdef";
  uint32_t random = 7;
  while (text.size() < 4000) {
    random = random * 1664525 + 1013904223;
    const bool is_new = random >> 30 == 0;
    text += is_new ? static_cast<char>('a' + (random >> 16) % 6) : text[text.size() - back];
  }
  return text;
}

/// One layer each of width 32, 340 tokens, 60 updates of 300 tokens, f32.
inline train::TrainConfig small_config() {
  train::TrainConfig c;
  c.stack.set("vocab_size", 340);
  c.stack.set("d_model", 32);
  for (const char* side : {"encoder", "decoder"}) {
    c.stack.set(side + std::string("_layers"), 1);
    c.stack.set(side + std::string("_ffn_dim"), 64);
    c.stack.set(side + std::string("_attention_heads"), 2);
  }
  set_from_string(c, "batch_tokens", "300");
  set_from_string(c, "max_tokens", "40");
  c.learning_rate = 0.003;
  c.warmup_updates = 20;
  c.max_updates = 60;
  c.validate_every = 20;
  c.checkpoint_every = 8;
  c.log_every = 7;
  c.precision = "f32";
  return c;
}

/// 20 updates of 8 samples, f32, that are validated, saved and logged on the way.
inline void make_short(train::TrainConfig& c) {
  set_from_string(c, "batch_size", "8");
  c.learning_rate = 0.01;
  c.schedule = "constant";
  c.warmup_updates = 5;
  c.max_updates = 20;
  c.validate_every = 10;
  c.checkpoint_every = 6;
  c.log_every = 5;
  c.precision = "f32";
}

/// The flags that give `config`, for the command line.
inline std::vector<std::string> flags_of(const train::TrainConfig& config) {
  std::vector<std::string> flags;
  for (const FieldDifference& d : diff_fields(config, train::TrainConfig())) {
    flags.push_back(flag_name(d.key));
    flags.push_back(d.first);
  }
  return flags;
}

/// Every file below a folder: its bytes, and when it was written.
struct FileState {
  std::string bytes;
  std::filesystem::file_time_type written;
  bool operator==(const FileState&) const = default;
};
inline std::map<std::string, FileState> files_below(const std::filesystem::path& folder) {
  std::map<std::string, FileState> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    files[entry.path().lexically_relative(folder).string()] = {read_file(entry.path()),
                                                               entry.last_write_time()};
  }
  return files;
}

/// The weights of RUN/best and RUN/last.
inline std::pair<std::string, std::string> model_bytes(const std::filesystem::path& run) {
  return {read_file(run / "best" / "model.safetensors"),
          read_file(run / "last" / "model.safetensors")};
}

}  // namespace heddle::testing
