// Fills the table of the CPU.
#include "heddle/kernels/cpu/cpu.h"

namespace heddle {

const Kernels& cpu_kernels() {
  static const Kernels table = {
      .gemm = cpu::gemm,
      .convert = cpu::convert,
      .add = cpu::add,
      .mul = cpu::mul,
      .axpby = cpu::axpby,
      .add_row = cpu::add_row,
      .activation = cpu::activation,
      .activation_backward = cpu::activation_backward,
      .dropout = cpu::dropout,
      .exp = cpu::exp,
      .sum_columns = cpu::sum_columns,
      .sum_rows = cpu::sum_rows,
      .sum_squares = cpu::sum_squares,
      .all_finite = cpu::all_finite,
      .softmax = cpu::softmax,
      .softmax_backward = cpu::softmax_backward,
      .log_softmax = cpu::log_softmax,
      .scan_logits = cpu::scan_logits,
      .norm = cpu::norm,
      .norm_backward = cpu::norm_backward,
      .embedding = cpu::embedding,
      .embedding_backward = cpu::embedding_backward,
      .gather_rows = cpu::gather_rows,
      .attention = cpu::attention,
      .attention_backward = cpu::attention_backward,
      .cross_entropy = cpu::cross_entropy,
      .adam = cpu::adam,
  };
  return table;
}

}  // namespace heddle
