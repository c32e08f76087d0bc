// A page: one HTML file that holds its data, style and scripts and asks the network for nothing.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/base/json/json.h"

namespace heddle::inspect {

/// What a page is made of. Its scripts run after theme.js, base.js, heatmap.js and linechart.js,
/// whose functions they find in `heddle`; they read `heddle.data` and fill `heddle.main`.
struct Page {
  std::string title;                 ///< also its first heading; cut after 80 characters
  Json data = {};                    ///< `heddle.data`
  std::vector<std::string> scripts;  ///< names in pages: {"attention.js"}
  bool asks_server = false;          ///< may ask the server that it came from, and no other
};

/// A script or a style of pages, compiled into the program by the build.
struct Asset {
  std::string_view name;  ///< "heatmap.js"
  std::string_view text;
};
/// All of them, by name.
std::span<const Asset> assets();
/// The text of one. Errors: internal if there is none of that name.
std::string_view asset(std::string_view name);

/// The text of the page, UTF-8. The same page gives the same bytes.
/// Errors: internal if there is no such script; data for NaN or infinity in `data`.
std::string page_html(const Page& page);

/// Writes the page, or any text that `what` names ("the page", "the JSON"), atomically. The path's
/// folder must be there.
/// Errors: data, naming the path and what to do, if its folder is missing or the path is a folder;
/// system for no permission or a full disk. The old file is then untouched.
void write_page(const std::string& path, const Page& page);
void write_output(const std::string& path, const std::string& text, const std::string& what);

/// Fails as write_page() would for what can be known before hours of work: a folder that is missing
/// or cannot be written to.
void check_output(const std::string& path, const std::string& what);

/// Weights from 0 to 1 as `heddle.unpack16` reads them: round(65535 x), little-endian, in base64.
/// What is outside is taken to the nearest end.
std::string pack_weights(const std::vector<float>& weights);
/// Integers below 65,536, the same way. Errors: internal if one is not.
std::string pack_indices(const std::vector<int64_t>& indices);

/// To so many digits; what is nearer to 0 than 2^-1022 is 0.
double rounded_to_digits(double x, int digits);

/// An array of what f makes of each.
template <class Items, class F>
Json json_list(const Items& items, const F& f) {
  Json list = Json::array();
  for (const auto& item : items) list.push_back(f(item));
  return list;
}
/// [rows, width] values as an array of rows. to_json: of one value
template <class T, class ToJson>
Json rows_json(const std::vector<T>& values, int64_t rows, int64_t width, const ToJson& to_json) {
  Json::Array all(static_cast<size_t>(rows), Json::array());
  for (int64_t i = 0; i < rows * width; ++i) all[i / width].push_back(to_json(values[i]));
  return all;
}

}  // namespace heddle::inspect
