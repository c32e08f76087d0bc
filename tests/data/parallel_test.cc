// Parallel text: files, bad input, what is left out, and the token cache.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "heddle/base/error.h"
#include "heddle/base/files/files.h"
#include "heddle/base/parallel.h"
#include "heddle/data/parallel_text.h"
#include "heddle/data/token_cache.h"
#include "heddle/text/training/tokenizer_trainer.h"
#include "tests/base/temporary.h"

namespace heddle {
namespace {

/// A word's id is its length + 3, or 1 (unknown) for "?".
TextEncoder word_encoder(int64_t vocab_size = 1000, const std::string& fingerprint = "words") {
  const auto encode = [](std::string_view text) {
    std::istringstream in{std::string(text)};
    std::vector<int32_t> ids;
    for (std::string word; in >> word;) {
      ids.push_back(word == "?" ? 1 : static_cast<int32_t>(word.size()) + 3);
    }
    return ids;
  };
  return {.encode = encode, .fingerprint = fingerprint, .vocab_size = vocab_size};
}

struct Fixture {
  TemporaryFolder folder;
  std::vector<std::string> said;
  CorpusOptions options;

  Fixture(const std::string& source, const std::string& target) {
    folder.write("train.en", source);
    folder.write("train.de", target);
    options = {.files = find_parallel(folder.path(), "train", "en", "de"),
               .cache_dir = folder / "run/cache",
               .name = "train.en-de"};
  }
  TokenizedCorpus open(const TextEncoder& encoder = word_encoder()) {
    said.clear();
    return TokenizedCorpus::open_or_build(options, encoder,
                                          [&](std::string_view text) { said.emplace_back(text); });
  }
  /// What was said holds the words.
  bool heard(const std::string& words) const {
    return std::any_of(said.begin(), said.end(), [&](const std::string& line) {
      return line.find(words) != std::string::npos;
    });
  }
};

std::string repeat(const std::string& text, int64_t times) {
  std::string out;
  for (int64_t i = 0; i < times; ++i) out += text;
  return out;
}

TEST(FindParallel, plain_files_go_before_compressed_ones) {
  TemporaryFolder folder;
  folder.write("val.en", "");
  folder.write("val.en.gz", "");
  folder.write("val.de.gz", "");
  const ParallelFiles files = find_parallel(folder.path(), "val", "en", "de");
  EXPECT_EQ(files.source, folder / "val.en");
  EXPECT_EQ(files.target, folder / "val.de.gz");
}

TEST(FindParallel, missing_side_is_a_data_error_with_both_names) {
  TemporaryFolder folder;
  folder.write("val.en", "");
  expect_error(ErrorKind::data, {folder / "val.fr nor ", folder / "val.fr.gz", "'fr'"},
               [&] { find_parallel(folder.path(), "val", "en", "fr"); });
  expect_error(ErrorKind::data, {"/none", "val.en"},
               [&] { find_parallel(folder / "none", "val", "en", "fr"); });
}

TEST(ParallelReader, differing_line_counts_are_a_data_error_with_both_counts) {
  Fixture longer_source("a\nb\nc\nd\n", "a\nb\n");
  expect_error(ErrorKind::data, {"train.en has 4 lines", "train.de has 2"},
               [&] { longer_source.open(); });
  Fixture longer_target("a\n", "a\nb\nc");
  expect_error(ErrorKind::data, {"train.en has 1 lines", "train.de has 3"},
               [&] { longer_target.open(); });
  EXPECT_TRUE(list_directory(longer_target.folder / "run/cache").empty());
}

TEST(ParallelReader, text_that_is_not_utf8_is_a_data_error_with_file_and_line) {
  Fixture fixture("a\nb\nc\n", "a\nb\nf\xFCnf\n");
  expect_error(ErrorKind::data, {"train.de: line 3", "0xfc", "column 2"}, [&] { fixture.open(); });
}

TEST(ParallelReader, blank_means_any_white_space) {
  EXPECT_TRUE(is_blank(""));
  EXPECT_TRUE(is_blank(" \t\r\u00A0\u3000\u2009\uFEFF"));
  EXPECT_FALSE(is_blank("\u00A0."));
  EXPECT_FALSE(is_blank("\u200D"));
}

TEST(TokenizedCorpus, blank_and_long_pairs_are_left_out_and_counted) {
  Fixture fixture("one two\n\nx ?\n  \na b c d\na\n", "eins zwei\nleer\n? ? y\nz\nw\na b c d e\n");
  fixture.options.max_source_tokens = 4;
  fixture.options.max_target_tokens = 5;
  const TokenizedCorpus corpus = fixture.open();
  CorpusReport expected{.lines = 6, .pairs = 2, .empty = 2, .too_long = 2};
  expected.first_empty = 2, expected.first_too_long = 5;
  expected.source_tokens = 4, expected.target_tokens = 5;
  expected.unknown_source = 1, expected.unknown_target = 2;
  EXPECT_EQ(corpus.report(), expected) << corpus.report().str();
  EXPECT_EQ(corpus.report().str(),
            "2 pairs of 6 lines; left out: 2 empty (the first at line 2), 2 too long (the first at "
            "line 5); tokens: 4 source, 5 target; unknown tokens: 1 source (25.00 %), 2 target "
            "(40.00 %)");
  EXPECT_TRUE(fixture.heard(corpus.report().str()));
  ASSERT_EQ(corpus.size(), 2);
  EXPECT_EQ(corpus.source(0).ids(), (std::vector<int32_t>{6, 6}));
  EXPECT_EQ(corpus.target(0).ids(), (std::vector<int32_t>{7, 7}));
  EXPECT_EQ(corpus.source(1).ids(), (std::vector<int32_t>{4, 1}));
  EXPECT_EQ(corpus.target(1).ids(), (std::vector<int32_t>{1, 1, 4}));
  EXPECT_EQ(corpus.target_lengths()[1], 3);
}

TEST(TokenizedCorpus, limit_counts_the_end_token) {
  Fixture fixture("a b c\n", "a\n");
  fixture.options.max_source_tokens = 4;
  EXPECT_EQ(fixture.open().size(), 1);
  fixture.options.max_source_tokens = 3;
  expect_error(ErrorKind::data, {"no pair is left", "1 too long"}, [&] { fixture.open(); });
  fixture.options.max_source_tokens = 1;
  expect_error(ErrorKind::usage, {"limit of 1"}, [&] { fixture.open(); });
}

TEST(TokenizedCorpus, line_of_100000_words_and_of_two_megabytes_are_just_too_long) {
  Fixture fixture("a\n" + repeat("word ", 100'000) + "\nb\n" + std::string(2 << 20, 'x') + "\n",
                  "a\nb\nc\nd\n");
  const TokenizedCorpus corpus = fixture.open();
  EXPECT_EQ(corpus.size(), 2);
  EXPECT_EQ(corpus.report().too_long, 2);
}

TEST(TokenizedCorpus, empty_files_are_a_data_error) {
  Fixture fixture("", "");
  expect_error(ErrorKind::data, {"train.en", "no pair is left", "0 lines"},
               [&] { fixture.open(); });
}

TEST(TokenizedCorpus, ids_are_wide_where_the_vocabulary_is) {
  Fixture fixture(std::string(65'600, 'a') + "\n", "b\n");
  TextEncoder wide = word_encoder(65'604);
  EXPECT_EQ(fixture.open(wide).source(0)[0], 65'603);
  wide.vocab_size = 65'603;
  expect_error(ErrorKind::internal, {"id 65603"}, [&] { fixture.open(wide); });
  Fixture narrow(std::string(65'532, 'a') + "\n", "b\n");
  EXPECT_EQ(narrow.open(word_encoder(65'536)).source(0)[0], 65'535);
}

TEST(TokenizedCorpus, unchanged_cache_is_used_again) {
  Fixture fixture("a b\nc\n", "a\nb\n");
  const TokenizedCorpus first = fixture.open();
  EXPECT_TRUE(fixture.heard("tokenised in"));
  TextEncoder silent = word_encoder();
  silent.encode = [](std::string_view) -> std::vector<int32_t> { throw "not to be called"; };
  const TokenizedCorpus second = fixture.open(silent);
  EXPECT_FALSE(fixture.heard("tokenised in"));
  EXPECT_TRUE(fixture.heard("2 pairs of 2 lines"));
  EXPECT_EQ(first.path(), second.path());
  EXPECT_EQ(second.source(0).ids(), first.source(0).ids());
  EXPECT_EQ(second.report(), first.report());
}

TEST(TokenizedCorpus, change_of_text_tokenizer_or_limit_makes_another_cache) {
  Fixture fixture("a b\nc\n", "a\nb\n");
  std::vector<std::string> keys = {fixture.open().key()};
  keys.push_back(fixture.open(word_encoder(1000, "words, lower-cased")).key());
  keys.push_back(fixture.open(word_encoder(1001)).key());
  fixture.options.max_target_tokens = 7;
  keys.push_back(fixture.open().key());
  fixture.folder.write("train.de", "a\nc\n");
  keys.push_back(fixture.open().key());
  EXPECT_TRUE(fixture.heard("tokenised in"));
  fixture.folder.write("train.en", "a\nc\n");
  keys.push_back(fixture.open().key());
  EXPECT_EQ(fixture.open().source(0).size(), 1);
  std::sort(keys.begin(), keys.end());
  EXPECT_EQ(std::unique(keys.begin(), keys.end()), keys.end());
}

TEST(TokenizedCorpus, cache_cut_anywhere_is_made_anew) {
  Fixture fixture("a bb\nccc\n", "a\nb dd\n");
  const std::string path = fixture.open().path();
  const std::string whole = read_file(path);
  for (size_t size = 0; size < whole.size(); ++size) {
    fixture.folder.write("run/cache/" + path.substr(path.rfind('/') + 1), whole.substr(0, size));
    EXPECT_EQ(fixture.open().source(0).ids(), (std::vector<int32_t>{4, 5}));
    EXPECT_TRUE(fixture.heard("not usable")) << size;
    ASSERT_EQ(read_file(path), whole);
  }
}

TEST(TokenizedCorpus, cache_with_any_byte_altered_is_made_anew) {
  Fixture fixture("a bb\nccc\n", "a\nb dd\n");
  const std::string path = fixture.open().path();
  const std::string whole = read_file(path);
  for (size_t at = 0; at < whole.size(); ++at) {
    std::string altered = whole;
    altered[at] = static_cast<char>(altered[at] ^ 0x80);
    fixture.folder.write("run/cache/" + path.substr(path.rfind('/') + 1), altered);
    fixture.open();
    EXPECT_TRUE(fixture.heard("not usable")) << at;
    ASSERT_EQ(read_file(path), whole);
  }
}

TEST(TokenizedCorpus, any_number_of_threads_gives_the_same_bytes) {
  std::string source, target;
  for (int64_t i = 0; i < 40'000; ++i) {  // several blocks
    source +=
        i % 97 == 0
            ? "\n"
            : repeat(std::string(static_cast<size_t>(i % 9 + 1), 'a') + " ", i % 13 + 1) + "\n";
    target += repeat(i % 5 == 0 ? "? " : "bbb ", i % 11 + 1) + "\n";
  }
  Fixture fixture(source, target);
  const int threads = num_threads();
  set_num_threads(1);
  const std::string one = read_file(fixture.open().path());
  set_num_threads(4);
  fixture.options.cache_dir = fixture.folder / "other";
  const TokenizedCorpus corpus = fixture.open();
  set_num_threads(threads);
  EXPECT_TRUE(read_file(corpus.path()) == one);
  EXPECT_EQ(corpus.report().empty, (40'000 + 96) / 97);
  EXPECT_EQ(corpus.size(), 40'000 - corpus.report().empty);
}

TEST(TokenizedCorpus, ids_of_a_trained_tokenizer_decode_to_the_text) {
  const std::vector<std::string> source = {"the house is big", "a small house", "?"};
  const std::vector<std::string> target = {"das Haus ist gro\u00DF", "ein kleines Haus", "\u20AC"};
  Fixture fixture(source[0] + "\n" + source[1] + "\n" + source[2] + "\n",
                  target[0] + "\r\n" + target[1] + "\n" + target[2]);
  const Tokenizer tokenizer = train_tokenizer(source, {.vocab_size = 285});
  const TokenizedCorpus corpus = fixture.open(text_encoder(tokenizer));
  ASSERT_EQ(corpus.size(), 3);
  for (int64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(tokenizer.decode(corpus.source(i).ids()), source[static_cast<size_t>(i)]);
    EXPECT_EQ(tokenizer.decode(corpus.target(i).ids()), target[static_cast<size_t>(i)]);
  }
  EXPECT_EQ(corpus.report().unknown_target, 0);  // bytes stand in for what it has not seen
}

TEST(TokenizedCorpus, leftovers_of_a_killed_build_are_removed_once_old) {
  Fixture fixture("a\n", "b\n");
  make_directories(fixture.options.cache_dir);
  const std::string old =
      fixture.folder.write("run/cache/train.en-de-00.tokens.tmp-0000000000000007", "x");
  const std::string young =
      fixture.folder.write("run/cache/train.en-de-00.tokens.tmp-0000000000000008", "x");
  const std::string other =
      fixture.folder.write("run/cache/val.en-de-00.tokens.tmp-0000000000000007", "x");
  const auto an_hour_ago = std::filesystem::file_time_type::clock::now() - std::chrono::hours(1);
  std::filesystem::last_write_time(old, an_hour_ago);
  std::filesystem::last_write_time(other, an_hour_ago);
  fixture.open();
  EXPECT_FALSE(path_exists(old));
  EXPECT_TRUE(path_exists(young));  // somebody may be writing it
  EXPECT_TRUE(path_exists(other));
}

TEST(TokenizedCorpus, cache_folder_that_cannot_be_made_is_an_error) {
  Fixture fixture("a\n", "b\n");
  fixture.options.cache_dir = fixture.folder.write("file", "") + "/cache";
  EXPECT_THROW(fixture.open(), Error);
}

}  // namespace
}  // namespace heddle
