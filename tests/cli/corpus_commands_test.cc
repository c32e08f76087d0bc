// heddle demo, phrasebook, shapes and tokenizer leave alone what they did not make.
#include <gtest/gtest.h>

#include "heddle/base/files/folder_claim.h"
#include "tests/cli/train_runs.h"

namespace heddle::testing {
namespace {

TEST(DemoCommand, run_of_somebody_else_is_refused_and_untouched) {
  const TempDir folder;
  write_file(folder / "run" / "train.json", to_json(small_config()).dump());
  write_file(folder / "run" / "best" / "model.safetensors", "weeks of work");
  const auto before = files_below(folder / "run");
  const CliResult result = run_heddle({"demo", "--out", (folder / "run").string()});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_NE(result.err.find("holds another training run"), std::string::npos) << result.err;
  EXPECT_NE(result.err.find("--out"), std::string::npos) << result.err;
  EXPECT_TRUE(before == files_below(folder / "run"));
}

TEST(PhrasebookCommand, text_of_somebody_else_is_replaced_only_when_asked) {
  const TempDir folder;
  const std::vector<std::string> words = {
      "phrasebook", "--pairs", "200", "--held-out", "5", "--out", (folder / "data").string()};
  for (const char* name : {"train.en", "test.de"}) {
    write_file(folder / "data" / name, "my own\n");
    const CliResult refused = run_heddle(words);
    EXPECT_EQ(refused.exit_code, 2);
    EXPECT_NE(refused.err.find(name), std::string::npos) << refused.err;
    EXPECT_NE(refused.err.find("--overwrite"), std::string::npos) << refused.err;
    EXPECT_EQ(read_file(folder / "data" / name), "my own\n");
    EXPECT_EQ(files_below(folder / "data").size(), 1u);
    std::filesystem::remove_all(folder / "data");
  }
  write_file(folder / "data" / "train.en", "my own\n");
  write_file(folder / "data" / "notes", "my own\n");
  std::vector<std::string> asked = words;
  asked.emplace_back("--overwrite");
  EXPECT_EQ(run_heddle(asked).exit_code, 0);
  EXPECT_NE(read_file(folder / "data" / "train.en"), "my own\n");
  EXPECT_EQ(read_file(folder / "data" / "notes"), "my own\n");
  EXPECT_EQ(files_below(folder / "data").size(), 7u);
}

TEST(PhrasebookCommand, more_pairs_held_out_than_there_are_is_said) {
  const TempDir folder;
  for (const char* held_out : {"150", "9223372036854775807"}) {
    const CliResult result = run_heddle({"phrasebook", "--pairs", "300", "--held-out", held_out,
                                         "--out", (folder / "data").string()});
    EXPECT_EQ(result.exit_code, 2) << result.err;
    EXPECT_NE(result.err.find("none for training"), std::string::npos) << result.err;
  }
}

// The files of two runs would be mixed.
TEST(PhrasebookCommand, is_refused_where_another_writes) {
  const TempDir folder;
  const std::string out = (folder / "data").string();
  const FolderClaim claim(out);
  for (const char* command : {"phrasebook", "shapes"}) {
    const CliResult result = run_heddle({command, "--out", out});
    EXPECT_EQ(result.exit_code, 2) << result.err;
    EXPECT_NE(result.err.find("another heddle is writing here"), std::string::npos) << result.err;
  }
}

TEST(ShapesCommand, images_are_written_and_replaced_only_when_asked) {
  const TempDir folder;
  std::vector<std::string> words = {"shapes",     "--count", "3",
                                    "--held-out", "2",       "--size",
                                    "32",         "--out",   (folder / "data").string()};
  ASSERT_EQ(run_heddle(words).exit_code, 0);
  EXPECT_EQ(files_below(folder / "data").size(), 7u);  // five images, two files of boxes
  const CliResult refused = run_heddle(words);
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_NE(refused.err.find("--overwrite"), std::string::npos) << refused.err;
  const std::string first = read_file(folder / "data" / "train" / "000001.png");
  words.insert(words.end(), {"--overwrite", "--seed", "2", "--scene", "cells", "--size", "64"});
  words.erase(words.begin() + 5, words.begin() + 7);
  ASSERT_EQ(run_heddle(words).exit_code, 0);
  EXPECT_NE(read_file(folder / "data" / "train" / "000001.png"), first);
  words.insert(words.end(), {"--task", "classification"});
  EXPECT_EQ(run_heddle(words).exit_code, 2);
  const CliResult few = run_heddle(
      {"shapes", "--task", "classification", "--count", "5", "-o", (folder / "few").string()});
  EXPECT_EQ(few.exit_code, 2);
  EXPECT_NE(few.err.find("give 6 or more"), std::string::npos) << few.err;
  EXPECT_FALSE(std::filesystem::exists(folder / "few"));
  const CliResult small =
      run_heddle({"shapes", "--size", "8", "--overwrite", "--out", (folder / "data").string()});
  EXPECT_EQ(small.exit_code, 2);
  EXPECT_NE(small.err.find("8 x 8 pixels"), std::string::npos) << small.err;
  EXPECT_EQ(files_below(folder / "data").size(), 7u);
}

TEST(ShapesCommand, overwrite_removes_nothing_that_shapes_did_not_write) {
  const TempDir folder;
  const std::filesystem::path data = folder / "data";
  std::vector<std::string> words = {"shapes", "--count",        "6",     "--held-out", "2",
                                    "--task", "classification", "--out", data.string()};
  ASSERT_EQ(run_heddle(words).exit_code, 0);
  write_file(data / "notes", "my own\n");
  words.emplace_back("--overwrite");
  for (const char* name : {"val/mine.png", "train/star/notes.txt", "train/00001.png"}) {
    write_file(data / name, "my own\n");
    const size_t before = files_below(data).size();
    const CliResult refused = run_heddle(words);
    EXPECT_EQ(refused.exit_code, 2);
    EXPECT_NE(refused.err.find((data / name).string()), std::string::npos) << refused.err;
    EXPECT_EQ(files_below(data).size(), before) << name;
    std::filesystem::remove(data / name);
  }
  ASSERT_EQ(run_heddle(words).exit_code, 0);
  EXPECT_EQ(files_below(data).size(), 9u);
  // With boxes the folders of the classes are gone.
  const CliResult boxes = run_heddle({"shapes", "--count", "3", "--held-out", "0", "--size", "32",
                                      "--overwrite", "--out", data.string()});
  ASSERT_EQ(boxes.exit_code, 0) << boxes.err;
  EXPECT_EQ(files_below(data).size(), 5u);
  EXPECT_FALSE(std::filesystem::exists(data / "train" / "star"));
  EXPECT_FALSE(std::filesystem::exists(data / "val"));
  EXPECT_EQ(read_file(data / "notes"), "my own\n");
}

std::vector<std::string> caption_words(const std::filesystem::path& out) {
  return {"shapes", "--task", "captioning", "--count", "4",      "--held-out", "2",
          "--out",  out,      "--unseen",   "3",       "--size", "48"};
}

TEST(ShapesCommand, captions_have_four_parts_and_are_replaced_only_when_asked) {
  const TempDir folder;
  const std::filesystem::path data = folder / "data";
  std::vector<std::string> words = caption_words(data);
  const CliResult first = run_heddle(words);
  ASSERT_EQ(first.exit_code, 0) << first.err;
  EXPECT_NE(first.err.find("4 images to train on, 2 each"), std::string::npos) << first.err;
  EXPECT_EQ(files_below(data).size(), 15u);  // 4 + 2 + 2 + 3 images, a file of captions each
  const std::string lines = read_file(data / "unseen.jsonl");
  EXPECT_EQ(std::ranges::count(lines, '\n'), 3);
  EXPECT_EQ(lines.find("{\"file_name\": \"unseen/000001.png\", \"captions\": [\""), 0u) << lines;
  const CliResult refused = run_heddle(words);
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_NE(refused.err.find("--overwrite"), std::string::npos) << refused.err;
  words.insert(words.end(), {"--overwrite", "--seed", "2", "--captions", "1", "--threads", "1"});
  ASSERT_EQ(run_heddle(words).exit_code, 0);
  EXPECT_NE(read_file(data / "unseen.jsonl"), lines);
  const std::string line = read_file(data / "unseen.jsonl");
  EXPECT_EQ(Json::parse(line.substr(0, line.find('\n'))).at("captions").size(), 1u);
  write_file(data / "test" / "mine.png", "my own\n");
  const CliResult mine = run_heddle(words);
  EXPECT_EQ(mine.exit_code, 2);
  EXPECT_NE(mine.err.find("mine.png"), std::string::npos) << mine.err;
  std::filesystem::remove(data / "test" / "mine.png");
  // With boxes the parts for captions are gone.
  ASSERT_EQ(run_heddle({"shapes", "--count", "3", "--held-out", "0", "--size", "32", "--overwrite",
                        "--out", data.string()})
                .exit_code,
            0);
  EXPECT_EQ(files_below(data).size(), 4u);
}

TEST(ShapesCommand, flags_of_captions_that_do_not_fit_are_refused) {
  const TempDir folder;
  const std::string out = (folder / "data").string();
  const auto refused = [&](std::vector<std::string> words, const char* part) {
    words.insert(words.begin(), {"shapes", "--out", out});
    const CliResult result = run_heddle(words);
    EXPECT_EQ(result.exit_code, 2) << result.err;
    EXPECT_NE(result.err.find(part), std::string::npos) << result.err;
    EXPECT_FALSE(std::filesystem::exists(out));
  };
  refused({"--unseen", "3"}, "--task captioning");
  refused({"--captions", "3"}, "--task captioning");
  refused({"--task", "captioning", "--scene", "cells"}, "shapes or collages");
  refused({"--scene", "collages", "--photos", out}, "--task captioning");
  refused({"--task", "captioning", "--scene", "collages"}, "--photos");
  refused({"--photos", out}, "--scene collages");
  refused({"--task", "captioning", "--most-objects", "20"}, "20 objects at most");
  refused({"--task", "captioning", "--size", "20"}, "20 x 20 pixels");
  const CliResult missing = run_heddle({"shapes", "--out", out, "--task", "captioning", "--scene",
                                        "collages", "--photos", (folder / "none").string()});
  EXPECT_EQ(missing.exit_code, 3) << missing.err;
}

TEST(TokenizerTrainCommand, vocabulary_never_replaces_its_own_text) {
  const TempDir folder;
  const std::string text = (folder / "words.txt").string();
  write_file(text, "one\ntwo\nthree\n");
  std::filesystem::create_symlink(text, folder / "link");
  for (const char* command : {"train", "words"}) {
    const CliResult result =
        run_heddle({"tokenizer", command, "--input", text, "--output", (folder / "link").string()});
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_NE(result.err.find("would be overwritten"), std::string::npos) << result.err;
    EXPECT_EQ(read_file(text), "one\ntwo\nthree\n");
  }
}

}  // namespace
}  // namespace heddle::testing
