// Texts with labels out of each kind of file, what is refused, and the statistics of masks.
#include "heddle/data/labelled.h"

#include <gtest/gtest.h>

#include <numeric>

#include "heddle/data/batches.h"
#include "heddle/data/documents.h"
#include "heddle/data/masking.h"
#include "tests/base/temporary.h"

namespace heddle {
namespace {

TEST(Table, csv_has_quoted_fields_with_commas_quotes_and_line_ends) {
  const TemporaryFolder folder;
  const std::string path = folder.write(
      "a.csv", "text,label\r\n\"one, \"\"two\"\"\r\nthree\",x\r\n\r\nplain \"word\",y\n");
  const auto rows = read_columns(path, {"label", "text"});
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].cells, (std::vector<std::string>{"x", "one, \"two\"\nthree"}));
  EXPECT_EQ(rows[0].line, 2);
  EXPECT_EQ(rows[1].cells, (std::vector<std::string>{"y", "plain \"word\""}));
  EXPECT_EQ(rows[1].line, 5);
}

// As Excel and Windows' editors write them, and as they are once such a file is converted again.
TEST(Table, byte_order_mark_and_ends_of_lines_of_windows_are_no_part_of_cells) {
  const TemporaryFolder folder;
  for (const std::string mark : {"", "\xEF\xBB\xBF"}) {
    for (const std::string end : {"\n", "\r\n", "\r\r\n"}) {
      const auto with_ends = [&](std::string text) {
        for (size_t at = 0; (at = text.find('\n', at)) != text.npos; at += end.size()) {
          text.replace(at, 1, end);
        }
        return mark + text;
      };
      const std::string csv =
          folder.write("a.csv", with_ends("\"text\",category\n\"one,\n two\",\"x\"\n\nthree,y\n"));
      const std::string tsv = folder.write("a.tsv", with_ends("text\tcategory\na\tx\nb\ty"));
      const std::string json =
          folder.write("a.jsonl", with_ends("{\"text\": \"a\", \"category\": \"x\"}\n\n"));
      const std::string conll = folder.write("a.conll", with_ends("Anna B-PER\n\nsleeps O\n"));
      const auto rows = read_columns(csv, {"text", "category"});
      ASSERT_EQ(rows.size(), 2u);
      EXPECT_EQ(rows[0].cells, (std::vector<std::string>{"one,\n two", "x"}));
      EXPECT_EQ(rows[1].cells, (std::vector<std::string>{"three", "y"}));
      EXPECT_EQ(read_columns(tsv, {"category", "text"})[1].cells,
                (std::vector<std::string>{"y", "b"}));
      EXPECT_EQ(read_columns(json, {"text", "category"})[0].cells,
                (std::vector<std::string>{"a", "x"}));
      const auto texts = read_labelled_file(conll, {.is_words = true});
      ASSERT_EQ(texts.size(), 2u);
      EXPECT_EQ(texts[0].words, std::vector<std::string>{"Anna"});
      EXPECT_EQ(texts[1].labels, std::vector<std::string>{"O"});
    }
  }
}

TEST(Table, tsv_has_no_quotes_and_numbers_count_columns_without_names) {
  const TemporaryFolder folder;
  const std::string path = folder.write("a.tsv", "say \"a, b\t1\nc\t0");
  const auto rows = read_columns(path, {"2", "1"});
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].cells, (std::vector<std::string>{"1", "say \"a, b"}));
  EXPECT_EQ(rows[1].cells, (std::vector<std::string>{"0", "c"}));
}

// As Excel writes them where a comma is part of numbers.
TEST(Table, csv_whose_first_line_has_semicolons_and_no_comma_is_separated_by_these) {
  const TemporaryFolder folder;
  const std::string path =
      folder.write("a.csv", "\xEF\xBB\xBFtext;label\r\n\"one; two\";x\r\nthree, four;y\r\n");
  const auto rows = read_columns(path, {"text", "label"});
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].cells, (std::vector<std::string>{"one; two", "x"}));
  EXPECT_EQ(rows[1].cells, (std::vector<std::string>{"three, four", "y"}));
  const auto plain = read_columns(folder.write("b.csv", "one; two;x\nthree;four;y\n"), {"1"});
  EXPECT_EQ(plain[0].cells, std::vector<std::string>{"one; two;x"});
  const auto numbered = read_columns(folder.write("c.csv", "one;x\ntwo;y\n"), {"2", "1"});
  EXPECT_EQ(numbered[1].cells, (std::vector<std::string>{"y", "two"}));
  const auto comma = read_columns(folder.write("d.csv", "text,a;b\none,x;y\n"), {"a;b"});
  EXPECT_EQ(comma[0].cells, std::vector<std::string>{"x;y"});
}

TEST(Labelled, missing_column_is_said_with_the_flags_that_name_columns) {
  const TemporaryFolder folder;
  const std::string path = folder.write("a.csv", "great,1\nbad,0\n");
  expect_error(ErrorKind::data,
               {"no column 'text'", "there are: great, 1", "text_key and label_key",
                "text_key 1 label_key 2"},
               [&] { read_labelled_file(path, {}); });
  EXPECT_EQ(read_labelled_file(path, {.files = {.text_key = "1"}, .label_key = "2"}).size(), 2u);
  expect_error(ErrorKind::data, {"no column 'text'", "text_key 1)"},
               [&] { read_documents(path, "text"); });
}

TEST(Table, bad_rows_are_data_errors_with_their_line) {
  const TemporaryFolder folder;
  const auto refused = [&](const std::string& name, const std::string& content,
                           const std::vector<std::string>& words) {
    const std::string path = folder.write(name, content);
    expect_error(ErrorKind::data, words, [&] { read_columns(path, {"text", "label"}); });
  };
  refused("a.csv", "text,label\na,1\nb\n", {"line 3", "1 fields", "2"});
  refused("b.csv", "text,label\na,1,2\n", {"line 2", "3 fields"});
  refused("c.csv", "text,label\n\"a,1\nb,2\n", {"line 2", "never closed"});
  refused("d.tsv", "text\tkind\na\t1\n", {"'label'", "text, kind"});
  refused("e.tsv", "text\tlabel\na\xff\t1\n", {"line 2", "UTF-8"});
  refused("f.tsv", "text\tlabel\n", {"no rows"});
  refused("g.csv", "", {"no rows"});
  refused("h.jsonl", "{\"text\": \"a\"}\n", {"line 1", "label"});
  refused("i.txt", "text,label\n", {".csv, .tsv or .jsonl"});
  const std::string path = folder.write("j.tsv", "a\tb\n");
  expect_error(ErrorKind::data, {"column 3", "line 1 has 2"}, [&] { read_columns(path, {"3"}); });
}

TEST(Labelled, held_out_texts_are_chosen_by_the_seed_and_labels_are_sorted) {
  const TemporaryFolder folder;
  std::string text = "text\tlabel\n";
  for (int i = 0; i < 20; ++i) text += fmt::format("t{}\t{}\n", i, i < 10 ? "z" : "a");
  const std::string path = folder.write("a.tsv", text);
  const LabelledSplit split = read_labelled({.files = {.train = path}, .seed = 1});
  EXPECT_EQ(split.train.size(), 18u);
  EXPECT_EQ(split.val.size(), 2u);
  EXPECT_EQ(split.labels, (std::vector<std::string>{"a", "z"}));
  std::set<std::string> held;
  for (uint64_t seed = 1; seed < 9; ++seed) {
    held.insert(read_labelled({.files = {.train = path}, .seed = seed}).val[0].words[0]);
  }
  EXPECT_GT(held.size(), 3u);
}

// The plain draw would take all texts of a label in many of these.
TEST(Labelled, training_keeps_a_text_of_each_label) {
  const TemporaryFolder folder;
  const std::string four = folder.write("four.csv", "text,label\na,1\nb,0\nc,1\nd,0\n");
  const std::string rare =
      folder.write("rare.csv", "text,label\na,x\nb,x\nc,x\nd,x\ne,x\nf,x\ng,x\nh,y\ni,y\nj,z\n");
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    const LabelledSplit split =
        read_labelled({.files = {.train = four, .val_share = 0.4}, .seed = seed});
    EXPECT_EQ(split.labels, (std::vector<std::string>{"0", "1"})) << seed;
    EXPECT_EQ(split.val.size(), 2u);
    EXPECT_NE(split.val[0].labels, split.val[1].labels);
    const LabelledSplit three =
        read_labelled({.files = {.train = rare, .val_share = 0.5}, .seed = seed});
    EXPECT_EQ(three.labels, (std::vector<std::string>{"x", "y", "z"})) << seed;
    EXPECT_EQ(three.val.size(), 5u);
  }
  const std::string two = folder.write("two.csv", "text,label\na,1\nb,0\n");
  expect_error(ErrorKind::data, {"none of 2", "only one of a label", "val_data"},
               [&] { read_labelled({.files = {.train = two}}); });
}

// Where the plain draw leaves training all labels, which texts are held out is as it always was.
TEST(Labelled, texts_held_out_of_large_files_are_those_of_the_plain_draw) {
  const TemporaryFolder folder;
  std::string text = "text,label\n";
  for (int i = 0; i < 20; ++i) text += fmt::format("{},{}\n", i, i % 2);
  std::vector<std::string> held;
  for (const LabelledText& t :
       read_labelled(
           {.files = {.train = folder.write("a.csv", text), .val_share = 0.25}, .seed = 7})
           .val) {
    held.push_back(t.words[0]);
  }
  EXPECT_EQ(held, (std::vector<std::string>{"0", "2", "4", "10", "15"}));
}

TEST(Labelled, labels_are_trimmed_and_texts_without_one_are_left_out_and_counted) {
  const TemporaryFolder folder;
  const std::string table =
      folder.write("a.csv", "text,label\na,pos\nb, pos\t\nc,\n\nd,\"neg\u00A0\"\ne, \nf,neg\n");
  ::testing::internal::CaptureStderr();
  const auto texts = read_labelled_file(table, {});
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "warning: left out: 2 texts without a label, the first at " + table + ": line 4\n");
  std::vector<std::string> all;
  for (const LabelledText& t : texts) all.push_back(t.words[0] + t.labels[0]);
  EXPECT_EQ(all, (std::vector<std::string>{"apos", "bpos", "dneg", "fneg"}));
  const std::string lists = folder.write(
      "b.jsonl",
      "{\"text\": [\"a\"], \"label\": [\"\"]}\n{\"text\": [\"b\"], \"label\": [\" X\"]}\n");
  const auto words = read_labelled_file(lists, {.is_words = true});
  ASSERT_EQ(words.size(), 1u);
  EXPECT_EQ(words[0].labels, std::vector<std::string>{"X"});
  const std::string none = folder.write("none.csv", "text,label\na,\nb, \n");
  expect_error(ErrorKind::data, {"none.csv", "no labelled text"},
               [&] { read_labelled_file(none, {}); });
}

TEST(Labelled, words_have_labels_in_lists_or_in_columns) {
  const TemporaryFolder folder;
  const std::string lists =
      folder.write("a.jsonl", "{\"tokens\": [\"Anna\", \"sleeps\"], \"tags\": [\"PER\", \"O\"]}\n");
  const std::string columns =
      folder.write("b.conll", "\nAnna NNP PER\nsleeps VBZ O\n\n\nBonn\tPER\n");
  const LabelledSplit split =
      read_labelled({.files = {.train = lists, .val = columns, .text_key = "tokens"},
                     .label_key = "tags",
                     .is_words = true});
  ASSERT_EQ(split.val.size(), 2u);
  EXPECT_EQ(split.val[0].words, split.train[0].words);
  EXPECT_EQ(split.val[0].labels, split.train[0].labels);
  EXPECT_EQ(split.val[1].words, std::vector<std::string>{"Bonn"});
}

TEST(Labelled, labels_that_do_not_fit_are_data_errors_with_their_place) {
  const TemporaryFolder folder;
  const std::string train = folder.write("train.csv", "text,label\na,1\nb,2\n");
  const std::string val = folder.write("val.csv", "text,label\na,1\nb,3\n");
  expect_error(ErrorKind::data, {"val.csv: line 3", "'3'", "2"},
               [&] { read_labelled({.files = {.train = train, .val = val}}); });
  const std::string same = folder.write("same.csv", "text,label\na,1\nb,1\n");
  expect_error(ErrorKind::data, {"all texts have the label '1'"},
               [&] { read_labelled({.files = {.train = same, .val = same}}); });
  const auto words_refused = [&](const std::string& name, const std::string& content,
                                 const std::vector<std::string>& words) {
    const std::string path = folder.write(name, content);
    expect_error(ErrorKind::data, words,
                 [&] { read_labelled({.files = {.train = path, .val = path}, .is_words = true}); });
  };
  words_refused("a.jsonl", "{\"text\": [\"a\", \"b\"], \"label\": [1]}\n",
                {"2 words but 1 labels"});
  words_refused("b.conll", "a X\nb\n", {"line 2", "one field"});
}

TEST(Masking, tokens_are_masked_replaced_and_kept_80_10_10) {
  // 40,000 tokens, 15 % chosen. Chi-square of three outcomes: 13.8 at p = 0.001 (2 degrees).
  const MaskingOptions options{
      .mask_id = 4, .vocab_size = 1000, .is_special = [](int32_t id) { return id < 5; }};
  double counts[3] = {}, chosen = 0;
  for (uint64_t sample = 0; sample < 400; ++sample) {
    std::vector<int32_t> ids(100);
    std::iota(ids.begin(), ids.end(), 500);
    ids[0] = 2;  // special
    const std::vector<int32_t> before = ids;
    const auto targets = mask_tokens(ids, options, make_key(7, 0, 0, sample));
    EXPECT_EQ(targets[0], -1);
    for (size_t i = 0; i < ids.size(); ++i) {
      if (targets[i] < 0) {
        EXPECT_EQ(ids[i], before[i]);
        continue;
      }
      EXPECT_EQ(targets[i], before[i]);
      ++chosen;
      ++counts[ids[i] == 4 ? 0 : ids[i] != before[i] ? 1 : 2];
    }
  }
  EXPECT_NEAR(chosen / 39600, 0.15, 5 * 0.0018);  // 5 sigma
  double chi = 0;
  for (int i = 0; i < 3; ++i) {
    const double expected = chosen * (i == 0 ? 0.8 : 0.1);
    chi += (counts[i] - expected) * (counts[i] - expected) / expected;
  }
  EXPECT_LT(chi, 13.8) << counts[0] << " " << counts[1] << " " << counts[2];
}

TEST(Masking, at_least_one_token_is_chosen_and_the_key_decides) {
  const MaskingOptions options{.share = 0, .mask_id = 4, .vocab_size = 10};
  std::vector<int32_t> ids = {7, 8, 9}, again = ids;
  const auto targets = mask_tokens(ids, options, make_key(1, 2, 3, 4));
  EXPECT_EQ(std::count(targets.begin(), targets.end(), -1), 2);
  EXPECT_EQ(mask_tokens(again, options, make_key(1, 2, 3, 4)), targets);
  EXPECT_EQ(again, ids);
}

TEST(ShuffledPlan, epoch_has_each_sample_once_in_an_order_of_its_own) {
  ShuffledPlan plan(10, 4, 1);
  EXPECT_EQ(plan.batches(), 3);
  std::vector<std::vector<int64_t>> orders;
  for (const int64_t epoch : {0, 1, 0}) {
    std::vector<int64_t> order;
    for (int64_t b = 0; b < 3; ++b) {
      const auto batch = plan.batch(epoch, b);
      order.insert(order.end(), batch.begin(), batch.end());
    }
    orders.push_back(order);
    std::sort(order.begin(), order.end());
    for (int64_t i = 0; i < 10; ++i) EXPECT_EQ(order[static_cast<size_t>(i)], i);
  }
  EXPECT_NE(orders[0], orders[1]);
  EXPECT_EQ(orders[0], orders[2]);
}

}  // namespace
}  // namespace heddle
