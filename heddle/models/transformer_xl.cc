// Transformer-XL: Dai et al. 2019, "Transformer-XL: Attentive Language Models Beyond a Fixed-Length
// Context"; words by frequency as in Baevski & Auli 2019. Names and keys are those of transformers'
// `transfo-xl`, whose logits are log probabilities.
#include <algorithm>
#include <cmath>

#include "heddle/models/family.h"
#include "heddle/nn/adaptive.h"
#include "heddle/nn/mlp.h"
#include "heddle/nn/relative_attention.h"
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
using nn::WordCluster;
using nn::WordRows;

// Hugging Face's keys; the defaults are those of transfo-xl-wt103.
struct TransformerXlConfig {
  int64_t vocab_size = 267735, d_model = 1024, d_embed = 1024, n_head = 16, d_head = 64;
  int64_t d_inner = 4096, n_layer = 18, div_val = 4;
  std::vector<int64_t> cutoffs = {20000, 40000, 200000};
  bool pre_lnorm = false, same_length = true, untie_r = true, tie_word_embeddings = true;
  int64_t mem_len = 1600, clamp_len = 1000, attn_type = 0;
  bool proj_share_all_but_first = true;
  std::vector<bool> tie_projs;  // the same, group by group, in checkpoints; see the constructor
  double dropout = 0.1, dropatt = 0, layer_norm_epsilon = 1e-5;
  double init_std = 0.02, proj_init_std = 0.01;

  template <class V>
  void fields(V& v) {
    v("vocab_size", vocab_size, "words known to the tokenizer", at_least(1));
    v("cutoffs", cutoffs, "ids where rarer words begin: each group is a softmax of its own");
    v("d_model", d_model, "width of the residual stream; even", at_least(2));
    v("d_embed", d_embed, "width of the vectors of the commonest words", at_least(1));
    v("div_val", div_val, "each group's vectors are narrower by this factor", at_least(1));
    v("n_head", n_head, "attention heads", at_least(1));
    v("d_head", d_head, "width of a head", at_least(1));
    v("d_inner", d_inner, "width inside the feed-forward layers", at_least(1));
    v("n_layer", n_layer, "number of layers", at_least(1));
    v("pre_lnorm", pre_lnorm, "norm before each sublayer, not after it");
    v("mem_len", mem_len, "states of words before a segment that its words see", at_least(0));
    v("same_length", same_length, "each word sees mem_len words, itself counted");
    v("clamp_len", clamp_len, "greater distances count as this; 0 or less: none does");
    v("attn_type", attn_type, "not supported: must be 0, relative distances");
    v("proj_share_all_but_first", proj_share_all_but_first,
      "groups but the first project in and out by one matrix");
    v("tie_word_embeddings", tie_word_embeddings, "words' vectors predict them too");
    v("untie_r", untie_r, "each layer has biases of content and distance of its own");
    v("dropout", dropout, "of embeddings and sublayers", from_below(0, 1));
    v("dropatt", dropatt, "of the attention weights", from_below(0, 1));
    v("layer_norm_epsilon", layer_norm_epsilon, "inside the root of each norm", above(0));
    v("init_std", init_std, "deviation of the weights at the start", at_least(0));
    v("proj_init_std", proj_init_std, "the same of projections of words", at_least(0));
  }
  void check(const std::string& source) const {
    heddle::check(attn_type == 0, ErrorKind::data,
                  "{}: attn_type is {}; heddle has 0, relative distances, only", source, attn_type);
    heddle::check(d_model % 2 == 0, ErrorKind::data,
                  "{}: d_model {} is odd; each distance is sines and as many cosines", source,
                  d_model);
    int64_t before = 0;
    for (const int64_t cutoff : cutoffs) {
      heddle::check(cutoff > before && cutoff < vocab_size, ErrorKind::data,
                    "{}: cutoffs are {}; they must rise from above 0 to below vocab_size {}",
                    source, fmt::join(cutoffs, ", "), vocab_size);
      before = cutoff;
    }
    heddle::check(narrow(cutoffs.size()) >= 1, ErrorKind::data,
                  "{}: d_embed {} divided by {} for each of {} cutoffs leaves nothing", source,
                  d_embed, div_val, cutoffs.size());
  }

  // Width of the vectors of group i.
  int64_t narrow(size_t i) const {
    int64_t width = d_embed;
    for (size_t n = 0; n < i && div_val > 1; ++n) width /= div_val;
    return width;
  }
  bool has_projections() const { return div_val > 1 || d_embed != d_model; }
  bool is_projection_tied(size_t i) const {
    if (!tie_projs.empty()) return i < tie_projs.size() && tie_projs[i];
    return i > 0 && proj_share_all_but_first;
  }
};

// --- words ---------------------------------------------------------------------------------------

// The tables of words coming in, or, `out`, going out, by their names in checkpoints.
std::vector<WordCluster> clusters(const Scope& in, const Scope& out, bool is_out,
                                  const TransformerXlConfig& c) {
  std::vector<WordCluster> all;
  const auto projection = [&](const Scope& s, const char* name, size_t i) {
    return &(s / name / static_cast<int64_t>(i))
                .parameter({c.d_model, c.narrow(i)}, Init::normal(c.proj_init_std));
  };
  for (size_t i = 0; i <= c.cutoffs.size(); ++i) {
    const int64_t begin = i == 0 ? 0 : c.cutoffs[i - 1];
    const int64_t end = i == c.cutoffs.size() ? c.vocab_size : c.cutoffs[i];
    const bool is_alone = c.div_val > 1;  // in a table of its own
    const int64_t table = is_alone ? static_cast<int64_t>(i) : 0;
    const int64_t words = is_alone ? end - begin : c.vocab_size;
    const Scope own =
        is_out && !c.tie_word_embeddings ? out / "out_layers" / table : in / "emb_layers" / table;
    WordCluster w{.begin = begin, .words = end - begin, .row = is_alone ? 0 : begin};
    w.table = &(own / "weight").parameter({words, c.narrow(i)}, Init::normal(c.init_std));
    const size_t shared = is_alone ? i : 0;
    if (c.has_projections()) {
      w.projection = is_out && !c.is_projection_tied(i) ? projection(out, "out_projs", i)
                                                        : projection(in, "emb_projs", shared);
    }
    if (is_out) {
      w.bias = &(out / "out_layers" / table / "bias").parameter({words}, Init::zeros());
    }
    all.push_back(w);
  }
  return all;
}

nn::WordOutput word_output(const Scope& in, const Scope& out, const TransformerXlConfig& c) {
  Parameter *weight = nullptr, *bias = nullptr;
  if (!c.cutoffs.empty()) {
    const auto groups = static_cast<int64_t>(c.cutoffs.size());
    weight = &(out / "cluster_weight").parameter({groups, c.d_embed}, Init::normal(c.init_std));
    bias = &(out / "cluster_bias").parameter({groups}, Init::zeros());
  }
  return nn::WordOutput(std::make_shared<const nn::AdaptiveSoftmax>(
      out.prefix(), clusters(in, out, true, c), weight, bias));
}

// --- layers --------------------------------------------------------------------------------------

// What all layers of one pass see.
struct Pass {
  const WordRows words;
  RelativeRows rows;
  nn::Distances distances;
  Memory memory;                // of whole passes
  std::vector<int32_t> cached;  // [keys] of passes that continue a cache: rows there, -1: zero
};

struct Layer {
  Parameter& qkv;
  Linear r_net, o_net;
  LayerNorm attn_norm, ff_norm;
  nn::RelativeAttention attention;
  nn::FeedForward ff;
  std::string site;
  int64_t layer, width, inner;
  double dropout;
  bool is_pre;

  Layer(const Scope& base, const TransformerXlConfig& c, int64_t i)
      : Layer(base, base / "layers" / i, c, i) {}
  Layer(const Scope& base, const Scope& s, const TransformerXlConfig& c, int64_t i)
      : qkv((s / "dec_attn" / "qkv_net" / "weight")
                .parameter({3 * c.n_head * c.d_head, c.d_model}, Init::normal(c.init_std))),
        r_net(dense(s / "dec_attn" / "r_net", c.d_model, c.n_head * c.d_head, c, false)),
        o_net(dense(s / "dec_attn" / "o_net", c.n_head * c.d_head, c.d_model, c, false)),
        attn_norm(s / "dec_attn" / "layer_norm", c.d_model, c.layer_norm_epsilon),
        ff_norm(s / "pos_ff" / "layer_norm", c.d_model, c.layer_norm_epsilon),
        attention((s / "dec_attn").prefix(),
                  {.heads = c.n_head,
                   .dropout = c.dropatt,
                   .content = &bias(c.untie_r ? s / "dec_attn" : base, c, "r_w_bias"),
                   .distance = &bias(c.untie_r ? s / "dec_attn" : base, c, "r_r_bias")}),
        ff((s / "pos_ff").prefix(),
           dense(s / "pos_ff" / "CoreNet" / "0", c.d_model, c.d_inner, c, true),
           dense(s / "pos_ff" / "CoreNet" / "3", c.d_inner, c.d_model, c, true),
           {.activation = Activation::relu, .dropout = c.dropout}),
        site(s.prefix()),
        layer(i),
        width(c.d_model),
        inner(c.n_head * c.d_head),
        dropout(c.dropout),
        is_pre(c.pre_lnorm) {}

  static Linear dense(const Scope& s, int64_t in, int64_t out, const TransformerXlConfig& c,
                      bool has_bias) {
    return {s, {.in = in, .out = out, .bias = has_bias, .init = Init::normal(c.init_std)}};
  }
  static Parameter& bias(const Scope& s, const TransformerXlConfig& c, const std::string& name) {
    return (s / name).parameter({c.n_head * c.d_head}, Init::normal(c.init_std), nn::Layout::as_is,
                                {c.n_head, c.d_head});
  }

  void operator()(Residual& x, const Pass& pass, const Run& run) const {
    const auto& row_ids = pass.words.rows;
    const Tensor in = x.enter(attn_norm);
    const Tensor all = nn::product(in, qkv, {}, run);
    const Tensor kv = keys(slice(all, 1, inner, 2 * inner), pass, run);
    const nn::RelativeKeys of_layer{slice(kv, 1, 0, inner), slice(kv, 1, inner, inner),
                                    r_net(pass.distances.table, run), pass.distances.farthest};
    const Tensor heads = attention(slice(all, 1, 0, inner), of_layer,
                                   {&pass.rows, row_ids, fmt::format("attentions.{}", layer)}, run);
    x.leave(o_net(heads, run), run.dropout(dropout, site + ".attn", row_ids), attn_norm);
    x.leave(ff(x.enter(ff_norm), row_ids, run), run.dropout(dropout, site + ".ff", row_ids),
            ff_norm);
  }

  // Keys and values of the memory, then those of the words themselves: [key rows, 2 inner].
  Tensor keys(const Tensor& own, const Pass& pass, const Run& run) const {
    if (pass.words.cache != nullptr) return cached_keys(own, pass, run);
    if (pass.memory.segments.rows() == 0) return own;
    const Tensor before = remembered(pass.memory.layers[layer], run);
    return join_segments(before, pass.memory.segments, own, *pass.words.segments);
  }

  // Keys and values of states that entered this layer.
  Tensor remembered(const Tensor& states, const Run& run) const {
    const Tensor x = is_pre ? attn_norm(states) : states;
    return linear(x, slice(qkv.in(run.compute), 0, inner, 2 * inner), {});
  }

  Tensor cached_keys(const Tensor& own, const Pass& pass, const Run& run) const {
    nn::RowCache& cache = pass.words.cache->layer(layer);
    cache.put(own, pass.words.cache->keys().new_rows);
    std::vector<int32_t> index = pass.cached;
    for (int32_t& row : index) row = std::max(row, 0);
    const Tensor all = gather_rows(cache.rows(), index);
    const Tensor nothing = remembered(Tensor::zeros({1, width}, run.compute), run);
    for (size_t i = 0; i < index.size(); ++i) {
      if (pass.cached[i] >= 0) continue;
      kernels().convert(nothing.rows(), all.rows().slice(static_cast<int64_t>(i), 1));
    }
    return all;
  }
};

// --- who sees whom -------------------------------------------------------------------------------

// Whole segments behind a memory.
void place_rows(Pass& pass) {
  const Segments& words = *pass.words.segments;
  const Segments& memory = pass.memory.segments;
  pass.rows.queries = words;
  pass.rows.query_places = pass.words.positions();
  std::vector<int64_t> lengths;
  for (int64_t s = 0; s < words.count(); ++s) {
    const int64_t n = memory.length(s);
    for (int64_t i = -n; i < 0; ++i) pass.rows.key_places.push_back(static_cast<int32_t>(i));
    const auto first = pass.rows.query_places.begin();
    pass.rows.key_places.insert(pass.rows.key_places.end(), first + words.begin(s),
                                first + words.end(s));
    lengths.push_back(n + words.length(s));
  }
  pass.rows.keys = Segments::from_lengths(lengths);
}

// Words that continue sequences of a cache: the last `most` before them are their memory, where
// zeros stand before the first word. Without a memory (0) the whole text goes on.
void place_cached_rows(Pass& pass, int64_t most) {
  const nn::CachedKeys cached = pass.words.cache->keys();
  pass.rows.queries = *cached.queries;
  pass.rows.query_places.assign(cached.places.begin(), cached.places.end());
  std::vector<int64_t> lengths;
  for (int64_t s = 0; s < cached.keys->count(); ++s) {
    const int64_t all = cached.keys->length(s), before = all - cached.queries->length(s);
    const int64_t seen = most > 0 ? most : before;
    for (int64_t place = before - seen; place < all; ++place) {
      pass.rows.key_places.push_back(static_cast<int32_t>(place));
      pass.cached.push_back(place < 0 ? -1 : cached.key_rows[cached.keys->begin(s) + place]);
    }
    lengths.push_back(seen + all - before);
  }
  pass.rows.keys = Segments::from_lengths(lengths);
}

}  // namespace

class TransformerXl final : public LanguageModel {
 public:
  using Config = TransformerXlConfig;
  static std::vector<HeadClass> heads() {
    return {{Head::next_word, "TransfoXLLMHeadModel"},
            {Head::none, "TransfoXLModel"},
            {Head::sequence_classes, "TransfoXLForSequenceClassification"}};
  }
  static std::vector<std::pair<std::string, std::string>> aliases() {
    return {{"n_token", "vocab_size"},
            {"hidden_size", "d_model"},
            {"num_attention_heads", "n_head"},
            {"num_hidden_layers", "n_layer"}};
  }

  TransformerXl(const Scope& s, const Config& c, const HubConfig& hub)
      : c_(with_ties(c, hub)),
        embedding_("word_emb", clusters(base(s, hub) / "word_emb", s / "crit", false, c_),
                   static_cast<float>(std::sqrt(static_cast<double>(c.d_model)))) {
    for (int64_t i = 0; i < c.n_layer; ++i) layers_.emplace_back(base(s, hub), c_, i);
    if (hub.head == Head::next_word) {
      heads_.words.emplace(word_output(base(s, hub) / "word_emb", s / "crit", c_));
    } else if (hub.head == Head::sequence_classes) {
      const ClassOptions classes{.width = c.d_model,
                                 .labels = static_cast<int64_t>(hub.labels.size()),
                                 .std = c.init_std,
                                 .bias = false};
      heads_.sequence_classes = classes_of_last_word(s / "score", classes, hub.pad_token_id);
    }
  }

  int64_t vocab_size() const override { return c_.vocab_size; }
  int64_t max_length() const override { return std::numeric_limits<int32_t>::max() / 2; }
  int64_t layers() const override { return c_.n_layer; }
  int64_t width() const override { return c_.d_model; }
  bool has_memory() const override { return true; }
  int64_t memory_length() const override { return c_.mem_len; }

  Tensor hidden(const WordRows& words, const Run& run) const override {
    const auto pass = std::make_shared<Pass>(pass_of(words, run));
    const auto entered = std::make_shared<std::vector<Tensor>>(c_.n_layer);
    const bool is_kept = words.memory != nullptr;
    const Tensor x =
        dropout(embedding_(words.ids, run), run.dropout(c_.dropout, "word_emb", words.rows));
    const Tensor h =
        nn::run_stack("", Residual(x, c_.pre_lnorm), layers_.size(), nullptr, run,
                      [this, pass, entered, is_kept, run](size_t i, Residual& r, auto) {
                        if (is_kept) (*entered)[i] = r.value();
                        layers_[i](r, *pass, run);
                      });
    if (is_kept) *words.memory = pass->memory.next(*entered, *words.segments, {c_.mem_len});
    return dropout(h, run.dropout(c_.dropout, "last", words.rows));
  }

  nn::TensorNames names() const override {
    nn::TensorNames names{.base = "transformer", .unneeded = {"pos_emb.inv_freq"}};
    if (head() != Head::next_word) {
      names.unneeded.emplace_back("crit.");
      return names;
    }
    const std::string emb = "transformer.word_emb.";
    for (size_t i = 0; i <= c_.cutoffs.size(); ++i) {
      if (c_.tie_word_embeddings && (i == 0 || c_.div_val > 1)) {
        names.tied.emplace_back(fmt::format("crit.out_layers.{}.weight", i),
                                fmt::format("{}emb_layers.{}.weight", emb, i));
      }
      if (c_.has_projections() && c_.is_projection_tied(i)) {
        names.tied.emplace_back(fmt::format("crit.out_projs.{}", i),
                                fmt::format("{}emb_projs.{}", emb, c_.div_val > 1 ? i : 0));
      }
    }
    return names;
  }

  ModelPlan plan() const override {
    return {.stacks = {{.layers = c_.n_layer,
                        .heads = c_.n_head,
                        .width = c_.d_model,
                        .hidden = c_.d_inner,
                        .head_width = c_.d_head,
                        .is_causal = !(c_.same_length && c_.mem_len == 0),  // see hide_all()
                        .has_bias = false,
                        .has_distances = true,
                        .of_attention = {0, c_.untie_r ? biases() : 0},
                        .adds_positions = false,
                        .of_input = {word_matrices(), c_.untie_r ? 0 : biases()}}},
            .vocab = heads_.words ? c_.vocab_size : 0,
            .has_output_bias = true,
            .of_output = heads_.words ? output_matrices() : OtherParameters{},
            .output_products = output_products()};
  }

 private:
  static Scope base(const Scope& s, const HubConfig& hub) {
    return hub.head == Head::none ? s : s / "transformer";
  }
  // --- what the plan counts ---
  int64_t groups() const { return static_cast<int64_t>(c_.cutoffs.size()); }
  int64_t biases() const { return 2 * c_.n_head * c_.d_head; }
  int64_t words_of(size_t i) const {
    return (i == c_.cutoffs.size() ? c_.vocab_size : c_.cutoffs[i]) -
           (i > 0 ? c_.cutoffs[i - 1] : 0);
  }
  int64_t projection(size_t i) const {
    return c_.has_projections() ? c_.d_model * c_.narrow(i) : 0;
  }
  int64_t word_matrices() const {
    int64_t count = c_.div_val > 1 ? 0 : projection(0);
    for (size_t i = 0; i <= c_.cutoffs.size(); ++i) {
      count += words_of(i) * c_.narrow(i) + (c_.div_val > 1 ? projection(i) : 0);
    }
    return count;
  }
  OtherParameters output_matrices() const {
    OtherParameters count{groups() * c_.d_embed, groups()};
    for (size_t i = 0; i <= c_.cutoffs.size(); ++i) {
      if (!c_.tie_word_embeddings) count.matrices += words_of(i) * c_.narrow(i);
      if (!c_.is_projection_tied(i)) count.matrices += projection(i);
    }
    return count;
  }
  int64_t output_products() const {
    int64_t count = groups() * c_.d_embed;
    for (size_t i = 0; i <= c_.cutoffs.size(); ++i) {
      count += words_of(i) * c_.narrow(i) + projection(i);
    }
    return count;
  }

  // transformers writes which projections are tied beside what it follows from, and goes by it.
  static Config with_ties(Config c, const HubConfig& hub) {
    const Json* ties = hub.others.find("tie_projs");
    if (ties == nullptr || ties->is_null()) return c;
    for (const Json& tie : ties->as_array("tie_projs"))
      c.tie_projs.push_back(tie.as_bool("tie_projs"));
    return c;
  }

  Pass pass_of(const WordRows& words, const Run& run) const {
    Pass pass{words, {}, {}, {}, {}};
    if (words.cache != nullptr) {
      place_cached_rows(pass, c_.mem_len);
    } else {
      // A text begins behind a memory of zeros, as in transformers.
      pass.memory = Memory::before(words.memory, *words.segments, c_.mem_len, c_.n_layer,
                                   c_.d_model, run.compute);
      place_rows(pass);
    }
    if (c_.same_length && c_.mem_len == 0) {
      hide_all(pass.rows);
    } else {
      nn::see_back(pass.rows, c_.same_length ? c_.mem_len : 0);
    }
    pass.distances =
        nn::distances(nn::farthest(pass.rows), 0, c_.clamp_len, c_.d_model, run.compute);
    nn::drop(pass.distances, c_.dropout, run);
    return pass;
  }

  // Nobody may see anything: transformers then lets all see all, alike.
  static void hide_all(RelativeRows& rows) {
    for (int64_t s = 0; s < rows.queries.count(); ++s) {
      rows.hidden.resize(rows.hidden.size() + rows.queries.length(s) * rows.keys.length(s), 1);
    }
  }

  Config c_;
  nn::AdaptiveEmbedding embedding_;
  std::vector<Layer> layers_;
};

template std::unique_ptr<ModelConfig> new_config<TransformerXl>();

}  // namespace heddle
