// Running text: files of each kind, how they are split, and what is refused.
#include "heddle/data/documents.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "heddle/data/batches.h"
#include "tests/base/temporary.h"

namespace heddle {
namespace {

TEST(Documents, plain_file_is_one_document_whose_end_is_held_out_by_characters) {
  const TemporaryFolder folder;
  const std::string path = folder.write("a.txt", "ää\r\nbcdefg\n");  // 10 characters as read
  const DocumentSplit split = split_documents({.train = path, .val_share = 0.3});
  EXPECT_EQ(split.train, std::vector<std::string>{"ää\nbcde"});
  EXPECT_EQ(split.val, std::vector<std::string>{"fg\n"});
}

TEST(Documents, json_lines_give_a_document_each_and_the_last_are_held_out) {
  const TemporaryFolder folder;
  const std::string path = folder.write(
      "a.jsonl",
      "{\"body\": \"one\"}\n\n{\"n\": 2, \"body\": \"two\\n\"}\n{\"body\": \"three\"}\n");
  const DocumentSplit split =
      split_documents({.train = path, .val_share = 0.25, .text_key = "body"});
  EXPECT_EQ(split.train, (std::vector<std::string>{"one", "two\n"}));
  EXPECT_EQ(split.val, std::vector<std::string>{"three"});
}

// 8 TB of which the disk holds nothing.
TEST(Documents, text_that_is_larger_than_memory_is_refused_before_it_is_read) {
  const TemporaryFolder folder;
  const std::string path = folder.write("a.txt", "text\n");
  std::filesystem::resize_file(path, int64_t{1} << 43);
  try {
    static_cast<void>(split_documents({.train = path}));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::system);
    EXPECT_NE(std::string(error.what()).find("8796.1 GB of running text"), std::string::npos)
        << error.what();
  }
}

TEST(Documents, folder_gives_its_train_and_val_files_or_the_ends_of_all) {
  const TemporaryFolder folder;
  folder.write("b.txt", "0123456789");
  folder.write("a.txt", "abcdefghij");
  folder.write("notes.bin", "\xff");
  DocumentSplit split = split_documents({.train = folder.path()});
  EXPECT_EQ(split.train, (std::vector<std::string>{"abcdefghi", "012345678"}));
  EXPECT_EQ(split.val, (std::vector<std::string>{"j", "9"}));
  folder.write("train.txt", "training");
  folder.write("validation.txt", "held out");
  split = split_documents({.train = folder.path()});
  EXPECT_EQ(split.train, std::vector<std::string>{"training"});
  EXPECT_EQ(split.val, std::vector<std::string>{"held out"});
}

TEST(Documents, folder_of_token_files_gives_its_text_and_two_files_of_a_split_are_refused) {
  const TemporaryFolder folder;
  folder.write("train.bin", "\xff");
  folder.write("val.bin", "\xff");
  folder.write("input.txt", "0123456789");
  EXPECT_EQ(split_documents({.train = folder.path()}).train, std::vector<std::string>{"012345678"});
  folder.write("train.txt", "training");
  folder.write("dev.conll", "held out");
  const TextFiles files = find_text_files({.train = folder.path()});
  EXPECT_EQ(files.train, std::vector<std::string>{folder / "train.txt"});
  EXPECT_EQ(files.val, folder / "dev.conll");
  folder.write("train.jsonl", "{\"text\": \"a\"}");
  expect_error(ErrorKind::data, {folder.path(), "train.jsonl, train.txt", "'train'"},
               [&] { find_text_files({.train = folder.path()}); });
}

TEST(Documents, millions_of_lines_that_end_as_windows_ends_them_are_read) {
  std::string lines = "a\r";
  for (int i = 0; i < 2'000'000; ++i) lines += "\r\n";
  const TemporaryFolder folder;
  const std::string path = folder.write("a.txt", lines);
  EXPECT_EQ(read_documents(path, "text"), std::vector{"a\r" + std::string(2'000'000, '\n')});
}

TEST(Documents, what_cannot_be_read_is_a_data_error_with_its_place) {
  const TemporaryFolder folder;
  const auto refused = [&](const std::string& name, const std::string& content,
                           const std::vector<std::string>& words) {
    const std::string path = folder.write(name, content);
    expect_error(ErrorKind::data, words, [&] { split_documents({.train = path}); });
  };
  refused("empty.txt", "", {"empty.txt", "no text"});
  refused("latin.txt", "one\nM\xfcller\n", {"latin.txt", "line 2", "0xfc", "column 2", "iconv"});
  refused("cut.jsonl", "{\"text\": \"a\"}\n{\"text\": ", {"cut.jsonl: line 2"});
  refused("other.jsonl", "{\"body\": \"a\"}\n", {"line 1", "text"});
  refused("list.jsonl", "{\"text\": [3]}\n", {"line 1", "string"});
  refused("short.txt", "a", {"short.txt", "no text is left to train on"});
  expect_error(ErrorKind::data, {"nowhere.txt"}, [] { split_documents({.train = "nowhere.txt"}); });
  expect_error(ErrorKind::data, {"neither train.*"}, [&] {
    const TemporaryFolder empty;
    split_documents({.train = empty.path()});
  });
}

TEST(TextBlocks, random_ones_lie_in_the_text_and_differ_by_epoch_seed_and_sample) {
  BlockPlan plan(100, {.block = 10, .batch = 4, .seed = 3});
  EXPECT_EQ(plan.batches(), 3);  // 9 samples that cover the text
  EXPECT_EQ(plan.batch(2), (std::vector<int64_t>{8, 9, 10, 11}));
  std::vector<int64_t> seen(90, 0);
  for (int64_t epoch = 0; epoch < 500; ++epoch) {
    for (int64_t i = 0; i < 12; ++i) {
      const int64_t begin = plan.begin(epoch, i);
      ASSERT_GE(begin, 0);
      ASSERT_LT(begin, 90);  // the token behind the last of a block is in the text
      ++seen[static_cast<size_t>(begin)];
    }
  }
  for (const int64_t count : seen) EXPECT_NEAR(count, 6000 / 90, 5 * 8.2);  // 5 sigma
  BlockPlan again(100, {.block = 10, .batch = 4, .seed = 3});
  EXPECT_EQ(again.begin(7, 5), plan.begin(7, 5));
}

TEST(TextBlocks, consecutive_ones_cover_the_text_once_an_epoch) {
  BlockPlan plan(47, {.block = 10, .batch = 3, .order = BlockOrder::consecutive});
  EXPECT_EQ(plan.batches(), 2);
  EXPECT_EQ(plan.batch(1), std::vector<int64_t>{3});
  std::vector<std::vector<int64_t>> orders;
  for (const int64_t epoch : {0, 1, 2, 3}) {
    std::vector<int64_t> begins;
    for (int64_t i = 0; i < 4; ++i) begins.push_back(plan.begin(epoch, i));
    orders.push_back(begins);
    std::sort(begins.begin(), begins.end());
    EXPECT_LE(begins[0], 6);
    for (int64_t i = 1; i < 4; ++i) EXPECT_EQ(begins[i], begins[0] + 10 * i);
  }
  EXPECT_NE(orders[0], orders[1]);
  EXPECT_EQ(plan.begin(2, 1), orders[2][1]);  // another epoch between changes nothing
}

TEST(TextBlocks, streams_go_on_from_batch_to_batch) {
  BlockPlan plan(100, {.block = 4, .batch = 3, .order = BlockOrder::streams});
  EXPECT_EQ(plan.batches(), 8);  // 24 sequences of 4 tokens, of which each predicts the next
  std::vector<int64_t> firsts;
  for (const int64_t epoch : {0, 1, 2, 3}) {
    std::vector<int64_t> begins;
    for (int64_t i = 0; i < 8; ++i) {
      ASSERT_EQ(plan.batch(i), (std::vector<int64_t>{3 * i, 3 * i + 1, 3 * i + 2}));
      for (const int64_t sample : plan.batch(i)) begins.push_back(plan.begin(epoch, sample));
    }
    for (size_t i = 3; i < begins.size(); ++i) EXPECT_EQ(begins[i], begins[i - 3] + 4);
    firsts.push_back(begins[0]);
    std::sort(begins.begin(), begins.end());
    EXPECT_EQ(std::unique(begins.begin(), begins.end()), begins.end());
    EXPECT_GE(begins[0], 0);
    EXPECT_LE(begins.back() + 4, 99);  // the token behind the last is in the text
  }
  EXPECT_NE(firsts, std::vector<int64_t>(4, firsts[0]));  // other cuts each epoch
}

TEST(TextBlocks, text_shorter_than_a_sequence_is_a_data_error) {
  expect_error(ErrorKind::data, {"10 tokens", "11", "block_size"},
               [] { BlockPlan(10, {.block = 10}); });
  expect_error(ErrorKind::data, {"12 tokens", "3 streams", "13", "batch_size"},
               [] { BlockPlan(12, {.block = 4, .batch = 3, .order = BlockOrder::streams}); });
  expect_error(ErrorKind::usage, {"'stream'", "streams"}, [] { block_order("stream"); });
}

}  // namespace
}  // namespace heddle
