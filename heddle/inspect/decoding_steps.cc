// Beams recorded as they are searched, then their attention, then the page.
#include "heddle/inspect/decoding_steps.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "heddle/base/error.h"
#include "heddle/infer/decoding/generate.h"
#include "heddle/infer/decoding/text_stream.h"
#include "heddle/infer/words.h"

namespace heddle::inspect {
namespace {

using Ids = std::vector<int32_t>;
// Which beginnings there were, found again by their tokens.
class StepRecorder {
 public:
  StepRecorder(int64_t tokens, DecodingRecord& record) : most_(tokens), record_(record) {}

  void add(const DecodeStep& step) {
    const int64_t tokens = std::min<int64_t>(most_, step.logits.size(1));
    const std::vector<NextToken> likely = best_tokens(step.logits, {.count = tokens});
    for (size_t i = 0; i < step.before.size(); ++i) {
      BeamNode& node = record_.nodes[find(step.before[i])];
      node.next.assign(likely.begin() + static_cast<int64_t>(i) * tokens,
                       likely.begin() + static_cast<int64_t>(i + 1) * tokens);
    }
    for (const Hypothesis& h : step.live) find(h);
    for (const Hypothesis& h : step.ended) {
      const int64_t parent = find(h);
      BeamNode& node = record_.nodes.emplace_back();
      node.parent = parent;
      node.step = static_cast<int64_t>(h.ids.size()) + 1;
      node.log_p = h.log_p;
      node.is_ended = true;
      node.is_cut = h.ended != EndedBy::eos;
      node.score = h.score;
    }
  }

  // The tokens of a node that did not end.
  const Ids& tokens(int64_t node) const { return tokens_[static_cast<size_t>(node)]; }
  bool has_tokens(int64_t node) const {
    return static_cast<size_t>(node) < tokens_.size() && !record_.nodes[node].is_ended;
  }

 private:
  // Samples that begin alike are different beginnings.
  using Key = std::pair<int64_t, Ids>;

  int64_t find(const Hypothesis& h) {
    const Key key{h.ids.empty() ? 0 : h.sample, h.ids};
    const auto found = numbers_.find(key);
    if (found != numbers_.end()) return found->second;
    const auto number = static_cast<int64_t>(record_.nodes.size());
    BeamNode node;
    node.step = static_cast<int64_t>(h.ids.size());
    node.log_p = h.log_p;
    if (!h.ids.empty()) {
      node.id = h.ids.back();
      const Ids before(h.ids.begin(), h.ids.end() - 1);
      node.parent = numbers_.at({before.empty() ? 0 : h.sample, before});
    }
    record_.nodes.push_back(std::move(node));
    tokens_.resize(record_.nodes.size());
    tokens_.back() = h.ids;
    numbers_.emplace(key, number);
    return number;
  }

  int64_t most_;  // likely tokens kept of each beginning
  DecodingRecord& record_;
  std::map<Key, int64_t> numbers_;
  std::vector<Ids> tokens_;  // of each node
};

// The attention of each beginning: the last row of the map of those tokens. Rows of a longer one
// serve all its beginnings, since no row depends on what follows it.
void add_attention(const LoadedModel& model, const Ids& source, const StepRecorder& recorder,
                   const PairMarks& marks, Precision precision, DecodingRecord& record) {
  for (auto n = static_cast<int64_t>(record.nodes.size()) - 1; n >= 0; --n) {
    BeamNode& node = record.nodes[n];
    if (!recorder.has_tokens(n) || node.next.empty() || !node.attention.empty()) continue;
    const Tensor map =
        cross_attention_map(model.translator(), source, recorder.tokens(n), -1, precision, marks);
    const float* values = map.data<float>();
    int64_t at = n;
    for (int64_t row = map.size(0) - 1; row >= 0; --row, at = record.nodes[at].parent) {
      const float* line = values + row * map.size(1);
      if (record.nodes[at].attention.empty()) {
        record.nodes[at].attention.assign(line, line + map.size(1));
      }
    }
  }
}

// The way to the whole text of these ids.
void find_best(const Ids& ids, double score, DecodingRecord& record) {
  for (size_t n = 0; n < record.nodes.size(); ++n) {
    if (!record.nodes[n].is_ended || record.nodes[n].score != score) continue;
    std::vector<int64_t> way;
    Ids tokens;
    for (auto at = static_cast<int64_t>(n); at >= 0; at = record.nodes[at].parent) {
      way.insert(way.begin(), at);
      tokens.insert(tokens.begin(), record.nodes[at].id);
    }
    // The first node is the empty beginning, the last one says that the text ends.
    if (!std::ranges::equal(std::span(tokens).subspan(1, tokens.size() - 2), ids)) continue;
    record.best = std::move(way);
    return;
  }
}

std::string shown_token(const Tokenizer& tokenizer, int32_t id, int64_t eos) {
  const std::string text = id == eos ? "(end)" : token_text(tokenizer, id);
  return text.empty() ? fmt::format("#{}", id) : text;
}

}  // namespace

DecodingRecord record_decoding(const LoadedModel& model, const std::string& line,
                               TranslateOptions options, int64_t tokens) {
  const Ids source = source_ids(model, line, "line 1", options.truncate, nullptr);
  check(!source.empty(), ErrorKind::usage,
        "`page`: the sentence is empty; give one on standard input");
  DecodingRecord record;
  StepRecorder recorder(tokens, record);
  options.scores = true;
  options.on_step = [&](const DecodeStep& step) { recorder.add(step); };
  const Translation result = translate_lines(model, std::vector{line}, options)[0];
  record.source_text = line;
  record.text = result.text;
  record.score = result.score;
  for (const int32_t id : source) {
    record.source.push_back(
        shown_token(*model.tokenizer, id, model.translator().facts().eos_token_id));
  }
  const PairMarks marks = translation_marks(model, options);
  for (std::string& name : names_of_ends(*model.tokenizer, marks)) {
    record.source.push_back(std::move(name));
  }
  find_best(result.ids, result.score, record);
  if (model.translator().facts().cross_attention_layers == 0) return record;
  record.layer = aligning_layer(model.translator().facts());
  add_attention(model, source, recorder, marks, options.precision, record);
  return record;
}

DecodingRecord record_generation(const LoadedModel& model, const std::string& prompt,
                                 std::span<const int32_t> ids, GenerateOptions options,
                                 int64_t tokens) {
  check(model.tokenizer.has_value(), ErrorKind::usage, "`page`: {} has no tokenizer", model.path);
  DecodingRecord record;
  StepRecorder recorder(tokens, record);
  options.scores = true;
  options.on_step = [&](const DecodeStep& step) { recorder.add(step); };
  const std::vector<Ids> prompts = {Ids(ids.begin(), ids.end())};
  const Continuation best = generate_ids(model.tokens(), prompts, options)[0][0];
  TextStream text(*model.tokenizer, ids);
  text.read(best.ids);
  record.source_text = prompt;
  record.text = text.text();
  record.score = best.score;
  find_best(best.ids, best.score, record);
  return record;
}

Page decoding_page(const DecodingRecord& record, const Tokenizer& tokenizer) {
  Page page{.title = "Decoding: " + record.source_text, .data = {}, .scripts = {"decoding.js"}};
  const int64_t eos = tokenizer.eos_id();
  page.data["source"] = record.source;
  page.data["layer"] = record.layer;
  page.data["source_text"] = record.source_text;
  page.data["text"] = record.text;
  page.data["score"] = record.score;
  page.data["best"] = record.best;
  const auto with_probability = [&](const NextToken& token) {
    return Json::Array{shown_token(tokenizer, token.id, eos),
                       std::exp(static_cast<double>(token.log_p))};
  };
  page.data["nodes"] = json_list(record.nodes, [&](const BeamNode& node) {
    const std::string token = node.is_ended ? (node.is_cut ? "(cut)" : "(end)")
                              : node.id < 0 ? "(start)"
                                            : shown_token(tokenizer, node.id, eos);
    return Json::object({{"parent", node.parent},
                         {"step", node.step},
                         {"token", token},
                         {"log_p", node.log_p},
                         {"is_ended", node.is_ended},
                         {"score", node.score},
                         {"next", json_list(node.next, with_probability)},
                         {"attention", pack_weights(node.attention)}});
  });
  return page;
}

}  // namespace heddle::inspect
