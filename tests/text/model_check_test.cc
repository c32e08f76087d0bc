// Hostile .model files: truncated, altered, forged. None may crash; most must be refused by name.
#include "heddle/text/sentencepiece/sentencepiece_tokenizer.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "heddle/base/error.h"
#include "tests/text/small_tokenizers.h"

namespace heddle {
namespace {

using namespace std::string_literals;
using testing::small_tokenizer;

// Pieces of a protobuf, by hand.
std::string varint(uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  return out + static_cast<char>(value);
}
std::string number(uint32_t field, uint64_t value) { return varint(field << 3) + varint(value); }
std::string bytes(uint32_t field, const std::string& value) {
  return varint(field << 3 | 2) + varint(value.size()) + value;
}
std::string real(uint32_t field, float value) {
  std::string out(4, '\0');
  std::memcpy(out.data(), &value, 4);
  return varint(field << 3 | 5) + out;
}
std::string piece(const std::string& text, float score = -1, int type = 1) {
  return bytes(1, bytes(1, text) + real(2, score) + number(3, static_cast<uint64_t>(type)));
}
std::string unk() { return piece("<unk>", 0, 2); }

/// The message of the refusal; empty (and a failure) if the model is accepted.
std::string refusal(const std::string& model) {
  try {
    Tokenizer::from_bytes(model, "some.model");
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::data);
    EXPECT_EQ(std::string(e.what()).rfind("some.model: ", 0), 0u) << e.what();
    return e.what();
  }
  ADD_FAILURE() << "accepted";
  return "";
}

void expect_refused(const std::string& model, const std::string& why) {
  const std::string message = refusal(model);
  EXPECT_NE(message.find(why), message.npos) << message;
}

/// Loads and, if that works, uses it: whether it does. Only data errors may come.
bool is_usable(const std::string& model) {
  try {
    const Tokenizer tokenizer = Tokenizer::from_bytes(model, "some.model");
    const auto ids = tokenizer.encode("  the old Männ ﬁnds ① ▁日本 \u0301\t<s> X ");
    tokenizer.decode(ids);
    std::vector<int32_t> all;
    for (int32_t id = 0; id < std::min<int64_t>(tokenizer.vocab_size(), 400); ++id) {
      all.push_back(id);
    }
    tokenizer.decode(all);
    return true;
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::data) << e.what();
    return false;
  }
}

TEST(ModelCheck, hand_made_model_is_accepted) {
  const Tokenizer tokenizer = Tokenizer::from_bytes(unk() + piece("▁") + piece("a") + piece("▁a"));
  EXPECT_EQ(tokenizer.vocab_size(), 4);
  EXPECT_EQ(tokenizer.unk_id(), 0);
  EXPECT_EQ(tokenizer.pad_id(), -1);
}

TEST(ModelCheck, forged_models_are_refused_with_the_reason) {
  expect_refused("", "the file is empty");
  expect_refused(
      "\x7F"
      "ELF",
      "byte 0");
  expect_refused("{\"model\": 1}", "byte 0");
  expect_refused(unk() + "\x0A", "a number is cut short");
  expect_refused(unk() + "\x0A\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x7F", "claims");
  expect_refused(unk() + "\x0A\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x7F", "more than 64 bits");
  expect_refused(unk() + "\x0B\x0C", "wire type 3");
  expect_refused(unk() + "\0\0"s, "no field number");
  expect_refused(unk() + number(1, 5), "wire type 0");
  expect_refused(unk() + piece(""), "an empty piece");
  expect_refused(unk() + bytes(1, ""), "an empty piece");
  expect_refused(unk() + piece("\xFF"), "not UTF-8");
  expect_refused(unk() + piece("a\0b"s), "a zero byte");
  expect_refused(unk() + piece("a") + piece("a"), "'a' comes twice");
  expect_refused(unk() + piece(std::string(5000, 'a')), "a piece of 5000 bytes");
  expect_refused(unk() + piece("a", -1, 7), "piece type 7");
  expect_refused(unk() + piece("a", -1, 0), "piece type 0");
  expect_refused(unk() + piece("a", std::numeric_limits<float>::quiet_NaN()), "a score of nan");
  expect_refused(unk() + piece("a", std::numeric_limits<float>::infinity()), "a score of inf");
  expect_refused(unk() + piece("a", -1e30f), "a score of");
  expect_refused(unk() + bytes(1, bytes(1, "a") + bytes(1, "b")), "comes twice");
  expect_refused(unk() + piece("a") + bytes(2, number(3, 9)), "model type 9");
  expect_refused(unk() + piece("a") + bytes(2, "") + bytes(2, ""), "field 2 comes twice");
  expect_refused(unk() + piece("a") + bytes(2, number(44, 1)), "wire type 0, not 2");
  expect_refused(bytes(2, number(3, 2)), "no pieces");
  expect_refused(piece("a"), "SentencePiece refuses");                            // no <unk>
  expect_refused(unk() + unk().replace(4, 5, "<unq>"), "SentencePiece refuses");  // two
  expect_refused(unk() + piece("<0x00>", 0, 6), "SentencePiece refuses");  // bytes, no fallback
}

TEST(ModelCheck, nested_user_symbols_beyond_sentencepieces_array_are_refused) {
  std::string model = unk();
  for (size_t n = 1; n <= 64; ++n) model += piece(std::string(n, 'a'), 0, 4);
  EXPECT_TRUE(is_usable(model));
  expect_refused(model + piece(std::string(65, 'a'), 0, 4), "nested symbols");
}

TEST(ModelCheck, unused_pieces_are_segmented_again) {
  const Tokenizer tokenizer = Tokenizer::from_bytes(unk() + piece("▁") + piece("a") + piece("b") +
                                                    piece("ab", -0.5f, 5) + bytes(2, number(3, 2)));
  EXPECT_EQ(tokenizer.encode("ab"), (std::vector<int32_t>{1, 2, 3}));
}

class AlteredModel : public ::testing::TestWithParam<const char*> {
 protected:
  std::string model_ = small_tokenizer(TokenizerType::unigram, GetParam()).model_bytes();
};

TEST_P(AlteredModel, every_truncation_is_refused) {
  const size_t step = model_.size() > 20000 ? 1499 : 7;
  int cut = 0, refused = 0;
  for (size_t n = 0; n < model_.size(); n += n < 600 ? 1 : step) {
    ++cut;
    refused += !is_usable(model_.substr(0, n));
  }
  EXPECT_GT(cut, 700);
  EXPECT_EQ(refused, cut);
}

TEST_P(AlteredModel, flipped_bytes_are_mostly_refused_and_never_crash) {
  std::mt19937 random(11);
  const int runs = model_.size() > 20000 ? 300 : 3000;
  int refused = 0;
  for (int run = 0; run < runs; ++run) {
    std::string altered = model_;
    for (auto n = 1 + random() % 3; n > 0; --n) {
      altered[random() % altered.size()] = static_cast<char>(random());
    }
    refused += !is_usable(altered);
  }
  // 2,656 of 3,000 and 232 of 300; in the others a score, a piece's text or a setting is another.
  EXPECT_GT(refused, runs / 2);
  EXPECT_LT(refused, runs);
}

INSTANTIATE_TEST_SUITE_P(Normalizations, AlteredModel, ::testing::Values("identity", "nmt_nfkc"),
                         [](const auto& suite) { return std::string(suite.param); });

/// A trie of `units`, with replacements, as a character map.
std::string charsmap(const std::vector<uint32_t>& units, const std::string& replacements) {
  std::string out(4 + 4 * units.size(), '\0');
  const auto size = static_cast<uint32_t>(4 * units.size());
  std::memcpy(out.data(), &size, 4);
  std::memcpy(out.data() + 4, units.data(), size);
  return out + replacements;
}

/// Replaces "A" by the text at `value`: root -> 256 ^ 'A' -> leaf at 512.
std::vector<uint32_t> one_rule(uint32_t value) {
  std::vector<uint32_t> units(768, 0xFF);  // label 0xFF and no leaf: matches at its own place only
  for (size_t i = 0; i < units.size(); ++i) units[i] = (i & 0xFF) == 1 ? 2 : 1;  // nothing matches
  units[0] = 256u << 10;
  units[256 ^ 'A'] = ((256u ^ 'A' ^ 512u) << 10) | (1u << 8) | 'A';
  units[512] = value | 0x80000000u;
  return units;
}

TEST(Charsmap, one_rule_is_accepted_and_applied) {
  const std::string map = charsmap(one_rule(2), "x\0yz\0"s);
  EXPECT_EQ(charsmap_fault(map), "");
  const Tokenizer tokenizer =
      Tokenizer::from_bytes(unk() + piece("▁") + piece("y") + piece("z") + bytes(3, bytes(2, map)));
  EXPECT_EQ(tokenizer.encode("A"), (std::vector<int32_t>{1, 2, 3}));
}

TEST(Charsmap, maps_that_lead_outside_themselves_are_refused) {
  EXPECT_NE(charsmap_fault(""), "");
  EXPECT_NE(charsmap_fault("\xFF\xFF\xFF\xFF"), "");
  EXPECT_NE(charsmap_fault(charsmap(one_rule(0), "")), "");
  EXPECT_EQ(charsmap_fault(charsmap({0, 0}, "\0"s)), "a transition leaves the trie");
  EXPECT_EQ(charsmap_fault(charsmap(one_rule(9), "x\0"s)), "a replacement lies outside");
  EXPECT_EQ(charsmap_fault(charsmap(one_rule(0), "x"s)), "its last replacement has no end");
  EXPECT_EQ(charsmap_fault(charsmap(one_rule(0), "\xFF\0"s)), "a replacement is not UTF-8");
  EXPECT_EQ(charsmap_fault(charsmap(one_rule(0), std::string(300, 'x') + '\0')),
            "a replacement is too long");
  std::vector<uint32_t> loop = one_rule(0);
  loop[256 ^ 'A'] = (static_cast<uint32_t>('A') << 10) | (1u << 8) | 'A';  // back to where it was
  EXPECT_EQ(charsmap_fault(charsmap(loop, "x\0"s)), "the trie has a cycle");
  std::vector<uint32_t> away = one_rule(0);
  away[256 ^ 'A'] = (0x1FFFFFu << 10) | (1u << 9) | 'A';
  EXPECT_EQ(charsmap_fault(charsmap(away, "x\0"s)), "a transition leaves the trie");
}

}  // namespace
}  // namespace heddle
