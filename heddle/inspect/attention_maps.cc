// One pass for the weights of all heads, one more for each head that is taken away. Maps as JSON,
// packed for the page or plain for other programs, and as a table.
#include "heddle/inspect/attention_maps.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "heddle/base/error.h"
#include "heddle/base/names.h"
#include "heddle/base/rounded.h"
#include "heddle/inspect/matrix.h"

namespace heddle::inspect {
namespace {

constexpr int64_t kBlockRows = 64;  // weights of so many rows exist at a time
constexpr int64_t kMostKept = 32, kLeastKept = 4, kMostGrid = 192;

// Tokens of the link's words on the sides of a kind; a list is empty where it lacks the word.
struct LinkTokens {
  std::vector<int64_t> from, to;
};

bool holds(const std::vector<int64_t>& chosen, int64_t x) {
  return chosen.empty() || std::find(chosen.begin(), chosen.end(), x) != chosen.end();
}

// "0 to 5".
void check_numbers(const Subject& subject, const char* flag, const std::vector<int64_t>& chosen,
                   int64_t AttentionKind::*count) {
  for (const int64_t x : chosen) {
    std::string have;
    bool is_there = false;
    for (const AttentionKind& kind : subject.kinds()) {
      is_there = is_there || (x >= 0 && x < kind.*count);
      have += fmt::format("{}{} 0 to {}", have.empty() ? "" : ", ", kind.name, kind.*count - 1);
    }
    check(is_there, ErrorKind::usage, "{} {}: there is none of that number; {} has {}s {}",
          field_name(flag), x, subject.path(), flag, have);
  }
}

void check_link(const Subject& subject, const Link& link) {
  for (const AttentionKind& kind : subject.kinds()) {
    const Side &queries = subject.sides()[kind.queries], &keys = subject.sides()[kind.keys];
    if (!queries.find(link.from).empty() && !keys.find(link.to).empty()) return;
  }
  const auto check_word = [&](const char* flag, const std::string& word, bool is_query) {
    std::string have;
    for (const AttentionKind& kind : subject.kinds()) {
      const Side& side = subject.sides()[is_query ? kind.queries : kind.keys];
      if (!side.find(word).empty()) return;
      const std::string line = fmt::format("{}: {}", side.name, side.list_words());
      if (have.find(line) == std::string::npos) have += (have.empty() ? "" : "; ") + line;
    }
    fail(ErrorKind::usage, "{}: there is no word '{}'; the words are: {}", field_name(flag), word,
         have);
  };
  check_word("from", link.from, true);
  check_word("to", link.to, false);
  fail(ErrorKind::usage,
       "`from` '{}' `to` '{}': no attention goes from a text with the one to a "
       "text with the other; from the source it goes to the source, from the target to both",
       link.from, link.to);
}

SparseMap empty_sparse(const HeadMap& map, int64_t kept) {
  SparseMap s{.kept = std::min(kept, map.cols),
              .grid_rows = std::min(map.rows, kMostGrid),
              .grid_cols = std::min(map.cols, kMostGrid)};
  s.grid.assign(static_cast<size_t>(s.grid_rows * s.grid_cols), 0.0f);
  return s;
}

// Of row i the largest weights, and what it adds to the grid.
void add_sparse(HeadMap& map, int64_t i, const float* w) {
  SparseMap& s = *map.sparse;
  std::vector<int64_t> order(static_cast<size_t>(map.cols));
  std::iota(order.begin(), order.end(), int64_t{0});
  std::partial_sort(order.begin(), order.begin() + s.kept, order.end(),
                    [&](int64_t a, int64_t b) { return w[a] != w[b] ? w[a] > w[b] : a < b; });
  for (int64_t k = 0; k < s.kept; ++k) {
    s.columns.push_back(order[k]);
    s.weights.push_back(w[order[k]]);
  }
  float* line = s.grid.data() + i * s.grid_rows / map.rows * s.grid_cols;
  for (int64_t j = 0; j < map.cols; ++j) {
    float& block = line[j * s.grid_cols / map.cols];
    block = std::max(block, w[j]);
  }
}

// Row i of weights. before: keys before the first query
void add_row(HeadMap& map, int64_t i, const float* w, int64_t before) {
  double entropy = 0, distance = 0;
  for (int64_t j = 0; j < map.cols; ++j) {
    if (w[j] > 0) entropy -= static_cast<double>(w[j]) * std::log(static_cast<double>(w[j]));
    distance += static_cast<double>(w[j]) * static_cast<double>(std::abs(i + before - j));
  }
  map.entropy += entropy / static_cast<double>(map.rows);
  map.distance += distance / static_cast<double>(map.rows);
  if (map.sparse) {
    add_sparse(map, i, w);
  } else {
    map.weights.insert(map.weights.end(), w, w + map.cols);
  }
}

// sums: [keys], over the rows of link.from
void add_link(HeadMap& map, const LinkTokens& link, const Side& keys,
              const std::vector<double>& sums) {
  double sum = 0;
  for (const int64_t j : link.to) sum += sums[j];
  map.link = sum / static_cast<double>(link.from.size());
  // The strongest occurrence of `to` against every other word.
  double best = 0;
  const auto weight_of = [&](const Side::Word& word) {
    return std::accumulate(sums.begin() + word.begin, sums.begin() + word.end, 0.0);
  };
  const auto is_wanted = [&](const Side::Word& word) {
    return std::ranges::binary_search(link.to, word.begin);
  };
  for (const Side::Word& word : keys.words) {
    if (is_wanted(word)) best = std::max(best, weight_of(word));
  }
  for (const Side::Word& word : keys.words) {
    if (!is_wanted(word) && weight_of(word) > best) ++map.words_above;
  }
}

// Takes in the rows of one head.
void gather(HeadMap& map, const nn::AttentionCall& call, const LinkTokens& link, const Side& keys,
            int64_t before) {
  if (!map.sparse) map.weights.reserve(static_cast<size_t>(map.rows * map.cols));
  std::vector<double> sums(static_cast<size_t>(map.cols));
  for (int64_t i = 0; i < map.rows; i += kBlockRows) {
    const int64_t count = std::min(kBlockRows, map.rows - i);
    const Tensor w = call.weights(0, map.head, {i, count});
    for (int64_t r = 0; r < count; ++r) {
      const float* const row = w.data<float>() + r * map.cols;
      add_row(map, i + r, row, before);
      if (!std::ranges::binary_search(link.from, i + r)) continue;
      for (int64_t j = 0; j < map.cols; ++j) sums[j] += row[j];
    }
  }
  check_finite(std::isfinite(map.distance), "the attention weights of layer {}, head {}", map.layer,
               map.head);
  if (!link.from.empty() && !link.to.empty()) add_link(map, link, keys, sums);
}

std::string call_name(const AttentionKind& kind, int64_t layer) {
  return kind.prefix + std::to_string(layer);
}

// The chosen heads without their weights.
std::vector<HeadMap> chosen_heads(const Subject& subject, const HeadsOptions& options) {
  check_numbers(subject, "layer", options.layers, &AttentionKind::layers);
  check_numbers(subject, "head", options.heads, &AttentionKind::heads);
  std::vector<HeadMap> maps;
  for (size_t k = 0; k < subject.kinds().size(); ++k) {
    const AttentionKind& kind = subject.kinds()[k];
    for (int64_t layer = 0; layer < kind.layers; ++layer) {
      for (int64_t head = 0; head < kind.heads; ++head) {
        if (!holds(options.layers, layer) || !holds(options.heads, head)) continue;
        HeadMap& map = maps.emplace_back();
        map.kind = k, map.layer = layer, map.head = head;
        map.rows = subject.sides()[kind.queries].size();
        map.cols = subject.sides()[kind.keys].size();
      }
    }
  }
  check(!maps.empty(), ErrorKind::usage,
        "`layer` and `head` together choose no head of {}; leave one of them away", subject.path());
  return maps;
}

// --- for readers ---

Json sides_json(const Subject& subject) {
  const auto span = [](const Side::Word& w) { return Json::Array{w.begin, w.end, w.text}; };
  return json_list(subject.sides(), [&](const Side& side) {
    return Json::object(
        {{"name", side.name}, {"tokens", side.tokens}, {"words", json_list(side.words, span)}});
  });
}

Json kinds_json(const Subject& subject) {
  return json_list(subject.kinds(), [](const AttentionKind& kind) {
    return Json::object({{"name", kind.name},
                         {"queries", kind.queries},
                         {"keys", kind.keys},
                         {"layers", kind.layers},
                         {"heads", kind.heads},
                         {"is_causal", kind.is_causal},
                         {"before", kind.before}});
  });
}

Json head_json(const HeadMap& map) {
  Json json = Json::object({{"kind", map.kind},
                            {"layer", map.layer},
                            {"head", map.head},
                            {"entropy", rounded(map.entropy, 6)},
                            {"distance", rounded(map.distance, 6)}});
  json["importance"] = map.importance ? Json(rounded(*map.importance, 6)) : Json();
  if (map.link) {
    json["link"] = rounded(*map.link, 6);
    json["words_above"] = map.words_above;
  }
  return json;
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
  if (!map.sparse) {
    json["weights"] = weights_json(map.weights, map.rows, map.cols);
    return;
  }
  const auto index = [](int64_t x) { return Json(x); };
  json["columns"] = rows_json(map.sparse->columns, map.rows, map.sparse->kept, index);
  json["weights"] = weights_json(map.sparse->weights, map.rows, map.sparse->kept);
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
  json["heads"] = json_list(maps, [&](const HeadMap& map) {
    Json head = head_json(map);
    add_weights(head, map);
    return head;
  });
  return json;
}

}  // namespace

std::vector<HeadMap> attention_maps(const Subject& subject, const HeadsOptions& options) {
  std::vector<HeadMap> maps = chosen_heads(subject, options);
  if (options.link) check_link(subject, *options.link);
  int64_t all = 0, rows = 0;
  for (const HeadMap& map : maps) all += map.rows * map.cols, rows += map.rows;
  const int64_t kept =
      std::clamp(options.most_weights / std::max<int64_t>(1, rows), kLeastKept, kMostKept);
  if (all > options.most_weights) {
    for (HeadMap& map : maps) map.sparse = empty_sparse(map, kept);
  }
  int64_t done = 0;
  const int64_t work = static_cast<int64_t>(maps.size()) * (options.importance ? 2 : 1);
  const auto step = [&] {
    if (options.progress) options.progress(++done, work);
  };
  nn::Observer observer;
  observer.attention = [&](const nn::AttentionCall& call) {
    for (HeadMap& map : maps) {
      const AttentionKind& kind = subject.kinds()[map.kind];
      if (call.name() != call_name(kind, map.layer)) continue;
      LinkTokens link;
      const Side& key_side = subject.sides()[kind.keys];
      if (options.link) {
        link = {subject.sides()[kind.queries].find(options.link->from),
                key_side.find(options.link->to)};
      }
      gather(map, call, link, key_side, kind.before);
      step();
    }
  };
  subject.pass(observer);
  if (!options.importance) return maps;
  for (HeadMap& map : maps) {
    const AttentionKind& kind = subject.kinds()[map.kind];
    map.importance = subject.change(without_head(call_name(kind, map.layer), map.head, kind.heads));
    step();
  }
  return maps;
}

nn::Observer without_head(const std::string& wanted, int64_t head, int64_t heads) {
  nn::Observer observer;
  observer.heads = [=](const std::string& name, const Tensor& x) {
    if (name != wanted) return x;
    const Tensor changed = x.clone();
    const int64_t d = x.size(1) / heads;
    const auto bytes = static_cast<size_t>(d) * size_of(x.dtype());
    for (int64_t i = 0; i < x.size(0); ++i) {
      std::memset(static_cast<char*>(changed.raw()) + static_cast<size_t>(i * heads + head) * bytes,
                  0, bytes);
    }
    return changed;
  };
  return observer;
}

std::vector<size_t> ranking(const std::vector<HeadMap>& maps, bool by_link) {
  std::vector<size_t> order;
  for (size_t i = 0; i < maps.size(); ++i) {
    if (!by_link || maps[i].link) order.push_back(i);
  }
  const auto strength = [&](size_t i) {
    return by_link ? *maps[i].link : maps[i].importance.value_or(0);
  };
  std::ranges::stable_sort(order, std::greater<>(), strength);
  return order;
}

std::string head_name(const Subject& subject, const HeadMap& map) {
  return fmt::format("{}, layer {}, head {}", subject.kinds()[map.kind].name, map.layer, map.head);
}

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

Json weights_json(const std::vector<float>& weights, int64_t rows, int64_t cols) {
  return rows_json(weights, rows, cols, [](float x) { return Json(rounded(x, 6)); });
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
