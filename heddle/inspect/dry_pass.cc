// Ops in the order in which a dry run passes them, gathered by the names of their layers.
#include <algorithm>
#include <map>
#include <regex>
#include <set>

#include "heddle/autograd/dry_run.h"
#include "heddle/inspect/analysis.h"
#include "heddle/models/captioner.h"
#include "heddle/nn/relative/relative_rows.h"

namespace heddle::inspect {
namespace {

// "model.layers.3.mlp.fc1": the layers it is one of, its number, and where it is in it. Of stages
// the layers are the blocks of one: "encoder.layers.0.blocks.1.output",
// "stages.0.layers.2.shortcut".
struct PlaceInLayers {
  std::string part = "input", rest = {};
  int64_t layer = -1;  // -1: it is none of several
};

// The name with * for each number.
std::string pattern_of(const std::string& name) {
  static const std::regex kNumber(R"(\b[0-9]+\b)");
  return std::regex_replace(name, kNumber, "*");
}

PlaceInLayers place_of(const std::string& name) {
  static const std::regex kLayer(
      R"((.+?(?:\.layers\.[0-9]+\.blocks|\.stages\.[0-9]+\.layers)?)\.([0-9]+)(\.(.*))?)");
  static const std::regex kExpert(R"(\bexperts\.[0-9]+\b)");
  std::smatch found;
  if (!std::regex_match(name, found, kLayer)) return {.part = name};
  return {found[1], std::regex_replace(found[4].str(), kExpert, "experts.*"), std::stoll(found[2])};
}

std::vector<int64_t> sizes_of(const Tensor& x) {
  return {x.shape().sizes().begin(), x.shape().sizes().end()};
}

// Whether rows of the one may stand below rows of the other.
bool are_as_wide(const std::vector<int64_t>& a, const std::vector<int64_t>& b) {
  return a.size() == b.size() && std::equal(a.begin() + 1, a.end(), b.begin() + 1);
}

// An attention call: what its mask says, and the work of its pairs.
struct CallWork {
  AttentionMatrices matrices = {};
  bool is_dot = true;      // it has flash attention
  int64_t rows = 0;        // of all its matrices
  int64_t flops = 0;       // of pairs
  int64_t added_work = 0;  // by a window that the pass did not have: below 0
  int64_t hidden = 0;
};

Segments cut(const Segments& segments, int64_t block) {
  std::vector<int64_t> lengths;
  for (int64_t s = 0; s < segments.count(); ++s) {
    for (int64_t at = 0; at < segments.length(s); at += block) {
      lengths.push_back(std::min(block, segments.length(s) - at));
    }
  }
  return Segments::from_lengths(lengths);
}

int64_t all_pairs(const Segments& queries, const Segments& keys) {
  return visible_pairs(queries, keys, false, nullptr);
}

CallWork call_of(const nn::AttentionCall& a, int64_t window) {
  const Segments &queries = a.queries(), &keys = a.keys();
  const nn::DotInputs* const dot = a.dot();
  const Scoring scoring = dot != nullptr ? dot->options->scoring : Scoring::dot;
  // Products of a pair, as wide as all heads: scores, of distances too, and the weighted sum. Those
  // of linear scores are of rows.
  const int64_t products = dot == nullptr ? 3 : scoring == Scoring::linear ? 1 : 2;
  const int64_t width = dot != nullptr ? dot->q.size(1) : a.distance()->x.content.size(1);
  const Visibility* const visibility =
      dot != nullptr ? dot->options->visibility.get() : &a.distance()->rows->visibility;
  const bool is_causal =
      dot != nullptr ? dot->options->causal : !a.distance()->rows->visibility.is_all();
  CallWork c{.is_dot = scoring == Scoring::dot};
  // What a query may not see is not computed by fused kernels; plain ops compute all, then hide.
  const auto flops = [&](int64_t visible, int64_t all) {
    c.flops = 2 * products * width * (c.is_dot ? visible : all);
    c.hidden = 2 * products * width * (c.is_dot ? 0 : all - visible);
  };
  flops(visible_pairs(queries, keys, is_causal, visibility), all_pairs(queries, keys));
  c.matrices = {a.heads() * queries.count(), queries.max_length(), keys.max_length()};
  c.rows = a.heads() * queries.rows();
  if (window == 0 || window >= keys.max_length() || !(queries == keys)) return c;
  const int64_t before = c.flops;
  const Segments blocks = cut(queries, window);
  flops(visible_pairs(blocks, blocks, is_causal, nullptr), all_pairs(blocks, blocks));
  c.added_work = c.flops - before;
  c.matrices.columns = window;
  return c;
}

// Gathers the steps of a pass.
class StepsOfPass {
 public:
  StepsOfPass(const nn::Parameters& parameters, int64_t window) : window_(window) {
    for (const auto& p : parameters.all()) {
      if (!p->is_buffer()) known_[p->name()] = p->elements();
    }
  }

  void attention(const nn::AttentionCall& call) {
    call_ = call_of(call, window_);
    call_begins_ = true;
  }

  void add(const DryOp& op) {
    if (call_begins_) call_layer_ = op.layer;
    const bool in_call = call_ && op.layer == call_layer_;
    if (!in_call) call_.reset();
    // The weights of plain ops, and copies of them.
    const std::string_view kind = op.name;
    if (in_call && (kind == "softmax" || (kind == "cast" && is_matrix(op.inputs[0])))) {
      matrices_.push_back(op.output.storage());
    }
    const int64_t parameters = new_parameters(op);
    if (op.work.bytes == 0 && op.work.flops == 0 && parameters == 0 && !call_begins_) return;
    Step& step = find(op, in_call);
    step.flops += static_cast<int64_t>(op.work.flops);
    step.parameters += parameters;
    for (const std::string& pattern : std::exchange(new_patterns_, {})) {
      owner_.emplace(pattern, &step - steps_.data());
    }
    if (!std::exchange(call_begins_, false)) return;
    step.attention = call_->matrices;
    step.has_flash = call_->is_dot;
    step.flops += call_->added_work;
    step.attention_flops += call_->flops;
    step.hidden_flops += call_->hidden;
    if (call_->is_dot) log_sums_ += 4 * call_->rows;
  }

  // What attention stores of its own.
  int64_t bytes_of_attention() const {
    int64_t bytes = log_sums_;
    for (const std::weak_ptr<Storage>& matrix : matrices_) {
      if (const auto held = matrix.lock()) bytes += held->bytes();
    }
    return bytes;
  }

  // Those of the parameters that no op read go where others of the same name are.
  std::vector<Step> take() {
    for (const auto& [name, elements] : known_) {
      if (used_.contains(name)) continue;
      const std::string pattern = pattern_of(name);
      const auto [at, is_new] = owner_.emplace(pattern, steps_.size());
      if (is_new) steps_.push_back({.part = "not in this pass", .name = pattern});
      steps_[at->second].parameters += elements;
    }
    return std::move(steps_);
  }

  bool has_learned_positions() const { return has_learned_positions_; }

 private:
  // A step, with the last of its layers and the shapes of its first op.
  struct Begun {
    size_t step = 0;
    int64_t last_layer = -1;
    std::vector<int64_t> in, out;
  };

  bool is_matrix(const Tensor& x) const {
    return std::ranges::any_of(matrices_, [&](const auto& m) { return m.lock() == x.storage(); });
  }

  int64_t new_parameters(const DryOp& op) {
    int64_t count = 0;
    for (const Tensor& x : op.inputs) {
      if (x.leaf() == nullptr || !known_.contains(x.leaf()->name)) continue;
      if (!used_.insert(x.leaf()->name).second) continue;
      new_patterns_.push_back(pattern_of(x.leaf()->name));
      count += x.elements();
    }
    return count;
  }

  // Ops outside of named layers go with what came before them.
  Step& find(const DryOp& op, bool in_call) {
    if (!op.layer.empty()) {
      const PlaceInLayers place = place_of(op.layer);
      if (place.part != place_.part) ++visit_;
      place_ = place;
    }
    const bool has_positions =
        std::string_view(op.name) == "embedding" && op.inputs.size() > 1 && op.inputs[1].defined();
    if ((has_positions && op.inputs[1].leaf() != nullptr) || op.layer == "positions") {
      has_learned_positions_ = true;  // beside tokens, or alone
    }
    // The first norm of a stack adds nothing, the others do.
    const bool is_norm = std::string_view(op.name).ends_with("norm");
    const std::string kind = in_call         ? "attention"
                             : is_norm       ? "norm"
                             : has_positions ? "embedding and positions"
                                             : op.name;
    const std::string rest = op.layer.empty() ? "" : place_.rest;
    const std::string name = rest + (rest.empty() ? "" : " ") + kind;
    const Tensor& x = op.inputs[0];
    std::vector<int64_t> out = sizes_of(op.output);
    std::vector<int64_t> in = x.leaf() != nullptr ? std::vector{out[0]} : sizes_of(x);
    const std::string group =
        place_.layer >= 0 ? place_.part : fmt::format("{} {}", place_.part, visit_);
    std::vector<Begun>& same_name = begun_[{group, name}];
    for (Begun& begun : same_name) {
      Step& step = steps_[begun.step];
      if (begun.last_layer != place_.layer) {
        if (begun.in != in || begun.out != out) continue;
        begun.last_layer = place_.layer;
        ++step.layers;
        return step;
      }
      if (in_call) {
        step.out = out;
        return step;
      }
      if (!are_as_wide(begun.in, in) || !are_as_wide(begun.out, out)) continue;
      if (step.layers == 1) {
        step.in[0] += in[0];
        step.out[0] += out[0];
      }
      return step;
    }
    same_name.push_back({steps_.size(), place_.layer, in, out});
    steps_.push_back({.part = place_.part, .name = name, .in = in, .out = out});
    return steps_.back();
  }

  int64_t window_, log_sums_ = 0;
  std::vector<Step> steps_;
  std::map<std::pair<std::string, std::string>, std::vector<Begun>> begun_;  // by group and name
  PlaceInLayers place_;
  int64_t visit_ = 0;
  std::optional<CallWork> call_;
  bool call_begins_ = false;
  std::string call_layer_;
  std::map<std::string, int64_t> known_;  // parameters, with their elements
  std::set<std::string> used_;
  std::vector<std::string> new_patterns_;
  std::map<std::string, size_t> owner_;  // of names of parameters
  std::vector<std::weak_ptr<Storage>> matrices_;
  bool has_learned_positions_ = false;
};

// The tokens of one side.
struct SideRows {
  std::vector<int32_t> ids;
  Segments segments;

  SideRows(int64_t batch, int64_t length)
      : ids(batch * length), segments(Segments::uniform(batch, length)) {}
  nn::TokenRows rows() const { return {.ids = ids, .segments = &segments}; }
};

// Black images.
struct PixelRows {
  std::vector<ImageSize> sizes;
  Segments segments;
  Tensor x;

  PixelRows(const Workload& w, int64_t channels)
      : sizes(static_cast<size_t>(w.batch), w.image),
        segments(nn::image_segments(sizes)),
        x(Tensor::zeros({segments.rows(), channels}, DType::f32)) {}
  nn::ImageRows rows() const { return {.x = x, .segments = &segments, .sizes = &sizes}; }
};

void run_heads(const Heads& heads, const Tensor& h, const ModelInput& input, const nn::Run& run) {
  for (const Heads::OfInput& head :
       {heads.pooler, heads.next_sentence, heads.sequence_classes, heads.token_classes}) {
    if (head) head(h, input, run);
  }
  for (const Heads::OfRows& head : {heads.object_classes, heads.boxes}) {
    if (head) head(h, run);
  }
}

// States of a captioner's decoder.
Tensor states(const Captioner& model, const Workload& w, const SideRows& target,
              const nn::Run& run) {
  const PixelRows pixels(w, model.images().channels);
  const nn::ImageRows images = pixels.rows();
  return model.decode(target.rows(), model.encode(images, run), model.memory_segments(images), run);
}

// States of the last stack; a model that remembers begins with an empty memory.
Tensor states(const Model& model, const SideRows& source, const SideRows& target,
              nn::Memory& memory, const nn::Run& run) {
  if (const auto* both = model.as<EncoderDecoder>()) {
    const Tensor read = both->encode(source.rows(), run);
    return both->decode(target.rows(), read, source.segments, run);
  }
  nn::TokenRows tokens = source.rows();
  if (model.as<WithMemory>() != nullptr) tokens.memory = &memory;
  return model.hidden(tokens, run);
}

}  // namespace

DryPass dry_pass(const Model& any, nn::Parameters& parameters, const Workload& w, nn::Run run) {
  const auto* const captioner = any.as<Captioner>();
  StepsOfPass steps(parameters, w.window);
  DryPass pass;
  DryRun dry([&steps](const DryOp& op) { steps.add(op); });
  for (auto& p : parameters.all()) p->in(run.compute);
  nn::Observer observer;
  observer.attention = [&steps](const nn::AttentionCall& call) { steps.attention(call); };
  if (!run.recompute) run.observer = &observer;
  const int64_t before = dry.bytes();
  const auto note_kept = [&] { pass.kept = dry.bytes() - before - steps.bytes_of_attention(); };
  if (const auto* images = any.as<ImageModel>()) {
    const PixelRows pixels(w, images->facts().channels);
    const nn::ImageRows rows = pixels.rows();
    const Tensor h = images->hidden(rows, run);
    note_kept();
    run_heads(any.heads(), h, rows, run);
  } else {
    const SideRows source(w.batch, w.source), target(w.batch, w.target);
    nn::Memory memory =
        nn::Memory::before(nullptr, source.segments, 0, any.layers(), any.width(), run.compute);
    const Tensor h = captioner != nullptr ? states(*captioner, w, target, run)
                                          : states(any, source, target, memory, run);
    memory = {};
    note_kept();
    run_heads(any.heads(), h, source.rows(), run);
    if (any.heads().output) any.heads().token_logits(h, run);
  }
  pass.has_learned_positions = steps.has_learned_positions();
  pass.steps = steps.take();
  return pass;
}

}  // namespace heddle::inspect
