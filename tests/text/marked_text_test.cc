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

// --- sentences -----------------------------------------------------------------------------------

MarkedText split_html(std::string_view html) {
  MarkedText text = MarkedText::of_html(html);
  text.split(SentenceSplitter("en"));
  return text;
}

TEST(MarkedText, sentences_of_a_block_are_texts_of_their_own) {
  const MarkedText text = split_html("<p>A man rides. Two <b>dogs</b> run!\n A cat.</p><p>One</p>");
  EXPECT_EQ(text.texts(), (Texts{"A man rides.", "Two dogs run!", "A cat.", "One"}));
  EXPECT_EQ(text.count(), 4u);
  EXPECT_EQ(with(text, {"Ein Mann fährt.", "Hunde rennen zwei!", "Eine Katze.", "Eins"},
                 {straight(3), {{1, 0}, {2, 1}, {0, 2}}, straight(2), straight(1)}),
            "<p>Ein Mann fährt. <b>Hunde</b> rennen zwei!\n Eine Katze.</p><p>Eins</p>");
  // One that has no translation takes none of the others' words.
  EXPECT_EQ(with(text, {"Ein Mann.", "", "Eine Katze.", ""}, {straight(2), {}, {}, {}}),
            "<p>Ein Mann.<b></b>\n Eine Katze.</p><p></p>");
}

TEST(MarkedText, elements_and_marks_across_borders_of_sentences_stay_whole) {
  for (const char* html :
       {"<p>A <b>dog runs. Two</b> men sit.</p>", "<i>A dog. <b>A cat. A</b> man.</i>\n",
        "He left. <img src=x> She stays. <code>x</code> is there.", "A.<br>B. C.\n\nD",
        "A dog.<!-- 1 --> A cat.", "see <code>x</code>. Then", "<b>你好。再见。</b>"}) {
    const MarkedText text = split_html(html);
    std::vector<Links> links(text.count(), straight(20));
    EXPECT_EQ(with(text, text.texts(), links), html);
  }
  EXPECT_EQ(split_html("<b>你好。再见。</b>").texts(), (Texts{"你好。", "再见。"}));
  // Links count from the sentence's first word.
  const MarkedText text = split_html("A <b>dog runs. Two</b> men sit. <img> She left.");
  EXPECT_EQ(with(text, {"Rennt Hund ein", "Männer zwei", "Ging sie"},
                 {{{2, 0}, {1, 1}, {0, 2}}, {{1, 0}, {0, 1}}, {{1, 0}, {0, 1}}}),
            "<b>Rennt Hund</b> ein Männer <b>zwei</b> Ging <img> sie");
}

TEST(MarkedText, lines_end_sentences_where_there_are_no_tags) {
  MarkedText text = MarkedText::of_text("hello {n}\nyou there\n", std::vector<std::string>{"{n}"});
  text.split(SentenceSplitter("en"));
  EXPECT_EQ(text.texts(), (Texts{"hello", "you there"}));
  EXPECT_EQ(with(text, {"hallo", "du da"}, {straight(1), straight(2)}), "hallo {n}\ndu da\n");
  EXPECT_EQ(split_html("hello\nyou there").texts(), Texts{"hello you there"});
}

// --- what is kept --------------------------------------------------------------------------------

TEST(MarkedText, elements_that_are_not_to_be_translated_are_kept_whole) {
  for (const std::string kept :
       {"<p translate=\"no\">A dog</p>", "<div class=\"a notranslate b\">A <p>dog</p></div>",
        "<span translate='no'>A <span>dog</span> x</span>", "<SPAN TRANSLATE=NO>A dog</span>",
        "<li class=notranslate>A <!-- </li> --> dog</li>",
        "<div translate=no>A <div/> <br> <diva></div></div>", "<code>a <code>b</code> c</code>",
        "<td title='>' translate = 'no'>A dog</td>"}) {
    const MarkedText text = MarkedText::of_html("the " + kept + " cat");
    std::string words;
    for (const std::string& one : text.texts()) words += one + " ";
    EXPECT_EQ(words, "the cat ") << kept;
    EXPECT_EQ(with(text, text.texts(), {straight(2), straight(2)}), "the " + kept + " cat");
  }
  for (const char* other :
       {"<p translate=\"yes\">dog</p>", "<p class=\"donotranslate\">dog</p>",
        "<p title='translate=\"no\"'>dog</p>", "<p>dog</p>", "<script>\"<script>\"</script>dog",
        "<hr class=notranslate>dog", "<p translate>dog</p>"}) {
    EXPECT_EQ(MarkedText::of_html(other).texts().back(), "dog") << other;
  }
  // Each of which would be sought through the rest, or written in small letters again.
  std::string open, names;
  for (int i = 0; i < 40'000; ++i) open += "<p translate=no><p></p>", names += "</b>";
  EXPECT_EQ(MarkedText::of_html(open).texts().size(), 0u);
  std::string deep;
  for (int i = 0; i < 64; ++i) deep += "<" + std::string(8000, 'x') + ">";
  EXPECT_EQ(MarkedText::of_html(deep + names + "x").texts(), Texts{"x"});
}

TEST(MarkedText, a_mark_that_moves_from_the_beginning_is_parted_from_words) {
  const MarkedText text = MarkedText::of_html("<p><span translate=no>Ann</span> sees a dog</p>");
  EXPECT_EQ(with(text, {"ein Hund sieht"}, {{{1, 0}, {2, 1}, {0, 2}}}),
            "<p>ein Hund <span translate=no>Ann</span> sieht</p>");
}

TEST(MarkedText, elements_without_words_stay_in_their_block) {
  const char* html = "<p><i class=x></i></p> <p>a</p><ul>\n <li><b><u></u></b></li></ul><a></a>";
  const MarkedText text = MarkedText::of_html(html);
  EXPECT_EQ(text.texts(), (Texts{"", "a", "", ""}));
  EXPECT_EQ(with(text, text.texts(), std::vector<Links>(4, straight(1))),
            "<p><i class=x></i></p> <p>a</p><ul>\n <li><b></b><u></u></li></ul><a></a>");
}

TEST(MarkedText, many_marks_among_many_words_cost_as_much_as_both) {
  std::string html;
  for (int i = 0; i < 60'000; ++i) html += "Dog. <i>a</i><br-x/> ";
  const MarkedText text = split_html(html);
  const std::vector<Links> links(text.count());
  EXPECT_GT(with(text, text.texts(), links).size(), html.size() / 2);
  std::string word;  // of sentences without spaces
  for (int i = 0; i < 100'000; ++i) word += "好。";
  EXPECT_EQ(split_html(word).count(), 100'000u);
}

}  // namespace
}  // namespace heddle
