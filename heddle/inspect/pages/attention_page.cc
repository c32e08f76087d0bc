// Maps as JSON, packed for the page or plain for other programs, and as a table.
#include "heddle/inspect/pages/attention_page.h"

#include <algorithm>
#include <cmath>

namespace heddle::inspect {
namespace {

double rounded(double x) { return std::round(x * 1e6) / 1e6; }

Json sides_json(const Subject& subject) {
  Json sides = Json::array();
  for (const Side& side : subject.sides()) {
    Json json = Json::object(), words = Json::array();
    for (const Side::Word& word : side.words) {
      words.push_back(Json::Array{word.begin, word.end, word.text});
    }
    json["name"] = side.name;
    json["tokens"] = side.tokens;
    json["words"] = words;
    sides.push_back(json);
  }
  return sides;
}

Json kinds_json(const Subject& subject) {
  Json kinds = Json::array();
  for (const AttentionKind& kind : subject.kinds()) {
    kinds.push_back(Json::object({{"name", kind.name},
                                  {"queries", kind.queries},
                                  {"keys", kind.keys},
                                  {"layers", kind.layers},
                                  {"heads", kind.heads},
                                  {"is_causal", kind.is_causal},
                                  {"before", kind.before}}));
  }
  return kinds;
}

Json head_json(const HeadMap& map) {
  Json json = Json::object({{"kind", map.kind},
                            {"layer", map.layer},
                            {"head", map.head},
                            {"entropy", rounded(map.entropy)},
                            {"distance", rounded(map.distance)}});
  json["importance"] = map.importance ? Json(rounded(*map.importance)) : Json();
  if (map.link) {
    json["link"] = rounded(*map.link);
    json["words_above"] = map.words_above;
  }
  return json;
}

// [rows, width] values as an array of rows.
template <class T, class ToJson>
Json rows_json(const std::vector<T>& values, int64_t rows, int64_t width, const ToJson& to_json) {
  Json::Array all;
  for (int64_t i = 0; i < rows; ++i) {
    Json::Array row;
    for (int64_t j = 0; j < width; ++j) row.push_back(to_json(values[i * width + j]));
    all.push_back(Json(std::move(row)));
  }
  return Json(std::move(all));
}

void add_packed(Json& json, const HeadMap& map) {
  if (!map.sparse) {
    json["weights"] = pack_weights(map.weights);
    return;
  }
  json["kept"] = map.sparse->kept;
  json["columns"] = pack_indices(map.sparse->columns);
  json["weights"] = pack_weights(map.sparse->weights);
  json["grid_rows"] = map.sparse->grid_rows;
  json["grid_cols"] = map.sparse->grid_cols;
  json["grid"] = pack_weights(map.sparse->grid);
}

void add_plain(Json& json, const HeadMap& map) {
  const auto number = [](float x) { return Json(rounded(x)); };
  if (!map.sparse) {
    json["weights"] = rows_json(map.weights, map.rows, map.cols, number);
    return;
  }
  const auto index = [](int64_t x) { return Json(x); };
  json["columns"] = rows_json(map.sparse->columns, map.rows, map.sparse->kept, index);
  json["weights"] = rows_json(map.sparse->weights, map.rows, map.sparse->kept, number);
}

Json describe(const Subject& subject, const std::vector<HeadMap>& maps,
              const std::optional<Link>& link, void (*add_weights)(Json&, const HeadMap&)) {
  Json json = Json::object({{"model", subject.path()},
                            {"model_type", subject.type()},
                            {"texts", subject.texts()},
                            {"measure", subject.measure()}});
  json["from"] = link ? Json(link->from) : Json();
  json["to"] = link ? Json(link->to) : Json();
  json["sides"] = sides_json(subject);
  json["kinds"] = kinds_json(subject);
  json["heads"] = Json::array();
  for (const HeadMap& map : maps) {
    Json head = head_json(map);
    add_weights(head, map);
    json["heads"].push_back(std::move(head));
  }
  return json;
}

}  // namespace

Page attention_page(const Subject& subject, const std::vector<HeadMap>& maps,
                    const std::optional<Link>& link, size_t shown) {
  Page page{
      .title = "Attention: " + subject.texts().front(),
      .data = describe(subject, maps, link, add_packed),
      .scripts = {"attention.js", "attention_lines.js", "attention_views.js", "attention_page.js"}};
  page.data["shown"] = shown;
  return page;
}

Json attention_json(const Subject& subject, const std::vector<HeadMap>& maps,
                    const std::optional<Link>& link) {
  return describe(subject, maps, link, add_plain);
}

size_t first_shown(const std::vector<HeadMap>& maps) {
  const std::vector<size_t> linked = ranking(maps, true);
  if (!linked.empty()) return linked.front();
  const size_t last_kind = maps.back().kind;
  for (const size_t i : ranking(maps, false)) {
    if (maps[i].kind == last_kind) return i;
  }
  return 0;
}

std::string heads_table(const Subject& subject, const std::vector<HeadMap>& maps,
                        const std::optional<Link>& link, size_t most) {
  const std::vector<size_t> order = ranking(maps, link.has_value());
  const std::string what = link ? link->from + " -> " + link->to : "";
  std::string table;
  for (size_t i = 0; i < subject.texts().size(); ++i) {
    table += fmt::format("{}: {}\n", subject.sides()[i].name, subject.texts()[i]);
  }
  table += fmt::format("\n{:<25}", "head");
  if (link) table += fmt::format("  {:>20}  {:>12}", what, "words above");
  table += fmt::format("  {:>8}  {:>9}  {:>10}\n", "entropy", "distance", "importance");
  for (size_t k = 0; k < std::min(most, order.size()); ++k) {
    const HeadMap& map = maps[order[k]];
    table += fmt::format("{:<25}", head_name(subject, map));
    if (link) table += fmt::format("  {:>20.3f}  {:>12}", *map.link, map.words_above);
    table += fmt::format("  {:>8.3f}  {:>9.2f}  ", map.entropy, map.distance);
    table += map.importance ? fmt::format("{:>+10.4f}\n", *map.importance)
                            : fmt::format("{:>10}\n", "-");
  }
  if (most < order.size()) table += fmt::format("... and {} more\n", order.size() - most);
  return table +
         fmt::format(
             "\nentropy: nats, 0 where each row has one key; distance: tokens between query "
             "and key;\nimportance: {}, when the head's output is zero\n",
             subject.measure());
}

}  // namespace heddle::inspect
