// The table of kernels: plain function pointers over row views, no tensors, no tape. Where a
// machine lacks a kernel its pointer is null in the table of its families, and the definition runs.
#pragma once

#include <string_view>

#include "heddle/base/parallel.h"
#include "heddle/base/profile.h"
#include "heddle/kernels/activation.h"
#include "heddle/kernels/attention.h"
#include "heddle/kernels/batch_norm.h"
#include "heddle/kernels/elementwise.h"
#include "heddle/kernels/embedding.h"
#include "heddle/kernels/gemm.h"
#include "heddle/kernels/loss.h"
#include "heddle/kernels/norm.h"
#include "heddle/kernels/optimizer.h"
#include "heddle/kernels/patches.h"
#include "heddle/kernels/recurrent.h"
#include "heddle/kernels/reduce.h"
#include "heddle/kernels/step_attention.h"
#include "heddle/kernels/transpose.h"
#include "heddle/kernels/winograd.h"

namespace heddle {

/// A family is a header (arguments, pointers, what a call costs, and in `definition` what each
/// computes, in plain loops) and a file of heddle/kernels/cpu.
template <class... Families>
struct KernelTable : Families... {
  static KernelTable of_cpu() { return {Families::of_cpu()...}; }
  /// Calls visit.operator()<&pointer, definition>(name) for each.
  static void list(const auto& visit) { (Families::list(visit), ...); }
};
using Kernels = KernelTable<GemmKernels, ElementwiseKernels, ActivationKernels, ReduceKernels,
                            NormKernels, BatchNormKernels, EmbeddingKernels, PatchKernels,
                            WinogradKernels, TransposeKernels, AttentionKernels, RecurrentKernels,
                            StepAttentionKernels, LossKernels, OptimizerKernels>;

/// The kernels of this machine; those of a thread that is profiled time their calls.
const Kernels& kernels();

/// parallel_for() of an f that calls kernels: where this thread's calls are timed or counted, other
/// threads' would be missed, and it makes them all, one after the other.
template <class F>
void parallel_kernels(int64_t n, const F& f) {
  if (!is_profiling() && !is_counting()) return parallel_for(n, f);
  for (int64_t i = 0; i < n; ++i) f(i);
}

/// Nulls the pointer of a kernel while it lives, so that the definition runs: for tests, on one
/// thread. Errors: internal if there is none of that name.
class WithoutKernel {
 public:
  explicit WithoutKernel(std::string_view name);
  ~WithoutKernel();
  WithoutKernel(const WithoutKernel&) = delete;
  WithoutKernel& operator=(const WithoutKernel&) = delete;

 private:
  Kernels before_;
};

}  // namespace heddle
