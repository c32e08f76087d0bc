// Hearing within a backward pass which gradients are final, so that what is done with them need not
// wait for its end.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <unordered_map>
#include <vector>

#include "heddle/autograd/tape.h"

namespace heddle {

/// While it lives, the next backward() of this thread tells of each of some leaves that its
/// gradient is final: no step that is still to be walked back leads to it. Of a leaf that the pass
/// does not lead to this is so as it begins. What recompute() uses counts as used until that step
/// has been walked back; what was handed out and is not seen to be used may be used by such a step.
/// A pass behind that one must lead to none of them.
/// The forward pass is made while it lives too: that is how it knows who uses what.
class FinalGradients {
 public:
  /// gradients: where those of the leaves are (&Leaf::grad). each(i): the i-th is final, or there
  /// is none; called once for each, within backward(), between two steps.
  FinalGradients(std::span<const Tensor* const> gradients, std::function<void(size_t)> each);
  ~FinalGradients();
  FinalGradients(const FinalGradients&) = delete;
  FinalGradients& operator=(const FinalGradients&) = delete;

  // --- for the tape ---
  /// Of this thread; null: nobody asks.
  static FinalGradients* current();
  /// A step of the pass that is about to begin leads to it.
  void expect(const Leaf& leaf);
  /// All are expected. is_sure: no step leads to others.
  void begin(bool is_sure);
  void hand_out(const Leaf& leaf);
  /// One of the expected steps has been walked back.
  void pass(const Leaf& leaf);
  /// The pass has ended.
  void end();
  /// Errors: internal if the gradient of the leaf was said to be final.
  void check_open(const Leaf& leaf) const;

 private:
  struct Watched {
    size_t number = 0;
    int64_t steps = 0;  // that lead to it and have not been walked back
    bool is_handed_out = false;
    bool is_final = false;
  };
  void finish(Watched& watched);

  std::unordered_map<const Tensor*, Watched> leaves_;
  std::function<void(size_t)> each_;
  FinalGradients* before_;
};

/// Collects the leaves that are used while it lives, if somebody asks for final gradients.
class UsedLeaves {
 public:
  UsedLeaves();
  ~UsedLeaves();
  UsedLeaves(const UsedLeaves&) = delete;
  UsedLeaves& operator=(const UsedLeaves&) = delete;
  std::vector<Leaf*> take() { return std::move(leaves_); }
  /// To be called where the tensor of a leaf is handed out, whether the tape records or not.
  static void note(Leaf& leaf);

 private:
  std::vector<Leaf*> leaves_;
  UsedLeaves* before_;
};

}  // namespace heddle
