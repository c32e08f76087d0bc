// Counting, for each leaf, the steps that lead to it.
#include "heddle/autograd/final_gradients.h"

#include <algorithm>
#include <utility>

namespace heddle {
namespace {

thread_local FinalGradients* the_asking = nullptr;
thread_local UsedLeaves* the_collecting = nullptr;

}  // namespace

FinalGradients::FinalGradients(std::span<const Tensor* const> gradients,
                               std::function<void(size_t)> each)
    : each_(std::move(each)), before_(std::exchange(the_asking, this)) {
  for (size_t i = 0; i < gradients.size(); ++i) leaves_[gradients[i]] = {.number = i};
}

FinalGradients::~FinalGradients() { the_asking = before_; }

FinalGradients* FinalGradients::current() { return the_asking; }

void FinalGradients::expect(const Leaf& leaf) {
  const auto found = leaves_.find(&leaf.grad);
  if (found != leaves_.end()) ++found->second.steps;
}

void FinalGradients::begin(bool is_sure) {
  for (auto& [grad, watched] : leaves_) {
    if (watched.steps == 0 && (is_sure || !watched.is_handed_out)) finish(watched);
  }
}

void FinalGradients::hand_out(const Leaf& leaf) {
  const auto found = leaves_.find(&leaf.grad);
  if (found != leaves_.end()) found->second.is_handed_out = true;
}

void FinalGradients::pass(const Leaf& leaf) {
  const auto found = leaves_.find(&leaf.grad);
  if (found != leaves_.end() && --found->second.steps == 0) finish(found->second);
}

void FinalGradients::end() {
  for (auto& [grad, watched] : leaves_) finish(watched);
}

void FinalGradients::finish(Watched& watched) {
  if (!std::exchange(watched.is_final, true)) each_(watched.number);
}

void FinalGradients::check_open(const Leaf& leaf) const {
  const auto found = leaves_.find(&leaf.grad);
  check(found == leaves_.end() || !found->second.is_final, ErrorKind::internal,
        "a gradient of '{}' came behind what was said to be the last one", leaf.name);
}

UsedLeaves::UsedLeaves()
    : before_(std::exchange(the_collecting, the_asking == nullptr ? nullptr : this)) {}

UsedLeaves::~UsedLeaves() { the_collecting = before_; }

// An inner one hands on what it finds: its step lies within the outer one's.
void UsedLeaves::note(Leaf& leaf) {
  if (the_asking != nullptr) the_asking->hand_out(leaf);
  for (UsedLeaves* of = the_collecting; of != nullptr; of = of->before_) {
    if (std::ranges::find(of->leaves_, &leaf) == of->leaves_.end()) of->leaves_.push_back(&leaf);
  }
}

}  // namespace heddle
