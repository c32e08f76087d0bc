// How anything is timed; its limits: what a case would take if only its matrix products, by our
// driver or by registers alone, or only its memory reads took time. Williams et al. 2009,
// "Roofline".
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "heddle/models/transformer.h"
#include "heddle/tensor/tensor.h"

namespace heddle::bench {

struct Timing {
  double median = 0;  ///< seconds of a repetition
  int64_t repetitions = 0;
};

/// Calls f `warm_up` times, then again and again until `seconds` have passed and it ran `least`
/// times.
Timing time_repeatedly(const std::function<void()>& f, double seconds, int warm_up = 2,
                       int64_t least = 3);

/// c [m, n] = op(a) op(b), inner size k; `count` such products in one repetition of a case.
struct MatrixProduct {
  int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;
  DType in = DType::f32, out = DType::f32;
  bool int8 = false;         ///< factors are rounded to int8; b is given in f32
  bool is_constant = false;  ///< b is a weight that does not change: its packed form is kept
  int64_t count = 1;

  /// Multiplications and additions of one: 2 m n k.
  double flops() const {
    return 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  }
};

/// The matrix products of one repetition. Attention's own products (queries with keys, weights with
/// values) are no driver calls and are left out.
class Products {
 public:
  /// `trains`: each layer has its two backward products too, and its weights are not constant.
  Products(const Precision& p, bool trains) : dtype_(p.compute), int8_(p.int8), trains_(trains) {}
  Products() = default;

  /// y [rows, out] = x [rows, in] wᵀ, `count` times. Training: dx = dy w; dw = dyᵀ x in f32.
  void linear(int64_t rows, int64_t in, int64_t out, int64_t count = 1);
  /// Its parts, where they are multiplied in other ways.
  void forward(int64_t rows, int64_t in, int64_t out, int64_t count = 1);
  void backward(int64_t rows, int64_t in, int64_t out, int64_t count = 1);
  /// The output projection. Its logits are f32 and come in chunks of some 20 MB, as the fused loss
  /// makes them: nobody pays for writing a matrix that need not exist.
  void logits(int64_t rows, int64_t width, int64_t vocab, int64_t count = 1);
  /// What recurrent layers make of a state: at each step from `first` on the rows [in] of those
  /// sequences that have not ended, to f32, by weights that stay packed for all steps. Training: dx
  /// step by step, dw of all rows at once.
  void steps(const Segments& sequences, int64_t in, int64_t out, int64_t first = 0);

  /// Blocks of self-attention and a feed-forward layer, `count` times.
  void blocks(int64_t rows, int64_t width, int64_t hidden, int64_t count) {
    linear(rows, width, 3 * width, count);  // queries, keys, values
    linear(rows, width, width, count);
    linear(rows, width, hidden, count);
    linear(rows, hidden, width, count);
  }

  /// Each distinct product once, with its count.
  const std::vector<MatrixProduct>& all() const { return all_; }
  /// Multiplications and additions of all.
  double flops() const;
  /// Scalars of weights that they read, once a product: n k of each.
  int64_t weights_read() const;

 private:
  void add(const MatrixProduct& p);

  DType dtype_ = DType::f32;
  bool int8_ = false;
  bool trains_ = false;
  std::vector<MatrixProduct> all_;
};

/// Of one update of the encoder-decoder, forward and backward, over so many rows of source and
/// target. Source: Vaswani et al. 2017, section 3.
Products training_products(const TransformerConfig& c, int64_t source_rows, int64_t target_rows,
                           const Precision& precision);

/// Sentences that are translated together.
struct TranslationSize {
  int64_t source_rows = 0;  ///< tokens of all sources, their ends included
  int64_t sentences = 0;
  int64_t beam = 1;
  int64_t steps = 0;  ///< tokens of each translation
};

/// Of the encoder over all sources, then of the steps: the first with one hypothesis a sentence,
/// the others with `beam`.
Products translation_products(const TransformerConfig& c, const TranslationSize& size,
                              const Precision& precision);

/// Numbers as weights have them: products of zeros or of NaN may take another time.
Tensor some_numbers(const Shape& shape, DType dtype);

/// Seconds of one call of the driver on the threads that are set, on operands of its own (median).
double seconds_of_product(const MatrixProduct& product);
/// Those of all products, each distinct one multiplied by its count.
double seconds_of_products(const Products& products);

/// Multiplications and additions of matrix products and of attention in a call of f, which is
/// called once more, under a profile. 0: a profile is under way already.
double operations_of(const std::function<void()>& f);

/// Seconds that so many operations take if each thread multiplies registers by registers, by the
/// unit that products of this precision use (of repetitions the fastest: it is a limit). 0: not
/// known for this CPU.
double seconds_in_registers(double operations, const Precision& precision);

/// Seconds to read `bytes` from memory with all threads, from a buffer of `buffer_bytes` in 2 MB
/// pages that is read over and over (median): a small model that stays in a cache is timed there.
double seconds_of_reads(int64_t bytes, int64_t buffer_bytes);

}  // namespace heddle::bench
