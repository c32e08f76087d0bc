// XLNet: Yang et al. 2019, "XLNet: Generalized Autoregressive Pretraining for Language
// Understanding". A word is known to those after it in some order; its prediction is made in a
// second stream that does not see it.
#include <algorithm>

#include "heddle/models/family.h"
#include "heddle/nn/mlp.h"
#include "heddle/nn/relative_attention.h"
#include "heddle/nn/word_order.h"
#include "heddle/ops/elementwise.h"
#include "heddle/ops/embedding.h"
#include "heddle/ops/shape.h"

namespace heddle {
namespace {

using nn::Init;
using nn::LayerNorm;
using nn::Linear;
using nn::Memory;
using nn::Parameter;
using nn::Residual;
using nn::Run;
using nn::Scope;
using nn::WordOrder;
using nn::WordRows;

// Hugging Face's keys; the defaults are those of xlnet-large-cased.
struct XlnetConfig {
  int64_t vocab_size = 32000, d_model = 1024, n_layer = 24, n_head = 16, d_inner = 4096;
  std::optional<int64_t> d_head, mem_len = 512, reuse_len;
  std::string ff_activation = "gelu", attn_type = "bi";
  double initializer_range = 0.02, layer_norm_eps = 1e-12, dropout = 0.1;
  bool bi_data = false, same_length = false, untie_r = true, use_mems_eval = true;
  int64_t clamp_len = -1;
  std::string summary_type = "last";
  bool summary_use_proj = true, tie_word_embeddings = true;
  double summary_last_dropout = 0.1;

  template <class V>
  void fields(V& v) {
    v("vocab_size", vocab_size, "words known to the tokenizer", at_least(1));
    v("d_model", d_model, "width of the residual stream; even", at_least(2));
    v("n_layer", n_layer, "number of layers", at_least(1));
    v("n_head", n_head, "attention heads; must divide d_model", at_least(1));
    v("d_head", d_head, "width of a head: d_model / n_head, or none", at_least(1));
    v("d_inner", d_inner, "width inside the feed-forward layers", at_least(1));
    v("ff_activation", ff_activation, "of the feed-forward layers", one_of(nn::activation_names()));
    v("attn_type", attn_type, "uni: a word sees those before it; bi: all", one_of({"bi", "uni"}));
    v("initializer_range", initializer_range, "deviation of the weights at the start", at_least(0));
    v("layer_norm_eps", layer_norm_eps, "inside the root of each norm", above(0));
    v("dropout", dropout, "of embeddings, sublayers and attention weights", from_below(0, 1));
    v("mem_len", mem_len, "states kept for the next segment; 0 or none: all", at_least(0));
    v("reuse_len", reuse_len,
      "of a segment's words only the first so many are kept; 0 or none: all", at_least(0));
    v("use_mems_eval", use_mems_eval, "states are kept where nothing is trained");
    v("bi_data", bi_data, "the second half of a batch runs backwards");
    v("clamp_len", clamp_len, "greater distances count as this; 0 or less: none does");
    v("same_length", same_length, "with uni: each word sees as many words as there is memory");
    v("untie_r", untie_r, "each layer has biases of its own; they always have");
    v("summary_type", summary_type, "the word whose state is classified",
      one_of({"last", "first", "mean", "cls_index"}));
    v("summary_use_proj", summary_use_proj, "a linear layer before the classes");
    v("summary_last_dropout", summary_last_dropout, "before the classes", from_below(0, 1));
    v("tie_word_embeddings", tie_word_embeddings, "words' vectors predict them too");
  }
  void check(const std::string& source) const {
    check_heads(d_model, "d_model", n_head, source);
    heddle::check(!d_head || *d_head == d_model / n_head, ErrorKind::data,
                  "{}: d_head is {}; it must be d_model / n_head, {}", source, d_head.value_or(0),
                  d_model / n_head);
    heddle::check(d_model % 2 == 0, ErrorKind::data,
                  "{}: d_model {} is odd; each distance is sines and as many cosines", source,
                  d_model);
  }
};

// --- one layer -----------------------------------------------------------------------------------

// What all layers of one pass see.
struct Pass {
  const WordRows words;
  Memory memory;
  nn::Distances distances;
  RelativeRows of_words, of_targets;
  std::shared_ptr<const RowIds> target_ids;
  bool has_targets() const { return words.order != nullptr && words.order->targets.count() > 0; }
};

struct Layer {
  Parameter *q, *k, *v, *o, *r;
  nn::RelativeAttention attention, target_attention;  // of the same weights
  LayerNorm attn_norm, ff_norm;
  nn::FeedForward ff;
  std::string site;
  int64_t layer;
  double dropout;

  Layer(const Scope& s, const XlnetConfig& c, int64_t i)
      : q(matrix(s, c, "q", nn::Layout::transposed)),
        k(matrix(s, c, "k", nn::Layout::transposed)),
        v(matrix(s, c, "v", nn::Layout::transposed)),
        o(matrix(s, c, "o", nn::Layout::as_is)),
        r(matrix(s, c, "r", nn::Layout::transposed)),
        attention((s / "rel_attn").prefix(), core(s, c)),
        target_attention((s / "rel_attn" / "g").prefix(), core(s, c)),
        attn_norm(s / "rel_attn" / "layer_norm", c.d_model, c.layer_norm_eps),
        ff_norm(s / "ff" / "layer_norm", c.d_model, c.layer_norm_eps),
        ff((s / "ff").prefix(), dense(s / "ff" / "layer_1", c.d_model, c.d_inner, c),
           dense(s / "ff" / "layer_2", c.d_inner, c.d_model, c),
           {.activation = nn::activation_of(c.ff_activation), .dropout = c.dropout}),
        site(s.prefix()),
        layer(i),
        dropout(c.dropout) {}

  // The checkpoint holds [width, heads, d].
  static Parameter* matrix(const Scope& s, const XlnetConfig& c, const char* name,
                           nn::Layout layout) {
    return &(s / "rel_attn" / name)
                .parameter({c.d_model, c.d_model}, Init::normal(c.initializer_range), layout,
                           {c.d_model, c.n_head, c.d_model / c.n_head});
  }
  static Linear dense(const Scope& s, int64_t in, int64_t out, const XlnetConfig& c) {
    return {s, {.in = in, .out = out, .init = Init::normal(c.initializer_range)}};
  }
  static nn::RelativeAttention::Options core(const Scope& s, const XlnetConfig& c) {
    const int64_t d = c.d_model / c.n_head;
    const Init init = Init::normal(c.initializer_range);
    const auto bias = [&](const char* name) {
      return &(s / "rel_attn" / name)
                  .parameter({c.d_model}, init, nn::Layout::as_is, {c.n_head, d});
    };
    return {.heads = c.n_head,
            .dropout = c.dropout,
            .content = bias("r_w_bias"),
            .distance = bias("r_r_bias"),
            .type = bias("r_s_bias"),
            .types = &(s / "rel_attn" / "seg_embed")
                          .parameter({2, c.d_model}, init, nn::Layout::as_is, {2, c.n_head, d})};
  }

  // x: the words' states, and, if there are targets, those of the second stream.
  std::vector<Tensor> operator()(std::span<const Tensor> x, const Pass& pass,
                                 const Run& run) const {
    const Tensor all = pass.memory.segments.rows() == 0
                           ? x[0]
                           : join_segments(pass.memory.layers[layer], pass.memory.segments, x[0],
                                           *pass.words.segments);
    const nn::RelativeKeys keys{nn::product(all, *k, {}, run), nn::product(all, *v, {}, run),
                                nn::product(pass.distances.table, *r, {}, run),
                                pass.distances.farthest};
    std::vector<Tensor> y;
    for (size_t stream = 0; stream < x.size(); ++stream) {
      const bool is_target = stream > 0;
      const auto& ids = is_target ? pass.target_ids : pass.words.rows;
      const std::string own = is_target ? site + ".g" : site;
      const std::string observed =
          fmt::format("{}attentions.{}", is_target ? "target_" : "", layer);
      const Tensor query = nn::product(x[stream], *q, {}, run);
      const Tensor heads =
          is_target ? target_attention(query, keys, {&pass.of_targets, ids, observed}, run)
                    : attention(query, keys, {&pass.of_words, ids, observed}, run);
      Residual h(x[stream], false);
      h.leave(nn::product(heads, *o, {}, run), run.dropout(dropout, own + ".attn", ids), attn_norm);
      h.leave(ff(h.value(), ids, run), run.dropout(dropout, own + ".ff", ids), ff_norm);
      y.push_back(h.value());
    }
    return y;
  }
};

// --- who sees whom -------------------------------------------------------------------------------

// Places and types of words and of the keys before them.
void place_rows(Pass& pass, bool is_both_ways) {
  const Segments &words = *pass.words.segments, &memory = pass.memory.segments;
  RelativeRows& rows = pass.of_words;
  rows.queries = words;
  rows.query_places = pass.words.positions();
  rows.query_types.assign(pass.words.types.begin(), pass.words.types.end());
  std::vector<int64_t> lengths;
  for (int64_t s = 0; s < words.count(); ++s) {
    const auto begin = words.begin(s), end = words.end(s), before = memory.length(s);
    // The second half of a batch runs backwards: its distances change their signs.
    const int32_t sign = is_both_ways && 2 * s >= words.count() ? -1 : 1;
    for (int64_t i = -before; i < 0; ++i) {
      rows.key_places.push_back(static_cast<int32_t>(sign * i));
    }
    for (int64_t i = begin; i < end; ++i) {
      rows.query_places[i] *= sign;
      rows.key_places.push_back(rows.query_places[i]);
    }
    if (!rows.query_types.empty()) {
      rows.key_types.resize(rows.key_types.size() + before, 0);
      rows.key_types.insert(rows.key_types.end(), rows.query_types.begin() + begin,
                            rows.query_types.begin() + end);
    }
    lengths.push_back(before + end - begin);
  }
  rows.keys = Segments::from_lengths(lengths);
}

// The keys that a word may see by attn_type and the order's steps, as ranges of integers.
void see_by_steps(Pass& pass, const XlnetConfig& c, RelativeRows& rows, bool is_target) {
  const Segments &words = *pass.words.segments, &memory = pass.memory.segments;
  const bool has_steps = pass.words.order != nullptr && !pass.words.order->steps.empty();
  if (c.attn_type == "bi" && !has_steps) return;
  check(!has_steps || c.attn_type == "bi", ErrorKind::data,
        "attn_type is uni: words are in the order of the text; steps need bi");
  std::vector<int32_t> steps;  // of words: given, or their column
  for (int64_t s = 0; s < words.count(); ++s) {
    constexpr int32_t kAlways = -1;
    for (int64_t i = 0; i < memory.length(s); ++i) {
      rows.order.push_back(has_steps ? kAlways : static_cast<int32_t>(i - memory.length(s)));
    }
    for (int64_t i = 0; i < words.length(s); ++i) {
      steps.push_back(has_steps ? pass.words.order->steps[words.begin(s) + i]
                                : static_cast<int32_t>(i));
      rows.order.push_back(steps.back());
    }
  }
  const auto see = [&](int64_t segment, int64_t word) {
    const auto window = static_cast<int32_t>(memory.length(segment));
    if (word < 0) {
      rows.first.push_back(0), rows.limit.push_back(0);  // sees nothing
      return;
    }
    // By the text a word's prediction sees the word itself, as in transformers.
    rows.limit.push_back(is_target && has_steps ? steps[word] : steps[word] + 1);
    rows.first.push_back(!has_steps && c.same_length ? steps[word] - window
                                                     : std::numeric_limits<int32_t>::min());
  };
  for (int64_t s = 0; s < rows.queries.count(); ++s) {
    for (int64_t i = rows.queries.begin(s); i < rows.queries.end(s); ++i) {
      see(s, is_target ? pass.words.order->target_words[i] : i);
    }
  }
}

// The same by a mask of any form, to which attn_type adds its own.
void see_by_mask(Pass& pass, const XlnetConfig& c, RelativeRows& rows, bool is_target) {
  const Segments &words = *pass.words.segments, &memory = pass.memory.segments;
  const WordOrder& order = *pass.words.order;
  const auto is_hidden = [&](int64_t n, int64_t before, int64_t at, int64_t i, int64_t j) {
    if (i == j && !is_target) return false;
    const bool too_far = c.attn_type == "uni" && (j > i || (c.same_length && j < i - before));
    return too_far || (j >= 0 && order.hidden[at + i * n + j] != 0);
  };
  rows.order.assign(rows.keys.rows(), 0);
  rows.first.assign(rows.queries.rows(), 0);
  rows.limit.assign(rows.queries.rows(), 1);
  for (int64_t s = 0, at = 0; s < words.count(); ++s) {
    const int64_t n = words.length(s), before = memory.length(s);
    for (int64_t r = rows.queries.begin(s); r < rows.queries.end(s); ++r) {
      const int64_t word = is_target ? order.target_words[r] : r;
      if (word < 0) rows.limit[r] = 0;  // sees nothing
      for (int64_t j = -before; j < n; ++j) {
        const int64_t i = word - words.begin(s);
        rows.hidden.push_back(word >= 0 && is_hidden(n, before, at, i, j) ? 1 : 0);
      }
    }
    at += n * n;
  }
}

// The second stream stands where the words are that it predicts, over the same keys.
void place_targets(Pass& pass) {
  const WordOrder& order = *pass.words.order;
  RelativeRows& rows = pass.of_targets;
  rows = pass.of_words;
  rows.queries = order.targets;
  rows.query_places.clear();
  rows.query_types.clear();
  auto ids = std::make_shared<RowIds>();
  for (const int32_t word : order.target_words) {
    const int32_t at = std::max(word, 0);
    rows.query_places.push_back(pass.of_words.query_places[at]);
    if (!pass.words.types.empty()) rows.query_types.push_back(pass.words.types[at]);
    if (pass.words.rows == nullptr) continue;
    ids->sample.push_back(pass.words.rows->sample[at]);
    ids->position.push_back(pass.words.rows->position[at]);
  }
  if (pass.words.rows != nullptr) pass.target_ids = ids;
}

}  // namespace

class Xlnet final : public Model {
 public:
  using Config = XlnetConfig;
  static std::vector<HeadClass> heads() {
    return {{Head::ordered_word, "XLNetLMHeadModel"},
            {Head::none, "XLNetModel"},
            {Head::sequence_classes, "XLNetForSequenceClassification"},
            {Head::word_classes, "XLNetForTokenClassification"}};
  }
  static std::vector<std::pair<std::string, std::string>> aliases() {
    return {{"n_token", "vocab_size"},
            {"hidden_size", "d_model"},
            {"num_attention_heads", "n_head"},
            {"num_hidden_layers", "n_layer"}};
  }

  Xlnet(const Scope& s, const Config& c, const HubConfig& hub)
      : c_(c),
        words_(table(base(s, hub) / "word_embedding" / "weight", c)),
        mask_((base(s, hub) / "mask_emb")
                  .parameter({1, c.d_model}, Init::normal(c.initializer_range), nn::Layout::as_is,
                             {1, 1, c.d_model})),
        embedding_("word_embedding", words_, nn::Positions::none(), {.dropout = c.dropout}),
        layers_(nn::make_layers<Layer>(base(s, hub) / "layer", c.n_layer, c)) {
    const auto labels = static_cast<int64_t>(hub.labels.size());
    if (hub.head == Head::ordered_word) {
      heads_.words.emplace(c.tie_word_embeddings ? words_ : table(s / "lm_loss" / "weight", c),
                           &(s / "lm_loss" / "bias").parameter({c.vocab_size}, Init::zeros()));
    } else if (hub.head == Head::sequence_classes) {
      heads_.sequence_classes = classes(s, labels, summary_activation(hub));
    } else if (hub.head == Head::word_classes) {
      heads_.word_classes = classes_of_words(
          s / "classifier", {.width = c.d_model, .labels = labels, .std = c.initializer_range});
    }
  }

  int64_t vocab_size() const override { return c_.vocab_size; }
  int64_t max_length() const override { return std::numeric_limits<int32_t>::max() / 2; }
  int64_t layers() const override { return c_.n_layer; }
  int64_t width() const override { return c_.d_model; }
  bool has_memory() const override { return true; }
  int64_t memory_length() const override { return c_.use_mems_eval ? kept() : 0; }
  bool takes_order() const override { return true; }

  // Of predictions, if the order has some.
  Tensor hidden(const WordRows& words, const Run& run) const override {
    const Pass pass = pass_of(words, run);
    std::vector<Tensor> x = {embed(words, run)};
    if (pass.has_targets()) {
      const std::vector<int32_t> all(pass.of_targets.query_places.size());
      x.push_back(embedding(mask_.in(run.compute), all, 1, {}, {},
                            run.dropout(c_.dropout, "mask_emb", pass.target_ids)));
    }
    std::vector<Tensor> entered;
    const auto shared = std::make_shared<const Pass>(pass);
    for (size_t i = 0; i < layers_.size(); ++i) {
      show(x, i, run);
      entered.push_back(x[0]);
      const Recomputed layer = [this, i, shared, run](std::span<const Tensor> in) {
        return layers_[i](in, *shared, run);
      };
      x = run.recompute && is_recording() ? recompute(x, layer) : layer(x);
    }
    show(x, layers_.size(), run);
    if (words.memory != nullptr) {
      *words.memory =
          pass.memory.next(entered, *words.segments, {kept(), c_.reuse_len.value_or(0)});
    }
    const bool is_two = x.size() > 1;
    return dropout(x.back(), run.dropout(c_.dropout, is_two ? "last.g" : "last",
                                         is_two ? pass.target_ids : words.rows));
  }

  std::vector<ModelOutput> forward(const WordRows& words, const Run& run) const override {
    std::vector<ModelOutput> outputs = Model::forward(words, run);
    const bool is_two = words.order != nullptr && words.order->targets.count() > 0;
    for (ModelOutput& o : outputs) {
      if (is_two && o.rows == ModelOutput::Rows::words) o.rows = ModelOutput::Rows::targets;
    }
    return outputs;
  }

  nn::TensorNames names() const override {
    nn::TensorNames names{.base = "transformer"};
    for (const auto& [head_of, name] : {std::pair{Head::ordered_word, "lm_loss."},
                                        {Head::sequence_classes, "sequence_summary."},
                                        {Head::sequence_classes, "logits_proj."},
                                        {Head::word_classes, "classifier."}}) {
      if (head() != head_of) names.unneeded.emplace_back(name);
    }
    if (head() == Head::ordered_word && c_.tie_word_embeddings) {
      names.tied = {{"lm_loss.weight", "transformer.word_embedding.weight"}};
    }
    return names;
  }

  ModelPlan plan() const override {
    return {.stacks = {{.layers = c_.n_layer,
                        .heads = c_.n_head,
                        .width = c_.d_model,
                        .hidden = c_.d_inner,
                        .is_causal = c_.attn_type == "uni",
                        .has_bias = false,
                        .keeps_before_activation = c_.ff_activation != "relu",
                        .has_distances = true,
                        .of_attention = {2 * c_.d_model, 3 * c_.d_model},  // types; biases
                        .word_rows = c_.vocab_size,
                        .adds_positions = false,
                        .of_input = {c_.d_model, 0}}},  // mask_emb
            .vocab = heads_.words ? c_.vocab_size : 0,
            .is_output_tied = c_.tie_word_embeddings,
            .has_output_bias = true};
  }

 private:
  static Scope base(const Scope& s, const HubConfig& hub) {
    return hub.head == Head::none ? s : s / "transformer";
  }
  static Parameter& table(const Scope& s, const Config& c) {
    return s.parameter({c.vocab_size, c.d_model}, Init::normal(c.initializer_range));
  }
  int64_t kept() const {
    return c_.mem_len.value_or(0) > 0 ? *c_.mem_len : std::numeric_limits<int32_t>::max();
  }

  // Types are no vectors here: they are in the scores.
  Tensor embed(WordRows words, const Run& run) const {
    words.types = {};
    return embedding_(words, run);
  }

  // Hugging Face counts the states of both streams by turns.
  static void show(const std::vector<Tensor>& x, size_t i, const Run& run) {
    if (run.observer == nullptr || !run.observer->hidden) return;
    run.observer->hidden(fmt::format("hidden_states.{}", i * x.size()), x[0]);
    if (x.size() > 1) {
      run.observer->hidden(fmt::format("target_hidden_states.{}", 2 * i + 1), x[1]);
    }
  }

  Pass pass_of(const WordRows& words, const Run& run) const {
    Pass pass{words, {}, {}, {}, {}, {}};
    const int64_t sequences = words.segments->count();
    pass.memory =
        Memory::before(words.memory, *words.segments, 0, c_.n_layer, c_.d_model, run.compute);
    check(!c_.bi_data || sequences % 2 == 0, ErrorKind::data,
          "bi_data is true: half of a batch runs backwards, so it cannot be of {} sequences",
          sequences);
    place_rows(pass, c_.bi_data);
    if (words.order != nullptr) words.order->check(*words.segments);
    if (pass.has_targets()) place_targets(pass);
    const bool has_mask = words.order != nullptr && !words.order->hidden.empty();
    const auto see = has_mask ? see_by_mask : see_by_steps;
    see(pass, c_, pass.of_words, false);
    if (pass.has_targets()) see(pass, c_, pass.of_targets, true);
    const int32_t most = nn::farthest(pass.of_words), least = nn::nearest(pass.of_words);
    const bool is_one_way = c_.attn_type == "uni" && !c_.bi_data;
    pass.distances = nn::distances(most, is_one_way ? std::min(0, most) : least, c_.clamp_len,
                                   c_.d_model, run.compute);
    nn::drop(pass.distances, c_.dropout, run);
    return pass;
  }

  // tanh unless config.json says another, or null: none.
  static Activation summary_activation(const HubConfig& hub) {
    const Json* name = hub.others.find("summary_activation");
    if (name == nullptr) return Activation::tanh;
    return name->is_null() ? Activation::none
                           : nn::activation_of(name->as_string("key 'summary_activation'"));
  }

  // The state of one word, a linear layer, an activation, and the classes.
  Heads::OfWords classes(const Scope& s, int64_t labels, Activation kind) const {
    const auto dense = [&](const Scope& at, int64_t out) {
      return Linear(at, {.in = c_.d_model, .out = out, .init = Init::normal(c_.initializer_range)});
    };
    std::optional<Linear> summary;
    if (c_.summary_use_proj) summary.emplace(dense(s / "sequence_summary" / "summary", c_.d_model));
    return [c = c_, summary, kind, out = dense(s / "logits_proj", labels)](
               const Tensor& h, const WordRows& words, const Run& run) {
      Tensor x = summary_rows(h, *words.segments, c.summary_type);
      x = summary ? (*summary)(x, run, kind) : kind == Activation::none ? x : activation(kind, x);
      const DropoutSpec spec =
          run.dropout(c.summary_last_dropout, "sequence_summary", first_rows(words));
      return out(dropout(x, spec), run);
    };
  }

  static Tensor summary_rows(const Tensor& h, const Segments& segments, const std::string& type) {
    std::vector<int32_t> rows;
    std::vector<Tensor> means;
    for (int64_t s = 0; s < segments.count(); ++s) {
      const int64_t n = segments.length(s);
      heddle::check(n > 0, ErrorKind::shape, "the summary of sequence {}: it is empty", s);
      rows.push_back(
          static_cast<int32_t>(type == "first" ? segments.begin(s) : segments.end(s) - 1));
      if (type != "mean") continue;
      const Tensor part = Tensor::full({1, n}, 1.0f / static_cast<float>(n), h.dtype());
      means.push_back(matmul(part, slice(h, 0, segments.begin(s), n)));
    }
    return type == "mean" ? concat(means, 0) : gather_rows(h, rows);
  }

  Config c_;
  Parameter &words_, &mask_;
  nn::Embedding embedding_;
  std::vector<Layer> layers_;
};

template std::unique_ptr<ModelConfig> new_config<Xlnet>();

}  // namespace heddle
