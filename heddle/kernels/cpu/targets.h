// Which instruction sets the kernels are built for, and how one is chosen; included before anything
// of Highway. On x86: AVX3 (AVX-512), AVX2, and SSE4 for every other processor (2008 and later).
// Highway's own baseline is scalar code under GCC 12, without the vectors of bf16; each further
// target adds a third to the time of compiling.
#pragma once

#if defined(__x86_64__)
#define HWY_BASELINE_TARGETS HWY_SSE4
#endif

/// A family's pointer of that name: heddle::cpu's NAME_impl of the instruction set that is chosen.
#define HEDDLE_CPU_KERNEL(name) \
  .name = [](auto... args) { return HWY_DYNAMIC_DISPATCH(cpu::name##_impl)(args...); }
