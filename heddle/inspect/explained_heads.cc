// Which call and query of a model are followed step by step: of a text, or of an image.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "heddle/base/error.h"
#include "heddle/inspect/explanation.h"
#include "heddle/inspect/run_history.h"

namespace heddle::inspect {
namespace {

constexpr int64_t kMostQueries = 256, kMostKeys = 1024;

const AttentionKind& find_kind(const Subject& subject, const std::string& name) {
  if (name.empty()) return subject.kinds().back();
  std::string have;
  for (const AttentionKind& kind : subject.kinds()) {
    if (kind.name == name) return kind;
    have += (have.empty() ? "" : ", ") + kind.name;
  }
  fail(ErrorKind::usage, "`kind` '{}': {} has attention of the kinds {}", name, subject.path(),
       have);
}

void check_head(const AttentionKind& kind, const ExplainedHead& which) {
  check(which.layer >= 0 && which.layer < kind.layers, ErrorKind::usage,
        "`layer` {}: {} attention has layers 0 to {}", which.layer, kind.name, kind.layers - 1);
  check(which.head >= 0 && which.head < kind.heads, ErrorKind::usage,
        "`head` {}: {} attention has heads 0 to {}", which.head, kind.name, kind.heads - 1);
}

// "cross" of "cross_attentions.3"; "" where there is one kind.
std::string kind_of(const ImageCall& call) {
  const size_t end = call.name.find("_attentions.");
  return end == call.name.npos ? "" : call.name.substr(0, end);
}

std::vector<ImageCall> calls_of_kind(const ImageSubject& subject, const std::string& kind) {
  std::vector<ImageCall> calls;
  std::vector<std::string> have;
  for (const ImageCall& call : subject.calls()) {
    const std::string its = kind_of(call);
    if (its == (kind.empty() ? kind_of(subject.calls().back()) : kind)) calls.push_back(call);
    if (std::ranges::count(have, its) == 0) have.push_back(its);
  }
  check(!calls.empty(), ErrorKind::usage, "`kind` '{}': {} has {}", kind, subject.path(),
        have.size() == 1 ? "attention of one kind; leave `kind` out"
                         : fmt::format("attention of the kinds {}", fmt::join(have, ", ")));
  return calls;
}

const ImageCall& find_call(const ImageSubject& subject, const std::vector<ImageCall>& calls,
                           const ExplainedCell& which) {
  const auto call =
      std::ranges::find(calls, which.layer.value_or(calls.back().layer), &ImageCall::layer);
  check(call != calls.end(), ErrorKind::usage, "`layer` {}: {} has layers 0 to {}",
        which.layer.value_or(0), subject.path(), calls.back().layer);
  check(which.head >= 0 && which.head < call->heads, ErrorKind::usage,
        "`head` {}: {} has heads 0 to {}", which.head, call->title, call->heads - 1);
  return *call;
}

// Of a detector's own queries. The surest, of equals the lowest, unless one is asked for.
int64_t find_query(const ImageSubject& subject, const CellGrid& grid, const ExplainedCell& which) {
  check(!which.cell, ErrorKind::usage,
        "this call's queries are of no cell; leave `cell` out, and give `query`");
  const int64_t count = std::ssize(grid.tokens);
  const std::vector<SeenObject>& objects = subject.objects();
  if (!which.query && objects.empty()) return 0;
  if (!which.query) {
    return std::ranges::max_element(objects, {}, &SeenObject::score) - objects.begin();
  }
  check(*which.query >= 0 && *which.query < count, ErrorKind::usage,
        "`query` {}: {} has queries 0 to {}", *which.query, subject.path(), count - 1);
  return *which.query;
}

int64_t find_cell(const CellGrid& grid, const ExplainedCell& which) {
  const ImageSize size = grid.size;
  check(!which.query, ErrorKind::usage,
        "`query` {}: this call's queries are cells of the image; give `cell`",
        which.query.value_or(0));
  const int64_t tokens = std::ssize(grid.tokens);
  if (!which.cell) return tokens > 0 ? 0 : size.height / 2 * size.width + size.width / 2;
  const auto [row, column] = *which.cell;
  check(row >= 0 && row < size.height && column >= 0 && column < size.width, ErrorKind::usage,
        "`cell` {},{}: the image has {} rows and {} columns of cells, from 0", row, column,
        size.height, size.width);
  return tokens + row * size.width + column;
}

// Where a query stands, and what it can see.
struct CellInWindow {
  int64_t segment = 0, row = 0;
  std::vector<int32_t> keys;
};

CellInWindow window_of(const ImageCall& call, const CellGrid& keys, int64_t query) {
  if (call.windows.empty()) {
    CellInWindow all{.row = query, .keys = std::vector<int32_t>(keys.cells())};
    std::iota(all.keys.begin(), all.keys.end(), 0);
    return all;
  }
  for (size_t w = 0; w < call.windows.size(); ++w) {
    const std::vector<int32_t>& queries = call.windows[w].queries;
    const auto at = std::ranges::find(queries, query);
    if (at == queries.end()) continue;
    return {static_cast<int64_t>(w), at - queries.begin(), call.windows[w].keys};
  }
  fail(ErrorKind::internal, "explain: no window of {} has cell {}", call.name, query);
}

void add_call(Explanation& e, const AskedCall& asked) {
  explain_call(e, asked);
  const std::string unknown = step_not_finite(e);
  check_finite(unknown.empty(), "the numbers of {}", unknown);
}

}  // namespace

std::string step_not_finite(const Explanation& e) {
  for (size_t i = 0; i < e.steps.size(); ++i) {
    const ExplainedStep& step = e.steps[i];
    const bool hides = step.key == "mask" || step.key == "masked";
    const auto is_known = [&](double x) { return std::isfinite(x) || (hides && x == -INFINITY); };
    if (!std::ranges::all_of(step.result.values, is_known)) {
      return fmt::format("step {} ({})", i + 1, step.name);
    }
  }
  return "";
}

Explanation explain_head(const Subject& subject, const ExplainedHead& which) {
  const AttentionKind& kind = find_kind(subject, which.kind);
  check_head(kind, which);
  const AskedCall asked{.pass = [&](const nn::Observer& o) { subject.pass(o); },
                        .path = subject.path(),
                        .call = kind.prefix + std::to_string(which.layer),
                        .head = which.head,
                        .heads = kind.heads,
                        .queries = subject.sides()[kind.queries].tokens,
                        .keys = subject.sides()[kind.keys].tokens,
                        .is_cross = kind.queries != kind.keys && kind.before == 0,
                        .before = kind.before};
  const auto longest = std::max(asked.queries.size(), asked.keys.size());
  check(static_cast<int64_t>(longest) <= kMostQueries, ErrorKind::usage,
        "there are {} tokens{}; explain shows every number and takes at most {}: give a shorter "
        "text",
        longest, kind.before > 0 ? fmt::format(", {} of them the model's memory", kind.before) : "",
        kMostQueries);
  Explanation e;
  e.title = fmt::format("Attention, step by step: {}", subject.texts().front());
  e.note = fmt::format("{}: {} attention, layer {}, head {} (of layers 0 to {} and heads 0 to {})",
                       short_names({subject.given()})[0], kind.name, which.layer, which.head,
                       kind.layers - 1, kind.heads - 1);
  e.is_causal = kind.is_causal;
  add_call(e, asked);
  return e;
}

Explanation explain_cell(const ImageSubject& subject, const ExplainedCell& which) {
  const std::vector<ImageCall> calls = calls_of_kind(subject, which.kind);
  const ImageCall& call = find_call(subject, calls, which);
  const CellGrid &queries = subject.grids()[call.queries], &keys = subject.grids()[call.keys];
  const int64_t query =
      queries.size.height > 0 ? find_cell(queries, which) : find_query(subject, queries, which);
  const CellInWindow at = window_of(call, keys, query);
  AskedCall asked{.pass = [&](const nn::Observer& o) { subject.pass(o); },
                  .path = subject.path(),
                  .call = call.name,
                  .head = which.head,
                  .heads = call.heads,
                  .segment = at.segment,
                  .query = at.row,
                  .queries = {queries.name(query)},
                  .row = queries.size.height > 0 ? "cell" : "query",
                  .is_cross = call.queries != call.keys};
  for (const int32_t key : at.keys) asked.keys.push_back(key < 0 ? "(padding)" : keys.name(key));
  check(std::ssize(asked.keys) <= kMostKeys, ErrorKind::usage,
        "there are {} cells; explain shows every number and takes at most {}: give a smaller image",
        asked.keys.size(), kMostKeys);
  Explanation e;
  const std::string first = likeliest_class(subject);
  e.title = fmt::format("Attention, step by step: {}{}", first.empty() ? "" : first + ", ",
                        short_names({subject.name()})[0]);
  const std::string name = queries.name(query);
  e.note =
      fmt::format("{}: {}, head {} (of layers 0 to {} and heads 0 to {}), {}{}",
                  short_names({subject.given()})[0], call.title, which.head, calls.back().layer,
                  call.heads - 1, name.starts_with("query ") ? "" : "query ", name);
  if (call.windows.empty() && keys.size.height > 0) e.grid = keys;
  e.label_width = 17;  // "row 13, column 13"
  add_call(e, asked);
  return e;
}

}  // namespace heddle::inspect
