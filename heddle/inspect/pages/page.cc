// Pages: HTML around style, scripts and data, and writing it where it was asked for.
#include "heddle/inspect/pages/page.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <filesystem>
#include <limits>

#include "heddle/base/error.h"
#include "heddle/base/files/files.h"
#include "heddle/base/utf8.h"
#include "heddle/text/strings/strings.h"

namespace heddle::inspect {
namespace {

// Nothing may be fetched, whatever a script asks for.
constexpr std::string_view kPolicy =
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data: "
    "blob:";

constexpr int64_t kMostTitle = 80;  // characters

constexpr std::array<std::string_view, 3> kShared = {"base.js", "heatmap.js", "linechart.js"};

constexpr auto kAssets = std::to_array<Asset>({
#include "assets.inc"  // written by CMakeLists.txt
});

std::string script(std::string_view name) {
  return fmt::format("<script>\n{}</script>\n", asset(name));
}

// One escape after the other: that of what others begin with stands first.
std::string escaped(std::string text,
                    std::initializer_list<std::pair<std::string_view, std::string_view>> escapes) {
  for (const auto& [from, to] : escapes) text = replace_all(text, from, to);
  return text;
}

// JSON inside a <script> element: nothing in it ends the element or a line. What is escaped stands
// only inside strings, where JSON lets every character be an escape.
std::string script_json(const Json& data) {
  return escaped(data.dump(), {{"<", "\\u003c"},
                               {">", "\\u003e"},
                               {"&", "\\u0026"},
                               {"\xE2\x80\xA8", "\\u2028"},
                               {"\xE2\x80\xA9", "\\u2029"}});
}

template <class Values, class ToInteger>
std::string pack16(const Values& values, const ToInteger& to_integer) {
  std::string bytes;
  bytes.reserve(2 * values.size());
  for (const auto value : values) {
    const uint32_t x = to_integer(value);
    bytes += static_cast<char>(x & 255u);
    bytes += static_cast<char>(x >> 8);
  }
  return base64_text(bytes);
}

}  // namespace

std::span<const Asset> assets() { return kAssets; }

std::string_view asset(std::string_view name) {
  const auto* const found = std::ranges::find(kAssets, name, &Asset::name);
  check(found != kAssets.end(), ErrorKind::internal, "pages has no '{}'", name);
  return found->text;
}

std::string page_html(const Page& page) {
  const std::string title = html_escaped(shortened(page.title, kMostTitle));
  std::string html = "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n";
  html += fmt::format("<meta http-equiv=\"Content-Security-Policy\" content=\"{}{}\">\n", kPolicy,
                      page.asks_server ? "; connect-src 'self'" : "");
  html += "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n";
  html += fmt::format("<meta name=\"generator\" content=\"heddle\">\n<title>{}</title>\n", title);
  html += fmt::format("<style>\n{}</style>\n{}</head>\n", asset("page.css"), script("theme.js"));
  html += fmt::format(
      "<body>\n<header><h1>{}</h1><button type=\"button\" id=\"theme\" title=\"switch between "
      "light and dark\">light / dark</button></header>\n<main id=\"page\"><noscript>This page "
      "draws itself with JavaScript, from the data inside it.</noscript></main>\n",
      title);
  html += fmt::format("<script type=\"application/json\" id=\"data\">{}</script>\n",
                      script_json(page.data));
  for (const std::string_view name : kShared) html += script(name);
  for (const std::string& name : page.scripts) html += script(name);
  return html + "</body>\n</html>\n";
}

namespace {

void check_folder(const std::string& folder, const std::string& path, const std::string& what) {
  check(path_exists(folder), ErrorKind::data,
        "{}: cannot write {}: the folder {} does not exist; create it, or name another path", path,
        what, folder);
  check(is_directory(folder), ErrorKind::data,
        "{}: cannot write {}: {} is a file, not a folder; name another path", path, what, folder);
  if (access(folder.c_str(), W_OK) != 0) {
    fail_errno(fmt::format("cannot write {} into its folder", what), path, errno);
  }
}

}  // namespace

void check_output(const std::string& path, const std::string& what) {
  check(!path.empty(), ErrorKind::usage, "{}: the path is empty; name a file to write", what);
  check(path != "-", ErrorKind::usage,
        "cannot write {} to '-'; name a file, or /dev/stdout for the standard output", what);
  check(!is_directory(path), ErrorKind::data,
        "{}: cannot write {}: it is a folder; name a file, as in {}", path, what,
        join_path(path, "page.html"));
  std::error_code error;
  const auto target = std::filesystem::canonical(path, error);  // links followed
  if (error) return check_folder(parent_path(path), path, what);
  if (std::filesystem::is_regular_file(target)) {  // it is replaced where it lies
    return check_folder(parent_path(target.string()), path, what);
  }
  if (access(path.c_str(), W_OK) != 0)
    fail_errno(fmt::format("cannot write {}", what), path, errno);
}

void write_output(const std::string& path, const std::string& text, const std::string& what) {
  check_output(path, what);
  write_file_atomic(path, text);
}

void write_page(const std::string& path, const Page& page) {
  write_output(path, page_html(page), "the page");
}

double rounded_to_digits(double x, int digits) {
  if (std::abs(x) < std::numeric_limits<double>::min()) return 0;
  return std::stod(fmt::format("{:.{}g}", x, digits));
}

std::string pack_weights(const std::vector<float>& weights) {
  return pack16(weights, [](float x) {
    return static_cast<uint32_t>(std::lround(std::clamp(x, 0.0f, 1.0f) * 65535.0f));
  });
}

std::string pack_indices(const std::vector<int64_t>& indices) {
  return pack16(indices, [](int64_t x) {
    check(x >= 0 && x < 65536, ErrorKind::internal, "pack_indices: {} does not fit 16 bits", x);
    return static_cast<uint32_t>(x);
  });
}

}  // namespace heddle::inspect
