// Commands whose every change of the disk is killed, or fails, in turn; what must be left each
// time.
#pragma once

#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tests/base/temporary.h"
#include "tests/cli/image_runs.h"
#include "tests/cli/run_folder.h"
#include "tests/cli/train_runs.h"
#include "tests/support/faults.h"

namespace heddle::testing {

/// A command, run in a folder of its own, and what it must leave there.
struct FaultScenario {
  std::string name;
  std::vector<std::string> words;
  std::function<void(const std::filesystem::path&)> prepare;
  /// Brings a folder to its end after a fault, as a user would, and says how it got there: the key
  /// of a column of the table. Adds a failure if what is there is neither old nor new.
  std::function<std::string(const std::filesystem::path& whole, const std::filesystem::path& folder,
                            bool was_killed)>
      finish;
};

/// How often faults of a kind struck, and what came of them.
using FaultTally = std::map<std::string, int64_t>;

class FaultSweep {
 public:
  explicit FaultSweep(FaultScenario scenario) : scenario_(std::move(scenario)) {
    const std::filesystem::path prepared = folder_ / "prepared", whole = folder_ / "whole";
    std::filesystem::create_directories(prepared);
    scenario_.prepare(prepared);
    std::filesystem::copy(prepared, whole, std::filesystem::copy_options::recursive);
    changes_ = undisturbed(whole, false);
    std::filesystem::remove_all(whole);
    std::filesystem::copy(prepared, whole, std::filesystem::copy_options::recursive);
    calls_ = undisturbed(whole, true);
  }

  /// Every `stride`-th call of each kind of fault; prints a line of the table.
  void run(int64_t stride) {
    if (::testing::Test::HasFailure()) return;
    strike_all({.kind = Fault::Kind::kill}, "killed", changes_, stride);
    strike_all({.kind = Fault::Kind::fail, .error = ENOSPC}, "ENOSPC", changes_, stride);
    strike_all({.kind = Fault::Kind::fail, .error = EIO, .counts_reading = true}, "EIO", calls_,
               stride);
  }

 private:
  int64_t undisturbed(const std::filesystem::path& folder, bool counts_reading) {
    const FaultResult r =
        run_with_fault(scenario_.words, {.folder = folder, .counts_reading = counts_reading});
    EXPECT_EQ(r.run.exit_code, 0) << r.run.err;
    EXPECT_GT(r.calls, 0);
    return r.calls;
  }

  void strike_all(Fault fault, const std::string& kind, int64_t calls, int64_t stride) {
    FaultTally tally;
    for (fault.at = 1 + stride / 2; fault.at <= calls; fault.at += stride) {
      const std::filesystem::path folder = folder_ / "struck";
      std::filesystem::copy(folder_ / "prepared", folder, std::filesystem::copy_options::recursive);
      fault.folder = folder;
      const FaultResult r = run_with_fault(scenario_.words, fault);
      const ::testing::ScopedTrace trace(__FILE__, __LINE__,
                                         fmt::format("{}, {} at call {} of {}: {}", scenario_.name,
                                                     kind, fault.at, calls, r.call));
      ++tally[r.was_hit ? kind : "not reached"];
      if (fault.kind == Fault::Kind::fail) {
        ++tally[how_it_failed(r, fault.error)];
      } else if (r.was_hit) {
        EXPECT_EQ(r.run.exit_code, 137) << r.run.err;
      }
      ++tally[scenario_.finish(folder_ / "whole", folder, r.run.exit_code == 137)];
      std::filesystem::remove_all(folder);
      if (::testing::Test::HasFailure()) break;  // the others would say much the same
    }
    print(kind, tally);
    EXPECT_GT(tally[kind], 0) << scenario_.name;
  }

  static std::string how_it_failed(const FaultResult& r, int error) {
    if (r.run.exit_code == 0) return "went on";
    EXPECT_EQ(r.run.exit_code, 6) << r.run.err;
    EXPECT_NE(r.run.err.find(std::strerror(error)), std::string::npos) << r.run.err;
    return "exit 6";
  }

  void print(const std::string& kind, const FaultTally& tally) const {
    std::string line;
    for (const auto& [what, count] : tally) {
      if (what != kind) line += fmt::format("; {} {}", count, what);
    }
    const auto struck = tally.find(kind);
    fmt::print("[ FAULTS   ] {}: {} {}{}\n", scenario_.name,
               struck == tally.end() ? 0 : struck->second, kind, line);
  }

  TemporaryFolder folder_;
  FaultScenario scenario_;
  int64_t changes_ = 0, calls_ = 0;  // without and with opening to read
};

inline CliResult run_in(const std::filesystem::path& folder,
                        const std::vector<std::string>& words) {
  CliOptions options;
  options.folder = folder;
  return run_heddle(words, options);
}

/// Except those of the report, which is written when the run has ended and nothing is left to do.
inline void expect_no_temporaries(const std::filesystem::path& folder) {
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    EXPECT_TRUE(name.find(".tmp-") == name.npos || name.starts_with("report.html")) << name;
  }
}

/// The log of a run, without the folder that the run lies in.
inline std::vector<std::string> log_without_places(const std::filesystem::path& run) {
  std::vector<std::string> lines = log_without_times(run);
  const std::string folder = std::filesystem::canonical(run.parent_path()).string();
  for (std::string& line : lines) {
    for (size_t at = 0; (at = line.find(folder)) != line.npos;) line.erase(at, folder.size());
  }
  return lines;
}

/// True if the runs ended in the same bits.
inline bool are_same_runs(const std::filesystem::path& a, const std::filesystem::path& b) {
  return model_bytes(a) == model_bytes(b) && log_without_places(a) == log_without_places(b);
}

/// A GPT-2 of 8 dimensions over characters: its tokenizer is a folder of several files.
inline std::vector<std::string> text_words(const std::string& seed) {
  return words_of(
      "train --task causal_lm --model-type gpt2 --data text.txt --out run --tokenizer-type char "
      "--n-layer 1 --n-head 1 --n-embd 8 --n-positions 8 --batch-size 2 --learning-rate 0.01 "
      "--schedule constant --warmup-updates 1 --max-updates 4 --log-every 1 --validate-every 2 "
      "--checkpoint-every 1 --ema-decay 0.9 --average last --precision f32 --threads 1 --seed " +
      seed);
}

inline void write_text(const std::filesystem::path& folder) {
  std::string text;
  for (int i = 0; i < 8; ++i) text += "to be or not to be, that is the question.\n";
  write_file(folder / "text.txt", text);
}

inline std::string finish_run(const std::vector<std::string>& words,
                              const std::filesystem::path& whole,
                              const std::filesystem::path& folder) {
  const CliResult end = run_in(folder, words);
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_TRUE(end.exit_code == 0 && are_same_runs(whole / "run", folder / "run"));
  expect_no_temporaries(folder);
  return "then the same bits";
}

inline FaultScenario text_run() {
  return {"train causal_lm", text_words("1"), write_text,
          [](const auto& whole, const auto& folder, bool) {
            return finish_run(text_words("1"), whole, folder);
          }};
}

/// A vocabulary for each language: two tokenizer files, two caches.
inline FaultScenario translation_run() {
  const std::vector<std::string> words = words_of(
      "train --data data --out run --vocab-size 300 --decoder-vocab-size 300 --d-model 8 "
      "--share-encoder-decoder-embeddings false --encoder-layers 1 --decoder-layers 1 "
      "--encoder-ffn-dim 8 --decoder-ffn-dim 8 --encoder-attention-heads 1 "
      "--decoder-attention-heads 1 --batch-tokens 40 --max-tokens 40 --warmup-updates 1 "
      "--max-updates 2 --validate-every 1 --checkpoint-every 1 --log-every 1 --precision f32 "
      "--threads 1");
  return {"train translation", words,
          [](const auto& folder) {
            write_pairs(folder / "data");
            for (const char* name : {"val.en", "val.de"}) {  // translated at each validation
              const std::string text = read_file(folder / "data" / name);
              write_file(folder / "data" / name, text.substr(0, text.find('\n') + 1));
            }
          },
          [words](const auto& whole, const auto& folder, bool) {
            return finish_run(words, whole, folder);
          }};
}

/// A classifier of images with a teacher, whose answers are kept: two caches, and images of the
/// report.
inline std::vector<std::string> image_words(const std::string& more) {
  return words_of(
      "train --task image_classification --data data --hidden-size 8 --num-hidden-layers 1 "
      "--num-attention-heads 1 --intermediate-size 8 --patch-size 6 --batch-size 8 "
      "--warmup-updates 1 --schedule constant --random-crop 1 --max-updates 4 --log-every 1 "
      "--validate-every 2 --checkpoint-every 1 --ema-decay 0.9 --precision f32 --threads 1 " +
      more);
}

inline FaultScenario image_run() {
  const std::vector<std::string> words =
      image_words("--out run --model-type deit --teacher teacher --teacher-views 1");
  return {"train image_classification", words,
          [](const auto& folder) {
            std::filesystem::create_directory(folder / "data");
            write_quarters((folder / "data").string(), "train", 16);
            write_quarters((folder / "data").string(), "test", 4);
            EXPECT_EQ(run_in(folder, image_words("--out teacher")).exit_code, 0);
          },
          [words](const auto& whole, const auto& folder, bool) {
            return finish_run(words, whole, folder);
          }};
}

/// What stands there afterwards is the old run whole, or the new one going on to its end.
inline FaultScenario overwriting_run() {
  std::vector<std::string> words = text_words("2");
  words.emplace_back("--overwrite");
  return {"train --overwrite", words,
          [](const auto& folder) {
            write_text(folder);
            EXPECT_EQ(run_in(folder, text_words("1")).exit_code, 0);
            std::filesystem::copy(folder / "run", folder / "old",
                                  std::filesystem::copy_options::recursive);
          },
          [](const auto& whole, const auto& folder, bool) -> std::string {
            const bool has_model = run_in(folder, {"info", "run"}).exit_code == 0 ||
                                   run_in(folder, {"info", "run/replaced"}).exit_code == 0;
            EXPECT_TRUE(has_model);
            const CliResult end = run_in(folder, {"train", "--out", "run", "--threads", "1"});
            EXPECT_EQ(end.exit_code, 0) << end.err;
            expect_no_temporaries(folder);
            EXPECT_FALSE(std::filesystem::exists(folder / "run" / "replaced"));
            if (bytes_below(folder / "run") == bytes_below(folder / "old")) return "old run whole";
            EXPECT_TRUE(are_same_runs(whole / "run", folder / "run")) << end.err;
            return "then the new run's bits";
          }};
}

inline Bytes without_temporaries(Bytes bytes) {
  std::erase_if(bytes,
                [](const auto& file) { return file.first.find(".tmp-") != file.first.npos; });
  return bytes;
}

/// Old or new; a kill between the two leaves no model, and the same command makes it.
inline FaultScenario replacing_export() {
  const std::vector<std::string> words = words_of("export run -o out --dtype bf16 --overwrite");
  return {"export --overwrite", words,
          [](const auto& folder) {
            write_text(folder);
            EXPECT_EQ(run_in(folder, text_words("1")).exit_code, 0);
            EXPECT_EQ(run_in(folder, {"export", "run", "-o", "out"}).exit_code, 0);
            std::filesystem::copy(folder / "out", folder / "old",
                                  std::filesystem::copy_options::recursive);
          },
          [words](const auto& whole, const auto& folder, bool was_killed) -> std::string {
            const Bytes made = bytes_below(folder / "out");
            // Where the old files cannot be removed, that is said, and the next export does it.
            if (without_temporaries(made) == bytes_below(whole / "out")) return "new model whole";
            if (!was_killed) expect_no_temporaries(folder);
            if (without_temporaries(made) == bytes_below(folder / "old")) return "old model whole";
            EXPECT_TRUE(was_killed);
            EXPECT_FALSE(made.contains("config.json"));
            EXPECT_EQ(run_in(folder, words).exit_code, 0);
            EXPECT_TRUE(bytes_below(folder / "out") == bytes_below(whole / "out"));
            return "no model, made by the same command";
          }};
}

/// A vocabulary over an older one.
inline FaultScenario tokenizer_training() {
  const std::vector<std::string> words =
      words_of("tokenizer train --input data/train.en --output a.model --vocab-size 300");
  return {"tokenizer train", words,
          [](const auto& folder) {
            write_pairs(folder / "data");
            write_file(folder / "a.model", "old");
          },
          [](const auto& whole, const auto& folder, bool was_killed) -> std::string {
            if (!was_killed) expect_no_temporaries(folder);
            const std::string made = read_file(folder / "a.model");
            if (made == "old") return "old file whole";
            EXPECT_TRUE(made == read_file(whole / "a.model"));
            return "new file whole";
          }};
}

}  // namespace heddle::testing
