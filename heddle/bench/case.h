// The benchmark cases: one table of what can be timed, and the run of one of them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "heddle/bench/roof.h"
#include "heddle/infer/loading/loaded_model.h"

namespace heddle::bench {

/// What the user asked for.
struct BenchOptions {
  Precision precision = {};
  int bits = 0;        ///< of weights as quantized files hold them; 0: as `precision` has them
  int64_t batch = 0;   ///< sentences or sequences at a time; 0: as many as the case says
  double seconds = 8;  ///< how long repetitions go on after the warm-up; three at least
};

/// A case that is ready to run: its weights (random: time does not depend on them) and inputs are
/// made. `step` keeps alive what it needs.
struct BenchWorkload {
  std::function<void()> step;  ///< one repetition, which is what is timed
  double units = 0;            ///< of one repetition: tokens or sequences, as the case's unit says
  int64_t batch = 0;           ///< sentences or sequences of one repetition
  int64_t parameters = 0;      ///< scalars of the model
  std::string model;           ///< its size in a few words
  /// All matrix products of linear layers in one repetition; of attention's own cases what its
  /// blocks would be as such.
  Products products = {};
  /// Bytes of weights that one repetition must read; where it is not 0 memory reads are the limit,
  /// not products: decoding one sentence, loading.
  int64_t bytes_read = 0;
  int64_t model_bytes = 0;  ///< bytes of the weights in the dtype of the run
  int warm_up = 2;          ///< repetitions that are not timed
  int64_t least = 3;        ///< repetitions that are timed at least
  /// Resident memory at its highest, where the work is another process's; else of this one.
  std::function<int64_t()> peak_bytes = nullptr;
};

struct BenchCase {
  std::string name;
  std::string unit;
  std::string about;  ///< what one repetition does, in a line
  /// Those that it runs in: f32, bf16, int8, int4. Of cases that have int4 int8 too is that of
  /// quantized files.
  std::vector<std::string> dtypes;
  std::function<BenchWorkload(const BenchOptions&)> make;
};

/// All cases, in the order of `heddle bench list`. A new one is a line in one of the functions that
/// cases.cc calls.
const std::vector<BenchCase>& cases();

/// Errors: usage, with the nearest name and all names, if there is no such case.
const BenchCase& find_case(const std::string& name);

/// The number format of a run: BenchOptions::precision and bits. Errors: usage, listing those of
/// the case, for any other.
BenchOptions options_of_run(const BenchCase& c, const std::string& name);

struct BenchResult {
  double value = 0;         ///< units per second, of the median repetition
  double step_ms = 0;       ///< the median repetition
  int64_t repetitions = 0;  ///< timed, without the warm-up
  int64_t peak_bytes = 0;   ///< resident memory of the process at its highest, before the limits
  /// The value at the machine's limit: if all multiplications and additions of the step, those of
  /// attention too, went from registers to registers, or if weights were read plainly and nothing
  /// else took time. 0: not known
  double peak = 0;
  double share_of_peak = 0;
  std::string peak_by;  ///< "registers" or "reads"
  /// The value if the matrix products of linear layers, by heddle's own driver, were all there is;
  /// 0 where reads are the limit.
  double products = 0;
  double share_of_products = 0;
  std::string model;
  int64_t parameters = 0, batch = 0;
};

/// Makes the workload, times it (the median of the repetitions after a warm-up), then measures its
/// limits on the same threads.
BenchResult run_case(const BenchCase& c, const BenchOptions& options);

/// The matrix products of a case one by one.
struct ProductTimings {
  struct Row {
    MatrixProduct product;
    double seconds = 0;  ///< of one call of heddle's driver
    /// Multiplications and additions a second.
    double rate() const { return product.flops() / seconds; }
  };

  std::vector<Row> rows;  ///< those that take the most time of a repetition first
  double peak = 0;        ///< of registers, multiplications and additions a second; 0: not known
};

/// Times each distinct one of BenchWorkload::products by itself, on the threads that are set.
/// Errors: usage, where there are none.
ProductTimings time_products(const BenchCase& c, const BenchOptions& options);

// The parts of the table, a file each.
std::vector<BenchCase> translation_cases();  ///< the encoder-decoder of 2017, and that by LSTM
std::vector<BenchCase> language_cases();     ///< GPT-2, BERT
std::vector<BenchCase> image_cases();        ///< ViT and what else reads images
std::vector<BenchCase> start_cases();        ///< from starting the program to the first token

}  // namespace heddle::bench
