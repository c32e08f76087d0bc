// Words that were seen, and others.
#include "heddle/text/known_words.h"

#include <gtest/gtest.h>

#include "heddle/base/files/files.h"
#include "tests/base/temporary.h"

namespace heddle {
namespace {

using Words = std::vector<std::string>;

KnownWords words_in(const Words& texts) {
  size_t at = 0;
  return *KnownWords::of_texts([&](std::string& text) {
    if (at < texts.size()) text = texts[at];
    return at++ < texts.size();
  });
}

TEST(KnownWords, words_are_lower_case_without_punctuation_hyphens_and_numbers) {
  EXPECT_EQ(words_of("\"Where is, my—ice-cream?\" (ÄPFEL) 17 3rd . I don’t\tknow\u00A0it…"),
            (Words{"where", "is", "my", "ice", "cream", "äpfel", "i", "don't", "know", "it"}));
  EXPECT_TRUE(words_of(" -- ?! ").empty());
}

TEST(KnownWords, unknown_words_are_those_that_no_text_had) {
  const KnownWords known = words_in({"Where is the station?", "We eat apples; and pears."});
  EXPECT_EQ(known.size(), 9u);
  EXPECT_TRUE(known.unknown_words("THE apples, station-where?").empty());
  EXPECT_EQ(known.unknown_words("the banana eats the Banana"), (Words{"banana", "eats", "banana"}));
}

TEST(KnownWords, set_is_read_as_it_was_written) {
  const TemporaryFolder folder;
  EXPECT_FALSE(KnownWords::find(folder.path()).has_value());
  words_in({"zwei Äpfel", "ein Apfel"}).save(folder.path());
  EXPECT_EQ(read_file(folder / "source_words.txt"), "apfel\nein\nzwei\näpfel\n");
  const KnownWords known = *KnownWords::find(folder.path());
  EXPECT_EQ(known.unknown_words("ein Apfel, drei Äpfel"), Words{"drei"});
  folder.write("source_words.txt", "a\n\xFF\n");
  expect_error(ErrorKind::data, {"source_words.txt: line 2: not UTF-8"},
               [&] { KnownWords::find(folder.path()); });
}

TEST(KnownWords, texts_add_to_the_words_that_were_there) {
  const auto of = [](std::vector<std::string> texts, KnownWords first) {
    size_t next = 0;
    return KnownWords::of_texts(
        [&](std::string& text) {
          if (next == texts.size()) return false;
          text = texts[next++];
          return true;
        },
        std::move(first));
  };
  const auto both = of({"two words"}, *of({"one dog"}, KnownWords()));
  ASSERT_TRUE(both);
  EXPECT_EQ(both->unknown_words("One dog, two words, three"), Words{"three"});
}

TEST(KnownWords, too_many_words_make_no_set_and_end_the_reading) {
  size_t asked = 0;
  const auto known = KnownWords::of_texts([&](std::string& text) {
    text.clear();
    for (size_t n = asked * 1000; n < (asked + 1) * 1000; ++n) {
      for (size_t rest = n + 1; rest > 0; rest /= 26) text += static_cast<char>('a' + rest % 26);
      text += ' ';
    }
    return ++asked < 1000;
  });
  EXPECT_FALSE(known.has_value());
  EXPECT_LT(asked, 80u);
}

}  // namespace
}  // namespace heddle
