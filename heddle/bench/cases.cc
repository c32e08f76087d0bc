// The table of cases, and the run of one.
#include <algorithm>
#include <fstream>

#include "heddle/base/error.h"
#include "heddle/base/names.h"
#include "heddle/bench/case.h"

namespace heddle::bench {
namespace {

// Resident memory of this process at its highest; 0 where the system does not say.
int64_t peak_resident_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    if (word != "VmHWM:") continue;
    int64_t kibibytes = 0;
    status >> kibibytes;
    return kibibytes * 1024;
  }
  return 0;
}

}  // namespace

const std::vector<BenchCase>& cases() {
  static const std::vector<BenchCase> all = [] {
    std::vector<BenchCase> table;
    for (const auto& part : {model_cases(), attention_cases(), start_cases()}) {
      table.insert(table.end(), part.begin(), part.end());
    }
    return table;
  }();
  return all;
}

const BenchCase& find_case(const std::string& name) {
  std::vector<std::string> names;
  for (const BenchCase& c : cases()) {
    if (c.name == name) return c;
    names.push_back(c.name);
  }
  const std::string nearest = nearest_name(name, names);
  fail(ErrorKind::usage, "bench: unknown case '{}'.{} The cases are {}", name,
       nearest.empty() ? "" : " Did you mean '" + nearest + "'?", fmt::join(names, ", "));
}

Precision precision_of_run(const BenchCase& c, const std::string& name) {
  check(std::find(c.dtypes.begin(), c.dtypes.end(), name) != c.dtypes.end(), ErrorKind::usage,
        "bench: {} does not run in '{}'; `precision` must be one of {}", c.name, name,
        fmt::join(c.dtypes, ", "));
  return resolve_precision(name);
}

BenchResult run_case(const BenchCase& c, const BenchOptions& options) {
  BenchResult result;
  BenchWorkload w = c.make(options);
  const Timing timing = time_repeatedly(w.step, options.seconds, w.warm_up, w.least);
  w.step = nullptr;  // frees the model, so that the roof's buffers need no more memory than it did
  result.step_ms = timing.median * 1e3;
  result.repetitions = timing.repetitions;
  result.value = w.units / timing.median;
  result.peak_bytes = w.peak_bytes ? w.peak_bytes() : peak_resident_bytes();
  result.roof_by = w.bytes_read > 0 ? "reads" : "products";
  const double least = w.bytes_read > 0 ? seconds_of_reads(w.bytes_read, w.model_bytes)
                                        : seconds_of_products(w.products);
  result.roof = w.units / least;
  result.share_of_roof = least / timing.median;
  result.model = w.model;
  result.parameters = w.parameters;
  result.batch = w.batch;
  return result;
}

}  // namespace heddle::bench
