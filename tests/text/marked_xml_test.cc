// XML through translations: what is kept, what is translated, and that it stays well-formed.
#include <random>

#include "heddle/base/error.h"
#include "heddle/text/strings/marked_text.h"

#include <gtest/gtest.h>

namespace heddle {
namespace {

using Links = MarkedText::Links;
using Texts = std::vector<std::string>;

std::string same(const std::string& xml) {
  const MarkedText text = MarkedText::of_xml(xml);
  Links straight;
  for (int32_t i = 0; i < 100; ++i) straight.emplace_back(i, i);
  return text.with(text.texts(), std::vector<Links>(text.count(), straight));
}

TEST(MarkedXml, the_same_words_give_the_same_xml) {
  for (const char* xml :
       {"<r><source>A man</source><target/></r>", "a <x>dog</x> runs", "", "plain", "<a/>",
        "<?xml version=\"1.0\"?>\n<!DOCTYPE r [<!ENTITY n \"<b>'x'</b>\"> <!-- ]> -->]>\n"
        "<r>\n  <title>One</title>\n  <link>Two</link>\n</r>\n",
        "<r>A <br/> <!-- <b> --> dog <?do it > x?> runs &n; on</r>", "<a>1 &lt; 2 &amp; 3</a>",
        "x <a/>A <b>.</b> <a/>A <b>.</b> ", "<svg><code>A dog</code> <p>two</p></svg>",
        "<p>x <p>y <p>z</p></p></p>", "<p><b></b></p>", "<a t='>'>A <b:c-d.e>dog</b:c-d.e></a >",
        "<A>x <a>y</a></A>"}) {
    EXPECT_EQ(same(xml), xml);
  }
}

TEST(MarkedXml, no_name_has_a_meaning) {
  const auto texts = [](const char* xml) { return MarkedText::of_xml(xml).texts(); };
  EXPECT_EQ(texts("<html><code>A dog</code><source>a cat</source><title>x</title></html>"),
            (Texts{"A dog", "a cat", "x"}));
  EXPECT_EQ(texts("<seg>A <p>dog</p> <code>runs</code>.</seg>"), Texts{"A dog runs."});
  EXPECT_EQ(texts("<a><![CDATA[x < y & z]]></a>"), Texts{"x < y & z"});
  EXPECT_EQ(same("<a><![CDATA[x < y & z]]></a>"), "<a>x &lt; y &amp; z</a>");
  EXPECT_EQ(texts("<a>&quot;x&apos;&#65;&#x42; &eacute; &#10;</a>"), Texts{"\"x'AB"});
  EXPECT_EQ(same("<a>x&#233; &eacute; &#10;</a>"), "<a>xé &eacute; &#10;</a>");
  const MarkedText kept = MarkedText::of_xml("<r><a translate='no'>x <a>y</a></a><b>z</b></r>");
  EXPECT_EQ(kept.texts(), Texts{"z"});
  EXPECT_EQ(kept.with(Texts{"Z"}, std::vector<Links>(1)),
            "<r><a translate='no'>x <a>y</a></a><b>Z</b></r>");
}

TEST(MarkedXml, what_is_not_well_formed_is_refused) {
  std::string deep = "x ";
  for (int i = 0; i < 65; ++i) deep += "<b>";
  for (int i = 0; i < 65; ++i) deep += "</b>";
  for (const std::string& xml :
       std::vector<std::string>{"<a>", "</a>", "<a></b>", "<a><b></a></b>", "1 < 2", "a & b", "<",
                                "<!-- x", "<![CDATA[x", "<?x", "<!DOCTYPE r", "<a b='", "<a", "<1>",
                                "&;", "&lt", "<!x>", "<A></a>", deep}) {
    EXPECT_THROW((void)MarkedText::of_xml(xml), Error) << xml;
  }
}

// --- any words, any links ------------------------------------------------------------------------

std::string random_xml(std::mt19937& random, int depth) {
  static const char* const kParts[] = {"A dog. ", "two", " ",          "\n",      "&amp;",
                                       "<br/>",   "&n;", "<!-- - -->", "<?p i?>", "<![CDATA[<]]>"};
  std::string xml;
  for (int i = 0; i < static_cast<int>(random() % 5); ++i) {
    const std::string name = i % 2 == 0 ? "p" : "x";
    const bool is_element = depth > 0 && random() % 2 == 0;
    xml += is_element ? "<" + name + " a='>'>" + random_xml(random, depth - 1) + "</" + name + ">"
                      : kParts[random() % std::size(kParts)];
  }
  return xml;
}

TEST(MarkedXml, what_is_written_is_well_formed_and_keeps_what_has_no_words) {
  std::mt19937 random(7);
  const SentenceSplitter splitter("en");
  const auto count = [](const std::string& text, const std::string& part) {
    int n = 0;
    for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at) ++n;
    return n;
  };
  for (int i = 0; i < 3000; ++i) {
    const std::string xml = random_xml(random, 4);
    MarkedText text = MarkedText::of_xml(xml);
    if (i % 2 == 0) text.split(splitter);
    Texts translations;
    std::vector<Links> links(text.count());
    for (Links& of_text : links) {
      std::string& words = translations.emplace_back();
      for (uint32_t k = random() % 4; k-- > 0;) {
        words += "<w. ";
        of_text.emplace_back(random() % 6, random() % 4);
      }
    }
    const std::string out = text.with(translations, links);
    ASSERT_NO_THROW((void)MarkedText::of_xml(out)) << xml << "\n" << out;
    for (const char* part : {"<br/>", "&n;", "<!-- - -->", "<?p i?>"}) {
      EXPECT_EQ(count(out, part), count(xml, part)) << xml << "\n" << out;
    }
    for (const char* part : {"<p a", "<x a"}) {
      EXPECT_GE(count(out, part), count(xml, part)) << xml << "\n" << out;
    }
  }
}

TEST(MarkedXml, large_ones_cost_as_much_as_they_are_long) {
  std::string many, flat = "x ", entities, open;
  for (int i = 0; i < 80'000; ++i) {
    many += "<a>A</a>\n", flat += "<a/>A <b>.</b> ", entities += "&a;", open += "<!DOCTYPE '";
  }
  EXPECT_EQ(MarkedText::of_xml(many).count(), 80'000u);
  EXPECT_EQ(MarkedText::of_xml(flat).texts().size(), 1u);
  EXPECT_EQ(MarkedText::of_xml(entities).texts(), Texts{""});
  EXPECT_THROW((void)MarkedText::of_xml(open), Error);
}

}  // namespace
}  // namespace heddle
