// Tokenizer files that are broken, cut short or made to do harm: each ends in one clear error.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include "heddle/base/json/json.h"
#include "heddle/text/tokenizer.h"
#include "tests/base/temporary.h"

namespace heddle {
namespace {

class HostileTokenizer : public ::testing::Test {
 protected:
  /// A small tokenizer.json; `model`, `key` and the rest are exchanged.
  static std::string json(const std::string& model, const std::string& others = "") {
    return R"({"model": )" + model + (others.empty() ? "" : ", " + others) + "}";
  }
  static std::string bpe(const std::string& vocab, const std::string& merges) {
    return json(R"({"type": "BPE", "vocab": )" + vocab + R"(, "merges": )" + merges + "}");
  }
  void expect_refused(const std::string& text, std::vector<std::string> words) {
    SCOPED_TRACE(text.substr(0, 200));
    words.push_back(folder_ / "tokenizer.json");
    folder_.write("tokenizer.json", text);
    expect_error(ErrorKind::data, words, [&] { Tokenizer::load(folder_.path()); });
  }

  TemporaryFolder folder_;
  const std::string kAb = R"({"a": 0, "b": 1, "ab": 2})";
};

TEST_F(HostileTokenizer, ids_out_of_range_or_twice_are_refused) {
  expect_refused(bpe(R"({"a": -1})", "[]"), {"'a'", "-1"});
  expect_refused(bpe(R"({"a": 2147483647})", "[]"), {"2147483647"});
  expect_refused(bpe(R"({"a": 9223372036854775807})", "[]"), {"9223372036854775807"});
  expect_refused(bpe(R"({"a": 1e300})", "[]"), {"'a'"});
  expect_refused(bpe(R"({"a": 5, "b": 5})", "[]"), {"both have the id 5"});
  expect_refused(bpe(R"({"a": 5, "a": 6})", "[]"), {"a"});
  expect_refused(bpe("{}", "[]"), {"vocabulary"});
  expect_refused(bpe("[]", "[]"), {"vocabulary"});
}

TEST_F(HostileTokenizer, merges_that_lead_nowhere_are_refused) {
  expect_refused(bpe(kAb, R"(["a c"])"), {"merge 1", "'c'"});
  expect_refused(bpe(kAb, R"(["a b", "ab a"])"), {"merge 2", "'aba'"});
  expect_refused(bpe(kAb, R"(["ab"])"), {"merge 1", "'ab'"});
  expect_refused(bpe(kAb, R"(["a b c"])"), {"merge 1"});
  expect_refused(bpe(kAb, R"([["a", "b", "c"]])"), {"merge 1"});
  expect_refused(bpe(kAb, R"([7])"), {"merge 1"});
  // A token that gives itself: with an empty part, the one cycle that merges could have.
  expect_refused(bpe(R"({"": 0, "a": 1})", R"([["", "a"]])"), {"merge 1", "empty"});
  expect_refused(bpe(R"({"": 0, "a": 1})", R"([["a", ""]])"), {"merge 1", "empty"});
}

TEST_F(HostileTokenizer, unknown_components_are_named) {
  expect_refused(json(R"({"type": "Magic", "vocab": {"a": 0}})"), {"'Magic'"});
  const std::string model = R"({"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "a"})";
  for (const std::string key : {"normalizer", "pre_tokenizer", "post_processor", "decoder"}) {
    expect_refused(json(model, '"' + key + R"(": {"type": "Magic"})"), {key, "'Magic'"});
    expect_refused(json(model, '"' + key + R"(": {"kind": "Magic"})"), {key});
    expect_refused(json(model, '"' + key + R"(": "Magic")"), {key});
  }
  expect_refused(json(model, R"("pre_tokenizer": {"type": "Sequence", "pretokenizers":
                                [{"type": "Digits"}, {"type": "UnicodeScripts"}]})"),
                 {"UnicodeScripts", "Sequence"});
}

TEST_F(HostileTokenizer, wrong_parts_of_components_are_named) {
  const std::string model = R"({"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "a"})";
  const std::pair<const char*, const char*> all[] = {
      {R"("pre_tokenizer": {"type": "Split", "pattern": {"Regex": "(a"}, "behavior": "Isolated"})",
       "(a"},
      {R"("pre_tokenizer": {"type": "Split", "pattern": {"String": "a"}, "behavior": "Some"})",
       "'Some'"},
      {R"("pre_tokenizer": {"type": "Split", "pattern": "a"})", "pattern"},
      {R"("pre_tokenizer": {"type": "Metaspace", "replacement": "__"})", "one character"},
      {R"("pre_tokenizer": {"type": "Metaspace", "replacement": ""})", "one character"},
      {R"("pre_tokenizer": {"type": "Metaspace", "add_prefix_space": 1})", "add_prefix_space"},
      {R"("normalizer": {"type": "Precompiled", "precompiled_charsmap": "AAA"})", "cut short"},
      {R"("normalizer": {"type": "Precompiled", "precompiled_charsmap": "????"})", "base 64"},
      {R"("normalizer": {"type": "Precompiled", "precompiled_charsmap": "/////w=="})", "damaged"},
      {R"("normalizer": {"type": "Sequence"})", "normalizers"},
      {R"("post_processor": {"type": "BertProcessing", "cls": ["a", 0]})", "sep"},
      {R"("post_processor": {"type": "BertProcessing", "cls": ["a", 0], "sep": ["b", 9]})", "9"},
      {R"("post_processor": {"type": "TemplateProcessing", "single": [{"Sequence": {"id": "B",
          "type_id": 0}}], "pair": [], "special_tokens": {}})",
       "'B'"},
      {R"("post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "x",
          "type_id": 0}}], "pair": [], "special_tokens": {}})",
       "'x'"},
      {R"("post_processor": {"type": "TemplateProcessing", "single": [{"Sequence": {"id": "A",
          "type_id": 4294967296}}], "pair": [], "special_tokens": {}})",
       "4294967296"},
      {R"("post_processor": {"type": "TemplateProcessing", "single": [{"Sequence": {"id": "A",
          "type_id": -1}}], "pair": [], "special_tokens": {}})",
       "-1"},
      {R"("added_tokens": [{"id": 99999999, "content": "x"}])", "99999999"},
      {R"("added_tokens": [{"id": 1, "content": "a"}])", "'a'"},
      {R"("added_tokens": [{"id": 0, "content": "x"}])", "'x'"},
      {R"("added_tokens": [{"id": 1, "content": "x"}, {"id": 2, "content": "x"}])", "twice"},
      {R"("added_tokens": [{"id": 1, "content": "x"}, {"id": 1, "content": "y"}])", "both"},
      {R"("added_tokens": [{"id": 1, "content": ""}])", "empty"},
      {R"("added_tokens": [{"content": "x"}])", "id"}};
  for (const auto& [part, word] : all) expect_refused(json(model, part), {word});
}

TEST_F(HostileTokenizer, unigram_scores_and_ids_are_checked) {
  const auto unigram = [](const std::string& rest) {
    return json(R"({"type": "Unigram", )" + rest + "}");
  };
  expect_refused(unigram(R"("vocab": [], "unk_id": 0)"), {"empty"});
  expect_refused(unigram(R"("vocab": [["a"]], "unk_id": 0)"), {"token 0"});
  expect_refused(unigram(R"("vocab": [["a", 1e200]], "unk_id": 0)"), {"score"});
  expect_refused(unigram(R"("vocab": [["a", "b"]], "unk_id": 0)"), {"token 0"});
  expect_refused(unigram(R"("vocab": [["a", 0], ["a", 0]], "unk_id": 0)"), {"twice"});
  expect_refused(unigram(R"("vocab": [["a", 0]], "unk_id": 1)"), {"unk_id is 1"});
  folder_.write("tokenizer.json", unigram(R"("vocab": [["a", 0]], "unk_id": null)"));
  const Tokenizer without = Tokenizer::load(folder_.path());
  expect_error(ErrorKind::data, {"'b'", "unknown"}, [&] { without.encode("b"); });
}

TEST_F(HostileTokenizer, a_file_cut_short_anywhere_is_refused) {
  const std::string whole = bpe(kAb, R"(["a b"])");
  for (size_t size = 0; size < whole.size(); ++size) {
    expect_refused(whole.substr(0, size), {});
  }
}

TEST_F(HostileTokenizer, a_regular_expression_that_never_ends_is_a_data_error) {
  folder_.write("tokenizer.json",
                json(R"({"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "a"})",
                     R"("pre_tokenizer": {"type": "Split", "pattern": {"Regex": "(a+)+b"},
                         "behavior": "Isolated"})"));
  const Tokenizer tokenizer = Tokenizer::load(folder_.path());
  expect_error(ErrorKind::data, {"(a+)+b"}, [&] { tokenizer.encode(std::string(60, 'a')); });
}

TEST_F(HostileTokenizer, long_lines_without_spaces_do_not_take_quadratic_time) {
  folder_.write("tokenizer.json", bpe(R"({"a": 0, "aa": 1, "aaaa": 2, "aaaaaaaa": 3})",
                                      R"(["a a", "aa aa", "aaaa aaaa"])"));
  const Tokenizer tokenizer = Tokenizer::load(folder_.path());
  const std::vector<int32_t> ids = tokenizer.encode(std::string(800'000, 'a'));
  EXPECT_EQ(ids, std::vector<int32_t>(100'000, 3));
}

TEST_F(HostileTokenizer, text_that_is_not_utf8_is_refused) {
  folder_.write("tokenizer.json", bpe(kAb, "[]"));
  const Tokenizer tokenizer = Tokenizer::load(folder_.path());
  for (const std::string text : {"a\xFF", "\xC3", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xC0\x80"}) {
    expect_error(ErrorKind::data, {"not UTF-8"}, [&] { tokenizer.encode(text); });
  }
}

TEST_F(HostileTokenizer, ids_of_padded_vocabularies_are_nothing_and_negative_ones_are_refused) {
  folder_.write("tokenizer.json", bpe(kAb, "[]"));
  const Tokenizer tokenizer = Tokenizer::load(folder_.path());
  ASSERT_EQ(tokenizer.vocab_size(), 3);
  EXPECT_EQ(tokenizer.decode(std::vector<int32_t>{1, 3, 50'303}),
            tokenizer.decode(std::vector<int32_t>{1}));
  EXPECT_EQ(tokenizer.token(3), "");
  expect_error(ErrorKind::data, {"-1 is no token id"},
               [&] { tokenizer.decode(std::vector<int32_t>{-1}); });
  expect_error(ErrorKind::data, {"-1 is no token id"}, [&] { tokenizer.token(-1); });
}

TEST_F(HostileTokenizer, word_lists_that_are_broken_are_refused) {
  const auto expect_vocab = [&](const std::string& text, const std::vector<std::string>& words) {
    folder_.write("vocab.txt", text);
    std::vector<std::string> all = words;
    all.push_back("vocab.txt");
    expect_error(ErrorKind::data, all, [&] { Tokenizer::load(folder_.path()); });
  };
  expect_vocab("", {"empty"});
  expect_vocab("[UNK]\n[CLS]\n[SEP]\nb\xFF\n", {"not UTF-8", "0xff"});
  expect_vocab("[CLS]\n[SEP]\na\n", {"[UNK]"});
  expect_vocab("[UNK]\n[SEP]\na\n", {"[CLS]"});
}

// transformers 5.23: BertTokenizer("vocab.txt").
TEST_F(HostileTokenizer, of_lines_that_come_twice_the_later_counts) {
  folder_.write("vocab.txt", "[UNK]\na\n[CLS]\nb\n[SEP]\na\n");
  ::testing::internal::CaptureStderr();
  const Tokenizer tokenizer = Tokenizer::load(folder_.path());
  EXPECT_NE(::testing::internal::GetCapturedStderr().find("'a' in line 6"), std::string::npos);
  EXPECT_EQ(tokenizer.encode("a b"), (std::vector<int32_t>{5, 3}));
  EXPECT_EQ(tokenizer.token(1), "");
  EXPECT_EQ(tokenizer.vocab_size(), 6);
}

TEST_F(HostileTokenizer, steps_that_double_a_text_end_before_memory_does) {
  const std::string model = R"({"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "a"})";
  const auto sequence = [](const std::string& list, const std::string& step, int times) {
    std::string all;
    for (int i = 0; i < times; ++i) all += (i == 0 ? "" : ", ") + step;
    return R"({"type": "Sequence", ")" + list + R"(": [)" + all + "]}";
  };
  const std::string replace = R"({"type": "Replace", "pattern": {"String": "a"}, "content": "aa"})";
  const std::string large = R"({"type": "Replace", "pattern": {"String": "a"}, "content": ")" +
                            std::string(200'000, 'a') + R"("})";
  const std::string letters = R"({"type": "ByteLevel", "use_regex": false})";
  const std::string some = R"("normalizer": )", split = R"("pre_tokenizer": )";
  for (const std::string& part :
       {some + sequence("normalizers", replace, 40),
        some + sequence("normalizers", sequence("normalizers", replace, 6), 7), some + large,
        split + sequence("pretokenizers", letters, 40),
        split + sequence("pretokenizers", sequence("pretokenizers", letters, 6), 7)}) {
    folder_.write("tokenizer.json", json(model, part));
    const Tokenizer tokenizer = Tokenizer::load(folder_.path());
    expect_error(ErrorKind::data, {"64 for each", "memory"},
                 [&] { tokenizer.encode(std::string(20'000, 'a')); });
    EXPECT_EQ(tokenizer.encode("").size(), 0u);
  }
  for (const std::string& decoder :
       {sequence("decoders", replace, 40),
        sequence("decoders", sequence("decoders", replace, 6), 7), large}) {
    folder_.write("tokenizer.json", json(model, R"("decoder": )" + decoder));
    const Tokenizer tokenizer = Tokenizer::load(folder_.path());
    expect_error(ErrorKind::data, {"64 for each"},
                 [&] { tokenizer.decode(std::vector<int32_t>(1000)); });
  }
}

TEST_F(HostileTokenizer, tokens_are_of_bounded_length) {
  const std::string fits(4096, 'a'), token(4097, 'a');
  folder_.write("tokenizer.json", bpe(R"({")" + fits + R"(": 0})", "[]"));
  EXPECT_EQ(Tokenizer::load(folder_.path()).token(0), fits);
  const std::vector<std::string> words = {"4097 bytes", "4096"};
  expect_refused(bpe(R"({")" + token + R"(": 0})", "[]"), words);
  expect_refused(json(R"({"type": "Unigram", "unk_id": null, "vocab": [[")" + token + R"(", 0]]})"),
                 words);
  expect_refused(json(R"({"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "a"})",
                      R"("added_tokens": [{"id": 1, "content": ")" + token + R"("}])"),
                 words);
}

TEST_F(HostileTokenizer, long_words_take_word_piece_a_step_a_byte) {
  const auto word_piece = [](const std::string& characters) {
    return json(R"({"type": "WordPiece", "unk_token": "[UNK]", "max_input_chars_per_word": )" +
                characters + R"(, "vocab": {"[UNK]": 0, "a": 1, "##a": 2, "##ab": 3, ")" +
                std::string(4096, 'c') + R"(": 4}})");
  };
  expect_refused(word_piece("-1"), {"max_input_chars_per_word is -1"});
  folder_.write("tokenizer.json", word_piece("1000000"));
  const Tokenizer tokenizer = Tokenizer::load(folder_.path());
  std::vector<int32_t> expected(500'000, 2);
  expected.front() = 1;
  EXPECT_EQ(tokenizer.encode(std::string(500'000, 'a')), expected);
  EXPECT_EQ(tokenizer.encode("aaba"), (std::vector<int32_t>{1, 3, 2}));
  EXPECT_EQ(tokenizer.encode("abc"), std::vector<int32_t>{0});
}

TEST_F(HostileTokenizer, spaces_in_front_of_decoded_text_are_stripped_at_once) {
  folder_.write("tokenizer.json",
                json(R"({"type": "WordLevel", "vocab": {" ": 0, "a": 1}, "unk_token": "a"})",
                     R"("decoder": {"type": "Sequence", "decoders": [{"type": "Fuse"},
                        {"type": "Strip", "content": " ", "start": 100000000, "stop": 2}]})"));
  const Tokenizer tokenizer = Tokenizer::load(folder_.path());
  std::vector<int32_t> ids(4'000'000, 0);
  EXPECT_EQ(tokenizer.decode(ids), "");
  ids[3'000'000] = 1;
  EXPECT_EQ(tokenizer.decode(ids), "a" + std::string(999'997, ' '));
}

// The ids are those of tokenizers 0.23, which panics at the last text.
TEST_F(HostileTokenizer, tokens_in_white_space_that_another_took_are_found_unless_it_took_all) {
  const auto with = [&](const std::string& second) {
    folder_.write("tokenizer.json",
                  json(R"({"type": "BPE", "vocab": {"b": 0, " ": 1}, "merges": []})",
                       R"("added_tokens": [{"id": 2, "content": "A", "rstrip": true,
                          "normalized": false}, {"id": 3, "normalized": false, )" +
                           second + "}]"));
    return Tokenizer::load(folder_.path());
  };
  using Ids = std::vector<int32_t>;
  const Tokenizer plain = with(R"("content": "\n")");
  EXPECT_EQ(plain.encode("A\nb"), (Ids{2, 3, 0}));
  EXPECT_EQ(plain.encode("A \n b"), (Ids{2, 3, 1, 0}));
  EXPECT_EQ(plain.encode("A \n\n b"), (Ids{2, 3, 3, 1, 0}));
  EXPECT_EQ(with(R"("content": "\n", "rstrip": true)").encode("A \n b"), (Ids{2, 3, 0}));
  const Tokenizer left = with(R"("content": "\n", "lstrip": true)");
  EXPECT_EQ(left.encode("A \n b"), (Ids{2, 0}));
  // Each looks at the white space that no other has seen.
  const std::string lines(1'000'000, '\n');
  EXPECT_EQ(left.encode(lines).size(), 1'000'000u);
  EXPECT_EQ(with(R"("content": "\n", "rstrip": true)").encode(lines).size(), 1'000'000u);
}

TEST_F(HostileTokenizer, text_of_two_gibibytes_is_refused_before_it_is_read) {
  folder_.write("tokenizer.json", bpe(kAb, "[]"));
  const Tokenizer tokenizer = Tokenizer::load(folder_.path());
  const size_t bytes = size_t{1} << 31;
  void* zeros = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(zeros, MAP_FAILED);
  expect_error(ErrorKind::data, {"2147483648 bytes", "cut it"}, [&] {
    tokenizer.encode({static_cast<const char*>(zeros), bytes});
  });
  munmap(zeros, bytes);
}

TEST_F(HostileTokenizer, merges_txt_that_is_broken_is_refused_by_line) {
  folder_.write("vocab.json", kAb);
  const auto expect_merges = [&](const std::string& text, const std::vector<std::string>& words) {
    folder_.write("merges.txt", text);
    std::vector<std::string> all = words;
    all.push_back("merges.txt");
    expect_error(ErrorKind::data, all, [&] { Tokenizer::load(folder_.path()); });
  };
  expect_merges("#version: 0.2\na b\na\n", {"line 3"});
  expect_merges("a b\na c\n", {"merge 2", "'c'"});
  expect_merges("a \xFF\n", {"not UTF-8"});
  folder_.write("merges.txt", "#version: 0.2\na b\n");
  EXPECT_EQ(Tokenizer::load(folder_.path()).encode("ab"), std::vector<int32_t>{2});
  folder_.write("vocab.json", kAb.substr(0, 9));
  expect_error(ErrorKind::data, {"vocab.json"}, [&] { Tokenizer::load(folder_.path()); });
}

TEST_F(HostileTokenizer, special_tokens_with_wrong_ids_are_refused) {
  folder_.write("tokenizer.json", bpe(kAb, "[]"));
  const auto expect_config = [&](const std::string& text, const std::vector<std::string>& words) {
    folder_.write("tokenizer_config.json", text);
    std::vector<std::string> all = words;
    all.push_back("tokenizer_config.json");
    expect_error(ErrorKind::data, all, [&] { Tokenizer::load(folder_.path()); });
  };
  expect_config(R"({"added_tokens_decoder": {"x": {"content": "<s>"}}})", {"'x'"});
  expect_config(R"({"added_tokens_decoder": {"1": {"content": "<s>"}}})", {"'<s>'", "'b'"});
  expect_config(R"({"added_tokens_decoder": {"7": {"content": "a"}}})", {"'a'", "7"});
  expect_config(R"({"added_tokens_decoder": {"99999999": {"content": "<s>"}}})", {"99999999"});
  expect_config(R"({"clean_up_tokenization_spaces": tru)", {});
  folder_.write("tokenizer_config.json", R"({"added_tokens_decoder": {"3": {"content": "<s>",
      "special": true}}, "bos_token": "<s>", "eos_token": "absent"})");
  const Tokenizer tokenizer = Tokenizer::load(folder_.path());
  EXPECT_EQ(tokenizer.bos_id(), 3);
  EXPECT_EQ(tokenizer.eos_id(), -1);
  EXPECT_EQ(tokenizer.encode("a<s>b"), (std::vector<int32_t>{0, 3, 1}));
}

TEST_F(HostileTokenizer, a_folder_without_a_tokenizer_says_what_is_looked_for) {
  expect_error(ErrorKind::data, {folder_.path(), "tokenizer.json", "vocab.txt", "spiece.model"},
               [&] { Tokenizer::load(folder_.path()); });
  expect_error(ErrorKind::data, {"none.json"}, [&] { Tokenizer::load(folder_ / "none.json"); });
  folder_.write("vocab.json", kAb);
  expect_error(ErrorKind::data, {"merges.txt", "missing"},
               [&] { Tokenizer::load(folder_ / "vocab.json"); });
}

}  // namespace
}  // namespace heddle
