// Sentences of texts, and what lies between them.
#include "heddle/text/strings/sentences.h"

#include <gtest/gtest.h>

namespace heddle {
namespace {

std::vector<std::string> sentences(const std::string& text, const std::string& language = "en") {
  std::vector<std::string> found;
  for (const TextPart& part : SentenceSplitter(language).split(text)) {
    found.push_back(text.substr(part.begin, part.end - part.begin));
  }
  return found;
}

using Sentences = std::vector<std::string>;

TEST(SentenceSplitter, marks_and_lines_end_sentences) {
  EXPECT_EQ(sentences("A dog runs. It barks!  Why?\nYes\n\n  \nNo."),
            (Sentences{"A dog runs.", "It barks!", "Why?", "Yes", "No."}));
  EXPECT_EQ(sentences("one sentence without an end"), Sentences{"one sentence without an end"});
  EXPECT_EQ(sentences(" \n\t "), Sentences{});
  EXPECT_EQ(sentences(""), Sentences{});
}

TEST(SentenceSplitter, quotes_stay_with_their_sentence_and_numbers_whole) {
  EXPECT_EQ(sentences("\"It rains.\" He left. It costs 3.50 euros."),
            (Sentences{"\"It rains.\"", "He left.", "It costs 3.50 euros."}));
}

TEST(SentenceSplitter, abbreviations_of_the_language_end_nothing) {
  EXPECT_EQ(sentences("Mr. Brown saw Mrs. Who. He waved."),
            (Sentences{"Mr. Brown saw Mrs. Who.", "He waved."}));
  EXPECT_EQ(sentences("Er kam z.B. Montag. Sie ging.", "de"),
            (Sentences{"Er kam z.B. Montag.", "Sie ging."}));
}

TEST(SentenceSplitter, parts_are_bytes_of_the_text_whatever_its_letters) {
  const std::string text = "Ein Mädchen läuft. Ça va? 犬が走る。猫が眠る。 Ende";
  EXPECT_EQ(sentences(text, "none-such"),
            (Sentences{"Ein Mädchen läuft.", "Ça va?", "犬が走る。", "猫が眠る。", "Ende"}));
  const SentenceSplitter used("de");
  used.split("Eins. Zwei.\nDrei.");
  EXPECT_EQ(used.split(text), SentenceSplitter("de").split(text));
}

}  // namespace
}  // namespace heddle
