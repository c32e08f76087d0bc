// A pass that computes nothing: what its ops are, what work they are, what the tape keeps.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "heddle/base/profile.h"
#include "heddle/tensor/tensor.h"

namespace heddle {

/// An op as it is recorded: a view that lives as long as the callback has not returned.
struct DryOp {
  const char* name;          ///< "linear"
  const std::string& layer;  ///< see LayerName
  std::span<const Tensor> inputs;
  const Tensor& output;  ///< the first, if there are several
  Work work;             ///< of the kernels since the op before
};

/// While it lives, kernels that this thread calls count their work in place of doing it, and
/// tensors are zeros that take no memory until they are written. What reads values sees zeros.
/// Begins and ends with an empty tape.
class DryRun {
 public:
  /// `each` is called for every op.
  explicit DryRun(std::function<void(const DryOp&)> each);
  ~DryRun();
  DryRun(const DryRun&) = delete;
  DryRun& operator=(const DryRun&) = delete;

  /// Bytes of the tensors that live: those that something holds, the tape's among them.
  int64_t bytes() const { return memory_.in_use(); }

 private:
  UntouchedMemory memory_;
  std::function<void(const DryOp&)> each_;
  Work work_;
  Work* counted_before_;
  const std::function<void(const DryOp&)>* each_before_;
};

}  // namespace heddle
