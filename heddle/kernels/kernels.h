// The table of kernels of a device: plain function pointers over row views, no tensors, no tape.
// A null pointer means that the device lacks the kernel; the op then runs its plain definition.
#pragma once

#include <cstdint>

#include "heddle/base/rng.h"
#include "heddle/tensor/dtype.h"
#include "heddle/tensor/rows.h"

namespace heddle {

enum class Device : uint8_t { cpu };

enum class Activation : uint8_t { none, relu, gelu, gelu_new, silu, tanh };

/// Which elements are dropped, as a pure function of the row's place in the data and the column.
/// Element (r, c): block = c / 128, lane = c % 16, slot = (c % 128) / 16;
/// words = philox({block * 16 + lane, position[r], sample[r], head}, key);
/// u = 16 bits of words[slot / 2], the lower half when slot is even; dropped if u < threshold().
/// Kept elements are multiplied by keep_scale().
struct Dropout {
  float p = 0;  ///< probability of being dropped; 0 switches dropout off
  RngKey key;
  const uint32_t* sample = nullptr;    ///< [rows] number of the sample in the epoch
  const uint32_t* position = nullptr;  ///< [rows] position of the row in its sequence
  uint32_t threshold() const { return static_cast<uint32_t>(p * 65536.0f + 0.5f); }
  float keep_scale() const { return 65536.0f / (65536.0f - static_cast<float>(threshold())); }
};

/// c = op(a) op(b) (+ bias) or c += op(a) op(b); sums in f32, in an order that depends on the inner
/// size only: a row of c has the same bits whatever the number of rows or threads.
struct GemmArgs {
  Rows a = {};  ///< [m, k], or [k, m] if transpose_a
  Rows b = {};  ///< [k, n], or [n, k] if transpose_b; same dtype as a, or f32, which
                ///< counts as rounded to the dtype of a
  Rows c = {};  ///< [m, n], f32 or the dtype of a
  const float* bias = nullptr;  ///< [n], added to each row
  bool transpose_a = false;
  bool transpose_b = false;
  bool accumulate = false;  ///< add to c, which must be f32
  uint64_t constant_b = 0;  ///< not 0: identity of a b that does not change; from the second use on
                            ///< its packed form is kept
  int64_t first = 0;  ///< of the columns of the product that c holds, a multiple of 64: with a
                      ///< transposed constant b c may have some only
  Activation activation = Activation::none;  ///< of product and bias; not with accumulate
  Rows pre_activation =
      {};  ///< product and bias before the activation, of the dtype of c; may be absent
  /// Multiply in int8: each row of a and each column of b is divided by its largest magnitude / 127
  /// and rounded; sums are exact. Needs a transposed constant b, of any dtype, and a plain a.
  bool int8 = false;
};

/// h = x + dropout(sub); y = (h - mean) / sqrt(var + eps) * gamma + beta, biased variance, two
/// passes. sub, x (then h = dropout(sub)), and h may be absent (data null); h may alias x or sub.
struct NormArgs {
  Rows x = {};
  Rows sub = {};
  Dropout dropout = {};
  Rows h = {};
  Rows y = {};
  const float* gamma = nullptr;  ///< [width]
  const float* beta = nullptr;   ///< [width]
  float eps = 1e-5f;
  float* mean = nullptr;  ///< [rows], kept for the backward pass; may be null
  float* rstd = nullptr;  ///< [rows], 1 / sqrt(var + eps); may be null
};

/// dh = gradient through the norm + dh_in (if given); dsub = dh * dropout mask.
/// dgamma, dbeta: [width], written (not added to), summed in fixed chunks of rows.
struct NormBackwardArgs {
  Rows h = {};
  Rows dy = {};
  Rows dh_in = {};  ///< gradient that reaches h by the residual path; may be absent
  Rows dh = {};     ///< may alias dh_in
  Rows dsub = {};   ///< may be absent
  Dropout dropout = {};
  const float* gamma = nullptr;
  const float* mean = nullptr;
  const float* rstd = nullptr;
  float* dgamma = nullptr;
  float* dbeta = nullptr;
};

/// Softmax attention of packed sequences, head by head (columns h * head_dim ..). Segment i:
/// queries [q_offsets[i], q_offsets[i+1]), keys [k_offsets[i], k_offsets[i+1]) of k and v, or, if
/// key_rows is given, the rows key_rows[k_offsets[i] ..] of k and v. With `causal`, query j of a
/// segment of n queries and m keys sees keys 0 .. j + m - n. A query that sees no key gives zeros.
struct AttentionArgs {
  Rows q = {}, k = {}, v = {};         ///< [rows, heads * head_dim] each
  Rows o = {};                         ///< [q rows, heads * head_dim]
  const int64_t* q_offsets = nullptr;  ///< [segments + 1]
  const int64_t* k_offsets = nullptr;  ///< [segments + 1]
  int64_t segments = 0;
  const int32_t* key_rows = nullptr;  ///< [k_offsets[segments]]
  int64_t heads = 1;
  int64_t head_dim = 0;
  float scale = 1;
  bool causal = false;
  Dropout dropout = {};  ///< on the weights; row = query, column = key in its segment, head = head
  float* lse =
      nullptr;  ///< [q rows, heads] log of the sum of exponentials, for backward; may be null
};

struct AttentionBackwardArgs {
  AttentionArgs forward = {};  ///< o and lse as computed; key_rows must be null
  Rows d_o = {};
  Rows dq = {}, dk = {},
       dv = {};  ///< written, not added to; rows outside every segment stay as they are
};

/// Cross entropy with label smoothing over rows of logits, in place: logits become the gradient
/// d loss / d logits * grad_scale (written to dlogits, which may be bf16 or alias logits).
/// Per row: loss = -(1 - s) log p[target] - s / V * sum_j log p[j]; nll = -log p[target].
/// With `divergence` a > 0 rows r and r + rows / 2 are two passes over one token, p and q, and the
/// loss of each grows by a / 4 (KL(p || q) + KL(q || p)) (R-Drop).
struct CrossEntropyArgs {
  Rows logits = {};                  ///< [rows, vocab] f32 or bf16
  Rows dlogits = {};                 ///< same shape; absent: no gradient
  const int32_t* targets = nullptr;  ///< [rows]; negative: the row is ignored (loss 0, gradient 0)
  float smoothing = 0;
  float divergence = 0;
  float grad_scale = 1;
  float* loss = nullptr;  ///< [rows]
  float* nll = nullptr;   ///< [rows]; may be null
};

/// What choosing tokens from rows of logits needs to know: the largest of each kBlock columns, so
/// that few of them have to be looked at, and sums of e^logit. Columns may come in parts that begin
/// at multiples of kSumBlock: nothing depends on how they are cut.
struct LogitScanArgs {
  static constexpr int64_t kBlock = 128, kSumBlock = 2048;
  Rows logits = {};
  float* maxima = nullptr;  ///< [rows, ceil(width / kBlock)]
  /// [rows, ceil(width / kSumBlock)] sums of e^(logit - largest of these), or, if they are not
  /// wanted, 0; NaN if a logit is NaN
  float* sums = nullptr;
  bool wants_sums = true;
  int64_t maxima_stride = 0, sums_stride = 0;  ///< from one row to the next
};

/// One step of Adam or AdamW over n elements. g is multiplied by grad_scale first (clipping,
/// division by tokens). m = b1 m + (1-b1) g; v = b2 v + (1-b2) g^2;
/// w -= lr * (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + eps) + lr * weight_decay * w (AdamW), or
/// g += weight_decay * w first (Adam).
struct AdamArgs {
  float* w = nullptr;
  const float* g = nullptr;
  float* m = nullptr;
  float* v = nullptr;
  bf16* shadow = nullptr;  ///< bf16 copy of w; may be null
  float* ema = nullptr;    ///< exponential moving average of w; may be null
  int64_t n = 0;
  float lr = 0, beta1 = 0.9f, beta2 = 0.999f, eps = 1e-8f, weight_decay = 0;
  float bias_correction1 = 1, bias_correction2 = 1;  ///< 1 - beta^t
  float grad_scale = 1;
  float ema_decay = 0;
  bool decoupled_decay = false;  ///< AdamW
};

struct Kernels {
  // Matrix products (gemm.cc)
  void (*gemm)(const GemmArgs&);
  // Element by element (elementwise.cc); x, y of any mix of f32 and bf16 unless stated
  void (*convert)(Rows x, Rows y);      ///< y = x, rounded to nearest even
  void (*add)(Rows a, Rows b, Rows y);  ///< y = a + b, y may alias
  void (*mul)(Rows a, Rows b, Rows y);  ///< y = a * b
  void (*axpby)(float alpha, Rows x, float beta,
                Rows y);                               ///< y = alpha x + beta y (beta 0: not read)
  void (*add_row)(Rows x, const float* bias, Rows y);  ///< y[r] = x[r] + bias
  void (*activation)(Activation, Rows x, const Dropout&, Rows y);  ///< y = dropout(act(x))
  /// dx = act'(x) * mask(dy)
  void (*activation_backward)(Activation, Rows x, Rows dy, const Dropout&, Rows dx);
  void (*dropout)(Rows x, const Dropout&, Rows y);  ///< also its own backward
  void (*exp)(Rows x, Rows y);
  // Reductions (reduce.cc); fixed order of sums
  void (*sum_columns)(Rows x, float* y);  ///< y[c] = sum over rows, chunks of 256 rows in order
  void (*sum_rows)(Rows x, float* y);     ///< y[r] = sum over columns
  double (*sum_squares)(const float* x,
                        int64_t n);  ///< chunks of 16,384 summed in order, f64 between
  bool (*all_finite)(Rows x);
  void (*softmax)(Rows x, Rows y);
  void (*softmax_backward)(Rows y, Rows dy, Rows dx);
  void (*log_softmax)(Rows x, Rows y);  ///< y f32
  void (*scan_logits)(const LogitScanArgs&);
  // Norm (norm.cc)
  void (*norm)(const NormArgs&);
  void (*norm_backward)(const NormBackwardArgs&);
  // Embedding (embedding.cc)
  /// y[r] = table[ids[r]] * scale + positions[position_ids[r]] (if given), then dropout; a table of
  /// f32 counts as rounded to the dtype of y
  void (*embedding)(Rows table, const int32_t* ids, float scale, Rows positions,
                    const int32_t* position_ids, const Dropout&, Rows y);
  /// dtable[ids[r]] += scale * mask(dy[r]), f32, rows in order for each id
  void (*embedding_backward)(Rows dy, const int32_t* ids, float scale, const Dropout&, Rows dtable);
  /// y[i] = x[index[i]]
  void (*gather_rows)(Rows x, const int32_t* index, Rows y);
  // Attention (attention.cc)
  void (*attention)(const AttentionArgs&);
  void (*attention_backward)(const AttentionBackwardArgs&);
  // Loss (loss.cc) and optimizer (optimizer.cc)
  void (*cross_entropy)(const CrossEntropyArgs&);
  void (*adam)(const AdamArgs&);
};

/// The kernels of a device.
const Kernels& kernels(Device device = Device::cpu);

/// A number for GemmArgs::constant_b that was not given before.
uint64_t new_constant();
/// Forgets the packed form kept for a constant b (see GemmArgs::constant_b).
void forget_packed(uint64_t constant_b);

}  // namespace heddle
