// Names of codes as ICU knows them, and of what is no code.
#include "heddle/text/strings/language_names.h"

#include <gtest/gtest.h>

namespace heddle {
namespace {

TEST(LanguageNames, languages_have_english_names_and_what_is_none_its_code) {
  EXPECT_EQ(language_name("de"), "German");
  EXPECT_EQ(language_name("pt"), "Portuguese");
  EXPECT_EQ(language_name("deu_Latn"), "German (Latin)");
  EXPECT_EQ(language_name("ar_AR"), "Arabic");
  EXPECT_EQ(language_name("qx"), "qx");
  EXPECT_EQ(language_name(""), "");
  EXPECT_EQ(language_name("a b/c"), "a b/c");
}

}  // namespace
}  // namespace heddle
