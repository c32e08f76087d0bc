// Pickles: what is read, what is refused and never run, and bytes without sense.
#include "heddle/io/pickle.h"

#include <gtest/gtest.h>

#include <random>

#include "heddle/base/error.h"
#include "heddle/base/files/files.h"
#include "tests/base/temporary.h"
#include "tests/io/archives.h"

namespace heddle {
namespace {

using std::string_literals::operator""s;
using Kind = PickleValue::Kind;
using testing::named;
using testing::number;
using testing::pickled;
using testing::tuple;

bool none(std::string_view) { return false; }
bool torch_only(std::string_view name) { return name.starts_with("torch."); }

Pickle read(const std::string& text, const PickleNames& is_allowed = torch_only) {
  return Pickle(std::as_bytes(std::span(text)), "x.pkl", is_allowed);
}

void expect_refused(const std::string& text, const std::vector<std::string>& words,
                    const PickleNames& is_allowed = torch_only) {
  expect_error(ErrorKind::data, words, [&] { read(text, is_allowed); });
}

TEST(Pickle, plain_values_of_protocol_2_are_read) {
  // {"a": (1, -2, 2.5, None, True, False, [7, 70000]), "b": "é"}
  const std::string text = "\x80\x02}q\x00("s + pickled("a") + "(K\x01\x8a\x01\xfeG\x40\x04" +
                           std::string(6, '\0') + "N\x88\x89](K\x07J" + number(70000, 4) + "et" +
                           pickled("b") + pickled("\xc3\xa9") + "u.";
  const Pickle pickle = read(text);
  ASSERT_TRUE(pickle.value().is(Kind::dict));
  const auto& items = pickle.value().node->items;
  ASSERT_EQ(items.size(), 4u);
  EXPECT_EQ(items[0].node->text, "a");
  EXPECT_EQ(items[3].node->text, "\xc3\xa9");
  const auto& values = items[1].node->items;
  ASSERT_EQ(values.size(), 7u);
  EXPECT_EQ(values[0].integer, 1);
  EXPECT_EQ(values[1].integer, -2);
  EXPECT_EQ(values[2].real, 2.5);
  EXPECT_TRUE(values[3].is(Kind::none));
  EXPECT_EQ(values[4].integer, 1);
  EXPECT_EQ(values[5].integer, 0);
  EXPECT_EQ(values[6].node->items[1].integer, 70000);
  EXPECT_EQ(pickle.size(), text.size());
}

TEST(Pickle, values_of_protocol_4_and_its_memo_are_read) {
  // Frames, short texts, memoize, stack_global.
  const std::string text = std::string("\x80\x04\x95") + number(30, 8) +
                           "\x8c\x0b"
                           "collections\x94\x8c\x0bOrderedDict\x94\x93\x94)R\x94h\x00\x86."s;
  const Pickle pickle = read(text, none);
  ASSERT_TRUE(pickle.value().is(Kind::tuple));
  EXPECT_TRUE(pickle.value().node->items[0].is(Kind::dict));
  EXPECT_EQ(pickle.value().node->items[1].node->text, "collections");
}

TEST(Pickle, ends_at_its_stop_and_leaves_what_follows) {
  EXPECT_EQ(read("\x80\x02K\x07.trailing").size(), 5u);
}

TEST(Pickle, ordered_dict_of_python_2_is_a_dict) {
  const std::string text = "\x80\x02" + named("collections", "OrderedDict") +
                           "](]U\x01"
                           "aa" +
                           "]U\x01"
                           "bae\x85R.";
  // [[..],[..]] by APPEND is what Python 2 wrote; pairs of another length are refused.
  expect_refused(text, {"no pair"});
  const Pickle pickle = read("\x80\x02" + named("collections", "OrderedDict") +
                             "](](U\x01"
                             "aK\x01"
                             "e](U\x01"
                             "bK\x02"
                             "ee\x85R.");
  ASSERT_TRUE(pickle.value().is(Kind::dict));
  EXPECT_EQ(pickle.value().node->items.size(), 4u);
}

TEST(Pickle, call_is_kept_as_a_name_and_arguments_and_is_not_made) {
  const Pickle pickle = read("\x80\x02" + named("torch", "Size") + tuple({pickled(3)}) + "R.");
  ASSERT_TRUE(pickle.value().is(Kind::call));
  EXPECT_EQ(describe(pickle.value()), "a call of torch.Size");
  EXPECT_EQ(pickle.value().arguments()[0].integer, 3);
}

TEST(Pickle, any_other_name_is_refused_by_name_and_not_run) {
  for (const auto& [module, name] : {std::pair{"os", "system"},
                                     {"posix", "system"},
                                     {"builtins", "eval"},
                                     {"__builtin__", "exec"},
                                     {"subprocess", "Popen"},
                                     {"numpy.core.multiarray", "scalar"}}) {
    const std::string text =
        "\x80\x02" + named(module, name) + tuple({pickled("touch heddle-was-here")}) + "R.";
    expect_refused(text, {fmt::format("'{}.{}'", module, name), "it was not run", "state_dict"});
  }
  EXPECT_FALSE(path_exists("heddle-was-here"));
  // The same by protocol 4, where the name is put together on the stack.
  expect_refused("\x80\x04\x8c\x02os\x8c\x06system\x93.", {"'os.system'", "not run"});
}

TEST(Pickle, opcodes_that_make_objects_are_refused) {
  for (const char* op : {"\x81", "\x92", "ios\nsystem\n", "o"}) {
    expect_refused(std::string("\x80\x02)(") + op + ".", {"an object of a class of its own"});
  }
  expect_refused("\x80\x02\x82\x01.", {"opcode 0x82 at byte 2", "state_dict"});  // registered code
}

TEST(Pickle, misused_stack_memo_and_marks_are_data_errors) {
  expect_refused("\x80\x02.", {"takes a value where there is none"});
  expect_refused("\x80\x02t.", {"a mark that was not set"});
  expect_refused("\x80\x02}K\x01(s.", {"none"});  // a mark hides what lies under it
  expect_refused("\x80\x02h\x05.", {"recalls value 5, which it never kept"});
  expect_refused("\x80\x02q\x01.", {"uses a value where there is none"});
  expect_refused("\x80\x02}(K\x01u.", {"last key has no value"});
  expect_refused(
      "\x80\x02}(K\x01"
      "d.",
      {"last key has no value"});
  expect_refused(
      "\x80\x02K\x01K\x02"
      "a.",
      {"adds to an integer, not to a list"});
  expect_refused("\x80\x02K\x01K\x02R.", {"calls an integer with an integer"});
  expect_refused("\x80\x02K\x01K\x02\x93.", {"a name is no text"});
  expect_refused("\x80\x02\x8a\x09" + std::string(9, 'x') + ".", {"an integer of 9 bytes"});
  expect_refused("\x80\x09.", {"protocol 9; heddle reads 2 to 5"});
  expect_refused("\x80\x02" + named("collections", "OrderedDict") + "K\x01\x85R.", {"no list"});
}

TEST(Pickle, sizes_beyond_the_bytes_are_data_errors) {
  expect_refused(
      "\x80\x02X\xff\xff\xff\xff"
      "abc.",
      {"4294967295 bytes are needed at byte 7"});
  expect_refused(
      "\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\xff"
      "abc.",
      {"cut short"});
  expect_refused(
      "\x80\x02"
      "ctorch",
      {"the line at byte 3 does not end"});
  expect_refused("\x80\x02" + std::string(5'000'000, ')') + ".", {"more than 4000000 values"});
  expect_refused("\x80\x02" + std::string(5'000'000, 'N') + ".", {"more than 4000000 values"});
  expect_refused("", {"1 bytes are needed at byte 0"});
}

TEST(Pickle, what_little_repeats_is_neither_copied_nor_uncounted) {
  // A tuple of a million, with which three thousand calls are made: they share it.
  std::string text =
      "\x80\x02" + named("torch", "Size") + "q\x00("s + std::string(1'000'000, 'N') + "tq\x01"s;
  for (int i = 0; i < 3000; ++i) text += "h\x00h\x01R"s;
  const Pickle pickle = read(text + "\x86.");
  const auto& calls = pickle.value().node->items;
  EXPECT_EQ(calls[0].arguments().size(), 1'000'000u);
  EXPECT_EQ(&calls[0].arguments(), &calls[1].arguments());
  // A thousand pairs, of which five thousand dicts are made: ten million values.
  text = "\x80\x02](";
  for (int i = 0; i < 1000; ++i) text += "NN\x86";
  text += "e\x85q\x01";
  for (int i = 0; i < 5000; ++i) text += named("collections", "OrderedDict") + "h\x01R";
  expect_refused(text + ".", {"more than 4000000 values"});
  expect_refused("\x80\x04N" + std::string(5'000'000, '\x94') + ".", {"more than 4000000 values"});
  expect_refused("\x80\x02" + std::string(5'000'000, '(') + ".", {"more than 4000000 values"});
}

TEST(Pickle, names_are_short_and_kept_once) {
  const auto stacked = [](size_t bytes) {
    return "\x80\x04" + pickled("torch") + pickled(std::string(bytes - 6, 'A')) + "\x93.";
  };
  EXPECT_EQ(read(stacked(200)).value().name().size(), 200u);
  expect_refused(stacked(201), {"a name of 201 bytes", "it was not run"});
  expect_refused("\x80\x02" + named("torch", std::string(4'000'000, 'A')) + ".",
                 {"a name of 4000006 bytes"});
  const std::string size = named("torch", "Size");
  const Pickle pickle = read("\x80\x02" + size + size + "\x86.");
  EXPECT_EQ(pickle.value().node->items[0].node, pickle.value().node->items[1].node);
}

TEST(Pickle, list_that_holds_itself_is_read_once) {
  const Pickle pickle = read(
      "\x80\x02]q\x00h\x00"s
      "a.");
  ASSERT_TRUE(pickle.value().is(Kind::list));
  EXPECT_EQ(pickle.value().node->items[0].node, pickle.value().node);
  EXPECT_EQ(describe(pickle.value()), "a list");
}

TEST(Pickle, random_opcodes_are_read_or_refused_and_never_crash) {
  const std::string ops =
      "(.JKMNQRTUBCGXabcdehjl]qrst)u}\x80\x81\x85\x86\x87\x88\x89\x8a\x8c\x93\x94";
  std::mt19937_64 random(5);
  int read_well = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string text = "\x80\x02";
    for (uint64_t n = random() % 40; n > 0; --n) {
      text += random() % 3 == 0 ? static_cast<char>(random() % 4) : ops[random() % ops.size()];
      if (random() % 12 == 0) text += named("torch", "Size");
    }
    text += ".";
    try {
      read(text);
      ++read_well;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::data) << error.what();
    }
  }
  EXPECT_GT(read_well, 100);
}

}  // namespace
}  // namespace heddle
