// The kernels of the CPU: what each file of this folder gives to the table.
#pragma once

#include "heddle/kernels/kernels.h"

namespace heddle {

const Kernels& cpu_kernels();

namespace cpu {

// gemm.cc
void gemm(const GemmArgs& args);
// elementwise.cc
void convert(Rows x, Rows y);
void add(Rows a, Rows b, Rows y);
void mul(Rows a, Rows b, Rows y);
void axpby(float alpha, Rows x, float beta, Rows y);
void add_row(Rows x, const float* bias, Rows y);
void exp(Rows x, Rows y);
// activation.cc
void activation(Activation kind, Rows x, const Dropout& dropout, Rows y);
void activation_backward(Activation kind, Rows x, Rows dy, const Dropout& dropout, Rows dx);
void dropout(Rows x, const Dropout& dropout, Rows y);
// reduce.cc
void sum_columns(Rows x, float* y);
void sum_rows(Rows x, float* y);
double sum_squares(const float* x, int64_t n);
bool all_finite(Rows x);
void softmax(Rows x, Rows y);
void softmax_backward(Rows y, Rows dy, Rows dx);
void log_softmax(Rows x, Rows y);
void scan_logits(const LogitScanArgs& args);
// norm.cc
void norm(const NormArgs& args);
void norm_backward(const NormBackwardArgs& args);
// embedding.cc
void embedding(Rows table, const int32_t* ids, float scale, Rows positions,
               const int32_t* position_ids, const Dropout& dropout, Rows y);
void embedding_backward(Rows dy, const int32_t* ids, float scale, const Dropout& dropout,
                        Rows dtable);
void gather_rows(Rows x, const int32_t* index, Rows y);
// attention.cc
void attention(const AttentionArgs& args);
void attention_backward(const AttentionBackwardArgs& args);
// loss.cc
void cross_entropy(const CrossEntropyArgs& args);
// optimizer.cc
void adam(const AdamArgs& args);

}  // namespace cpu
}  // namespace heddle
