// Tags and spans through translations whose words and alignments the test gives.
#include "heddle/text/strings/marked_text.h"

#include "heddle/text/strings/html_entities.h"

#include <gtest/gtest.h>

namespace heddle {
namespace {

using Links = MarkedText::Links;
using Texts = std::vector<std::string>;

std::string with(const MarkedText& text, const Texts& translations,
                 const std::vector<Links>& links) {
  return text.with(translations, links);
}
// Word i goes with word i.
Links straight(size_t words) {
  Links links;
  for (size_t i = 0; i < words; ++i) {
    links.emplace_back(static_cast<int32_t>(i), static_cast<int32_t>(i));
  }
  return links;
}

TEST(MarkedText, tags_follow_their_words) {
  const MarkedText text = MarkedText::of_html("the <b>red</b> house of <i>my mother</i>");
  EXPECT_EQ(text.texts(), Texts{"the red house of my mother"});
  EXPECT_EQ(with(text, {"la maison rouge de ma mère"},
                 {{{0, 0}, {2, 1}, {1, 2}, {3, 3}, {4, 4}, {5, 5}}}),
            "la maison <b>rouge</b> de <i>ma mère</i>");
}

TEST(MarkedText, the_same_words_give_the_same_html) {
  for (const char* html :
       {"<p>A <b>dog</b> runs.</p>\n<p>Two <i>men <b>sit</b></i></p>\n", "plain", "",
        "<ul> <li>one</li> <li>two &amp; three</li> </ul>", "a <b>dog</b>, <i>a cat</i>!",
        "see <code>x < 1</code> and <img src=\"a>b.png\"> here", "<!-- none --> text",
        "name: <span translate=\"no\">Ann Lee</span> left", "x<br>y<br/>z", "<div><p></p></div>",
        "<a href='?a=1&b=2'>go <em>on</em></a>"}) {
    const MarkedText text = MarkedText::of_html(html);
    std::vector<Links> links(text.texts().size(), straight(20));
    EXPECT_EQ(with(text, text.texts(), links), html);
  }
}

TEST(MarkedText, blocks_are_texts_of_their_own_and_entities_characters) {
  const MarkedText text = MarkedText::of_html("<h1>Fish &amp; chips</h1><p>1 &lt; 2&#33;</p>");
  EXPECT_EQ(text.texts(), (Texts{"Fish & chips", "1 < 2!"}));
  EXPECT_EQ(with(text, {"Fisch & Chips", "1 < 2!"}, {straight(3), straight(3)}),
            "<h1>Fisch &amp; Chips</h1><p>1 &lt; 2!</p>");
}

TEST(MarkedText, names_are_closed_as_they_were_opened_and_known_in_any_case) {
  const MarkedText text = MarkedText::of_html("<MyTag a='1'>the dog</MyTag> and <B>a cat</b>");
  EXPECT_EQ(with(text, {"der Hund und eine Katze"}, {straight(5)}),
            "<MyTag a='1'>der Hund</MyTag> und <B>eine Katze</B>");
}

TEST(MarkedText, named_characters_are_those_of_html) {
  EXPECT_EQ(without_entities("caf&eacute; &ndash; it&rsquo;s &copy; &thetasym;&apos;&zwnj;"),
            "café – it’s © ϑ'\u200c");
  EXPECT_EQ(without_entities("&#x1F600;&#233;&Eacute;&eacute"), "\U0001F600éÉ&eacute");
  EXPECT_EQ(without_entities("&; &nosuch; &#xD800; &#0; &#x110000; &#; a&b;"),
            "&; &nosuch; &#xD800; &#0; &#x110000; &#; a&b;");
}

TEST(MarkedText, elements_whose_words_are_lost_and_marks_stay) {
  const MarkedText text = MarkedText::of_html("he <b>did</b> not <img src=x> go");
  // "did" has no word in the translation.
  EXPECT_EQ(with(text, {"er ging nicht"}, {{{0, 0}, {3, 1}, {2, 2}}}),
            "er<b></b> <img src=x> ging nicht");
  EXPECT_EQ(with(text, {""}, {{}}), "<b></b><img src=x>");
  // Links to words that are not there, and none at all, lose nothing.
  EXPECT_EQ(with(text, {"ja"}, {{{99, 0}, {0, 99}, {-1, 0}}}), "ja<b></b> <img src=x>");
}

TEST(MarkedText, what_is_no_tag_is_text_and_nothing_is_lost_of_broken_html) {
  EXPECT_EQ(MarkedText::of_html("1 < 2 and 3 > 2").texts(), Texts{"1 < 2 and 3 > 2"});
  EXPECT_EQ(MarkedText::of_html("a </b> c").texts(), Texts{"a c"});
  for (const char* html : {"<b>never closed", "a <b", "<", "</", "<!--", "<script>let x = 1",
                           "</i></i> x", "<b><i>crossed</b></i>", "&", "&#xFFFFFFFF;", "&#0;"}) {
    const MarkedText text = MarkedText::of_html(html);
    std::vector<Links> links(text.texts().size(), straight(5));
    const std::string out = with(text, text.texts(), links);
    EXPECT_FALSE(out.empty()) << html;
  }
  EXPECT_EQ(MarkedText::of_html("<code>a</codex> b</code>\u0130 c").texts(), Texts{"\u0130 c"});
  EXPECT_EQ(MarkedText::of_html("a <b c <i>d</i>").texts(), Texts{"a <b c d"});
  std::string many, kept;  // each of which costs as much as the rest were it looked at again
  for (int i = 0; i < 100'000; ++i) many += "<a&", kept += "<code>x</code>";
  EXPECT_EQ(MarkedText::of_html(many).texts().size(), 1u);
  EXPECT_EQ(MarkedText::of_html(kept).texts(), Texts{""});
  std::string deep;
  for (int i = 0; i < 5000; ++i) deep += "<b>";
  EXPECT_EQ(MarkedText::of_html(deep + "x").texts(), Texts{"x"});
}

TEST(MarkedText, spans_that_are_kept_survive_whatever_is_written) {
  const Texts kept = {"{name}", "%s", "{name}!"};
  const MarkedText text = MarkedText::of_text("hello {name}! you have %s mails", kept);
  EXPECT_EQ(text.texts(), Texts{"hello you have mails"});
  EXPECT_EQ(with(text, {"hallo du hast Briefe"}, {straight(4)}), "hallo {name}! du hast %s Briefe");
  EXPECT_EQ(with(text, {""}, {{}}), "{name}! %s");
  const MarkedText alone = MarkedText::of_text("%s", kept);
  EXPECT_EQ(with(alone, {""}, {{}}), "%s");
}

}  // namespace
}  // namespace heddle
