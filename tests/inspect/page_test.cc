// The shell of every page: data that cannot break out, nothing from the network, writing.
#include "heddle/inspect/pages/page.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <limits>

#include "heddle/base/error.h"
#include "heddle/base/files/files.h"
#include "tests/base/temporary.h"

namespace heddle::inspect {
namespace {

Page small_page() {
  Page page{.title = "Heads & <tails>", .scripts = {}};
  page.data["text"] = "</script><!-- & \xE2\x80\xA8 \xE2\x80\xA9 \"quoted\"";
  return page;
}

// The text between the data element's tags.
std::string data_of(const std::string& html) {
  const std::string open = "<script type=\"application/json\" id=\"data\">";
  const size_t begin = html.find(open) + open.size();
  return html.substr(begin, html.find("</script>", begin) - begin);
}

TEST(Page, data_reads_back_whatever_it_holds) {
  const Page page = small_page();
  const std::string data = data_of(page_html(page));
  EXPECT_EQ(Json::parse(data), page.data);
  for (const char* part : {"<", ">", "&", "\xE2\x80\xA8", "\xE2\x80\xA9"}) {
    EXPECT_EQ(data.find(part), std::string::npos) << part;
  }
}

TEST(Page, title_is_shown_as_it_is) {
  const std::string html = page_html(small_page());
  EXPECT_NE(html.find("<title>Heads &amp; &lt;tails&gt;</title>"), std::string::npos);
  EXPECT_EQ(html.find("<tails>"), std::string::npos);
}

TEST(Page, long_title_is_cut_between_characters) {
  Page page = small_page();
  page.title.clear();
  for (int i = 0; i < 81; ++i) page.title += "ü";
  EXPECT_NE(page_html(page).find("<title>" + page.title.substr(2) + "…</title>"),
            std::string::npos);
  page.title.resize(160);
  EXPECT_NE(page_html(page).find("<title>" + page.title + "</title>"), std::string::npos);
}

TEST(Page, asks_the_network_for_nothing) {
  std::string html = page_html(small_page());
  const std::string name_space = "http://www.w3.org/2000/svg";  // a name, never fetched
  for (size_t at; (at = html.find(name_space)) != std::string::npos;) {
    html.erase(at, name_space.size());
  }
  for (const char* part : {"http:", "https:", "src=", "@import", "fetch(", "XMLHttpRequest"}) {
    EXPECT_EQ(html.find(part), std::string::npos) << part;
  }
  EXPECT_NE(html.find("default-src 'none'"), std::string::npos);
}

TEST(Page, scripts_are_inside_and_none_ends_early) {
  const std::string html = page_html(small_page());
  for (const Asset& a : assets()) {
    EXPECT_EQ(a.text.find("</script"), std::string_view::npos) << a.name;
    EXPECT_EQ(a.text.find("</style"), std::string_view::npos) << a.name;
  }
  EXPECT_NE(html.find(asset("heatmap.js")), std::string::npos);
  EXPECT_NE(html.find(asset("page.css")), std::string::npos);
}

TEST(Page, script_that_is_not_there_is_a_bug_and_infinity_a_data_error) {
  Page page = small_page();
  page.scripts = {"no_such.js"};
  expect_error(ErrorKind::internal, {"no_such.js"}, [&] { page_html(page); });
  page = small_page();
  page.data["loss"] = std::numeric_limits<double>::infinity();
  expect_error(ErrorKind::data, {"inf"}, [&] { page_html(page); });
}

TEST(Page, is_written_whole_and_replaces_the_old_one) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/page.html";
  write_output(path, "old", "the page");
  write_page(path, small_page());
  EXPECT_EQ(read_file(path), page_html(small_page()));
  EXPECT_EQ(list_directory(folder.path()).size(), 1u);
}

TEST(Page, that_cannot_be_written_is_an_error_that_names_path_and_remedy) {
  const TemporaryFolder folder;
  const std::string missing = folder.path() + "/none/page.html";
  expect_error(ErrorKind::data, {missing, "does not exist", "create it"},
               [&] { write_page(missing, small_page()); });
  expect_error(ErrorKind::data, {"it is a folder"},
               [&] { write_page(folder.path(), small_page()); });
  write_output(folder.path() + "/file", "text", "the page");
  expect_error(ErrorKind::data, {"is a file"},
               [&] { write_page(folder.path() + "/file/page.html", small_page()); });
  expect_error(ErrorKind::usage, {"path is empty"}, [&] { write_page("", small_page()); });
}

TEST(Page, folder_without_permission_is_a_system_error) {
  if (geteuid() == 0) GTEST_SKIP() << "root may write anywhere but there";
  expect_error(ErrorKind::system, {"/usr/page.html"},
               [&] { write_page("/usr/page.html", small_page()); });
}

// By hand: 0, 1 and 0.5 are 0x0000, 0xFFFF and 32768 = 0x8000 (32767.5 rounds away from zero), so
// the bytes are 00 00 FF FF 00 80.
TEST(Pack, weights_are_16_bits_little_endian_in_base64) {
  EXPECT_EQ(pack_weights({0.0f, 1.0f, 0.5f}), "AAD//wCA");
  EXPECT_EQ(pack_weights({-1.0f, 2.0f}), "AAD//w==");
  EXPECT_EQ(pack_weights({}), "");
}

// 258 = 0x0102 is 02 01; one number leaves one byte of three out, two leave two.
TEST(Pack, indices_are_packed_the_same_way) {
  EXPECT_EQ(pack_indices({258}), "AgE=");
  EXPECT_EQ(pack_indices({258, 65535}), "AgH//w==");
  expect_error(ErrorKind::internal, {"65536"}, [] { pack_indices({65536}); });
}

}  // namespace
}  // namespace heddle::inspect
