// The page of a table of positions: heat map, waves, cosine similarity, numbers.
#include <algorithm>
#include <cmath>

#include "heddle/inspect/pages/page.h"
#include "heddle/inspect/positions.h"

namespace heddle::inspect {
namespace {

// Beyond so many numbers they are packed in 16 bits, some 2.7 bytes each instead of 9.
constexpr size_t kExactNumbers = 1 << 15;
constexpr size_t kMostNumbers = 1 << 22;

Json rounded(const std::vector<float>& values) {
  Json list = Json::array();
  for (const float x : values) list.push_back(std::round(static_cast<double>(x) * 1e6) / 1e6);
  return list;
}

}  // namespace

void write_positions_page(const std::string& path, const PositionTable& table,
                          const std::string& title) {
  check(table.values.size() <= kMostNumbers, ErrorKind::usage,
        "{} numbers are too many for a page, which holds {}; ask for fewer `positions`, or for the "
        "numbers alone",
        table.values.size(), kMostNumbers);
  Page page{.title = "Positions" + title, .scripts = {"positions.js"}};
  Json& data = page.data;
  data["kind"] = table.kind;
  data["about"] = table.about;
  data["positions"] = table.positions;
  data["columns"] = table.columns;
  data["names"] = table.names;
  if (table.kind == "rotary") {
    data["frequencies"] = table.frequencies;
  } else if (table.values.size() <= kExactNumbers) {
    data["values"] = rounded(table.values);
  } else {
    float most = 0;
    for (const float x : table.values) most = std::max(most, std::abs(x));
    std::vector<float> shares;
    for (const float x : table.values) shares.push_back(most > 0 ? (x / most + 1) / 2 : 0.5f);
    data["packed"] = pack_weights(shares);
    data["most"] = static_cast<double>(most);
  }
  write_page(path, page);
}

}  // namespace heddle::inspect
