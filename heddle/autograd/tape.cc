// Recording steps, and walking them backwards; sums of gradients in a fixed order.
#include "heddle/autograd/tape.h"

#include <array>
#include <atomic>
#include <utility>

#include "heddle/autograd/dry_run.h"
#include "heddle/autograd/final_gradients.h"
#include "heddle/kernels/kernels.h"

namespace heddle {
namespace {

struct Edge {
  TapePlace place;
  Leaf* leaf = nullptr;
  Shape shape = {};
};

struct TapeStep {
  const char* name;
  uint32_t profiled_layer;
  std::vector<Edge> inputs;
  int32_t outputs;
  BackwardMany backward;
  std::vector<Leaf*> within = {};  // of recompute(): leaves that it uses, if somebody asks
  bool is_recomputed = false;
};

// Steps of all threads' tapes have numbers of their own, so that a place names its tape too: each
// tape has a range of them, which lasts a year at 100,000 steps a second.
int64_t first_step_of_a_tape() {
  constexpr int64_t kSteps = int64_t{1} << 42, kTapes = int64_t{1} << 21;
  static std::atomic<int64_t> tapes = 0;
  return tapes.fetch_add(1) % kTapes * kSteps;
}

struct Tape {
  const std::function<void(const DryOp&)>* dry_run = nullptr;
  std::vector<TapeStep> steps;
  int64_t first = first_step_of_a_tape();  // number of steps[0]: those before it were taken off
  bool recording = true;
  bool check_finite = false;
  const std::string* layer = nullptr;
};

thread_local Tape the_tape;

void check_output(const char* name, const Tensor& output) {
  if (output.dtype() != DType::f32 && output.dtype() != DType::bf16) return;
  if (kernels().all_finite(output.to_contiguous().rows())) return;
  fail(
      ErrorKind::data,
      "the output of op '{}' in layer '{}', shape {}, is not finite; lower the learning rate, clip "
      "gradients, or compute in f32",
      name, LayerName::current(), output.shape());
}

void push(const char* name, std::span<const Tensor> inputs, std::span<Tensor* const> outputs,
          BackwardMany backward) {
  TapeStep step{name,
                is_profiling() ? profiled_layer() : 0,
                {},
                static_cast<int32_t>(outputs.size()),
                std::move(backward)};
  step.inputs.reserve(inputs.size());
  for (const Tensor& input : inputs) {
    step.inputs.push_back({input.place(), input.leaf(), input.shape()});
  }
  const auto number = the_tape.first + static_cast<int64_t>(the_tape.steps.size());
  the_tape.steps.push_back(std::move(step));
  for (size_t i = 0; i < outputs.size(); ++i) {
    *outputs[i] = outputs[i]->with_place({number, static_cast<int32_t>(i)});
  }
}

// Sums of gradients are kept in the dtype that they arrive in. A sum never writes into a tensor
// that a closure may hold: the first gradient of a slot is shared, the second makes a new tensor.
void add_to(Tensor& sum, const Tensor& grad) {
  if (!sum.defined()) {
    sum = grad.detached();
    return;
  }
  check(sum.shape() == grad.shape(), ErrorKind::internal, "gradients of shapes {} and {} meet",
        sum.shape(), grad.shape());
  Tensor total = empty_like(sum);
  kernels().add(sum.rows(), grad.rows(), total.rows());
  sum = total;
}

void add_to_leaf(Leaf& leaf, const Tensor& grad) {
  if (const auto* asking = FinalGradients::current()) asking->check_open(leaf);
  if (leaf.grad.defined()) {
    const Rows sum = leaf.grad.rows(), more = grad.rows();
    check(sum.rows == more.rows && sum.width == more.width, ErrorKind::shape,
          "the gradient of '{}' is {}, what is to be added to it {}", leaf.name, leaf.grad.shape(),
          grad.shape());
    kernels().add(sum, more, sum);
  } else if (grad.dtype() == DType::f32 && grad.contiguous() && grad.storage().use_count() <= 2) {
    leaf.grad = grad.detached();  // nobody else holds it: no copy
  } else {
    leaf.grad = Tensor::empty(grad.shape(), DType::f32);
    kernels().convert(grad.rows(), leaf.grad.rows());
  }
}

bool is_on_tape(const Tensor& x) {
  const int64_t at = x.place().step - the_tape.first;
  return at >= 0 && at < std::ssize(the_tape.steps);
}

bool leads_to_leaf(const Tensor& x) {
  check(
      x.place().step < 0 || is_on_tape(x), ErrorKind::internal,
      "a tensor of shape {} comes from a tape that was emptied, or from another thread's; compute "
      "it again, in this thread",
      x.shape());
  return x.leaf() != nullptr || x.place().step >= 0;
}

bool any_leads_to_leaf(std::span<const Tensor> inputs) {
  bool any = false;
  for (const Tensor& input : inputs) any = leads_to_leaf(input) || any;
  return any;
}

// Empties the tape; the numbers of its steps are not used again.
std::vector<TapeStep> take_steps() {
  std::vector<TapeStep> steps = std::move(the_tape.steps);
  the_tape.steps.clear();
  the_tape.first += static_cast<int64_t>(steps.size());
  return steps;
}

Grads gradients(const TapeStep& step, std::span<const Tensor> dys) {
  const ProfiledStep profiled(step.name, step.profiled_layer);
  Grads grads = step.backward(dys);
  check(grads.size() == step.inputs.size(), ErrorKind::internal,
        "op '{}' has {} inputs but gave {} gradients", step.name, step.inputs.size(), grads.size());
  return grads;
}

// Hands the gradients of a step's inputs on to leaves and to the slots of earlier steps.
void pass_on(const TapeStep& step, Grads grads, int64_t first,
             std::vector<std::vector<Tensor>>& slots) {
  const ProfiledStep profiled("sum of gradients", step.profiled_layer);
  for (size_t j = 0; j < grads.size(); ++j) {
    const Edge& edge = step.inputs[j];
    if (!grads[j].defined() || (edge.leaf == nullptr && edge.place.step < 0)) continue;
    const Tensor g = std::move(grads[j]);
    check(g.shape() == edge.shape, ErrorKind::shape,
          "op '{}' gave its input {}, {}, a gradient of shape {}", step.name, j + 1, edge.shape,
          g.shape());
    if (edge.leaf != nullptr) {
      add_to_leaf(*edge.leaf, g);
    } else {
      add_to(slots[edge.place.step - first][edge.place.slot], g);
    }
  }
}

template <class F>
void for_each_leaf(const TapeStep& step, const F& f) {
  for (const Edge& edge : step.inputs) {
    if (edge.leaf != nullptr) f(*edge.leaf);
  }
  for (const Leaf* leaf : step.within) f(*leaf);
}

// Leaves that a recomputed step was not seen to use may still be reached by it.
void expect_leaves(const std::vector<TapeStep>& steps, FinalGradients& asking) {
  bool is_sure = true;
  for (const TapeStep& step : steps) {
    is_sure = is_sure && !step.is_recomputed;
    for_each_leaf(step, [&](const Leaf& leaf) { asking.expect(leaf); });
  }
  asking.begin(is_sure);
}

// Walks steps backwards from outputs, whose gradients are dys (undefined: 0). asking: who is told
// what each step leads to once it has been walked back, or null
void walk_back(std::vector<TapeStep> steps, int64_t first, std::span<const Tensor> outputs,
               std::span<const Tensor> dys, FinalGradients* asking = nullptr) {
  const NoGrad off;
  std::vector<std::vector<Tensor>> grads(steps.size());
  for (size_t i = 0; i < steps.size(); ++i) grads[i].resize(steps[i].outputs);
  for (size_t i = 0; i < outputs.size(); ++i) {
    const TapePlace place = outputs[i].place();
    if (!dys[i].defined() || place.step < first) continue;
    add_to(grads[place.step - first][place.slot], dys[i]);
  }
  for (auto i = static_cast<int64_t>(steps.size()) - 1; i >= 0; --i) {
    TapeStep& step = steps[i];
    bool reached = false;
    for (const Tensor& g : grads[i]) reached = reached || g.defined();
    if (reached) {
      pass_on(step, gradients(step, grads[i]), first, grads);
    }
    step.backward = nullptr;  // frees what it saved
    grads[i].clear();
    if (asking == nullptr) continue;
    for_each_leaf(step, [&](const Leaf& leaf) { asking->pass(leaf); });
  }
}

}  // namespace

DryRun::DryRun(std::function<void(const DryOp&)> each)
    : each_(std::move(each)),
      counted_before_(std::exchange(profile_detail::counted, &work_)),
      each_before_(std::exchange(the_tape.dry_run, &each_)) {}

DryRun::~DryRun() {
  clear_tape();
  profile_detail::counted = counted_before_;
  the_tape.dry_run = each_before_;
}

bool is_recording() { return the_tape.recording; }

Recording::Recording(bool is_on) : before_(std::exchange(the_tape.recording, is_on)) {}
Recording::~Recording() { the_tape.recording = before_; }

bool needs_grad(std::initializer_list<const Tensor*> inputs) {
  if (!the_tape.recording) return false;
  for (const Tensor* input : inputs) {
    if (leads_to_leaf(*input)) return true;
  }
  return false;
}

bool needs_record(std::initializer_list<const Tensor*> inputs) {
  return is_profiling() || the_tape.dry_run != nullptr || the_tape.check_finite ||
         needs_grad(inputs);
}

Tensor record(const char* name, std::initializer_list<Tensor> inputs, const Tensor& output,
              Backward backward) {
  Tensor y = output;
  record_many(name, std::span(inputs.begin(), inputs.size()), {&y},
              [f = std::move(backward)](std::span<const Tensor> dys) { return f(dys[0]); });
  return y;
}

void record_many(const char* name, std::span<const Tensor> inputs,
                 std::initializer_list<Tensor*> outputs, BackwardMany backward) {
  if (is_profiling()) name_profiled_op(name);
  if (the_tape.dry_run != nullptr) {
    const Work work = std::exchange(*profile_detail::counted, {});
    (*the_tape.dry_run)({name, LayerName::current(), inputs, *outputs.begin()[0], work});
  }
  if (the_tape.check_finite) {
    for (const Tensor* output : outputs) check_output(name, *output);
  }
  if (!the_tape.recording) return;
  if (!any_leads_to_leaf(inputs)) return;
  push(name, inputs, outputs, std::move(backward));
}

void backward(const Tensor& loss, float seed) {
  check(is_on_tape(loss), ErrorKind::internal,
        "backward from a tensor that is not on the tape of this thread; does the loss depend on a "
        "parameter, and was it computed here?");
  const int64_t first = the_tape.first;
  const Tensor dy = Tensor::full(loss.shape(), seed, loss.dtype());
  std::vector<TapeStep> steps = take_steps();
  FinalGradients* const asking = FinalGradients::current();
  if (asking != nullptr) expect_leaves(steps, *asking);
  walk_back(std::move(steps), first, std::span(&loss, 1), std::span(&dy, 1), asking);
  if (asking != nullptr) asking->end();
}

std::vector<Tensor> recompute(std::span<const Tensor> inputs, const Recomputed& f) {
  if (!the_tape.recording) return f(inputs);
  const std::vector<Tensor> kept(inputs.begin(), inputs.end());
  std::vector<Tensor> outputs;
  std::vector<Leaf*> used;
  {
    const NoGrad off;
    UsedLeaves collecting;
    outputs = f(kept);
    used = collecting.take();
  }
  check(any_leads_to_leaf(inputs), ErrorKind::internal, "recompute: no input leads to a leaf");
  std::vector<Tensor*> places;
  for (Tensor& output : outputs) places.push_back(&output);
  push("recompute", inputs, places, [kept, f](std::span<const Tensor> dys) -> Grads {
    Grads found(kept.size());
    std::vector<Tensor> entries;
    std::vector<Tensor> again;
    const int64_t first = the_tape.first;
    {
      const Recording on(true);
      for (size_t i = 0; i < kept.size(); ++i) {
        Tensor entry = kept[i].detached();
        push("input", {}, std::array{&entry}, [&found, i](std::span<const Tensor> dy) -> Grads {
          found[i] = dy[0];
          return {};
        });
        entries.push_back(entry);
      }
      again = f(entries);
    }
    walk_back(take_steps(), first, again, dys);
    return found;
  });
  the_tape.steps.back().within = std::move(used);
  the_tape.steps.back().is_recomputed = true;
  return outputs;
}

void clear_tape() { take_steps(); }

std::vector<std::string> tape_names() {
  std::vector<std::string> names;
  for (const TapeStep& step : the_tape.steps) names.emplace_back(step.name);
  return names;
}

void set_check_finite(bool check) { the_tape.check_finite = check; }

LayerName::LayerName(const std::string& name) : before_(the_tape.layer) {
  the_tape.layer = &name;
  if (is_profiling()) enter_profiled_layer(name);
}

LayerName::~LayerName() {
  the_tape.layer = before_;
  if (is_profiling()) leave_profiled_layer();
}

const std::string& LayerName::current() {
  static const std::string none;
  return the_tape.layer == nullptr ? none : *the_tape.layer;
}

}  // namespace heddle
