// Maps over an image as JSON, packed for the page or plain for other programs, and as a table.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "heddle/base/rounded.h"
#include "heddle/inspect/images/image_attention.h"
#include "heddle/inspect/run_history.h"

namespace heddle::inspect {
namespace {

constexpr size_t kMostClasses = 10;

double six_digits(double x) { return rounded(x, 6); }

Json grid_json(const CellGrid& grid) {
  return Json::object(
      {{"tokens", grid.tokens}, {"rows", grid.size.height}, {"columns", grid.size.width}});
}

// Cells and regions are below 65,535, which stands for none.
std::string pack_cells(const std::vector<int32_t>& cells) {
  constexpr int32_t kNone = 65535;
  std::vector<int64_t> packed;
  for (const int32_t cell : cells) packed.push_back(cell < 0 || cell > kNone ? kNone : cell);
  return pack_indices(packed);
}

Json call_json(const ImageCall& call) {
  Json json = Json::object({{"name", call.name},
                            {"title", call.title},
                            {"layer", call.layer},
                            {"heads", call.heads},
                            {"queries", call.queries},
                            {"keys", call.keys}});
  if (call.windows.empty()) return json;
  json["windows"] = json_list(call.windows, [](const AttentionWindow& w) {
    Json window = Json::object({{"queries", pack_cells(w.queries)}, {"keys", pack_cells(w.keys)}});
    if (!w.regions.empty()) window["regions"] = pack_cells(w.regions);
    return window;
  });
  return json;
}

Json head_json(const ImageSubject& subject, const ImageHead& head) {
  const ImageCall& call = subject.calls()[head.call];
  Json json = Json::object({{"call", head.call},
                            {"title", call.title},
                            {"layer", call.layer},
                            {"head", head.head},
                            {"entropy", six_digits(head.entropy)}});
  json["distance"] = head.distance ? Json(six_digits(*head.distance)) : Json();
  json["importance"] = head.importance ? Json(six_digits(*head.importance)) : Json();
  return json;
}

Json describe(const ImageSubject& subject) {
  Json json = Json::object({{"model", subject.path()},
                            {"model_type", subject.type()},
                            {"image", subject.name()},
                            {"measure", subject.measure()},
                            {"grid", grid_json(subject.grids().front())}});
  json["objects"] = json_list(subject.objects(), [](const SeenObject& seen) {
    Json box = Json::array();
    for (const double x : seen.box) box.push_back(six_digits(x));
    return Json::object({{"label", seen.label}, {"score", six_digits(seen.score)}, {"box", box}});
  });
  json["classes"] = Json::array();
  for (size_t i = 0; i < std::min(kMostClasses, subject.classes().size()); ++i) {
    const ImageClass& c = subject.classes()[i];
    json["classes"].push_back(
        Json::object({{"label", c.label}, {"probability", six_digits(c.probability)}}));
  }
  return json;
}

// The rows of a head, each with as many numbers as it has.
Json plain_rows(const ImageSubject& subject, const ImageHead& head,
                const std::vector<float>& values) {
  const ImageCall& call = subject.calls()[head.call];
  Json rows = Json::array();
  size_t at = 0;
  const auto add = [&](int64_t count) {
    Json row = Json::array();
    for (int64_t j = 0; j < count; ++j) row.push_back(six_digits(values[at++]));
    rows.push_back(std::move(row));
  };
  const auto add_window = [&](int64_t queries, int64_t keys) {
    for (int64_t i = 0; i < queries; ++i) {
      const bool is_whole = head.kept == 0 || std::ssize(rows.as_array()) < head.whole_rows;
      add(is_whole ? keys : std::min(head.kept, keys));
    }
  };
  if (call.windows.empty()) {
    add_window(subject.grids()[call.queries].cells(), subject.grids()[call.keys].cells());
  }
  for (const AttentionWindow& w : call.windows) {
    add_window(std::ssize(w.queries), std::ssize(w.keys));
  }
  return rows;
}

}  // namespace

Page image_attention_page(const ImageSubject& subject, const ImageMaps& maps) {
  const std::string first = likeliest_class(subject);
  Page page{.title = fmt::format("Attention: {}{}", first.empty() ? "" : first + ", ",
                                 short_names({subject.name()})[0]),
            .data = describe(subject),
            .scripts = {"image_canvas.js", "image_attention.js", "image_attention_page.js"}};
  page.data["pixels"] = image_json(subject.image());
  page.data["grids"] = json_list(subject.grids(), grid_json);
  page.data["calls"] = json_list(subject.calls(), call_json);
  page.data["norms"] = json_list(subject.norms(), six_digits);
  page.data["heads"] = json_list(maps.heads, [&](const ImageHead& head) {
    Json json = head_json(subject, head);
    json["weights"] = pack_weights(head.weights);
    if (head.kept == 0) return json;
    json["kept"] = head.kept, json["whole_rows"] = head.whole_rows;
    json["columns"] = pack_indices(head.columns);
    return json;
  });
  if (maps.rollout) {
    page.data["rollout"] = Json::object({{"rows", maps.rollout->rows},
                                         {"queries", maps.rollout->queries},
                                         {"keys", maps.rollout->keys},
                                         {"layers", maps.rollout->layers},
                                         {"discard", maps.rollout->discard},
                                         {"mean", pack_weights(maps.rollout->mean)},
                                         {"max", pack_weights(maps.rollout->max)}});
  }
  return page;
}

Json image_attention_json(const ImageSubject& subject, const ImageMaps& maps) {
  Json json = describe(subject);
  json["heads"] = json_list(maps.heads, [&](const ImageHead& head) {
    Json one = head_json(subject, head);
    one["weights"] = plain_rows(subject, head, head.weights);
    if (head.kept == 0) return one;
    one["whole_rows"] = head.whole_rows;
    one["columns"] = rows_json(head.columns, std::ssize(head.columns) / head.kept, head.kept,
                               [](int64_t x) { return Json(x); });
    return one;
  });
  if (!maps.rollout) return json;
  const auto rows = std::ssize(maps.rollout->rows), cells = std::ssize(maps.rollout->mean) / rows;
  const auto number = [](float x) { return Json(six_digits(x)); };
  json["rollout"] = Json::object({{"rows", maps.rollout->rows},
                                  {"discard", maps.rollout->discard},
                                  {"mean", rows_json(maps.rollout->mean, rows, cells, number)},
                                  {"max", rows_json(maps.rollout->max, rows, cells, number)}});
  return json;
}

std::string image_heads_table(const ImageSubject& subject, const ImageMaps& maps, size_t most) {
  const std::string first = likeliest_class(subject);
  const ImageSize size = subject.grids().front().size;
  std::string table = fmt::format(
      "image: {}, {} x {} cells{}\n\n{:<25}  {:>8}  {:>9}  {:>10}\n", subject.name(), size.height,
      size.width, first.empty() ? "" : ", " + first, "head", "entropy", "distance", "importance");
  std::vector<size_t> order(maps.heads.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::greater<>(),
                           [&](size_t i) { return maps.heads[i].importance.value_or(0); });
  for (size_t k = 0; k < std::min(most, order.size()); ++k) {
    const ImageHead& head = maps.heads[order[k]];
    table += fmt::format("{:<25}  {:>8.3f}  {:>9}  {:>10}\n",
                         fmt::format("{}, head {}", subject.calls()[head.call].title, head.head),
                         head.entropy, head.distance ? fmt::format("{:.2f}", *head.distance) : "-",
                         head.importance ? fmt::format("{:+.4f}", *head.importance) : "-");
  }
  if (most < order.size()) table += fmt::format("... and {} more\n", order.size() - most);
  return table + fmt::format(
                     "\nentropy: nats, 0 where each row has one key; distance: between query and "
                     "key, as wide as a\ncell is; importance: {}, when the head's output is "
                     "zero\n",
                     subject.measure());
}

}  // namespace heddle::inspect
